"""Costs of full batches over parts: accuracy, seconds, bytes and memory, by mode and partitioner.

``.venv-train/bin/python benches/full_graph.py [GRAPH ...] [--epochs 100] [--model graphsage]`` trains over 4 parts of
amazon-computers and coauthor-cs (``../shared/data``; splits and features as in ``benches/training.py``): ``distgnn``
over the edge partitions of four partitioners in three modes, ``sancus`` over the vertex partitions of two with all and
with boundary rows, and ``full``. Then it times one part against a plain loop with PyG's own layers, alternately.
Prints a table for each graph, and whether the figures that were aimed at are reached. Writes the rows to
target/full_graph.parquet.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from torch_geometric.nn import SAGEConv
from training import ROOT, load, verdict

import fastpart as fp
from fastpart.report.text import table
from fastpart.train import TrainedModel
from fastpart.train.data.dataset import EdgeDataset

OUT = ROOT / "target" / "full_graph.parquet"

K = 4
GRAPHS = ("amazon-computers", "coauthor-cs")
EDGES: dict[str, Callable[..., Any]] = {
    "sigma": lambda edges, k: fp.sigma(edges, k, of="edges"),
    "hdrf": fp.algorithms.hdrf,
    "dbh": fp.algorithms.dbh,
    "random": lambda edges, k: fp.algorithms.random(edges, k, of="edges"),
}
VERTICES: dict[str, Callable[..., Any]] = {"sigma": fp.sigma, "random": fp.algorithms.random}
MODES: dict[str, dict[str, Any]] = {"cd-0": {}, "cd-5": {"delay": 5}, "0c": {"exchange": "never"}}
SANCUS: dict[str, dict[str, Any]] = {
    "all rows": {},
    "all rows, period = 5": {"period": 5},
    "all rows, max_age = 4": {"max_age": 4},
    "boundary": {"rows": "boundary"},
    "boundary, period = 5": {"rows": "boundary", "period": 5},
}

COLUMNS = (
    "graph", "method", "mode", "partitioner", "rf", "cut_ratio", "test_accuracy", "loss_difference",
    "seconds_per_epoch", "mb_per_epoch", "mb_in_all", "worker_mb", "peak_mb",
)  # fmt: skip

COMPARED = 20
"""Epochs whose losses are compared with those of ``full``."""

ROUNDS, STEPS = 7, 5
"""Repetitions and epochs of the comparison with DGL. The two alternate."""


def main() -> None:
    """Train everything and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("graphs", nargs="*", default=list(GRAPHS), metavar="GRAPH")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--model", default="graphsage")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in options.graphs:
        with tempfile.TemporaryDirectory(prefix="fastpart-bench-") as folder:
            found = [row | {"graph": name} for row in rows_of(name, Path(folder), options)]
            print(f"\n{table(frame(found).drop('graph'))}\n", flush=True)
            for line in verdicts(found):
                print(line, flush=True)
            print(overhead(Path(folder) / "one"), flush=True)
        rows += found
    OUT.parent.mkdir(exist_ok=True)
    frame(rows).write_parquet(OUT)


def frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame([[row.get(name) for name in COLUMNS] for row in rows], schema=COLUMNS, orient="row")


