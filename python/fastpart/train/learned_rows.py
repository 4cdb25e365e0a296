"""Learned rows of the vertices of some types: of those without features, or of all in a graph without types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from ..loading.remote import exchange_of
from ..loading.rows.counts import Counts
from ..loading.rows.embeddings import Embeddings
from ..loading.rows.source import RowIds
from ..partitions.partition import VertexPartition
from ..partitions.seeds import owner_of
from ..partitions.types import of_type, range_of_type, type_names
from .embedding_table import EmbeddingTable, files_of
from .file_names import EMBEDDINGS
from .learning.validation import BROKEN, is_better
from .ranks import barrier, is_first, rank, world_size

Ids = npt.NDArray[np.int64]


class TypeVertices:
    """The vertices of one type, part after part.

    Attributes
    ----------
    starts : numpy.ndarray
        int64: first row of each part among those of the type, and their number.
    firsts : numpy.ndarray
        int64: row of the first vertex of the type in each part, among all rows of the topology.
    """

    def __init__(self, partition: VertexPartition, name: str) -> None:
        self._topology = partition._topology
        self.starts = np.asarray(partition._rows_by_type.starts[type_names(partition).index(name)], np.int64)
        inside = [part.first_inner for part in of_type(partition, name)]
        self.firsts = self._topology.starts[:-1] + np.array(inside, np.int64)

    def ids_of(self, rows: RowIds) -> Ids:
        """Return the id of the vertex of each row."""
        parts = owner_of(rows, self.starts)
        return self._topology.ids_of((rows - self.starts[parts] + self.firsts[parts]).astype(np.uint32))


class LearnedRows:
    """A learned row for each vertex of some types. Every process owns those of its parts, with their sparse Adam.

    In every step all processes call :meth:`inputs` and, after the gradients are there, :meth:`step`. The first rows
    depend on the seed and on the id of the vertex only.

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
    counts : dict of Counts
        By type: the bytes of rows and gradients between processes.
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
        self._partition, self._folder = partition, folder
        own = np.flatnonzero(owners == rank())
        self._own = range(own[0], own[-1] + 1) if len(own) else range(0)
        vertices = {name: TypeVertices(partition, name) for name in types}
        self.counts = {name: Counts() for name in types}
        self._tables = {
            name: EmbeddingTable(each, self._own, width, seed, lr, folder / _folder_of(name), dtype)
            for name, each in vertices.items()
        }
        self._exchanges = {
            name: exchange_of(each.starts, owners, world_size(), seconds) for name, each in vertices.items()
        }
        self._embeddings = {
            name: Embeddings(table, self._exchanges[name], self.counts[name])
            for name, table in self._tables.items()
        }
        self._leaves: dict[str, Tensor] = {}
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
        x = {}
        for name, embeddings in self._embeddings.items():
            ids, places = np.unique(rows[name], return_inverse=True)
            leaf = self._leaves[name] = torch.from_numpy(embeddings.rows(ids)).requires_grad_()
            x[name] = F.embedding(torch.from_numpy(places).to(device), leaf.to(device))
        return x

    def step(self) -> None:
        """Let the owners change the rows of the last :meth:`inputs` by their gradients."""
        for name, embeddings in self._embeddings.items():
            leaf = self._leaves.pop(name)
            embeddings.update((torch.zeros_like(leaf) if leaf.grad is None else leaf.grad).numpy())

    def of_part(self, name: str, part: int) -> npt.NDArray[Any]:
        """Return the rows of a type in a part of this process."""
        return self._tables[name].of_part(part)

    def follow(self, score: float) -> None:
        """Keep the rows of this epoch as the best ones, if its validation score is the best so far."""
        if is_better(score, self._best):  # as the history decides
            self._best = score
            for table in self._tables.values():
                table.keep_best()

    def save(self) -> None:
        """Save rows and optimizers before a checkpoint. All processes call it."""
        for table in self._tables.values():
            table.save()

    def state(self) -> dict[str, Any]:
        """Return what a resume needs beside the files."""
        return {"best": self._best, "types": {name: table.state for name, table in self._tables.items()}}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a :meth:`state` and the files that were saved before it."""
        self._best = state["best"]
        for name, table in self._tables.items():
            table.load(state["types"][name])

    def load_earlier(self, name: str, state: Mapping[str, Any], epoch: int) -> None:
        """Go on from what versions saved of a type that had a folder for each epoch."""
        self._best = state["best"]
        self._tables[name].load_earlier(state["embeddings"], epoch, state["best_epoch"])

    def put_best(self) -> None:
        """Set the rows of the best epoch."""
        for table in self._tables.values():
            table.put_best()

    def write(self) -> None:
        """Write the rows of each type by id, for :func:`written`. All processes call it."""
        for name, table in self._tables.items():
            parts, vertices = of_type(self._partition, name), range_of_type(self._partition, name)
            file = self._folder / _folder_of(name) / EMBEDDINGS
            new = file.with_name(f".{EMBEDDINGS}.new")
            if is_first():
                new.parent.mkdir(parents=True, exist_ok=True)
                shape = (len(vertices), *table.row_shape)
                new.unlink(missing_ok=True)  # of a kill, or a link
                np.lib.format.open_memmap(new, "w+", table.dtype, shape).flush()
            barrier()
            rows = np.lib.format.open_memmap(new, "r+")
            for part in self._own:
                rows[parts[part].inner - vertices.start] = table.of_part(part)
            rows.flush()
            barrier()
            if is_first():
                new.replace(file)
        barrier()

    def close(self) -> None:
        """End the connections to other processes."""
        for exchange in self._exchanges.values():
            exchange.close()


def written(folder: Path, types: Iterable[str]) -> dict[str, npt.NDArray[Any]]:
    """Map the rows that :meth:`LearnedRows.write` has written, by type. Row i is that of vertex i of the type."""
    return {name: np.load(folder / _folder_of(name) / EMBEDDINGS, mmap_mode="r") for name in types}


def learned_files(types: Iterable[str], parts: int) -> list[str]:
    """Return all files that :class:`LearnedRows` writes in the folder of a training."""
    return [
        f"{_folder_of(name)}/{file}"
        for name in types
        for file in (EMBEDDINGS, f".{EMBEDDINGS}.new", *files_of(parts))
    ]


def _folder_of(name: str) -> str:
    """Return the folder of the rows of a type. A graph without types has its rows where the training is."""
    return f"types/{name}" if name else ""
