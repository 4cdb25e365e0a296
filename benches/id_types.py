"""Processor time of partitioners that read records of other types and layouts, beside that of rows of u32.

    python benches/id_types.py [--edges 8000000] [--rounds 7]

Measured are arrays, and a file of int64 that is mapped or read. A line says how much longer each partitioner took than
on rows of u32, which are measured before each: the median of pairs. ``sum`` is the sum over the partitioners.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
import numpy.typing as npt

import fastpart as fp

ALGORITHMS = {"hash": {}, "random": {"of": "vertices"}, "dbh": {}, "spring": {}}


def main() -> None:
    """Print a line for each type and layout."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--edges", type=int, default=8_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    n = given.edges // 16
    with tempfile.TemporaryDirectory() as folder:
        made = fp.generate.rmat(Path(folder) / "g.bin", n=n, m=given.edges)
        rows = np.fromfile(made.path, "<u4").reshape(-1, 2)
        file = Path(folder) / "g.npy"
        np.save(file, rows.astype(np.int64))
        graphs = {
            "u32 edge_index": opened(columns(rows), n),
            "i64 rows": opened(rows.astype(np.int64), n),
            "i64 edge_index": opened(columns(rows.astype(np.int64)), n),
            "i64 file": fp.open_graph(file, num_vertices=n),
            "i64 file, read": fp.open_graph(file, num_vertices=n, io="read"),
        }
        base = opened(rows, n)
        for label, graph in graphs.items():
            print(f"{label:15}", *ratios(base, graph, given.rounds), flush=True)


def columns(rows: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Return sources, then targets."""
    return np.ascontiguousarray(rows.T)


def opened(ids: npt.NDArray[np.generic], n: int) -> fp.Graph:
    """Return the graph of an array."""
    return fp.open_graph(ids, num_vertices=n)


def ratios(base: fp.Graph, graph: fp.Graph, rounds: int) -> list[str]:
    """Return the name and the ratio of each algorithm."""
    sums, found = [[0.0, 0.0] for _ in range(rounds)], []
    for name, options in ALGORITHMS.items():
        pairs = [[seconds(of, name, options) for of in (base, graph)] for _ in range(rounds)]
        found.append(f"{name} {median(one / other for other, one in pairs):.2f}")
        for total, pair in zip(sums, pairs, strict=True):
            total[:] = [sum(each) for each in zip(total, pair, strict=True)]
    return [*found, f"sum {median(one / other for other, one in sums):.2f}"]


def seconds(graph: fp.Graph, name: str, options: dict[str, str]) -> float:
    """Return the seconds of processor that a partition takes."""
    before = process_time()
    getattr(fp.algorithms, name)(graph, 16, threads=1, **options)
    return process_time() - before


if __name__ == "__main__":
    main()
