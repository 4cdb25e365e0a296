"""The files of one part of a partition directory, mapped and checked.

All values are checked here before anyone indexes by them. A file may be damaged, or changed by others.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from ..core import parameters
from ..core.folders import inside
from ..core.parameters import shown
from ..core.parsing import mapped
from ..errors import FastpartError, GraphFormatError, ParameterError
from .coding import COLUMNS, EDGE_COLUMNS, Coding, Scale

Array = npt.NDArray[Any]
Ids = npt.NDArray[np.int64]
LocalIds = npt.NDArray[np.int32]

RowType = tuple[np.dtype[Any], tuple[int, ...]]

MANIFEST = "manifest.json"

_BLOCK = 1 << 16
"""Items of an array that are checked at once, which a cache holds."""

_DTYPES = tuple(np.dtype(code).name for code in np.typecodes["All"] if np.dtype(code).kind in "biufc")


class PartFiles:
    """The files of a part in its folder. A damaged or missing file raises :class:`fastpart.errors.GraphFormatError`."""

    _root: Path
    _folder: Path
    _manifest: Mapping[str, Any]
    num_inner: int
    num_halo: int
    num_edges: int
    _above: str = ""
    """Where what all parts share lies below the directory: that of a type in a folder of its own."""

    def _file(self, name: str) -> Path:
        """Return a file of this part."""
        return inside(self._root, self._below(name))

    def _below(self, name: str) -> str:
        return (self._folder.relative_to(self._root) / name).as_posix()

    def _refuse_other_size(self, name: str) -> None:
        refuse_other_size(self._root, self._manifest, self._below(name))

    def _holds_as(self, other: Any) -> bool:
        """Return whether both hold the same arrays."""
        names = [name for name in dir(type(self)) if isinstance(getattr(type(self), name), cached_property)]
        return all(_equal(getattr(self, name), getattr(other, name)) for name in names)

    def _array(self, name: str, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> Array:
        """Map an array and check its dtype and shape."""
        file = self._file(f"{name}.npy")
        array = mapped(file)
        if array.shape != shape or array.dtype != np.dtype(dtype):
            raise GraphFormatError(
                f"{shown(file)}: expected {np.dtype(dtype)} of shape {shape}, got {array.dtype} of shape {array.shape}"
            )
        self._refuse_other_size(f"{name}.npy")
        return array

    def _damaged(self, name: str, expected: str) -> GraphFormatError:
        return GraphFormatError(f"{shown(self._folder / name)}.npy: expected {expected}")

    def _described(self, name: str, rows: int) -> Array | None:
        """Map rows with the dtype and shape in the manifest."""
        row = self.stored_type(name)
        return None if row is None else self._array(name, row[0], (rows, *row[1]))

    def _decoded(self, name: str, rows: int) -> Array | None:
        """Map rows of features, or decode them."""
        coding, stored = self.coding(name), self._described(name, rows)
        if coding is None or stored is None:
            return stored
        decoded = coding.decode(stored)
        decoded.flags.writeable = False
        return decoded

    def features_of(self, local: LocalIds) -> Array:
        """Return the features of some inner vertices. Only theirs are decoded."""
        rows, coding = self.stored_features, self.coding("features")
        if rows is None:
            raise ParameterError(f"{shown(self._folder)} has no features")
        return rows[local] if coding is None else coding.decode(rows[local])

    @property
    def stored_features(self) -> Array | None:
        """The rows of ``features`` as they are in the file, mapped: bytes if they are coded."""
        return self._described("features", self.num_inner)

    @property
    def feature_bytes(self) -> int:
        """Bytes of a row of features in the file. 0 without features."""
        row = self.stored_type("features")
        return 0 if row is None else row[0].itemsize * math.prod(row[1])

    def row_type(self, name: str) -> RowType | None:
        """Return dtype and shape of a row of features or labels as the manifest states them. None without them."""
        found = self._typed(name)
        return None if found is None else found[:2]

    def stored_type(self, name: str) -> RowType | None:
        """Return dtype and shape of a row of features or labels in the file. Those of coded rows differ."""
        coding = self.coding(name)
        return self.row_type(name) if coding is None else (coding.dtype, coding.row_shape)

    def coding(self, name: str) -> Coding | None:
        """Return how rows of features are decoded. None if there are none, or they are as they were given."""
        found = self._typed(name)
        if found is None or found[2] is None:
            return None
        _, (width,), scale = found
        of_columns = EDGE_COLUMNS if name == "edge_features" else COLUMNS
        return Coding(
            width, self._columns(f"{self._above}{of_columns}", width) if scale == "column" else None
        )

    def _columns(self, name: str, width: int) -> Array:
        file = inside(self._root, name)
        columns = mapped(file)
        if columns.dtype != np.float32 or columns.shape != (2, width) or not np.isfinite(columns).all():
            raise GraphFormatError(f"{shown(file)}: expected finite float32 of shape (2, {width})")
        refuse_other_size(self._root, self._manifest, name)
        return columns

    def _typed(self, name: str) -> tuple[np.dtype[Any], tuple[int, ...], Scale | None] | None:
        stated = self._manifest.get(name)
        if stated is None:
            return None
        try:
            return coded_type(name, stated)
        except (FastpartError, TypeError) as error:
            raise GraphFormatError(f"{shown(self._root / MANIFEST)}: {error}") from None

    def _labels(self, name: str, rows: int) -> Array | None:
        labels = self._described(name, rows)
        if labels is None or (labels.dtype == np.int64 and labels.ndim == 1):
            return labels
        if labels.dtype == np.float32 and labels.ndim in (1, 2):
            return labels
        if labels.dtype != np.uint8 or labels.ndim != 2:
            raise GraphFormatError(
                f"{shown(self._root / MANIFEST)}: {name}: expected one int64, a row of uint8, or float32 per row"
            )
        if labels.max(initial=0) > 1:
            raise self._damaged(name, "0 and 1")
        return labels

    def _times(self, name: str, rows: int) -> Ids | None:
        times = self._described(name, rows)
        if times is not None and (times.dtype != np.int64 or times.ndim != 1):
            raise GraphFormatError(f"{shown(self._root / MANIFEST)}: {name}: expected one int64 per row")
        return times

    def _mask(
        self, split: str, rows: int, entry: str = "splits", before: str = ""
    ) -> npt.NDArray[np.bool_] | None:
        """Map the mask of a split, whose name follows ``before``. The entry of the manifest lists the splits."""
        stated = self._manifest.get(entry, [])
        if not isinstance(stated, list):
            raise GraphFormatError(f"{shown(self._root / MANIFEST)}: {entry}: expected a list of names")
        if split not in stated:
            return None
        name = f"{before}{split}"
        mask = self._array(name, np.bool_, (rows,))
        if mask.view(np.uint8).max(initial=0) > 1:
            raise self._damaged(name, "0 and 1")
        return mask

    def _offsets(self, name: str, rows: int, items: int | None) -> Ids:
        offsets: Ids = self._array(name, np.int64, (rows + 1,))
        if offsets[0] != 0 or items not in (None, offsets[-1]) or not _ascend(offsets, strictly=False):
            raise self._damaged(
                name, "offsets that ascend from 0" + (f" to {items}" if items is not None else "")
            )
        return offsets

    def _numbers(self, name: str, shape: tuple[int, ...], low: int, high: int, what: str) -> Ids:
        """Map int64 from ``low`` to ``high``."""
        numbers: Ids = self._array(name, np.int64, shape)
        if not _within(numbers, low, high):
            raise self._damaged(name, what)
        return numbers

    def _vertices(self, counts: tuple[int, ...]) -> Ids:
        """Map the ids of the local vertices: ranges of so many vertices, each ascending."""
        n = int(self._manifest["n"])
        vertices = self._numbers("vertices", (sum(counts),), 0, n - 1, f"ids of vertices, 0..{n - 1}")
        start = 0
        for count in counts:
            if not _ascend(vertices[start : start + count]):
                raise self._damaged(
                    "vertices", "ids that ascend, of the inner vertices and of each hop of the halo"
                )
            start += count
        return vertices

    def _edge_numbers(self, name: str, low: int) -> Ids:
        """Map one id per in-edge, of a directed edge, or ``low``."""
        m = int(self._manifest["m"])
        if "types" in self._manifest:
            reversed_ = any(each["reverse"] for each in self._manifest["relations"])
        else:
            reversed_ = self._manifest["directedness"] == "undirected"
        end = 2 * m if reversed_ else m
        what = f"ids of directed edges, {low}..{end - 1}"
        return self._numbers(name, (self.num_edges,), low, end - 1, what)

    def _parts(self, name: str, length: int) -> LocalIds:
        """Map numbers of parts."""
        parts: LocalIds = self._array(name, np.int32, (length,))
        k = int(self._manifest["k"])
        if not _within(parts, 0, k - 1):
            raise self._damaged(name, f"parts below {k}")
        return parts

    def _local_ids(self, name: str, length: int) -> LocalIds:
        ids: LocalIds = self._array(name, np.int32, (length,))
        most = self.num_inner + self.num_halo
        if not _within(ids, 0, most - 1):
            raise self._damaged(name, f"local ids, 0..{most - 1}")
        return ids


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return all(map(np.array_equal, one, other))
    return np.array_equal(one, other) if one is not None and other is not None else one is other


def refuse_other_size(root: Path, manifest: Mapping[str, Any], name: str) -> None:
    """Refuse a file whose size is not that in the list of the manifest, if there is one."""
    stated = manifest.get("files", {}).get(name)
    if stated is not None and stated["size"] != (size := os.stat(f"{root}/{name}").st_size):
        raise GraphFormatError(
            f"{shown(root / name)}: {size} bytes, but {MANIFEST} says {stated['size']}. The file is damaged or was "
            "changed"
        )


def row_type(name: str, stated: Any) -> RowType:
    """Return dtype and shape of a row as a manifest states them."""
    if not isinstance(stated, Mapping) or not {"dtype", "shape"} <= set(stated):
        raise TypeError(f"{name}: expected an object with dtype and shape")
    dtype = np.dtype(parameters.choice(f"{name}: dtype", stated["dtype"], _DTYPES))
    if not isinstance(stated["shape"], list):
        raise TypeError(f"{name}: shape: expected a list of lengths")
    shape = [parameters.integer(f"{name}: shape", length, 0, 2**63 - 1) for length in stated["shape"]]
    return dtype, tuple(shape)


def coded_type(name: str, stated: Any) -> tuple[np.dtype[Any], tuple[int, ...], Scale | None]:
    """Return dtype and shape of a row as a manifest states them, and what has a scale of its own in coded rows."""
    dtype, shape = row_type(name, stated)
    coding = stated.get("coding")
    if coding is None:
        return dtype, shape, None
    if not isinstance(coding, Mapping) or dtype != np.float32 or len(shape) != 1:
        raise TypeError(f"{name}: coding: expected an object, for rows of float32")
    scale: Scale = parameters.choice(f"{name}: coding: scale", coding.get("scale"), get_args(Scale))
    return dtype, shape, scale


def _blocks(array: Array, overlap: int = 0) -> Iterator[Array]:
    """Yield an array in pieces, so that a second look at a piece finds it in the cache."""
    return (array[start : start + _BLOCK + overlap] for start in range(0, len(array), _BLOCK))


def _within(numbers: Array, low: int, high: int) -> bool:
    return all(low <= block.min() and block.max() <= high for block in _blocks(numbers))


def _ascend(numbers: Array, strictly: bool = True) -> bool:
    ordered = np.greater if strictly else np.greater_equal
    return all(bool(np.all(ordered(block[1:], block[:-1]))) for block in _blocks(numbers, overlap=1))
