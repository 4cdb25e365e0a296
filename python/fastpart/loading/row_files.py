"""Rows of the vertices of a type, or of the in-edges of a relation: their files, and which row an in-edge has.

Batches need the features of in-edges by their row in the directory, by relation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core.cache_size import CacheSize
from ..errors import GraphFormatError
from ..measures.accesses import Epoch
from ..partitions.part_files import Ids, PartFiles
from ..partitions.part_rows import RelationData, TypeData
from ..partitions.partition import VertexPartition
from ..partitions.parts import VertexPartData
from ..partitions.seeds import owner_of
from ..partitions.types import ONLY_RELATION, ONLY_TYPE, EdgeKey, edge_keys, of_relation, of_type, type_names
from .fetching import Fetching, Fetchings, chained
from .sample import Sample, SampledArrays, entries_of

_EDGES = 1 << 22
"""In-edges of a part that are counted at a time."""


@dataclass(frozen=True, eq=False)
class RowFiles:
    """Files of rows, one for each part.

    Attributes
    ----------
    parts : sequence of PartFiles
        Where each lies.
    name : str
        What they hold, as ``features``.
    topology : _core.Topology
        The parts.
    starts : numpy.ndarray
        int64: first row of each part, and the number of rows.
    """

    parts: Sequence[PartFiles]
    name: str
    topology: _core.Topology
    starts: npt.NDArray[np.int64]

    @classmethod
    def of_vertices(cls, partition: VertexPartition) -> RowFiles:
        """Return the features of all vertices of a graph without types."""
        return cls.of_types(partition)[ONLY_TYPE]

    @classmethod
    def of_types(cls, partition: VertexPartition) -> dict[str, RowFiles]:
        """Return the features of the vertices of each type."""
        types = zip(type_names(partition), partition._rows_by_type.starts, strict=True)
        return {
            name: cls(of_type(partition, name), "features", partition._topology, starts)
            for name, starts in types
        }

    @classmethod
    def of_edges(cls, partition: VertexPartition) -> RowFiles:
        """Return the features of all in-edges, each in the part of its target."""
        topology = partition._topology
        return cls(list(partition.parts), "edge_features", topology, topology.edge_starts)

    @property
    def are_here(self) -> npt.NDArray[np.bool_]:
        """Mask of the parts whose file is on this machine."""
        return np.array([(part._folder / f"{self.name}.npy").exists() for part in self.parts])

    def opened(self, here: npt.NDArray[np.bool_], direct: bool | None = None) -> _core.Features | None:
        """Map the files of some parts. None if there are none."""
        file = f"{self.name}.npy"
        files = [part._file(file) if there else None for part, there in zip(self.parts, here, strict=True)]
        return _core.Features(files, self.topology, starts=self.starts, direct=direct) if any(files) else None


class Runs:
    """Where the in-edges of a relation are at each inner vertex of its target type in a part.

    Attributes
    ----------
    first, count : numpy.ndarray
        int64: place of the first of them among the in-edges of the part, and their number.
    before : numpy.ndarray
        int64: how many in-edges of the relation belong to vertices before it.
    """

    def __init__(self, part: VertexPartData, relation: RelationData, target: TypeData) -> None:
        inner = slice(target.first_inner, target.first_inner + target.num_inner + 1)
        indptr = np.asarray(part.indptr[inner], np.int64)
        self.first, self.count = indptr[:-1].copy(), np.zeros(target.num_inner, np.int64)
        bounds = np.searchsorted(indptr, np.arange(indptr[0], indptr[-1], _EDGES)).tolist()
        assert part.relations is not None
        for begin, end in zip(bounds, [*bounds[1:], target.num_inner], strict=True):
            numbers = part.relations[indptr[begin] : indptr[end]]
            ends = indptr[begin : end + 1] - indptr[begin]
            self.first[begin:end] += np.diff(_counted(numbers < relation.number)[ends])
            self.count[begin:end] = np.diff(_counted(numbers == relation.number)[ends])
        self.before = np.cumsum(self.count) - self.count


def _counted(mask: npt.NDArray[np.bool_]) -> Ids:
    """Return how many entries before each place are true."""
    return np.concatenate(([0], np.cumsum(mask)))


class RelationRows:
    """The rows of the in-edges of one relation, found by their ids: the places among those of the relation.

    Attributes
    ----------
    files : RowFiles
        Their features. A part has those of its inner vertices.
    """

    def __init__(self, partition: VertexPartition, key: EdgeKey) -> None:
        self._parts, (_, self._name, self._target) = partition.parts, key
        self._types, self._number = type_names(partition), edge_keys(partition).index(key)
        self._num_records = max(int((partition.manifest or {})["m"]), 1)
        target = self._types.index(self._target)
        self._starts = np.asarray(partition._rows_by_type.starts[target], np.int64)
        relations = of_relation(partition, self._name)
        edge_starts = np.cumsum([0, *(each.num_edges for each in relations)])
        self.files = RowFiles(relations, "edge_features", partition._topology, edge_starts)
        self._runs: dict[int, Runs] = {}

    def of(self, batch: Any) -> Ids:
        """Return the row of each in-edge of the relation in a batch of several types, sampled with ids."""
        counts = np.diff(batch.indptr[self._number])
        rows = batch.rows[self._types.index(self._target)][: len(counts)]
        targets, ids = np.repeat(rows, counts), batch.e_id[self._number]
        owners, places = owner_of(targets, self._starts), np.empty(len(ids), np.int64)
        for owner in np.flatnonzero(np.bincount(owners)).tolist():
            those = np.flatnonzero(owners == owner)
            local = targets[those].astype(np.int64) - self._starts[owner]
            places[those] = self.files.starts[owner] + self._places(owner, local, ids[those])
        return places

    def _places(self, owner: int, local: Ids, ids: Ids) -> Ids:
        """Return the place of each in-edge among those of the relation in a part."""
        part, m = self._parts[owner], self._num_records
        runs = self._runs_of(owner)
        first, left, records = runs.first[local], runs.count[local], ids - m * (ids >= m)
        places = first.copy()
        while np.any(left > 1):  # records ascend among the in-edges of a relation at a vertex
            half = left >> 1
            found = part.edge_ids[places + (half - 1).clip(min=0)]
            places += half * (found - m * (found >= m) < records)
            left -= half
        if len(ids) and np.any(part.edge_ids[places.clip(max=max(part.num_edges - 1, 0))] != ids):
            raise GraphFormatError(
                f"edge_ids.npy of part {part.index}: the in-edges of {self._name!r} of a vertex are not in the order "
                "of records"
            )
        return runs.before[local] + (places - first)

    def runs(self, part: int) -> tuple[Ids, Ids]:
        """Return the place of the first in-edge of each target in a part, and the number of its in-edges."""
        runs = self._runs_of(part)
        return runs.before, runs.count

    def _runs_of(self, part: int) -> Runs:
        if part not in self._runs:
            data = self._parts[part]
            self._runs[part] = Runs(data, data.of_relation(self._name), data.of_type(self._target))
        return self._runs[part]


def relations_with_features(partition: VertexPartition) -> dict[EdgeKey, RelationRows]:
    """Return the rows of the relations that have features, in a graph with types."""
    return {
        key: RelationRows(partition, key)
        for key in edge_keys(partition)
        if of_relation(partition, key[1])[0].stored_type("edge_features") is not None
    }


class EdgeFeatures:
    """The features of the in-edges of batches over types, where all of them are in files here.

    They are decoded, or as they are stored.
    """

    def __init__(self, partition: VertexPartition, decoded: bool = True) -> None:
        self._relations = relations_with_features(partition)
        self._files: dict[EdgeKey, _core.Features] = {}
        for key, relation in self._relations.items():
            rows = relation.files.opened(np.ones(partition.k, bool))
            coding = relation.files.parts[0].coding("edge_features")
            assert rows is not None
            self._files[key] = rows if coding is None or not decoded else rows.decoded(coding.core)

    def of_sample(self, sample: _core.TypedSampledBatch) -> dict[EdgeKey, npt.NDArray[Any]]:
        """Return the features of the in-edges of a batch by relation, sampled with their ids."""
        return {
            key: self._files[key].gather(relation.of(sample)) for key, relation in self._relations.items()
        }


class EdgeFetching(Fetchings[EdgeKey]):
    """Where the features of in-edges come from.

    Attributes
    ----------
    of_relation : dict of Fetching
        By relation. Relations without features are left out.
    """

    def __init__(self, partition: VertexPartition, fetching_of_files: Callable[[RowFiles], Fetching]) -> None:
        self._rows: dict[EdgeKey, RelationRows] = {}
        if partition.is_typed:
            self._rows = relations_with_features(partition)
            super().__init__({key: fetching_of_files(each.files) for key, each in self._rows.items()})
        elif partition.parts[0].stored_type("edge_features") is not None:
            super().__init__({ONLY_RELATION: fetching_of_files(RowFiles.of_edges(partition))})
        else:
            super().__init__({})

    @property
    def of_relation(self) -> dict[EdgeKey, Fetching]:  # noqa: D102
        return self._of

    def keep_cached(
        self, partition: VertexPartition, own: npt.NDArray[np.bool_], cache: CacheSize, epoch: Epoch
    ) -> None:
        """Keep in-edges of other ranks, so that batches need not fetch their features. All ranks have to call it."""
        for key, rows in cached_edge_rows_of(partition, own, cache, epoch, self._rows).items():
            self._of[key].keep_cached(rows)

    @property
    def with_batches(self) -> _core.Features | None:
        """The files that the core fills batches from while it makes them, in a graph without types."""
        return self._of[ONLY_RELATION].with_batches if ONLY_RELATION in self._of else None

    def filled(self, sampled: Iterator[SampledArrays], together: int, steps: int) -> Generator[SampledArrays]:
        """Yield the batches with the features of their in-edges. See :meth:`.fetching.Fetching.filled`."""
        stages = [(key, fetching, partial(self._view, key=key)) for key, fetching in self._of.items()]
        with closing(chained(sampled, stages, together, steps)) as filled:
            for batch, found in filled:
                yield self._with(batch, found)

    def _view(self, batch: Any, key: EdgeKey) -> tuple[Ids, npt.NDArray[Any] | None]:
        """Return the rows of the in-edges of a batch, and their features if they were read."""
        if key == ONLY_RELATION:
            rows = batch.edge_rows
            return _NONE if rows is None else rows, batch.edge_features
        return _NONE if batch.e_id is None else self._rows[key].of(batch), None

    def _with(self, batch: Any, found: dict[EdgeKey, Any]) -> SampledArrays:
        if ONLY_RELATION in found:
            features = found[ONLY_RELATION]
            there = batch.edge_rows is None or features is batch.edge_features
        else:
            features, there = found, batch.e_id is None
        return batch if there else Sample(**{**entries_of(batch), "edge_features": features})


_NONE: Ids = np.empty(0, np.int64)


def cached_edge_rows_of(
    partition: VertexPartition,
    own: npt.NDArray[np.bool_],
    cache: CacheSize,
    epoch: Epoch,
    relations: Mapping[EdgeKey, RelationRows],
) -> dict[EdgeKey, Ids]:
    """Return the in-edges of other ranks that a rank caches, by relation, as rows that ascend.

    All in-edges of a relation at a vertex are cached together. They are ranked by the expected steps that sample the
    in-edges of the vertex, times the probability of each in-edge then, times the bytes of its features.

    Parameters
    ----------
    relations : mapping of RelationRows
        The relations that have features. Empty in a graph without types.
    """
    keys = list(relations) or [ONLY_RELATION]
    hops = [hop if isinstance(hop, Sequence) else [hop] for hop in epoch.fanouts]
    if not cache or len(hops) < 2:
        return dict.fromkeys(keys, _NONE)  # seeds are own vertices, and their in-edges own ones
    topology, by_type = partition._topology, partition._rows_by_type
    of_seeds = Epoch(epoch.seeds, epoch.fanouts[:-1], epoch.batch_size, epoch.types)
    steps = of_seeds.expected_steps(topology, own)
    types, _ = by_type.locate(np.arange(topology.num_vertices, dtype=np.uint32))
    names, all_keys = type_names(partition), edge_keys(partition)
    starts = [np.asarray(by_type.starts[names.index(target)], np.int64) for _, _, target in keys]
    runs = [
        [
            relations[key].runs(part) if relations else _runs_of(partition.parts[part])
            for part in range(partition.k)
        ]
        for key in keys
    ]
    row_bytes = [_row_bytes(partition, key) for key in keys]
    scores, counts, owned = [], [], []
    for place, key in enumerate(keys):
        count = np.concatenate([count for _, count in runs[place]])
        fanouts = [hop[all_keys.index(key)] for hop in hops[1:]]
        most = np.inf if min(fanouts) < 0 else max(fanouts)
        sampled = steps[types == names.index(key[2])] * np.minimum(1, most / np.maximum(count, 1))
        scores.append(sampled * (row_bytes[place] / max(row_bytes)))
        counts.append(count)
        owned.append(own[owner_of(np.arange(len(count)), starts[place])])
    score, count, is_own = map(np.concatenate, (scores, counts, owned))
    size = np.repeat(row_bytes, [len(each) for each in counts]) * count
    found = np.flatnonzero((score > 0) & ~is_own & (count > 0))
    found = found[np.lexsort((found, -score[found]))]
    if cache.bytes is None:
        fits = np.cumsum(count[found]) <= cache.held(int(count[is_own].sum()), 0)
    else:
        memory = cache.bytes * np.count_nonzero(own)  # each part of the rank has it
        fits = np.cumsum(size[found]) <= memory
    kept = np.zeros(len(count), bool)
    kept[found[fits]] = True
    cached, first = {}, 0
    for place, key in enumerate(keys):
        of_key = np.flatnonzero(kept[first : first + len(counts[place])])
        first += len(counts[place])
        edge_starts = relations[key].files.starts if relations else topology.edge_starts
        before = np.concatenate([edge_starts[part] + before for part, (before, _) in enumerate(runs[place])])
        cached[key] = _ranges(before[of_key], counts[place][of_key])
    return cached


def _runs_of(part: VertexPartData) -> tuple[Ids, Ids]:
    """Return the place of the first in-edge of each inner vertex of a part, and their number."""
    indptr = np.asarray(part.indptr[: part.num_inner + 1], np.int64)
    return indptr[:-1], np.diff(indptr)


def _row_bytes(partition: VertexPartition, key: EdgeKey) -> int:
    """Return the bytes of the features of an in-edge."""
    stored = of_relation(partition, key[1])[0].stored_type("edge_features")
    assert stored is not None
    return int(stored[0].itemsize * math.prod(stored[1]))


def _ranges(first: Ids, counts: Ids) -> Ids:
    """Return the numbers from each first one on, ``counts`` of them."""
    before = np.cumsum(counts) - counts
    return np.repeat(first - before, counts) + np.arange(counts.sum())


def with_edge_rows(sample: SampledArrays, topology: _core.Topology, num_records: int) -> SampledArrays:
    """Return the sample of a user's function with the rows of its in-edges, found by their ids, if it has these."""
    if getattr(sample, "edge_rows", None) is not None or sample.e_id is None:
        return sample
    counts = np.diff(sample.indptr)
    targets = np.repeat(sample.rows[: len(counts)], counts)
    edge_rows = topology.edge_rows_of(targets, sample.e_id, num_records)
    return Sample(**{**entries_of(sample), "edge_rows": edge_rows})
