"""Arrays of a graph directory: created sparse, written in place, read in blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ....core.parameters import regular
from ....core.parsing import mapped
from ....errors import GraphFormatError, arg

Array = npt.NDArray[Any]

RESTART = f"Pass {arg('restart', True)} to begin anew"
"""What helps where a file of an earlier run is damaged."""

_BLOCK_BYTES = 8 << 20
"""What is read of an array at a time."""


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Yield the path of a new file, which takes the place of ``file`` once it is written and on the disk.

    What is linked to the earlier file keeps it: a graph directory may be, if its ingest was killed as it ended.
    """
    new = file.with_name(f"{file.name}.new")
    yield new
    with new.open("rb") as written:
        os.fsync(written.fileno())
    os.replace(new, file)


def create(file: Path, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
    """Create an array of zeros, if the file does not hold one of this shape and type. Its blocks are holes."""
    if _is(file, shape, np.dtype(dtype)):
        return
    with replacing(file) as new:
        if 0 in shape:
            with new.open("wb") as written:  # numpy maps no empty array
                np.save(written, np.zeros(shape, dtype))
        else:
            np.lib.format.open_memmap(new, "w+", np.dtype(dtype), shape).flush()


def _is(file: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Return whether a file holds such an array. What a damaged one held is made again, see the journal."""
    if not regular(file).exists():
        return False
    try:
        there = opened(file)
    except GraphFormatError:
        return False
    return there.shape == shape and there.dtype == dtype


def opened(file: Path, *, write: bool = False) -> Array:
    """Map an array."""
    array: Array = mapped(file, f"not the array of an ingest. {RESTART}")
    return np.load(file, "r+") if write and array.size else array


def flush(array: Array) -> None:
    """Write what was changed of a mapped array to the disk."""
    if isinstance(array, np.memmap):
        array.flush()


def blocks(array: Array) -> Iterator[slice]:
    """Yield ranges of rows that cover an array, of a few megabytes each."""
    row_bytes = max(array.nbytes // max(len(array), 1), 1)
    step = max(_BLOCK_BYTES // row_bytes, 1)
    for start in range(0, len(array), step):
        yield slice(start, min(start + step, len(array)))
