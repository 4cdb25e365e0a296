"""Comparisons: the outcomes as tables, files and reports."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.calls import called_well
from ...core.frames import pl
from ...core.parameters import PICTURES, TABLES, StrPath
from .outcomes import SCHEMA, Outcome, merged, ratios_of, table_of, types_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPORTS = (".html", *PICTURES)
FILES = (".json", *TABLES, *REPORTS)


@dataclass(frozen=True, eq=False)
class Comparison:
    """A comparison of partitions, from :func:`fastpart.compare` or :func:`fastpart.open_comparison`.

    Attributes
    ----------
    graphs : tuple of dict
        ``name`` (of the file, or "graph"), ``n``, ``m``, ``loops`` and ``checksum`` of each graph.
    outcomes : tuple of Outcome
        One per run, in the order of the runs.
    provenance : dict
        What a paper has to state: ``date``, ``balance`` (the bound, or None), ``seeds``, ``baseline``, ``threads``,
        ``memory_limit``, ``time_limit``, ``versions`` (of fastpart, Python, numpy and the packages of the peers),
        ``machine`` (``processor``, ``cores``, bytes of ``memory`` or None), and the ``parameters`` of each algorithm.
    """

    graphs: tuple[dict[str, Any], ...]
    outcomes: tuple[Outcome, ...]
    provenance: dict[str, Any]

    @property
    def summary(self) -> pl.DataFrame:
        """One row per graph, algorithm and number of parts, over all seeds."""
        return table_of(merged(self.outcomes), graphs=len(self.graphs) > 1)

    @property
    def runs(self) -> pl.DataFrame:
        """One row per run: graph, algorithm, number of parts and seed."""
        return table_of(self.outcomes, graphs=True)

    @property
    def ratios(self) -> pl.DataFrame:
        """Geometric means over graphs and numbers of parts, relative to the baseline, one row per algorithm.

        ``cells`` is the number of graphs times k in which both made a partition.
        """
        return ratios_of(self.outcomes, self.provenance["baseline"])

    @property
    def types(self) -> pl.DataFrame | None:
        """One row per algorithm, number of parts and type of vertices: balance, halo and traffic of the type.

        None if no graph has types. With several seeds they are those of the first.
        """
        return types_of(merged(self.outcomes))

    def __str__(self) -> str:
        from ...report.text import comparison_text

        return comparison_text(self)

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Comparison):
            return NotImplemented
        mine, theirs = ((each.graphs, each.outcomes, each.provenance) for each in (self, other))
        return mine == theirs

    __hash__ = None  # type: ignore[assignment]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.summary.__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        from ...report.text import comparison_html

        return comparison_html(self)

    def to_json(self, *, parts: bool = True) -> str:
        """Return all as JSON, with the data of the parts that a report shows unless ``parts=False``."""
        rows = []
        for row, outcome in zip(self.runs.rows(named=True), self.outcomes, strict=True):
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
        content = {
            "fastpart_comparison": SCHEMA,
            "provenance": self.provenance,
            "graphs": self.graphs,
            "rows": rows,
        }
        return json.dumps(content, allow_nan=False)

    @called_well
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
        from ...report.files import save_comparison

        save_comparison(self, out)

    @called_well
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
        from ...report.comparisons import plot_comparison

        return plot_comparison(self, out)

    @called_well
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
        from ...report.pages import write_report

        write_report(self, out)
