"""Batches as a graph of small tasks, and the threads that launch and run them.

Operators make a batch, and some of them wait for others. There are two levels. Coarse: an idle thread launches the next
batch if its launch score says so (:class:`Launching`), or if no batch is under way. Fine: of the tasks that can run,
the tasks of the earliest batch come first, and among these the cheapest. Batches are functions of their step, and are
handed out in order. So the schedule does not change them.

Source: Zheng et al., "ByteGNN: Efficient Graph Neural Network Training at Large Scale", PVLDB 15(6), 2022, sections 4.1
and 4.2, and Algorithm 1.
"""

from __future__ import annotations

import heapq
import itertools
import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import Any

from .trace import Trace


@dataclass(frozen=True)
class BatchState:
    """A batch that is not complete yet.

    Attributes
    ----------
    step : int
        Its number in the epoch.
    results : dict
        The result of each operator.
    """

    step: int
    results: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, operator: str) -> Any:
        return self.results[operator]


Run = Callable[[BatchState], Any]
"""The work of an operator."""


@dataclass(frozen=True)
class Pieces:
    """Work of an operator that is left to do in any order, and its result after it."""

    calls: Sequence[Callable[[], object]]
    result: Any


@dataclass(frozen=True)
class Operator:
    """A step of making a batch.

    Attributes
    ----------
    name : str
        Its name in traces. ByteGNN has "seed", "positive", "negative", "neighbourhood" and "features".
    run : callable
        Returns the result for a :class:`BatchState`, or :class:`Pieces`. It must depend only on the number of the
        step and the results of the operators before it. Several threads call it.
    after : tuple of str
        Operators whose results it uses.
    """

    name: str
    run: Run
    after: tuple[str, ...] = ()


class Dag:
    """Operators without circles. The result of the last one is the batch.

    Attributes
    ----------
    operators : dict of str to Operator
        By name, each after those that it waits for.
    """

    def __init__(self, operators: Sequence[Operator]) -> None:
        known = {operator.name: operator for operator in operators}
        if len(known) < len(operators):
            raise ValueError("operators: a name occurs twice")
        waits = {operator.name: operator.after for operator in operators}
        if missing := {name for after in waits.values() for name in after} - known.keys():
            raise ValueError(f"operators: {', '.join(sorted(missing))} is waited for, but not there")
        try:
            order = list(TopologicalSorter(waits).static_order())
        except CycleError as error:
            raise ValueError(f"operators: they wait for each other: {error.args[1]}") from error
        self.operators = {name: known[name] for name in order}
        self.last = order[-1]

    def begin(self) -> list[Operator]:
        """Return the operators that wait for none."""
        return [operator for operator in self.operators.values() if not operator.after]

    def next(self, done: str, results: dict[str, Any]) -> list[Operator]:
        """Return the operators that can begin, now that one is done."""
        return [
            operator
            for operator in self.operators.values()
            if done in operator.after and all(name in results for name in operator.after)
        ]


def operators(seed: Run, neighbourhood: Run, features: Run, **before: Run) -> Dag:
    """Return the operators of a batch: seeds, their neighbourhood, and its features.

    Training on edges has two ``before`` the neighbourhood: "positive", what the seeds are joined to, and "negative".
    """
    return Dag(
        [
            Operator("seed", seed),
            *(Operator(name, run, ("seed",)) for name, run in before.items()),
            Operator("neighbourhood", neighbourhood, tuple(before) or ("seed",)),
            Operator("features", features, ("neighbourhood",)),
        ]
    )


SIGMA = 10.0
"""The launch score from which on a batch is launched.

A score is the product of the gap since the last launch, in steps of training, of 0 to 100 for the utilisation, and of
the balance. With processors half idle and a queue that lasts as long as a batch takes, a batch is launched every ninth
of a step. With two more in the queue, every third.
"""

_SCALE = 100 / math.log(101)
"""Makes the weight of the utilisation 100 at 0 % and 0 at 100 %."""


class Mean:
    """The mean of some numbers. None before the first."""

    def __init__(self) -> None:
        self._sum, self._count = 0.0, 0

    def add(self, value: float) -> None:
        """Count a number."""
        self._sum, self._count = self._sum + value, self._count + 1

    @property
    def value(self) -> float | None:
        """The mean so far."""
        return self._sum / self._count if self._count else None


