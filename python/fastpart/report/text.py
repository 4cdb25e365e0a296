"""Tables for the terminal."""

from __future__ import annotations

from typing import Any

from ..core.facts import Table
from ..core.frames import pl
from ..core.parameters import one_line
from ..measures.compare import Comparison
from ..measures.compare.outcomes import COST, MEASURES, TITLES, TRAFFIC
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
    tables = []
    for frame, what in (
        (evaluation.parts, "parts"),
        (evaluation.types, "types"),
        (evaluation.relations, "relations"),
    ):
        if frame is not None:
            tables.append(_shortened(frame, what))
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
    """Return a line about the graph, a table of vertex partitions, one of edge partitions, and the errors."""
    graph, whole = comparison.graph, comparison.summary
    lines = [f"{one_line(graph['name'])}: n = {graph['n']:,}, m = {graph['m']:,}, {graph['loops']:,} loops"]
    rows = whole.rows(named=True)
    for each in comparison_tables(comparison):
        lines += ["", str(each)]
    refused = [
        f"{one_line(row['algorithm'], MOST_LETTERS)}, k = {row['k']}: {one_line(row['error'])}"
        for row in rows
        if row["error"] is not None
    ]
    return "\n".join([*lines, *([""] if refused else []), *refused])


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Return a table of vertex partitions and one of edge partitions, of those that were measured."""
    tables, rows = [], comparison.summary.rows(named=True)
    for of in MEASURES:
        measured = [row for row in rows if row["of"] == of and row["error"] is None]
        if measured:
            frame = pl.DataFrame(measured, infer_schema_length=None)
            tables.append(table_of(TITLES[of], frame.select(columns_of(of, measured))))
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
    return ["algorithm", "k", *known]
