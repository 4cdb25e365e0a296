"""The features of the in-edges of batches of typed graphs: those of each relation come from files of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _core
from ...errors import GraphFormatError
from ...partitions.part_rows import RelationData, TypeData
from ...partitions.partition import VertexPartition
from ...partitions.parts import VertexPartData
from ...partitions.seeds import owner_of
from ...partitions.types import EdgeKey, edge_keys, type_names
from ..remote import RowFiles

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


class RelationFeatures:
    """The features of the in-edges of one relation. A part has those of its inner vertices."""

    def __init__(self, partition: VertexPartition, name: str, target: str, starts: Ids) -> None:
        self._parts, self._name, self._target = partition.parts, name, target
        self._num_records, self._starts = max(int((partition.manifest or {})["m"]), 1), starts
        relations = [part.of_relation(name) for part in partition.parts]
        self._edge_starts = np.cumsum([0, *(each.num_edges for each in relations)])
        files = RowFiles(relations, "edge_features", partition._topology, self._edge_starts)
        rows, coding = files.opened(np.ones(len(relations), bool)), relations[0].coding("edge_features")
        assert rows is not None
        self._rows = rows if coding is None else rows.decoded(coding.core)
        self._runs: dict[int, Runs] = {}

    def of(self, targets: npt.NDArray[np.uint32], ids: Ids) -> npt.NDArray[Any]:
        """Return the features of in-edges, given the row of each target among those of its type, and each id."""
        owners, places = owner_of(targets, self._starts), np.empty(len(ids), np.int64)
        for owner in np.flatnonzero(np.bincount(owners)).tolist():
            those = np.flatnonzero(owners == owner)
            local = targets[those].astype(np.int64) - self._starts[owner]
            places[those] = self._edge_starts[owner] + self._places(owner, local, ids[those])
        return self._rows.gather(places)

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


class TypedEdgeFeatures:
    """The features of the in-edges of all relations that have some."""

    def __init__(self, partition: VertexPartition) -> None:
        self._types, self._keys = type_names(partition), edge_keys(partition)
        first = partition.parts[0]
        self._relations: dict[EdgeKey, RelationFeatures] = {}
        for key in self._keys:
            if first.of_relation(key[1]).stored_type("edge_features") is not None:
                starts = np.asarray(partition._rows_by_type.starts[self._types.index(key[2])], np.int64)
                self._relations[key] = RelationFeatures(partition, key[1], key[2], starts)

    def of_sample(self, sample: _core.TypedSampledBatch) -> dict[EdgeKey, npt.NDArray[Any]]:
        """Return the features of the in-edges of a batch by relation, sampled with their ids."""
        assert sample.e_id is not None
        found = {}
        for number, key in enumerate(self._keys):
            if key in self._relations:
                counts = np.diff(sample.indptr[number])
                rows = sample.rows[self._types.index(key[2])][: len(counts)]
                found[key] = self._relations[key].of(np.repeat(rows, counts), sample.e_id[number])
        return found
