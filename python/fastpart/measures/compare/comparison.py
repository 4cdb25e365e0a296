"""Comparisons: the outcomes as tables, files and reports."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.declared import declared, elsewhere
from ...core.frames import pl
from ...core.parameters import PICTURES, TABLES, StrPath
from ...core.protocols import tables
from .outcomes import SCHEMA, Outcome, summary_of, types_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPORTS = (".html", *PICTURES)
FILES = (".json", *TABLES, *REPORTS)


@dataclass(frozen=True, eq=False)
class Comparison:
    """A comparison of partitions of one graph, from :func:`fastpart.compare` or :func:`fastpart.open_comparison`.

    Attributes
    ----------
    graph : dict
        ``name`` (of the file, or "graph"), ``n``, ``m``, ``loops``, ``checksum``, and the ``threads`` of the runs.
    outcomes : tuple of Outcome
        In the order of the table.
    """

    graph: dict[str, Any]
    outcomes: tuple[Outcome, ...]

    @property
    def summary(self) -> pl.DataFrame:
        """One row per algorithm and number of parts."""
        return summary_of(self.outcomes)

    @property
    def types(self) -> pl.DataFrame | None:
        """One row per algorithm, number of parts and type of vertices: balance, halo and traffic of the type.

        None if the graph has no types.
        """
        return types_of(self.outcomes)

    @declared
    def __str__(self) -> str:
        elsewhere()

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Comparison):
            return NotImplemented
        return self.graph == other.graph and self.outcomes == other.outcomes

    __hash__ = None  # type: ignore[assignment]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.summary.__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        whole = self.summary
        known = [column for column in whole.get_columns() if column.null_count() < len(column)]
        title = f"Partitions of {self.graph['name']}: n = {self.graph['n']:,}, m = {self.graph['m']:,}"
        return tables(title, whole.select(column.name for column in known), keys=3)

    def to_json(self, *, parts: bool = True) -> str:
        """Return the summary as JSON, with the data of the parts that a report shows unless ``parts=False``."""
        rows = []
        for row, outcome in zip(self.summary.rows(named=True), self.outcomes, strict=True):
            if parts and outcome.parts is not None:
                row["parts"] = outcome.parts.to_dict(as_series=False)
            if parts and outcome.matrix is not None:
                row["matrix"] = outcome.matrix.tolist()
            for name, frame in (("types", outcome.types), ("relations", outcome.relations)):
                if parts and frame is not None:
                    row[name] = frame.to_dict(as_series=False)
            if parts and outcome.traceback is not None:
                row["traceback"] = outcome.traceback
            rows.append(row)
        return json.dumps({"fastpart_comparison": SCHEMA, "graph": self.graph, "rows": rows}, allow_nan=False)

    @declared
    def save(self, out: StrPath) -> None:
        """Write the comparison to a file, atomically.

        Parameters
        ----------
        out : path
            By suffix: ``.json`` (everything, for :func:`fastpart.open_comparison` and ``fastpart report``), ``.csv``
            and ``.parquet`` (the table), ``.md`` and ``.tex`` (the tables that are printed, in Markdown and in LaTeX
            with the package booktabs), or one that :meth:`report` takes.

        Raises
        ------
        ParameterError
            An unknown suffix.
        OSError
            With path and errno. The old file is intact.

        Examples
        --------
        >>> import numpy as np, fastpart as fp, tempfile, pathlib
        >>> graph = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]])
        >>> table = pathlib.Path(tempfile.mkdtemp()) / "comparison.tex"
        >>> fp.compare(graph, k=2, algorithms=["spring"]).save(table)
        >>> "booktabs" in table.read_text()
        True
        """
        elsewhere()

    @declared
    def plot(self, out: StrPath | None = None) -> Figure:
        """Plot the cut (or the replication factor) against the seconds, and each measure.

        Parameters
        ----------
        out : path, optional
            A ``.svg``, ``.png`` or ``.pdf``. It appears as a whole.

        Returns
        -------
        matplotlib.figure.Figure
            Notebooks show it.

        Raises
        ------
        ParameterError
            An unknown suffix.
        OSError
            With path and errno. The old file is intact.

        Examples
        --------
        >>> import numpy as np, fastpart as fp
        >>> graph = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]])
        >>> figure = fp.compare(graph, k=2, algorithms=["spring", "random"]).plot()
        """
        elsewhere()

    @declared
    def report(self, out: StrPath) -> None:
        """Write a page with tables and plots, atomically.

        Parameters
        ----------
        out : path
            By suffix: ``.html`` (one self-contained page, also with the sizes of all parts and the records between
            them), or ``.svg``, ``.png``, ``.pdf``: what :meth:`plot` shows.

        Raises
        ------
        ParameterError
            An unknown suffix.
        OSError
            With path and errno. The old file is intact.

        Examples
        --------
        >>> import numpy as np, fastpart as fp, tempfile, pathlib
        >>> graph = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]])
        >>> page = pathlib.Path(tempfile.mkdtemp()) / "report.html"
        >>> fp.compare(graph, k=[2, 3], algorithms=["spring"]).report(page)
        """
