"""How many row groups a Parquet file has. Polars does not tell, and rows within one cannot be reached without it."""

from __future__ import annotations

import os
from contextlib import suppress

_TAIL = 8
"""Bytes of the length of the footer, and of the magic behind it."""

_ROW_GROUPS = 4
"""The number of their list in the footer."""


def row_groups(path: str) -> int | None:
    """Return the number of row groups of a local file. None if its footer cannot be read."""
    with suppress(OSError, ValueError, IndexError), open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(size - _TAIL)
        tail = file.read(_TAIL)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] == b"PAR1" and length <= size - _TAIL:
            file.seek(size - _TAIL - length)
            return _Thrift(file.read(length)).size_of(_ROW_GROUPS)
    return None


class _Thrift:
    """A struct in the compact protocol of Thrift, of which all but one list is skipped."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def size_of(self, wanted: int) -> int | None:
        """Return the length of the list with this number. None if there is none."""
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            if number == wanted:
                return self._list()[0]
            self._skip(head & 15)
        return None

    def _byte(self) -> int:
        self._at += 1
        return self._content[self._at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
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
            case 12:
                while head := self._byte():
                    if not head >> 4:
                        self._zigzag()
                    self._skip(head & 15)
            case _:
                raise ValueError(type)
