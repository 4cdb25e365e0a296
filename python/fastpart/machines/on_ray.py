"""The engine on Ray: tasks wherever a processor is free, and a replica in a process on every node.

A replica runs a program, and takes messages from the others meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ..core.notes import log
from ..core.parameters import one_line
from ..errors import ClusterError, InternalError
from .engine import Program

_INLINE = 1 << 16
"""Bytes of a message that travels inside of a call. Ray copies larger ones through its store, once for each node."""
_LOOK = 2.0
"""Seconds of waiting after which a replica looks whether its own messages arrived."""
_MOST = 1000
"""Messages of which a replica may not know yet whether they arrived."""

Outcome = tuple[bool, Any]
"""Whether something returned, and its result or its error."""


def outcome(work: Callable[..., Any], *given: Any) -> Outcome:
    """Return what a function returned or raised.

    An error travels as a value, so Ray neither takes it for the end of a process nor wraps it.
    """
    try:
        return True, work(*given)
    except ray.exceptions.RayError:
        raise
    except BaseException as error:  # raised again by the process that waits
        try:
            ray.cloudpickle.loads(ray.cloudpickle.dumps(error))
        except Exception:
            return False, InternalError(f"{type(error).__name__}: {one_line(error)}")
        return False, error.with_traceback(None)


class Replica:
    """What an actor of Ray is made of. Its methods run in three threads.

    Each replica sends its messages to all others. Nobody is in the middle, so nobody else can be lost, and a superstep
    takes one call in each direction. Replicas are at most one step apart, so at most two steps wait here.
    """

    def __init__(self) -> None:
        self._arrived = threading.Condition()
        self._messages: defaultdict[int, dict[int, bytes]] = defaultdict(dict)
        self._sent: list[Any] = []
        self._step = 0

    @ray.method(concurrency_group="life")
    def ping(self) -> int:
        """Return the number of this process, which shows that it runs."""
        return os.getpid()

    @ray.method(concurrency_group="mail")
    def leave(self, step: int, number: int, message: bytes) -> None:
        """Take a message of another replica."""
        with self._arrived:
            self._messages[step][number] = message
            self._arrived.notify_all()

    def run(self, program: Program, number: int, peers: list[Any]) -> Outcome:
        """Run a program, whose messages go to these replicas."""
        others = [peer for each, peer in enumerate(peers) if each != number]

        def exchange(message: bytes) -> list[bytes]:
            self._send(number, message, others)
            found = self._wait_for(len(others)) | {number: message}
            return [found[each] for each in range(len(peers))]

        answer = outcome(program, number, len(peers), exchange)
        if answer[0]:
            ray.get(self._sent)  # the others wait for the last message, so it must not be lost unnoticed
        return answer

    def _send(self, number: int, message: bytes, others: list[Any]) -> None:
        if len(self._sent) > _MOST:
            self._look()
        given = message if len(message) <= _INLINE or not others else ray.put(message)
        self._sent += [peer.leave.remote(self._step, number, given) for peer in others]

    def _wait_for(self, count: int) -> dict[int, bytes]:
        """Return the messages of this step by their senders, and begin the next."""
        step, self._step = self._step, self._step + 1
        with self._arrived:
            while len(self._messages[step]) < count:
                if not self._arrived.wait(_LOOK):
                    self._look()
            return self._messages.pop(step)

    def _look(self) -> None:
        """Raise the error of a message that did not arrive."""
        if self._sent:
            done, self._sent = ray.wait(self._sent, num_returns=len(self._sent), timeout=0)
            ray.get(done)


_PROCESSES = Path("/proc")


def stopped(title: str, parent: int) -> set[int]:
    """Return the stopped children of a process with a title in their command line."""
    found = set()
    for folder in _PROCESSES.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            state, its_parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if state == "T" and int(its_parent) == parent and title in (folder / "cmdline").read_text():
                found.add(int(folder.name))
    return found


def kill(processes: Iterable[int]) -> None:
    """Kill processes of this machine, as far as they are there."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def kill_stopped(title: str, patience: float) -> list[int]:
    """Kill the children of the parent of this process that have a title and stay stopped for ``patience`` seconds.

    Returns their numbers.
    """
    known = stopped(title, os.getppid())
    if not known:
        return []
    time.sleep(patience)
    still = sorted(known & stopped(title, os.getppid()))
    kill(still)
    return still


RETRIES = 3
"""How often a task is run again, and how often replicas begin again, before the job is given up."""
START = 120.0
"""Seconds in which replicas must have started. Ray needs 67 to find out that a machine is gone."""
PING = 5.0
"""Seconds between two looks whether all replicas answer, and whether tasks are stopped."""
SILENCE = 30.0
"""Seconds without an answer after which a replica counts as dead. A task that is stopped for so long is killed."""
_FEW = 3
"""Tasks for each node that are dealt. There are no more of those that take memory for each vertex."""
_GLANCE = 1.0
"""Seconds between two looks at the tasks that are done."""

