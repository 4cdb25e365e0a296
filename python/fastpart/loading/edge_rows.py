"""The in-edges of batches as rows of the directory, where their features are, by relation."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import GraphFormatError
from ..partitions.part_rows import RelationData, TypeData
from ..partitions.partition import VertexPartition
from ..partitions.parts import VertexPartData
from ..partitions.seeds import owner_of
from ..partitions.types import ONLY_RELATION, EdgeKey, edge_keys, of_relation, type_names
from .ahead import ended
from .fetching import Fetching, Fetchings, chained
from .remote import RowFiles
from .sample import Sample, SampledArrays, entries_of

Ids = npt.NDArray[np.int64]

_EDGES = 1 << 22
"""In-edges of a part that are counted at a time."""


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
        if owner not in self._runs:
            self._runs[owner] = Runs(part, part.of_relation(self._name), part.of_type(self._target))
        runs = self._runs[owner]
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


def relations_with_features(partition: VertexPartition) -> dict[EdgeKey, RelationRows]:
    """Return the rows of the relations that have features, in a graph with types."""
    return {
        key: RelationRows(partition, key)
        for key in edge_keys(partition)
        if of_relation(partition, key[1])[0].stored_type("edge_features") is not None
    }


class EdgeFeatures:
    """The features of the in-edges of batches over types, where all of them are in files here."""

    def __init__(self, partition: VertexPartition) -> None:
        self._relations = relations_with_features(partition)
        self._files: dict[EdgeKey, _core.Features] = {}
        for key, relation in self._relations.items():
            rows = relation.files.opened(np.ones(partition.k, bool))
            coding = relation.files.parts[0].coding("edge_features")
            assert rows is not None
            self._files[key] = rows if coding is None else rows.decoded(coding.core)

    def of_sample(self, sample: _core.TypedSampledBatch) -> dict[EdgeKey, npt.NDArray[Any]]:
        """Return the features of the in-edges of a batch by relation, sampled with their ids."""
        return {
            key: self._files[key].gather(relation.of(sample)) for key, relation in self._relations.items()
        }


class _Rows(NamedTuple):
    """Rows of in-edges, and their features if they were read."""

    rows: Ids
    features: npt.NDArray[Any] | None


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

    @property
    def with_batches(self) -> _core.Features | None:
        """The files that the core fills batches from while it makes them, in a graph without types."""
        return self._of[ONLY_RELATION].with_batches if ONLY_RELATION in self._of else None

    def filled(self, sampled: Iterator[SampledArrays], together: int, steps: int) -> Generator[SampledArrays]:
        """Yield the batches with the features of their in-edges. See :meth:`.fetching.Fetching.filled`."""
        if self._rows and not self.by_messages:  # over types, rows are counted only where some are sent
            with ended(sampled):
                for batch in sampled:
                    of = {
                        key: each.of_batch(_Rows(*self._view(batch, key))) for key, each in self._of.items()
                    }
                    yield self._with(batch, of)
            return
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


def with_edge_rows(sample: SampledArrays, topology: _core.Topology, num_records: int) -> SampledArrays:
    """Return the sample of a user's function with the rows of its in-edges, found by their ids, if it has these."""
    if getattr(sample, "edge_rows", None) is not None or sample.e_id is None:
        return sample
    counts = np.diff(sample.indptr)
    targets = np.repeat(sample.rows[: len(counts)], counts)
    edge_rows = topology.edge_rows_of(targets, sample.e_id, num_records)
    return Sample(**{**entries_of(sample), "edge_rows": edge_rows})
