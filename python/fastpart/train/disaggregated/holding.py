"""The memory of a run: how many parts a batch worker holds, and the needs of all processes."""

from __future__ import annotations

from ... import _core
from ...core import parameters
from ...errors import MemoryBudgetError, ParameterError, arg
from ...partitions.parts import VertexPartData
from ..data import Dataset
from ..memory import (
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
from ..method_options import Order
from ..options import Options
from .settings import Settings, cached_rows

_VERTEX_BYTES, _EDGE_BYTES = 40, 24
"""Memory of a part in a batch worker, beside its features: as read, and while it is joined with the others."""


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
    (n, edges), row = size_of(dataset), dataset.partition.parts[0].feature_bytes
    count, makers = settings.local_workers, settings.batch_workers
    step = BatchSize.sampled(settings.batch_size, settings.fanouts, n, edges)
    batch = BatchSize.sampled(-(-settings.batch_size // count), settings.fanouts, n, edges)
    sizes = sorted((_num_bytes(part) for part in dataset.partition.parts), reverse=True)
    cached = cached_rows(settings.cache, n, dataset.partition.k, row) * (row + 16)
    training, of_edges = 56 * dataset.num_train, edge_row_bytes(dataset, options)
    workers = [
        weights(options, dataset.task),
        *batches(options, dataset.task, batch, row_bytes(dataset, moved=True), 4 + of_edges),
        *evaluation(dataset, options, -(-dataset.partition.k // count)),
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
