"""Columns of a table as a check reads them: surveyed and converted as for a graph, into memory that nobody keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from ..catalog import RelationTable, VertexTable
from ..problems import attempted
from . import RelationColumns, VertexColumns, _Columns
from .rows import Mask, Slots, pieces
from .surveys import Survey, surveyed

_ROWS = 1 << 16
"""Rows that are converted at a time, at most."""

_USES = ("time", "label", "split", "weight")


class CheckedColumns:
    """All columns of a table, each by itself, so that a refusal of one leaves the others. Files are read once for all.

    The files are surveyed as it is made.
    """

    def __init__(self, where: str, table: VertexTable | RelationTable) -> None:
        assert table.reader is not None
        self._where, self._reader = where, table.reader
        tried = [attempted(where, _columns, each) for each in _single(table)]
        made = [each for each in tried if each is not None and each.wanted]
        surveys = [attempted(where, self._survey, made, number) for number in range(len(self._reader.files))]
        known = [each for each in surveys if each is not None]
        ready = (
            [attempted(where, _prepared, each, known) for each in made] if len(known) == len(surveys) else []
        )
        self._made = [each for each in ready if each is not None]

    def _survey(self, made: Sequence[_Columns], number: int) -> dict[str, Any]:
        facts = [fact for each in made for fact in each._facts(number)]
        widths = {name: width for each in made for name, width in each._widths(number).items()}
        return surveyed(self._reader, number, facts) | ({"widths": widths} if widths else {})

    def check(self, number: int, start: int, stop: int, kept: Mask | None) -> None:
        """Convert rows start..stop of file ``number``. ``kept`` tells those that an ingest keeps. None: all."""

        def place(first: int, end: int) -> tuple[Mask | None, Slots]:
            given = None if kept is None else kept[first:end]
            return given, slice(0, end - first if given is None else int(given.sum()))

        if not self._made:
            return
        columns = sorted({name for each in self._made for name in each._columns()})
        rows = min(_ROWS, *(each._layout.rows for each in self._made if each._layout is not None), _ROWS)
        for piece in pieces(self._reader, number, columns, start, stop, rows, place):
            for each in self._made:
                arrays = {
                    key: np.empty((len(piece.frame), *shape[1:]), dtype)
                    for key, (_, shape, dtype) in each._arrays().items()
                }
                attempted(self._where, each._write, piece, arrays)


def _single(table: VertexTable | RelationTable) -> Iterator[VertexTable | RelationTable]:
    """Yield the table with one of its columns at a time. Shares of a split have no column."""
    uses = [use for use in _USES if hasattr(table.entry, use)]
    bare: Any = msgspec.structs.replace(table.entry, features=[], **dict.fromkeys(uses))
    for feature in table.features:
        yield replace(table, entry=bare, features=(feature,))
    for use in uses:
        if isinstance(column := getattr(table.entry, use), str):
            yield replace(table, entry=msgspec.structs.replace(bare, **{use: column}), features=())


def _columns(table: VertexTable | RelationTable) -> _Columns:
    rows = 0 if table.reader is None else table.reader.rows
    return RelationColumns(table, rows) if isinstance(table, RelationTable) else VertexColumns(table, rows)


def _prepared(columns: _Columns, surveys: Sequence[Survey]) -> _Columns:
    columns._prepare(surveys)
    return columns
