"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from ..core.frames import pl
from ..core.parameters import one_line
from ..core.protocols import MOST_COLUMNS, Table
from ..measures.compare import Comparison
from ..measures.compare.outcomes import BOUNDED, COST, MEASURES, RATIOS, TITLES, TRAFFIC
from ..partitions.results import Evaluation

MANY = 10_000
"""Measures from here on are shown without a fraction."""

MOST_LETTERS = 60
"""Most letters of a name that are shown. Of a longer one, the first letters are shown."""

MOST_ROWS = 40
"""Most rows of a table that are shown. Of a longer one, the first and last rows are shown."""


def table(frame: pl.DataFrame) -> str:
    """Return a frame as aligned text. Numbers are right-aligned."""
    return str(table_of("", frame))


def table_of(title: str, frame: pl.DataFrame) -> Table:
    """Return a frame as a table of text."""
    rows = [[_cell(value) for value in row] for row in frame.iter_rows()]
    texts = [place for place, dtype in enumerate(frame.dtypes) if dtype == pl.String]
    return Table(title, frame.columns, rows, texts)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float) and value >= MANY:
        return f"{value:.0f}"
    return f"{value:.4f}" if isinstance(value, float) else one_line(value, MOST_LETTERS)


def evaluation_text(evaluation: Evaluation) -> str:
    """Return a table of the parts, those of the types and relations if there are any, and the summary.

    The summary comes last, since a terminal shows the last lines.
    """
    frames = {what: getattr(evaluation, what) for what in ("parts", "types", "relations")}
    tables = [_shortened(frame, what) for what, frame in frames.items() if frame is not None]
    return "\n\n".join([*tables, table(evaluation.summary)])


def _shortened(frame: pl.DataFrame, what: str) -> str:
    """Return the first and the last rows of a long table."""
    if len(frame) <= MOST_ROWS:
        return table(frame)
    shown = frame.head(MOST_ROWS // 2).vstack(frame.tail(MOST_ROWS // 2))
    lines = table(shown).split("\n")
    lines.insert(1 + MOST_ROWS // 2, f"... {len(frame) - MOST_ROWS} more {what} ...")
    return "\n".join(lines)


def comparison_text(comparison: Comparison) -> str:
    """Return a line about each graph and about the bound, the tables, and the errors."""
    lines = [
        f"{one_line(graph['name'])}: n = {graph['n']:,}, m = {graph['m']:,}, {graph['loops']:,} loops"
        for graph in comparison.graphs
    ]
    lines += conditions_of(comparison.provenance)
    for each in comparison_tables(comparison):
        lines += ["", str(each)]
    refused = [
        f"{one_line(row.get('graph', ''))}: {one_line(row['algorithm'], MOST_LETTERS)}, k = {row['k']}: "
        f"{one_line(row['error'])}".removeprefix(": ")
        for row in comparison.summary.rows(named=True)
        if row["error"] is not None
    ]
    return "\n".join([*lines, *([""] if refused else []), *refused])


def comparison_html(comparison: Comparison) -> str:
    """Return the same for a notebook, in tables of few columns."""
    names = ", ".join(
        f"{graph['name']}: n = {graph['n']:,}, m = {graph['m']:,}" for graph in comparison.graphs
    )
    refused = comparison.summary.filter(pl.col("error").is_not_null())
    tables = comparison_tables(comparison, MOST_COLUMNS)
    if len(refused):
        tables.append(table_of("no partition", refused.select(pl.col("^(graph|algorithm|k|error)$"))))
    lines = [f"Partitions of {names}", *conditions_of(comparison.provenance)]
    return f"<div>{''.join(f'<p>{escape(line)}</p>' for line in lines)}{''.join(each.html for each in tables)}</div>"


def conditions_of(provenance: Mapping[str, Any]) -> list[str]:
    """Return sentences about the bound and the seeds."""
    balance, seeds = provenance["balance"], provenance["seeds"]
    lines = []
    if balance is not None:
        lines.append(f"Bound: parts of at most {balance:g} of the mean, rounded up. * marks parts above it.")
    if len(seeds) > 1:
        lines.append(f"{len(seeds)} seeds: mean \N{PLUS-MINUS SIGN} standard deviation.")
    return lines


def comparison_tables(comparison: Comparison, most: int | None = None) -> list[Table]:
    """Return a table of vertex partitions, one of edge partitions, and the means over several graphs.

    ``most`` is the most columns.
    """
    tables, rows = [], comparison.summary.rows(named=True)
    for of in MEASURES:
        measured = [row for row in rows if row["of"] == of and row["error"] is None]
        if measured:
            names = _few(of, columns_of(of, measured), most)
            cells = [[measure_text(name, row, _cell) for name in names] for row in measured]
            tables.append(Table(TITLES[of], names, cells, range(names.index("k"))))
    return tables + (_ratios(comparison.ratios) if len(comparison.graphs) > 1 else [])


def _few(of: str, names: list[str], most: int | None) -> list[str]:
    """Return at most so many columns. Those that others nearly tell go first."""
    for least in ("edges_per_s", "bytes_per_vertex", "replica_balance", "edge_balance", "halo_rf"):
        if most is not None and len(names) > most and least != BOUNDED[of]:
            names = [name for name in names if name != least]
    return names[:most]


def measure_text(name: str, row: Mapping[str, Any], text: Callable[[Any], str]) -> str:
    """Return a cell with its standard deviation, or the mark of a part above the bound."""
    if (deviation := row.get(f"{name}_sd")) is not None:
        return f"{text(row[name])} \N{PLUS-MINUS SIGN}{text(deviation)}"
    return f"{text(row[name])}{'*' * (name == BOUNDED[row['of']] and bool(row['above_bound']))}"


def _ratios(ratios: pl.DataFrame) -> list[Table]:
    """Return the geometric means of each kind, without columns that have none."""
    tables = []
    for (of, baseline), rows in ratios.group_by("of", "baseline", maintain_order=True):
        known = [name for name in RATIOS if rows[name].null_count() < len(rows)]
        title = f"{TITLES[str(of)]}: geometric means over graphs and k, relative to "
        title += one_line(baseline, MOST_LETTERS)
        tables.append(table_of(title, rows.select("algorithm", "cells", *known)))
    return tables


def evaluation_tables(evaluation: Evaluation) -> list[Table]:
    """Return the summary, one measure per row, and the tables of the parts, types and relations."""
    known = [name for name in evaluation.summary.columns if getattr(evaluation, name) is not None]
    rows = [(name, _cell(getattr(evaluation, name))) for name in known]
    named = {"parts": evaluation.parts, "types": evaluation.types, "relations": evaluation.relations}
    whole = Table(f"{one_line(evaluation.algorithm)}, k = {evaluation.k:,}", ("measure", "value"), rows)
    return [whole, *(table_of(title, frame) for title, frame in named.items() if frame is not None)]


def columns_of(of: str, rows: list[dict[str, Any]]) -> list[str]:
    """Return the columns to show for partitions of ``of``: those with a value in some row."""
    rest = [
        name
        for name in rows[0]
        if name.endswith("_balance")
        or name in ("weighted_cut_ratio", "label_skew")
        or name.startswith(TRAFFIC)
    ]
    measures = [*MEASURES[of], *(name for name in rest if name not in MEASURES[of])]
    known = [name for name in (*measures, *COST) if any(row[name] is not None for row in rows)]
    return [*(["graph"] if "graph" in rows[0] else []), "algorithm", "k", *known]
