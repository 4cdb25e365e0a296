"""Text that others wrote, packed or not: a pass in blocks, before a parser takes whole records into memory."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Iterator
from typing import IO, NamedTuple

from .. import _core
from ..errors import GraphFormatError, MemoryBudgetError
from .parameters import shown, sized

LONGEST = 1 << 20
"""Bytes that a record of text may have. The core has the same bound."""

_RATIO = 100
"""How often a .zst may unpack to its own size beyond the memory limit. Text and tables hardly reach 30."""

_ZSTD, _ZSTD_BLOCK = b"\x28\xb5\x2f\xfd", 1 << 17


class Examined(NamedTuple):
    """What a pass over text found."""

    bytes: int
    """Its size, unpacked."""
    quotes: int
    """How many quotes it holds."""
    long: int | None
    """The line, from 1, in or behind which a record is too long. The pass ends there."""


def unpacked(path: str) -> IO[bytes]:
    """Open a local file, and unpack what it holds while it is read."""
    if path.endswith(".gz"):
        return gzip.open(path)  # type: ignore[return-value]
    if path.endswith(".bz2"):
        return bz2.open(path)
    if path.endswith(".xz"):
        return lzma.open(path)
    return open(path, "rb")


def examined(path: str, quote: str | None) -> Examined:
    """Read a local file whose records end with lines outside of quotes. Its memory is two blocks of 1 MiB.

    A record is too long if a whole block holds none of its ends: each of 2 MiB is, and none of less than 1 MiB.
    """
    sign = (quote or "").encode()
    size = quotes = 0
    for block in _blocks(path):
        if len(block) == LONGEST and not _ends(block, sign, quotes % 2):
            return Examined(size, quotes, _lines(path, size) + 1)
        size += len(block)
        quotes += block.count(sign) if sign else 0
    return Examined(size, quotes, None)


def refuse_filling(path: str) -> None:
    """Refuse text that is read as a whole, and whose records or size do not fit in memory."""
    quote, budget = '"', _core.memory_budget()
    found = examined(path, quote)
    if found.long is not None:
        raise GraphFormatError(f"{shown(path)}: {too_long(found.long, quote)}")
    if found.bytes > budget:
        raise MemoryBudgetError(
            f"{shown(path)}: holds {sized(found.bytes)} of text, but the budget is {sized(budget)}. Write it as "
            ".npy or .parquet"
        )


def too_long(line: int, quote: str | None = None) -> str:
    """Say that the record that begins in a line, or behind it, is longer than a record may be."""
    cause = f", or a {quote} there does not close" if quote else ""
    return f"line {line} or one behind it is longer than 1 MiB{cause}. Write a record per line"


def _blocks(path: str) -> Iterator[bytes]:
    with unpacked(path) as file:
        while block := file.read(LONGEST):
            yield block


def _ends(block: bytes, sign: bytes, quoted: int) -> bool:
    """Return whether a record ends in a block. ``quoted``: 1 if the block begins within quotes."""
    at = 0
    while (end := block.find(b"\n", at)) >= 0:
        quoted ^= block.count(sign, at, end) & 1 if sign else 0
        if not quoted:
            return True
        at = end + 1
    return False


def _lines(path: str, size: int) -> int:
    """Return the ends of lines in the first bytes of a file."""
    lines = 0
    for block in _blocks(path):
        if size <= 0:
            break
        lines += block.count(b"\n", 0, size)
        size -= len(block)
    return lines


def refuse_expanding(path: str, limit: int | None = None) -> None:
    """Refuse a .zst that unpacks to far more than its size and the memory limit: Polars holds its longest line."""
    most, size = zstd_bytes(path), os.stat(path).st_size
    limit = _core.memory_budget() if limit is None else limit
    if most > max(limit, _RATIO * size):
        raise MemoryBudgetError(
            f"{shown(path)}: {sized(size)} of zstd unpack to up to {sized(most)}, but the budget is {sized(limit)}. "
            "Unpack it first: records of plain text are checked without memory for them"
        )


def zstd_bytes(path: str) -> int:
    """Return how many bytes a .zst unpacks to at most, by the headers of its blocks. A block holds up to 128 KiB."""
    most = 0
    with open(path, "rb") as file:
        while len(magic := file.read(4)) == 4:
            if magic[1:] == b"\x2a\x4d\x18" and magic[0] >> 4 == 5:  # what decoders skip
                file.seek(int.from_bytes(file.read(4), "little"), 1)
                continue
            if magic != _ZSTD or not (head := file.read(1)):
                break
            single, check = head[0] >> 5 & 1, head[0] >> 2 & 1
            of_size, of_dictionary = (single, 2, 4, 8)[head[0] >> 6], (0, 1, 2, 4)[head[0] & 3]
            file.seek(1 - single + of_dictionary + of_size, 1)
            last = False
            while not last and len(block := file.read(3)) == 3:
                word = int.from_bytes(block, "little")
                last, kind, length = bool(word & 1), word >> 1 & 3, word >> 3
                most += _ZSTD_BLOCK if kind == 2 else length
                file.seek(1 if kind == 1 else length, 1)
            file.seek(4 * check, 1)
    return most
