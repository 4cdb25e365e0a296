"""Batches of a graph: training vertices with some of their neighbours, or sampled graphs.

Cluster-GCN (Chiang et al., KDD 2019, algorithm 1) takes unions of clusters. SPRING partitions the own vertices of each
process into clusters once. Each epoch puts them into groups at random. Each step trains on the subgraph that one group
induces. ``batch_size`` is the mean number of training vertices in the groups of all processes. For the clusters, the
edges between the own vertices lie in memory once, 12 bytes each.

GraphSAINT (Zeng et al., ICLR 2020, sections 3.2 and 3.3) samples graphs by random walks. In each epoch every training
vertex is once the root of a walk with as many steps as there are layers. A step trains on the subgraph that
``batch_size`` walks induce, or on one in each process, of the walks whose roots it owns. Before the first epoch, the
graphs of ``COVERAGE`` epochs are sampled, in N steps. C_v of them hold the vertex v, and C_uv the edge (u, v). The loss
of v is divided by the probability C_v / N, and the share of an edge in the mean by C_uv / C_v. So both are right in
expectation. The counts take 4 bytes per vertex and edge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ... import _core
from ...core.parsing import created
from ...graphs.opening import open_graph
from ...partitions import partitioners
from ..graphs.kernels import CPU
from ..graphs.rows import Rows
from ..models import CLUSTER, NEIGHBOUR, SAINT, sampling_of
from ..options import Options
from ..ranks import barrier

VertexRows = npt.NDArray[np.uint32]


@dataclass
class Field:
    """A topology and the training vertices in it. Vertices are named by their rows.

    Attributes
    ----------
    topology : _core.Topology
        The in-edges.
    seeds : numpy.ndarray
        uint32: all training vertices.
    degrees : callable
        Returns the in-degrees of rows in the whole graph, int64.
    own : slice
        Rows that this process deals, all of them if it is alone.
    num_edges : int
        Number that the ids of the in-edges stay below.
    folder : path or None
        For files of the processes that share the graph. None: this one is alone with it.
    rank, processes : int
        Which process this is, and how many there are.
    device : torch.device
        Where graphs are summed.
    edge_attr : torch.Tensor or None
        Features of all in-edges, which batches of neighbours take.
    cache : dict
        Facts about the graph that batches computed.
    """

    topology: _core.Topology
    seeds: VertexRows
    degrees: Callable[[VertexRows], Tensor]
    own: slice
    num_edges: int
    folder: Path | None = None
    rank: int = 0
    processes: int = 1
    device: torch.device = CPU
    edge_attr: Tensor | None = None
    cache: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def trained(self) -> npt.NDArray[np.bool_]:
        """Whether each vertex is a training vertex."""
        mask = np.zeros(self.topology.num_vertices, bool)
        mask[self.seeds] = True
        return mask

    def dealt(self, size: int, random: np.random.Generator) -> Iterator[VertexRows]:
        """Yield the own training vertices of each step of an epoch, ``size`` of all processes, in random order."""
        seeds = random.permutation(self.seeds)
        for first in range(0, len(seeds), size):
            some = seeds[first : first + size]
            yield some[(some >= self.own.start) & (some < self.own.stop)]

    def graph(self, sample: _core.SampledBatch) -> Rows:
        """Return what was sampled as rows."""
        edge_attr = None
        if self.edge_attr is not None and sample.edge_rows is not None:
            edge_attr = self.edge_attr[torch.from_numpy(sample.edge_rows).to(self.edge_attr.device)]
        return Rows(
            sample.indptr,
            sample.indices,
            lambda: self.degrees(sample.rows),
            torch.from_numpy(sample.n_id),
            sources=len(sample.rows),
            device=self.device,
            edge_attr=edge_attr,
        )


STEPS = 10
"""Default number of batches per epoch for models that train on sampled graphs."""


@dataclass
class Batch:
    """The graphs of the layers, and the outputs that count.

    Attributes
    ----------
    graphs : sequence of Rows
        One for each layer.
    inputs : numpy.ndarray or None
        uint32: vertices of the input rows. None: all.
    rows : torch.Tensor
        Rows of the output that are targets.
    targets : numpy.ndarray
        uint32: vertices of these outputs.
    count : float
        The loss is the sum of the weighted losses of the targets, divided by the sum of the counts, of all processes.
    weights : torch.Tensor or None
        Factors of the losses of the targets. None: 1.
    """

    graphs: Sequence[Rows]
    inputs: VertexRows | None
    rows: Tensor
    targets: VertexRows
    count: float
    weights: Tensor | None = None

    def weighted(self, losses: Tensor) -> Tensor:
        """Return the losses of the targets, weighted."""
        return weighted(losses, self.weights)


def weighted(losses: Tensor, weights: Tensor | None) -> Tensor:
    """Return losses times their factors, if there are any."""
    return losses if weights is None else losses * weights.to(losses)


def size_of_batches(seeds: int, batch_size: int | None) -> int:
    """Return the number of training vertices per step."""
    return batch_size or max(1, -(-seeds // STEPS))


def induced(field: Field, members: VertexRows, layers: int) -> tuple[Batch, npt.NDArray[np.int64]]:
    """Return the batch of the training vertices among some vertices, over the edges between these, and their ids."""
    sample = field.topology.subgraph(members, edge_ids=True)
    rows = np.flatnonzero(field.trained[members])
    targets = members[rows]
    graphs = [field.graph(sample)] * layers
    assert sample.e_id is not None
    return Batch(graphs, members, torch.from_numpy(rows), targets, len(rows)), sample.e_id


def _neighbours(field: Field, options: Options, seed: int) -> Iterator[Batch]:
    """Yield the batches of one epoch: vertices with sampled neighbours (Hamilton et al., NeurIPS 2017)."""
    edge_rows = field.edge_attr is not None
    sampler = _core.Sampler(field.topology, list(options.fanouts), seed=seed, edge_rows=edge_rows)
    steps = list(field.dealt(options.batch_size or len(field.seeds), np.random.default_rng(seed)))
    offsets = np.cumsum([0, *map(len, steps)])
    sampled = sampler.batches(np.concatenate(steps), offsets)
    try:
        for targets, sample in zip(steps, sampled, strict=True):
            graphs = field.graph(sample).by_layer(sample.num_sampled_nodes)
            count = len(targets)
            yield Batch(graphs, sample.rows, torch.arange(count), targets, count)
    finally:
        sampled.close()


CLUSTERS = 10
"""Clusters per group. With several, the edges between clusters take part, too (section 3.2)."""

VERTICES = 50
"""Least number of vertices of a cluster. Smaller ones would have hardly any edges inside."""


def _unions(field: Field, options: Options, seed: int) -> Iterator[Batch]:
    """Yield the batches of one epoch: unions of clusters."""
    groups = -(-len(field.seeds) // size_of_batches(len(field.seeds), options.batch_size))
    clusters = _clusters(field, groups, options.seed)
    own = np.arange(field.own.start, field.own.stop, dtype=np.uint32)
    shuffled = np.random.default_rng([seed, field.own.start]).permutation(int(clusters.max(initial=-1)) + 1)
    group_of = (shuffled % groups)[clusters]
    sizes = np.bincount(group_of, minlength=groups)
    for members in np.split(own[np.argsort(group_of, kind="stable")], np.cumsum(sizes)[:-1]):
        yield induced(field, members, options.layers)[0]


def _clusters(field: Field, groups: int, seed: int) -> npt.NDArray[np.int32]:
    """Return the cluster of each own vertex."""
    key = ("clusters", groups, seed)
    if key not in field.cache:
        own = np.arange(field.own.start, field.own.stop, dtype=np.uint32)
        field.cache[key] = _clustered(field, own, groups, seed)
    clusters: npt.NDArray[np.int32] = field.cache[key]
    return clusters


def _clustered(field: Field, own: VertexRows, groups: int, seed: int) -> npt.NDArray[np.int32]:
    if not len(own):
        return np.empty(0, np.int32)
    count = max(groups, min(CLUSTERS * groups, len(own) // VERTICES))
    inside = field.topology.subgraph(own)
    targets = np.repeat(np.arange(len(own), dtype=np.uint32), np.diff(inside.indptr))
    edges = np.stack([inside.indices.astype(np.uint32), targets], axis=1)
    threads = torch.get_num_threads()
    graph = open_graph(edges, num_vertices=len(own), threads=threads)
    found = partitioners.spring(graph, min(count, len(own)), seed=seed, threads=threads)
    return found.assignment.astype(np.int32)


COVERAGE = 50
"""Value of the authors' code."""


