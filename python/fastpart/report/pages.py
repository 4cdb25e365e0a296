"""The report as one self-contained page, rendered from a template."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from .. import _core
from ..core.frames import pl
from ..core.notes import log
from ..core.parameters import StrPath, one_line, output, shown, sized
from ..core.protocols import Table as Facts
from ..measures.compare import Comparison
from ..measures.compare.comparison import REPORTS
from ..measures.compare.outcomes import MEASURES, TITLES, merged
from .text import DARK, LIGHT, MOST_ROWS, columns_of, conditions_of, measured_table, printable, ratio_tables

if TYPE_CHECKING:
    from .figures import Panel

MEANING = {
    "cut_ratio": "share of the records that connect two parts, without loops.",
    "vertex_balance": "the largest part relative to the mean, in vertices.",
    "edge_balance": "the same in volume (sum of degrees), for edge partitions in records.",
    "halo_rf": "vertices of all parts with all their neighbours, over n. Edge partitions: of their home parts.",
    "rf": "mean number of parts that a vertex is in.",
    "replica_balance": "the most vertices in a part relative to the mean.",
    "type_balance": "the largest balance of the vertices of one type.",
    "label_skew": "largest distance (total variation) between the labels of a part and of the graph.",
    "bytes_per_vertex": "peak growth of anonymous memory over n. For a peer, that of its process with the graph.",
}

Groups: TypeAlias = "Iterable[tuple[str, Iterable[Panel]]]"
"""Plots by heading."""

Cell = tuple[str, bool]
"""The text, and whether it is the best."""


class Table(NamedTuple):
    """A table of a page. A line separates the groups of rows."""

    title: str
    columns: Sequence[str]
    groups: Iterable[Iterable[Iterable[Cell]]]


def write_report(comparison: Comparison, out: StrPath) -> None:
    """Write a page, or the plots of the measures. The suffix decides."""
    target = output(out, REPORTS)
    if target.suffix != ".html":
        from .comparisons import plot_comparison

        plot_comparison(comparison, target)
        return
    graphs, rows = comparison.graphs, comparison.summary.rows(named=True)
    tables = []
    for of in MEASURES:
        measured = [row for row in rows if row["of"] == of and row["error"] is None]
        if measured:
            tables.append(
                _grouped(measured_table(TITLES[of], columns_of(of, measured), _by_k(measured), cell))
            )
    columns = {name for table in tables for name in table.columns}
    sizes = [f"{each['n']:,} vertices, {each['m']:,} records, {each['loops']:,} loops" for each in graphs]
    facts = [f"{each['name']}: {size}." for each, size in zip(graphs, sizes, strict=True)]
    write_page(
        target,
        title=f"Partitions of {', '.join(each['name'] for each in graphs)}",
        facts=" ".join([*(facts if len(graphs) > 1 else sizes), *conditions_of(comparison.provenance)]),
        tables=[
            *tables, *(map(_grouped, ratio_tables(comparison.ratios)) if len(graphs) > 1 else ()),
            *_tables_by_type(comparison),
        ],
        meanings={name: words for name, words in MEANING.items() if name in columns},
        refused=[outcome for outcome in merged(comparison.outcomes) if outcome.row.get("error") is not None],
        provenance=list(_provenance(comparison.provenance)),
        groups=lambda: _groups_of(comparison),
    )  # fmt: skip


def _grouped(table: Facts) -> Table:
    """Return a table of text for a page, with its groups of rows and its best cells."""
    cells = [[(text, (i, j) in table.bold) for j, text in enumerate(row)] for i, row in enumerate(table.rows)]
    ends = [0, *sorted(table.breaks), len(cells)]
    title = table.title[:1].upper() + table.title[1:]
    return Table(title, table.columns, [cells[start:end] for start, end in pairwise(ends)])


def _provenance(facts: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield what was measured with what, as names and texts."""
    machine = facts["machine"]
    yield "date", facts["date"]
    yield (
        "machine",
        ", ".join(
            [machine["processor"], f"{machine['cores']} cores"]
            + ([] if machine["memory"] is None else [f"{sized(machine['memory'])} of memory"])
        ),
    )
    yield "versions", ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    yield "seeds", ", ".join(map(str, facts["seeds"]))
    yield "threads", str(facts["threads"])
    for name, values in facts["parameters"].items():
        yield (
            name,
            ", ".join(f"{key}={json.dumps(value)}" for key, value in values.items()) or "no parameters",
        )


