"""Tables for the terminal, and the colours, markers and texts of pages and pictures. Nothing needs matplotlib."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, Literal, NamedTuple

from ..core.frames import pl
from ..core.parameters import one_line
from ..core.protocols import MOST_COLUMNS, Table
from ..measures.compare import Comparison
from ..measures.compare.outcomes import BOUNDED, COST, MEASURES, RATIOS, TITLES, TRAFFIC
from ..measures.compare.peers import PEERS
from ..partitions.results import Evaluation

_COLOURS = {
    "text": ("#1d2733", "#e4e9ee"),
    "faint": ("#5d6b7a", "#9aa7b4"),
    "grid": ("#dde3e9", "#333d48"),
    "paper": ("#ffffff", "#161b21"),
    "cap": ("#c0392b", "#ef7d6f"),
    "series1": ("#9ebcd8", "#33587c"),
    "series2": ("#4f86bd", "#5a93cb"),
    "series3": ("#1f4e7d", "#b4d4f2"),
    "series4": ("#c7a76c", "#7a5a2a"),
    "series5": ("#a06a2c", "#c1924f"),
    "series6": ("#5f3b12", "#ecd3a6"),
}
SERIES = [name for name in _COLOURS if name.startswith("series")]
LIGHT = {name: light for name, (light, _) in _COLOURS.items()}
DARK = {name: dark for name, (_, dark) in _COLOURS.items()}
"""The colours of figures and light pages, and the same on dark pages."""


class Mark(NamedTuple):
    """How an algorithm is drawn."""

    colour: str
    text: str
    """The colour of its name, which is dark."""
    marker: str
    filled: bool
    line: Literal["-", "--"]


SHAPES = "oDs^vPX<>p"

_MARKS: dict[str, tuple[tuple[str, ...], bool, Literal["-", "--"]]] = {
    "own": (("text",), True, "-"),
    "fastpart": (("series3", "series2", "series1"), True, "-"),
    "peer": (("series5", "series6", "series4"), False, "--"),
}
"""Colours, whether markers are filled, and the line of the user's own, of algorithms of fastpart, and of peers."""


def kind_of(algorithm: str | None) -> str:
    """Return whose an algorithm of this name is: the user's own, one of fastpart, or a peer."""
    return "own" if algorithm is None else "peer" if algorithm in PEERS else "fastpart"


def marks_of(algorithms: Mapping[str, str | None]) -> dict[str, Mark]:
    """Return a mark for each label, so that those of a kind differ in shape and shade. Values are algorithms' names."""
    marks: dict[str, Mark] = {}
    for label_, algorithm in algorithms.items():
        kind = kind_of(algorithm)
        colours, filled, line = _MARKS[kind]
        place = sum(kind_of(algorithms[other]) == kind for other in marks)
        colour = LIGHT[colours[place % len(colours)]]
        marks[label_] = Mark(colour, LIGHT[colours[0]], SHAPES[place % len(SHAPES)], filled, line)
    return marks


def label(name: str, most: int = 20) -> str:
    """Return a name as a short line that SVG can hold."""
    name = printable(name).replace("\n", " ")
    return name if len(name) <= most else f"{name[: most - 1]}\N{HORIZONTAL ELLIPSIS}"


def printable(text: object) -> str:
    """Return text for XML and HTML. Control characters and lone surrogates are replaced."""
    known = str(text).encode(errors="replace").decode()
    return "".join(
        letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in known
    )


def number(value: float, _: object = None) -> str:
    """Return a number with up to four digits, as short as possible. Also a formatter of ticks."""
    mantissa, exponent, power = f"{value:.4g}".partition("e")
    return f"{mantissa}e{int(power)}" if exponent else mantissa


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
    rows = [[cell_text(value) for value in row] for row in frame.iter_rows()]
    texts = [place for place, dtype in enumerate(frame.dtypes) if dtype == pl.String]
    return Table(title, frame.columns, rows, texts)


def cell_text(value: Any) -> str:
    """Return the text of a value in a table."""
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
    tables = [*comparison_tables(comparison, MOST_COLUMNS), *failures(comparison)]
    lines = [f"Partitions of {names}", *conditions_of(comparison.provenance)]
    return f"<div>{''.join(f'<p>{escape(line)}</p>' for line in lines)}{''.join(each.html for each in tables)}</div>"


def failures(comparison: Comparison) -> list[Table]:
    """Return a table of the runs that failed, with the reasons, if there are any."""
    failed = comparison.summary.filter(pl.col("error").is_not_null())
    names = pl.col("^(graph|algorithm|k|error)$")
    return [table_of("no partition", failed.select(names))] if len(failed) else []


