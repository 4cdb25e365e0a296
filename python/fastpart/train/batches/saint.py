"""Graphs sampled by random walks (Zeng et al., "GraphSAINT", ICLR 2020, sections 3.2 and 3.3).

In each epoch every training vertex is once the root of a walk with as many steps as there are layers. A step trains on
the subgraph that ``batch_size`` walks induce, or on one in each process, of the walks whose roots it owns. Before the
first epoch, the graphs of ``COVERAGE`` epochs are sampled, in N steps. C_v of them hold the vertex v, and C_uv the edge
(u, v). The loss of v is divided by the probability C_v / N, and the share of an edge in the mean by C_uv / C_v. So both
are right in expectation. The counts take 4 bytes per vertex and edge.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..options import Options
from ..ranks import barrier
from .batch import Batch, induced, size_of_batches
from .field import Field, VertexRows

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


def batches(field: Field, options: Options, seed: int) -> Iterator[Batch]:
    """Yield the batches of one epoch."""
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
    zeros: npt.NDArray[np.uint32] = np.lib.format.open_memmap(
        _file(field.folder, name, field.rank), "w+", np.dtype(np.uint32), (size,)
    )
    return zeros


def _file(folder: Path, name: str, of: int) -> Path:
    return folder / f"{name}-{of}.npy"


def _summed(counts: list[npt.NDArray[np.uint32]], at: npt.NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.maximum(sum(each[at] for each in counts), 1).astype(np.float32))