def _groups_of(comparison: Comparison) -> Groups:
    from .comparisons import groups_of

    return groups_of(comparison)


def write_training(table: pl.DataFrame, target: Path, name: str) -> None:
    """Write a table of :func:`fastpart.train.compare` as a page, or its plots alone. The suffix decides."""
    if target.suffix != ".html":
        from .comparisons import plot_trainings

        plot_trainings(table, target)
        return
    rows = [[(cell(name, value), False) for name, value in row.items()] for row in table.rows(named=True)]
    write_page(
        target,
        title=f"Training over partitions of {name}",
        tables=[Table("Methods and partitioners", table.columns, [rows])],
        groups=lambda: _training_groups(table),
    )


def _training_groups(table: pl.DataFrame) -> Groups:
    from .comparisons import panels_of

    panels = list(panels_of(table))
    return [("Side by side", panels)] if panels else []


def write_page(target: Path, *, groups: Callable[[], Groups], **content: Any) -> None:
    """Write a page atomically. ``groups`` makes its plots. A page whose plots fail says so in their place."""
    environment = Environment(
        loader=PackageLoader("fastpart.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=_safe,
    )  # fmt: skip
    drawn, failure = [], ""
    try:
        drawn = _drawn(groups())
    except Exception as error:  # the tables are whole without them
        failure = f"The plots could not be drawn: {one_line(error, 500) or type(error).__name__}"
        log.warning("%s: %s", shown(target), failure)
    template = environment.get_template("page.html.j2")
    page = template.render(light=LIGHT, dark=DARK, groups=drawn, failure=failure, **content)
    _core.write_file(target, page.encode())


def _drawn(groups: Groups) -> list[tuple[str, list[tuple[str, Markup]]]]:
    from .figures import inline

    return [
        (heading, [(title, Markup(svg)) for title, svg in inline(panels, f"p{i}-")])
        for i, (heading, panels) in enumerate(groups)
    ]


def _safe(value: Any) -> Any:
    """Replace what HTML cannot hold, before the template escapes the rest."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _by_k(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of each graph by their number of parts."""
    graphs = [row.get("graph") for row in rows]
    return sorted(rows, key=lambda row: (graphs.index(row.get("graph")), row["k"]))


def _tables_by_type(comparison: Comparison) -> Iterable[Table]:
    """Yield the tables of types and relations, with a group of rows for each partition."""
    for of in MEASURES:
        outcomes = [outcome for outcome in comparison.outcomes if outcome.row["of"] == of]
        for what in ("types", "relations"):
            named = ((outcome.row, getattr(outcome, what)) for outcome in outcomes)
            frames = [(row, frame) for row, frame in named if frame is not None]
            if not frames:
                continue
            first = frames[0][1]
            more = f", the first {MOST_ROWS} of {len(first):,}" if len(first) > MOST_ROWS else ""
            yield Table(
                f"{TITLES[of].capitalize()} by {what.removesuffix('s')}{more}",
                ["algorithm", "k", *first.columns],
                [_rows_by_type(row, frame) for row, frame in frames],
            )


def _rows_by_type(row: dict[str, Any], frame: pl.DataFrame) -> list[list[Cell]]:
    names = ["algorithm", "k", *frame.columns]
    rows = ((row["algorithm"], row["k"], *values) for values in frame.head(MOST_ROWS).rows())
    return [
        [(cell(name, value), False) for name, value in zip(names, values, strict=True)] for values in rows
    ]


def cell(name: str, value: Any) -> str:
    """Return the text of a table cell. The format depends on the column. Seconds have three digits or more."""
    if value is None:
        return "\N{EN DASH}"
    if name == "seconds":
        return f"{value:.{max(2 - math.floor(math.log10(value)), 0) if value > 0 else 0}f}"
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
