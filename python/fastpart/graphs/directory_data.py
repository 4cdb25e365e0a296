"""The features, labels, splits and times that lie in a graph directory, for ``save``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.parsing import mapped
from .graph_directory import EDGES, RELATION_FILES, file_in
from .types import TypedRanges

OF_VERTICES = {
    "features": "features.npy",
    "labels": "labels.npy",
    "splits": "split.npz",
    "times": "times.npy",
}
"""The files of a type, by the parameter of ``save`` that takes them."""

_NO_TIME = np.iinfo(np.int64).min
_BLOCK = 1 << 20


def found_in(folder: Path, typed: TypedRanges | None) -> dict[str, Any]:
    """Return the data of vertices and edges in a graph directory, by the parameter of ``save`` that takes them.

    A value is a file, or a mapping with one for each type or relation that has it if the graph has types.
    """
    if typed is None:
        files: dict[str, Any] = {name: file_in(folder, file) for name, file in OF_VERTICES.items()}
        files |= {
            "edge_features": file_in(folder, RELATION_FILES["features.npy"]),
            "edge_times": _times(folder),
        }
        return {name: file for name, file in files.items() if file.is_file()}
    types = [each.name for each in typed.types]
    found: dict[str, Any] = {name: _files(folder, "types", types, file) for name, file in OF_VERTICES.items()}
    own = RELATION_FILES if len(typed.names) == 1 else {}
    features = own.get("features.npy", "features.npy")
    found["edge_features"] = _files(folder, "relations", typed.names, features)
    found["edge_times"] = _times_of(_times(folder), typed)
    return {name: files for name, files in found.items() if files}


def _files(folder: Path, kind: str, names: Sequence[str], file: str) -> Mapping[str, Path]:
    """Return the file of each type or relation that has it. A single one has its files at the top."""
    above = {name: "" if len(names) == 1 else f"{kind}/{name}/" for name in names}
    files = {name: file_in(folder, f"{at}{file}") for name, at in above.items()}
    return {name: file for name, file in files.items() if file.is_file()}


def _times(folder: Path) -> Path:
    return file_in(folder, f"{EDGES}.times.npy")


def _times_of(file: Path, typed: TypedRanges) -> dict[str, Any]:
    """Return the times of the relations that have any."""
    if not file.is_file():
        return {}
    times = mapped(file)
    of = {each.name: times[each.first : each.range.stop] for each in typed.relations}
    return {name: rows for name, rows in of.items() if _any_time(rows)}


def _any_time(times: Any) -> bool:
    return any((times[start : start + _BLOCK] != _NO_TIME).any() for start in range(0, len(times), _BLOCK))
