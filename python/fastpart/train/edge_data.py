"""The directory of an edge partition as training data, and the choice between both types."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..errors import code
from ..partitions.partition import PartitionSource, directory_of
from ..partitions.parts import EdgePartData
from ..store import open_partition
from .data import AnyDataset, Dataset, Ids


class EdgeDataset(AnyDataset[EdgePartData]):
    """A partition of the edges to train on. It has the attributes of :class:`fastpart.train.data.AnyDataset`.

    A part trains on the vertices whose root it holds. Every vertex has one root, also an isolated one.
    """

    of = "edges"
    refusal = (
        "a vertex partition. This method trains over parts of the edges. Make an edge partition with "
        + code(
            'fastpart.hdrf, fastpart.dbh or fastpart.sigma(..., of="edges")',
            "`fastpart partition GRAPH --of edges -o DIR`",
        )
    )

    def own(self, part: EdgePartData) -> npt.NDArray[np.bool_]:
        """Return the mask of the vertices whose root is in the part."""
        return part.root == part.index

    def _own_edges(self, part: EdgePartData) -> int:
        return part.num_edges

    def _rows(self) -> tuple[Ids, Ids, Ids]:
        parts = [part.in_edges() for part in self.partition.parts]
        sources, destinations, edge_ids = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        # Sorting a row by record, as in vertex partitions, makes sums equal to the last bit.
        order = np.lexsort((edge_ids % max(int(self.manifest["m"]), 1), destinations))
        counts = np.bincount(destinations, minlength=int(self.manifest["n"]))
        return np.concatenate(([0], np.cumsum(counts))), sources[order], order


def open_dataset(source: PartitionSource, target: str | None = None) -> Dataset | EdgeDataset:
    """Return the dataset of a partition directory of vertices or of edges."""
    path = directory_of(source)
    return EdgeDataset(path, target) if open_partition(path).of == "edges" else Dataset(path, target)
