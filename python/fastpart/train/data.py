"""What a partition directory gives to training: the task, the parts, and the whole graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import dgl
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .. import parameters
from ..errors import GraphFormatError, ParameterError
from ..parameters import StrPath, shown
from ..partition import VertexPartition
from ..parts import VertexPart
from ..store import load
from .scores import Task

SPLITS = ("train", "val", "test")


@dataclass
class LocalGraph:
    """A graph whose first ``num_inner`` vertices are to be learned about; the others are their halo.

    Attributes
    ----------
    graph : dgl.DGLGraph
        Directed edges that end at vertices whose neighbours are known; ``ndata["degree"]`` is the in-degree in the
        whole graph, int64.
    features : torch.Tensor
        float32, one row per vertex.
    labels : torch.Tensor
        Of the inner vertices: int64 of shape (num_inner,), or float32 of shape (num_inner, classes).
    splits : dict of torch.Tensor
        Local ids of the labelled inner vertices of ``train``, ``val`` and ``test``.
    vertices : numpy.ndarray
        Global id of each vertex.
    remembered : dict
        What the batches found out about the graph; it is there again when the part is loaded again.
    """

    graph: dgl.DGLGraph
    features: Tensor
    labels: Tensor
    splits: dict[str, Tensor]
    vertices: npt.NDArray[np.int64]
    num_inner: int
    remembered: dict[Any, Any] = field(default_factory=dict)

    def block(self) -> dgl.DGLGraph:
        """Return the in-edges of the inner vertices, which are its destinations, as a block."""
        indptr, indices, _ = self.graph.adj_tensors("csc")
        edges = int(indptr[self.num_inner])
        csc = (indptr[: self.num_inner + 1], indices[:edges], torch.empty(0, dtype=torch.int64))
        block = dgl.create_block(("csc", csc), len(self.vertices), self.num_inner)
        block.srcdata["degree"] = self.graph.ndata["degree"]
        block.dstdata["degree"] = self.graph.ndata["degree"][: self.num_inner]
        return block


class Dataset:
    """A partition directory to train on.

    Attributes
    ----------
    task : Task
        What is learned.
    partition : VertexPartition
        The parts.
    """

    def __init__(self, src: StrPath) -> None:
        self.path = parameters.path("src", src)
        partition = load(self.path)
        if not isinstance(partition, VertexPartition):
            raise ParameterError(
                f"src: {shown(self.path)} is an edge partition; this method trains over parts of the vertices, as "
                "spring makes them"
            )
        self.partition = partition
        self._remembered: dict[int, dict[Any, Any]] = {}
        self.manifest: dict[str, Any] = partition.manifest or {}
        self._refuse_incomplete()
        self.task = self._task()
        if not self.num_train:
            raise ParameterError(f"src: {shown(self.path)} has no labelled vertex to train on")

    def _refuse_incomplete(self) -> None:
        missing = [name for name in ("features", "labels") if name not in self.manifest]
        if "train" not in self.manifest.get("splits", []):
            missing.append("splits")
        if "edges" not in self.manifest:
            missing.insert(0, "edges")
        if missing:
            given = ", ".join(f"{name}=..." for name in missing)
            raise ParameterError(
                f"src: {shown(self.path)} holds no {', no '.join(missing)}; save the partition with "
                f"part.save(DIR, {given})"
            )
        if self.manifest.get("halo_hops", 0) < 1:
            raise ParameterError(
                f"src: {shown(self.path)} lacks the edges between parts; save the partition with halo_hops=1"
            )

    def _task(self) -> Task:
        first = self.partition.parts[0]
        features, labels = first.features, first.labels
        assert features is not None
        assert labels is not None
        if features.ndim != 2 or features.shape[1] == 0:
            raise ParameterError(
                f"src: features of shape (n, {', '.join(map(str, features.shape[1:]))}); expected (n, width)"
            )
        if labels.ndim == 2:
            return Task(features.shape[1], labels.shape[1], multilabel=True)
        classes = 1 + max((int(part.labels.max()) for part in self._labelled()), default=-1)
        return Task(features.shape[1], classes, multilabel=False)

    def _labelled(self) -> Any:
        return (part for part in self.partition.parts if part.labels is not None and len(part.labels))

    @cached_property
    def train_counts(self) -> list[int]:
        """Labelled training vertices of each part."""
        return [len(_splits(part)["train"]) for part in self.partition.parts]

    @property
    def num_train(self) -> int:
        """Labelled training vertices."""
        return sum(self.train_counts)

    def part(self, index: int) -> LocalGraph:
        """Return a part with its halo and the halo's features."""
        part = self.partition.parts[index]
        features = np.empty((len(part.vertices), self.task.features), np.float32)
        features[: part.num_inner] = part.features
        features[part.num_inner :] = self._features_of_halo(part)
        return LocalGraph(
            _graph(part.indptr, part.indices, part.degree),
            torch.from_numpy(features),
            self._labels(part),
            _splits(part),
            part.vertices,
            part.num_inner,
            self._remembered.setdefault(index, {}),
        )

    def whole(self) -> LocalGraph:
        """Return the graph that knows no parts; local ids are global ids."""
        n = len(self.partition)
        features = np.empty((n, self.task.features), np.float32)
        degree = np.zeros(n, np.int64)
        labels: list[Tensor] = []
        splits: dict[str, list[Any]] = {name: [] for name in SPLITS}
        pieces = []
        for part in self.partition.parts:
            features[part.inner] = part.features
            degree[part.inner] = part.degree[: part.num_inner]
            labels.append(self._labels(part))
            for name, ids in _splits(part).items():
                splits[name].append(part.inner[ids.numpy()])
            edges = int(part.indptr[part.num_inner])
            pieces.append((np.diff(part.indptr[: part.num_inner + 1]), part.vertices[part.indices[:edges]]))
        order = np.concatenate([part.inner for part in self.partition.parts])
        indptr, indices = _in_order(order, pieces)
        ordered = torch.cat(labels)
        ordered[order] = ordered.clone()
        ids = {name: torch.from_numpy(np.sort(np.concatenate(found))) for name, found in splits.items()}
        graph = _graph(indptr, indices, degree)
        return LocalGraph(graph, torch.from_numpy(features), ordered, ids, np.arange(n), n)

    def _labels(self, part: VertexPart) -> Tensor:
        labels = torch.from_numpy(np.array(part.labels))
        return labels.float() if self.task.multilabel else labels

    def _features_of_halo(self, part: VertexPart) -> npt.NDArray[Any]:
        """Return those that were saved, or the owners'."""
        if part.halo_features is not None:
            return part.halo_features
        rows = np.empty((part.num_halo, self.task.features), np.float32)
        for owner in np.unique(part.halo_parts):
            those = np.flatnonzero(part.halo_parts == owner)
            other = self.partition.parts[int(owner)]
            place = np.searchsorted(other.inner, part.halo[those])
            if np.any(other.inner[np.minimum(place, other.num_inner - 1)] != part.halo[those]):
                raise GraphFormatError(
                    f"{shown(self.path)}: part {part.index} has halo vertices that part {owner} does not hold"
                )
            assert other.features is not None
            rows[those] = other.features[place]
        return rows


