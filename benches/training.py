"""Effects of partitions on training: accuracy, seconds and bytes, by method and partitioner.

``.venv-train/bin/python benches/training.py [GRAPH ...] [--seeds 3] [--epochs-share 1.0] [--halo-hops 1]`` trains
GraphSAGE over 4 parts of amazon-computers and coauthor-cs (``../shared/data``; 70 % of the vertices to train, 15 % to
validate on, the rest to test) by each method over the parts of each partitioner. Prints a table per graph, and whether
the figures that were aimed at are reached. Writes the rows to target/training.parquet.

All take equally large mini-batches and as many epochs. Halos of as many hops as layers (``--halo-hops 2``) give model
averaging all that centralized training sees.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse

import fastpart as fp
from fastpart.report.text import table
from fastpart.train import TrainedModel

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
OUT = ROOT / "target" / "training.parquet"

K = 4
POINTS = 0.01
"""Largest difference of the mean accuracies of the methods."""

EPOCHS = {"amazon-computers": 30, "coauthor-cs": 4}
"""After which none of them learns much more."""

FANOUTS = {"amazon-computers": [10, 10], "coauthor-cs": [5, 5]}
BATCH = 1000
"""Training vertices per step, in all: a quarter of it in each of the 4 parts."""

PARTITIONERS: dict[str, Callable[..., Any]] = {
    "spring": fp.spring,
    "sigma": fp.sigma,
    "random": fp.algorithms.random,
}
METHODS = ("sampled", "sdt", *(["distdgl"] if importlib.util.find_spec("dgl") else []))
"""With DGL's engine where it is installed: `.venv-dgl/bin/python benches/training.py`."""

BALANCED = ("spring",)
"""Those that balance the training vertices, too."""

COLUMNS = (
    "graph", "method", "partitioner", "cut_ratio", "halo_rf", "label_skew", "test_accuracy", "spread",
    "seconds_per_epoch", "remote_mb", "worker_mb", "seconds",
)  # fmt: skip


def main() -> None:
    """Train everything and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("graphs", nargs="*", default=list(EPOCHS), choices=list(EPOCHS), metavar="GRAPH")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs-share", type=float, default=1.0, help="of the epochs, to try it out")
    parser.add_argument("--halo-hops", type=int, default=1, choices=(1, 2))
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in options.graphs:
        with tempfile.TemporaryDirectory(prefix="fastpart-bench-") as folder:
            found = [row | {"graph": name} for row in rows_of(name, Path(folder), options)]
        print(f"\n{table(frame(found).drop('graph'))}\n", flush=True)
        for line in verdicts(found):
            print(line, flush=True)
        rows += found
    OUT.parent.mkdir(exist_ok=True)
    frame(rows).write_parquet(OUT)


def frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame([[row.get(name) for name in COLUMNS] for row in rows], schema=COLUMNS, orient="row")


def load(name: str) -> tuple[fp.Graph, dict[str, Any]]:
    """Return a graph and what belongs to its vertices."""
    labels = np.load(DATA / name / "labels.npy")
    n = len(labels)
    features = scipy.sparse.load_npz(DATA / name / "feats.npz").toarray().astype(np.float32)
    if (
        name == "amazon-computers"
    ):  # words of reviews: hardly anything is learned unless the columns are alike
        features = (features - features.mean(0)) / np.maximum(features.std(0), 1e-3)
    order = np.random.default_rng(0).permutation(n)
    train, val = int(0.7 * n), int(0.85 * n)
    splits = {"train": order[:train], "val": order[train:val], "test": order[val:]}
    graph = fp.open_graph(DATA / name / "edges.npy", num_vertices=n)
    return graph, {"features": features, "labels": labels, "splits": splits}


def rows_of(name: str, folder: Path, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Train over the parts of all partitioners, and once per seed over none."""
    graph, content = load(name)
    mask = np.isin(np.arange(graph.num_vertices), content["splits"]["train"])
    print(
        f"{name}: n = {graph.num_vertices:,}, m = {graph.num_edges:,}, k = {K}, {options.halo_hops} hops of halo"
    )
    for partitioner, function in PARTITIONERS.items():
        p = function(graph, k=K, **({"balance_on": mask} if partitioner in BALANCED else {}))
        target = folder / partitioner
        p.save(target, graph=graph, halo_hops=options.halo_hops, **content)
        measured = json.loads((target / "manifest.json").read_bytes())["summary"]
        facts = {key: measured[key] for key in ("cut_ratio", "halo_rf", "label_skew")}
        for method in METHODS:
            yield row(name, method, target, options) | {"partitioner": partitioner} | facts
    yield row(name, "full", target, options)


def row(name: str, method: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Train by one method with every seed."""
    epochs = max(1, round(EPOCHS[name] * options.epochs_share))
    batch = BATCH if method in ("full", "sampled") else BATCH // K
    given: dict[str, Any] = {"epochs": epochs, "batch_size": batch, "fanouts": FANOUTS[name]}
    start = time.perf_counter()
    runs: list[TrainedModel] = [
        getattr(fp.train, method)(folder, **given, seed=seed) for seed in range(options.seeds)
    ]
    seconds = (time.perf_counter() - start) / options.seeds
    accuracies = [run.summary["test_accuracy"] for run in runs]
    print(
        f"{method:8} {folder.name:8} {statistics.fmean(accuracies):.4f} in {seconds:.0f} s each", flush=True
    )
    return {
        "method": method,
        "test_accuracy": statistics.fmean(accuracies),
        "spread": max(accuracies) - min(accuracies),
        "seconds_per_epoch": statistics.median(run.summary["seconds_per_epoch"] for run in runs),
        "remote_mb": megabytes(runs, "remote_bytes"),
        "worker_mb": megabytes(runs, "worker_bytes"),
        "seconds": seconds,
    }


def megabytes(runs: list[TrainedModel], name: str) -> float | None:
    found = [run.summary[name] for run in runs if name in run.summary]
    return statistics.median(found) / 1e6 if found else None


def verdicts(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Say whether accuracies are within a point of each other, and whether a smaller cut sends less."""
    (full,) = (row for row in rows if row["method"] == "full")
    for partitioner in PARTITIONERS:
        group = [full, *(row for row in rows if row.get("partitioner") == partitioner)]
        accuracies = [row["test_accuracy"] for row in group]
        apart = max(accuracies) - min(accuracies)
        yield f"{partitioner:8} accuracies are {100 * apart:.2f} points apart: {verdict(apart <= POINTS)}"
    sent = sorted((row["cut_ratio"], row["remote_mb"]) for row in rows if row["method"] == "sampled")
    falls = all(less[1] < more[1] for less, more in pairwise(sent))
    yield f"sampled: remote bytes per epoch fall with the cut: {verdict(falls)}"


def verdict(reached: bool) -> str:
    return "reached" if reached else "NOT REACHED"


if __name__ == "__main__":
    main()
