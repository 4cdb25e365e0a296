"""Labels and splits of vertices and of records, from arrays and files."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import GraphWarning, ParameterError, arg, warn
from . import parameters
from .ids import Ids
from .notes import log
from .parsing import Archive, mapped
from .vertex_tables import (
    InOrder,
    Table,
    column_of_records,
    file_of,
    in_order,
    is_matrix,
    labels_in,
    labels_in_column,
    members_in,
    numbers_of_vertices,
    splits_in,
    splits_in_column,
    table_of,
    table_of_words,
)

SPLITS = ("train", "val", "test")

_NAMES = {"train": ("train",), "val": ("val", "valid", "validation"), "test": ("test",)}
"""Names of the splits in mappings and archives."""


EDGE_LABELS, EDGE_LABEL_SPLITS = "edge_labels", "edge_label_splits"
"""The parameters with labels of records, and with splits of them. Their arrays and entries have the same names."""

EDGE_MASKS = tuple(f"edge_label_{name}" for name in SPLITS)
"""The arrays of the splits of records."""


class _Items(NamedTuple):
    """Items that have labels and splits: the parameters of both, and the words for one item and for several."""

    labels: str
    splits: str
    one: str
    several: str


_OF_VERTICES = _Items("labels", "splits", "vertex", "vertices")
_OF_RECORDS = _Items(EDGE_LABELS, EDGE_LABEL_SPLITS, "record", "records")

Labels = npt.NDArray[np.int64] | npt.NDArray[np.uint8] | npt.NDArray[np.float32]


def labels_of(labels: Any, n: int, ids: Ids = ()) -> Labels:
    """Return the class of each vertex as int64. -1 (or NaN in a float array) is unlabelled.

    A table is matched by ``ids``, those that the vertices had in tables.

    For a multi-label task, return 0 or 1 for each class as uint8 of shape (n, classes). Numbers with fractions are
    targets of a regression, float32 of the shape given. NaN is unlabelled.
    """
    if isinstance(labels, InOrder):
        labels, ids = labels.rows, ()
    return _labels_in(_OF_VERTICES, labels, n, ids, lambda table: labels_in(table, n, ids))


def labels_of_records(labels: Any, m: int) -> Labels:
    """Return the label of each record, as :func:`labels_of` does for vertices. Records have no ids."""
    return _labels_in(
        _OF_RECORDS, labels, m, (), lambda table: labels_in_column(column_of_records(table), EDGE_LABELS)
    )


def _labels_in(
    items: _Items, labels: Any, n: int, ids: Ids, column_of: Callable[[Table], npt.NDArray[Any]]
) -> Labels:
    name = items.labels
    if (table := table_of(name, labels)) is not None:
        labels = table.frame.to_numpy() if is_matrix(table, ids) else column_of(table)
    of_file = isinstance(labels, str | bytes | os.PathLike)
    array = _load(name, labels) if of_file else np.asarray(labels)
    if isinstance(array, np.ndarray) and (words := table_of_words(name, array)) is not None:
        array = column_of(words)
    elif table is None:
        in_order(name, ids)
    return _labels(items, array, n, copy=of_file, ids=ids)


def _labels(items: _Items, array: npt.NDArray[Any] | Archive, n: int, copy: bool, ids: Ids) -> Labels:
    """Return labels that are of the items, in the type that they are stored in."""
    name = items.labels
    if not isinstance(array, np.ndarray):
        raise ParameterError(
            f"{name}: the file is an archive of several arrays. Pass the array with the labels"
        )
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2) or 0 in array.shape[1:]:
        raise ParameterError(
            f"{name}: shape {array.shape}, expected one label per {items.one}, or (n, classes) of 0 and 1, or "
            "(n, width) of targets of a regression"
        )
    _match(items, name, len(array), n, ids)
    if array.ndim == 2:
        return _multilabel(items, array)
    if array.dtype.kind == "f":
        unlabelled = np.isnan(array)
        whole = np.where(unlabelled, -1, array)
        if not np.array_equal(whole, np.trunc(whole)):
            return _targets(items, array)
        array = whole
    elif array.dtype.kind not in "iub":
        raise TypeError(f"{name}: expected integers (-1 for unlabelled), got dtype {array.dtype}")
    # Casting would wrap silently.
    if array.size and array.dtype.kind in "uf" and not (array.min() >= -(2**63) and array.max() < 2**63):
        raise ParameterError(f"{name}: values must fit in int64")
    return array.astype(np.int64, order="C", copy=copy)  # a map would show later changes of the file


def known_of(labels: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which vertices have a label. Rows of 0 and 1 always count."""
    if labels.dtype.kind == "f":
        missing = np.isnan(labels).reshape(len(labels), -1)
        return np.asarray(~missing.any(axis=1))
    return np.ones(len(labels), np.bool_) if labels.ndim == 2 else np.asarray(labels >= 0)


