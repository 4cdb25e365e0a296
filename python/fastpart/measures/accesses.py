"""The rows of features that batches need, before anybody trains.

Samples are functions, so the rows of each batch of an epoch are known. Rows that batches often need are expected ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core.cache_size import CacheSize
from ..core.options import RunOptions
from ..core.pairs import distinct
from ..partitions.loader_options import EpochOptions, Fanouts, LoaderOptions
from ..partitions.partition import VertexPartition
from ..partitions.seeds import Deal, Seeds, given_rank, loaded_seeds, owner_of, rank_of_part, sampling_of
from ..partitions.types import fanouts_of

RowIds = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Epoch:
    """The seeds and the sampling of an epoch.

    Attributes
    ----------
    seeds : numpy.ndarray
        uint32: rows of all seeds.
    fanouts : sequence of int, or of sequences of int
        In-edges per vertex in each hop. Of a typed graph so many of each relation, hop by hop.
    batch_size : int
        Seeds of a step.
    types : _core.Types or None
        The types of the rows. None: the graph has none.
    """

    seeds: RowIds
    fanouts: Sequence[int] | Sequence[Sequence[int]]
    batch_size: int
    types: _core.Types | None = None

    def expected_steps(
        self, topology: _core.Topology, own: npt.NDArray[np.bool_], options: RunOptions | None = None
    ) -> npt.NDArray[np.float32]:
        """Return for each row the expected number of steps whose batch has it, if a rank has some of the parts."""
        mine = self.seeds[own[owner_of(self.seeds, topology.starts)]]
        sizes: dict[str, Any] = {"num_seeds": len(self.seeds), "batch_size": self.batch_size}
        return topology.accesses(mine, self.fanouts, **sizes, types=self.types, options=options)


def most_needed_of_others(
    topology: _core.Topology,
    part: int,
    cache: CacheSize | None,
    scores: npt.NDArray[np.float32],
    row_bytes: npt.NDArray[np.float32] | float,
) -> RowIds:
    """Return the rows of other parts with the highest scores above 0 that a cache holds. None: all.

    ``row_bytes`` are the bytes of all rows, or of each. Then they are those of the highest scores times bytes. Rows of
    no bytes are left out, and do not count for a share.
    """
    first, end = topology.starts[part : part + 2].tolist()
    own = end - first
    if isinstance(row_bytes, np.ndarray):
        scores, own = scores * row_bytes, np.count_nonzero(row_bytes[first:end])
    found = np.flatnonzero(scores > 0)
    found = found[(found < first) | (found >= end)]
    ranked = by_score(found, scores)
    if cache is not None:
        bytes_of = row_bytes[ranked] if isinstance(row_bytes, np.ndarray) else row_bytes
        ranked = ranked[: cache.held(int(own), bytes_of)]
    return np.sort(ranked).astype(np.uint32)


def rows_by_type(types: _core.Types | None, rows: RowIds) -> list[RowIds]:
    """Return rows of the topology as rows of each type. Those that ascend do so in each type."""
    if types is None:
        return [rows]
    numbers, of_type = types.locate(rows)
    return [of_type[numbers == number] for number in range(len(types.starts))]


def largest(rows: npt.NDArray[Any], score: npt.NDArray[np.float32], count: int) -> RowIds:
    """Return so many of the rows with the highest scores. They ascend."""
    return np.sort(by_score(rows, score)[:count]).astype(np.uint32)


def by_score(rows: npt.NDArray[Any], score: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
    """Return rows by their scores, the highest first. Equal ones follow each other by number, the same everywhere."""
    return rows[np.lexsort((rows, -score[rows]))]


Rows = npt.NDArray[np.uint32]

FILE = "accesses.bin"
"""The rows of all batches, in the folder of access lists: uint32, one batch after the other."""


@dataclass(frozen=True, eq=False)
class Accesses:
    """The distinct rows of a type in each batch of a rank, in some epochs.

    Attributes
    ----------
    epochs : range
        Which epochs.
    steps : int
        Steps of each of them.
    indptr : numpy.ndarray
        int64, of shape (batches + 1,): where the rows of each batch begin. Batch ``epoch * steps + step``, counted
        from the first epoch on, is the one of a step.
    rows : numpy.ndarray
        uint32: rows of the type, which are those of the topology in a plain graph. Those of a batch ascend.
    """

    epochs: range
    steps: int
    indptr: npt.NDArray[np.int64]
    rows: Rows

    def of(self, batch: int) -> Rows:
        """Return the rows of a batch."""
        return self.rows[self.indptr[batch] : self.indptr[batch + 1]]

    def __len__(self) -> int:
        return len(self.indptr) - 1


@dataclass(frozen=True, eq=False)
class SampledEpochs:
    """What decides the batches of all ranks.

    Attributes
    ----------
    deal : Deal
        The seeds of each step, and the rank that takes them.
    sampler : _core.Sampler
        Their neighbourhoods.
    threads : int
        Threads that sample. They do not change what is sampled.
    """

    deal: Deal
    sampler: _core.Sampler[Any]
    threads: int

    @classmethod
    def of(
        cls,
        partition: VertexPartition,
        vertices: Any,
        fanouts: Fanouts,
        world_size: int,
        options: EpochOptions,
        threads: int = 1,
        input: str | None = None,
    ) -> Self:
        """Return those of a loader with these options. Threads are those that sample."""
        partition.refuse_without_edges()
        hops = fanouts_of(fanouts, partition)
        seeds = loaded_seeds(vertices, partition, options, input)
        return cls.of_seeds(partition, seeds, hops, world_size, options, threads, vertices)

    @classmethod
    def of_seeds(
        cls,
        partition: VertexPartition,
        seeds: Seeds,
        fanouts: Any,
        world_size: int,
        options: EpochOptions,
        threads: int = 1,
        vertices: Any = None,
    ) -> Self:
        """Return those of given seeds. ``fanouts`` of a typed graph are by hop and relation."""
        owners = rank_of_part(partition.k, world_size)
        deal = Deal.of(seeds, partition._topology.starts, owners, vertices, options)
        how = sampling_of(partition, options)
        sampler = _core.Sampler(partition._topology, fanouts, types=partition._types, **how)
        return cls(deal, sampler, threads)

    def rows_of_types(self, epoch: int, rank: int) -> Iterator[list[Rows]]:
        """Yield the distinct rows of each batch of a rank, type by type. They ascend."""
        steps = self.deal.steps(self.deal.order(epoch), rank)
        batches = self.sampler.batches(
            steps.seeds,
            steps.seed_offsets,
            times=steps.seed_times,
            epoch=epoch,
            ahead=2 * self.threads,
            threads=self.threads,
        )
        with closing(batches):
            for batch in batches:
                yield [
                    distinct(rows) for rows in (batch.rows if isinstance(batch.rows, list) else [batch.rows])
                ]


def accesses(
    partition: VertexPartition,
    vertices: Any = "train",
    *,
    fanouts: Sequence[int],
    epochs: range = range(1),
    folder: Path | None = None,
    **given: Any,
) -> Accesses:
    """Return the rows that the batches of :meth:`fastpart.VertexPartition.loader` need.

    Parameters
    ----------
    partition : VertexPartition
        The parts.
    vertices, fanouts, **given
        Parameters of the loader. Those that do not change what is sampled are ignored, but for ``threads``.
        ``rank`` and ``world_size`` default to one rank.
    epochs : range
        Which epochs.
    folder : pathlib.Path, optional
        Where the rows are written, as ``accesses.bin``, and mapped from. Default: memory, 4 bytes per row and batch.
    """
    partition.refuse_types("partition", "a list of accesses is for")
    options = LoaderOptions.checked(given)
    rank, world_size = given_rank(options.rank, options.world_size) or (0, 1)
    sampled = SampledEpochs.of(partition, vertices, fanouts, world_size, options, options.threads)
    if folder is None:
        return accesses_of(sampled, epochs, rank)[0]
    with open(folder / FILE, "wb") as file:
        indptr = _write(sampled, epochs, rank, {0: file})[0]
    rows = np.memmap(folder / FILE, np.uint32, "r") if indptr[-1] else np.empty(0, np.uint32)
    return Accesses(epochs, len(sampled.deal), indptr, rows)


def accesses_of(
    sampled: SampledEpochs, epochs: range, rank: int, types: Sequence[int] = (0,)
) -> list[Accesses]:
    """Return the rows that the batches of a rank need of some types, given by their numbers."""
    memory = {number: BytesIO() for number in types}
    indptr = _write(sampled, epochs, rank, memory)
    return [
        Accesses(epochs, len(sampled.deal), indptr[number], np.frombuffer(file.getbuffer(), np.uint32))
        for number, file in memory.items()
    ]


def _write(
    sampled: SampledEpochs, epochs: range, rank: int, files: Mapping[int, BinaryIO]
) -> dict[int, npt.NDArray[np.int64]]:
    """Write the rows of all batches to the file of their type. Return by type where the rows of each batch begin."""
    counts = {number: [0] for number in files}
    for epoch in epochs:
        for of_types in sampled.rows_of_types(epoch, rank):
            for number, file in files.items():
                file.write(of_types[number].data)
                counts[number].append(len(of_types[number]))
    return {number: np.cumsum(each, dtype=np.int64) for number, each in counts.items()}
