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
from ..errors import ParameterError
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

COLUMNS: dict[str, type[pl.DataType]] = {
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
OPTIONAL = ("weight_balance", "train_balance", "val_balance", "test_balance", "label_skew")
LAST: dict[str, type[pl.DataType]] = {
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
            **COLUMNS,
            **{name: pl.Float64 for name in OPTIONAL if any(name in row for row in rows)},
            **LAST,
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
        from .saved import load

        return load(file)


PICTURES = (".html", ".svg", ".png", ".pdf")
FILES = (".json", ".parquet", *PICTURES)


def output(out: object, suffixes: Sequence[str] = FILES) -> Path:
    """Return the target if its suffix says what to write."""
    target = parameters.path("out", out)
    if target.suffix not in suffixes:
        valid = f"{', '.join(suffixes[:-1])} or {suffixes[-1]}"
        raise ParameterError(f"out: unknown suffix {target.suffix!r} of {shown(target)}; use {valid}")
    return target