_TASK = ray.remote(num_cpus=1, max_retries=RETRIES)(outcome)
_VISIT = ray.remote(num_cpus=0, max_retries=0)(kill_stopped)
_KILL = ray.remote(num_cpus=0, max_retries=0)(kill)
_ACTOR = ray.remote(num_cpus=0, max_restarts=0, concurrency_groups={"mail": 1, "life": 1})(Replica)


@dataclass(frozen=True)
class Node:
    """A node of the cluster that is alive.

    Attributes
    ----------
    key, address : str
        Its name in Ray, and where it is.
    processors : float
        How many processors Ray may use there. A head often has none.
    """

    key: str
    address: str
    processors: float

    def only(self) -> NodeAffinitySchedulingStrategy:
        """Return what makes Ray run something here and nowhere else."""
        return NodeAffinitySchedulingStrategy(self.key, soft=False)

    def first(self) -> NodeAffinitySchedulingStrategy:
        """Return what makes Ray run something here, or elsewhere if the node is gone."""
        return NodeAffinitySchedulingStrategy(self.key, soft=True)


def alive() -> list[Node]:
    """Return the nodes that are alive, in the order of their addresses."""
    nodes = [
        Node(each["NodeID"], each["NodeManagerAddress"], each["Resources"].get("CPU", 0))
        for each in ray.nodes()
        if each["Alive"]
    ]
    return sorted(nodes, key=lambda node: (node.address, node.key))


@dataclass(frozen=True)
class _Seat:
    """A replica that has started."""

    actor: Any
    node: Node
    process: int


class _Lost(Exception):
    """Replicas were lost, on these nodes if that is known."""

    def __init__(self, text: str, nodes: Sequence[Node] = ()) -> None:
        super().__init__(text)
        self.nodes = nodes


class RayEngine:
    """The engine on the cluster of Ray that this process is connected to.

    Parameters
    ----------
    workers : int, optional
        How many replicas there are. By default one on each node with processors. The result does not depend on it.

    Attributes
    ----------
    workers : int
        How many replicas there are.
    losses : list of str
        Which replicas were lost, and which tasks were stopped. Each is in the log, too.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._asked = workers
        self.workers = workers or max(sum(node.processors >= 1 for node in alive()), 1)
        self.losses: list[str] = []

    def submit(self, task: Callable[..., Any], each: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Run a task with each of these arguments. A few tasks, which may be large, are dealt to all nodes."""
        name = f"fastpart-{secrets.token_hex(8)}"
        nodes = [node for node in alive() if node.processors >= 1]
        few = len(each) <= _FEW * len(nodes)  # Ray fills a node up first, and its memory with it
        at = [nodes[i % len(nodes)].first() if few else "DEFAULT" for i in range(len(each))]
        refs = [
            _TASK.options(name=name, scheduling_strategy=where).remote(task, *given)
            for where, given in zip(at, each, strict=True)
        ]
        waiting, watch = refs, _Watch(name)
        try:
            while waiting:
                done, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=_GLANCE)
                for ref in done:
                    _value(ray.get(ref))
                for loss in watch.look():
                    self.losses.append(loss)
                    log.warning("%s. Ray runs the task again", loss)
            return [_value(ray.get(ref)) for ref in refs]
        except ray.exceptions.RayError as error:
            raise _given_up(f"a task failed {RETRIES + 1} times", _death(error)) from None
        finally:
            for ref in [*waiting, *watch.visits]:
                ray.cancel(ref, force=True)

    def replicas(self, program: Program) -> Any:
        """Run a program in all replicas, again from the start if one is lost."""
        given = ray.put(program)
        avoided: list[Node] = []
        for _ in range(RETRIES + 1):
            try:
                with self._seats(avoided) as seats:
                    return _results(seats, given)[0]
            except _Lost as lost:
                avoided.extend(lost.nodes)
                self.losses.append(str(lost))
                log.warning("%s. The replicas begin again", lost)
        raise _given_up(f"replicas were lost {RETRIES + 1} times", self.losses[-1])

    @contextlib.contextmanager
    def _seats(self, avoided: Sequence[Node]) -> Iterator[list[_Seat]]:
        """Start replicas, and end them."""
        actors: list[Any] = []
        end = time.monotonic() + START
        try:
            while True:
                nodes = [node for node in alive() if node.processors >= 1 and node not in avoided]
                if not nodes:
                    raise _given_up(
                        "no node is left", self.losses[-1] if self.losses else "none has a processor"
                    )
                self.workers = self._asked or len(nodes)
                on = [nodes[i % len(nodes)] for i in range(self.workers)]
                actors = [_ACTOR.options(scheduling_strategy=node.only()).remote() for node in on]
                processes = _processes(actors, on, end)
                if processes:
                    break
                _end(actors)
                time.sleep(1)
            yield [_Seat(*each) for each in zip(actors, on, processes, strict=True)]
        finally:
            _end(actors)


