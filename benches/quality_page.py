"""What the rows of ``make quality`` say together, as text and Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import polars as pl
import quality_pictures
from quality_algorithms import (
    ALGORITHMS,
    ANCHORS,
    COSTS,
    GROUPS,
    OF_EDGES,
    OF_EDGES_MEASURES,
    OF_VERTICES_MEASURES,
    ONE_BOUND,
    RECORDS,
    RIVALS,
    TWO_BOUNDS,
    VERTICES,
    VOLUME,
    measures,
)
from quality_kinds import OTHER_KINDS

from fastpart.report.text import table

SLACK = 0.0005
"""Largest excess over a bound that counts as rounding."""

LARGE = 100_000
"""Edges from where on costs per edge are more than fixed costs."""

MUCH = 0.01
"""Cells in which a peer is better by more than this share are named."""

FEW = 0.0002
"""Differences of the cut ratio below it are told in edges, too: the cut itself is a few edges."""

Row = dict[str, Any]


def kinds(frame: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the rows of the real graphs that most tables have, and those of other kinds, with what they are."""
    other = pl.col("graph").is_in(OTHER_KINDS)
    for rows, of in ((frame.filter(~other), ""), (frame.filter(other), " of other kinds")):
        if len(rows):
            yield f"{rows['graph'].n_unique()} graphs{of}", rows


def cells(frame: pl.DataFrame, ours: str, peer: str) -> list[tuple[Row, Row]]:
    """Return the rows of two algorithms for each graph and k at which both made a partition."""
    made = frame.filter(pl.col("error").is_null()).rows_by_key("algorithm", named=True, include_key=True)
    theirs = {(row["graph"], row["k"]): row for row in made.get(peer, ())}
    return [
        (row, theirs[row["graph"], row["k"]])
        for row in made.get(ours, ())
        if (row["graph"], row["k"]) in theirs
    ]