def conditions_of(provenance: Mapping[str, Any]) -> list[str]:
    """Return sentences about the bound and the seeds."""
    balance, seeds = provenance["balance"], provenance["seeds"]
    lines = []
    if balance is not None:
        lines.append(f"Bound: parts of at most {balance:g} of the mean, rounded up. * marks parts above it.")
    if len(seeds) > 1:
        lines.append(f"{len(seeds)} seeds: mean \N{PLUS-MINUS SIGN} standard deviation.")
    return lines


def comparison_tables(
    comparison: Comparison,
    most: int | None = None,
    columns: Sequence[str] | None = None,
    text: Callable[[str, Any], str] = lambda _, value: cell_text(value),
) -> list[Table]:
    """Return a table of vertex partitions, one of edge partitions, and the means over several graphs.

    ``most`` is the most columns. ``columns`` are those to show, in this order. ``text`` gets the name of a column.
    """
    tables, rows = [], comparison.summary.rows(named=True)
    for of in MEASURES:
        measured = [row for row in rows if row["of"] == of and row["error"] is None]
        if measured and (names := _few(of, columns_of(of, measured, columns), most))[-1] != "k":
            tables.append(measured_table(TITLES[of], names, measured, text))
    return tables + (
        ratio_tables(comparison.ratios) if len(comparison.graphs) > 1 and columns is None else []
    )


def measured_table(
    title: str, names: Sequence[str], rows: Sequence[Mapping[str, Any]], text: Callable[[str, Any], str]
) -> Table:
    """Return a table of measures, with the best value of each graph and k in bold. Their rows are together."""
    instances = [(row.get("graph"), row["k"]) for row in rows]
    first = names.index("k") + 1
    cells = [[measure_text(name, row, functools.partial(text, name)) for name in names] for row in rows]
    bold = set()
    for instance in set(instances):
        places = [place for place, each in enumerate(instances) if each == instance]
        for column, name in enumerate(names[first:], first):
            known = [place for place in places if rows[place][name] is not None]
            valid = [place for place in known if not rows[place]["above_bound"]]
            if valid and len({rows[place][name] for place in known}) > 1:
                best = (max if name == "edges_per_s" else min)(rows[place][name] for place in valid)
                bold |= {
                    (place, column) for place in valid if text(name, rows[place][name]) == text(name, best)
                }
    breaks = [place for place in range(1, len(rows)) if instances[place] != instances[place - 1]]
    return Table(title, names, cells, range(first - 1), bold, breaks)


def _few(of: str, names: list[str], most: int | None) -> list[str]:
    """Return at most so many columns. Those that others nearly tell go first."""
    for least in ("edges_per_s", "bytes_per_vertex", "replica_balance", "edge_balance", "halo_rf"):
        if most is not None and len(names) > most and least != BOUNDED[of]:
            names = [name for name in names if name != least]
    return names[:most]


def measure_text(name: str, row: Mapping[str, Any], text: Callable[[Any], str]) -> str:
    """Return a cell with its standard deviation, or the mark of a part above the bound.

    A deviation has as many digits behind the point as its mean.
    """
    if (deviation := row.get(f"{name}_sd")) is not None:
        mean = text(row[name])
        return f"{mean} \N{PLUS-MINUS SIGN}{deviation:.{len(mean.partition('.')[2])}f}"
    return f"{text(row[name])}{'*' * (name == BOUNDED[row['of']] and bool(row['above_bound']))}"


def ratio_tables(ratios: pl.DataFrame) -> list[Table]:
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
    rows = [(name, cell_text(getattr(evaluation, name))) for name in known]
    named = {"parts": evaluation.parts, "types": evaluation.types, "relations": evaluation.relations}
    whole = Table(f"{one_line(evaluation.algorithm)}, k = {evaluation.k:,}", ("measure", "value"), rows)
    return [whole, *(table_of(title, frame) for title, frame in named.items() if frame is not None)]


def columns_of(of: str, rows: list[dict[str, Any]], wanted: Sequence[str] | None = None) -> list[str]:
    """Return the columns to show for partitions of ``of``: those with a value in some row, if they are wanted."""
    rest = [
        name
        for name in rows[0]
        if name.endswith("_balance")
        or name in ("weighted_cut_ratio", "label_skew")
        or name.startswith(TRAFFIC)
    ]
    measures = [*MEASURES[of], *(name for name in rest if name not in MEASURES[of])]
    asked = (*measures, *COST) if wanted is None else wanted
    known = [name for name in asked if any(row[name] is not None for row in rows)]
    return [*(["graph"] if "graph" in rows[0] else []), "algorithm", "k", *known]
