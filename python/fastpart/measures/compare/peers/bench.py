"""The graph in the form that peers need, and their runs on it."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .... import _core
from ....core.options import RunOptions
from ....core.parameters import Progress
from ....errors import FastpartError
from ....graphs.graph import Graph
from .limited import PeerError, run_limited
from .registry import Peer

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
