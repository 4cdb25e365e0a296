"""The files of one part of a partition directory, mapped and checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from . import parameters
from .errors import FastpartError, GraphFormatError
from .parameters import shown
from .parsing import damaged

Array = npt.NDArray[Any]
Ids = npt.NDArray[np.int64]
LocalIds = npt.NDArray[np.int32]

MANIFEST = "manifest.json"

_DTYPES = tuple(np.dtype(code).name for code in np.typecodes["All"] if np.dtype(code).kind in "biufc")


class PartFiles:
    """What a part reads of its folder. A damaged or missing file raises :class:`fastpart.GraphFormatError`."""

    _root: Path
    _folder: Path
    _manifest: Mapping[str, Any]
    num_inner: int
    num_halo: int

    def _file(self, name: str) -> Path:
        """Return a file of this part. Refuse a symbolic link that leads out of the directory."""
        file = self._folder / name
        if not file.resolve().is_relative_to(self._root):
            raise GraphFormatError(f"{shown(file)}: leads out of the partition directory")
        if not parameters.regular(file).exists():
            raise GraphFormatError(f"{shown(file)} is missing. The partition directory is incomplete")
        return file

    def _array(self, name: str, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> Array:
        """Map an array and check its dtype and shape."""
        file = self._file(f"{name}.npy")
        with damaged(file, "not a .npy array"):
            array = np.asarray(np.lib.format.open_memmap(file, mode="r"))
        if array.shape != shape or array.dtype != np.dtype(dtype):
            raise GraphFormatError(
                f"{shown(file)}: expected {np.dtype(dtype)} of shape {shape}, got {array.dtype} of shape {array.shape}"
            )
        return array

    def _described(self, name: str, rows: int) -> Array | None:
        """Map rows with the dtype and shape in the manifest."""
        row = self.row_type(name)
        return None if row is None else self._array(name, row[0], (rows, *row[1]))

    def row_type(self, name: str) -> tuple[np.dtype[Any], tuple[int, ...]] | None:
        """Return dtype and shape of a row of features or labels as the manifest states them. None without them."""
        stated = self._manifest.get(name)
        if stated is None:
            return None
        try:
            dtype = np.dtype(parameters.choice("dtype", stated["dtype"], _DTYPES))
            shape = [parameters.integer("shape", length, 0, 2**63 - 1) for length in stated["shape"]]
        except (FastpartError, TypeError, KeyError) as error:
            raise GraphFormatError(f"{shown(self._root / MANIFEST)}: {name}: {error}") from None
        return dtype, tuple(shape)

    def _mask(self, name: str) -> npt.NDArray[np.bool_] | None:
        stated = self._manifest.get("splits", [])
        if not isinstance(stated, list):
            raise GraphFormatError(f"{shown(self._root / MANIFEST)}: splits: expected a list of names")
        if name not in stated:
            return None
        return self._array(name, np.bool_, (self.num_inner,))

    def _offsets(self, name: str, rows: int, items: int | None) -> Ids:
        offsets: Ids = self._array(name, np.int64, (rows + 1,))
        if offsets[0] != 0 or items not in (None, offsets[-1]) or np.any(offsets[1:] < offsets[:-1]):
            raise GraphFormatError(
                f"{shown(self._folder / name)}.npy: expected offsets that ascend from 0"
                + (f" to {items}" if items is not None else "")
            )
        return offsets

    def _local_ids(self, name: str, length: int) -> LocalIds:
        ids: LocalIds = self._array(name, np.int32, (length,))
        most = self.num_inner + self.num_halo
        if ids.size and not 0 <= ids.min() <= ids.max() < most:
            raise GraphFormatError(f"{shown(self._folder / name)}.npy: expected local ids, 0..{most - 1}")
        return ids
