"""Train over the parts of a real graph: mini-batches, then full batches. Run it with `make train-demo`."""

import time
from pathlib import Path

import numpy as np
import scipy.sparse

import fastpart as fp

ROOT = Path(__file__).parents[1]
SHIPPED = ROOT / "python" / "fastpart" / "datasets"
NAME, VERTICES = "amazon-computers", 13752


def features() -> np.ndarray:
    """Return the words of the reviews, each column with mean 0 and deviation 1: then networks learn faster."""
    words = scipy.sparse.load_npz(SHIPPED / f"{NAME}.features.npz").toarray()
    return (words - words.mean(0)) / np.maximum(words.std(0), 1e-3)


def splits() -> dict[str, np.ndarray]:
    """Return 70 % of the vertices to train on, 15 % to validate and 15 % to test."""
    order = np.random.default_rng(0).permutation(VERTICES)
    train, val = int(0.7 * VERTICES), int(0.85 * VERTICES)
    return {"train": order[:train], "val": order[train:val], "test": order[val:]}


def mini_batches(graph: fp.Graph, out: Path, **content) -> Path:
    """Train on sampled mini-batches over 2 parts of the vertices. Return the directory of the parts."""
    start = time.perf_counter()
    mask = np.zeros(VERTICES, bool)
    mask[content["splits"]["train"]] = True
    # Every worker is to have as much to do: the training vertices are balanced, too.
    p = fp.spring(graph, k=2, balance_on=mask)
    folder = out / f"{NAME}-train"
    p.save(folder, graph=graph, **content)
    first = None

    def progress(phase: str, done: int, total: int) -> None:
        nonlocal first
        if phase == "epoch":
            first = first or time.perf_counter() - start
            print(f"epoch {done} of {total}", flush=True)

    trained = fp.train.sampled(
        folder, epochs=10, batch_size=1000, fanouts=[10, 10], out=out / "train-demo", progress=progress
    )
    print(f"\n{trained}\n")
    print(f"first epoch after {first:.0f} s, all of it {time.perf_counter() - start:.0f} s")
    print(f"weights, checkpoint and history: {out.name}/train-demo/\n")
    return folder


def full_batches(graph: fp.Graph, out: Path, **content) -> Path:
    """Train over 4 parts of the edges, by SIGMA, one process each. Return the directory of the parts."""
    start = time.perf_counter()
    folder = out / f"{NAME}-edges"
    fp.sigma(graph, k=4, of="edges").save(folder, graph=graph, **content)
    trained = fp.train.distgnn(folder, epochs=60, out=out / "train-demo-edges")
    print(f"\n{trained}\n\nall of it {time.perf_counter() - start:.0f} s\n")
    return folder


def main() -> None:
    out = ROOT / "out"
    out.mkdir(exist_ok=True)
    graph = fp.convert(SHIPPED / f"{NAME}.txt.gz", out / f"{NAME}.bin", num_vertices=VERTICES)
    content = {"features": features(), "labels": SHIPPED / f"{NAME}.labels.npy", "splits": splits()}
    print("sampled: mini-batches over 2 parts of the vertices\n")
    vertices = mini_batches(graph, out, **content)
    print("distgnn: full batches over 4 parts of the edges")
    by_edges = full_batches(graph, out, **content)
    print(f"next: .venv-train/bin/fastpart train sdt out/{vertices.name} --epochs 50")
    print(f"      .venv-train/bin/fastpart train distgnn out/{by_edges.name} --delay 5")
    print(
        f"      .venv-train/bin/fastpart train full out/{by_edges.name}     # the same numbers in one process"
    )


if __name__ == "__main__":
    main()
