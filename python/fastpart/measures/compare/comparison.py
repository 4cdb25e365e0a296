"""Comparisons: the outcomes as tables, files and reports."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ...core.calls import called_well
from ...core.frames import Tabular, pl
from ...core.parameters import PICTURES, TABLES, Of, StrPath, meant
from ...errors import ParameterError
from .analysis import checked_measure, profile_of, signed_ranks_of
from .outcomes import MEASURES, SCHEMA, Outcome, merged, ratios_of, table_of, types_of
from .provenance import bibtex_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

REPORTS = (".html", *PICTURES)
FILES = (".json", *TABLES, ".bib", *REPORTS)


@dataclass(frozen=True, eq=False)
class Comparison(Tabular):
    """A comparison of partitions, from :func:`fastpart.compare` or :func:`fastpart.open_comparison`.

    Attributes
    ----------
    graphs : tuple of dict
        ``name`` (the given one, that of the file, or "graph"), ``n``, ``m``, ``loops`` and ``checksum`` of each graph.
    outcomes : tuple of Outcome
        One per run, in the order of the runs.
    provenance : dict
        What a paper has to state: ``date``, ``balance`` (the bound, or None), ``seeds``, ``baseline``, ``threads``,
        ``memory_limit``, ``time_limit``, ``versions`` (of fastpart, Python, numpy and the packages of the peers),
        ``build`` (``digest`` of the files of fastpart, and ``commit`` or None), ``machine`` (``processor``, ``cores``,
        bytes of ``memory`` or None), and of each label the ``parameters`` and the name in ``algorithms``, which is None
        for functions and partitions of the user.
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

    @called_well
    def select(
        self,
        *,
        graphs: Sequence[str] | None = None,
        algorithms: Sequence[str] | None = None,
        k: int | Sequence[int] | None = None,
        of: Of | None = None,
    ) -> Comparison:
        """Return a comparison with fewer runs, for smaller tables and figures.

        Parameters
        ----------
        graphs, algorithms : list of str, optional
            Names as in the tables. Default: all.
        k : int or several, optional
            Numbers of parts. Default: all.
        of : {"vertices", "edges"}, optional
            Keep only vertex partitions, or only edge partitions. Default: both.

        Returns
        -------
        Comparison
            Its graphs and algorithms are in the old order.

        Raises
        ------
        ParameterError
            A name that no run has, or no run is left.

        Examples
        --------
        >>> import numpy as np, fastpart as fp
        >>> graph = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]])
        >>> done = fp.compare(graph, [2, 3], ["spring", "random", "hdrf"])
        >>> done.select(algorithms=["spring", "random"], k=2).summary["algorithm"].to_list()
        ['spring', 'random']
        """
        wanted = {
            "graph": _chosen("graphs", graphs, [graph["name"] for graph in self.graphs]),
            "algorithm": _chosen("algorithms", algorithms, [*self.provenance["algorithms"]]),
            "k": _chosen(
                "k",
                [k] if isinstance(k, int | np.integer) else k,
                sorted({each.row["k"] for each in self.outcomes}),
            ),
            "of": _chosen("of", None if of is None else [of], [None, *MEASURES]),
        }
        outcomes = tuple(
            each for each in self.outcomes if all(each.row[name] in values for name, values in wanted.items())
        )
        if not outcomes:
            raise ParameterError("select: no run is left. Choose fewer conditions")
        provenance = dict(self.provenance)
        for name in ("algorithms", "parameters"):
            provenance[name] = {
                label: each for label, each in provenance[name].items() if label in wanted["algorithm"]
            }
        if provenance["baseline"] not in wanted["algorithm"]:
            provenance["baseline"] = None
        kept = tuple(graph for graph in self.graphs if graph["name"] in wanted["graph"])
        return replace(self, graphs=kept, outcomes=outcomes, provenance=provenance)

    @called_well
    def profile(self, measure: str | None = None) -> pl.DataFrame:
        """Return the performance profile of each algorithm: how often it is within a factor of the best.

        Parameters
        ----------
        measure : str, optional
            A column of :attr:`summary` of which less is better. Default: the cut ratio, or the replication factor.

        Returns
        -------
        polars.DataFrame
            ``algorithm``, ``tau``, and ``fraction``: the share of the instances in which the value is at most ``tau``
            times the best one. There is a row for each ``tau`` at which the fraction rises, and one for ``tau`` = 1.

        Raises
        ------
        ParameterError
            No algorithm has the measure, or no instance was tried by all.

        Notes
        -----
        An instance is a graph with a number of parts, and its value the mean over the seeds. Where an algorithm failed,
        or a part is above the bound, its factor is infinite: its curve ends below 1. Only instances count that all
        algorithms were run on.

        Examples
        --------
        >>> import numpy as np, fastpart as fp
        >>> graph = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3]])
        >>> parts = {"halves": [0, 0, 0, 1, 1, 1], "turns": [0, 1, 0, 1, 0, 1]}
        >>> named = [(name, fp.VertexPartition(each, 2)) for name, each in parts.items()]
        >>> fp.compare(graph, 2, named).profile("cut_ratio").rows()
        [('halves', 1.0, 1.0), ('turns', 1.0, 0.0), ('turns', 5.0, 1.0)]
        """
        return profile_of(self.outcomes, checked_measure(self.outcomes, measure))

    @called_well
    def signed_rank(self, measure: str | None = None, baseline: str | None = None) -> pl.DataFrame:
        """Test by Wilcoxon's signed ranks whether each algorithm differs from the baseline.

        Parameters
        ----------
        measure : str, optional
            A column of :attr:`summary` of which less is better. Default: the cut ratio, or the replication factor.
        baseline : str, optional
            Default: that of the comparison, or the first algorithm.

        Returns
        -------
        polars.DataFrame
            ``algorithm``, ``baseline``, ``pairs`` (instances in which both made a partition within the bound),
            ``better`` and ``worse`` (how many of them), and ``p_value``, two-sided and exact.

        Raises
        ------
        ParameterError
            No algorithm has the measure, or the baseline has no value of it.

        Notes
        -----
        An instance is a graph with a number of parts, and its value ``v`` the mean over the seeds. The test ranks the
        relative differences ``(v - b) / (v + b)`` to the value ``b`` of the baseline, so that large graphs do not
        count more. Differences of 0 are dropped. The p-values are not corrected for several algorithms: multiply them
        by their number for Bonferroni's bound. With fewer than 6 pairs none is below 0.05.

        Examples
        --------
        >>> import numpy as np, fastpart as fp
        >>> random = np.random.default_rng(0)
        >>> graphs = {str(place): random.integers(0, 99, (300, 2)) for place in range(8)}
        >>> fp.compare(graphs, 4, ["multilevel", "random"]).signed_rank(baseline="random")["p_value"].to_list()
        [0.0078125]
        """
        if baseline is None and self.provenance["baseline"] in self.provenance["algorithms"]:
            baseline = self.provenance["baseline"]
        return signed_ranks_of(self.outcomes, checked_measure(self.outcomes, measure), baseline)

    def bibtex(self) -> str:
        """Return BibTeX entries of fastpart, in the version that ran, and of the papers of the algorithms that ran.

        Examples
        --------
        >>> import numpy as np, fastpart as fp
        >>> graph = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]])
        >>> print(fp.compare(graph, 2, ["hdrf"]).bibtex().split("@")[2].splitlines()[0])
        inproceedings{hdrf,
        """
        return bibtex_of(
            self.provenance, {each.row["algorithm"] for each in self.outcomes if each.row["of"] == "edges"}
        )

    def __str__(self) -> str:
        from ...report.text import comparison_text

        return comparison_text(self)

    __repr__ = __str__

    def to_frame(self) -> pl.DataFrame:
        """Return the summary."""
        return self.summary

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
    def save(
        self,
        out: StrPath,
        *,
        columns: Sequence[str] | None = None,
        digits: int | Mapping[str, int] | None = None,
    ) -> None:
        """Write the comparison to a file, atomically.

        Parameters
        ----------
        out : path
            By suffix: ``.json`` (everything, for :func:`fastpart.open_comparison` and ``fastpart report``), ``.csv``
            and ``.parquet`` (the table), ``.md`` and ``.tex`` (the tables that are printed, in Markdown and in LaTeX
            with the package booktabs, with the best value of each graph and k in bold and a table of the runs that
            failed), ``.bib`` (:meth:`bibtex`), or one that :meth:`report` takes.
        columns : list of str, optional
            The columns of ``.md`` and ``.tex`` behind the names, in this order: ``["cut_ratio", "seconds"]``. Default:
            those that are printed.
        digits : int or mapping of str to int, optional
            Digits behind the point in ``.md`` and ``.tex``, for all columns or by column. Default: those that are
            printed.

        Raises
        ------
        ParameterError
            An unknown suffix or column, or columns and digits for a file that holds all of them.
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

        save_comparison(self, out, columns, digits)

    @called_well
    def plot(
        self,
        out: StrPath | None = None,
        *,
        measure: str | None = None,
        profile: bool = False,
        ax: Axes | None = None,
        width: Literal["column", "page"] | float | None = None,
    ) -> Figure:
        """Plot the comparison: all of it for an overview, or one measure for a paper.

        Parameters
        ----------
        out : path, optional
            A ``.svg``, ``.png`` or ``.pdf``. It appears as a whole. With ``ax`` the figure is yours to save.
        measure : str, optional
            A column of :attr:`summary` of which less is better. The figure has a row for each graph and k, with a point
            for each algorithm. With several seeds the point is their mean, and a bar shows the standard deviation (of
            cut, replication factor and seconds). ``*`` marks a part above the bound. Default: all measures, and the cut
            (or the replication factor) against the seconds. With one of the following parameters: the cut ratio, or the
            replication factor.
        profile : bool
            Plot the performance profiles of the measure instead, as :meth:`profile` returns them.
        ax : matplotlib axes, optional
            Where to plot. It keeps its own style.
        width : {"column", "page"} or float, optional
            The width of the figure: of a column (3.33 inches), of a page (7 inches), or a number of inches. Default:
            "column".

        Returns
        -------
        matplotlib.figure.Figure
            Notebooks show it. Functions and partitions of yours are black, algorithms of fastpart blue, and peers brown
            with open markers.

        Raises
        ------
        ParameterError
            An unknown suffix, measure or width, or a file or a width for axes of yours.
        OSError
            With path and errno. The old file is intact.

        Examples
        --------
        >>> import numpy as np, fastpart as fp
        >>> graph = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]])
        >>> done = fp.compare(graph, k=2, algorithms=["spring", "random"])
        >>> overview, one = done.plot(), done.plot(measure="cut_ratio", width="column")
        """
        from ...report.comparisons import plot_comparison

        return plot_comparison(self, out, measure, profile, ax, width)

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


def _chosen(name: str, given: Iterable[Any] | None, known: Sequence[Any]) -> Sequence[Any]:
    """Return the wanted values of a column, or all."""
    if given is None:
        return known
    if isinstance(given, str | bytes):
        raise TypeError(f"{name}: expected a list, got {type(given).__name__}. Write it as a list: [...]")
    wanted = list(given)
    for each in wanted:
        if each not in known:
            names = [str(one) for one in known if one is not None]
            raise ParameterError(
                f"{name}: no run has {each!r}. There are {', '.join(names)}{meant(str(each), names)}"
            )
    return wanted
