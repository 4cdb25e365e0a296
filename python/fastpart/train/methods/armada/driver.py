"""``armada``: start batch workers, a receiver and compute workers, and state their memory."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from .... import _core
from ....core import parameters
from ....errors import MemoryBudgetError, ParameterError, arg
from ....partitions.partition import PartitionSource
from ....partitions.parts import VertexPartData
from ....partitions.types import fanouts_of
from ....runtime.environment import found
from ...data import Dataset
from ...jobs.launch import Launch
from ...memory import (
    LIGHT_BYTES,
    SMALLER,
    BatchSize,
    Need,
    batches,
    edge_row_bytes,
    evaluation,
    row_bytes,
    size_of,
    weights,
)
from ...method_options import ArmadaOptions, Order
from ...models import NEIGHBOUR, may_take_edges, sampling_of
from ...options import Options
from ...registry import Method
from ..sampled.driver import LearningRows
from .processes import joined, started
from .settings import Settings, cached_rows

_VERTEX_BYTES, _EDGE_BYTES = 40, 24
"""Memory of a part in a batch worker, beside its features: as read, and while it is joined with the others."""


class Driver(LearningRows):
    """Starts all processes."""

    options: ArmadaOptions

    def __init__(self, method: Method, source: PartitionSource, options: ArmadaOptions) -> None:
        if sampling_of(options.model) != NEIGHBOUR:
            raise ParameterError(
                f"model: {options.model!r} needs sampled graphs, but batch workers sample neighbours only. Train it "
                "with sampled, or use graphsage, which has the same layers"
            )
        asked = options.compute_workers
        count = asked or 1 if (ranks := found()) is None else ranks.size
        dataset = Dataset(source, options.target)
        if dataset.has_types and options.order == "parts":
            raise ParameterError(
                f"order: parts in memory are sampled without types. Use {arg('order', 'global')}, which maps all parts"
            )
        super().__init__(method, options, dataset, count, asked)
        hold = parts_in_memory(
            dataset, options.batch_workers, options.order, options.hold, options.memory_limit
        )
        self.decisive = {"sampling": options.sampling, "order": options.order}
        if options.order == "parts":
            self.decisive |= {"batch_workers": options.batch_workers, "hold": hold}
        self._settings = Settings(
            source=os.path.abspath(dataset.path),
            fanouts=fanouts_of(dataset.fanouts(options), dataset.partition),
            batch_size=options.batch_size or dataset.num_train,
            sampling=options.sampling,
            seed=options.seed,
            order=options.order,
            hold=hold,
            cache=options.cache,
            policy=options.policy,
            ahead=options.ahead,
            batch_workers=options.batch_workers,
            compute_workers=count,
            first=0,
            local_workers=count,
            timeout=options.timeout,
            token=secrets.token_hex(16),
            edge_features=may_take_edges(options.model, dataset.task),
            target=dataset.target,
        )

    def prepare(self, launch: Launch, stack: ExitStack) -> None:
        """Start the processes that are no compute workers."""
        super().prepare(launch, stack)
        if launch.group is None:
            file = stack.enter_context(joined(self._settings, self.options.tmp_dir))
        else:
            file = started(launch.group, self._settings)
        self.options = replace(self.options, settings=str(file))

    def needs(self) -> tuple[Sequence[Need], Sequence[Need]]:
        """Return what each compute worker takes, and what the other processes take."""
        workers, others = needs(self.dataset, self.options, self._settings)
        learned = self.learned_needs(-(-self.dataset.partition.k // self._settings.local_workers))
        return [*workers, *learned], others

    def summary(self) -> dict[str, Any]:
        """Return what the summary says of parts and workers."""
        facts = super().summary()
        workers = {"batch_workers": self._settings.batch_workers, "compute_workers": facts.pop("workers")}
        return {**facts, **workers}


def parts_in_memory(
    dataset: Dataset, batch_workers: int, order: Order, asked: int | None, limit: int | None = None
) -> int:
    """Return how many parts a batch worker holds: as asked, else as many as fit the memory. 0: all are mapped."""
    if order == "global":
        if asked is not None:
            raise ParameterError(
                f"hold: {arg('order', 'global')} maps all parts. Leave it out, or use {arg('order', 'parts')}"
            )
        return 0
    most = -(-dataset.partition.k // batch_workers)
    if asked is not None:
        most = min(parameters.integer("hold", asked, 1, 1 << 20), most)
    sizes = sorted((_num_bytes(part) for part in dataset.partition.parts), reverse=True)
    budget = (_core.memory_budget() if limit is None else limit) // batch_workers
    fitting = next((count for count in range(most, 0, -1) if sum(sizes[:count]) <= budget), 0)
    if fitting < (most if asked is not None else 1):
        count = most if asked is not None else 1
        raise MemoryBudgetError(
            f"hold: {count} parts need up to {sum(sizes[:count]):,} bytes, but the memory limit leaves {budget:,} for "
            f"each batch worker. Use a smaller {arg('hold')}, more parts, or {arg('order', 'global')}, which maps them"
        )
    return fitting


def needs(dataset: Dataset, options: Options, settings: Settings) -> tuple[list[Need], list[Need]]:
    """Return the memory that each compute worker takes, and that of the other processes."""
    (n, edges), k = size_of(dataset), dataset.partition.k
    of_types = [of_type[0].feature_bytes for of_type in dataset.types.values()]
    row, rows = max(of_types), [sum(part.num_inner for part in of_type) for of_type in dataset.types.values()]
    fanouts = dataset.task.most_in_edges(dataset.fanouts(options))
    count, makers = settings.local_workers, settings.batch_workers
    step = BatchSize.sampled(settings.batch_size, fanouts, n, edges)
    batch = BatchSize.sampled(-(-settings.batch_size // count), fanouts, n, edges)
    sizes = sorted(map(_num_bytes, dataset.partition.parts), reverse=True) if settings.hold else []
    capacities = cached_rows(settings.cache, rows, k, of_types)
    cached = sum(capacity * (each + 16) for capacity, each in zip(capacities, of_types, strict=True))
    training, of_edges = 56 * dataset.num_train, edge_row_bytes(dataset, options)
    workers = [
        weights(options, dataset.task),
        *batches(options, dataset.task, batch, row_bytes(dataset, moved=True), 4 + of_edges),
        *evaluation(dataset, options, -(-k // count)),
    ]
    return workers, [
        Need("a batch worker", LIGHT_BYTES, f"fewer {arg('batch_workers')}", makers),
        Need("training vertices and ids", training + 16 * n, f"fewer {arg('batch_workers')}", makers + 1),
        Need(
            "parts in memory",
            sum(sizes[: settings.hold]),
            f"a smaller {arg('hold')}, or {arg('order', 'global')}",
            makers,
        ),
        Need("two batches that are made", 2 * step.size(row, 4 + of_edges), SMALLER, makers),
        Need("a receiver", LIGHT_BYTES),
        Need("cached rows", cached, f"a smaller {arg('cache')}"),
        Need(
            "steps in /dev/shm",
            (settings.ahead + 1) * step.size(row, 4 + of_edges),
            f"a smaller {arg('ahead')}, or {SMALLER}",
        ),
    ]


def _num_bytes(part: VertexPartData) -> int:
    return part.num_inner * (part.feature_bytes + _VERTEX_BYTES) + part.num_edges * _EDGE_BYTES