class _Watch:
    """Kills tasks that are stopped, on all nodes, so that Ray runs them again.

    Parameters
    ----------
    name : str
        Name of the tasks. Ray shows it in the titles of their processes.

    Attributes
    ----------
    visits : dict
        The nodes that are visited now.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._next = time.monotonic() + PING
        self.visits: dict[Any, Node] = {}

    def look(self) -> list[str]:
        """Return what was killed since the last look, and begin to visit nodes if it is time to."""
        losses = []
        visits = list(self.visits)
        done, _ = ray.wait(visits, num_returns=len(visits), timeout=0) if visits else ([], [])
        for ref in done:
            node = self.visits.pop(ref)
            with contextlib.suppress(ray.exceptions.RayError):  # the node died, and Ray notices that
                losses += [
                    f"process {process} on {node.address}: a task, stopped for {SILENCE:.0f} s"
                    for process in ray.get(ref)
                ]
        if time.monotonic() > self._next:
            self._next = time.monotonic() + PING
            for node in set(alive()) - set(self.visits.values()):
                visit = _VISIT.options(scheduling_strategy=node.only())
                self.visits[visit.remote(self._name, SILENCE)] = node
        return losses


def _processes(actors: list[Any], on: list[Node], end: float) -> list[int]:
    """Return the processes of replicas that start. It is empty if a node died, which Ray learns only now."""
    pings = {actor.ping.remote(): node for actor, node in zip(actors, on, strict=True)}
    _, late = ray.wait(list(pings), num_returns=len(pings), timeout=max(end - time.monotonic(), 1))
    if late:
        where = ", ".join(sorted({pings[ref].address for ref in late}))
        raise _given_up(f"{where}: no replica started within {START:.0f} s", "Ray does not say why")
    try:
        return list(ray.get(list(pings)))
    except ray.exceptions.RayError as error:
        if time.monotonic() > end:
            raise _given_up("no replica could start", error) from None
        return []


def _results(seats: list[_Seat], program: Any) -> list[Any]:
    """Return the results of a program in all replicas. Raise the first error, or that a replica was lost."""
    actors = [seat.actor for seat in seats]
    runs = {actor.run.remote(program, number, actors): number for number, actor in enumerate(actors)}
    results: dict[int, Any] = {}
    while len(results) < len(seats):
        waiting = [ref for ref, number in runs.items() if number not in results]
        done, _ = ray.wait(waiting, timeout=PING)
        for ref in done:
            with _loss_of(seats[runs[ref]]):
                results[runs[ref]] = _value(ray.get(ref))
        if not done:
            _look(seats)
    return [results[number] for number in range(len(seats))]


def _look(seats: list[_Seat]) -> None:
    """Raise that a replica was lost, if one does not answer."""
    pings = {seat.actor.ping.remote(): seat for seat in seats}
    answered, silent = ray.wait(list(pings), num_returns=len(pings), timeout=SILENCE)
    for ref in answered:
        with _loss_of(pings[ref]):
            ray.get(ref)
    if silent:
        named = [f"process {pings[ref].process} on {pings[ref].node.address}" for ref in silent]
        text = (
            f"{', '.join(named)}: no answer for {SILENCE:.0f} s, as of a process or a machine that is stopped"
        )
        for ref in silent:  # Ray ends only what answers
            seat = pings[ref]
            _KILL.options(scheduling_strategy=seat.node.only()).remote([seat.process])
        raise _Lost(text, [pings[ref].node for ref in silent])


@contextlib.contextmanager
def _loss_of(seat: _Seat) -> Iterator[None]:
    """Say of which replica an error of Ray is."""
    try:
        yield
    except ray.exceptions.RayError as error:
        kind = type(_death(error)).__name__
        raise _Lost(f"process {seat.process} on {seat.node.address}: lost ({kind})") from None


def _death(error: Exception) -> Exception:
    """Return why a process died. Raise what is no death, as a module that is missing there."""
    cause = getattr(error, "cause", error)
    if isinstance(cause, ray.exceptions.RayError):
        return cause
    raise cause from None


def _value(answer: Outcome) -> Any:
    returned, value = answer
    if returned:
        return value
    raise value


def _end(actors: list[Any]) -> None:
    for actor in actors:
        with contextlib.suppress(ray.exceptions.RayError):
            ray.kill(actor)


def _given_up(what: str, why: object) -> ClusterError:
    return ClusterError(
        f"{what} ({one_line(why, 300)}). What is done lies in the shared folder. Mend the cluster and run the same "
        "command again"
    )
