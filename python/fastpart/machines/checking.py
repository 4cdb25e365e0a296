"""Whether a cluster of Ray is fit for a job: it is found out before the job, and said with the node that is not."""

from __future__ import annotations

import os
import platform
import secrets
import socket
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray._private.utils import read_ray_address

from .. import _core
from ..core.parameters import one_line, shown
from ..errors import ParameterError
from .on_ray import Node, alive

FREE = 60.0
"""Seconds in which a processor must be free."""
_ANSWER = 60.0
"""Seconds in which each node must answer."""
_LAG = 10.0
"""Seconds after which a file that one machine wrote must be seen by the others."""
_CONNECT = 5.0
_LOOPBACK = ("127.0.0.1", "::1")
"""The addresses for which Ray listens there only. For all others, 127.0.0.2 too, it listens on every address."""


def connect(address: str) -> None:
    """Connect this process to a cluster that runs. "auto" is RAY_ADDRESS, or the cluster of this machine."""
    if ray.is_initialized():
        known = ray.get_runtime_context().gcs_address
        if address not in ("auto", known):
            raise ParameterError(
                f'cluster: this process is connected to {known}. Say "auto", or call ray.shutdown()'
            )
        return
    named = _resolved(address)
    _reach(named)
    try:
        ray.init(address=named, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise ParameterError(
            f"cluster: Ray does not connect to {named} ({one_line(error, 300)}). Give this process the token of the "
            "cluster (RAY_AUTH_MODE=token), and install the same Ray and Python on all machines"
        ) from None


def _resolved(address: str) -> str:
    """Return HOST:PORT. What Ray takes for "auto" may be a cluster of somebody else, whose processes it finds here."""
    named = address
    if address == "auto":
        named = os.environ.get("RAY_ADDRESS", "") or read_ray_address() or ""
    if not named:
        raise ParameterError(
            "cluster: no cluster of Ray was started on this machine. Start one by ray start --head, or give HOST:PORT "
            "of its head"
        )
    host, _, port = named.rpartition(":")
    if "://" in named or not host or not port.isdecimal():
        raise ParameterError(
            f'cluster: {named!r} is neither "auto" nor HOST:PORT of a head, as in 10.0.0.1:6379'
        )
    return named


def _reach(named: str) -> None:
    """Refuse an address where nobody listens. Ray would try it for minutes."""
    host, _, port = named.rpartition(":")
    if host in (
        *_LOOPBACK,
        "[::1]",
        "localhost",
    ):  # Ray takes it for the address of this machine in its network
        host = ray.util.get_node_ip_address()
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT).close()
    except (OSError, OverflowError) as error:
        raise ParameterError(
            f"cluster: nobody answers at {host}:{port} ({one_line(error)}). Is the head started with this address, and "
            "its port open to this machine?"
        ) from None


def check(shared: Path) -> None:
    """Refuse a cluster on which a job would fail, hang, or be open to strangers."""
    nodes = [node for node in alive() if node.processors >= 1]
    if not nodes:
        raise ParameterError(
            "cluster: none of its nodes lets Ray use a processor. Start them with --num-cpus of at least 1"
        )
    with tempfile.TemporaryDirectory(prefix=".fastpart-check-", dir=shared) as made:
        folder, word = Path(made), secrets.token_hex(16)
        (folder / "here").write_text(word)
        answers = _ask(nodes, visit, folder, word)
        for node, answer in zip(nodes, answers, strict=True):
            refuse(node, answer, shared)
            if not _seen(folder / node.key, word):
                raise ParameterError(_not_shared(shared, node, "this machine does not see what it writes"))
    _wait_for_processor(nodes)


@dataclass(frozen=True)
class Answer:
    """What a node says of itself.

    Attributes
    ----------
    fastpart, python : str
        Versions.
    token : bool
        Whether Ray lets only those in who have a token.
    trouble : str
        Why it does not see the shared folder. Empty if it does.
    """

    fastpart: str
    python: str
    token: bool
    trouble: str


def visit(folder: Path, name: str, word: str) -> Answer:
    """Return what a node says of itself, and leave a file in the shared folder."""
    trouble = "" if _seen(folder / "here", word) else "it does not see what this machine writes"
    if not trouble:
        try:
            (folder / name).write_text(word)
        except OSError as error:
            trouble = f"it cannot write there: {one_line(error)}"
    return Answer(*_versions(), os.environ.get("RAY_AUTH_MODE", "").lower() == "token", trouble)


def refuse(node: Node, answer: Answer, shared: Path) -> None:
    """Raise what makes a node unfit."""
    if answer.trouble:
        raise ParameterError(_not_shared(shared, node, answer.trouble))
    here, there = _versions(), (answer.fastpart, answer.python)
    if here != there:
        raise ParameterError(
            f"cluster: {node.address} has fastpart {there[0]} on Python {there[1]}, this machine {here[0]} on {here[1]}"
            ". Install the same on all machines"
        )
    if not answer.token and node.address not in _LOOPBACK:
        raise ParameterError(
            f"cluster: whoever reaches {node.address} can run programs there, since Ray asks for no token. Make one by "
            "ray get-auth-token --generate, give the file to all machines, and start Ray with RAY_AUTH_MODE=token"
        )


def _not_shared(shared: Path, node: Node, why: str) -> str:
    return f"shared: {shown(shared)} is not shared with {node.address} ({why}). Name a folder that all machines see"


def _versions() -> tuple[str, str]:
    return _core.__version__, ".".join(platform.python_version_tuple()[:2])


def _seen(file: Path, word: str) -> bool:
    """Return whether a file is there, at last. A network file system may show it late."""
    end = time.monotonic() + _LAG
    while True:
        try:
            if file.read_text() == word:
                return True
        except OSError:
            pass
        if time.monotonic() > end:
            return False
        time.sleep(0.1)


def _ask(nodes: list[Node], question: Callable[..., Any], folder: Path, word: str) -> list[Any]:
    """Return the answers of all nodes."""
    asked = ray.remote(num_cpus=0, max_retries=0)(question)
    refs = [asked.options(scheduling_strategy=node.only()).remote(folder, node.key, word) for node in nodes]
    ray.wait(refs, num_returns=len(refs), timeout=_ANSWER)
    answers = []
    for node, ref in zip(nodes, refs, strict=True):
        try:
            answers.append(ray.get(ref, timeout=0))
        except ray.exceptions.GetTimeoutError:
            raise ParameterError(f"cluster: {node.address} does not answer within {_ANSWER:.0f} s") from None
        except ray.exceptions.RayError as error:
            why = one_line(getattr(error, "cause", error), 300)
            raise ParameterError(
                f"cluster: {node.address} cannot run fastpart ({why}). Install fastpart {_core.__version__} there"
            ) from None
    return answers


def _wait_for_processor(nodes: list[Node]) -> None:
    """Refuse a cluster where no processor is free. Ray would wait for one for ever, and say nothing."""
    ref = ray.remote(num_cpus=1, max_retries=3)(_versions).remote()
    done, _ = ray.wait([ref], timeout=FREE)
    if not done:
        ray.cancel(ref)
        count = sum(node.processors for node in nodes)
        raise ParameterError(
            f"cluster: none of its {count:.0f} processors was free for {FREE:.0f} s. Wait for its other jobs, or add "
            "nodes"
        )
    ray.get(ref)
