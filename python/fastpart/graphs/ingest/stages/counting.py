"""Counts of what a user may not expect in the records: repeated ones, and vertices that are in none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ....core.pairs import distinct, mixed
from ..catalog import Catalog
from .job import NumberedType
from .records import RECORD, Records

COUNTED = 1 << 20
"""Records up to which repeated ones are counted. Of more, a sample of about so many pairs says how many there are."""

_BLOCK = 1 << 18
"""Records in memory at a time."""

_VERTICES = 1 << 26
"""Vertices that are looked for at a time, a byte each."""


def repeated(records: Records, edges: Path) -> int:
    """Return how many records have the source and target of an earlier one, of many records about how many.

    The sample takes pairs by a hash of both ends. So it has all records of a pair, or none.
    """
    shift = max(-(-records.m // COUNTED) - 1, 0).bit_length()
    known = np.empty(0, np.uint64)
    waiting: list[npt.NDArray[np.uint64]] = []
    total = 0
    for block in _blocks(records, edges):
        pairs = block[mixed(block) >> np.uint64(64 - shift) == 0] if shift else block
        total += len(pairs)
        waiting.append(pairs)
        if sum(map(len, waiting)) > COUNTED:
            known, waiting = distinct(np.concatenate([known, *waiting])), []
    known = distinct(np.concatenate([known, *waiting]))
    return (total - len(known)) << shift


def isolated(
    catalog: Catalog, types: Mapping[str, NumberedType], records: Sequence[Records], edges: Path
) -> dict[str, int]:
    """Return how many vertices are in no record, of types whose ids come from records that were dropped."""
    found = {}
    for name, numbered in types.items():
        mine = [each for each in records if name in (each.relation.source, each.relation.target)]
        if catalog.vertices[name].reader is not None or not any(each.missing for each in mine):
            continue
        count = 0
        for start in range(numbered.first, numbered.first + numbered.n, _VERTICES):
            seen = np.zeros(min(_VERTICES, numbered.first + numbered.n - start), np.bool_)
            for each in mine:
                for block in _blocks(each, edges):
                    ends = block.view(np.uint32).astype(np.int64) - start
                    seen[ends[(ends >= 0) & (ends < len(seen))]] = True
            count += len(seen) - int(seen.sum())
        if count:
            found[name] = count
    return found


def _blocks(records: Records, edges: Path) -> Iterator[npt.NDArray[np.uint64]]:
    """Yield the records of a relation, each pair of numbers of 32 bits as one number of 64."""
    for start in range(0, records.m, _BLOCK):
        count = min(_BLOCK, records.m - start)
        yield np.fromfile(edges, "<u8", count, offset=(records.first + start) * RECORD)
