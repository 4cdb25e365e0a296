"""Partitions to ``.npy``, ``.txt``, ``.parquet`` and partition directories, with the data beside them."""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar, cast

import numpy as np

from .. import _core
from ..core import parameters
from ..core.frames import before_polars_threads, pl
from ..core.inputs import EDGE_LABEL_SPLITS, EDGE_LABELS
from ..core.notes import log
from ..core.options import RunOptions
from ..core.outputs import KINDS, Owner
from ..core.parameters import StrPath, shown
from ..core.vertex_tables import InOrder
from ..errors import ParameterError, arg
from ..graphs.graph import Graph
from ..graphs.graph_directory import found_in
from ..graphs.opening import open_graph
from ..graphs.types import TypedRanges
from ..machines.engine import Engine
from ..machines.partitioning import Place
from ..machines.starting import at_place
from ..measures.evaluate import evaluate
from ..partitions.partition import EdgePartition, Partition, refuse_other_graph
from ..partitions.results import Evaluation
from ..partitions.saved import SavedData, SaveOptions
from .contents import Contents, Given, holds
from .directory import identity, write_directory
from .loading import read
from .manifest import replaced_files
from .restoring import restore
from .schemas import SCHEMA

NAMES = tuple(each.name for each in fields(SavedData))
OF_VERTICES = ("features", "labels", "splits", "times")
OF_EDGES = ("edge_features", EDGE_LABELS, EDGE_LABEL_SPLITS, "edge_times")


def check_data(data: SavedData, target: Path | None, form: str, of: str, *, graph: bool) -> None:
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


def completed(data: SavedData, graph: Graph) -> SavedData:
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
        log.info("%s taken from %s", ", ".join(KINDS[name] for name in found), shown(graph.directory or ""))
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


PartitionType = TypeVar("PartitionType", bound=Partition)

FORMATS = {".npy": "npy", ".txt": "txt", ".parquet": "parquet", "": "directory"}


def save(partition: PartitionType, out: StrPath, **given: Any) -> PartitionType:
    """Write a partition, as :meth:`fastpart.VertexPartition.save` documents."""
    return partition.save(out, **given)


def save_at(
    partition: PartitionType,
    out: StrPath,
    graph: Any,
    cluster: str | Engine | None,
    shared: StrPath | None,
    overwrite: bool,
    options: SaveOptions,
) -> PartitionType:
    """Write a partition, given the arguments of its method. Return the one in the directory, if it is one."""
    target, form = output(out)
    parameters.flag("overwrite", overwrite)
    with Owner(target):
        if options.restore is not None and form != "parquet":
            raise ParameterError("restore: needs a .parquet, which gets the ids beside the parts")
        run, known = options.run, partition.graph if graph is None else graph
        check_data(options, target, form, partition.of, graph=known is not None)
        opened = None if known is None else open_graph(known, **vars(run))
        refuse_unwritable(target, form, opened)
        if cluster is not None and (
            form != "directory" or opened is None or isinstance(partition, EdgePartition)
        ):
            raise ParameterError(
                "cluster: a cluster writes the parts of a vertex partition, with its graph, to a directory. Leave it "
                "out"
            )
        if opened is None:
            refuse_loss(target, form, None, overwrite)
        if opened is None or form != "directory":
            if opened is not None and opened is not partition.graph:
                refuse_other_graph(partition, opened.num_vertices, opened.num_edges, opened.identify(run)[1])
            if options.restore is not None:
                restore(partition, target, graph=options.restore, **vars(run))
            else:
                write(partition, target, form, run)
        else:
            refuse_other_graph(partition, opened.num_vertices, opened.num_edges, None)
            beside = Beside.of(options, opened, partition.of, run)
            refuse_loss(target, form, beside.contents, overwrite)
            with at_place(cluster, shared if partition.of == "vertices" else None) as place:
                evaluation = evaluate(opened, partition, **beside.measured, **at(place), **vars(run))
                write(partition, target, form, run, evaluation, opened, beside.contents, place)
    if form != "directory":
        return partition
    stored = cast(PartitionType, read(target, None, None))
    stored.graph = opened
    return stored


class Beside(NamedTuple):
    """What a directory holds beside a partition, opened before any work, and what of it measures take."""

    contents: Contents
    measured: dict[str, Any]

    @classmethod
    def of(cls, data: SavedData, graph: Graph, of: str, run: RunOptions) -> Self:
        """Complete the data from the directory of the graph, and open them. No measure of edge partitions takes any."""
        contents = opened(completed(data, graph), graph, of, run)
        return cls(contents, {} if of == "edges" else measured(graph._typed, contents))


def at(place: Place | None) -> dict[str, Any]:
    """Return the keywords that lead a function to a place."""
    return {} if place is None else {"cluster": place.engine, "shared": place.shared}


def write(
    partition: Partition,
    target: Path,
    form: str,
    options: RunOptions,
    evaluation: Evaluation | None = None,
    graph: Graph | None = None,
    contents: Contents | None = None,
    place: Place | None = None,
    run_options: bytes | None = None,
) -> None:
    """Write a partition and its measures to a target that :func:`output` accepted, on this machine or in a place."""
    match form:
        case "npy":
            _core.write_npy(target, partition.assignment, options)
        case "txt":
            _core.write_lines(target, partition.assignment, options)
        case "parquet":
            _write_parquet(target, partition)
        case _:
            write_directory(target, partition, options, evaluation, graph, contents, place, run_options)


def output(out: object) -> tuple[Path, str]:
    """Return the target of ``-o`` or ``save``, and its format: npy, txt, parquet or directory."""
    target = parameters.path("out", out)
    as_directory = os.fsdecode(out).endswith("/")  # type: ignore[arg-type]
    suffix = "" if as_directory else target.suffix
    if suffix not in FORMATS:
        raise ParameterError(
            f"out: unknown suffix {suffix!r} of {shown(target)}. Use .npy, .txt, .parquet, "
            "or no suffix (or a trailing /) for a partition directory"
        )
    return parameters.in_folder(target), FORMATS[suffix]


def refuse_unwritable(target: Path, form: str, graph: Graph | None) -> None:
    """Refuse an output that is the input, would delete it or other files, or cannot be written.

    Call this before any work.
    """
    if graph is not None and graph.path is not None and target.exists():
        if target.samefile(graph.path):
            raise ParameterError(f"out: {shown(target)} is the input. Choose another name")
        if graph.path.resolve().is_relative_to(target.resolve()):
            raise ParameterError(
                f"out: {shown(target)} holds the input, which would be deleted. Choose another name"
            )
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "the folder of the output is not writable", str(target.parent))
    if form == "directory":
        replaced_files(target)
    elif target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))


def refuse_loss(target: Path, form: str, contents: Contents | None, overwrite: bool) -> None:
    """Refuse to replace a partition directory by one with less, unless the user says so. Call this before any work."""
    if form == "directory" and not overwrite:
        replaced_files(target, holds(contents))


def _write_parquet(target: Path, partition: Partition) -> None:
    before_polars_threads(f"out: {shown(target)}")
    frame = pl.DataFrame({"part": partition.assignment})
    buffer = io.BytesIO()
    frame.write_parquet(buffer, metadata={"fastpart": json.dumps({"schema": SCHEMA, **identity(partition)})})
    _core.write_file(target, buffer.getvalue())
