"""Results with the users' own ids: what a graph directory keeps of the tables leads back to them."""

from __future__ import annotations

import errno
import filecmp
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Unpack, overload

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core import parameters
from ..core.frames import before_polars_threads, pl
from ..core.ids import Ids
from ..core.options import Options, with_options
from ..core.outputs import Owner, folder_beside, output_folder
from ..core.parameters import StrPath, regular, shown
from ..core.parsing import damaged, mapped
from ..core.protocols import Assignment
from ..errors import ParameterError
from ..graphs.graph_directory import GraphDirectory
from ..graphs.tables import write_table
from ..partitions.partition import EdgePartition, VertexPartition
from .loading import open_partition

SUFFIXES = (".parquet", ".csv")

MARKER = "restored.json"
"""The file that marks a folder with a table for each type."""

_ROWS = 1 << 18
"""Rows in memory at a time."""

Values = npt.NDArray[Any]


@overload
def restore(
    result: Any,
    out: None = None,
    *,
    graph: Any,
    column: str | Sequence[str] | None = None,
    of_type: str | None = None,
    of_relation: str | None = None,
    overwrite: bool = False,
    **options: Unpack[Options],
) -> pl.DataFrame: ...
@overload
def restore(
    result: Any,
    out: StrPath,
    *,
    graph: Any,
    column: str | Sequence[str] | None = None,
    of_type: str | None = None,
    of_relation: str | None = None,
    overwrite: bool = False,
    **options: Unpack[Options],
) -> Path: ...
@with_options
def restore(
    result: Any,
    out: StrPath | None = None,
    *,
    graph: Any,
    column: str | Sequence[str] | None = None,
    of_type: str | None = None,
    of_relation: str | None = None,
    overwrite: bool = False,
    **options: Unpack[Options],
) -> pl.DataFrame | Path:
    """Give a result of vertices or edges back with the ids that the tables of :func:`ingest` had.

    Parameters
    ----------
    result : VertexPartition, Clustering, array or path
        A partition or a clustering of the vertices, or what :func:`open_partition` reads. Or an array of one row per
        vertex, or the ``.npy`` of one, such as the predictions or the embeddings of a training.
    out : path, optional
        A ``.parquet`` or a ``.csv``. For several types also a folder, which gets a Parquet file for each type. Default:
        the table is returned.
    graph : path or Graph
        The graph directory that :func:`ingest` wrote, or the graph that was opened from it.
    column : str or sequence of str, optional
        Name of the column of the result, other than those of the ids. Several names: each number of a row of the
        result has a column of its own. Default: "part" of a partition, "cluster" of
        a clustering, else "value".
    of_type : str, optional
        The type of the vertices, if the result is of one type only, as predictions over a typed graph are.
    of_relation : str, optional
        The relation, if the result is an array with a row for each of its records, such as the predictions of a model
        of edges.
    overwrite : bool
        Replace a folder of restored tables also if these have another column.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    polars.DataFrame or pathlib.Path
        The table, or ``out``. Its columns are ``type`` (if there are several types in one table), ``id`` with the type
        that it had in the tables, and the result: a number, or an array of a fixed width. Codes of classes also get the
        column ``label`` with the value of the table, if its labels were text. Rows are in the order of the vertices:
        sorted by type and id. With ``of_relation`` the columns ``source`` and ``target`` take the place of ``id``, and
        rows are in the order of the records.

    Raises
    ------
    ParameterError
        The result is not of this graph: it has another number of rows, or it is a partition whose vertices have other
        ids. Or the graph has no ids, or the table has another column of the name ``column``.
    GraphFormatError
        A file is damaged.

    Notes
    -----
    Only a batch of rows is in memory at a time, if ``out`` is given. With ``of_relation``, memory also holds the ids of
    the types of both ends.

    Examples
    --------
    >>> import fastpart as fp, polars as pl, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> edges = pl.DataFrame({"from": ["ann", "bob", "eve"], "to": ["bob", "eve", "ann"]})
    >>> ends = {"source": {"person": "from"}, "target": {"person": "to"}}
    >>> schema = {"vertices": {"person": {}}, "relations": {"knows": {"files": edges, **ends}}}
    >>> graph = fp.ingest(schema, folder / "graph")
    >>> fp.store.restore([7, 8, 9], graph=folder / "graph").rows()
    [('ann', 7), ('bob', 8), ('eve', 9)]
    """
    parameters.flag("overwrite", overwrite)
    directory = GraphDirectory.of(graph)
    found = _Result.of(result, column, options)
    if of_type is not None and of_relation is not None:
        raise ParameterError("of_relation: a result is of vertices or of edges. Leave out this or of_type")
    found, expected, what = replace(found, of_type=of_type), directory.num_vertices, "vertices"
    if of_type is not None:
        expected, what = _known("of_type", of_type, directory.types, "types"), f"vertices of {of_type!r}"
    elif of_relation is not None:
        relation = _known("of_relation", of_relation, directory.relations, "relations")
        expected, what = relation["m"], f"records of {of_relation!r}"
        found = replace(found, of_relation=of_relation)
    if len(found.values) != expected:
        raise ParameterError(
            f"result: {len(found.values):,} rows, but {shown(directory.path)} has {expected:,} {what}. Pass the graph "
            "of this result"
        )
    refuse_other_ids("result", found.ids, directory)
    target = None if out is None else parameters.path("out", out)
    several = len(directory.types) > 1 and of_type is None and of_relation is None
    in_folder = target is not None and target.suffix == "" and several
    _refuse_taken(directory, found, several and not in_folder)
    before_polars_threads("restore")
    if target is None:
        return pl.concat(list(_table(directory, found, of_type)))
    with Owner(target):
        if in_folder:
            _write_folder(directory, found, target, overwrite)
        else:
            if target.suffix not in SUFFIXES:
                more = " A folder is for several types" if len(directory.types) == 1 else ", or a folder"
                raise ParameterError(f"out: {shown(target)}: use {' or '.join(SUFFIXES)}.{more}")
            _write_file(directory, found, target)
    return target


