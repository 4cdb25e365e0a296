"""Samples of rows in memory: neighbours, induced subgraphs, random walks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from .rows import Rows

Vertices = npt.NDArray[np.int64]


def induced(graph: Rows, members: Vertices) -> tuple[Rows, Vertices]:
    """Return the subgraph of some vertices, which are numbered in their order, and the numbers of its edges."""
    place = np.full(graph.num_targets, -1)
    place[members] = np.arange(len(members))
    edges, counts = _edges(graph, members)
    inside = place[graph.indices[edges]] >= 0
    ends = np.repeat(np.arange(len(members)), counts)[inside]
    edges = edges[inside]
    indptr = np.concatenate(([0], np.cumsum(np.bincount(ends, minlength=len(members)))))
    return _part(graph, indptr, place[graph.indices[edges]], members), edges


def walked(graph: Rows, roots: Vertices, steps: int, random: np.random.Generator) -> Vertices:
    """Return the vertices of random walks against the edges, ascending. A walk ends where no edge leads to."""
    at, seen = roots, [roots]
    for _ in range(steps):
        counts = graph.indptr[at + 1] - graph.indptr[at]
        at, counts = at[counts > 0], counts[counts > 0]
        at = graph.indices[graph.indptr[at] + random.integers(counts)].astype(np.int64)
        seen.append(at)
    return np.unique(np.concatenate(seen))


def neighbours(
    graph: Rows, seeds: Vertices, fanouts: Sequence[int], random: np.random.Generator
) -> tuple[list[Rows], Vertices]:
    """Return one neighbourhood for each layer, and the vertices of the first. Its first vertices are the seeds.

    The neighbours of a vertex are drawn uniformly without replacement, all of them if it has no more than the fanout
    or that is -1. The last fanout is that of the seeds.
    """
    vertices, kept, sizes = seeds, [], [len(seeds)]
    for fanout in reversed(fanouts):
        edges, counts = _edges(graph, vertices[sizes[-2] if len(sizes) > 1 else 0 :])
        starts = np.concatenate(([0], np.cumsum(counts)))
        ends = np.repeat(np.arange(len(counts)), counts)
        if fanout >= 0:
            order = np.lexsort((random.random(len(edges)), ends))  # within each row at random
            order = order[np.arange(len(edges)) - starts[ends] < fanout]
            edges, counts = edges[np.sort(order)], np.minimum(counts, fanout)
        kept.append((edges, counts))
        sources = graph.indices[edges].astype(np.int64)
        vertices = np.concatenate([vertices, np.setdiff1d(sources, vertices)])
        sizes.append(len(vertices))
    place = np.full(graph.num_targets, -1)
    place[vertices] = np.arange(len(vertices))
    indptr = np.concatenate(([0], np.cumsum(np.concatenate([counts for _, counts in kept]))))
    indices = place[graph.indices[np.concatenate([edges for edges, _ in kept])]]
    whole = _part(graph, indptr, indices, vertices)
    return whole.by_layer(np.diff(sizes, prepend=0).tolist()), vertices


def _edges(graph: Rows, vertices: Vertices) -> tuple[Vertices, Vertices]:
    """Return the numbers of the in-edges of some vertices, and how many each has."""
    starts = graph.indptr[vertices]
    counts = graph.indptr[vertices + 1] - starts
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + counts, counts), counts


def _part(graph: Rows, indptr: Vertices, indices: Vertices, vertices: Vertices) -> Rows:
    ids = torch.from_numpy(vertices)
    names = None if graph.vertices is None else graph.vertices[ids]
    return Rows(indptr, indices, graph.source_degree[ids], names)
