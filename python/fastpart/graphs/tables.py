"""Data frames of other libraries: the two columns that hold the ends of edges, without a copy where possible."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..core.frames import before_polars_threads, pl
from ..core.notes import log
from ..core.options import RunOptions
from ..core.parameters import one_line, shown
from ..core.parsing import named
from ..errors import FastpartError, GraphFormatError, ParameterError, arg, refusal

Kind = Literal["integer", "string", "other"]

Pair = tuple[int | str, int | str]
"""Two columns, each by its name or by its number from 1."""

PAIRS = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("head", "tail"))
"""Names of both columns in tables, in small letters. Text has the same ones."""

REMEDY = f"{arg('columns', ('source', 'target'))} or {arg('columns', (1, 2))}"


def asked(columns: Any) -> Pair | None:
    """Check ``columns=``."""
    if columns is None:
        return None
    if isinstance(columns, str | bytes) or not isinstance(columns, Sequence) or len(columns) != 2:
        raise ParameterError(f"columns: {columns!r:.80}. Expected two names or numbers, as in {REMEDY}")
    for each in columns:
        if isinstance(each, bool) or not isinstance(each, str | int):
            raise TypeError(f"columns: expected names or numbers, got {type(each).__name__}")
    return columns[0], columns[1]


def ends_of(
    where: str,
    columns: Sequence[tuple[str, Kind, str]],
    wanted: Pair | None,
    besides: str | None = None,
    error: type[Exception] = FastpartError,
) -> tuple[int, int]:
    """Return the places, from 0, of the columns of sources and targets. The user is told which, if there are more.

    Parameters
    ----------
    where : str
        How messages call the table.
    columns : sequence of (str, Kind, str)
        Name, kind and type of each column.
    wanted : Pair or None
        What the user asked for. Default: two columns with known names, or the only two of integers or strings.
    besides : str, optional
        A column of weights, which holds no ids.
    error : type
        Raised for a table in which nothing says which columns they are.
    """
    names = [name for name, _, _ in columns]
    if wanted is not None:
        u, v = (_place(where, names, each) for each in wanted)
        if u == v:
            raise ParameterError(f"columns: both are {names[u]!r}. Name the two that hold the ids")
        return u, v
    small = [name.strip().lower() for name in names]
    known = [(small.index(u), small.index(v)) for u, v in PAIRS if u in small and v in small]
    if len(known) == 1:
        u, v = known[0]
    else:
        possible = [
            place for place, (name, kind, _) in enumerate(columns) if kind != "other" and name != besides
        ]
        if known or len(possible) != 2:
            raise refusal(error, f"{where}: {_unsure(columns, len(known) > 1, len(possible))}")
        u, v = possible
    if len(names) > 2:
        log.info("%s: the ids are in the columns %s and %s", where, one_line(names[u]), one_line(names[v]))
    return u, v


def _place(where: str, names: Sequence[str], wanted: int | str) -> int:
    if isinstance(wanted, int) and 1 <= wanted <= len(names):
        return wanted - 1
    if isinstance(wanted, str) and wanted in names:
        return names.index(wanted)
    listed = ", ".join(one_line(name) for name in names) or "none"
    raise ParameterError(f"columns: {where} has no column {wanted!r:.80}. Its columns: {listed}")


def _unsure(columns: Sequence[tuple[str, Kind, str]], several: bool, possible: int) -> str:
    listed = ", ".join(f"{one_line(name)!r} ({dtype})" for name, _, dtype in columns) or "none"
    if several:
        return f"several pairs of columns may hold the ids. It has {listed}. Name two of them: {REMEDY}"
    if possible < 2:
        cast = any("float" in str(dtype).lower() for _, _, dtype in columns)
        remedy = ". Drop rows without an id, and cast whole numbers to integers" if cast else ""
        return f"expected two columns of integers or strings, got {listed}{remedy}"
    return f"which columns hold the ids? It has {listed}. Name two of them: {REMEDY}"


Array = npt.NDArray[Any]

_BATCH = 1 << 18
"""Rows of a lazy frame in memory at a time."""

_LARGEST = 2**32 - 2

_WIDE = ("Int128", "UInt128")
"""Integers that numpy lacks."""


@dataclass(frozen=True)
class Table:
    """A frame of Polars or pandas, and which of its columns hold the ends of edges."""

    frame: Any
    library: str
    ends: tuple[int, int]
    strings: bool
    """Whether the ids are strings, in at least one of them."""
    unread: str | None = None
    """A column that is named like weights. Records have weights only if ``weights`` names them."""

    @property
    def lazy(self) -> bool:
        """Whether it is a lazy frame."""
        return hasattr(self.frame, "collect_batches") and hasattr(self.frame, "collect_schema")

    def records(self, options: RunOptions) -> tuple[Array, Array]:
        """Return the ids of both columns."""
        if self.lazy:
            u, v = self._streamed(options).T
            return u, v
        if self.library == "pandas":
            u, v = (_of_pandas_numbers(self.frame.iloc[:, end]) for end in self.ends)
        else:
            u, v = (_of_series(self.frame.to_series(end)) for end in self.ends)
        return u, v

    def weights(self, name: str | None) -> Array | None:
        """Return the column of that name."""
        if name is None:
            return None
        if self.lazy:
            raise TypeError("weights: a lazy frame is streamed without weights. Pass .collect() of it")
        self._require(name, list(self.frame.columns))
        column = self.frame[name]
        weights: Array = (narrowed(column) if self.library == "polars" else column).to_numpy()
        return weights

    def _require(self, name: str, names: list[Any]) -> None:
        if name not in names:
            listed = ", ".join(map(str, names))
            raise ParameterError(f"weights: the {self.library} frame has no column {name!r}, only {listed}")

    def named_columns(self, weights: str | None) -> Any:
        """Return a frame of Polars with the columns ``source`` and ``target``, and ``weight`` if it is asked for."""
        before_polars_threads("graph: a frame")
        if self.library == "pandas":
            u, v = (self.frame.iloc[:, end] for end in self.ends)
            columns = {"source": _of_pandas(u), "target": _of_pandas(v)}
            if weights is not None:
                columns["weight"] = pl.Series(self.weights(weights))
            return pl.DataFrame(columns)
        names = self.frame.collect_schema().names()
        u, v = (
            pl.col(names[end]).alias(as_) for end, as_ in zip(self.ends, ("source", "target"), strict=True)
        )
        more = []
        if weights is not None:
            self._require(weights, names)
            more.append(pl.col(weights).alias("weight"))
        return self.frame.select(u, v, *more)

    def _streamed(self, options: RunOptions) -> Array:
        """Return the records in a nameless mapped file. Only one batch is in memory at a time."""
        import tempfile  # here, because its import is slow

        before_polars_threads("graph: a lazy frame")
        names = self.frame.collect_schema().names()
        frame = self.frame.select([names[end] for end in self.ends])
        count = 0
        with tempfile.TemporaryFile(dir=options.tmp_dir) as file, computed():
            for batch in frame.collect_batches(chunk_size=_BATCH, maintain_order=True):
                records = np.empty((len(batch), 2), "<u4")
                for slot, column in enumerate(batch.get_columns()):
                    records[:, slot] = _checked(column, count)
                with named(options.tmp_dir or tempfile.gettempdir()):
                    file.write(records.data)  # numpy's tofile hides the reason of an error
                    file.flush()
                count += len(batch)
            if not count:
                return np.empty((0, 2), np.uint32)
            return np.memmap(file, "<u4", "r", shape=(count, 2))


def table_of(source: Any, libraries: Set[str], columns: Pair | None, weights: str | None) -> Table | None:
    """Return a table, or None if the object is none. Its libraries are those of its type and of the bases of it."""
    library = type(source).__module__.partition(".")[0]
    if "pandas" in libraries and hasattr(source, "iloc") and source.ndim == 2:
        dtypes = [(str(name), source.iloc[:, place].dtype) for place, name in enumerate(source.columns)]
        kinds = [(name, _kind_of_pandas(dtype), str(dtype)) for name, dtype in dtypes]
        library = "pandas"
    elif "polars" in libraries and hasattr(source, "collect_schema"):
        with computed():
            kinds = kinds_of(source.collect_schema())
        library = "polars"
    elif hasattr(source, "__arrow_c_stream__") and not ("polars" in libraries or "pandas" in libraries):
        before_polars_threads("graph: an Arrow table")
        source = pl.DataFrame(source)
        kinds = kinds_of(source.schema)
    else:
        return None
    where = f"graph: the {library} frame"
    ends = ends_of(where, kinds, columns, weights, TypeError)
    u, v = (kinds[end] for end in ends)
    if {u[1], v[1]} == {"integer", "string"}:
        raise TypeError(
            f"{where}: column {u[0]!r} is {u[2]}, but column {v[0]!r} is {v[2]}. Cast both to one type"
        )
    other = (name for place, (name, *_) in enumerate(kinds) if place not in ends)
    unread = next((name for name in other if name.lower() in ("weight", "weights")), None)
    return Table(source, library, ends, any(kinds[end][1] == "string" for end in ends), unread)


@contextmanager
def computed() -> Iterator[None]:
    """Turn what Polars says of a lazy frame into an error of the graph."""
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = str(error).strip().split("\n", 1)[0]
        raise GraphFormatError(f"graph: the lazy frame cannot be computed: {reason}") from None


def kinds_of(schema: Any) -> list[tuple[str, Kind, str]]:
    """Return name, kind and type of the columns of a schema of Polars."""
    return [(name, _kind_of(dtype), str(dtype)) for name, dtype in schema.items()]


def _kind_of(dtype: Any) -> Kind:
    if dtype.is_integer() and dtype.to_python() is int:
        return "integer"
    return "string" if dtype in (pl.String, pl.Categorical, pl.Enum, pl.Binary) else "other"


def _kind_of_pandas(dtype: Any) -> Kind:
    kind = getattr(dtype, "kind", "O")
    if kind in "iu":
        return "integer"
    return "string" if kind in "OUS" and not hasattr(dtype, "subtype") else "other"


def _of_pandas(column: Any) -> pl.Series:
    _refuse_gaps(column.name, column.isna().to_numpy())
    if getattr(column.dtype, "kind", "O") in "iu":
        return pl.Series(column.to_numpy())
    values = column.tolist()
    if strange := next((each for each in values if not isinstance(each, str)), None):
        raise TypeError(
            f"graph: column {column.name!r} holds {strange!r:.80} of type {type(strange).__name__}. "
            "Expected strings. Cast the column to them, as by .astype(str)"
        )
    return pl.Series(values, dtype=pl.String)


def _of_series(column: Any, first: int = 0) -> Array:
    if column.null_count():
        _refuse_gaps(column.name, column.is_null().to_numpy(), first)
    if not column.dtype.is_integer():
        raise _no_ids(column)
    ids: Array = narrowed(column).to_numpy()
    return ids


def narrowed(column: Any) -> Any:
    """Return a column without integers of 128 bits, which numpy lacks. Refuse those that 64 bits do not hold."""
    if str(column.dtype) not in _WIDE:
        return column
    for dtype in (pl.UInt64, pl.Int64):
        with suppress(pl.exceptions.InvalidOperationError):
            return column.cast(dtype)
    raise GraphFormatError(
        f"column {column.name!r} holds numbers that 64 bits do not hold. Cast it to strings: "
        f"frame.with_columns(polars.col({column.name!r}).cast(str))"
    )


def _of_pandas_numbers(column: Any) -> Array:
    _refuse_gaps(column.name, column.isna().to_numpy())
    if getattr(column.dtype, "kind", "O") not in "iu":
        raise _no_ids(column)
    ids: Array = column.to_numpy()
    return ids


def _refuse_gaps(name: object, gaps: Array, first: int = 0) -> None:
    """Refuse a column without an id in some row. Rows are counted from ``first``."""
    if gaps.any():
        raise GraphFormatError(
            f"graph: column {name!r} has no id in row {first + int(gaps.argmax())}. Drop such rows first"
        )


def _no_ids(column: Any) -> TypeError:
    return refusal(
        TypeError,
        f"graph: expected integers or strings, but column {column.name!r} is {column.dtype}. Cast it, or name others: "
        f"{REMEDY}",
    )


def _checked(column: Any, first: int) -> Array:
    """Return the ids of a batch that begins with record ``first``. Refuse those that a cast would wrap."""
    ids = _of_series(column, first)
    bad = np.flatnonzero((ids < 0) | (ids > _LARGEST))
    if bad.size:
        raise GraphFormatError(
            f"graph: record {first + int(bad[0])} holds the id {ids[bad[0]]}, outside 0 to 2^32 - 2. Pass "
            f"{arg('relabel', True)}"
        )
    return ids


ROWS = 1 << 20
"""Rows of a row group."""


def write_table(
    target: Path,
    schema: dict[str, Any],
    frames: Iterator[pl.DataFrame],
    compression: Literal["zstd", "lz4"] = "zstd",
) -> None:
    """Write frames as one file, Parquet, ``.csv`` or ``.arrow``, which is then on the disk.

    Only a few are in memory at a time. An error in ``frames`` is raised as it is. Errors of the operating system name
    the file.
    """
    before_polars_threads(shown(target))
    from polars.io.plugins import register_io_source

    failed: list[BaseException] = []

    def source(*_: object) -> Iterator[pl.DataFrame]:
        try:
            yield from frames
        except GeneratorExit:
            raise
        except BaseException as error:  # Polars would wrap it, and lose its type
            failed.append(error)
            raise

    try:
        frame = register_io_source(source, schema=schema)
        if target.suffix == ".csv":
            frame.sink_csv(target)
        elif target.suffix == ".arrow":
            frame.sink_ipc(target, compression="uncompressed")  # whose rows can be mapped
        else:
            frame.sink_parquet(target, compression=compression, row_group_size=ROWS)
    except BaseException as error:
        if failed:
            raise failed[0] from None
        # The text of an error of Polars holds the error number of the operating system.
        if number := re.search(r"\(os error (\d+)\)", str(error)):
            raise OSError(int(number[1]), os.strerror(int(number[1])), str(target)) from None
        raise
    with target.open("rb") as written:
        os.fsync(written.fileno())