def _known(parameter: str, name: str, known: Mapping[str, Any], what: str) -> Any:
    """Return what a directory says of a type or relation."""
    if name not in known:
        raise ParameterError(f"{parameter}: {name!r} is none of the {what} {', '.join(known)}")
    return known[name]


@dataclass(frozen=True)
class _Result:
    """One row per vertex or record, and how its columns are called."""

    values: Values
    columns: tuple[str, ...]
    classes: bool
    """Whether numbers may be codes of classes."""
    of_type: str | None = None
    """The type of the vertices, if they are of one type only."""
    of_relation: str | None = None
    """The relation of the records. None: rows are of vertices."""
    apart: bool = False
    """Whether each number of a row has a column of its own."""
    ids: Ids = ()
    """The ids of the vertices, where the result knows them."""

    @classmethod
    def of(cls, result: Any, column: str | Sequence[str] | None, options: Any) -> _Result:
        """Return the values of a result."""
        if isinstance(column, Sequence) and not isinstance(column, str):
            found = cls.of(result, None, options)
            width = found.values.shape[1] if found.values.ndim == 2 else 1
            names = tuple(_name(each) for each in column)
            if len(names) == 1:
                return replace(found, columns=names)
            if len(set(names)) != len(names) or len(names) != width:
                raise ParameterError(
                    f"column: expected {width} names that differ, one for each number of a row, got {len(names)}: "
                    f"{', '.join(names[:10])}"
                )
            return replace(found, columns=names, apart=True)
        if column is not None:
            _name(column)
        if isinstance(result, str | bytes | os.PathLike):
            file = parameters.path("result", result)
            if file.suffix == ".npy":
                values = mapped(file, "not a .npy of one row per vertex or record")
                return cls(_checked(values), (column or "value",), True)
            result = open_partition(file, **options)
        if isinstance(result, EdgePartition):
            raise ParameterError(
                "result: a partition of the edges. Records have no ids of their own. Restore a partition of the "
                "vertices"
            )
        if isinstance(result, Assignment):
            ids = result._id_tables if isinstance(result, VertexPartition) else ()
            return cls(result.assignment, (column or result._column,), False, ids=ids)
        values = np.asarray(result.detach().cpu() if hasattr(result, "detach") else result)
        return cls(_checked(values), (column or "value",), True)

    def frame(self, start: int, stop: int, labels: list[Any] | None) -> pl.DataFrame:
        """Return some rows."""
        block = np.array(self.values[start:stop])
        if self.apart:
            columns = zip(self.columns, block.reshape(len(block), -1).T, strict=True)
            return pl.DataFrame({name: np.ascontiguousarray(each) for name, each in columns})
        if block.ndim == 1:
            frame = pl.DataFrame({self.columns[0]: block})
            if labels is not None:
                codes = pl.Series(block).cast(pl.Int64)
                known = pl.Series(labels, dtype=pl.String)
                inside = codes.is_between(0, len(known) - 1)
                frame = frame.with_columns(
                    label=known.gather(pl.select(pl.when(inside).then(codes)).to_series())
                )
            return frame
        return pl.DataFrame(
            {self.columns[0]: pl.Series(block, dtype=pl.Array(_dtype(block), block.shape[1]))}
        )

    def labels(self, dictionary: list[Any] | None) -> list[Any] | None:
        """Return the values of the classes, if numbers are codes of them."""
        codes = self.classes and not self.apart and self.values.ndim == 1 and self.values.dtype.kind in "iu"
        return [str(each) for each in dictionary] if codes and dictionary is not None else None


