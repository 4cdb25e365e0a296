"""The graph in the form that peers need, and their runs on it, each a command within limits that ends with the call."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .... import _core
from ....core.options import RunOptions
from ....core.parameters import Progress
from ....core.system import anonymous_bytes
from ....errors import FastpartError, MemoryBudgetError
from ....graphs.graph import Graph
from ....runtime.launch import NewProcess, send_signal
from .registry import Peer

POLL = 0.005
"""Seconds between two looks at the child."""

TAIL_BYTES = 1 << 14
"""Bytes of the end of stderr that are kept."""

_PACKAGES = str(Path(__file__).parents[4])


class PeerError(FastpartError):
    """A peer crashed, failed, or exceeded a limit. ``traceback`` is that of the child process, if there is one."""

    def __init__(self, text: str, traceback: str | None = None) -> None:
        super().__init__(text)
        self.traceback = traceback


def run_limited(name: str, command: Sequence[str], *, seconds: float, memory: int) -> None:
    """Run a command to its end.

    The command and its children are killed when they take more than ``seconds`` or ``memory`` (bytes of anonymous
    memory), and when this call ends in any other way, as by Ctrl-C.

    Raises
    ------
    PeerError
        With the signal it died of, the last line it wrote to stderr, or the limit.
    MemoryBudgetError
        It took too much memory.
    """
    paths = os.pathsep.join(filter(None, (_PACKAGES, os.environ.get("PYTHONPATH"))))
    with tempfile.TemporaryFile() as complaints:
        child = NewProcess(command, os.environ | {"PYTHONPATH": paths}, subprocess.DEVNULL, complaints)
        try:
            _wait(name, child, seconds, memory)
        finally:
            send_signal(child, signal.SIGKILL)
            code = child.reap()
        complaints.seek(max(complaints.seek(0, os.SEEK_END) - TAIL_BYTES, 0))
        text = complaints.read().decode(errors="replace").strip()
        trace, _, last = text.rpartition("\n")
    if code < 0:
        raise PeerError(f"{name} crashed: {signal.Signals(-code).name}")
    if code > 0:
        raise PeerError(
            f"{name} failed: {last or f'exit code {code}'}", trace if "Traceback" in trace else None
        )


def _wait(name: str, child: NewProcess, seconds: float, memory: int) -> None:
    deadline = time.monotonic() + seconds
    while child.status() is None:
        if time.monotonic() > deadline:
            raise PeerError(f"{name} took longer than {seconds:g} s. Raise time_limit")
        if _taken(child) > memory:
            raise MemoryBudgetError(
                f"{name} took more than {memory / 1e6:.1f} MB of memory. Raise memory_limit"
            )
        time.sleep(POLL)


def _taken(child: NewProcess) -> int:
    with suppress(OSError, ValueError):  # the process has ended
        return anonymous_bytes(child.pid)
    return 0


BLOCK = 1 << 16
"""Records per read."""


class Bench:
    """A temporary folder for the graph and the results of peers, which all run under one bound on the vertices."""

    def __init__(self, options: RunOptions, seconds: float, balance: float, seed: int = 0) -> None:
        self.options, self.seconds, self.balance, self.seed = options, seconds, balance, seed
        self._stack = ExitStack()
        self._graph: Path | FastpartError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._stack.close()

    def run(
        self, peer: Peer, label: str, graph: Graph, k: int, given: Mapping[str, Any]
    ) -> tuple[npt.NDArray[np.int64], float, int]:
        """Return the part of each vertex, the seconds, and the peak of memory in bytes.

        The graph is simple: parallel records are one edge whose weight is their number, or the sum of their weights.
        Loops are dropped. Seconds and memory begin when this graph is in files. They include loading it if the package
        has to.
        """
        if not peer.installed():
            raise PeerError(f"{peer.module} is not installed: pip install 'fastpart[peers]'")
        folder = self._graph_of(graph)
        threads = self.options.threads or _core.default_threads()
        task = {"task": peer.name, "module": peer.module, "k": k, "seed": self.seed, "threads": threads}
        task |= {"balance": self.balance, "given": {**peer.defaults, **given}}
        self._child(peer.command, label, task | {"folder": str(folder)})
        try:
            result = json.loads((folder / "result.json").read_text())
            return np.load(folder / "part.npy", allow_pickle=False), result["seconds"], result["memory"]
        except (OSError, ValueError, KeyError) as error:
            raise PeerError(f"{label} left no result ({error})") from None
        finally:
            for file in ("result.json", "part.npy"):
                (folder / file).unlink(missing_ok=True)

    def _child(self, command: tuple[str, ...], label: str, task: dict[str, Any]) -> None:
        memory = self.options.memory_limit or _core.memory_budget()
        run_limited(
            label, [*command, json.dumps(task | {"parent": os.getpid()})], seconds=self.seconds, memory=memory
        )

    def _graph_of(self, graph: Graph) -> Path:
        if self._graph is None:
            try:
                self._graph = self._write_graph(graph)
            except FastpartError as error:
                self._graph = error  # so that no other peer tries again
        if isinstance(self._graph, FastpartError):
            raise self._graph
        return self._graph

    def _write_graph(self, graph: Graph) -> Path:
        folder = Path(
            self._stack.enter_context(
                tempfile.TemporaryDirectory(prefix="fastpart-peers-", dir=self.options.tmp_dir)
            )
        )
        _write_records(graph, folder / "records.u32", self.options.progress)
        if graph.weights is not None:
            np.save(folder / "weights.npy", graph.weights)
        task = {"task": "graph", "n": graph.num_vertices, "folder": str(folder)}
        self._child(Peer("graph", "numpy").command, "the graph for peers", task)
        (folder / "records.u32").unlink()
        (folder / "weights.npy").unlink(missing_ok=True)
        return folder


def _write_records(graph: Graph, file: Path, progress: Progress | None) -> None:
    total = graph.num_edges
    with file.open("wb") as out:
        for start in range(0, total, BLOCK):
            out.write(graph._source.block(start, min(start + BLOCK, total)).tobytes())
            if progress is not None:
                progress("records", min(start + BLOCK, total), total)
    graph._check_unchanged()
