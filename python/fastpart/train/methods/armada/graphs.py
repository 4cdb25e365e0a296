"""The graphs that a batch worker samples: mapped files of all parts, or some parts in memory."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .... import _core
from ....core.pairs import among
from ....loading.row_files import EdgeFeatures, RowFiles
from ....partitions.partition import VertexPartition
from ....partitions.seeds import Ids, owner_of
from ....partitions.types import Fanouts, edge_keys
from .cache import RowIds
from .groups import Sample


class Graph(Protocol):
    """A graph with features."""

    def sample(self, seeds: RowIds, epoch: int, step: int) -> Sample:
        """Return a batch of seeds, which are rows of the topology."""

    def gather(self, rows: RowIds, number: int = 0) -> npt.NDArray[Any]:
        """Return the features of rows of a type, which ascend, given its number."""


@dataclass(frozen=True)
class Sampling:
    """The fanouts, rule and seed of neighbour sampling, and whether features of in-edges are sent."""

    fanouts: Fanouts
    sampling: str
    seed: int
    edge_features: bool = False

    def sampler(self, topology: _core.Topology, types: _core.Types | None = None) -> _core.Sampler[Any]:
        """Return a sampler."""
        sent = self.edge_features
        return _core.Sampler(
            topology,
            self.fanouts,
            types=types,
            kind=self.sampling,
            seed=self.seed,
            edge_rows=sent and types is None,
            edge_ids=sent and types is not None,  # by which rows of relations are found
        )


class MappedParts:
    """The graph of all parts, whose files are mapped."""

    def __init__(self, partition: VertexPartition, sampling: Sampling) -> None:
        self._sampler = sampling.sampler(partition._topology, partition._types)
        self._keys, every = edge_keys(partition), np.ones(partition.k, np.bool_)
        self._features = [
            None if files.parts[0].stored_type("features") is None else files.opened(every)
            for files in RowFiles.of_types(partition).values()
        ]
        self._edge_features: _core.Features | None = None
        self._of_relations: EdgeFeatures | None = None
        if sampling.edge_features and partition.is_typed:
            self._of_relations = EdgeFeatures(partition, decoded=False)
        elif sampling.edge_features:
            self._edge_features = RowFiles.of_edges(partition).opened(every)

    def sample(self, seeds: RowIds, epoch: int, step: int) -> Sample:
        """Return a batch."""
        found = self._sampler.sample(seeds, epoch=epoch, step=step, edge_features=self._edge_features)
        if isinstance(found, _core.SampledBatch):
            return _sample(found, found.rows, found.edge_features)
        features = {} if self._of_relations is None else self._of_relations.of_sample(found)
        return Sample(
            rows=found.rows,
            indptr=found.indptr,
            indices=found.indices,
            edge_features=[*map(features.get, self._keys)],
            levels=found.num_sampled_nodes,
            edges=found.num_sampled_edges,
        )

    def gather(self, rows: RowIds, number: int = 0) -> npt.NDArray[Any]:
        """Return the features of rows of a type, which may have none."""
        features = self._features[number]
        return np.empty((len(rows), 0), np.uint8) if features is None else features.gather(rows)


class LoadedPart:
    """A part in memory.

    Attributes
    ----------
    ids : numpy.ndarray
        Id of each inner vertex.
    indptr, sources : numpy.ndarray
        Their in-edges, and the row of the source of each in the topology of all parts.
    first_edge : int
        The row of the first of these in-edges.
    features : numpy.ndarray
        Their features, as they are stored.
    """

    def __init__(self, partition: VertexPartition, index: int, starts: Ids) -> None:
        part = partition.parts[index]
        self.ids = np.array(part.inner)
        self.indptr = np.array(part.indptr[: part.num_inner + 1])
        row_of = np.empty(len(part.vertices), np.uint32)
        row_of[: part.num_inner] = starts[index] + np.arange(part.num_inner)
        row_of[part.num_inner :] = starts[part.halo_parts] + part.halo_rows
        self.sources = row_of[part.indices[: self.indptr[-1]]]
        self.first_edge = int(partition._topology.edge_starts[index])
        assert part.stored_features is not None
        self.features = np.array(part.stored_features)


class PartsInMemory:
    """The graph of some parts in memory: their vertices, and the edges between them."""

    def __init__(
        self,
        parts: Sequence[int],
        loaded: Sequence[LoadedPart],
        starts: Ids,
        sampling: Sampling,
        edge_features: _core.Features | None,
    ) -> None:
        order = np.argsort(parts)
        self._loaded = [loaded[i] for i in order]
        own = [np.arange(starts[parts[i]], starts[parts[i] + 1], dtype=np.uint32) for i in order]
        self._rows = np.concatenate(own)
        self._starts = np.concatenate(([0], np.cumsum([len(rows) for rows in own])))
        sources = np.concatenate([part.sources for part in self._loaded])
        here = among(sources, self._rows)
        before = np.concatenate(([0], np.cumsum(here)))
        counts = np.concatenate([np.diff(part.indptr) for part in self._loaded])
        topology = _core.Topology.in_memory(
            np.concatenate([part.ids for part in self._loaded]),
            before[np.concatenate(([0], np.cumsum(counts)))],
            np.searchsorted(self._rows, sources[here]).astype(np.int32),
        )
        self._sampler, self._edge_features = sampling.sampler(topology), edge_features
        if edge_features is not None:
            rows = [part.first_edge + np.arange(len(part.sources)) for part in self._loaded]
            self._edge_rows = np.concatenate(rows)[here]

    def sample(self, seeds: RowIds, epoch: int, step: int) -> Sample:
        """Return a batch of seeds of these parts. The features of its in-edges are read from the files."""
        found = self._sampler.sample(self._local(seeds), epoch=epoch, step=step)
        edge_features = None
        if self._edge_features is not None:
            assert found.edge_rows is not None
            edge_features = self._edge_features.gather(self._edge_rows[found.edge_rows])
        return _sample(found, self._rows[found.rows], edge_features)

    def gather(self, rows: RowIds, number: int = 0) -> npt.NDArray[Any]:
        """Return the features of rows of these parts, which ascend. There are no types."""
        local = self._local(rows)
        first = self._loaded[0].features
        x = np.empty((len(rows), *first.shape[1:]), first.dtype)
        owners = owner_of(local, self._starts)
        for owner in np.unique(owners).tolist():
            those = owners == owner
            x[those] = self._loaded[owner].features[local[those] - self._starts[owner]]
        return x

    def drop(self) -> None:
        """Free the memory before other parts are read."""
        self._loaded.clear()
        del self._sampler

    def _local(self, rows: RowIds) -> RowIds:
        return np.searchsorted(self._rows, rows).astype(np.uint32)


def _sample(found: _core.SampledBatch, rows: RowIds, edge_features: npt.NDArray[Any] | None) -> Sample:
    """Return the sample of a graph without types."""
    return Sample(
        rows=[rows],
        indptr=[found.indptr],
        indices=[found.indices],
        edge_features=[edge_features],
        levels=[found.num_sampled_nodes],
        edges=[found.num_sampled_edges],
    )


class Graphs:
    """The graphs of a batch worker. It reads a part once, as long as some graph holds it.

    Attributes
    ----------
    parts_read : int
        How many parts it has read into memory.
    """

    def __init__(self, partition: VertexPartition, sampling: Sampling) -> None:
        self._partition, self._sampling = partition, sampling
        self._mapped: MappedParts | None = None
        self._loaded: weakref.WeakValueDictionary[int, LoadedPart] = weakref.WeakValueDictionary()
        self.parts_read = 0

    def of(self, parts: tuple[int, ...] | None, before: Graph | None) -> Graph:
        """Return the graph of some parts. None: all, mapped. Those of the graph ``before`` are not read again."""
        if parts is None:
            self._mapped = self._mapped or MappedParts(self._partition, self._sampling)
            return self._mapped
        kept = {number: part for number in parts if (part := self._loaded.get(number)) is not None}
        if isinstance(before, PartsInMemory):
            before.drop()
        loaded = [self._part(number, kept) for number in parts]
        return PartsInMemory(parts, loaded, self._starts, self._sampling, self._edge_features)

    @cached_property
    def _edge_features(self) -> _core.Features | None:
        if not self._sampling.edge_features:
            return None
        return RowFiles.of_edges(self._partition).opened(np.ones(self._partition.k, np.bool_))

    @property
    def _starts(self) -> Ids:
        return self._partition._topology.starts

    def _part(self, number: int, kept: dict[int, LoadedPart]) -> LoadedPart:
        if number not in kept:
            self.parts_read += 1
            kept[number] = self._loaded[number] = LoadedPart(self._partition, number, self._starts)
        return kept[number]
