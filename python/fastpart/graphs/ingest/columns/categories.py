"""The values of a column of categories or of classes, in an order that later ingests keep, and the codes of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ....core.frames import pl
from ....core.notes import log
from ....core.parameters import one_line
from .pieces import Piece

_NAMED = 3
"""New values that a note names."""

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Categories:
    """The values of a column. The code of a value is its place among them."""

    values: tuple[Any, ...]
    """Text or whole numbers, sorted. Those of an earlier vocabulary come first, in its order."""
    counts: tuple[int, ...]
    """How often each value occurs in the table. The fill value stands in every row that it fills."""
    unknown: int | None = None
    """How many times a value occurs that the earlier vocabulary lacks. None: there is no earlier one."""

    @property
    def slot(self) -> int:
        """The code of all values that an earlier vocabulary lacks."""
        return len(self.values)

    @property
    def content(self) -> dict[str, Any]:
        """What the file of categories says of the column."""
        return {"values": list(self.values), "counts": list(self.counts)}

    @cached_property
    def _enum(self) -> pl.Enum:
        return pl.Enum([str(each) for each in self.values])

    def code(self, value: Any) -> int:
        """Return the code of a value."""
        return int(self._codes(pl.Series([value]))[0])

    def _codes(self, values: pl.Series) -> Codes:
        """Return the code of each value. Those that are not there, and missing ones, have that of the slot."""
        told = values.cast(pl.String).cast(self._enum, strict=False)
        return told.to_physical().cast(pl.Int64).fill_null(self.slot).to_numpy()

    def of(self, piece: Piece, column: str, values: pl.Series, row_of: Callable[[int], int]) -> Codes:
        """Return the code of each value of a column. -1 is a missing value. ``row_of`` gives the row of a value."""
        known = values.is_not_null().to_numpy()
        codes = self._codes(values)
        new = known & (codes == self.slot)
        if self.unknown is None and new.any():
            place = int(new.argmax())
            raise piece.refusal(
                column, row_of(place), f"{values[place]!r} is new. The file changed, start again"
            )
        return np.where(known, codes, -1)


def categories(counts: Mapping[Any, int]) -> Categories:
    """Return the values of a column without an earlier vocabulary, sorted."""
    ordered = dict(sorted(counts.items()))
    return Categories(tuple(ordered), tuple(ordered.values()))


def kept(where: str, column: str, counts: Mapping[Any, int], vocabulary: Sequence[Any]) -> Categories:
    """Return the values of an earlier vocabulary, and say in a note which values it lacks."""
    known, new = _compared(counts, vocabulary)
    if new:
        log.info(
            "%s: column %r: %s of its values are not in the vocabulary (%s), and count as unknown",
            where,
            column,
            f"{sum(new.values()):,}",
            _listed(new),
        )
    return Categories(tuple(vocabulary), tuple(known), sum(new.values()))


def extended(where: str, column: str, counts: Mapping[Any, int], vocabulary: Sequence[Any]) -> Categories:
    """Return the classes of an earlier vocabulary, and new ones behind them, which a note names."""
    known, new = _compared(counts, vocabulary)
    if new:
        log.info(
            "%s: column %r: %s behind the %s of the vocabulary (%s)",
            where,
            column,
            f"{len(new):,} new class{'es' if len(new) != 1 else ''}",
            f"{len(vocabulary):,}",
            _listed(new),
        )
    new = dict(sorted(new.items()))
    return Categories((*vocabulary, *new), (*known, *new.values()))


def note_missing(where: str, column: str) -> None:
    """Say in a note that an earlier vocabulary has no values of a column."""
    log.info("%s: column %r is not in the vocabulary. Its values are numbered anew", where, column)


def _compared(counts: Mapping[Any, int], vocabulary: Sequence[Any]) -> tuple[list[int], dict[Any, int]]:
    """Return the counts of the values of a vocabulary, and those of all others. 5 and "5" are one value."""
    codes = {str(value): code for code, value in enumerate(vocabulary)}
    known, new = [0] * len(vocabulary), {}
    for value, count in counts.items():
        code = codes.get(str(value))
        if code is not None:
            known[code] += count
        elif count:
            new[value] = count
    return known, new


def _listed(new: Mapping[Any, int]) -> str:
    named = ", ".join(one_line(repr(value), 40) for value in sorted(new)[:_NAMED])
    return named + (f" and {len(new) - _NAMED:,} more" if len(new) > _NAMED else "")
