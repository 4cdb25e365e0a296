"""Rows of edge features of sampled in-edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import GraphFormatError
from ..partitions.parts import Parts, VertexPartData
from ..partitions.seeds import owner_of
from .sample import SampledArrays

Ids = npt.NDArray[np.int64]


class EdgeFeatures:
    """The edge features of all parts, mapped on first use.

    A part holds one row per in-edge, in the order of its targets and, for each of them, of the records. So an in-edge
    is searched among those of its target.

    Attributes
    ----------
    starts : numpy.ndarray
        int64: first row of each part in the topology, and the number of rows.
    """

    def __init__(self, parts: Parts[VertexPartData], num_records: int, starts: Ids) -> None:
        self._parts = parts
        self._num_records = max(num_records, 1)
        self.starts = starts
        self._opened: dict[int, VertexPartData] = {}
        first = parts[0].edge_features
        assert first is not None
        self._dtype, self._shape = first.dtype, first.shape[1:]

    def of_sample(self, sample: SampledArrays) -> npt.NDArray[Any]:
        """Return the features of the in-edges of a batch, sampled with their ids."""
        assert sample.e_id is not None
        counts = np.diff(sample.indptr)
        return self.of(np.repeat(sample.rows[: len(counts)], counts), sample.e_id)

    def of(self, targets: npt.NDArray[np.uint32], ids: Ids) -> npt.NDArray[Any]:
        """Return the features of in-edges, given the row of each target in the topology and the id of each in-edge."""
        features = np.empty((len(ids), *self._shape), self._dtype)
        owners = owner_of(targets, self.starts)
        for owner in np.flatnonzero(np.bincount(owners)).tolist():
            those = np.flatnonzero(owners == owner)
            part = self._part(owner)
            assert part.edge_features is not None
            places = self._places(part, targets[those].astype(np.int64) - self.starts[owner], ids[those])
            features[those] = part.edge_features[places]
        return features

    def _part(self, owner: int) -> VertexPartData:
        if owner not in self._opened:
            self._opened[owner] = self._parts[owner]
        return self._opened[owner]

    def _places(self, part: VertexPartData, rows: Ids, ids: Ids) -> Ids:
        """Return the position of each in-edge in the part, by a binary search in the row of its target."""
        m, places = self._num_records, part.indptr[rows]
        counts, records = part.indptr[rows + 1] - places, ids - m * (ids >= m)
        while np.any(counts > 1):
            half = counts >> 1
            found = part.edge_ids[places + (half - 1).clip(min=0)]
            places += half * (found - m * (found >= m) < records)
            counts -= half
        if np.any(part.edge_ids[places.clip(max=max(part.num_edges - 1, 0))] != ids):
            raise GraphFormatError(
                f"edge_ids.npy of part {part.index}: the in-edges of a vertex are not in the order of records"
            )
        return places
