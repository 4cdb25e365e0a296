"""The learned rows of the parts of a worker, saved for a resume."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..core.pairs import hashed
from ..core.parameters import regular
from ..core.parsing import damaged
from ..loading.rows.source import Array, RowIds
from .data import Dataset
from .file_names import EMBEDDINGS
from .ranks import barrier, is_first
from .sparse_adam import SparseAdam

Ids = npt.NDArray[np.int64]


def initial(ids: Ids, width: int, seed: int) -> npt.NDArray[np.float32]:
    """Return the first rows of vertices: uniform, with a mean square length of 1. They depend on id and seed only."""
    bound = (3 / width) ** 0.5
    random = hashed(ids.astype(np.uint64), width, seed) >> np.uint64(40)  # float32 holds 24 bits
    return ((random.astype(np.float32) * 2.0**-23 - 1) * bound).astype(np.float32)


def numbers_of_rows(dtype: torch.dtype) -> npt.DTypeLike:
    """Return the type of numbers of learned rows under weights of another type."""
    return np.float64 if dtype == torch.float64 else np.float32


class Vertices(Protocol):
    """All vertices, or those of one type, as the topology of a partition numbers them: part after part."""

    @property
    def starts(self) -> Ids:
        """int64: first row of each part, and the number of rows."""

    def ids_of(self, rows: RowIds) -> Ids:
        """Return the id of the vertex of each row."""


class EmbeddingTable:
    """The learned rows of the parts of this worker, their optimizer, and those of the best epoch.

    Parameters
    ----------
    vertices : Vertices
        Where the rows of each part are, and the id of each vertex.
    own : range
        The parts of this worker.
    width : int
        Numbers per vertex.
    seed : int
        Seed of the first values.
    lr : float
        Learning rate.
    folder : pathlib.Path
        Where the rows are saved for a resume. All workers see it.
    dtype : numpy.dtype
        float32 or float64.
    """

    def __init__(
        self,
        vertices: Vertices,
        own: range,
        width: int,
        seed: int,
        lr: float,
        folder: Path,
        dtype: npt.DTypeLike = np.float32,
    ) -> None:
        self._folder, self.own, self.row_shape = folder, own, (width,)
        self.dtype = np.dtype(dtype)
        self._starts = vertices.starts[own.start : own.stop + 1]
        rows = np.arange(self._starts[0], self._starts[-1], dtype=np.uint32)
        values = initial(vertices.ids_of(rows), width, seed).astype(self.dtype)
        self._adam = SparseAdam(torch.from_numpy(values), lr)
        self._best = self._adam.values.clone()
        self._slot = -1

    def rows(self, ids: RowIds) -> npt.NDArray[Any]:
        """Return rows of this worker."""
        rows: npt.NDArray[Any] = self._adam.values.numpy()[ids - self._starts[0]]
        return rows

    def step(self, ids: RowIds, bounds: Ids, gradients: Array) -> None:
        """Make a step of the optimizer with the gradients of lists of rows of this worker."""
        self._adam.step(ids, bounds, gradients, int(self._starts[0]))

    def of_part(self, part: int) -> npt.NDArray[Any]:
        """Return the rows of a part of this worker."""
        rows: npt.NDArray[Any] = self._adam.values[self._within(part)].numpy()
        return rows

    def _within(self, part: int) -> slice:
        start, stop = self._starts[part - self.own.start : part - self.own.start + 2] - self._starts[0]
        return slice(int(start), int(stop))

    def at_rate(self, lr: float) -> None:
        """Make the next steps at another learning rate."""
        self._adam.lr = lr

    def keep_best(self) -> None:
        """Keep the rows as those of the best epoch."""
        self._best.copy_(self._adam.values)

    def put_best(self) -> None:
        """Set the rows of the best epoch."""
        self._adam.values = self._best

    def save(self) -> None:
        """Save rows and optimizer beside those of the last checkpoint, which stay until the next one is whole."""
        self._slot = (self._slot + 1) % len(SLOTS)
        for part in self.own:
            tables = (self._adam.values, self._adam.mean, self._adam.square, self._best)
            file = self._folder / file_of(self._slot, part)
            file.parent.mkdir(parents=True, exist_ok=True)
            with open(file, "wb") as stream:
                np.save(stream, torch.stack([table[self._within(part)] for table in tables]))
                stream.flush()
                os.fsync(stream.fileno())
        barrier()

    def load(self, state: dict[str, Any]) -> None:
        """Read what :meth:`save` wrote before a checkpoint with this :attr:`state`."""
        self._adam.steps, self._slot = state["steps"], state["slot"]
        for part in self.own:
            self._put(part, self._read(self._folder / file_of(self._slot, part), part, 4))

    def load_earlier(self, state: dict[str, Any], epoch: int, best: int) -> None:
        """Read what versions saved that had a folder for each epoch: those of the checkpoint and of the best one."""
        self._adam.steps = state["steps"]
        for part in self.own:
            last, of_best = (
                self._read(
                    self._folder / "embeddings" / f"epoch-{each:05d}" / f"part-{part:05d}.npy", part, 3
                )
                for each in (epoch, best)
            )
            self._put(part, torch.cat([last, of_best[:1]]))

    def _put(self, part: int, tables: Tensor) -> None:
        within = self._within(part)
        mine = (self._adam.values, self._adam.mean, self._adam.square, self._best)
        for table, saved in zip(mine, tables, strict=True):
            table[within] = saved

    def _read(self, file: Path, part: int, tables: int) -> Tensor:
        within = self._within(part)
        shape = (tables, within.stop - within.start, *self.row_shape)
        with damaged(file, "not the rows of a part"):
            saved = np.load(regular(file), allow_pickle=False)
            if saved.shape != shape or saved.dtype != self.dtype:
                raise ValueError(
                    f"expected {self.dtype} of shape {shape}, got {saved.dtype} of {saved.shape}"
                )
        return torch.from_numpy(saved)

    @property
    def state(self) -> dict[str, Any]:
        """Return the state that a resume needs beside the files."""
        return {"steps": self._adam.steps, "slot": self._slot}


def write_embeddings(
    dataset: Dataset, out: Path, own: Iterable[int], width: int, of_part: Callable[[int], Any]
) -> None:
    """Write the rows of all vertices by id, float32. Every worker writes those of its own parts."""
    shape = len(dataset.partition), width
    file = out / NEW_EMBEDDINGS
    if is_first():
        np.lib.format.open_memmap(file, "w+", np.dtype(np.float32), shape).flush()
    barrier()
    rows = np.lib.format.open_memmap(file, "r+")
    for part in own:
        rows[dataset.partition.parts[part].inner] = of_part(part)
    rows.flush()
    barrier()
    if is_first():
        file.replace(out / EMBEDDINGS)
    barrier()


NEW_EMBEDDINGS = f".{EMBEDDINGS}.new"
"""The learned rows of all vertices while they are written."""

SLOTS = ("first", "second")
"""Folders that the rows are saved to alternately."""


def file_of(slot: int, part: int) -> str:
    """Return the file of a part in the folder of the training."""
    return f"embeddings/{SLOTS[slot]}/part-{part:05d}.npy"


def files_of(parts: int) -> list[str]:
    """Return all files that :meth:`EmbeddingTable.save` writes."""
    return [file_of(slot, part) for slot in range(len(SLOTS)) for part in range(parts)]
