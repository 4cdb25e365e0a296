"""The batch of a worker in each step: edges, negatives, and sampled neighbours of their ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ...loading import Batch as Loaded
from ...loading import LinkBatch, LinkLoader
from ...partitions.seeds import owner_of
from ...partitions.types import ONLY_TYPE
from ..batches import Batch, VertexRows
from ..data import Dataset
from ..graphs.rows import Rows
from ..method_options import EdgeOptions, LinkOptions
from ..mini_batches.steps import degrees_of, edge_fetching_of
from ..ranks import device


@dataclass(kw_only=True)
class Step(Batch):
    """The pairs of a step that one worker computes. There may be none. ``count`` is the number of pairs of all workers.

    Attributes
    ----------
    x : torch.Tensor or None
        Features of the input rows, if there are any.
    ends : torch.Tensor
        Source and target of each pair, as rows of the encoder's output.
    y : torch.Tensor
        1 for positives, 0 for negatives.
    """

    x: Tensor | None
    y: Tensor
    ends: Tensor
    inputs: VertexRows

    def moved(self, move: Callable[[Tensor], Tensor]) -> Self:
        """Return the step with tensors that were moved."""
        x = None if self.x is None else move(self.x)
        return replace(self, x=x, y=move(self.y), ends=move(self.ends))

    @property
    def tensors(self) -> list[Tensor]:
        """All that :meth:`moved` moves."""
        return [self.y, self.ends, *([] if self.x is None else [self.x])]


class Links:
    """Edges to train on, with negatives and sampled neighbours."""

    def __init__(
        self,
        dataset: Dataset,
        options: LinkOptions | EdgeOptions,
        free_bytes: int,
        edge_attr: bool,
        edges: Any = "train",
    ) -> None:
        more: dict[str, Any] = {"num_negatives": 0}
        if isinstance(options, LinkOptions):
            more = {name: getattr(options, name) for name in ("negatives", "num_negatives", "temporal")}
        self._topology, self._pairs = dataset.topology, 1 + more["num_negatives"]
        loader = dataset.partition.link_loader(
            edges,
            fanouts=options.fanouts,
            batch_size=options.batch_size or dataset.num_train,
            seed=options.seed,
            edge_ids=edge_attr,
            ahead=options.ahead,
            timeout=options.timeout,
            io=options.io,
            cache=options.cache,
            cache_by=options.cache_by,
            **more,
        )
        assert isinstance(loader, LinkLoader)
        loader.keep(device(), options.resident)
        loader.limit(free_bytes)
        self._loader, self.fetching = loader, loader.fetching.of_type[ONLY_TYPE]
        self.edge_fetching = edge_fetching_of(loader)

    def read_seconds(self) -> dict[str, float]:
        """Return what making the batches took since the last call, in all threads."""
        return self._loader.read_seconds()

    def own_rows(self, step: Step, owned: npt.NDArray[np.bool_]) -> int:
        """Return how many rows of a step are of own parts."""
        return int(np.count_nonzero(owned[owner_of(step.inputs, self._topology.starts)]))

    def read_counts(self) -> dict[str, int]:
        """Return what the steps needed since the last call, and what was read for them."""
        return self._loader.read_counts()

    def close(self) -> None:
        """End the connections to other workers."""
        self._loader.close()

    def epoch(self, number: int) -> Iterator[Step]:
        """Yield the steps of an epoch."""
        self._loader.set_epoch(number)
        return map(self._step, self._loader)

    def _step(self, batch: Loaded) -> Step:
        assert isinstance(batch, LinkBatch)
        whole = Rows(
            batch.indptr.numpy(),
            batch.indices.numpy(),
            degrees_of(batch, self._topology),
            batch.n_id,
            sources=batch.num_nodes,
            device=device(),
            edge_attr=batch.edge_attr,
        )
        return Step(
            graphs=whole.by_layer(batch.num_sampled_nodes),
            inputs=batch.rows,
            rows=torch.arange(len(batch.edge_label)),
            targets=batch.rows[: batch.num_sampled_nodes[0]],
            count=batch.global_size * self._pairs,
            x=None if batch.x is None else batch.x.float(),
            y=batch.edge_label,
            ends=batch.edge_label_index,
        )
