"""Idle time of a training whose batches differ in cost, with the loader in order and with the scheduled one.

    python benches/scheduling.py [EPOCHS]

A random graph of 2^18 vertices and 2^22 edges, 100 features, fanouts 15,10,5, batches of 500. "skewed": every tenth
batch costs about ten times as much as the others, whose seeds mostly have no neighbours, and the step of training
sleeps for as long as a batch takes on average. So all processors are free for batches. "plain": all batches cost the
same, and the step computes on them. Prints medians over epochs, in which both loaders alternate.
"""

import statistics
import sys
import tempfile
import time
from functools import partial

import numpy as np
import torch

import fastpart as fp

N, M, WIDTH, BATCH, STEPS = 1 << 18, 1 << 22, 100, 500, 60
CONNECTED = N * 3 // 4
"""Vertices below it have edges to others."""

LIGHT = 0.08
"""Share of the seeds of a light batch that have such edges."""

LOADERS = {"in order": {}, "scheduled": {"scheduled": True}}


def main(epochs: int) -> None:
    print("| batches | loader | seconds of an epoch | seconds idle | seconds of making batches |")
    print("|---|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        partition = stored(f"{folder}/parts")
        network = torch.nn.Sequential(torch.nn.Linear(WIDTH, 64), torch.nn.ReLU(), torch.nn.Linear(64, 16))
        for skewed in (True, False):
            given = {"fanouts": [15, 10, 5], "batch_size": BATCH, "shuffle": False, "threads": 2}
            loaders = {
                name: partition.loader(seeds(skewed), edge_ids=False, **given, **how)
                for name, how in LOADERS.items()
            }
            for _ in range(2):  # the first one reads the files
                mean = epoch(loaders["in order"], lambda batch: None)[2] / STEPS
            step = partial(slept, mean) if skewed else partial(computed, network)
            rows: dict[str, list[tuple[float, float, float]]] = {name: [] for name in loaders}
            for _ in range(epochs):
                for name, loader in loaders.items():
                    rows[name].append(epoch(loader, step))
            for name, found in rows.items():
                cells = [f"{statistics.median(column):.3f}" for column in zip(*found, strict=True)]
                print(f"| {'skewed' if skewed else 'plain'} | {name} | {' | '.join(cells)} |", flush=True)


def stored(folder: str) -> fp.VertexPartition:
    """Save two parts of a random graph. The last vertices are only joined to themselves."""
    rng = np.random.default_rng(0)
    alone = np.arange(CONNECTED, N)
    edges = np.concatenate([rng.integers(0, CONNECTED, (M, 2)), np.stack([alone, alone], 1)])
    features = rng.standard_normal((N, WIDTH), dtype=np.float32)
    fp.VertexPartition(np.arange(N) % 2, k=2).save(folder, graph=edges, features=features)
    return fp.open_partition(folder)


def seeds(skewed: bool) -> np.ndarray:
    """Return the seeds of all steps."""
    rng = np.random.default_rng(1)
    connected, alone = rng.permutation(CONNECTED), CONNECTED + rng.permutation(N - CONNECTED)
    chosen = []
    for step in range(STEPS):
        count = round(BATCH * (LIGHT if skewed and step % 10 != 5 else 1))
        chosen += [connected[:count], alone[: BATCH - count]]
        connected, alone = connected[count:], alone[BATCH - count :]
    return np.concatenate(chosen)


def slept(seconds: float, batch: fp.loading.Batch) -> None:
    """Leave the processors to the loader."""
    time.sleep(seconds)


def computed(network: torch.nn.Module, batch: fp.loading.Batch) -> None:
    """Train on the features."""
    network(batch.x).square().mean().backward()


def epoch(loader: fp.loading.Loader, step) -> tuple[float, float, float]:
    """Return the seconds of an epoch, of waiting for batches, and of making them."""
    start, idle, batches = time.perf_counter(), 0.0, iter(loader)
    loader.read_seconds()
    while True:
        asked = time.perf_counter()
        batch = next(batches, None)
        idle += time.perf_counter() - asked
        if batch is None:
            return time.perf_counter() - start, idle, sum(loader.read_seconds().values())
        step(batch)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
