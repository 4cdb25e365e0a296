"""The epochs of a training, printed while it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..report.text import MANY

_WIDTH = 80
"""Most letters of a line."""

_LEAST = {"loss": 9, "seconds": 9, "remote_bytes": 14}
"""Width of columns whose numbers may grow. Scores have 6 letters."""


class EpochRows:
    """A table that gets a row for each epoch: its loss, validation scores, seconds and bytes that were fetched.

    Columns that do not fit into 80 letters are left out. The history has all.
    """

    def __init__(self) -> None:
        self._widths: dict[str, int] = {}

    def __call__(self, row: Mapping[str, Any]) -> None:
        """Print a row, before the first one the names of the columns."""
        if not self._widths:
            self._widths = _widths(row)
            self._print({name: name for name in self._widths})
        self._print(row)

    @property
    def printed(self) -> bool:
        """Whether there was a row."""
        return bool(self._widths)

    def _print(self, row: Mapping[str, Any]) -> None:
        cells = [_cell(row.get(name)).rjust(width) for name, width in self._widths.items()]
        print("  ".join(cells), flush=True)  # also in a pipe


def _widths(row: Mapping[str, Any]) -> dict[str, int]:
    """Return the columns to print, in their order, and their widths."""
    scores = [name for name in row if name.startswith("val_")]
    found, left = dict[str, int](), _WIDTH + 2
    for name in ("epoch", "loss", "seconds", "remote_bytes", *scores):
        width = max(len(name), _LEAST.get(name, 6))
        if name in row and width + 2 <= left:
            found[name], left = width, left - width - 2
    return {
        name: found[name] for name in ("epoch", "loss", *scores, "seconds", "remote_bytes") if name in found
    }


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.{0 if value >= MANY else 4}f}" if isinstance(value, float) else str(value)
