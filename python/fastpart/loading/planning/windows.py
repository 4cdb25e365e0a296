"""The packed rows of a worker, epoch by epoch. Epochs beyond those of the plan are packed in windows of as many."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from ... import _core
from ...core.options import RunOptions
from ...core.parameters import StrPath
from ...errors import ParameterError
from ...graphs.sidecars import beside
from ...measures.accesses import SampledEpochs, accesses_of
from ...partitions.loader_options import EpochOptions, Fanouts
from ...partitions.partition import VertexPartition
from ...partitions.plan import Plan
from .building import key_of
from .packing import (
    CACHED,
    PlannedType,
    WorkerPack,
    epoch_files,
    folder_of,
    read_cached_checksum,
    read_cached_ids,
    read_steps,
    without,
    write,
)

PACKING_BYTES = 1 << 27
"""Memory for packing the next window, beside its lists."""

_THREADS = 1
"""Threads that pack the next window. The others train."""


class _Left(Exception):
    """Nobody is going to use the window that is packed."""


class Window:
    """Packed epochs in a temporary folder beside the plan, removed by :meth:`close`.

    All windows of a plan have one name, so any of them removes those that killed processes have left.
    """

    def __init__(self, plan: Plan, epochs: range) -> None:
        self.epochs = epochs
        self._directory = _core.AtomicDir(beside(Path(plan), "window"))
        self.folder = Path(self._directory.path)

    def close(self) -> None:
        """Remove the files."""
        self._directory.discard()


class PlannedRows:
    """The packed rows of a worker.

    The next window is packed while the epochs of this one are used, if it is known to be needed, and otherwise when its
    first epoch begins.

    Parameters
    ----------
    plan : Plan
        The plan, which is for these epochs.
    sampled : SampledEpochs
        What decides the batches.
    worker : int
        Which worker.
    types : sequence of PlannedType
        The types whose features are planned. Windows are packed from them.

    Attributes
    ----------
    end : int
        Epochs that are going to be used. What comes after is not packed ahead.
    """

    def __init__(self, plan: Plan, sampled: SampledEpochs, worker: int, types: Sequence[PlannedType]) -> None:
        self._left = False
        self._plan, self._sampled, self._worker = plan, sampled, worker
        self._types = {of.name: of for of in types}
        self._cached = {of.name: read_cached_ids(self._own(Path(plan), of.name), of.n) for of in types}
        self.end = plan.epochs
        with suppress(
            OSError, ParameterError
        ):  # what killed processes left, also if no window is going to be needed
            Window(plan, range(0)).close()
        self._window: Window | None = None
        self._next: tuple[int, Future[Window]] | None = None
        self._pool = ThreadPoolExecutor(1, "fastpart-pack")
        self._lock = threading.Lock()

    @property
    def types(self) -> list[str]:
        """The types whose features are planned."""
        return list(self._types)

    def _own(self, folder: Path, type: str) -> Path:
        """Return where the rows of a type lie in the folder of the plan or of a window."""
        return folder / folder_of(self._worker, type)

    def with_cache(self, type: str, features: _core.Features) -> _core.Features:
        """Return the features of a type, of which the rows that the plan caches stay in memory."""
        cached, folder = self._cached[type], self._own(Path(self._plan), type)
        if not len(cached):
            return features
        return features.with_cache(cached, folder / CACHED, read_cached_checksum(folder))

    def packs_of(self, epoch: int, features: Mapping[str, _core.Features]) -> dict[str, _core.Pack]:
        """Return the rows of each type in an epoch."""
        with self._lock:
            folder = Path(self._plan) if epoch < self._plan.epochs else self._window_of(epoch).folder
            following = (epoch // self._plan.epochs + 1) * self._plan.epochs
            if following < self.end and self._next is None:
                self._next = following, self._pool.submit(self._pack, following)
        packs = {}
        for type, of_type in features.items():
            rows, offsets, checksums = (self._own(folder, type) / name for name in epoch_files(epoch))
            packs[type] = of_type.open_pack(rows, *read_steps(offsets, checksums))
        return packs

    def _window_of(self, epoch: int) -> Window:
        """Return the window of an epoch beyond the plan."""
        if self._window is None or epoch not in self._window.epochs:
            first = epoch // self._plan.epochs * self._plan.epochs
            if self._window is not None:
                self._window.close()
                self._window = None
            begun, self._next = self._next, None
            if begun is not None and begun[0] == first:
                self._window = begun[1].result()
            else:
                _drop(begun)
                self._window = self._pack(first)
        return self._window

    def _pack(self, first: int) -> Window:
        last = first + self._plan.epochs
        epochs = range(first, min(last, self.end) if first < self.end else last)
        window = Window(self._plan, epochs)
        try:
            types = list(self._types.values())
            lists = accesses_of(self._sampled, window.epochs, self._worker, [of.number for of in types])
            run = RunOptions(threads=_THREADS, memory_limit=PACKING_BYTES, progress=self._continue)
            for of, accesses in zip(types, lists, strict=True):
                cached = self._cached[of.name]
                left = without(accesses, cached, of.n)
                pack = WorkerPack(
                    folder_of(self._worker, of.name), cached[:0], left
                )  # the cached rows are there
                write(window.folder, [pack], of.features, run)
        except BaseException:
            window.close()
            raise
        return window

    def _continue(self, phase: str, done: int, total: int) -> None:
        if self._left:
            raise _Left

    def close(self) -> None:
        """Remove the windows."""
        self._left = True
        with self._lock:
            begun, self._next = self._next, None
            _drop(begun)
            self._pool.shutdown()
            if self._window is not None:
                self._window.close()
                self._window = None


def planned_for(
    plan: StrPath,
    partition: VertexPartition,
    vertices: Any,
    fanouts: Fanouts,
    workers: int,
    options: EpochOptions,
    threads: int = 1,
    input: str | None = None,
) -> tuple[Plan, SampledEpochs]:
    """Return a plan, and what decides its batches. Refuse it unless they are those of the other parameters.

    ``threads`` sample what is packed later.
    """
    found = plan if isinstance(plan, Plan) else Plan.read(plan)
    sampled = SampledEpochs.of(partition, vertices, fanouts, workers, options, threads, input)
    found.refuse_other(key_of(partition, sampled.deal, fanouts, workers, options))
    return found, sampled


def _drop(begun: tuple[int, Future[Window]] | None) -> None:
    """Remove a window that nobody is going to use."""
    if begun is not None and not begun[1].cancel():
        with suppress(Exception):
            begun[1].result().close()