def means(frame: pl.DataFrame, algorithms: Sequence[str], baseline: str) -> pl.DataFrame:
    """Return geometric means: of two measures relative to a baseline, and of seconds and memory per edge."""
    rows = []
    first, second = measures(baseline)[:2]
    small, other = (each.removesuffix("_ratio").removesuffix("_rf") for each in (first, second))
    for name in algorithms:
        both = [(a, b) for a, b in cells(frame, name, baseline) if a[first] > 0 and b[first] > 0]
        large = [a for a, _ in both if a["m"] >= LARGE]
        by_k = {k: [(a, b) for a, b in both if a["k"] == k] for k in frame["k"].unique(maintain_order=True)}
        rows.append(
            {"algorithm": name, "cells": len(both)}
            | {f"{small}_{k}": ratio(some, first) for k, some in by_k.items()}
            | {small: ratio(both, first), other: ratio(both, second)}
            | {"time": ratio(both, "seconds"), "memory": ratio(both, "memory_kb")}
            | {"ns_per_edge": mean([a["seconds"] * 1e9 / a["m"] for a in large])}
            | {"bytes_per_edge": mean([a["memory_kb"] * 1e3 / a["m"] for a in large])}
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def ratio(pairs: list[tuple[Row, Row]], measure: str) -> float | None:
    """Return the geometric mean of the first over the second."""
    positive = [(a[measure], b[measure]) for a, b in pairs if a[measure] > 0 and b[measure] > 0]
    return geometric_mean([a / b for a, b in positive]) if positive else None


def mean(values: list[float]) -> int | None:
    positive = [value for value in values if value > 0]
    return round(geometric_mean(positive)) if positive else None


def lost(frame: pl.DataFrame, ours: str, peer: str, measure: str) -> list[str]:
    """Name the cells where ours has more by over 1 %, the worst first, and by how much. A * marks broken bounds.

    A difference of a few edges is told, too: where the cut itself is small it is many per cent.
    """
    worse = [
        (a[measure] / b[measure] - 1 if b[measure] > 0 else math.inf, a, b)
        for a, b in cells(frame, ours, peer)
        if a[measure] > (1 + MUCH) * b[measure]
    ]
    worse.sort(key=lambda cell: cell[0], reverse=True)
    return [
        f"{b['graph']} {b['k']} (+{more:.1%}{'*' * breaks_a_bound(b)}{few_edges(a, b, measure)})"
        for more, a, b in worse
    ]


def few_edges(ours: Row, peers: Row, measure: str) -> str:
    """Return a difference of the cut in edges, where it is a small share of the graph."""
    more = ours[measure] - peers[measure]
    return f", {round(more * ours['m'])} edges" if measure == "cut_ratio" and more < FEW else ""


def anchors(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the geometric means of our cut, or replicas, over those of the peers to be met, and the worst cell."""
    rows = []
    for graphs, some in kinds(frame):
        for ours, peer in ANCHORS:
            first = measures(ours)[0]
            both = [(a, b) for a, b in cells(some, ours, peer) if a[first] > 0 and b[first] > 0]
            if both:
                by_k = {
                    k: [(a, b) for a, b in both if a["k"] == k]
                    for k in frame["k"].unique(maintain_order=True)
                }
                rows.append(
                    {"ours": ours, "peer": peer, "graphs": graphs, "cells": len(both)}
                    | {f"k={k}": ratio(pairs, first) for k, pairs in by_k.items()}
                    | {"all": ratio(both, first), "worst": max(a[first] / b[first] for a, b in both)}
                    | {"time": ratio(both, "seconds")}
                )
    return pl.DataFrame(rows, infer_schema_length=None)


def breaks_a_bound(row: Row) -> bool:
    """Say whether a part has more than its share, rounded up, of vertices, of records, or of volume (two bounds).

    The volume that is bounded counts degree + 1 of each vertex. ``edge_balance``, without the 1, may be above it.
    """
    if row["algorithm"] in OF_EDGES:
        mean = row["m"] / row["k"]
        return bool(row["edge_balance"] > math.ceil(RECORDS * mean) / mean + SLACK)
    mean = row["n"] / row["k"]
    volume = VOLUME * (1 + row["n"] / max(2 * row["m"], 1))
    return bool(
        row["vertex_balance"] > math.ceil(VERTICES * mean) / mean + SLACK
        or (row["algorithm"] in TWO_BOUNDS and row["edge_balance"] > volume + SLACK)
    )


def of_graph(frame: pl.DataFrame) -> str:
    """Return which graph the rows are of."""
    name, n, m = frame.row(0)[:3]
    return f"{name}: n = {n:,}, m = {m:,}"


def graph_text(frame: pl.DataFrame) -> str:
    """Return the rows of one graph as text, and below them why there is no partition."""
    refused = frame.filter(pl.col("error").is_not_null()).select("algorithm", "k", "error").rows()
    of_edges = pl.col("algorithm").is_in(list(OF_EDGES))
    groups = ((~of_edges, OF_VERTICES_MEASURES), (of_edges, OF_EDGES_MEASURES))
    blocks = [
        table(rows.select("k", "algorithm", *shown)) for of, shown in groups if len(rows := frame.filter(of))
    ]
    lines = [of_graph(frame), "\n\n".join(blocks)]
    return "\n".join([*lines, *(f"{algorithm}, k = {k}: {error}" for algorithm, k, error in refused)])


def means_text(frame: pl.DataFrame) -> str:
    """Return the means of the groups, relative to METIS or HEP, and those of our efforts over the peers to be met."""
    blocks = []
    for graphs, some in kinds(frame):
        lines = [
            f"geometric means over {graphs}, relative to METIS with as many bounds, or to HEP;",
            f"ns and bytes per edge over those of {LARGE:,} edges or more",
        ]
        for group, baseline in GROUPS.values():
            rows = means(some, [name for name in group if cells(some, name, baseline)], baseline)
            missing = f"{baseline} made no partition; pip install 'fastpart[peers]'"
            lines += ["", table(rows) if len(rows) else missing]
        blocks.append("\n".join(lines))
    return "\n\n".join([*blocks, anchors_text(frame)]).rstrip()


def anchors_text(frame: pl.DataFrame) -> str:
    """Return the means of our efforts over the peers to be met."""
    rows = anchors(frame)
    head = "geometric means of our cut (edges: replicas) over the peer's, the worst cell, and the mean of the time"
    return f"{head}\n\n{table(rows)}" if len(rows) else ""


def method(seeds: Sequence[int]) -> str:
    return (
        f"1 thread; median of {len(seeds)} seeds (mtkahypar, presets, best: 1 seed); parts of at most {VERTICES} "
        f"of the mean in\nvertices, with /2 also {VOLUME} in volume; parts of edges of at most {RECORDS} of the mean "
        "in records"
    )


def document(frame: pl.DataFrame, seeds: Sequence[int]) -> str:
    """Return all that was found out, as Markdown: means and pictures, and below them what unfolds on a click."""
    blocks = [
        "# Quality compared with METIS, KaMinPar and Mt-KaHyPar",
        "This page shows where our partitioners are better than METIS, KaMinPar and Mt-KaHyPar, and where they are "
        "worse. Partitions of\nthe edges are compared with HEP, which we wrote after its paper.\n"
        f"`make quality` writes it. Method:\n{method(seeds)}.\n"
        f"{kinds_text(frame)}"
        "[Comparing](guides/comparing.md) explains the columns. "
        "`memory_kb` is the growth of memory in thousands of bytes. For peers it includes\nthe graph.",
        f"## Means\n\n![The cut of each partitioner against its time](pictures/cut-and-time.svg)\n\n"
        f"```\n{means_text(frame)}\n```",
        "## All graphs in pictures\n\nBlue is better than METIS, or than HEP, and brown is worse.",
        *(
            f"![Each graph and k over {baseline}](pictures/heat-{name}.svg)"
            for name, (_, baseline) in GROUPS.items()
            if cells(frame, baseline, baseline)
        ),
        "## Where a peer is better\n\nEach line counts, for each measure, the cells where our value is larger by more "
        "than 1 %, and unfolds to the graph and k\nof each, and by how much. * marks cells where the peer breaks a "
        f"bound. Differences of the cut below {FEW:.2%} of the edges are told\nin edges, too.",
        *(rivals_text(frame, *pair) for pair in RIVALS if cells(frame, *pair)),
        "## Where a bound is exceeded\n\nThe brackets hold the vertex and the edge balance. The bounded volume counts "
        "degree + 1 of each vertex. `edge_balance` counts its\ndegree, so it may exceed the bound on sparse graphs.",
        excesses_text(frame),
        "## All graphs\n\nEach line unfolds to all partitions of a graph.",
        *(
            folded(of_graph(rows), f"```\n{graph_text(rows)}\n```")
            for _, rows in frame.group_by("graph", maintain_order=True)
        ),
    ]
    return "\n\n".join(blocks) + "\n"


def kinds_text(frame: pl.DataFrame) -> str:
    """Return which graphs are of other kinds, as a sentence."""
    other = frame.filter(pl.col("graph").is_in(OTHER_KINDS))["graph"].unique(maintain_order=True).to_list()
    return f"Graphs of other kinds have means of their own: {', '.join(other)}.\n" if other else ""


def folded(summary: str, content: str) -> str:
    """Return Markdown that shows its summary only, until it is clicked."""
    return f"<details><summary>{summary}</summary>\n\n{content}\n\n</details>"


def rivals_text(frame: pl.DataFrame, ours: str, peer: str) -> str:
    """Return in how many cells a peer has less, and in which it has less by more than 1 %, for each measure."""
    both, counts, blocks = cells(frame, ours, peer), [], []
    for measure in (*measures(ours)[:2], *COSTS):
        less, found = sum(b[measure] < a[measure] for a, b in both), lost(frame, ours, peer, measure)
        head = (
            f"**{peer} below {ours} in `{measure}`: {less} of {len(both)}, {len(found)} by more than 1 %.**"
        )
        counts.append(f"{measure} {len(found)}")
        blocks.append(f"{head} {', '.join(found)}".rstrip())
    return folded(f"{peer} below {ours}, of {len(both)} cells: {', '.join(counts)}", "\n\n".join(blocks))


def excesses_text(frame: pl.DataFrame) -> str:
    """Return in how many cells, and in which, algorithms exceed a bound, and which never do."""
    lines, never = [], []
    for name in (each for each in ALGORITHMS if each in frame["algorithm"]):
        rows = frame.filter(pl.col("error").is_null(), pl.col("algorithm") == name).rows(named=True)
        over = [
            f"{row['graph']} {row['k']} ({row['vertex_balance']:.3f}, {row['edge_balance']:.3f})"
            for row in rows
            if breaks_a_bound(row)
        ]
        if over:
            lines.append(f"- {name}: {len(over)} of {len(rows)}. {', '.join(over)}")
        else:
            never.append(f"{name} (0 of {len(rows)})")
    return "\n".join([*lines, f"- Never: {', '.join(never)}"])


def draw(frame: pl.DataFrame, folder: Path) -> None:
    """Draw cut against time, and a heat map for each group of algorithms."""
    _, first = next(kinds(frame))  # those of the headline
    rows = means(first, [name for name in ONE_BOUND if cells(first, name, "metis")], "metis")
    if len(rows) and rows["ns_per_edge"].count():
        quality_pictures.cut_and_time(rows, folder / "cut-and-time.svg")
    for name, (group, baseline) in GROUPS.items():
        measure = measures(baseline)[0]
        ratios = {
            (a["graph"], each, a["k"]): a[measure] / b[measure]
            for each in group
            for a, b in cells(frame, each, baseline)
            if b[measure] > 0
        }
        others = [each for each in group if each != baseline and cells(frame, each, baseline)]
        if ratios and others:
            title = f"{measure} over that of {baseline}, for each k"
            quality_pictures.heat_map(ratios, others, title, folder / f"heat-{name}.svg")
