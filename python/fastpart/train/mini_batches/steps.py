"""What a worker trains on in each step: sampled neighbours, or a sampled graph."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ...loading import Batch, Loader
from ...loading.remote import fetching_of
from ...loading.seeds import seeds_of
from ..batches import Field, VertexRows, batches
from ..config import Options
from ..data import Dataset
from ..ranks import device, rank, total, world_size
from ..rows import Rows
from ..seeds import mixed


@dataclass
class Step:
    """The share of a worker in a step.

    Attributes
    ----------
    graphs : sequence of Rows
        One for each layer.
    x : torch.Tensor
        Features of the vertices of the first layer.
    inputs : numpy.ndarray
        uint32: rows of these vertices in the topology.
    rows : torch.Tensor
        Rows of the output that are targets. There may be none.
    y : torch.Tensor
        Labels of the targets.
    count : float
        The loss is the sum of the weighted losses of the targets of all workers, divided by this.
    weights : torch.Tensor or None
        Factors of the losses of the targets. None: 1.
    """

    graphs: Sequence[Rows]
    x: Tensor
    inputs: VertexRows
    rows: Tensor
    y: Tensor
    count: float
    weights: Tensor | None = None


class Neighbours:
    """Training vertices with sampled neighbours."""

    def __init__(self, dataset: Dataset, options: Options, how: dict[str, Any], edge_attr: bool) -> None:
        self._topology = dataset.topology
        loader = dataset.partition.loader(
            "train",
            fanouts=options.fanouts,
            batch_size=options.batch_size or dataset.num_train,
            seed=options.seed,
            sampling=how["draw"],
            edge_ids=edge_attr,
            ahead=how["ahead"],
            timeout=how["timeout"],
            cache=how["cache"],
            hot=how["hot"],
        )
        assert isinstance(loader, Loader)
        self._loader, self.fetching = loader, loader.fetching

    def epoch(self, number: int) -> Iterator[Step]:
        """Yield the steps of an epoch."""
        self._loader.set_epoch(number)
        return map(self._step, self._loader)

    def _step(self, batch: Batch) -> Step:
        whole = Rows(
            batch.indptr.numpy(),
            batch.indices.numpy(),
            lambda: torch.from_numpy(self._topology.degrees_of(batch.rows)),
            batch.n_id,
            sources=batch.num_nodes,
            device=device(),
            edge_attr=batch.edge_attr,
        )
        assert batch.x is not None
        assert batch.y is not None
        graphs = whole.by_layer(batch.num_sampled_nodes)
        return Step(graphs, batch.x, batch.rows, torch.arange(batch.batch_size), batch.y, batch.global_size)


class Graphs:
    """Graphs sampled by clusters or by walks, one in each worker."""

    def __init__(
        self,
        dataset: Dataset,
        options: Options,
        own: npt.NDArray[np.int64],
        folder: Path,
        owners: npt.NDArray[np.int64],
    ) -> None:
        topology, manifest = dataset.topology, dataset.manifest
        seeds = seeds_of("train", dataset.partition.parts, topology, manifest["splits"])
        assert seeds.labels is not None
        order = np.argsort(seeds.rows)
        self._sorted, self._labels = seeds.rows[order], seeds.labels[order]
        self._options = options
        self._field = Field(
            topology,
            seeds.rows,
            lambda rows: torch.from_numpy(topology.degrees_of(rows)),
            slice(int(topology.starts[own[0]]), int(topology.starts[own[-1] + 1])),
            int(manifest["m"]) * (1 if manifest["directedness"] == "directed" else 2),
            folder,
            rank(),
            world_size(),
            device(),
        )
        self.fetching = fetching_of(dataset.partition, owners, rank(), "maps", False, math.inf)

    def epoch(self, number: int) -> Iterator[Step]:
        """Yield the steps of an epoch."""
        for batch in batches(self._field, self._options, mixed(self._options.seed, number)):
            assert batch.inputs is not None
            assert self.fetching.features is not None
            x = torch.from_numpy(self.fetching.features.gather(batch.inputs))
            self.fetching.count(batch.inputs)
            y = torch.from_numpy(self._labels[np.searchsorted(self._sorted, batch.targets)])
            count = total(torch.tensor([batch.count], dtype=torch.float64)).item()
            yield Step(batch.graphs, x, batch.inputs, batch.rows, y, count, batch.weights)
