"""Accuracy with features of 16 and of 8 bits, beside that with float32.

``.venv-train/bin/python benches/coded_accuracy.py [GRAPH ...] [--seeds 5] [--plain]`` trains GraphSAGE by ``sampled``
on graphs of ``../shared/data``, with features that are standardised unless ``--plain``, and prints a row per graph.
Runs of the same seed are pairs: they begin with the same weights and take the same batches. So the table has the mean
of the differences of test accuracies, in points, and its standard error. The aim is half a point, or two standard
errors.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import fastpart as fp

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

EPOCHS = {"amazon-computers": 10, "coauthor-cs": 4, "tolokers": 10, "actor": 10}
K = 4
POINTS = 0.5


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("graphs", nargs="*", default=list(EPOCHS), metavar="GRAPH")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--plain", action="store_true", help="features as they are")
    given = parser.parse_args()
    print("| graph | float32, % | float16 | 8 bits | scale, error | reached |\n|---|---|---|---|---|---|")
    for name in given.graphs:
        with tempfile.TemporaryDirectory(prefix="fastpart-bench-") as folder:
            print(row(name, Path(folder), given.seeds, not given.plain), flush=True)


def row(name: str, folder: Path, seeds: int, standardise: bool) -> str:
    """Return the row of a graph."""
    graph, content = load(name)
    partition = fp.spring(graph, K)
    found = {}
    for dtype in ("float32", "float16", "int8"):
        partition.save(folder / dtype, feature_dtype=dtype, standardise=standardise, **content)
        found[dtype] = np.array([accuracy(folder / dtype, EPOCHS[name], seed) for seed in range(seeds)])
    coding = fp.open_partition(folder / "int8").manifest["features"]["coding"]
    differences = {dtype: points(found[dtype] - found["float32"]) for dtype in ("float16", "int8")}
    reached = all(abs(mean) <= max(POINTS, 2 * error) for mean, error in differences.values())
    texts = [f"{mean:+.2f} ± {error:.2f}" for mean, error in differences.values()]
    text = f"{coding['scale']}, {coding['rms_error']:.2%}"
    return f"| {name} | {100 * found['float32'].mean():.2f} | {' | '.join(texts)} | {text} | {reached} |"


def load(name: str) -> tuple[fp.Graph, dict[str, Any]]:
    """Return a graph and what belongs to its vertices."""
    folder = DATA / name
    labels, features = np.load(folder / "labels.npy"), folder / "feats.npz"
    content = {"labels": labels, "features": features if features.exists() else folder / "feats.npy"}
    if (folder / "split.npz").exists():
        content |= {"splits": folder / "split.npz", "split": 0}
    else:
        order = np.random.default_rng(0).permutation(len(labels))
        content["splits"] = dict(
            zip(
                ("train", "val", "test"),
                np.split(order, [len(order) * 7 // 10, len(order) * 17 // 20]),
                strict=True,
            )
        )
    return fp.open_graph(folder / "edges.npy", num_vertices=len(labels)), content


def accuracy(folder: Path, epochs: int, seed: int) -> float:
    """Train, and return the accuracy on the test vertices."""
    given = {"epochs": epochs, "eval_every": epochs, "batch_size": 1000, "fanouts": [5, 5]}
    trained = fp.train.sampled(folder, **given, workers=1, seed=seed)
    return float(trained.summary["test_accuracy"])


def points(differences: np.ndarray) -> tuple[float, float]:
    """Return the mean of differences and its standard error, in points."""
    return 100 * differences.mean(), 100 * differences.std(ddof=1) / len(differences) ** 0.5


if __name__ == "__main__":
    main()