class Counts:
    """How many of the sampled graphs hold each vertex and each edge, of all processes.

    Attributes
    ----------
    steps : int
        Number of steps in which they were sampled.
    """

    def __init__(self, field: Field, size: int, options: Options) -> None:
        self.steps = 0
        vertices = _zeros(field, "vertices", field.topology.num_vertices)
        edges = _zeros(field, "edges", field.num_edges)
        for epoch in range(COVERAGE):
            for members in _samples(field, size, options.layers, [options.seed, epoch]):
                vertices[members] += 1
                edges[induced(field, members, 0)[1]] += 1
                self.steps += 1
        self._field, self._mine = field, {"vertices": vertices, "edges": edges}
        if field.folder is not None:
            barrier()

    def of_vertices(self, rows: VertexRows) -> Tensor:
        """Return how many graphs hold each vertex, at least 1."""
        return _summed(self._of_all["vertices"], rows)

    def of_edges(self, ids: npt.NDArray[np.int64]) -> Tensor:
        """Return how many graphs hold each edge, at least 1."""
        return _summed(self._of_all["edges"], ids)

    @cached_property
    def _of_all(self) -> dict[str, list[npt.NDArray[np.uint32]]]:
        """The counts of each process. Together these are what is counted."""
        folder, processes = self._field.folder, range(self._field.processes)
        if folder is None:
            return {name: [counts] for name, counts in self._mine.items()}
        return {
            name: [np.load(_file(folder, name, of), mmap_mode="r") for of in processes] for name in self._mine
        }


