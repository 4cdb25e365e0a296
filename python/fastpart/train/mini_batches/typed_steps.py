"""The batch of a worker in each step over a typed graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ...loading import Loader, TypedBatch
from ...loading.fetching import NodeFetching
from ...partitions.seeds import owner_of
from ..graphs.typed_rows import TypedRows
from ..method_options import SampledOptions
from ..ranks import device
from ..typed_data import TypedDataset
from .steps import LoaderSteps


@dataclass(kw_only=True)
class TypedStep:
    """The batch of a step that one worker computes. It may have no targets.

    Attributes
    ----------
    graphs : list of TypedRows
        One for each layer.
    x : dict of torch.Tensor
        Features of the input rows of each type that has some.
    y : torch.Tensor
        Labels of the targets.
    rows : torch.Tensor
        Rows of the output that are targets.
    count : float
        The loss is the sum of the losses of the targets, divided by the sum of the counts, of all processes.
    inputs : dict of numpy.ndarray
        uint32: row of each input among those of its type.
    """

    graphs: list[TypedRows]
    x: dict[str, Tensor]
    y: Tensor
    rows: Tensor
    count: float
    inputs: dict[str, npt.NDArray[np.uint32]]
    weights: None = None

    def inputs_as(self, **numbers: Any) -> dict[str, Tensor]:
        """Return the features of the input rows in numbers of a type, on a device."""
        return {name: rows.to(**numbers) for name, rows in self.x.items()}

    def moved(self, move: Callable[[Tensor], Tensor]) -> TypedStep:
        """Return the step with tensors that were moved."""
        x = {name: move(rows) for name, rows in self.x.items()}
        return replace(self, x=x, y=move(self.y), rows=move(self.rows))

    @property
    def tensors(self) -> list[Tensor]:
        """All that :meth:`moved` moves."""
        return [*self.x.values(), self.y, self.rows]

    def weighted(self, losses: Tensor) -> Tensor:
        """Return the losses of the targets."""
        return losses


class TypedLoadedSteps(LoaderSteps[TypedStep]):
    """The steps of a loader of a typed graph."""

    fetching: NodeFetching

    def __init__(self, dataset: TypedDataset, loader: Any) -> None:
        super().__init__(loader)
        assert isinstance(loader, Loader)
        self._starts = dict(zip(loader.types, dataset.partition._rows_by_type.starts, strict=True))
        self.fetching = loader.fetching

    def own_rows(self, step: TypedStep, owned: npt.NDArray[np.bool_]) -> int:
        """Return how many rows of features of a step are of own parts."""
        return sum(
            int(np.count_nonzero(owned[owner_of(step.inputs[name], self._starts[name])])) for name in step.x
        )

    def _step(self, batch: Any) -> TypedStep:
        assert isinstance(batch, TypedBatch)
        assert batch.y is not None
        return TypedStep(
            graphs=TypedRows.by_layer(batch, device()),
            inputs=batch.rows_dict,
            rows=torch.arange(batch.batch_size),
            count=batch.global_size,
            x=batch.x_dict,
            y=batch.y,
        )


class TypedNeighbours(TypedLoadedSteps):
    """Training vertices with sampled neighbours."""

    def __init__(
        self, dataset: TypedDataset, options: SampledOptions, free_bytes: int, edge_attr: bool
    ) -> None:
        loader = dataset.partition.loader(
            "train",
            fanouts=options.relation_fanouts or options.fanouts,
            input=dataset.target,
            batch_size=options.batch_size or dataset.num_train,
            seed=options.seed,
            sampling=options.sampling,
            temporal=options.temporal,
            edge_ids=edge_attr,
            ahead=options.ahead,
            timeout=options.timeout,
            io=options.io,
            cache=options.cache,
            cache_by=options.cache_by,
        )
        super().__init__(dataset, loader)
        self._loader.keep(device(), options.resident)
        self.limit(free_bytes)
