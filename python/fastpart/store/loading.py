"""Partitions from ``.npy``, ``.txt``, ``.parquet`` and partition directories."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, Literal, NoReturn, Unpack, overload

import numpy as np
import numpy.typing as npt

from .. import parameters
from ..errors import FastpartError, GraphFormatError, ParameterError
from ..forks import before_polars_threads
from ..frames import pl
from ..graph import open_graph
from ..options import Options, run_options, with_options
from ..parameters import Of, StrPath, shown
from ..parsing import damaged, json_object
from ..part_files import MANIFEST
from ..partitions import EdgePartition, Partition, VertexPartition
from .schemas import caps_of, present, restore_caps

_CLASSES: dict[str, type[Partition]] = {"vertices": VertexPartition, "edges": EdgePartition}


@overload
def open_partition(
    source: StrPath,
    graph: Any = None,
    *,
    k: int | None = None,
    of: None = None,
    **options: Unpack[Options],
) -> VertexPartition | EdgePartition: ...
@overload
def open_partition(
    source: StrPath,
    graph: Any = None,
    *,
    k: int | None = None,
    of: Literal["vertices"],
    **options: Unpack[Options],
) -> VertexPartition: ...
@overload
def open_partition(
    source: StrPath,
    graph: Any = None,
    *,
    k: int | None = None,
    of: Literal["edges"],
    **options: Unpack[Options],
) -> EdgePartition: ...
@with_options
def open_partition(
    source: StrPath,
    graph: Any = None,
    *,
    k: int | None = None,
    of: Of | None = None,
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
        "vertices".
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    VertexPartition or EdgePartition
        A directory that was saved with ``graph=`` also gives ``parts``: see :class:`fastpart.parts.VertexPartData` and
        :class:`fastpart.parts.EdgePartData`.

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
    if file.is_dir():
        partition = _read_directory(file)
    elif not parameters.regular(file).exists():
        _refuse_missing(file)
    elif file.suffix == ".parquet":
        partition = _read_parquet(file, k, of)
    elif file.suffix == ".npy":
        partition = _wrap(file, _read_npy(file), k, of)
    elif file.suffix == ".txt":
        partition = _wrap(file, _read_lines(file), k, of)
    else:
        raise ParameterError(f"source: {shown(file)} is not a partition directory, .npy, .txt or .parquet")
    if k is not None and partition.k != k:
        raise ParameterError(f"k: {k}, but {shown(file)} holds {partition.k} parts")
    if of is not None and partition.of != of:
        raise ParameterError(f"of: {of!r}, but {shown(file)} holds parts of {partition.of}")
    if graph is not None:
        opened = open_graph(graph, **options)
        checksum = opened.identify(run_options(**options))[1] if partition.checksum is not None else None
        partition.refuse_other_graph(opened.num_vertices, opened.num_edges, checksum)
        partition.graph = opened
    return partition  # type: ignore[return-value]  # there are no others


def _refuse_missing(file: Path) -> NoReturn:
    old = sorted(file.parent.glob(f".{file.name}.old-*")) if file.parent.is_dir() else []
    if old:
        raise FileNotFoundError(
            errno.ENOENT,
            f"an interrupted replacement left only {old[-1].name}. To restore it, rename it to {file.name}",
            str(file),
        )
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(file))


def _read_npy(file: Path) -> npt.NDArray[Any]:
    """Map an array. Refuse pickles, and headers that claim more than the file holds."""
    with damaged(file, "not a .npy array of parts"):
        return np.asarray(np.lib.format.open_memmap(file, mode="r"))


def _read_lines(file: Path) -> npt.NDArray[Any]:
    if file.stat().st_size == 0:
        return np.zeros(0, dtype=np.int32)
    with (
        damaged(file, "not one part per line"),
        file.open("rb") as opened,
    ):  # Polars opens only paths in UTF-8
        before_polars_threads(f"source: {shown(file)}")
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
        array = pl.read_parquet(opened, columns=["part"])["part"].to_numpy()
    if metadata is None:
        return _wrap(file, array, k, of)
    return _restore(file, array, present(file, json_object(file, metadata)))


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a directory as it was written, of any schema."""
    file = folder / MANIFEST
    if not file.is_file():
        raise GraphFormatError(f"{shown(folder)} is not a partition directory: it has no {MANIFEST}")
    return json_object(file, file.read_bytes())


def _read_directory(folder: Path) -> Partition:
    manifest = present(folder, read_manifest(folder))
    partition = _restore(folder, _read_npy(parameters.regular(folder / "assignment.npy")), manifest)
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
                f"assignment: {len(partition)} {partition.items}, but the manifest says {items}"
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
