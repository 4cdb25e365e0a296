"""The report as one self-contained page, rendered from a template."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from .. import _core
from ..comparing import Comparison
from ..comparing.outcomes import MEASURES, TITLES
from .comparisons import groups_of, plot_comparison
from .figures import DARK, LIGHT, Panel, inline, printable
from .text import columns_of

MEANING = {
    "cut_ratio": "share of the records that connect two parts, without loops.",
    "vertex_balance": "the largest part relative to the mean, in vertices.",
    "edge_balance": "the same in volume (sum of degrees), for edge partitions in records.",
    "halo_rf": "vertices of all parts with all their neighbours, over n. Edge partitions: of their home parts.",
    "rf": "mean number of parts that a vertex is in.",
    "replica_balance": "the most vertices in a part relative to the mean.",
    "label_skew": "largest distance (total variation) between the labels of a part and of the graph.",
    "bytes_per_vertex": "peak growth of anonymous memory over n. For a peer, that of its process with the graph.",
}

Cell = tuple[str, bool]
"""The text, and whether it is the best."""


class Table(NamedTuple):
    """A table of a page. A line separates the groups of rows."""

    title: str
    columns: Sequence[str]
    groups: Iterable[Iterable[Iterable[Cell]]]


def write_report(comparison: Comparison, target: Path) -> None:
    """Write a page, or the plots of the measures. The suffix decides."""
    if target.suffix != ".html":
        plot_comparison(comparison, target)
        return
    graph, rows = comparison.graph, comparison.summary.rows(named=True)
    tables = [
        _table(of, [row for row in rows if row["of"] == of and row["error"] is None]) for of in MEASURES
    ]
    columns = {name for table in tables for name in table.columns}
    write_page(
        target,
        title=f"Partitions of {graph['name']}",
        facts=f"{graph['n']:,} vertices, {graph['m']:,} records, {graph['loops']:,} loops, threads={graph['threads']}",
        tables=[table for table in tables if table.columns],
        meanings={name: words for name, words in MEANING.items() if name in columns},
        refused=[outcome for outcome in comparison.outcomes if outcome.row.get("error") is not None],
        groups=groups_of(comparison),
    )


def write_page(target: Path, *, groups: Iterable[tuple[str, Iterable[Panel]]], **content: Any) -> None:
    """Write a page atomically. ``groups`` are plots by heading."""
    environment = Environment(
        loader=PackageLoader("fastpart.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=_safe,
    )  # fmt: skip
    drawn = [
        (heading, [(title, Markup(svg)) for title, svg in inline(panels, f"p{i}-")])
        for i, (heading, panels) in enumerate(groups)
    ]
    template = environment.get_template("page.html.j2")
    page = template.render(light=LIGHT, dark=DARK, groups=drawn, **content)
    _core.write_file(target, page.encode())


def _safe(value: Any) -> Any:
    """Replace what HTML cannot hold, before the template escapes the rest."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _table(of: str, rows: list[dict[str, Any]]) -> Table:
    names = columns_of(of, rows) if rows else []
    groups = []
    for _, group in groupby(sorted(rows, key=lambda row: row["k"]), key=lambda row: row["k"]):
        alike = list(group)
        best = {name: _best(name, [row[name] for row in alike]) for name in names[2:]}
        groups.append(
            [
                [
                    (cell(name, row[name]), row[name] is not None and row[name] == best.get(name))
                    for name in names
                ]
                for row in alike
            ]
        )
    return Table(TITLES[of].capitalize(), names, groups)


def _best(name: str, values: list[float | None]) -> float | None:
    """Return the best value, if the values differ."""
    known = [value for value in values if value is not None]
    if len(set(known)) < 2:
        return None
    return max(known) if name == "edges_per_s" else min(known)


def cell(name: str, value: Any) -> str:
    """Return the text of a table cell. The format depends on the column."""
    if value is None:
        return "\N{EN DASH}"
    if name == "seconds":
        return f"{value:.3g}"
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
