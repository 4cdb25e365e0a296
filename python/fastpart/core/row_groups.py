"""The row groups of a Parquet file, each of which Polars decodes as a whole: their number, and their claimed size."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from .. import _core
from ..errors import MemoryBudgetError
from .parameters import shown, sized

_TAIL = 8
"""Bytes of the length of the footer, and of the magic behind it."""

_LARGEST_FOOTER = 1 << 20
"""Bytes of a footer that is read as a whole. A longer one tells only how many groups there are, and all rows."""

_MOST = 64 << 20
"""Bytes of a footer that are read."""

_ROWS, _ROW_GROUPS = 3, 4
"""Numbers of fields of the footer."""

_GROUP_BYTES, _GROUP_ROWS = 2, 3
"""Numbers of fields of a row group."""

_AT_ONCE = 2
"""Row groups that Polars decodes at a time."""


class RowGroups(NamedTuple):
    """What the footer of a Parquet file claims."""

    groups: int
    rows: int
    """Rows of the largest group. Of a long footer, the mean."""
    bytes: int
    """Bytes of the largest group, unpacked. 0 if the footer is too long to tell."""
    all_rows: int
    all_bytes: int


def row_groups(path: str) -> RowGroups | None:
    """Return what the footer of a local file says. None if it cannot be read."""
    with suppress(OSError, ValueError, IndexError, RecursionError), open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(size - _TAIL)
        tail = file.read(_TAIL)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] == b"PAR1" and length <= size - _TAIL:
            file.seek(size - _TAIL - length)
            return _Thrift(file.read(min(length, _MOST))).groups(whole=length <= _LARGEST_FOOTER)
    return None


def refuse_large(
    path: str,
    found: RowGroups | None,
    dtypes: Iterable[Any],
    limit: int | None = None,
    *,
    whole: bool = False,
) -> None:
    """Refuse a Parquet file whose columns would not fit in memory, before Polars decodes them.

    Parameters
    ----------
    path : str
        The file, for the message.
    found : RowGroups or None
        What its footer says. None: nothing is refused.
    dtypes : iterable of Polars type
        Types of the columns that are read.
    limit : int, optional
        Bytes of memory. None: what is available.
    whole : bool
        Whether the file is read as a whole. Otherwise two row groups are in memory at a time.

    Raises
    ------
    MemoryBudgetError
        With the remedy.
    """
    if found is None:
        return
    width, has_text = 0, False
    for dtype in dtypes:
        numeric = dtype.is_numeric() or dtype.is_temporal()
        width += 8 if numeric else 16
        has_text |= not numeric
    rows, size = (
        (found.all_rows, found.all_bytes)
        if whole
        else (value * min(found.groups, _AT_ONCE) for value in (found.rows, found.bytes))
    )
    need = rows * width + (size if has_text else 0)
    limit = _core.memory_budget() if limit is None else limit
    if need > limit:
        what = "it holds" if whole else "a row group holds up to"
        of = found.all_rows if whole else found.rows
        remedy = "Raise memory_limit" if whole else "Write it with smaller row groups, or raise memory_limit"
        raise MemoryBudgetError(
            f"{shown(path)}: {what} {of:,} rows, which take {sized(need)} of memory, but the budget is {sized(limit)}. "
            f"{remedy}"
        )


_INTEGERS, _LIST, _STRUCT = (4, 5, 6), 9, 12
"""Types of the compact protocol."""


class _Thrift:
    """A struct in the compact protocol of Thrift. What is not asked for is skipped."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def groups(self, whole: bool) -> RowGroups | None:
        """Return what a footer says of the row groups. ``whole``: read them, too, and not only their number."""
        rows = 0
        for number, kind in self._fields():
            if number == _ROWS and kind in _INTEGERS:
                rows = self._zigzag()
            elif number == _ROW_GROUPS and kind == _LIST:
                count, of = self._list()
                if not whole or of != _STRUCT:
                    return RowGroups(count, -(-rows // max(count, 1)), 0, rows, 0)
                sizes = [self._group() for _ in range(count)]
                return RowGroups(
                    count,
                    max((rows for rows, _ in sizes), default=0),
                    max((size for _, size in sizes), default=0),
                    sum(rows for rows, _ in sizes),
                    sum(size for _, size in sizes),
                )
            else:
                self._skip(kind)
        return None

    def _group(self) -> tuple[int, int]:
        """Return the rows and the bytes of a row group."""
        found = {_GROUP_ROWS: 0, _GROUP_BYTES: 0}
        for number, kind in self._fields():
            if number in found and kind in _INTEGERS:
                found[number] = max(self._zigzag(), 0)
            else:
                self._skip(kind)
        return found[_GROUP_ROWS], found[_GROUP_BYTES]

    def _fields(self) -> Iterator[tuple[int, int]]:
        """Yield number and type of the fields of a struct. Each must be read or skipped before the next."""
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            yield number, head & 15

    def _byte(self) -> int:
        self._at += 1
        return self._content[self._at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise ValueError(shift)
        return value | byte << shift

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _list(self) -> tuple[int, int]:
        """Return length and type of a list."""
        head = self._byte()
        return (self._varint() if head >> 4 == 15 else head >> 4), head & 15

    def _skip(self, type: int, in_list: bool = False) -> None:
        match type:
            case 1 | 2:  # in a struct, the type of a truth value is its value
                self._at += in_list
            case 3:
                self._at += 1
            case 4 | 5 | 6:
                self._varint()
            case 7:
                self._at += 8
            case 8:
                length = self._varint()  # which moves on
                self._at += length
            case 9 | 10:
                length, of = self._list()
                for _ in range(length):
                    self._skip(of, in_list=True)
                    if self._at > len(self._content):  # the claim is as long as it likes
                        raise IndexError
            case 12:
                for _, kind in self._fields():
                    self._skip(kind)
            case _:
                raise ValueError(type)