def _name(column: Any) -> str:
    if not isinstance(column, str) or not column:
        raise TypeError(f"column: expected a name, got {column!r}")
    return column


def _dtype(block: Values) -> Any:
    return pl.Series(block[:1].ravel()).dtype


def _checked(values: Values) -> Values:
    if values.ndim not in (1, 2) or values.dtype.kind not in "biuf":
        raise ParameterError(
            "result: expected one number or one row of numbers per vertex or record, got shape "
            f"{values.shape} of {values.dtype}"
        )
    return values


def _labels(directory: GraphDirectory, found: _Result, only: str | None) -> dict[str, list[Any] | None]:
    """Return the values of the classes of each type of a table, or of its relation."""
    if found.of_relation is not None:
        return {found.of_relation: found.labels(directory.labels_of_relation(found.of_relation))}
    return {name: found.labels(directory.labels(name)) for name in directory.types if only in (None, name)}


def _ends(directory: GraphDirectory, name: str) -> dict[str, str]:
    """Return the types of both ends of a relation."""
    return {end: directory.relations[name][end] for end in ("source", "target")}


def _refuse_taken(directory: GraphDirectory, found: _Result, with_types: bool) -> None:
    """Refuse the name of another column of the table for that of the result."""
    labelled = any(each is not None for each in _labels(directory, found, found.of_type).values())
    taken = ["id", *(["type"] if with_types else [])] if found.of_relation is None else ["source", "target"]
    for name in found.columns:
        if name in [*taken, *(["label"] if labelled else [])]:
            raise ParameterError(f"column: the table has a column {name!r} of its own. Choose another name")


def _table(directory: GraphDirectory, found: _Result, only: str | None) -> Iterator[pl.DataFrame]:
    """Yield ids and result of one type, of all with a column for the type, or of the records of a relation."""
    if found.of_relation is not None:
        yield from _table_of_records(directory, found, found.of_relation)
        return
    by_type = _labels(directory, found, only)
    several, labelled = len(by_type) > 1, any(each is not None for each in by_type.values())
    first = 0
    for name, n in directory.types.items():
        if name in by_type:
            labels = by_type[name]
            at = start = 0 if found.of_type else first
            for ids in _ids(directory.ids(name)):
                rows = pl.concat([ids, found.frame(at, at + len(ids), labels)], how="horizontal")
                at += len(ids)
                if several:
                    rows = rows.select(pl.lit(name).alias("type"), pl.all())
                    if labels is None and labelled:
                        rows = rows.with_columns(label=pl.lit(None, pl.String))
                yield rows
            if at != start + n:
                raise directory.damaged(f"{name} has {at - start:,} ids, but {n:,} vertices")
        first += n


def _table_of_records(directory: GraphDirectory, found: _Result, name: str) -> Iterator[pl.DataFrame]:
    """Yield the ids of both ends and the result of the records of a relation."""
    labels, ends = _labels(directory, found, None)[name], _ends(directory, name)
    ids, firsts, first = dict[str, pl.Series](), dict[str, int](), 0
    for kind, n in directory.types.items():
        if kind in ends.values():
            ids[kind], firsts[kind] = pl.concat(list(_ids(directory.ids(kind))))["id"], first
            if len(ids[kind]) != n:
                raise directory.damaged(f"{kind} has {len(ids[kind]):,} ids, but {n:,} vertices")
        first += n
    start = 0
    for block in directory.records(name, _ROWS):
        columns = []
        for place, (end, kind) in enumerate(ends.items()):
            vertices = block[:, place] - np.uint32(firsts[kind])  # one before the first wraps around
            if (vertices >= len(ids[kind])).any():
                raise directory.damaged(f"a record of {name} has a {end} that is no {kind}")
            columns.append(ids[kind].gather(vertices).alias(end))
        values = found.frame(start, start + len(block), labels)
        start += len(block)
        yield pl.concat([pl.DataFrame(columns), values], how="horizontal")
    if start != (m := directory.relations[name]["m"]):
        raise directory.damaged(f"{name} has {m:,} records, but there are {start:,}")