def _targets(items: _Items, array: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return the targets of a regression, of which NaN is none."""
    with np.errstate(over="ignore"):
        targets = np.ascontiguousarray(array, np.float32)
    if np.isinf(targets).any():
        item = np.flatnonzero(np.isinf(targets).reshape(len(targets), -1).any(1))[0]
        raise ParameterError(
            f"{items.labels}: the target of {items.one} {item} is infinite, or too large for float32"
        )
    return targets


def _multilabel(items: _Items, array: npt.NDArray[Any]) -> npt.NDArray[np.uint8] | npt.NDArray[np.float32]:
    name, one = items.labels, items.one
    if array.dtype.kind not in "iubf":
        raise TypeError(f"{name}: expected 0 and 1, or bool, of shape (n, classes), got dtype {array.dtype}")
    ones = np.equal(array, 1)
    if array.dtype.kind == "f" and np.any(np.isfinite(array) & (array != np.trunc(array))):
        return _targets(items, array)
    if not np.all(ones | np.equal(array, 0)):
        raise ParameterError(
            f"{name}: expected 0 and 1 in an array of shape {array.shape}. Pass one integer per {one} for one class, "
            f"or one row of 0 and 1 for several. A {one} without known classes belongs to no split. Targets of a "
            "regression have fractions"
        )
    multilabel: npt.NDArray[np.uint8] = ones.view(np.uint8)
    return multilabel


def weights_of(text: str, n: int, ids: Ids = ()) -> npt.NDArray[Any] | InOrder:
    """Return the weights or the mask of ``FILE.npy``, ``FILE.npz:NAME`` or a table, as given on the command line.

    ``train``, ``val`` and ``test`` of an archive may be ids or a mask, as in splits.
    """
    if (table := file_of("--balance-on", text)) is not None:
        return InOrder(numbers_of_vertices("balance_on", table, n, ids))
    file, name = archive_and_name(text)
    loaded = _load("--balance-on", file)
    if not isinstance(loaded, Archive):
        return loaded
    if name not in loaded:
        raise ParameterError(
            f"--balance-on: {parameters.shown(file)} holds {', '.join(sorted(loaded))}. Add one after a colon, as in "
            f"{parameters.shown(file)}:{min(loaded, default='NAME')}"
        )
    if name not in SPLITS:
        return np.asarray(loaded[name])
    mask = np.zeros(n, dtype=bool)
    mask[_ids(_OF_VERTICES, name, loaded[name], n)] = True
    return mask


def fixed_of(name: str, value: Any) -> npt.NDArray[np.uint32]:
    """Return the part of each fixed vertex as uint32, from an array or a ``.npy``. Free ones have the largest number.

    The core checks the length, and that the parts exist.
    """
    of_file = isinstance(value, str | bytes | os.PathLike)
    array = np.asarray(_load(name, value) if of_file else value)
    if array.ndim != 1:
        raise TypeError(f"{name}: expected one part per vertex, -1 for free ones, got shape {array.shape}")
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name}: expected integers, got dtype {array.dtype}")
    bad = np.flatnonzero((array < -1) | (array >= _core.MAX_PARTS))
    if bad.size:
        raise ParameterError(
            f"{name}: vertex {bad[0]} has part {array[bad[0]]}. Give the number of a part, or -1 for a free vertex"
        )
    return array.astype(np.int64).astype(np.uint32)


def archive_and_name(text: str) -> tuple[str, str]:
    """Return the file and the name of ``FILE.npz:NAME``. Other files have no name."""
    file, _, name = text.rpartition(":")
    return (file, name) if file.endswith(".npz") else (text, "")


def splits_of(
    splits: Any, n: int, split: int | None = None, ids: Ids = (), about: str = ""
) -> dict[str, npt.NDArray[np.int64]]:
    """Return the vertex ids of the given ones of ``train``, ``val`` and ``test``, and warn of those in two of them.

    Tables, and series of ids, are matched by ``ids``, those that the vertices had in tables. The warning begins with
    ``about``.
    """
    if isinstance(splits, InOrder):
        splits, ids = splits.rows, ()
    if (table := table_of("splits", splits)) is not None:
        return splits_in(table, n, ids)
    if isinstance(splits, str | bytes | os.PathLike):
        splits = _load("splits", splits)
    if not isinstance(splits, Mapping):
        raise TypeError(_NO_SPLITS.format("splits"))
    if split is not None:
        split = parameters.integer("split", split, 0, 2**31)
    found = {
        name: _row_of(splits, key, split, n, ids) if key.endswith("_masks") else _members(key, splits, n, ids)
        for name, key in _keys_of(_OF_VERTICES, splits, split).items()
    }
    _warn_of_common(_OF_VERTICES, found, n, about)
    return found


def splits_of_records(splits: Any, m: int, about: str = "") -> dict[str, npt.NDArray[np.int64]]:
    """Return the records of each split, as :func:`splits_of` does for vertices. Records have no ids."""
    name = EDGE_LABEL_SPLITS
    if (table := table_of(name, splits)) is not None:
        column = column_of_records(table, split=True)
        _match(_OF_RECORDS, name, len(column), m)
        return splits_in_column(table, column, np.arange(m), "record")
    if isinstance(splits, str | bytes | os.PathLike):
        splits = _load(name, splits)
    if not isinstance(splits, Mapping):
        raise TypeError(_NO_SPLITS.format(name))
    found = {
        split: _ids(_OF_RECORDS, key, _entries(_OF_RECORDS, splits, key, m), m)
        for split, key in _keys_of(_OF_RECORDS, splits, None).items()
    }
    _warn_of_common(_OF_RECORDS, found, m, about)
    return found


_NO_SPLITS = "{}: expected a mapping, a .npz or a table with train, val and test"


def _warn_of_common(items: _Items, splits: Mapping[str, npt.NDArray[np.int64]], n: int, about: str) -> None:
    """Warn of items in two splits. A model has seen them before it is scored on them."""
    bits = split_bits(splits, n)
    for one, other in combinations(splits, 2):
        both = (1 << SPLITS.index(one)) | (1 << SPLITS.index(other))
        common = np.flatnonzero((bits & both) == both)
        if len(common):
            shared = items.one if len(common) == 1 else f"{len(common)} {items.several}, the first of them"
            warn(
                f"{about}{items.splits}: {one} and {other} share {shared} {common[0]}. The scores of {other} count "
                f"{items.several} that {one} has used already. Take them out of one of both splits",
                GraphWarning,
            )


def _keys_of(items: _Items, splits: Mapping[Any, Any], split: int | None) -> dict[str, str]:
    """Return the key of each split. Refuse keys that may be meant as a split, and note others."""
    found = {}
    for name, names in _NAMES.items():
        given = [key for key in names if key in splits]
        if not given and split is not None:
            given = [key for key in map("{}_masks".format, names) if key in splits]
        if len(given) > 1:
            raise ParameterError(f"{items.splits}: {' and '.join(given)} name the same split. Keep one")
        if given:
            found[name] = given[0]
    ignored = sorted(str(key) for key in splits if key not in found.values())
    if refused := [key for key in ignored if _may_be_meant(key, found)]:
        hint = (
            f"Choose a row of the masks with {arg('split')}"
            if refused[0].endswith("_masks") and items is _OF_VERTICES
            else "Name them train, val (or valid, validation) and test, and leave out other splits"
        )
        raise ParameterError(f"{items.splits}: unknown name {refused[0]!r}. {hint}")
    if not found:
        raise ParameterError(f"{items.splits}: none of train, val, test in {ignored}")
    if ignored:
        log.info("%s: ignored %s", items.splits, ", ".join(ignored))
    return found


def _may_be_meant(key: str, found: Mapping[str, str]) -> bool:
    word, masks = key.lower().removesuffix("_masks"), key.endswith("_masks")
    if masks and any(word in _NAMES[name] for name in found):
        return False  # rows of masks beside the split itself
    return word.startswith(SPLITS) or bool(get_close_matches(word, sum(_NAMES.values(), ())))


def _entries(items: _Items, splits: Mapping[Any, Any], key: str, n: int) -> npt.NDArray[Any]:
    """Return ids or masks. Those of an archive are unpacked only if their number can be right."""
    if isinstance(splits, Archive) and max(splits.shape(key)[-1:], default=0) > n:
        raise ParameterError(
            f"{items.splits}: {key} has shape {splits.shape(key)}, but there are {n} {items.several}"
        )
    return np.asarray(splits[key])


def _members(key: str, splits: Mapping[Any, Any], n: int, ids: Ids) -> npt.NDArray[np.int64]:
    """Return the vertices of a split, from their ids, their numbers or a mask."""
    name = f"splits: {key}"
    table = None if isinstance(splits, Archive) else table_of(name, splits[key])
    array = np.empty(0) if table is not None else _entries(_OF_VERTICES, splits, key, n)
    table = table or table_of_words(name, array)
    if table is not None:
        return members_in(table, n, ids)
    in_order(name, ids, numbers=array.dtype != bool)
    return _ids(_OF_VERTICES, key, array, n)


def _row_of(
    splits: Mapping[Any, Any], key: str, split: int | None, n: int, ids: Ids
) -> npt.NDArray[np.int64]:
    in_order(f"splits: {key}", ids)
    rows = _entries(_OF_VERTICES, splits, key, n)
    if rows.ndim != 2 or split is None or split >= len(rows):
        raise ParameterError(f"split: {split}, but {key} has shape {rows.shape}")
    return _ids(_OF_VERTICES, key, rows[split].astype(bool), n)


def _ids(items: _Items, key: str, array: npt.NDArray[Any], n: int) -> npt.NDArray[np.int64]:
    name = f"{items.splits}: {key}"
    if array.ndim != 1:
        raise ParameterError(f"{name}: expected ids or a mask of length n, got shape {array.shape}")
    if array.dtype == bool:
        _match(items, name, len(array), n)
        return np.flatnonzero(array).astype(np.int64)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name}: expected integer ids or a bool mask, got dtype {array.dtype}")
    outside = np.flatnonzero((array < 0) | (array >= n)) if array.size else array
    if len(outside):
        raise ParameterError(f"{name} holds the id {array[int(outside[0])]}, outside 0..{n - 1}")
    ids = np.ascontiguousarray(array, dtype=np.int64)
    refuse_repeated(name, ids)
    return ids


def refuse_repeated(name: str, ids: npt.NDArray[Any]) -> None:
    """Refuse ids of which one occurs more than once, as those of a mask of integers."""
    distinct, counts = np.unique(ids, return_counts=True)
    if len(distinct) == len(ids):
        return
    if distinct[-1] <= 1:
        raise ParameterError(
            f"{name}: holds only 0 and 1. Ids occur once, and a mask must be bool. Pass .astype(bool) of it"
        )
    raise ParameterError(f"{name}: {distinct[counts > 1][0]} occurs more than once")


def match_vertices(name: str, rows: int, n: int, ids: Ids = ()) -> None:
    """Refuse an array of another length than n."""
    if rows == n:
        return
    remedy = (
        f"If trailing vertices are isolated, open the graph with {arg('num_vertices', rows)}"
        if rows > n and not ids
        else "Give one row per vertex, or a table with a column of ids"
    )
    raise ParameterError(f"{name}: {rows} rows for {n} vertices. {remedy}")


def match_records(name: str, rows: int, m: int) -> None:
    """Refuse rows of another number than m."""
    if rows != m:
        raise ParameterError(f"{name}: {rows} rows for {m} records. Expected one row per record")


def _match(items: _Items, name: str, rows: int, count: int, ids: Ids = ()) -> None:
    if items is _OF_VERTICES:
        match_vertices(name, rows, count, ids)
    else:
        match_records(name, rows, count)


def arrays_of(name: str, file: Any) -> Archive:
    """Return the arrays of a ``.npz``."""
    loaded = _load(name, file)
    if not isinstance(loaded, Archive):
        raise ParameterError(
            f"{name}: {parameters.shown(file)} is a single array. Expected a .npz of several"
        )
    return loaded


def _load(name: str, file: Any) -> npt.NDArray[Any] | Archive:
    """Map a ``.npy``, or open a ``.npz``."""
    path = parameters.regular(parameters.path(name, file))
    return Archive(path) if zipfile.is_zipfile(path) else mapped(path, "not a .npy or .npz of plain arrays")


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