class Launching:
    """The launch score, from what was measured so far.

    The paper takes the gap in seconds. Here it is in steps of training, so that one constant serves fast and slow
    steps.

    Parameters
    ----------
    processors : float
        Processors of this process.
    now, used : callable
        The time, and the processor time that this process has used, in seconds.

    Attributes
    ----------
    making, training : Mean
        Seconds that batches take to make and to train on.
    """

    def __init__(
        self,
        processors: float,
        now: Callable[[], float] = time.perf_counter,
        used: Callable[[], float] = time.process_time,
    ) -> None:
        self._processors, self._now, self._used = processors, now, used
        self.making, self.training = Mean(), Mean()
        self.launched()

    def launched(self) -> None:
        """Begin a new gap."""
        self._since, self._used_before = self._now(), self._used()

    @property
    def gap(self) -> float:
        """Seconds since the last launch."""
        return self._now() - self._since

    @property
    def utilisation(self) -> float:
        """Share of the processors that this process used since the last launch."""
        available = self.gap * self._processors
        return min(1.0, (self._used() - self._used_before) / available) if available > 0 else 1.0

    def score(self, queue: int) -> float:
        """Return the launch score. Infinite if batches are used as soon as they are there.

        Parameters
        ----------
        queue : int
            Batches that were made and not used yet. 0 counts as 1.
        """
        making, training = self.making.value, self.training.value
        if making is None or training is None:
            return 0.0
        if training <= 0:
            return math.inf
        balance = making / (training * max(queue, 1))
        weight = 101 - math.exp(100 * self.utilisation / _SCALE)
        return self.gap / training * weight * balance

    def is_due(self, queue: int) -> bool:
        """Return whether the score says to launch a batch."""
        return self.score(queue) >= SIGMA


_LOOK_SECONDS = 0.005
"""Time between two looks of an idle thread at the launch score."""


@dataclass(order=True)
class Task:
    """A task that can run. The least one is next."""

    step: int
    cost: float
    number: int
    operator: str = field(compare=False)
    work: Callable[[], Any] = field(compare=False)


class Scheduler:
    """Makes the batches of one epoch after the other.

    Parameters
    ----------
    threads : int
        Threads that make batches.
    launching : Launching
        When to launch the next one.
    free_bytes : int
        Bytes that batches may take before they are used. One is always made.
    size : callable
        Returns the bytes of a batch.
    trace : Trace, optional
        Gets all tasks, and what was waited for.

    Attributes
    ----------
    seconds : dict of str to float
        Seconds that all threads spent on each operator so far.
    """

    def __init__(
        self,
        threads: int,
        launching: Launching,
        free_bytes: int,
        size: Callable[[Any], int],
        trace: Trace | None = None,
    ) -> None:
        self.threads, self.launching, self.free_bytes, self.size, self.trace = (
            threads,
            launching,
            free_bytes,
            size,
            trace,
        )
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.costs: defaultdict[str, Mean] = defaultdict(Mean)
        self.sizes = Mean()
        self.epochs = itertools.count()

    def batches(self, dag: Dag, steps: int) -> Generator[Any]:
        """Yield the batches of the steps 0, 1, ... in order. An error is raised in the place of its batch."""
        epoch = _Epoch(self, dag, steps)
        try:
            for step in range(steps):
                yield epoch.take(step)
        finally:
            epoch.close()


