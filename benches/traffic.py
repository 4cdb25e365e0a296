"""Predicted rows of other parts beside those that batches have.

    python benches/traffic.py DATA OUT [NAME ...]

DATA has a folder with edges.npy for each real graph. "planted" and "rmat" are generated: 1 M vertices, 16 M edges.
OUT keeps partitions. Prints one row per graph, partitioner and fanouts: distinct remote rows of an epoch of all
four ranks, predicted over measured, the share that a cache of 10 % saves as predicted, as measured, and at best. The
best cache is the one that saves most in all epochs that are measured. Chosen for a single one, it would know its dice.
"""

import sys
import time
from pathlib import Path

import numpy as np

import fastpart as fp
from fastpart.measures.accesses import Epoch, SampledEpochs
from fastpart.partitions.loader_options import EpochOptions

K, N, M = 4, 1 << 20, 16_000_000
FANOUTS = ([10, 10], [15, 10])
EPOCHS = 10
REAL = {"amazon-computers": (0.5, 100), "coauthor-cs": (0.5, 100), "com-dblp": (0.1, 1000)}
"""Share of training vertices, and size of a batch."""


def main(data: Path, out: Path, names: list[str]) -> None:
    print(
        "| graph | partitioner | fanouts | remote rows | predicted / measured "
        "| % saved: predicted, measured, best | seconds |"
    )
    print("|---|---|---|---:|---:|---:|---:|")
    for name in names or [*REAL, "planted", "rmat"]:
        share, batch_size = REAL.get(name, (0.1, 1000))
        graph = opened(data, out, name)
        n = graph.num_vertices
        train = np.random.default_rng(3).choice(n, int(n * share), replace=False)
        for algorithm in ("hash", "sigma", "multilevel"):
            folder = out / f"{name}-{algorithm}"
            if not folder.exists():
                getattr(fp.algorithms, algorithm)(graph, K).save(folder, graph=graph, splits={"train": train})
            for fanouts in FANOUTS:
                row(name, algorithm, fp.open_partition(folder), fanouts, batch_size)


def opened(data: Path, out: Path, name: str) -> fp.Graph:
    """Open a graph, and generate it before if it is not a real one."""
    if name in REAL:
        return fp.open_graph(data / name / "edges.npy")
    path = out / f"{name}.bin"
    if path.exists():
        return fp.open_graph(path)
    return getattr(fp.generate, name)(path, n=N, m=M, seed=1)


def row(name: str, algorithm: str, stored: fp.VertexPartition, fanouts: list[int], batch_size: int) -> None:
    """Print a row of the table."""
    start = time.perf_counter()
    traffic = fp.predict_traffic(stored, fanouts, batch_size, exact=False)
    seconds = time.perf_counter() - start
    remote = saved = best = 0
    for part, counts, expected in measured(stored, fanouts, batch_size):
        cached = traffic.parts["cached_rows"][part]
        remote += counts.sum()
        saved += counts[np.argsort(-expected, kind="stable")[:cached]].sum()
        best += np.sort(counts)[::-1][:cached].sum()
    cells = [
        name,
        algorithm,
        ",".join(map(str, fanouts)),
        f"{remote // EPOCHS:,}",
        f"{traffic.remote_rows * EPOCHS / remote:.3f}",
    ]
    shares = (traffic.saved_rows / traffic.remote_rows, saved / remote, best / remote)
    cells += [" ".join(f"{100 * share:.1f}" for share in shares), f"{seconds:.1f}"]
    print(f"| {' | '.join(cells)} |", flush=True)


def measured(stored: fp.VertexPartition, fanouts: list[int], batch_size: int):
    """Yield each part, how many batches of the epochs have each row of other parts, and the expectations."""
    topology = stored._topology
    sampled = SampledEpochs.of(
        stored, "train", fanouts, stored.k, EpochOptions(batch_size=batch_size), threads=1
    )
    starts, epoch = topology.starts, Epoch(sampled.deal.seeds.rows, fanouts, batch_size)
    for part in range(stored.k):
        counts = np.zeros(topology.num_vertices, np.int64)
        for number in range(EPOCHS):
            for rows in sampled.rows(number, part):
                counts[rows] += 1
        expected = epoch.expected_steps(topology, np.arange(stored.k) == part).copy()
        for values in (counts, expected):
            values[starts[part] : starts[part + 1]] = 0
        yield part, counts, expected


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
