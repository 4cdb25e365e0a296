"""Labels and splits of vertices, from arrays and files."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from . import parameters
from .errors import ParameterError
from .notes import log
from .parsing import damaged

SPLITS = ("train", "val", "test")


def labels_of(labels: Any, n: int) -> npt.NDArray[np.int64] | npt.NDArray[np.uint8]:
    """Return the class of each vertex as int64. -1 (or NaN in a float array) is unlabelled.

    For a multi-label task, return 0 or 1 for each class as uint8 of shape (n, classes).
    """
    array = _load("labels", labels) if isinstance(labels, str | bytes | os.PathLike) else np.asarray(labels)
    if not isinstance(array, np.ndarray):
        raise ParameterError(
            "labels: the file is an archive of several arrays. Pass the array with the labels"
        )
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2) or 0 in array.shape[1:]:
        raise ParameterError(
            f"labels: shape {array.shape}, expected one label per vertex, or (n, classes) of 0 and 1"
        )
    match_vertices("labels", len(array), n)
    if array.ndim == 2:
        return _multilabel(array)
    if array.dtype.kind == "f":
        unlabelled = np.isnan(array)
        whole = np.where(unlabelled, -1, array)
        if not np.array_equal(whole, np.trunc(whole)):
            raise ParameterError("labels: expected integers (NaN or -1 for unlabelled), got fractions")
        array = whole
    elif array.dtype.kind not in "iub":
        raise TypeError(f"labels: expected integers (-1 for unlabelled), got dtype {array.dtype}")
    # Casting would wrap silently.
    if array.size and array.dtype.kind in "uf" and not (array.min() >= -(2**63) and array.max() < 2**63):
        raise ParameterError("labels: values must fit in int64")
    return np.ascontiguousarray(array, dtype=np.int64)


def _multilabel(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    if array.dtype.kind not in "iubf":
        raise TypeError(f"labels: expected 0 and 1, or bool, of shape (n, classes), got dtype {array.dtype}")
    ones = np.equal(array, 1)
    if not np.all(ones | np.equal(array, 0)):
        raise ParameterError(
            f"labels: expected 0 and 1 in an array of shape {array.shape}. Pass one integer per vertex for one class, "
            "or one row of 0 and 1 for several. A vertex without known classes belongs to no split"
        )
    multilabel: npt.NDArray[np.uint8] = ones.view(np.uint8)
    return multilabel


def weights_of(text: str, n: int) -> npt.NDArray[Any]:
    """Return the weights or the mask of ``FILE.npy`` or ``FILE.npz:NAME``, as given on the command line.

    ``train``, ``val`` and ``test`` of an archive may be ids or a mask, as in splits.
    """
    file, colon, name = text.rpartition(":")
    if not (colon and file.endswith(".npz")):
        file, name = text, ""
    loaded = _load("--balance-on", file)
    if not isinstance(loaded, dict):
        return np.asarray(loaded)
    if name not in loaded:
        raise ParameterError(
            f"--balance-on: {parameters.shown(file)} holds {', '.join(sorted(loaded))}. Add one after a colon, as in "
            f"{parameters.shown(file)}:{min(loaded, default='NAME')}"
        )
    if name not in SPLITS:
        return np.asarray(loaded[name])
    mask = np.zeros(n, dtype=bool)
    mask[_ids(name, loaded[name], n)] = True
    return mask


def splits_of(splits: Any, n: int, split: int | None = None) -> dict[str, npt.NDArray[np.int64]]:
    """Return the vertex ids of the given ones of ``train``, ``val`` and ``test``."""
    if isinstance(splits, str | bytes | os.PathLike):
        splits = _load("splits", splits)
    if not isinstance(splits, Mapping):
        raise TypeError("splits: expected a mapping or a .npz with train, val and test")
    if split is not None:
        split = parameters.integer("split", split, 0, 2**31)
    chosen = {}
    used = set()
    for name in SPLITS:
        masks = f"{name}_masks"
        if name in splits:
            chosen[name] = _ids(name, np.asarray(splits[name]), n)
            used.add(name)
        elif split is not None and masks in splits:
            rows = np.asarray(splits[masks])
            if rows.ndim != 2 or split >= len(rows):
                raise ParameterError(f"split: {split}, but {masks} has shape {rows.shape}")
            chosen[name] = _ids(masks, rows[split].astype(bool), n)
            used.add(masks)
    ignored = sorted(set(splits) - used)
    if not chosen:
        hint = (
            ". Choose a row of the masks with split="
            if any(key.endswith("_masks") for key in ignored)
            else ""
        )
        raise ParameterError(f"splits: none of train, val, test in {ignored}{hint}")
    if ignored:
        log.info("splits: ignored %s", ", ".join(ignored))
    return chosen


def _ids(name: str, array: npt.NDArray[Any], n: int) -> npt.NDArray[np.int64]:
    if array.ndim != 1:
        raise ParameterError(f"splits: {name}: expected ids or a mask of length n, got shape {array.shape}")
    if array.dtype == bool:
        match_vertices(f"splits: {name}", len(array), n)
        return np.flatnonzero(array).astype(np.int64)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"splits: {name}: expected integer ids or a bool mask, got dtype {array.dtype}")
    outside = np.flatnonzero((array < 0) | (array >= n)) if array.size else array
    if len(outside):
        raise ParameterError(f"splits: {name} holds the id {array[int(outside[0])]}, outside 0..{n - 1}")
    ids = np.ascontiguousarray(array, dtype=np.int64)
    if len(np.unique(ids)) != len(ids):
        raise ParameterError(f"splits: {name} holds some ids twice")
    return ids


def match_vertices(name: str, rows: int, n: int) -> None:
    """Refuse an array of another length than n."""
    if rows != n:
        raise ParameterError(
            f"{name}: {rows} rows for {n} vertices. If trailing vertices are isolated, open the graph with "
            f"num_vertices={rows}"
        )


def arrays_of(name: str, file: Any) -> dict[str, Any]:
    """Return the arrays of a ``.npz``."""
    loaded = _load(name, file)
    if not isinstance(loaded, dict):
        raise ParameterError(
            f"{name}: {parameters.shown(file)} is a single array. Expected a .npz of several"
        )
    return loaded


def _load(name: str, file: Any) -> Any:
    """Load a ``.npy`` or ``.npz`` without pickles."""
    path = parameters.regular(parameters.path(name, file))
    with damaged(path, "not a .npy or .npz of plain arrays"), path.open("rb") as opened:
        _refuse_false_claims(opened, os.fstat(opened.fileno()).st_size)
        loaded = np.load(opened, allow_pickle=False)
        return _members(loaded) if isinstance(loaded, np.lib.npyio.NpzFile) else loaded


def _members(archive: np.lib.npyio.NpzFile) -> dict[str, Any]:
    for member in archive.zip.infolist():  # type: ignore[union-attr]
        with archive.zip.open(member) as opened:  # type: ignore[union-attr]
            _refuse_false_claims(opened, member.file_size)
    return dict(archive)


def _refuse_false_claims(opened: IO[bytes], size: int) -> None:
    """Refuse an array whose header claims more bytes than the file has, before numpy allocates them."""
    if opened.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX:
        opened.seek(0)
        headers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        if (read := headers.get(npy.read_magic(opened))) is not None:
            shape, _, dtype = read(opened)
            claimed, there = math.prod(shape) * dtype.itemsize, size - opened.tell()
            if claimed > there and not dtype.hasobject:
                raise ValueError(f"it claims {claimed:,} bytes, but holds {there:,}")
    opened.seek(0)


def train_of(splits: Mapping[str, npt.NDArray[np.int64]]) -> npt.NDArray[np.uint32]:
    """Return the training vertices, ascending."""
    train = splits.get("train", np.empty(0, np.int64))
    if not len(train):
        raise ParameterError("splits: there are no training vertices. Name them as train")
    return np.unique(train).astype(np.uint32)


def split_bits(splits: Mapping[str, npt.NDArray[np.int64]], n: int) -> npt.NDArray[np.uint32]:
    """Return of each vertex the sum of 1, 2 and 4 if it is in train, val and test, as the core takes splits."""
    bits = np.zeros(n, np.uint32)
    for index, name in enumerate(SPLITS):
        bits[splits.get(name, [])] |= 1 << index
    return bits
