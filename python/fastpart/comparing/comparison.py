"""What a comparison found out: one outcome per algorithm and number of parts; tables, files, reports."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from .. import _core, parameters
from ..errors import FastpartError, GraphFormatError, ParameterError
from ..forks import before_polars_threads
from ..parameters import StrPath, shown

MATRIX_PARTS = 64
"""Up to this many parts the cut matrix is kept."""

LISTED_PARTS = 1024
"""Up to this many parts the measures of each part are kept."""

SCHEMA = 1

MEASURES = {
    "vertex": ("cut_ratio", "vertex_balance", "edge_balance", "halo_rf"),
    "edge": ("rf", "edge_balance", "replica_balance", "halo_rf"),
}
"""What is measured of partitions of each kind, whatever else is given; less is better."""

COST = ("seconds", "edges_per_s", "bytes_per_vertex")

_COLUMNS: dict[str, type[pl.DataType]] = {
    "kind": pl.String,
    "algorithm": pl.String,
    "k": pl.Int64,
    "n": pl.Int64,
    "m": pl.Int64,
    "loops": pl.Int64,
    **dict.fromkeys(
        ("cut_ratio", "vertex_balance", "edge_balance", "halo_rf", "rf", "replica_balance"), pl.Float64
    ),
}
_OPTIONAL = ("weight_balance", "train_balance", "val_balance", "test_balance", "label_skew")
_LAST: dict[str, type[pl.DataType]] = {
    "seconds": pl.Float64,
    "edges_per_s": pl.Int64,
    "bytes_per_vertex": pl.Int64,
    "error": pl.String,
}


@dataclass(frozen=True)
class Outcome:
    """What became of one algorithm at one number of parts.

    Attributes
    ----------
    row : dict
        The row of the table; a column that is missing is null.
    parts : polars.DataFrame or None
        The measures of each part; None above 1,024 parts, and where there is no partition.
    matrix : numpy.ndarray or None
        The cut matrix; None above 64 parts, and of edge partitions.
    """

    row: dict[str, Any]
    parts: pl.DataFrame | None = None
    matrix: npt.NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Comparison:
    """Partitions of one graph beside one another; made by :func:`fastpart.compare`.

    Attributes
    ----------
    graph : dict
        ``name`` (of the file, if it is one), ``n``, ``m``, ``loops``, ``checksum``; ``threads`` of the runs.
    outcomes : tuple of Outcome
        In the order of the table.
    """

    graph: dict[str, Any]
    outcomes: tuple[Outcome, ...]

    @property
    def table(self) -> pl.DataFrame:
        """One row per algorithm and number of parts."""
        rows = [outcome.row for outcome in self.outcomes]
        schema: dict[str, type[pl.DataType]] = {
            **_COLUMNS,
            **{name: pl.Float64 for name in _OPTIONAL if any(name in row for row in rows)},
            **_LAST,
        }
        return pl.DataFrame(
            {name: pl.Series(name, [row.get(name) for row in rows], dtype) for name, dtype in schema.items()}
        )

    def __str__(self) -> str:
        from ..report.text import comparison_text

        return comparison_text(self)

    __repr__ = __str__

    def to_json(self, *, parts: bool = True) -> str:
        """Return the table as JSON, and unless ``parts=False`` all that a report shows of the parts."""
        rows = []
        for row, outcome in zip(self.table.rows(named=True), self.outcomes, strict=True):
            if parts and outcome.parts is not None:
                row["parts"] = outcome.parts.to_dict(as_series=False)
            if parts and outcome.matrix is not None:
                row["matrix"] = outcome.matrix.tolist()
            rows.append(row)
        return json.dumps({"fastpart_comparison": SCHEMA, "graph": self.graph, "rows": rows}, allow_nan=False)

    def save(self, out: StrPath) -> None:
        """Write the comparison to a file, atomically.

        Parameters
        ----------
        out : path
            By suffix: ``.json`` (everything; :meth:`load` and ``fastpart report`` read it), ``.parquet`` (the table),
            or one that :meth:`report` takes.

        Raises
        ------
        ParameterError
            An unknown suffix.
        OSError
            With path and errno; the old file is intact.
        """
        target = output(out)
        if target.suffix == ".json":
            _core.write_file(target, self.to_json().encode())
        elif target.suffix == ".parquet":
            before_polars_threads(f"out: {shown(target)}")
            buffer = io.BytesIO()
            self.table.write_parquet(buffer)
            _core.write_file(target, buffer.getvalue())
        else:
            self.report(target)

    def report(self, out: StrPath) -> None:
        """Write a page with tables and plots, or the plots alone, atomically.

        Parameters
        ----------
        out : path
            By suffix: ``.html`` (one page that needs nothing else), ``.svg`` (the plots), ``.png`` or ``.pdf`` (the
            plots, drawn by matplotlib).

        Raises
        ------
        ParameterError
            An unknown suffix.
        ModuleNotFoundError
            A ``.png`` or ``.pdf`` without matplotlib: ``pip install 'fastpart[plot]'``.
        OSError
            With path and errno; the old file is intact.

        Examples
        --------
        >>> import numpy as np, fastpart as fp, tempfile, pathlib
        >>> graph = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]])
        >>> page = pathlib.Path(tempfile.mkdtemp()) / "report.html"
        >>> fp.compare(graph, k=[2, 3], algorithms=["spring"]).report(page)
        """
        from ..report.pages import write_report

        write_report(self, output(out, PICTURES))

    @classmethod
    def load(cls, file: StrPath) -> Comparison:
        """Read what :meth:`save` wrote as ``.json``.

        Raises
        ------
        GraphFormatError
            The file holds no comparison.
        """
        path = parameters.regular(parameters.path("comparison", file))
        text = path.read_bytes()
        try:
            content = json.loads(text)
            if content["fastpart_comparison"] != SCHEMA:
                raise FastpartError(f"schema {content['fastpart_comparison']!r}, not {SCHEMA}")
            loaded = cls(_graph(content["graph"]), tuple(map(_outcome, content["rows"])))
            _ = loaded.table  # which checks the types
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
            raise _foreign(path, error) from None
        except pl.exceptions.PolarsError as error:
            raise _foreign(path, error) from None
        return loaded


PICTURES = (".html", ".svg", ".png", ".pdf")
FILES = (".json", ".parquet", *PICTURES)


def output(out: object, suffixes: Sequence[str] = FILES) -> Path:
    """Return the target if its suffix says what to write."""
    target = parameters.path("out", out)
    if target.suffix not in suffixes:
        raise ParameterError(
            f"out: unknown suffix {target.suffix!r} of {shown(target)}; use {', '.join(suffixes[:-1])} or {suffixes[-1]}"
        )
    return target


def _foreign(file: Path, error: Exception) -> GraphFormatError:
    reason = str(error).split("\n", 1)[0]
    return GraphFormatError(
        f"{shown(file)}: not a comparison ({type(error).__name__}: {reason}); "
        "`fastpart compare -o NAME.json` writes one"
    )


def _graph(content: dict[str, Any]) -> dict[str, Any]:
    numbers = ("n", "m", "loops", "threads")
    graph = {name: parameters.integer(name, content[name], 0, 2**63 - 1) for name in numbers}
    texts = {name: str(content[name]) for name in ("name", "checksum")}
    return graph | texts


def _outcome(content: dict[str, Any]) -> Outcome:
    row = {name: content.get(name) for name in (*_COLUMNS, *_LAST)}
    row |= {name: content[name] for name in _OPTIONAL if content.get(name) is not None}
    k = parameters.parts(row["k"])
    if not isinstance(row["algorithm"], str) or row["kind"] not in ("vertex", "edge", None):
        raise TypeError("a row without algorithm, or of an unknown kind")
    parts = matrix = None
    if "parts" in content and row["kind"] is not None:
        parts = pl.DataFrame(content["parts"], infer_schema_length=None)
        wanted = {"vertex": ("vertices", "volume", "halo"), "edge": ("edges", "replicas")}[row["kind"]]
        if len(parts) != k or any(not parts[name].dtype.is_integer() for name in ("load", *wanted)):
            raise ValueError(f"a row of {k} parts with {len(parts)}, or without their measures")
    if "matrix" in content:
        matrix = np.array(content["matrix"], dtype=np.int64)
        if matrix.shape != (k, k):
            raise ValueError(f"a cut matrix of shape {matrix.shape} for {k} parts")
    return Outcome(row, parts, matrix)
