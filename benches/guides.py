"""The tables of docs/guides/choosing-an-algorithm.md that no other bench makes.

``python benches/guides.py edges|refine|update|grem [GRAPH ...]`` takes the graphs of
``make quality``, with one seed and one thread:

- ``edges``: replication factors of edge partitions, by ``sigma``, ``hep`` and ``edges_of``;
- ``refine``: the cut before and after ``refine``, over that of ``multilevel`` under the same bounds, and seconds;
- ``update``: the cut of ``update`` over that from scratch, and the vertices that moved, or had to, of two graphs and a
  planted one;
- ``grem``: the cut of ``grem``, and of the rule of the paper, medians of five seeds.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np
from quality import known_graphs

import fastpart as fp

PARTS = (4, 8, 32)
BOUNDS = {"balance": 1.03}
BOTH = {"balance": 1.03, "volume_balance": 1.10}


def edges(graphs: dict[str, Any]) -> None:
    """Print replication factors."""

    def hep(graph: Any, k: int) -> Any:
        return fp.algorithms.hep(graph, k, balance=1.05, tau=10)

    def made_of(balance: float | None) -> Callable[[Any, int], Any]:
        return lambda graph, k: fp.edges_of(
            graph, fp.multilevel(graph, k, balance=balance or k, volume_balance=1.1), balance=1.05
        )

    makers = {
        "sigma": lambda graph, k: fp.sigma(graph, k, of="edges"),
        "sigma, refined": lambda graph, k: fp.sigma(graph, k, of="edges", refine=True),
        "hep": hep,
        "edges_of, volume": made_of(None),
        "edges_of, both": made_of(1.03),
    }
    print("| graph |", " | ".join(makers), "|")
    found: dict[str, list[list[Any]]] = {name: [] for name in makers}
    for label, graph in graphs.items():
        row = []
        for name, make in makers.items():
            measured = [make(graph, k).evaluate() for k in PARTS]
            found[name].append([(e.rf, e.replica_balance) for e in measured])
            row.append(triple(e.rf for e in measured))
        print("|", label, "|", " | ".join(row), "|", flush=True)
    for index, measure in enumerate(("geometric mean", "replica balance, geometric mean")):
        means = [
            triple(geometric_mean(of_graph[i][index] for of_graph in found[name]) for i in range(len(PARTS)))
            for name in makers
        ]
        print("|", measure, "|", " | ".join(means), "|")


def refine(graphs: dict[str, Any]) -> None:
    """Print cuts before and after refinement, over those of multilevel."""
    starts: dict[str, tuple[dict[str, Any], dict[str, float]]] = {
        "spring": ({}, BOUNDS),
        "grem": ({}, BOUNDS),
        "sigma": ({}, BOTH),
        "ldg": ({}, BOUNDS),
        "random": ({}, {}),
        **({"metis": ({}, BOUNDS)} if find_spec("pymetis") else {}),
        "multilevel, quick": ({"effort": "quick"}, BOUNDS),
        "multilevel": ({}, BOUNDS),
    }
    whole = {(label, k, len(bounds)): fp.multilevel(graph, k, **bounds).evaluate().cut_ratio
             for label, graph in graphs.items() for k in PARTS for bounds in (BOUNDS, BOTH)}  # fmt: skip
    for name, (parameters, bounds) in starts.items():
        before: dict[int, list[float]] = {k: [] for k in PARTS}
        after: dict[int, list[float]] = {k: [] for k in PARTS}
        made = refined = 0.0
        for label, graph in graphs.items():
            for k in PARTS:
                best = whole[label, k, max(len(bounds), 1)]
                begin = time.process_time()
                maker = metis if name == "metis" else getattr(fp.algorithms, name.split(",")[0])
                start = maker(graph, k, **parameters, **bounds)
                middle = time.process_time()
                better = fp.refine(graph, start, **(BOUNDS if name in ("random", "metis") else {}))
                made, refined = made + middle - begin, refined + time.process_time() - middle
                before[k].append(fp.evaluate(graph, start).cut_ratio / best)
                after[k].append(better.evaluate().cut_ratio / best)
        cells = [f"{geometric_mean(before[k]):.3g} to {geometric_mean(after[k]):.3g}" for k in PARTS]
        print("|", name, "|", " | ".join(cells), f"| {made:.1f} | {refined:.1f} |", flush=True)


def metis(graph: Any, k: int, balance: float) -> Any:
    """Return a partition of METIS, k-way."""
    import pymetis

    records = records_of(graph)
    ends = np.concatenate([records, records[:, ::-1]])
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    starts = np.searchsorted(ends[:, 0], np.arange(graph.num_vertices + 1))
    options = pymetis.Options(ufactor=round(1000 * (balance - 1)))
    _, parts = pymetis.part_graph(k, xadj=starts, adjncy=ends[:, 1], options=options, recursive=False)
    return fp.VertexPartition(np.asarray(parts), k)


def records_of(graph: Any, **how: Any) -> Any:
    """Return all records but loops."""
    with tempfile.TemporaryDirectory() as folder:
        fp.convert(
            graph.path, f"{folder}/records.bin", num_vertices=graph.num_vertices, drop_loops=True, **how
        )
        return np.fromfile(f"{folder}/records.bin", np.uint32).reshape(-1, 2)


def update(graphs: dict[str, Any]) -> None:
    """Print cuts of updated partitions over those from scratch, and the share of the vertices that moved."""
    for label, grown in graphs.items():
        records = records_of(grown, shuffle=True)
        old = fp.open_graph(records[: len(records) * 19 // 20], num_vertices=grown.num_vertices)
        for k in PARTS:
            first, scratch = fp.multilevel(old, k, **BOUNDS), fp.multilevel(grown, k, **BOUNDS)
            cells = [outcome(first, fp.update(grown, first), scratch)]
            for other in (k + 1, k - 1):
                from_scratch = fp.multilevel(grown, other, **BOUNDS)
                cells.append(outcome(scratch, fp.update(grown, scratch, k=other), from_scratch))
            print("|", label, "|", k, "|", " | ".join(cells), "|", flush=True)


def outcome(old: Any, updated: Any, scratch: Any) -> str:
    """Return the cut over that from scratch, and the share of the vertices that moved, and that had to."""
    ratio = updated.evaluate().cut_ratio / scratch.evaluate().cut_ratio
    n, cap = updated.num_vertices, math.ceil(BOUNDS["balance"] * updated.num_vertices / updated.k)
    kept = np.minimum(np.sort(np.bincount(old.assignment))[-updated.k :], cap).sum()
    moved, least = (f"{100 * count / n:.1f}" for count in (updated.parameters["moved"], n - kept))
    return f"{ratio:.3f}, {moved} / {least} %"


def grem(graphs: dict[str, Any]) -> None:
    """Print the cut by both rules."""
    for label, graph in graphs.items():
        runs = [
            [fp.grem(graph, 8, seed=seed, faithful=rule) for seed in range(1, 6)] for rule in (False, True)
        ]
        cuts = [median(run.cut_ratio for run in same) for same in runs]
        print("|", label, "|", " | ".join(f"{cut:.3f}" for cut in cuts), "|", flush=True)


def triple(values: Iterator[float]) -> str:
    """Return three numbers as the tables show them."""
    return " / ".join(f"{value:.2f}" for value in values)


TABLES = {"edges": edges, "refine": refine, "update": update, "grem": grem}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("graphs", nargs="*", metavar="GRAPH")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, fp.config(threads=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", fp.errors.GraphWarning)
        graphs = {graph.name: graph.open() for graph in known_graphs(Path(folder))}
        if given.table == "update":
            planted = fp.generate.planted(f"{folder}/planted.bin", n=2**18, m=2_000_000)
            graphs = {"com-dblp": graphs["com-dblp"], "cit-hep-ph": graphs["cit-hep-ph"], "planted": planted}
        names = given.graphs or list(graphs)
        TABLES[given.table]({name: graphs[name] for name in names})


if __name__ == "__main__":
    main()
