"""Where batches are sampled: a graph in memory, or all parts of a directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ... import _core
from ..graphs.kernels import CPU
from ..graphs.rows import Rows

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
