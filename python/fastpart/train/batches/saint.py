"""Graphs sampled by random walks (Zeng et al., "GraphSAINT", ICLR 2020, sections 3.2 and 3.3).

In each epoch every training vertex is once the root of a walk with as many steps as there are layers. A step trains on
the subgraph that ``batch_size`` walks induce. Before the first epoch, N graphs are sampled, which cover the roots
``COVERAGE`` times. C_v of them hold the vertex v, and C_uv the edge (u, v). The loss of v is divided by the probability
C_v / N, and the share of an edge in the mean by C_uv / C_v. So both are right in expectation. The counts stay in
memory, 4 bytes per vertex and edge, even of parts that do not.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from ..config import Options
from ..data import LocalGraph
from ..rows import Rows
from ..sampling import Vertices, induced, walked
from .batch import Batch, random_of, size_of_batches

COVERAGE = 50
"""As in the authors' code."""


def batches(local: LocalGraph, options: Options, generator: torch.Generator) -> Iterator[Batch]:
    """Yield the batches of one epoch."""
    seeds = local.splits["train"]
    if not len(seeds):
        return
    size = size_of_batches(len(seeds), options.batch_size)
    of_vertices, of_edges = _inverse_probabilities(local, seeds, size, options)
    trained = torch.zeros(local.graph.num_targets, dtype=torch.bool)
    trained[seeds] = True
    degree = local.graph.source_degree.float()
    for members in _samples(local.graph, seeds, size, options.layers, generator):
        graph, edges = induced(local.graph, members)
        ids = torch.from_numpy(members)
        rows = trained[ids].nonzero().squeeze(1)
        # A layer takes the mean over the sampled edges. These factors turn it into their sum divided by the in-degree
        # in the graph.
        counts = torch.from_numpy(np.diff(graph.indptr))
        shares = (counts / degree[ids]).repeat_interleave(counts)
        # Makes the expected mean over the targets equal to the mean over all training vertices.
        targets = ids[rows]
        weights = of_vertices[targets] * len(rows) / len(seeds)
        weighted = graph.with_weights(of_edges[torch.from_numpy(edges)] * shares)
        yield Batch([weighted] * options.layers, ids, rows, targets, weights)


def _samples(
    graph: Rows, seeds: Tensor, size: int, steps: int, generator: torch.Generator
) -> Iterator[Vertices]:
    """Yield the vertices of the sampled graphs of an epoch."""
    random = random_of(generator)
    for some in torch.randperm(len(seeds), generator=generator).split(size):
        yield walked(graph, seeds[some].numpy(), steps, random)


def _inverse_probabilities(
    local: LocalGraph, seeds: Tensor, size: int, options: Options
) -> tuple[Tensor, Tensor]:
    """Return 1 / P(a sampled graph holds the vertex), and 1 / P(it holds the edge, given the edge's end)."""
    key = ("saint", size, options.layers, options.seed)
    if key not in local.cache:
        local.cache[key] = _count(local.graph, seeds, size, options)
    probabilities: tuple[Tensor, Tensor] = local.cache[key]
    return probabilities


def _count(graph: Rows, seeds: Tensor, size: int, options: Options) -> tuple[Tensor, Tensor]:
    of_vertices = torch.zeros(graph.num_targets)
    of_edges = torch.zeros(len(graph.indices))
    generator = torch.Generator().manual_seed(options.seed)
    samples = 0
    for _ in range(COVERAGE):
        for members in _samples(graph, seeds, size, options.layers, generator):
            of_vertices[torch.from_numpy(members)] += 1
            of_edges[torch.from_numpy(induced(graph, members)[1])] += 1
            samples += 1
    of_vertices.clamp_(min=1)
    at_ends = of_vertices.repeat_interleave(torch.from_numpy(np.diff(graph.indptr)))
    return samples / of_vertices, at_ends / of_edges.clamp_(min=1)