def _ids(file: Path) -> Iterator[pl.DataFrame]:
    with damaged(file, "not a Parquet file of ids"):
        scan = pl.scan_parquet(regular(file)).select("id")
        batches = scan.collect_batches(chunk_size=_ROWS, maintain_order=True)
        first = next(batches, None)
        yield scan.collect() if first is None else first  # no ids still have a type
        yield from batches


def _rows_of(file: Path) -> Iterator[pl.DataFrame]:
    """Yield the ids of a file, the same number at a time whatever its row groups are."""
    with damaged(file, "not a Parquet file of ids"):
        scan = pl.scan_parquet(regular(file)).select("id")
        for start in range(0, scan.select(pl.len()).collect().item() + 1, _ROWS):
            yield scan.slice(start, _ROWS).collect()


def refuse_other_ids(parameter: str, known: Ids, directory: GraphDirectory) -> None:
    """Raise an error if a graph directory gives the vertices other ids than those that are ``known``.

    The rows of a partition of yesterday's tables fit today's graph if as many vertices came as went. They would get the
    ids of others.
    """
    for table in known if len(known) == len(directory.types) else ():
        name = table.name if table.name in directory.types else next(iter(directory.types))
        file = directory.ids(name)
        table.refuse_changed()
        if filecmp.cmp(table.file, file, shallow=False):
            continue
        pairs = zip_longest(_rows_of(table.file), _rows_of(file))
        if any(theirs is None or not theirs.equals(ours) for ours, theirs in pairs):
            raise ParameterError(
                f"{parameter}: its vertices have other ids than {shown(directory.path)}. Pass the graph that was "
                "partitioned, or partition this one"
            )


def _write_file(directory: GraphDirectory, found: _Result, target: Path) -> None:
    """Write one table."""
    names = [found.of_type] if found.of_type else list(directory.types)
    types = {str(dtype) for dtype in map(directory.id_dtype, names)}
    if len(types) > 1 and found.of_relation is None:
        raise ParameterError(
            f"out: the ids of the types are {' and '.join(sorted(types))}, which no column can hold. Choose a folder: "
            "it gets a file for each type"
        )
    if target.suffix == ".csv" and found.values.ndim == 2 and not found.apart:
        raise ParameterError(f"out: {shown(target)}: a CSV holds no rows of numbers. Use .parquet")
    with _staged(target) as file:
        only = found.of_type
        write_table(file, _schema(directory, found, only), _table(directory, found, only))


def _write_folder(directory: GraphDirectory, found: _Result, target: Path, overwrite: bool) -> None:
    """Write a table for each type."""
    holds = [f"the column {name}" for name in found.columns]
    with output_folder(target, MARKER, "a folder of restored tables", holds, overwrite) as folder:
        files = {name: f"{name}.parquet" for name in directory.types}
        for name, file in files.items():
            write_table(folder / file, _schema(directory, found, name), _table(directory, found, name))
        content = {"fastpart": 1, "holds": holds, "files": sorted(files.values())}
        _core.write_file(folder / MARKER, json.dumps(content, indent=1).encode())


def _schema(directory: GraphDirectory, found: _Result, only: str | None) -> dict[str, Any]:
    """Return the columns of a table and their types."""
    labels = _labels(directory, found, only)
    if found.of_relation is not None:
        ends = _ends(directory, found.of_relation)
        schema = {end: directory.id_dtype(kind) for end, kind in ends.items()}
    else:
        schema = {"type": pl.String()} if len(labels) > 1 else {}
        schema["id"] = directory.id_dtype(next(iter(labels)))
    schema |= dict(found.frame(0, 1, None).schema)
    return schema | ({"label": pl.String()} if any(each is not None for each in labels.values()) else {})


@contextmanager
def _staged(target: Path) -> Iterator[Path]:
    """Yield a file in a folder beside the target, whose name it gets in the end."""
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    with folder_beside(target) as folder:
        yield folder / target.name
        os.replace(folder / target.name, target)