class _Epoch:
    """The tasks of an epoch, and the threads that do them. What is shared is guarded by ``_changed``."""

    def __init__(self, scheduler: Scheduler, dag: Dag, steps: int) -> None:
        self._of, self._dag, self._steps = scheduler, dag, steps
        self._changed = threading.Condition()
        self._numbers = itertools.count()
        self._name = next(scheduler.epochs)
        self._tasks: list[Task] = []
        self._making: dict[int, BatchState] = {}
        self._left: dict[tuple[int, str], int] = {}
        self._spent: defaultdict[int, float] = defaultdict(float)
        self._made: dict[int, tuple[Any, BaseException | None]] = {}
        self._next = self._wanted = 0
        self._closed = False
        self._error: BaseException | None = None
        self._handed_out: int | None = None
        self._threads = [
            threading.Thread(target=self._work, name=f"fastpart-sample-{number}", daemon=True)
            for number in range(min(scheduler.threads, max(steps, 1)))
        ]
        for thread in self._threads:
            thread.start()

    def take(self, step: int) -> Any:
        """Return the batch of a step, as soon as it is made. Steps are taken in order."""
        of, start = self._of, Trace.now()
        with self._changed:
            if self._handed_out is not None:
                of.launching.training.add((start - self._handed_out) / 1e9)
            waits_for = None if step in self._made else self._missing(step)
            self._changed.notify_all()
            while step not in self._made and self._error is None:
                self._changed.wait()
            if step not in self._made and self._error is not None:
                raise self._error
            batch, error = self._made.pop(step)
            self._wanted = step + 1
            self._changed.notify_all()
        self._handed_out = Trace.now()
        if of.trace is not None:
            if waits_for is not None:
                of.trace.span("wait", start, step=step, waits_for=waits_for)
            of.trace.link("batch", f"{self._name}.{step}", self._handed_out, ends=True)
        if error is not None:
            raise error
        return batch

    def close(self) -> None:
        """End the threads. Each finishes its task."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _missing(self, step: int) -> list[str]:
        """Return the operators that a batch waits for."""
        making = self._making.get(step)
        return [name for name in self._dag.operators if making is None or name not in making.results]

    def _work(self) -> None:
        """Do tasks until the end. What ends a thread before is raised where a batch is asked for."""
        try:
            self._do_tasks()
        except BaseException as error:
            with self._changed:
                self._error = self._error or error
                self._changed.notify_all()

    def _do_tasks(self) -> None:
        while (task := self._take_task()) is not None:
            start, result, error = Trace.now(), None, None
            try:
                result = task.work()
            except BaseException as raised:  # it is raised where the batch is asked for
                error = raised
            end = Trace.now()
            if self._of.trace is not None:
                self._of.trace.span(task.operator, start, step=task.step)
            with self._changed:
                self._count(task, (end - start) / 1e9)
                if error is None:
                    self._done(task, result)
                else:
                    self._finish(task.step, None, error)
                if self._of.trace is not None and error is None and task.step in self._made:
                    self._of.trace.link("batch", f"{self._name}.{task.step}", end, ends=False)
                self._changed.notify_all()

    def _take_task(self) -> Task | None:
        """Return the next task, once there is one. None at the end."""
        with self._changed:
            while not self._closed and (self._next < self._steps or self._making):
                if self._next < self._steps and self._should_launch():
                    self._launch()
                while self._tasks:
                    task = heapq.heappop(self._tasks)
                    if task.step in self._making:  # not that of a batch that failed
                        return task
                waits = self._next < self._steps and bool(self._made or self._making)
                self._changed.wait(_LOOK_SECONDS if waits else None)
        return None

    def _should_launch(self) -> bool:
        """Return whether to launch a batch, now that a thread has nothing to do or takes the next task."""
        of, unused = self._of, self._next - self._wanted
        if unused == 0:
            return True  # otherwise the user would wait for a score that only grows with the gap
        size = of.sizes.value or 0.0
        if self._tasks or (unused + 1) * size > of.free_bytes:
            return False
        if of.launching.training.value is None:  # nothing is known yet
            return unused < of.threads
        return of.launching.is_due(len(self._made))

    def _launch(self) -> None:
        of, step = self._of, self._next
        if of.trace is not None:
            launching, queue = of.launching, len(self._made)
            of.trace.instant(
                "launch",
                step=step,
                score=min(launching.score(queue), 1e9),
                gap=launching.gap,
                utilisation=launching.utilisation,
                queue=queue,
            )
        of.launching.launched()
        self._making[step] = making = BatchState(step)
        self._next += 1
        for operator in self._dag.begin():
            self._push(making, operator)

    def _push(self, making: BatchState, operator: Operator) -> None:
        self._add(making.step, operator.name, partial(operator.run, making))

    def _add(self, step: int, operator: str, work: Callable[[], Any]) -> None:
        cost = self._of.costs[operator].value or 0.0
        heapq.heappush(self._tasks, Task(step, cost, next(self._numbers), operator, work))

    def _count(self, task: Task, seconds: float) -> None:
        self._of.seconds[task.operator] += seconds
        self._of.costs[task.operator].add(seconds)
        self._spent[task.step] += seconds

    def _done(self, task: Task, result: Any) -> None:
        making = self._making.get(task.step)
        if making is None:  # another task of the batch has failed
            return
        key = task.step, task.operator
        if key in self._left:  # a piece
            self._left[key] -= 1
            if self._left[key] > 0:
                return
            del self._left[key]
            result = making.results.pop(_result(task.operator))
        elif isinstance(result, Pieces):
            if result.calls:
                self._left[key] = len(result.calls)
                making.results[_result(task.operator)] = result.result
                for call in result.calls:
                    self._add(task.step, task.operator, call)
                return
            result = result.result
        making.results[task.operator] = result
        if task.operator == self._dag.last:
            self._finish(task.step, result, None)
            return
        for operator in self._dag.next(task.operator, making.results):
            self._push(making, operator)

    def _finish(self, step: int, batch: Any, error: BaseException | None) -> None:
        if self._making.pop(step, None) is None:
            return
        self._made[step] = batch, error
        seconds = self._spent.pop(step)
        if error is None:
            self._of.launching.making.add(seconds)
            self._of.sizes.add(self._of.size(batch))


def _result(operator: str) -> str:
    """Return the key of a result whose pieces are not done."""
    return f"{operator}: pieces"
