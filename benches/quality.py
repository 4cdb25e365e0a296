"""How good partitions are: graphs by numbers of parts by partitioners, METIS, KaMinPar and Mt-KaHyPar among them.

``make quality``, or ``python benches/quality.py [GRAPH ...] [-k 4,8,32] [--seeds 5] [--all-peers]`` for edge files of
yours; without any, the graphs of datasets/ and, where they are, of ../shared/data. ``--all-peers`` adds two presets of
Mt-KaHyPar. Prints a table per graph, and writes to target/quality/

- ``table.parquet``: one row per graph, k and partitioner;
- ``quality.md``, for docs/: means over the graphs, every cell where a peer is better, all tables;
- ``cut-and-time.svg`` and ``heat-*.svg``, for docs/pictures/: cut against time, and a cell for each graph and k.

Each partitioner runs once per seed, with one thread. Mt-KaHyPar and ``effort="best"`` are slow and run with the first
seed only. A row is the run of median cut, or of median replication factor, with the median of the seconds and the
largest memory. Ours run in a fresh process per row, as peers always do: what an earlier run left in the allocator would
hide what a later one takes.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, NamedTuple

import polars as pl
import quality_pictures

import fastpart as fp
from fastpart.report import table

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "target" / "quality"
SHIPPED = {"cora": 2708, "amazon-computers": 13752}

VERTICES, VOLUME, RECORDS = 1.03, 1.10, 1.05
"""Bounds on the parts, over the mean. The peers have them too."""

SLACK = 0.0005
"""Largest excess over a bound that counts as rounding."""

ON_REQUEST = ("mtkahypar:preset=deterministic", "mtkahypar:preset=quality")
"""Peers that run with ``--all-peers`` only."""

ONE_BOUND = {
    "spring": f"spring:balance={VERTICES}",
    "grem": f"grem:balance={VERTICES}",
    "multilevel": f"multilevel:balance={VERTICES}",
    "multilevel quick": f"multilevel:balance={VERTICES}:effort=quick",
    "multilevel best": f"multilevel:balance={VERTICES}:effort=best",
    "fast": f"partition:balance={VERTICES}:effort=fast",
    "multilevel files": f"multilevel:balance={VERTICES}:path=two_levels:sample=0.1",
    "metis": "metis",
    "kaminpar": "kaminpar",
    "mtkahypar": "mtkahypar",
    **dict(zip(ON_REQUEST, ON_REQUEST, strict=True)),
}
"""Algorithms by name, with a bound on the vertices of a part. A tenth of the memory leads to "files"."""

TWO_BOUNDS = {
    "sigma/2": f"sigma:balance={VERTICES}:volume_balance={VOLUME}",
    "multilevel/2": f"multilevel:balance={VERTICES}:volume_balance={VOLUME}",
    "multilevel files/2": f"multilevel:balance={VERTICES}:volume_balance={VOLUME}:path=two_levels:sample=0.1",
    "metis/2": "metis:constraints=2",
}
"""With a second bound, on the volume."""

OF_EDGES = {
    "hdrf": f"hdrf:balance={RECORDS}",
    "2ps-hdrf": f"two_phase:balance={RECORDS}:scoring=hdrf",
    "sigma edges": f"sigma:of=edges:balance={RECORDS}",
    "hep": f"hep:balance={RECORDS}",
    "edges fast": f"partition:of=edges:balance={RECORDS}:effort=fast",
    "edges": f"partition:of=edges:balance={RECORDS}",
    "edges best": f"partition:of=edges:balance={RECORDS}:effort=best",
}
"""Partitions of the edges, with a bound on the records of a part. "edges" is what ``partition`` chooses."""

GROUPS = {
    "vertices": (ONE_BOUND, "metis"),
    "two-bounds": (TWO_BOUNDS, "metis/2"),
    "edges": (OF_EDGES, "hep"),
}
"""Groups of algorithms that are compared with one another, and the baseline of each."""

ALGORITHMS = ONE_BOUND | TWO_BOUNDS | OF_EDGES
QUICK_PEERS = ("metis", "kaminpar", "metis/2")
SLOW_PEERS = ("mtkahypar", *ON_REQUEST)
FIRST_SEED = ("multilevel best", "edges best", *SLOW_PEERS)
"""Algorithms that run with the first seed only."""

RIVALS = (
    ("multilevel", "metis"),
    ("multilevel", "kaminpar"),
    ("multilevel", "mtkahypar"),
    ("multilevel quick", "metis"),
    ("fast", "spring"),
    ("multilevel best", "mtkahypar"),
    ("multilevel files", "metis"),
    ("multilevel/2", "metis/2"),
    ("multilevel files/2", "metis/2"),
    ("grem", "metis"),
    ("sigma/2", "metis/2"),
    ("edges fast", "sigma edges"),
    ("edges", "hep"),
    ("edges best", "hep"),
)

COSTS = ("seconds", "memory_kb")
OF_VERTICES_MEASURES = ("cut_ratio", "halo_rf", "vertex_balance", "edge_balance", *COSTS)
OF_EDGES_MEASURES = ("rf", "replica_balance", "edge_balance", *COSTS)
"""Columns of the rows. Rivals are compared by the first two of each and by the costs: less is better."""

SCHEMA = {
    "graph": pl.String, "n": pl.Int64, "m": pl.Int64, "k": pl.Int64, "algorithm": pl.String,
    **dict.fromkeys([*OF_VERTICES_MEASURES[:-1], *OF_EDGES_MEASURES[:2]], pl.Float64), "memory_kb": pl.Int64,
    "error": pl.String,
}  # fmt: skip

LARGE = 100_000
"""Edges from where on costs per edge are more than fixed costs."""

Row = dict[str, Any]


class Graph(NamedTuple):
    """A graph, and where its edges are."""

    name: str
    file: Path
    n: int | None = None

    def open(self) -> fp.Graph:
        return fp.open_graph(self.file, num_vertices=self.n)


def known_graphs(folder: Path) -> list[Graph]:
    """Return the graphs of datasets/, converted into the folder, and those of ../shared/data. Small ones come first."""
    graphs = {}
    for name, n in SHIPPED.items():
        fp.convert(ROOT / "datasets" / f"{name}.txt.gz", folder / f"{name}.bin", num_vertices=n)
        graphs[name] = Graph(name, folder / f"{name}.bin", n)
    for meta in (ROOT.parent / "shared" / "data").glob("*/meta.json"):
        name = meta.parent.name
        graphs.setdefault(name, Graph(name, meta.with_name("edges.npy"), json.loads(meta.read_text())["n"]))
    return sorted(graphs.values(), key=lambda graph: (graph.open().num_edges, graph.name))


# Measuring


def runs_of(graph: Graph, ks: Sequence[int], algorithms: Sequence[str], seeds: Sequence[int]) -> list[Row]:
    """Return a row per k, algorithm and seed."""
    warnings.simplefilter("ignore", UserWarning)  # chunks too thin, caps that cannot be: the rows say it
    edges = graph.open()
    names = {ALGORITHMS[name]: name for name in algorithms}
    return [
        row | {"algorithm": names[row["algorithm"]]}
        for seed in seeds
        for row in fp.compare(edges, ks, list(names), seed=seed, threads=1).summary.rows(named=True)
    ]


def measures(algorithm: str) -> tuple[str, ...]:
    """Return what the rows of an algorithm show. The first is what it makes small."""
    return OF_EDGES_MEASURES if algorithm in OF_EDGES else OF_VERTICES_MEASURES


def median_run(graph: str, runs: list[Row]) -> Row:
    """Return the row of the table for some runs that differ in the seed: of one that failed, if any did."""
    failed = [run for run in runs if run["error"] is not None]
    first = measures(runs[0]["algorithm"])[0]
    middle = (failed or sorted(runs, key=lambda run: run[first]))[0 if failed else (len(runs) - 1) // 2]
    row = {name: middle.get(name) for name in SCHEMA} | {"graph": graph}
    if not failed:
        row["seconds"] = median(run["seconds"] for run in runs)
        row["memory_kb"] = max(run["bytes_per_vertex"] for run in runs) * row["n"] // 1000
    return row


def measure(graph: Graph, ks: Sequence[int], algorithms: Sequence[str], seeds: Sequence[int]) -> pl.DataFrame:
    """Return the rows of a graph, by k, in the order of the algorithms."""
    runs: list[Row] = []
    # Spawned, since a forked process would share memory with this one, and anew for each task.
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as fresh:
        for name in algorithms:
            if name not in QUICK_PEERS + SLOW_PEERS:
                some = seeds[:1] if name in FIRST_SEED else seeds
                runs += [run for k in ks for run in fresh.submit(runs_of, graph, [k], [name], some).result()]
    for peers, some in ((QUICK_PEERS, seeds), (SLOW_PEERS, seeds[:1])):
        if wanted := [name for name in algorithms if name in peers]:
            runs += runs_of(graph, ks, wanted, some)
    rows = [
        median_run(graph.name, [run for run in runs if (run["k"], run["algorithm"]) == (k, name)])
        for k in ks
        for name in algorithms
    ]
    return pl.DataFrame(rows, schema=SCHEMA)


# What the rows say together


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
    """Name the cells where the peer has less, the worst first, by how much ours has more. A * marks broken bounds."""
    worse = [
        (a[measure] / b[measure] - 1 if b[measure] > 0 else math.inf, b)
        for a, b in cells(frame, ours, peer)
        if b[measure] < a[measure]
    ]
    worse.sort(key=lambda cell: cell[0], reverse=True)
    return [f"{b['graph']} {b['k']} (+{more:.1%}{'*' * breaks_a_bound(b)})" for more, b in worse]


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


# What is written


def graph_text(frame: pl.DataFrame) -> str:
    """Return the rows of one graph as text, and below them why there is no partition."""
    name, n, m = frame.row(0)[:3]
    refused = frame.filter(pl.col("error").is_not_null()).select("algorithm", "k", "error").rows()
    of_edges = pl.col("algorithm").is_in(list(OF_EDGES))
    groups = ((~of_edges, OF_VERTICES_MEASURES), (of_edges, OF_EDGES_MEASURES))
    blocks = [
        table(rows.select("k", "algorithm", *shown)) for of, shown in groups if len(rows := frame.filter(of))
    ]
    lines = [f"{name}: n = {n:,}, m = {m:,}", "\n\n".join(blocks)]
    return "\n".join([*lines, *(f"{algorithm}, k = {k}: {error}" for algorithm, k, error in refused)])


def means_text(frame: pl.DataFrame) -> str:
    """Return the means of the groups, relative to METIS or HEP."""
    lines = [
        f"geometric means over {frame['graph'].n_unique()} graphs, relative to METIS with as many bounds, or to HEP;",
        f"ns and bytes per edge over those of {LARGE:,} edges or more",
    ]
    for group, baseline in GROUPS.values():
        rows = means(frame, [name for name in group if cells(frame, name, baseline)], baseline)
        missing = f"{baseline} made no partition; pip install 'fastpart[peers]'"
        lines += ["", table(rows) if len(rows) else missing]
    return "\n".join(lines)


def method(seeds: Sequence[int]) -> str:
    return (
        f"1 thread; median of {len(seeds)} seeds (mtkahypar, best: 1 seed); parts of at most {VERTICES} of the mean in "
        f"vertices,\nwith /2 also {VOLUME} in volume; parts of edges of at most {RECORDS} of the mean in records"
    )


def document(frame: pl.DataFrame, seeds: Sequence[int]) -> str:
    """Return all that was found out, as Markdown."""
    tables = [f"```\n{graph_text(rows)}\n```" for _, rows in frame.group_by("graph", maintain_order=True)]
    blocks = [
        "# Quality compared with METIS, KaMinPar and Mt-KaHyPar",
        "This page shows where our partitioners are better than METIS, KaMinPar and Mt-KaHyPar, and where they are "
        "worse. Partitions of\nthe edges are compared with HEP, which we wrote after its paper.\n"
        f"`make quality` writes it. Method:\n{method(seeds)}.\n"
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
        "## Where a peer is better\n\nEach entry names the graph and k, and says by how much our value is larger. "
        "* marks cells where the peer breaks a bound.",
        *(
            rivals_text(frame, ours, peer, measure)
            for ours, peer in RIVALS
            if cells(frame, ours, peer)
            for measure in (*measures(ours)[:2], *COSTS)
        ),
        "## Where a bound is exceeded\n\nThe brackets hold the vertex and the edge balance. The bounded volume counts "
        "degree + 1 of each vertex. `edge_balance` counts its\ndegree, so it may exceed the bound on sparse graphs.",
        "\n".join(excess_text(frame, name) for name in ALGORITHMS if name in frame["algorithm"]),
        "## All graphs",
        *tables,
    ]
    return "\n\n".join(blocks) + "\n"


def rivals_text(frame: pl.DataFrame, ours: str, peer: str, measure: str) -> str:
    """Return in how many cells, and in which, a peer has less."""
    found = lost(frame, ours, peer, measure)
    head = f"**{peer} below {ours} in `{measure}`: {len(found)} of {len(cells(frame, ours, peer))}.**"
    return f"{head} {', '.join(found)}".rstrip()


def excess_text(frame: pl.DataFrame, algorithm: str) -> str:
    """Return in how many cells, and in which, an algorithm exceeds a bound."""
    rows = frame.filter(pl.col("error").is_null(), pl.col("algorithm") == algorithm).rows(named=True)
    over = [
        f"{row['graph']} {row['k']} ({row['vertex_balance']:.3f}, {row['edge_balance']:.3f})"
        for row in rows
        if breaks_a_bound(row)
    ]
    return f"- {algorithm}: {len(over)} of {len(rows)}. {', '.join(over)}".rstrip()


def draw(frame: pl.DataFrame, folder: Path) -> None:
    """Draw cut against time, and a heat map for each group of algorithms."""
    rows = means(frame, [name for name in ONE_BOUND if cells(frame, name, "metis")], "metis")
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


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "graphs", nargs="*", type=Path, metavar="GRAPH", help="edges, as `fastpart` opens them"
    )
    parser.add_argument(
        "-k", type=numbers, default="4,8,32", metavar="K,...", help="numbers of parts (default 4,8,32)"
    )
    parser.add_argument("--seeds", type=int, default=5, metavar="S", help="runs of each (default 5)")
    parser.add_argument(
        "--all-peers", action="store_true", help="also the presets deterministic and quality of Mt-KaHyPar"
    )
    given = parser.parse_args(arguments)
    seeds = range(1, given.seeds + 1)
    algorithms = [name for name in ALGORITHMS if given.all_peers or name not in ON_REQUEST]
    names = [file.stem for file in given.graphs]
    if given.seeds < 1 or len(set(names)) < len(names):
        parser.error("--seeds is at least 1, and the names of the graphs differ")
    with tempfile.TemporaryDirectory() as folder:
        mine = [Graph(*both) for both in zip(names, given.graphs, strict=True)]
        graphs = mine or known_graphs(Path(folder))
        frames = []
        for graph in graphs:
            frames.append(measure(graph, given.k, algorithms, seeds))
            print(graph_text(frames[-1]), end="\n\n", flush=True)
    frame = pl.concat(frames)
    OUT.mkdir(parents=True, exist_ok=True)
    frame.write_parquet(OUT / "table.parquet")
    (OUT / "quality.md").write_text(document(frame, seeds))
    draw(frame, OUT)
    print(f"{means_text(frame)}\n\nwrote {OUT / 'table.parquet'}, quality.md and pictures")


if __name__ == "__main__":
    main()
