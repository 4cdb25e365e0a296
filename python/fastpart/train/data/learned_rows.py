"""Learned rows of the vertices of some types: of those without features, or of all in a graph without types."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..._core import sparse_adam
from ...core.pairs import hashed
from ...core.parameters import regular
from ...core.parsing import created, damaged
from ...errors import ParameterError, arg
from ...loading.remote import exchange_of
from ...loading.rows.owners import Embeddings
from ...loading.rows.sources import Array, Counts, RowIds
from ...partitions.partition import VertexPartition
from ...partitions.seeds import TypeVertices
from ...partitions.types import of_type, range_of_type
from ..learning.metrics import BROKEN, is_better
from ..ranks import barrier, is_first, rank, world_size
from .dataset import Dataset


class SparseAdam:
    """Adam that changes only the rows with a gradient, as ``torch.optim.SparseAdam`` does.

    Every operation is rounded as IEEE 754 says. A root of torch may differ in the last bit.

    Attributes
    ----------
    values : torch.Tensor
        The table.
    lr : float
        Learning rate.
    mean, square : torch.Tensor
        Running means of the gradients and of their squares.
    steps : int
        Number of steps so far.
    """

    def __init__(
        self, values: Tensor, lr: float, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
    ) -> None:
        self.values, self.lr, self._betas, self._eps = values, lr, betas, eps
        self.mean, self.square = torch.zeros_like(values), torch.zeros_like(values)
        self.steps = 0

    def step(self, rows: RowIds, bounds: npt.NDArray[np.int64], gradients: Array, first: int = 0) -> None:
        """Make a step.

        Parameters
        ----------
        rows : numpy.ndarray
            uint32: lists of rows, behind each other, each ascending.
        bounds : numpy.ndarray
            int64: where each list starts, and the end of the last one.
        gradients : numpy.ndarray
            The gradient of each of ``rows``. The gradients of a row in several lists are added up in their order.
        first : int
            Number of the row that is the first of the table.
        """
        self.steps += 1
        of_mean, of_square = self._betas
        size = self.lr * math.sqrt(1 - of_square**self.steps) / (1 - of_mean**self.steps)
        tables = self.values.numpy(), self.mean.numpy(), self.square.numpy()
        sparse_adam(tables, rows, bounds, gradients, first=first, size=size, betas=self._betas, eps=self._eps)


EMBEDDINGS = "embeddings.npy"
"""The learned rows of all vertices."""

HARD_NEGATIVES = "hard-negatives.npy"
"""Hard negatives, among the temporary files."""


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
        created(file, np.float32, shape)
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


class LearnedRows:
    """A learned row for each vertex of some types. Every process owns those of its parts, with their sparse Adam.

    In every step all processes call :meth:`inputs` and, after the gradients are there, :meth:`step`. The first rows
    depend on the seed and on the id of the vertex only. The rows of all types are one table, and travel in one message.

    Parameters
    ----------
    partition : VertexPartition
        A partition directory.
    types : sequence of str
        The types.
    owners : numpy.ndarray
        Rank of each part, ascending.
    width : int
        Numbers per vertex.
    seed : int
        Seed of the first rows.
    lr : float
        Learning rate.
    folder : pathlib.Path
        Where the rows are saved for a resume and in the end. All processes see it.
    seconds : float
        Longest time to wait for another process.
    dtype : numpy.dtype
        float32 or float64.

    Attributes
    ----------
    counts : Counts
        The bytes of rows and gradients between processes.
    """

    def __init__(
        self,
        partition: VertexPartition,
        types: Sequence[str],
        owners: Ids,
        width: int,
        seed: int,
        lr: float,
        folder: Path,
        seconds: float = 1800,
        dtype: npt.DTypeLike = np.float32,
    ) -> None:
        self._partition, self._folder, self._types = partition, folder, tuple(types)
        own = np.flatnonzero(owners == rank())
        self._own = range(own[0], own[-1] + 1) if len(own) else range(0)
        self._vertices = TypeVertices(partition, *types)
        self._table = EmbeddingTable(self._vertices, self._own, width, seed, lr, folder, dtype)
        self.counts = Counts()
        self._exchange = exchange_of(self._vertices.starts, owners, world_size(), seconds)
        self._embeddings = Embeddings(self._table, self._exchange, self.counts)
        self._leaf: Tensor
        self._best = BROKEN

    def inputs(self, rows: Mapping[str, RowIds], device: torch.device | None = None) -> dict[str, Tensor]:
        """Return the rows of the nodes of a batch by type, with their gradients for :meth:`step`.

        Parameters
        ----------
        rows : mapping of numpy.ndarray
            Row of each node among those of its type, as ``rows_dict`` of a batch. Other types may be there, too.
        device : torch.device, optional
            Where the result is. Default: the CPU.
        """
        every = np.concatenate([self._vertices.rows_of(name, rows[name]) for name in self._types])
        ids, places = np.unique(every, return_inverse=True)
        self._leaf = torch.from_numpy(self._embeddings.rows(ids)).requires_grad_()
        x = self._leaf.index_select(0, torch.from_numpy(places)).to(device)
        # Models may change the rows of a type in place, which views of the same tensor would refuse.
        of_type = torch.unsafe_split_with_sizes(x, [len(rows[name]) for name in self._types])
        return dict(zip(self._types, of_type, strict=True))

    def step(self) -> None:
        """Let the owners change the rows of the last :meth:`inputs` by their gradients."""
        leaf = self._leaf
        del self._leaf
        self._embeddings.update((torch.zeros_like(leaf) if leaf.grad is None else leaf.grad).numpy())

    def of_part(self, name: str, part: int) -> npt.NDArray[Any]:
        """Return the rows of a type in a part of this process."""
        return self._table.of_part(part)[self._vertices.within(name, part)]

    def follow(self, score: float) -> None:
        """Keep the rows of this epoch as the best ones, if its validation score is the best so far."""
        if is_better(score, self._best):  # as the history decides
            self._best = score
            self._table.keep_best()

    def save(self) -> None:
        """Save rows and optimizers before a checkpoint. All processes call it."""
        self._table.save()

    def state(self) -> dict[str, Any]:
        """Return what a resume needs beside the files."""
        return {"best": self._best, "table": self._table.state}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a :meth:`state` and the files that were saved before it."""
        if "table" not in state:
            raise ParameterError(
                "resume: the learned rows were saved by an earlier version, in files of each type. Train again with "
                f"{arg('overwrite', True)}"
            )
        self._best = state["best"]
        self._table.load(state["table"])

    def load_earlier(self, state: Mapping[str, Any], epoch: int) -> None:
        """Go on from what versions saved that had a folder for each epoch."""
        self._best = state["best"]
        self._table.load_earlier(state["embeddings"], epoch, state["best_epoch"])

    def put_best(self) -> None:
        """Set the rows of the best epoch."""
        self._table.put_best()

    def write(self) -> None:
        """Write the rows of each type by id, for :func:`written`. All processes call it."""
        for name in self._types:
            parts, vertices = of_type(self._partition, name), range_of_type(self._partition, name)
            file = self._folder / _folder_of(name) / EMBEDDINGS
            new = file.with_name(NEW_EMBEDDINGS)
            if is_first():
                new.parent.mkdir(parents=True, exist_ok=True)
                shape = (len(vertices), *self._table.row_shape)
                new.unlink(missing_ok=True)  # of a kill, or a link
                created(new, self._table.dtype, shape)
            barrier()
            rows = np.lib.format.open_memmap(new, "r+")
            for part in self._own:
                rows[parts[part].inner - vertices.start] = self.of_part(name, part)
            rows.flush()
            barrier()
            if is_first():
                new.replace(file)
        barrier()

    def close(self) -> None:
        """End the connections to other processes."""
        self._exchange.close()


def written(folder: Path, types: Iterable[str]) -> dict[str, npt.NDArray[Any]]:
    """Map the rows that :meth:`LearnedRows.write` has written, by type. Row i is that of vertex i of the type."""
    return {name: np.load(folder / _folder_of(name) / EMBEDDINGS, mmap_mode="r") for name in types}


def learned_files(types: Iterable[str], parts: int) -> list[str]:
    """Return all files that :class:`LearnedRows` writes in the folder of a training."""
    by_type = [f"{_folder_of(name)}/{file}" for name in types for file in (EMBEDDINGS, NEW_EMBEDDINGS)]
    return [*by_type, *files_of(parts)] if by_type else []


def _folder_of(name: str) -> str:
    """Return the folder of the rows of a type. A graph without types has its rows where the training is."""
    return f"types/{name}" if name else ""
