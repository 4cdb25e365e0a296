"""What a directory of an edge partition gives to training; and the choice between both."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .. import parameters
from ..parameters import StrPath
from ..parts import EdgePartData
from ..store import open_partition
from .data import AnyDataset, Dataset, Ids


class EdgeDataset(AnyDataset[EdgePartData]):
    """A partition of the edges to train on; attributes as of :class:`fastpart.train.data.AnyDataset`.

    A part's own vertices are those whose root is there. Every vertex has one root, isolated ones too.
    """

    of = "edges"
    otherwise = (
        "a vertex partition; this method trains over parts of the edges: make them with fastpart.hdrf, fastpart.dbh or "
        'fastpart.sigma(..., of="edges")'
    )

    def own(self, part: EdgePartData) -> npt.NDArray[np.bool_]:
        """Return which vertices have their root in the part."""
        return part.root == part.index

    def _rows(self) -> tuple[Ids, Ids]:
        parts = [part.in_edges() for part in self.partition.parts]
        sources, destinations, edge_ids = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        # Within a row by record, as rows of vertex partitions are: then sums are the same to the last bit.
        order = np.lexsort((edge_ids % max(int(self.manifest["m"]), 1), destinations))
        counts = np.bincount(destinations, minlength=int(self.manifest["n"]))
        return np.concatenate(([0], np.cumsum(counts))), sources[order]


def open_dataset(source: StrPath) -> Dataset | EdgeDataset:
    """Return what a partition directory of vertices or of edges gives to training."""
    path = parameters.path("source", source)
    return EdgeDataset(path) if open_partition(path).of == "edges" else Dataset(path)
