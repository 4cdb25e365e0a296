"""Learned rows of the vertices of some types: of those without features, or of all in a graph without types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..errors import ParameterError, arg
from ..loading.remote import exchange_of
from ..loading.rows.counts import Counts
from ..loading.rows.embeddings import Embeddings
from ..loading.rows.source import RowIds
from ..partitions.partition import VertexPartition
from ..partitions.seeds import TypeVertices
from ..partitions.types import of_type, range_of_type
from .embedding_table import NEW_EMBEDDINGS, EmbeddingTable, files_of
from .file_names import EMBEDDINGS
from .learning.validation import BROKEN, is_better
from .ranks import barrier, is_first, rank, world_size

Ids = npt.NDArray[np.int64]


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
                np.lib.format.open_memmap(new, "w+", self._table.dtype, shape).flush()
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