def _splits(part: VertexPart) -> dict[str, Tensor]:
    """Local ids of the labelled vertices of each split."""
    assert part.labels is not None
    known = part.labels >= 0 if part.labels.ndim == 1 else np.ones(part.num_inner, bool)
    masks = {name: getattr(part, name) for name in SPLITS}
    empty = np.zeros(part.num_inner, bool)
    return {
        name: torch.from_numpy(np.flatnonzero((empty if mask is None else mask) & known))
        for name, mask in masks.items()
    }


def _in_order(
    order: npt.NDArray[np.int64], pieces: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the rows of all pieces, which are those of the vertices ``order``, by ascending vertex."""
    counts = np.concatenate([counts for counts, _ in pieces])
    starts = np.concatenate(([0], np.cumsum(counts)))
    row_of = np.argsort(order)
    indptr = np.concatenate(([0], np.cumsum(counts[row_of])))
    places = np.arange(indptr[-1]) + np.repeat(starts[row_of] - indptr[:-1], counts[row_of])
    return indptr, np.concatenate([indices for _, indices in pieces])[places]


def _graph(indptr: npt.NDArray[Any], indices: npt.NDArray[Any], degree: npt.NDArray[Any]) -> dgl.DGLGraph:
    """Return the graph of the rows given; vertices beyond them have no in-edges."""
    n = len(degree)
    padded = np.full(n + 1, indptr[-1], np.int64)
    padded[: len(indptr)] = indptr
    sources = np.array(indices, np.int64)
    csc = (torch.from_numpy(padded), torch.from_numpy(sources), torch.empty(0, dtype=torch.int64))
    graph = dgl.graph(("csc", csc), num_nodes=n)
    graph.ndata["degree"] = torch.from_numpy(np.array(degree))
    return graph
