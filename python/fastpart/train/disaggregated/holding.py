"""How many parts a batch worker holds in memory."""

from __future__ import annotations

import math

from ... import _core, parameters
from ...errors import MemoryBudgetError, ParameterError
from ...parts import VertexPartData
from ..data import Dataset
from .schedule import Order

_VERTEX_BYTES, _EDGE_BYTES = 40, 24
"""Memory of a part in a batch worker, beside its features: as read, and while it is joined with the others."""


def held(dataset: Dataset, batch_workers: int, order: Order, asked: int | None) -> int:
    """Return how many parts a batch worker holds: as asked, else as many as fit the memory. 0: all are mapped."""
    if order == "global":
        if asked is not None:
            raise ParameterError('hold: order="global" maps all parts. Leave it out, or use order="parts"')
        return 0
    most = -(-dataset.partition.k // batch_workers)
    if asked is not None:
        most = min(parameters.integer("hold", asked, 1, 1 << 20), most)
    sizes = sorted((_num_bytes(part) for part in dataset.partition.parts), reverse=True)
    budget = _core.memory_budget() // batch_workers
    fitting = next((count for count in range(most, 0, -1) if sum(sizes[:count]) <= budget), 0)
    if fitting < (most if asked is not None else 1):
        count = most if asked is not None else 1
        raise MemoryBudgetError(
            f"hold: {count} parts need up to {sum(sizes[:count]):,} bytes, but the memory limit leaves {budget:,} for "
            'each batch worker. Use a smaller hold=, more parts, or order="global", which maps them'
        )
    return fitting


def _num_bytes(part: VertexPartData) -> int:
    row = part.row_type("features")
    assert row is not None
    features = row[0].itemsize * math.prod(row[1])
    return part.num_inner * (features + _VERTEX_BYTES) + part.num_edges * _EDGE_BYTES