def _walks(field: Field, options: Options, seed: int) -> Iterator[Batch]:
    """Yield the batches of one epoch: graphs sampled by random walks."""
    size = size_of_batches(len(field.seeds), options.batch_size)
    counts = _counts(field, size, options)
    for members in _samples(field, size, options.layers, [seed]):
        batch, edges = induced(field, members, options.layers)
        graph = batch.graphs[0]
        # A layer takes the mean over the sampled edges. These factors turn it into their sum divided by the in-degree
        # in the graph.
        inside = torch.from_numpy(np.diff(graph.indptr))
        shares = inside / graph.source_degree.cpu() * counts.of_vertices(members)
        weighted = graph.with_weights(shares.repeat_interleave(inside) / counts.of_edges(edges))
        batch.graphs = [weighted] * options.layers
        # The expected sum over the targets is that over all training vertices.
        batch.weights = counts.steps / counts.of_vertices(batch.targets)
        batch.count = len(field.seeds) / field.processes
        yield batch


def _samples(field: Field, size: int, length: int, seed: list[int]) -> Iterator[VertexRows]:
    """Yield the vertices of the sampled graphs of an epoch, ascending."""
    random = np.random.default_rng(seed)
    of_walks = int(random.integers(2**62))
    for step, roots in enumerate(field.dealt(size, random)):
        yield np.unique(field.topology.walks(roots, length, seed=of_walks, step=step))


def _counts(field: Field, size: int, options: Options) -> Counts:
    key = ("saint", size, options.layers, options.seed)
    if key not in field.cache:
        field.cache[key] = Counts(field, size, options)
    counts: Counts = field.cache[key]
    return counts


def _zeros(field: Field, name: str, size: int) -> npt.NDArray[np.uint32]:
    """Return the counts of this process: in memory if it is alone, else in a file."""
    if field.folder is None:
        return np.zeros(size, np.uint32)
    return created(_file(field.folder, name, field.rank), np.uint32, (size,))


def _file(folder: Path, name: str, of: int) -> Path:
    return folder / f"{name}-{of}.npy"


def _summed(counts: list[npt.NDArray[np.uint32]], at: npt.NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.maximum(sum(each[at] for each in counts), 1).astype(np.float32))


_KINDS = {NEIGHBOUR: _neighbours, CLUSTER: _unions, SAINT: _walks}


def batches(field: Field, options: Options, seed: int) -> Iterator[Batch]:
    """Yield the batches of one epoch, of the kind that the model needs. Each process has the same number of them.

    The same seed, process and number of threads give the same batches.
    """
    if not len(field.seeds):
        return iter(())
    return _KINDS[sampling_of(options.model)](field, options, seed)
