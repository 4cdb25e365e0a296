"""Tables for the terminal."""

from __future__ import annotations

from typing import Any

from ..comparing import Comparison
from ..comparing.outcomes import COST, MEASURES, TITLES
from ..frames import pl
from ..results import Evaluation

MOST_ROWS = 40
"""A longer table is shown by its first and last rows."""


def table(frame: pl.DataFrame) -> str:
    """Return a frame as aligned text, numbers to the right."""
    cells = [[_cell(value) for value in column] for column in frame.get_columns()]
    texts = [dtype == pl.String for dtype in frame.dtypes]
    widths = [max(map(len, (name, *column))) for name, column in zip(frame.columns, cells, strict=True)]
    lines = []
    for row in (frame.columns, *zip(*cells, strict=True)):
        aligned = (
            cell.ljust(width) if text else cell.rjust(width)
            for cell, width, text in zip(row, widths, texts, strict=True)
        )
        lines.append("  ".join(aligned).rstrip())
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def evaluation_text(evaluation: Evaluation) -> str:
    """Return the summary, then one row per part."""
    parts = evaluation.parts
    if len(parts) <= MOST_ROWS:
        return f"{table(evaluation.summary)}\n\n{table(parts)}"
    shown = parts.head(MOST_ROWS // 2).vstack(parts.tail(MOST_ROWS // 2))
    lines = table(shown).split("\n")
    lines.insert(1 + MOST_ROWS // 2, f"... {len(parts) - MOST_ROWS} more parts ...")
    return f"{table(evaluation.summary)}\n\n" + "\n".join(lines)


def comparison_text(comparison: Comparison) -> str:
    """Return the graph, a table of vertex partitions and one of edge partitions, and what was refused."""
    graph, whole = comparison.graph, comparison.summary
    lines = [f"{graph['name']}: n = {graph['n']:,}, m = {graph['m']:,}, {graph['loops']:,} loops"]
    rows = whole.rows(named=True)
    for of in MEASURES:
        made = [row for row in rows if row["of"] == of and row["error"] is None]
        if made:
            names = columns_of(of, made)
            lines += [
                "",
                TITLES[of],
                table(pl.DataFrame(made, infer_schema_length=None).select(names)),
            ]
    refused = [
        f"{row['algorithm']}, k = {row['k']}: {row['error']}" for row in rows if row["error"] is not None
    ]
    return "\n".join([*lines, *([""] if refused else []), *refused])


def columns_of(of: str, rows: list[dict[str, Any]]) -> list[str]:
    """Return the columns that say something of rows of one."""
    rest = [name for name in rows[0] if name.endswith("_balance") or name == "label_skew"]
    measures = [*MEASURES[of], *(name for name in rest if name not in MEASURES[of])]
    told = [name for name in (*measures, *COST) if any(row[name] is not None for row in rows)]
    return ["algorithm", "k", *told]
