"""A partition directory with edge splits. It needs no labels, and no features where rows are learned."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ...core.parameters import shown
from ...errors import ParameterError, code
from ...loading.links import edges_of
from ..data import Dataset
from ..scores import Task

Pairs = npt.NDArray[np.int64]


class LinkDataset(Dataset):
    """A partition of the vertices with edge splits. Its ``task`` has the width of the features and no classes."""

    @property
    def num_train(self) -> int:
        """Number of edges to train on."""
        return int(self.manifest["edge_splits"]["train"])

    def count_of(self, split: str) -> int:
        """Return how many edges a split has."""
        return int(self.manifest["edge_splits"].get(split, 0))

    @property
    def held_out_from(self) -> int | None:
        """The earliest time of the held-out pairs, if they were split by time."""
        since = self.manifest.get("held_out_from")
        return None if since is None else int(since)

    def pairs(self, split: str) -> Pairs:
        """Return the pairs of a split, none if the directory does not have it."""
        if split not in self.manifest["edge_splits"]:
            return np.empty((0, 2), np.int64)
        return edges_of(split, self.partition)

    def _take_target(self, target: str | None) -> None:
        if "types" in self.manifest:
            raise ParameterError(
                f"source: {shown(self.path)} holds a graph with types. Train over its relations with "
                + code(
                    "fastpart.train.embeddings, which takes encoder='rgcn'",
                    "`fastpart train embeddings --encoder rgcn`",
                )
            )

    def _refuse_incomplete(self) -> None:
        if "train" not in self.manifest.get("edge_splits", {}):
            raise ParameterError(
                f"source: {shown(self.path)} holds no edge splits. Split the edges with "
                + code(
                    "splits = fastpart.split_edges(graph), partition splits.graph, and save the partition with "
                    "p.save(DIR, graph=splits.graph, edge_splits=splits)",
                    "`fastpart split-edges GRAPH TRAIN`, then run `fastpart partition TRAIN -o DIR --edge-splits "
                    "TRAIN.splits.npz`",
                )
            )
        if not self.num_train:
            raise ParameterError(f"source: {shown(self.path)} has no edges to train on")
        self.partition.refuse_without_edges("source")

    def _task(self) -> Task:
        row = self.partition.parts[0].row_type("features")
        if row is not None and len(row[1]) != 1:
            raise ParameterError(
                f"source: expected features of shape (n, width), got (n, {', '.join(map(str, row[1]))})"
            )
        return Task(0 if row is None else row[1][0], 0, multilabel=False)

    def features_of(self, index: int) -> Iterator[npt.NDArray[np.float32]]:
        """Yield the features of the inner vertices of a part, if there are any."""
        features = self.partition.parts[index].features
        if features is not None:
            yield np.asarray(features, np.float32)
