"""What reading the features costs, by the ways to read them."""

from __future__ import annotations

from collections.abc import Sequence

from ... import _core
from ...core.frames import pl
from .packing import Pack


def ways(packs: Sequence[Pack], features: _core.Features, epochs: int) -> pl.DataFrame:
    """Return a row for each way to read the rows of some packs. See :class:`.Plan`."""
    rows = sum(len(each.rows) for pack in packs for each in pack.epochs) / epochs
    return pl.DataFrame([{"way": "packed", "rows": rows}])
