"""Splits of vertices and of records: from a column, at random, or by time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import numpy.typing as npt

from ....core.frames import pl
from ....core.pairs import hashed
from ....errors import ParameterError
from ..schema import Rates
from ..tables import TableReader
from . import kinds
from .pieces import Array, Piece
from .times import UNKNOWN

SPLITS = ("train", "val", "test")

NO_ROW, NO_SPLIT, TRAIN = 0, 1, 2
"""States of vertices and of records. The split ``SPLITS[i]`` is 2 + i."""

WORDS = {"train": 2, "val": 3, "valid": 3, "validation": 3, "test": 4}
"""The state of a row by the word for its split in a table."""

States = npt.NDArray[np.uint8]

_BLOCK = 1 << 20


class SplitColumn:
    """A column whose values name the split of each row."""

    def __init__(self, column: str, reader: TableReader) -> None:
        self.column = column
        valid = "A split is text: train, val or test"
        kinds.kind_in_files(
            reader.files, column, lambda dtype: "text" if kinds.is_text(dtype) else None, valid, kinds.only
        )

    def write(self, piece: Piece, states: States) -> None:
        """Write the states of some rows."""
        given = piece.frame[self.column].cast(pl.String)
        found = given.replace_strict(list(WORDS), list(WORDS.values()), default=0, return_dtype=pl.UInt8)
        codes = found.set(given.is_null(), NO_SPLIT).to_numpy()
        piece.refuse(
            codes == 0,
            self.column,
            lambda place: (
                f"{given[place]!r} is no split. Expected train, val (valid, validation), test or null"
            ),
        )
        states[piece.slots] = codes


def checked(where: str, rates: Rates) -> tuple[float, ...]:
    """Return the bounds of the splits: the shares of all rows up to the end of each."""
    bounds = np.round(np.cumsum([rates.train, rates.val, rates.test]), 9)
    if bounds[-1] > 1:
        raise ParameterError(
            f"{where}: split: train {rates.train}, val {rates.val} and test {rates.test} are more than 1 together"
        )
    return tuple(bounds.tolist())


def split_at_random(states: States, chosen: Callable[[slice], Array], bounds: Sequence[float]) -> None:
    """Put each chosen vertex or record in a split, by a hash of its number. The shares are met up to chance."""
    limits = np.array([min(math.ceil(bound * 2.0**64), 2**64 - 1) for bound in bounds], np.uint64)
    for rows in _blocks(len(states)):
        vertices = np.arange(rows.start, rows.stop, dtype=np.uint64)
        split = np.searchsorted(limits, hashed(vertices, 1, 0)[:, 0], side="right")
        states[rows] = np.where(chosen(rows) & (split < len(SPLITS)), 2 + split, states[rows])


def split_by_time(
    states: States, times: npt.NDArray[np.int64], chosen: Callable[[slice], Array], bounds: Sequence[float]
) -> None:
    """Put the earliest of the chosen vertices or records in train, the next in val, and the next in test.

    Rows of one time stay together. Where a share ends among them, they are all in the later split. So every split
    ends before the next one begins, and no split with those before it is larger than the shares say. One without a
    time is in no split.
    """

    def eligible(rows: slice) -> Array:
        return np.asarray(chosen(rows) & (times[rows] != UNKNOWN))

    def values() -> Iterator[npt.NDArray[np.uint64]]:
        for rows in _blocks(len(states)):
            yield _ordered(times[rows][eligible(rows)])

    total = sum(len(block) for block in values())
    counts = [min(math.ceil(round(bound * total, 6)), total) for bound in bounds]
    # The time at which each split has ended. None: it has all that are left.
    ends = [nth_smallest(values, count) if count < total else None for count in counts]
    for rows in _blocks(len(states)):
        block, found = _ordered(times[rows]), states[rows].copy()
        free = eligible(rows)
        for split, end in enumerate(ends):
            inside = free if end is None else free & (block < end)
            found[inside] = 2 + split
            free = free & ~inside
        states[rows] = found


def _ordered(times: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Return unsigned numbers in the same order."""
    return times.view(np.uint64) ^ np.uint64(1 << 63)


def nth_smallest(values: Callable[[], Iterable[npt.NDArray[np.uint64]]], rank: int) -> np.uint64:
    """Return the number of this rank among numbers that are read four times, 16 bits of them at a time."""
    prefix = 0
    for shift in (48, 32, 16, 0):
        counts = np.zeros(1 << 16, np.int64)
        for block in values():
            if shift < 48:
                block = block[block >> np.uint64(shift + 16) == np.uint64(prefix)]
            digits = (block >> np.uint64(shift)) & np.uint64(0xFFFF)
            counts += np.bincount(digits.astype(np.int64), minlength=len(counts))
        sums = np.cumsum(counts)
        digit = int(np.searchsorted(sums, rank, side="right"))
        rank -= int(sums[digit] - counts[digit])
        prefix = prefix << 16 | digit
    return np.uint64(prefix)


def write_ids(file: Path, states: States) -> dict[str, int]:
    """Write the numbers of the items of each split as a ``.npz``, and return its sizes. Only train may be empty."""
    blocks = list(_blocks(len(states)))
    sizes = dict.fromkeys(SPLITS, 0)
    dtype = np.dtype("<u4" if len(states) <= 2**32 else "<u8")
    with ZipFile(file, "w") as archive:
        for split, name in enumerate(SPLITS):
            sizes[name] = sum(int(np.count_nonzero(states[rows] == 2 + split)) for rows in blocks)
            if not sizes[name] and name != "train":
                del sizes[name]
                continue
            with archive.open(f"{name}.npy", "w", force_zip64=True) as written:
                head = {"descr": dtype.str, "fortran_order": False, "shape": (sizes[name],)}
                np.lib.format.write_array_header_1_0(written, head)
                for rows in blocks:
                    ids = np.flatnonzero(states[rows] == 2 + split) + rows.start
                    written.write(ids.astype(dtype).tobytes())
    return sizes


def _blocks(n: int) -> Iterator[slice]:
    for start in range(0, n, _BLOCK):
        yield slice(start, min(start + _BLOCK, n))


def description(splits: str | Rates, sizes: dict[str, int]) -> dict[str, Any]:
    """Return where a split comes from, and its sizes."""
    return {**({"column": splits} if isinstance(splits, str) else {"by": splits.by}), **sizes}
