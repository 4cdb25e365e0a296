"""Rows of the vertices of a type, or of the in-edges of a relation: their files, and which row an in-edge has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import GraphFormatError
from ..partitions.part_files import Ids, PartFiles
from ..partitions.part_rows import RelationData, TypeData
from ..partitions.partition import VertexPartition
from ..partitions.parts import VertexPartData
from ..partitions.seeds import owner_of
from ..partitions.types import ONLY_TYPE, EdgeKey, edge_keys, of_relation, of_type, type_names

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
