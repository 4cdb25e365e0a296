"""The batch of a worker in each step, on its device: sampled neighbours, or a sampled graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .... import _core
from ....core.parameters import RowsIo
from ....errors import ParameterError, arg
from ....loading import Batch as Loaded
from ....loading import Loader, Trace, TypedBatch
from ....loading.fetching import Fetching
from ....loading.remote import fetching_of
from ....loading.row_files import RowFiles
from ....partitions.loader_options import FetchingOptions
from ....partitions.seeds import owner_of, seeds_of
from ....partitions.types import ONLY_RELATION, ONLY_TYPE, type_names
from ...data.dataset import Dataset
from ...graphs.rows import layers_of
from ...learning.batches import Field, VertexRows, batches, weighted
from ...method_options import ByteGNNOptions, SampledOptions
from ...options import Options, mixed
from ...ranks import Clock, device, rank, total, world_size


class Movable(Protocol):
    """A step whose tensors can be moved."""

    def moved(self, move: Callable[[Tensor], Tensor]) -> Self:
        """Return the step with tensors that were moved."""

    @property
    def tensors(self) -> list[Tensor]:
        """All that :meth:`moved` moves."""


AnyStep = TypeVar("AnyStep", bound=Movable)


def on_device(steps: Iterator[AnyStep], device: torch.device) -> Iterator[AnyStep]:
    """Yield the steps with their tensors on a device.

    On a GPU, the features of the next step are copied while this one computes: from page-locked memory, in a stream of
    their own.
    """
    if device.type != "cuda":
        yield from steps
        return
    copying, pending = torch.cuda.Stream(device), None
    while True:
        with torch.cuda.stream(copying):  # rows that stay on the GPU are put into batches there, too
            step = next(steps, None)
            moved = None if step is None else _moved(step, device)
        if pending is not None:
            yield _arrived(pending, copying)
        if moved is None:
            return
        pending = moved


def _moved(step: AnyStep, device: torch.device) -> AnyStep:
    def move(tensor: Tensor) -> Tensor:
        return tensor if tensor.is_cuda else tensor.pin_memory().to(device, non_blocking=True)

    return step.moved(move)


def _arrived(step: AnyStep, copying: torch.cuda.Stream) -> AnyStep:
    """Let the stream that computes wait for the copies, whose memory is not used again before it is done with them."""
    computing = torch.cuda.current_stream()
    computing.wait_stream(copying)
    for tensor in step.tensors:
        tensor.record_stream(computing)
    return step


@dataclass(kw_only=True)
class Step:
    """The batch of a step that one worker computes, with its rows. It may have no targets.

    Attributes
    ----------
    graphs : list
        In-edges for each layer: :class:`.Rows`, or :class:`.TypedRows` in a graph with types.
    inputs : dict of numpy.ndarray
        uint32: row of each input among those of its type.
    x : dict of torch.Tensor
        Features of the input rows of each type that has some.
    y : torch.Tensor
        Labels of the targets.
    rows : torch.Tensor
        Rows of the output that are targets.
    count : float
        The loss is the sum of the weighted losses of the targets, divided by the sum of the counts, of all processes.
    weights : torch.Tensor or None
        Factors of the losses of the targets. None: 1.
    """

    graphs: Sequence[Any]
    inputs: dict[str, VertexRows]
    x: dict[str, Tensor]
    y: Tensor
    rows: Tensor
    count: float
    weights: Tensor | None = None

    def moved(self, move: Callable[[Tensor], Tensor]) -> Self:
        """Return the step with tensors that were moved."""
        x = {name: move(rows) for name, rows in self.x.items()}
        weights = None if self.weights is None else move(self.weights)
        return replace(self, x=x, y=move(self.y), rows=move(self.rows), weights=weights)

    @property
    def tensors(self) -> list[Tensor]:
        """All that :meth:`moved` moves."""
        return [*self.x.values(), self.y, self.rows, *([] if self.weights is None else [self.weights])]

    def weighted(self, losses: Tensor) -> Tensor:
        """Return the losses of the targets, weighted."""
        return weighted(losses, self.weights)


class StepSource(Protocol):
    """Where the steps of a worker come from."""

    fetching: Any
    """Where features come from, all of them or by type."""
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


def edge_fetching_of(loader: Loader) -> Fetching | None:
    """Return where the features of in-edges of a graph without types come from."""
    found = loader.edge_fetching
    return None if found is None else found.of_relation.get(ONLY_RELATION)


class LoaderSteps:
    """The steps of a loader."""

    def __init__(self, dataset: Dataset, loader: Any) -> None:
        self._loader, self._topology = loader, dataset.topology
        self.fetching, self.edge_fetching = loader.fetching, edge_fetching_of(loader)
        self._starts = starts_of(dataset)

    def limit(self, free_bytes: int) -> None:
        """Let batches take no more bytes before they are used."""
        self._loader.limit(free_bytes)

    def epoch(self, number: int) -> Iterator[Step]:
        """Yield the steps of an epoch."""
        self._loader.set_epoch(number)
        return map(self._step, self._loader)

    def read_seconds(self) -> dict[str, float]:
        """Return the seconds of making the steps since the last call, by what was done."""
        seconds: dict[str, float] = self._loader.read_seconds()
        return seconds

    def own_rows(self, step: Step, owned: npt.NDArray[np.bool_]) -> int:
        """Return how many input rows of a step are of own parts."""
        return rows_of_own(step, owned, self._starts)

    def read_counts(self) -> dict[str, int]:
        """Return what the steps needed since the last call, and what was read for them."""
        counts: dict[str, int] = self._loader.read_counts()
        return counts

    def close(self) -> None:
        """End the connections to other workers."""
        self._loader.close()

    def _step(self, batch: Loaded | TypedBatch) -> Step:
        return step_of(batch, self._topology)


def step_of(batch: Loaded | TypedBatch, topology: _core.Topology) -> Step:
    """Return the step of a batch with labels."""
    assert batch.y is not None
    return Step(
        graphs=layers_of(batch, device(), degrees_of(batch, topology) if isinstance(batch, Loaded) else None),
        inputs=batch._by_name("rows"),
        rows=torch.arange(batch.batch_size),
        count=batch.global_size,
        x=batch._by_name("x"),
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


def starts_of(dataset: Dataset) -> dict[str, npt.NDArray[np.int64]]:
    """Return the first row of each part by type, among the rows of the type, and their number."""
    partition = dataset.partition
    return dict(zip(type_names(partition), partition._rows_by_type.starts, strict=True))


def rows_of_own(step: Step, owned: npt.NDArray[np.bool_], starts: Mapping[str, npt.NDArray[np.int64]]) -> int:
    """Return how many input rows of a step are of own parts, given their mask."""
    return sum(int(np.count_nonzero(owned[owner_of(step.inputs[name], starts[name])])) for name in step.x)


class Neighbours(LoaderSteps):
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
            fanouts=dataset.fanouts(options),
            input=dataset.target,
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
        if options.plan is None:
            self._loader.keep(device(), options.resident)
        else:
            self._loader.use_until(options.epochs)
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
        self._options, self._clock, self._starts = options, Clock(), starts_of(dataset)
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
        return rows_of_own(step, owned, self._starts)

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
            yield Step(
                graphs=batch.graphs,
                inputs={ONLY_TYPE: batch.inputs},
                x={ONLY_TYPE: x},
                y=y,
                rows=batch.rows,
                count=count,
                weights=batch.weights,
            )
