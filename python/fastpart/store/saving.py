"""Partitions to ``.npy``, ``.txt``, ``.parquet`` and partition directories."""

from __future__ import annotations

import errno
import io
import json
import os
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar, cast

from .. import _core
from ..core import parameters
from ..core.frames import before_polars_threads, pl
from ..core.options import RunOptions
from ..core.outputs import Owner
from ..core.parameters import StrPath, shown
from ..errors import ParameterError
from ..graphs.graph import Graph
from ..graphs.opening import open_graph
from ..machines.engine import Engine
from ..machines.partitioning import Place
from ..machines.starting import at_place
from ..measures.evaluate import evaluate
from ..partitions.partition import EdgePartition, Partition, refuse_other_graph
from ..partitions.results import Evaluation
from ..partitions.saved import SavedData, SaveOptions
from . import extras
from .contents import Contents, holds
from .directory import identity, write_directory
from .loading import read
from .manifest import replaced_files
from .restoring import restore
from .schemas import SCHEMA

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
        extras.check(options, target, form, partition.of, graph=known is not None)
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
        contents = extras.opened(extras.complete(data, graph), graph, of, run)
        return cls(contents, {} if of == "edges" else extras.measured(graph._typed, contents))


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
