"""The report as one self-contained page, without scripts, fonts and external files."""

from __future__ import annotations

from html import escape
from itertools import groupby
from typing import Any

from ..comparing import Comparison
from ..comparing.outcomes import MEASURES, TITLES, Outcome
from .charts import charts_of
from .shapes import DARK, LIGHT
from .svg import FONT, inline, style_sheet
from .text import columns_of

_STYLE = f"""
{style_sheet(LIGHT, ":root")}
@media (prefers-color-scheme: dark) {{ {style_sheet(DARK, ":root")} }}
:root {{ color-scheme: light dark }}
body {{ margin: 2rem auto; padding: 0 1.25rem; max-width: 1080px; font: 15px/1.5 {FONT};
  color: var(--text); background: var(--paper) }}
h1 {{ font-size: 1.5rem; margin: 0 0 .25rem }}
h2 {{ font-size: 1.1rem; margin: 2.25rem 0 .75rem; border-top: 1px solid var(--grid); padding-top: 1rem }}
p, dl {{ margin: .25rem 0 1rem; color: var(--faint); max-width: 75ch }}
.wide {{ overflow-x: auto }}
table {{ border-collapse: collapse; font-size: 12.5px; font-variant-numeric: tabular-nums; white-space: nowrap }}
th, td {{ padding: .2rem .5rem; text-align: right; border-bottom: 1px solid var(--grid) }}
th {{ color: var(--faint); font-weight: 600 }}
th:first-child, td:first-child {{ text-align: left; max-width: 13rem; overflow: hidden; text-overflow: ellipsis }}
tr.first td {{ border-top: 2px solid var(--faint) }}
td.best {{ font-weight: 700 }}
.reason {{ text-align: left; white-space: normal; overflow-wrap: anywhere }}
.plots {{ display: flex; flex-wrap: wrap; gap: 20px 24px; align-items: flex-start }}
svg {{ max-width: 100%; height: auto }}
dt {{ font-weight: 600; float: left; clear: left; margin-right: .5rem }}
dd {{ margin: 0 }}
"""

_MEANING = {
    "cut_ratio": "share of the records that connect two parts, without loops.",
    "vertex_balance": "the largest part relative to the mean, in vertices.",
    "edge_balance": "the same in volume (sum of degrees), for edge partitions in records.",
    "halo_rf": "vertices of all parts with all their neighbours, over n. Edge partitions: of their home parts.",
    "rf": "mean number of parts that a vertex is in.",
    "replica_balance": "the most vertices in a part relative to the mean.",
    "label_skew": "largest distance (total variation) between the labels of a part and of the graph.",
    "bytes_per_vertex": "peak growth of anonymous memory over n. For a peer, that of its process with the graph.",
}


def page(comparison: Comparison) -> str:
    """Return the page."""
    graph = comparison.graph
    facts = f"{graph['n']:,} vertices, {graph['m']:,} records, {graph['loops']:,} loops, threads={graph['threads']}"
    plots = "".join(
        f'<h2>{escape(heading)}</h2>\n<div class="plots">{"".join(map(inline, group))}</div>\n'
        for heading, group in charts_of(comparison)
    )
    body = f"<p>{facts}</p>\n{_tables(comparison)}{_refused(comparison)}{plots}"
    return page_of(f"Partitions of {graph['name']}", body)


def page_of(title: str, body: str) -> str:
    """Return a page with a heading and a body."""
    name = escape(title)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{name}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{name}</h1>\n{body}</body>\n</html>\n"
    )


def _tables(comparison: Comparison) -> str:
    rows = comparison.summary.rows(named=True)
    text, columns = "", set()
    for of in MEASURES:
        measured = [row for row in rows if row["of"] == of and row["error"] is None]
        if measured:
            names = columns_of(of, measured)
            columns |= set(names)
            text += f"<h2>{TITLES[of].capitalize()}</h2>\n{_table(names, measured)}"
    meaning = "".join(
        f"<dt>{name}</dt><dd>{words}</dd>" for name, words in _MEANING.items() if name in columns
    )
    return f"{text}<p>Bold: the best of each number of parts.</p><dl>{meaning}</dl>\n" if text else ""


def _table(names: list[str], rows: list[dict[str, Any]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = ""
    for _, group in groupby(sorted(rows, key=lambda row: row["k"]), key=lambda row: row["k"]):
        alike = list(group)
        best = {
            name: _best(name, [row[name] for row in alike if row[name] is not None]) for name in names[2:]
        }
        for i, row in enumerate(alike):
            cells = "".join(_td(name, row[name], best.get(name)) for name in names)
            body += f"<tr{' class=first' if i == 0 else ''}>{cells}</tr>\n"
    return f'<div class="wide"><table>\n<tr>{head}</tr>\n{body}</table></div>\n'


def _best(name: str, values: list[float]) -> float | None:
    """Return the best value, if the values differ."""
    if len(set(values)) < 2:
        return None
    return max(values) if name == "edges_per_s" else min(values)


def _td(name: str, value: Any, best: float | None) -> str:
    mark = " class=best" if value is not None and value == best else ""
    return f"<td{mark}>{escape(cell(name, value))}</td>"


def cell(name: str, value: Any) -> str:
    """Return the text of a table cell. The format depends on the column."""
    if value is None:
        return "\N{EN DASH}"
    if name == "seconds":
        return f"{value:.3g}"
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _refused(comparison: Comparison) -> str:
    body = "".join(
        f"<tr><td>{escape(outcome.row['algorithm'])}</td><td>{outcome.row['k']}</td>"
        f"<td class=reason>{_reason(outcome)}</td></tr>\n"
        for outcome in comparison.outcomes
        if outcome.row.get("error") is not None
    )
    if not body:
        return ""
    head = "<tr><th>algorithm</th><th>k</th><th class=reason>reason</th></tr>"
    return f"<h2>No partition</h2>\n<table>\n{head}\n{body}</table>\n"


def _reason(outcome: Outcome) -> str:
    """Return why there is no partition, with the traceback folded."""
    reason = escape(outcome.row["error"])
    if outcome.traceback is None:
        return reason
    return f"<details><summary>{reason}</summary><pre>{escape(outcome.traceback)}</pre></details>"
