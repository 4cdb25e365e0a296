"""Partitions from ``.npy``, ``.txt``, ``.parquet`` and partition directories."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, Literal, NoReturn, Unpack, overload

import numpy as np
import numpy.typing as npt

from ..core import parameters
from ..core.folders import inside
from ..core.frames import before_polars_threads, pl
from ..core.options import Options, run_options, with_options
from ..core.parameters import Of, StrPath, shown
from ..core.parsing import damaged, json_object, mapped
from ..core.row_groups import refuse_large, row_groups
from ..core.text_files import refuse_filling
from ..errors import FastpartError, GraphFormatError, ParameterError
from ..graphs.opening import open_graph
from ..partitions.part_files import MANIFEST, refuse_other_size
from ..partitions.partition import EdgePartition, Partition, VertexPartition, refuse_other_graph
from .manifest import read_manifest, refuse_mistyped
from .schemas import VERSION, caps_of, present, restore_caps
from .verifying import verify as verify_files

ASSIGNMENT = "assignment.npy"

_NO_PARTS = "not a .npy array of parts"

_CLASSES: dict[str, type[Partition]] = {"vertices": VertexPartition, "edges": EdgePartition}


@overload
def open_partition(
    source: StrPath,
    graph: Any = None,
    *,
    k: int | None = None,
    of: Literal["vertices"] | None = None,
    verify: bool = False,
    **options: Unpack[Options],
) -> VertexPartition: ...
@overload
def open_partition(
    source: StrPath,
    graph: Any = None,
    *,
    k: int | None = None,
    of: Literal["edges"],
    verify: bool = False,
    **options: Unpack[Options],
) -> EdgePartition: ...
@overload
def open_partition(
    source: StrPath,
    graph: Any = None,
    *,
    k: int | None = None,
    of: Of | None,
    verify: bool = False,
    **options: Unpack[Options],
) -> VertexPartition | EdgePartition: ...
@with_options
def open_partition(
    source: StrPath,
    graph: Any = None,
    *,
    k: int | None = None,
    of: Of | None = None,
    verify: bool = False,
    **options: Unpack[Options],
) -> VertexPartition | EdgePartition:
    """Read a partition that :meth:`fastpart.VertexPartition.save` wrote, or any ``.npy``, ``.txt`` or ``.parquet``.

    Parameters
    ----------
    source : path
        A ``.npy``, ``.txt`` or ``.parquet``, or a partition directory.
    graph : path, array or Graph, optional
        The graph. A partition of another graph is refused.
    k : int, optional
        Number of parts. ``.npy`` and ``.txt`` do not store it. Default: the largest part + 1.
    of : {"vertices", "edges"}, optional
        For ``.npy`` and ``.txt``. Default: "edges" if the array is uint8 or int16, as edge partitions are, else
        "vertices". Type checkers expect parts of vertices unless it says "edges".
    verify : bool
        Read all files of a directory first, and refuse it unless each has the size and the checksum of its writing, as
        :func:`fastpart.store.verify` does. Otherwise only sizes are compared, of the files that are opened.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    VertexPartition or EdgePartition
        A directory that was saved with ``graph=`` also gives ``parts``: see
        :class:`fastpart.partitions.parts.VertexPartData` and
        :class:`fastpart.partitions.parts.EdgePartData`. If the graph has types, ``part.of_type(NAME)`` and
        ``part.of_relation(NAME)`` have the rows of each.

    Raises
    ------
    GraphFormatError
        The content is not a partition, contradicts itself, or belongs to another graph.
    FileNotFoundError
        With the path. If an interrupted replacement left only ``.NAME.old-*``, the text says how to restore it.

    Notes
    -----
    Nothing in a file is executed, and everything is checked. One limit: Polars reads Parquet, and some damaged pages
    make it abort the process. Use the other formats for files that others may have tampered with.

    Examples
    --------
    See :meth:`fastpart.VertexPartition.save`.
    """
    file = parameters.path("source", source)
    if of is not None:
        parameters.choice("of", of, _CLASSES)
    if k is not None:
        k = parameters.parts(k)
    if parameters.flag("verify", verify):
        verify_files(file, **options)
    partition = read(file, k, of)
    if of is not None and partition.of != of:
        raise ParameterError(f"of: {of!r}, but {shown(file)} holds parts of {partition.of}")
    if graph is not None:
        opened = open_graph(graph, **options)
        checksum = opened.identify(run_options(**options))[1] if partition.checksum is not None else None
        refuse_other_graph(partition, opened.num_vertices, opened.num_edges, checksum)
        partition.graph = opened
    return partition  # type: ignore[return-value]  # there are no others


def read(file: Path, k: int | None, of: str | None) -> Partition:
    """Return a partition. ``of`` says what the parts of a file are of. Those of a directory may be of the other."""
    if file.is_dir():
        partition = _read_directory(file)
    elif not parameters.regular(file).exists():
        _refuse_missing(file)
    elif file.suffix == ".parquet":
        partition = _read_parquet(file, k, of)
    elif file.suffix == ".npy":
        partition = _wrap(file, mapped(file, _NO_PARTS), k, of)
    elif file.suffix == ".txt":
        partition = _wrap(file, _read_lines(file), k, of)
    else:
        raise ParameterError(f"source: {shown(file)} is not a partition directory, .npy, .txt or .parquet")
    if k is not None and partition.k != k:
        raise ParameterError(f"k: {k}, but {shown(file)} holds {partition.k} parts")
    return partition


def _refuse_missing(file: Path) -> NoReturn:
    old = sorted(file.parent.glob(f".{file.name}.old-*")) if file.parent.is_dir() else []
    if old:
        raise FileNotFoundError(
            errno.ENOENT,
            f"an interrupted replacement left only {old[-1].name}. To restore it, rename it to {file.name}",
            str(file),
        )
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(file))


def _read_lines(file: Path) -> npt.NDArray[Any]:
    if file.stat().st_size == 0:
        return np.zeros(0, dtype=np.int32)
    with (
        damaged(file, "not one part per line"),
        file.open("rb") as opened,
    ):  # Polars opens only paths in UTF-8
        before_polars_threads(f"source: {shown(file)}")
        refuse_filling(str(file))
        frame = pl.read_csv(opened, has_header=False, schema={"part": pl.Int32})
    if frame["part"].null_count():
        line = frame["part"].is_null().arg_max() or 0
        raise GraphFormatError(f"{shown(file)}: line {line + 1} holds no part")
    return frame["part"].to_numpy()


def _read_parquet(file: Path, k: int | None, of: str | None) -> Partition:
    with damaged(file, "not a Parquet file with a column 'part'"), file.open("rb") as opened:
        before_polars_threads(f"source: {shown(file)}")
        metadata = pl.read_parquet_metadata(opened).get("fastpart")
        opened.seek(0)
        refuse_large(str(file), row_groups(str(file)), [pl.Int32()], whole=True)
        array = pl.read_parquet(opened, columns=["part"])["part"].to_numpy()
    if metadata is None:
        return _wrap(file, array, k, of)
    return _restore(file, array, present(json_object(file, metadata, version=VERSION)))


def _read_directory(folder: Path) -> Partition:
    stored = read_manifest(folder)
    manifest, root = present(stored), folder.resolve()
    refuse_mistyped(folder / MANIFEST, manifest)
    array = mapped(inside(root, ASSIGNMENT), _NO_PARTS)
    refuse_other_size(root, manifest, ASSIGNMENT)
    partition = _restore(folder, array, manifest)
    partition.folder, partition.manifest = folder, {**manifest, "caps": caps_of(partition)}
    return partition


def _restore(origin: Path, array: npt.NDArray[Any], stored: dict[str, Any]) -> Partition:
    """Return a partition from an array and a manifest. Both are checked."""
    try:
        cls = _CLASSES[parameters.choice("of", stored.get("of"), _CLASSES)]
        partition = cls(array, parameters.parts(stored.get("k")))
        for name in ("n", "m", "loops"):
            if (value := stored.get(name)) is not None:
                attribute = {"n": "num_vertices", "m": "num_edges"}.get(name, name)
                setattr(partition, attribute, parameters.integer(name, value, 0, 2**63))
        for name, type_ in (("algorithm", str), ("parameters", dict), ("checksum", str)):
            if (value := stored.get(name)) is not None:
                if not isinstance(value, type_):
                    raise TypeError(f"{name}: expected {type_.__name__}, got {type(value).__name__}")
                setattr(partition, name, value)
        items = partition.num_vertices if cls is VertexPartition else partition.num_edges
        if items is not None and items != len(partition):
            raise ParameterError(
                f"assignment: {len(partition)} {partition._items}, but the manifest says {items}"
            )
        restore_caps(partition, stored.get("caps", []))
    except (FastpartError, TypeError) as error:
        raise GraphFormatError(f"{shown(origin)}: {error}") from None
    return partition


def _wrap(file: Path, array: npt.NDArray[Any], k: int | None, of: str | None) -> Partition:
    if of is None:
        of = "edges" if array.dtype in (np.uint8, np.int16) else "vertices"
    try:
        if k is None:
            k = int(array.max()) + 1 if array.size and array.dtype.kind in "iu" else 1
        return _CLASSES[of](array, k)
    except (FastpartError, TypeError) as error:
        raise GraphFormatError(f"{shown(file)}: {error}") from None
