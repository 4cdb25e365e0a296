"""Link prediction with any parts and workers gives the same results but for rounding.

``.venv-train/bin/python benches/links.py [GRAPH ...] [--seeds 2]`` trains GraphSAGE with learnable rows on cit-hep-ph
and fb15k-237 (``../shared/data``, without relations) in one process over one part, and with 2 and 4 workers over 4
parts of ``multilevel``. Prints the mean scores, and whether the MRR of each seed is within a point of that of one
process.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import fastpart as fp
from fastpart.report.text import table

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
EPOCHS = {"cit-hep-ph": 10, "fb15k-237": 12}
RUNS = ((1, 1), (4, 2), (4, 4))
"""Parts and workers."""

POINT = 0.01
GIVEN: dict[str, Any] = {
    "decoder": "dot",
    "embeddings": 64,
    "hidden": 64,
    "batch_size": 8192,
    "fanouts": [10, 5],
    "dropout": 0.0,
    "weight_decay": 0.0,
}
SCORES = ("test_mrr", "test_hits@10", "test_auc")


def trainings(name: str, seed: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield a row for each number of parts and workers."""
    n = json.loads((DATA / name / "meta.json").read_text())["n"]
    splits = fp.split_edges(fp.open_graph(DATA / name / "edges.npy", num_vertices=n), seed=seed)
    for k, workers in RUNS:
        p = (
            fp.multilevel(splits.graph, k=k, seed=seed)
            if k > 1
            else fp.VertexPartition(np.zeros(n, np.int32), k)
        )
        p.save(folder / "parts", graph=splits.graph, edge_splits=splits)
        how = {"epochs": EPOCHS[name], "seed": seed, "workers": workers, "threads": workers}
        summary = fp.train.links(folder / "parts", **GIVEN, **how).summary
        scores = {score: summary[score] for score in SCORES}
        megabytes = summary["remote_bytes"] / 1e6
        yield {"graph": name, "k": k, "workers": workers, "seed": seed, **scores, "remote_mb": megabytes}


def main() -> None:
    """Train, print the means, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="*", default=list(EPOCHS))
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    rows = []
    for name in given.graphs:
        for seed in range(given.seeds):
            with tempfile.TemporaryDirectory() as folder:
                rows += trainings(name, seed, Path(folder))
    frame = pl.DataFrame(rows)
    keys = ["graph", "k", "workers"]
    print(table(frame.group_by(keys, maintain_order=True).mean().drop("seed")))
    alone = frame.filter(pl.col("workers") == 1).select("graph", "seed", alone="test_mrr")
    worst = frame.join(alone, on=["graph", "seed"]).select((pl.col("test_mrr") - pl.col("alone")).abs().max())
    print(f"\nlargest difference of the MRR: {worst.item():.4f}. Aimed at: {POINT}")


if __name__ == "__main__":
    main()
