"""The options of ``save`` about data beside the partition: checked, completed from a graph directory, opened."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core import parameters
from ..core.inputs import EDGE_LABEL_SPLITS, EDGE_LABELS
from ..core.notes import log
from ..core.options import RunOptions
from ..core.parameters import shown
from ..core.vertex_tables import InOrder
from ..errors import ParameterError, arg
from ..graphs.graph import Graph
from ..graphs.graph_directory import found_in
from ..graphs.types import TypedRanges
from ..partitions.saved import SavedData
from .contents import Contents, Given

NAMES = tuple(each.name for each in fields(SavedData))
OF_VERTICES = ("features", "labels", "splits", "times")
OF_EDGES = ("edge_features", EDGE_LABELS, EDGE_LABEL_SPLITS, "edge_times")


def check(data: SavedData, target: Path | None, form: str, of: str, *, graph: bool) -> None:
    """Refuse options that contradict each other, the output, its format or the type of the partition."""
    for name in _given(data):
        if form != "directory":
            raise ParameterError(
                f"{name}: needs a partition directory. Choose an output without a suffix or with a trailing /"
            )
        if not graph:
            raise ParameterError(
                f"{name}: needs {arg('graph')}, since this partition does not know its graph"
            )
        if name.startswith("halo_") and of == "edges":
            raise ParameterError(f"{name}: the parts of an edge partition have no halo")
    if data.edge_splits is not None and (of == "edges" or data.halo_hops < 1):
        raise ParameterError(
            f"edge_splits: links are trained over parts of the vertices, saved with {arg('halo_hops', 1)} or 2"
        )
    if target is not None:
        _refuse_inside(target, data)


def complete(data: SavedData, graph: Graph) -> SavedData:
    """Return the data with what lies in the directory of the graph, if it has one. Refuse what lacks others.

    ``False`` in place of data leaves out what is found.
    """
    found: dict[str, Any] = {}
    if graph.directory is not None:
        there = found_in(graph.directory, graph._typed)
        found = {
            name: _in_order(files) if name in OF_VERTICES else files
            for name, files in there.items()
            if getattr(data, name) is None
        }
    if found:
        log.info("%s taken from %s", ", ".join(found), shown(graph.directory or ""))
    left_out: dict[str, Any] = {
        name: None for name in (*OF_VERTICES, *OF_EDGES) if getattr(data, name) is False
    }
    completed = replace(data, **found, **left_out)
    for name in ("halo_features", "feature_dtype", "standardise"):
        if getattr(completed, name) and completed.features is None:
            raise ParameterError(f"{name}: there are no features. Pass {arg('features')}")
    if completed.edge_feature_dtype and completed.edge_features is None:
        raise ParameterError(
            f"edge_feature_dtype: there are no features of edges. Pass {arg('edge_features')}"
        )
    if completed.standardise and completed.splits is None and completed.edge_splits is None:
        raise ParameterError(
            f"standardise: takes the statistics of the training vertices. Pass {arg('splits')}"
        )
    return completed


def _given(data: SavedData) -> Iterator[str]:
    """Yield the names of options that differ from their defaults."""
    for each in fields(SavedData):
        if getattr(data, each.name) is not each.default:
            yield each.name


def measured(typed: TypedRanges | None, contents: Contents) -> dict[str, Any]:
    """Return what measures take. Of types these are the splits only, since each type has classes of its own."""
    splits = contents.splits_of(typed)
    found = {"splits": InOrder(splits) if splits else None}
    if typed is None:
        labels = contents.of_types[""].labels
        found["labels"] = None if labels is None else InOrder(labels.read(0, len(labels)))
    return found


def _refuse_inside(target: Path, data: SavedData) -> None:
    """Refuse files that replacing the target would delete."""
    folder = target.resolve()
    for name in NAMES:
        values = getattr(data, name)
        for value in values.values() if isinstance(values, Mapping) else [values]:
            if isinstance(value, np.memmap):
                value = value.filename
            if isinstance(value, str | bytes | os.PathLike):
                file = parameters.path(name, value)
                if Path(os.path.realpath(file)).is_relative_to(
                    folder
                ):  # resolve() fails where links form a circle
                    raise ParameterError(
                        f"{name}: {shown(file)} lies in the output directory and would be deleted. Move it, or "
                        "choose another output"
                    )


def opened(data: SavedData, graph: Graph, of: str, options: RunOptions) -> Contents:
    """Open all files, and refuse those that do not fit the graph. The data are complete."""
    typed = graph._typed
    if typed is not None:
        typed.refuse_as_folders()
        if of == "edges":
            raise ParameterError(
                "out: the parts of an edge partition do not know types. Save a vertex partition, or the assignment "
                "alone as .npy, .txt or .parquet"
            )
        types = [each.name for each in typed.types]
        by_name: dict[str, Any] = {name: _by_name(name, getattr(data, name), types) for name in OF_VERTICES}
        by_name |= {name: _by_name(name, getattr(data, name), typed.names) for name in OF_EDGES}
        data = replace(data, **by_name)
    return Given(data, options, graph._id_tables).open(typed, graph.num_vertices, graph.num_edges)


def _in_order(files: Any) -> Any:
    """Return the files of a graph directory, whose rows are in the order of its vertices."""
    if isinstance(files, Mapping):
        return {name: InOrder(file) for name, file in files.items()}
    return InOrder(files)


def _by_name(name: str, value: Any, known: list[str]) -> Mapping[str, Any] | None:
    """Return data by type or relation. Refuse what is given otherwise, or of one that is not there."""
    if value is None:
        return None
    if len(known) == 1 and not (isinstance(value, Mapping) and known[0] in value):
        return {known[0]: value}
    what = "relation" if name in OF_EDGES else "type"
    example = arg(f"{name}={{{known[0]!r}: ...}}")
    if not isinstance(value, Mapping):
        raise ParameterError(f"{name}: the graph has several types. Give them by {what}, as {example}")
    for key in value:
        if key not in known:
            raise ParameterError(
                f"{name}: {key!r} is no {what} of the graph. There are {', '.join(known)}. Give them by {what}, as "
                f"{example}"
            )
    return value