def rows_of(name: str, folder: Path, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Train over all parts in all ways, and once over none."""
    edges, content = load(name)
    print(
        f"{name}: n = {edges.num_vertices:,}, m = {edges.num_edges:,}, k = {K}, {options.model}", flush=True
    )
    given = {"epochs": options.epochs, "model": options.model}
    EDGES["sigma"](edges, 1).save(folder / "one", graph=edges, **content)
    full = fp.train.full(folder / "one", **given)
    yield row(full, full)
    for partitioner, function in EDGES.items():
        part = function(edges, K)
        part.save(folder / f"edges-{partitioner}", graph=edges, **content)
        facts = {"partitioner": partitioner, "rf": fp.evaluate(edges, part).summary["rf"][0]}
        for mode, more in MODES.items():
            trained = fp.train.distgnn(folder / f"edges-{partitioner}", **more, **given)
            yield row(trained, full) | facts | {"mode": mode}
    for partitioner, function in VERTICES.items():
        part = function(edges, K)
        part.save(folder / f"vertices-{partitioner}", graph=edges, **content)
        facts = {"partitioner": partitioner, "cut_ratio": fp.evaluate(edges, part).summary["cut_ratio"][0]}
        for mode, more in SANCUS.items():
            trained = fp.train.sancus(folder / f"vertices-{partitioner}", **more, **given)
            yield row(trained, full) | facts | {"mode": mode}


def row(trained: TrainedModel, full: TrainedModel) -> dict[str, Any]:
    losses = trained.history["loss"].head(COMPARED) - full.history["loss"].head(COMPARED)
    found = {
        "method": trained.method,
        "test_accuracy": trained.summary["test_accuracy"],
        "loss_difference": losses.abs().max(),
        "seconds_per_epoch": trained.summary["seconds_per_epoch"],
        "mb_per_epoch": trained.summary["remote_bytes"] / 1e6,
        "mb_in_all": trained.history["remote_bytes"].sum() / 1e6,
        "worker_mb": trained.summary["worker_bytes"] / 1e6,
        "peak_mb": trained.summary.get("peak_bytes", 0) / 1e6 or None,
    }
    print(
        {name: round(value, 5) if isinstance(value, float) else value for name, value in found.items()},
        flush=True,
    )
    return found


def verdicts(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Say which of the figures that were aimed at are reached."""
    full, *others = rows
    exact = [row for row in others if row["mode"] == "cd-0"]
    worst = max(row["loss_difference"] for row in exact)
    yield f"cd-0: losses of {COMPARED} epochs differ by at most {worst:.1e} from full: {verdict(worst <= 1e-4)}"
    for mode, points in (("cd-0", 0.3), ("cd-5", 1.0)):
        apart = [
            100 * (full["test_accuracy"] - row["test_accuracy"]) for row in others if row["mode"] == mode
        ]
        yield f"{mode}: accuracy is at most {max(apart):.2f} points below full: {verdict(max(apart) <= points)}"
    late = [row for row in others if row["mode"] == "cd-5"]
    for what in ("mb_per_epoch", "mb_in_all"):
        share = max(row[what] / at_once[what] for row, at_once in zip(late, exact, strict=True))
        yield f"cd-5: {what} is {share:.2f} of that of cd-0: {verdict(share <= 0.25)}"
    ordered = sorted((row["rf"], row["mb_per_epoch"]) for row in exact)
    yield f"cd-0: bytes rise with the replication factor: {verdict(all(a[1] < b[1] for a, b in pairwise(ordered)))}"
    for what in ("mb_per_epoch", "worker_mb", "peak_mb", "seconds_per_epoch"):
        sigma, *rest = (row[what] for row in exact)
        yield (
            f"cd-0: {what} of sigma {sigma:.3g}, of the others {', '.join(f'{value:.3g}' for value in rest)}: "
            + verdict(sigma <= min(rest))
        )


class Plain(torch.nn.Module):
    """GraphSAGE as one writes it with PyG."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.first = SAGEConv(width, 64)
        self.second = SAGEConv(64, classes)

    def forward(self, edges: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        h = torch.nn.functional.dropout(torch.relu(self.first(x, edges)), 0.5, self.training)
        logits: torch.Tensor = self.second(h, edges)
        return logits


def overhead(folder: Path) -> str:
    """Compare the seconds of an epoch over one part with those of plain PyG, on all CPUs."""
    dataset = EdgeDataset(folder)
    local = dataset.whole()
    network = Plain(dataset.task.features, dataset.task.classes)
    adam = torch.optim.Adam(network.parameters(), lr=0.01, weight_decay=5e-4)
    ids = local.splits["train"]

    def plain() -> float:
        start = time.perf_counter()
        logits = network(local.graph.edge_index, local.features)[ids]
        adam.zero_grad()
        torch.nn.functional.cross_entropy(logits, local.labels[ids]).backward()
        adam.step()
        return time.perf_counter() - start

    plain()
    ratios = []
    for _ in range(ROUNDS):
        ours = fp.train.distgnn(folder, epochs=STEPS + 1).history["seconds"][1:].median()
        ratios.append(ours / statistics.median(plain() for _ in range(STEPS)))
    ratio = statistics.median(ratios)
    spread = f"{np.min(ratios):.2f} to {np.max(ratios):.2f}"
    return f"one part: {ratio:.2f} of the time of plain PyG ({spread}): {verdict(ratio <= 1.1)}"


if __name__ == "__main__":
    main()
