"""The batch of a worker in each step: sampled neighbours, or a sampled graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ... import _core
from ...core.parameters import RowsIo
from ...errors import ParameterError, arg
from ...loading import Batch as Loaded
from ...loading import Loader, Trace
from ...loading.fetching import Fetching
from ...loading.remote import RowFiles, fetching_of
from ...partitions.loader_options import FetchingOptions
from ...partitions.seeds import owner_of, seeds_of
from ...partitions.types import ONLY_RELATION, ONLY_TYPE
from ..batches import Batch, Field, VertexRows, batches
from ..clock import Clock
from ..data import Dataset
from ..graphs.rows import Rows
from ..method_options import ByteGNNOptions, SampledOptions
from ..options import Options
from ..ranks import device, rank, total, world_size
from ..seeds import mixed


@dataclass(kw_only=True)
class Step(Batch):
    """The batch of a step that one worker computes, with its rows. It may have no targets.

    Attributes
    ----------
    x : torch.Tensor
        Features of the input rows.
    y : torch.Tensor
        Labels of the targets.
    """

    x: Tensor
    y: Tensor
    inputs: VertexRows

    def inputs_as(self, **numbers: Any) -> Tensor:
        """Return the features of the input rows in numbers of a type, on a device."""
        return self.x.to(**numbers)

    def moved(self, move: Callable[[Tensor], Tensor]) -> Step:
        """Return the step with tensors that were moved."""
        weights = None if self.weights is None else move(self.weights)
        return replace(self, x=move(self.x), y=move(self.y), rows=move(self.rows), weights=weights)

    @property
    def tensors(self) -> list[Tensor]:
        """All that :meth:`moved` moves."""
        return [self.x, self.y, self.rows, *([] if self.weights is None else [self.weights])]


class StepSource(Protocol):
    """Where the steps of a worker come from."""

    fetching: Any
    """Where features come from, all of them or those of each type."""
    edge_fetching: Fetching | None

    def epoch(self, number: int) -> Iterator[Any]:
        """Yield the steps of an epoch."""

    def read_seconds(self) -> dict[str, float]:
        """Return the seconds of making the steps since the last call, by what was done."""

    def own_rows(self, step: Any, owned: npt.NDArray[np.bool_]) -> int:
        """Return how many rows of features of a step are of own parts, given their mask."""

    def read_counts(self) -> dict[str, int]:
        """Return what the steps needed since the last call, and what was read for them."""

    def close(self) -> None:
        """End the connections to other workers."""


AnyStep = TypeVar("AnyStep")


def edge_fetching_of(loader: Loader) -> Fetching | None:
    """Return where the features of in-edges of a graph without types come from."""
    found = loader.edge_fetching
    return None if found is None else found.of_relation.get(ONLY_RELATION)


class LoaderSteps(ABC, Generic[AnyStep]):
    """The steps of a loader, of a graph with types or without."""

    def __init__(self, loader: Any) -> None:
        assert isinstance(loader, Loader)
        self._loader, self.edge_fetching = loader, edge_fetching_of(loader)

    @abstractmethod
    def _step(self, batch: Any) -> AnyStep:
        """Return the step of a batch."""

    def limit(self, free_bytes: int) -> None:
        """Let batches take no more bytes before they are used."""
        self._loader.limit(free_bytes)

    def epoch(self, number: int) -> Iterator[AnyStep]:
        """Yield the steps of an epoch."""
        self._loader.set_epoch(number)
        return map(self._step, self._loader)

    def read_seconds(self) -> dict[str, float]:
        """Return the seconds of making the steps since the last call, by what was done."""
        return self._loader.read_seconds()

    def read_counts(self) -> dict[str, int]:
        """Return what the steps needed since the last call, and what was read for them."""
        return self._loader.read_counts()

    def close(self) -> None:
        """End the connections to other workers."""
        self._loader.close()


class LoadedSteps(LoaderSteps[Step]):
    """The steps of a loader of a graph without types."""

    def __init__(self, dataset: Dataset, loader: Any) -> None:
        super().__init__(loader)
        self._topology, self.fetching = dataset.topology, loader.fetching.of_type[ONLY_TYPE]

    def own_rows(self, step: Step, owned: npt.NDArray[np.bool_]) -> int:
        """Return how many rows of features of a step are of own parts."""
        return rows_of_own(step, owned, self._topology)

    def _step(self, batch: Loaded) -> Step:
        whole = Rows(
            batch.indptr.numpy(),
            batch.indices.numpy(),
            degrees_of(batch, self._topology),
            batch.n_id,
            sources=batch.num_nodes,
            device=device(),
            edge_attr=batch.edge_attr,
        )
        assert batch.x is not None
        assert batch.y is not None
        graphs = whole.by_layer(batch.num_sampled_nodes)
        return Step(
            graphs=graphs,
            inputs=batch.rows,
            rows=torch.arange(batch.batch_size),
            targets=batch.rows[: batch.batch_size],
            count=batch.global_size,
            x=batch.x,
            y=batch.y,
        )


def degrees_of(batch: Loaded, topology: _core.Topology) -> Callable[[], Tensor]:
    """Return what finds the in-degrees of the nodes in the whole graph."""
    if batch.seed_time is not None:
        return no_degrees
    return lambda: torch.from_numpy(topology.degrees_of(batch.rows))


def no_degrees() -> Tensor:
    """Raise an error in the place of in-degrees in temporal batches."""
    raise ParameterError(
        "model: it needs in-degrees of the whole graph, which count edges that came later. Use another one with "
        f"{arg('temporal')}, such as graphsage, gat or gatv2"
    )


def rows_of_own(step: Step, owned: npt.NDArray[np.bool_], topology: _core.Topology) -> int:
    """Return how many input rows of a step are of own parts, given their mask."""
    return int(np.count_nonzero(owned[owner_of(step.inputs, topology.starts)]))


class Neighbours(LoadedSteps):
    """Training vertices with sampled neighbours."""

    def __init__(
        self,
        dataset: Dataset,
        options: SampledOptions | ByteGNNOptions,
        free_bytes: int,
        edge_attr: bool,
        trace: Trace | None,
    ) -> None:
        scheduled = isinstance(options, ByteGNNOptions)
        loader = dataset.partition.loader(
            "train",
            fanouts=options.fanouts,
            batch_size=options.batch_size or dataset.num_train,
            seed=options.seed,
            sampling=options.sampling,
            temporal=None if isinstance(options, ByteGNNOptions) else options.temporal,
            edge_ids=edge_attr,
            ahead=options.ahead,
            timeout=options.timeout,
            io=options.io,
            cache=options.cache,
            cache_by=options.cache_by,
            scheduled=scheduled,
            threads=torch.get_num_threads() if scheduled else 1,
            trace=trace,
            plan=options.plan,
        )
        super().__init__(dataset, loader)
        self._loader.use_until(options.epochs)
        if options.plan is None:
            self._loader.keep(device(), options.resident)
        self.limit(free_bytes)


class Graphs:
    """Graphs sampled by clusters or by walks, one in each worker."""

    def __init__(
        self,
        dataset: Dataset,
        options: Options,
        own: npt.NDArray[np.int64],
        folder: Path,
        owners: npt.NDArray[np.int64],
        io: RowsIo | None,
    ) -> None:
        topology, manifest = dataset.topology, dataset.manifest
        seeds = seeds_of("train", dataset.partition)
        assert seeds.labels is not None
        order = np.argsort(seeds.rows)
        self._sorted, self._labels = seeds.rows[order], seeds.labels[order]
        self._options, self._clock, self._topology = options, Clock(), topology
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
        self.fetching = fetching_of(
            RowFiles.of_vertices(dataset.partition), owners, rank(), FetchingOptions(remote="maps", io=io)
        )
        self.edge_fetching: Fetching | None = None

    def read_seconds(self) -> dict[str, float]:
        """Return the seconds of making the steps since the last call, by what was done."""
        seconds = self._clock.read()
        return {step: seconds[step] for step in ("sampling", "fetching")}

    def own_rows(self, step: Step, owned: npt.NDArray[np.bool_]) -> int:
        """Return how many rows of features of a step are of own parts."""
        return rows_of_own(step, owned, self._topology)

    def read_counts(self) -> dict[str, int]:
        """Return what the steps needed since the last call, and what was read for them."""
        return self.fetching.read_counts()

    def close(self) -> None:
        """End the connections to other workers."""
        self.fetching.close()

    def epoch(self, number: int) -> Iterator[Step]:
        """Yield the steps of an epoch."""
        graphs = batches(self._field, self._options, mixed(self._options.seed, number))
        while True:
            with self._clock.timed("sampling"):
                batch = next(graphs, None)
            if batch is None:
                return
            assert batch.inputs is not None
            with self._clock.timed("fetching"):
                x = torch.from_numpy(self.fetching.rows(batch.inputs))
            self.fetching.count(batch.inputs)
            y = torch.from_numpy(self._labels[np.searchsorted(self._sorted, batch.targets)])
            count = total(torch.tensor([batch.count], dtype=torch.float64)).item()
            yield Step(**{**vars(batch), "count": count}, x=x, y=y)
