"""How good partitions are: graphs by numbers of parts by partitioners, METIS, KaMinPar and Mt-KaHyPar among them.

``make quality``, or ``python benches/quality.py [GRAPH ...] [-k 4,8,32] [--seeds 5] [--all-peers]`` for edge files of
yours; without any, the shipped graphs, generated ones of other kinds, and, where they are, those of
../shared/data. ``--all-peers`` adds presets of KaMinPar and Mt-KaHyPar. Prints a table per graph, and writes to
target/quality/

- ``table.parquet``: one row per graph, k and partitioner;
- ``quality.md``, for docs/: means over the graphs, every cell where a peer is better, all tables;
- ``cut-and-time.svg`` and ``heat-*.svg``, for docs/pictures/: cut against time, and a cell for each graph and k.

Each partitioner runs once per seed, with one thread. Mt-KaHyPar, the presets and ``effort="best"`` are slow and run
with the first seed only. A row is the run of median cut, or of median replication factor, with the median of the
seconds and the largest memory. Ours run in a fresh process per row, as peers always do: what an earlier run left in the
allocator would hide what a later one takes.

Peers take most of the time. ``--peers-from TABLE`` takes their rows from the table of an earlier run, where the records
of the graph, k, the bounds, the version of the package and the number of seeds agree.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import polars as pl
import quality_kinds
from quality_algorithms import (
    ALGORITHMS,
    FIRST_SEED,
    IDENTITY,
    ON_REQUEST,
    QUICK_PEERS,
    SCHEMA,
    SLOW_PEERS,
    VERTICES,
    bounds,
    measures,
    version_of,
)
from quality_page import document, draw, graph_text, means_text

import fastpart as fp

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "target" / "quality"
SHIPPED = {"cora": 2708, "amazon-computers": 13752}

TIME_LIMIT = 3600.0
"""Seconds after which a run of a peer is killed."""

Row = dict[str, Any]
Rows = Mapping[tuple[Any, ...], Row]
"""Rows by what IDENTITY names."""


class Graph(NamedTuple):
    """A graph, and where its edges are."""

    name: str
    file: Path
    n: int | None = None

    def open(self) -> fp.Graph:
        return fp.open_graph(self.file, num_vertices=self.n)


def known_graphs(folder: Path) -> list[Graph]:
    """Return the shipped graphs and generated ones, written into the folder, and those of ../shared/data.

    Small ones come first.
    """
    graphs = {}
    for name, n in SHIPPED.items():
        fp.convert(
            ROOT / "python" / "fastpart" / "datasets" / f"{name}.txt.gz",
            folder / f"{name}.bin",
            num_vertices=n,
        )
        graphs[name] = Graph(name, folder / f"{name}.bin", n)
    for name, (n, _) in quality_kinds.KINDS.items():
        graphs[name] = Graph(name, quality_kinds.write(name, folder), n)
    for meta in (ROOT.parent / "shared" / "data").glob("*/meta.json"):
        name = meta.parent.name
        graphs.setdefault(name, Graph(name, meta.with_name("edges.npy"), json.loads(meta.read_text())["n"]))
    return sorted(graphs.values(), key=lambda graph: (graph.open().num_edges, graph.name))


def runs_of(graph: Graph, ks: Sequence[int], algorithms: Sequence[str], seeds: Sequence[int]) -> list[Row]:
    """Return a row per k, algorithm and seed."""
    warnings.simplefilter("ignore", UserWarning)  # chunks too thin, caps that cannot be: the rows say it
    edges = graph.open()
    names = {ALGORITHMS[name]: name for name in algorithms}
    return [
        row | {"algorithm": names[row["algorithm"]]}
        for seed in seeds
        for row in fp.compare(
            edges, ks, list(names), balance=VERTICES, seed=seed, threads=1, time_limit=TIME_LIMIT
        ).summary.rows(named=True)
    ]


def median_run(known: Row, runs: list[Row]) -> Row:
    """Return the row of the table for some runs that differ in the seed: of one that failed, if any did.

    ``known`` has the columns that the runs do not have.
    """
    failed = [run for run in runs if run["error"] is not None]
    first = measures(runs[0]["algorithm"])[0]
    middle = (failed or sorted(runs, key=lambda run: run[first]))[0 if failed else (len(runs) - 1) // 2]
    row = {name: middle.get(name) for name in SCHEMA} | known
    if not failed:
        row["seconds"] = median(run["seconds"] for run in runs)
        row["memory_kb"] = max(run["bytes_per_vertex"] for run in runs) * row["n"] // 1000
    return row


def measure(
    graph: Graph, ks: Sequence[int], algorithms: Sequence[str], seeds: Sequence[int], stored: Rows
) -> pl.DataFrame:
    """Return the rows of a graph, by k, in the order of the algorithms. Those of peers that are stored do not run."""
    opened = graph.open()
    ours = [name for name in algorithms if name not in QUICK_PEERS + SLOW_PEERS]
    cells = [(k, name) for k in ks for name in algorithms]
    known = {cell: identity(opened, *cell, seeds) for cell in cells}
    taken = {cell: stored.get(tuple(known[cell][column] for column in IDENTITY)) for cell in cells}
    runs: list[Row] = []
    # Spawned, since a forked process would share memory with this one, and anew for each task.
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as fresh:
        for name in ours:
            some = seeds[:1] if name in FIRST_SEED else seeds
            runs += [run for k in ks for run in fresh.submit(runs_of, graph, [k], [name], some).result()]
    for k in ks:
        for peers, some in ((QUICK_PEERS, seeds), (SLOW_PEERS, seeds[:1])):
            if wanted := [name for name in algorithms if name in peers and taken[k, name] is None]:
                runs += runs_of(graph, [k], wanted, some)
    rows = [
        (
            taken[k, name]
            or median_run(known[k, name], [run for run in runs if (run["k"], run["algorithm"]) == (k, name)])
        )
        | {"graph": graph.name}
        for k, name in cells
    ]
    return pl.DataFrame(rows, schema=SCHEMA)


def identity(graph: fp.Graph, k: int, algorithm: str, seeds: Sequence[int]) -> Row:
    """Return what a row is a measurement of."""
    return {
        "checksum": graph.identify()[1],
        "n": graph.num_vertices,
        "m": graph.num_edges,
        "k": k,
        "algorithm": algorithm,
        "bounds": bounds(algorithm),
        "version": version_of(algorithm),
        "seeds": 1 if algorithm in FIRST_SEED else len(seeds),
    }


def rows_of_peers(file: Path) -> Rows:
    """Return the rows of peers in the table of an earlier run."""
    rows = pl.read_parquet(file).filter(pl.col("algorithm").is_in(QUICK_PEERS + SLOW_PEERS))
    if missing := [name for name in SCHEMA if name not in rows.columns]:
        raise SystemExit(f"{file} has no column {missing[0]}: it is no table of this `make quality`")
    return {
        tuple(row[column] for column in IDENTITY): row for row in rows.select(list(SCHEMA)).rows(named=True)
    }


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("graphs", nargs="*", type=Path, metavar="GRAPH", help="edges, as `fastpart` opens them")
    made.add_argument(
        "-k", type=numbers, default="4,8,32", metavar="K,...", help="numbers of parts (default 4,8,32)"
    )
    made.add_argument("--seeds", type=int, default=5, metavar="S", help="runs of each (default 5)")
    made.add_argument("--all-peers", action="store_true", help=f"also {', '.join(ON_REQUEST)}")
    made.add_argument(
        "--peers-from", type=Path, metavar="TABLE", help="take the rows of peers from this table.parquet"
    )
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    given = parser().parse_args(arguments)
    seeds = range(1, given.seeds + 1)
    algorithms = [name for name in ALGORITHMS if given.all_peers or name not in ON_REQUEST]
    names = [file.stem for file in given.graphs]
    if given.seeds < 1 or len(set(names)) < len(names):
        parser().error("--seeds is at least 1, and the names of the graphs differ")
    stored = rows_of_peers(given.peers_from) if given.peers_from else {}
    with tempfile.TemporaryDirectory() as folder:
        mine = [Graph(*both) for both in zip(names, given.graphs, strict=True)]
        graphs = mine or known_graphs(Path(folder))
        frames = []
        for graph in graphs:
            frames.append(measure(graph, given.k, algorithms, seeds, stored))
            print(graph_text(frames[-1]), end="\n\n", flush=True)
    frame = pl.concat(frames)
    OUT.mkdir(parents=True, exist_ok=True)
    frame.write_parquet(OUT / "table.parquet")
    (OUT / "quality.md").write_text(document(frame, seeds))
    draw(frame, OUT)
    print(f"{means_text(frame)}\n\nwrote {OUT / 'table.parquet'}, quality.md and pictures")


if __name__ == "__main__":
    main()
