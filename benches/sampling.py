"""Processor time of a mini-batch: neighbour samples, and with the features of their nodes.

``python benches/sampling.py [GRAPH ...] [--partitioner sigma] [--fanouts 10,10] [--steps 40]`` samples batches of
1,000 seeds from a planted and an R-MAT graph, or from one with ``hubs`` (n = 2^20, m = 16 M, 100 float32 features),
in 4 parts, and prints milliseconds per batch. Seeds have in-edges. Loaders take the same seeds, with none, half and
all of the features resident on the CPU. If dgl can be imported, its ``NeighborSampler`` and ``LaborSampler`` sample
the same graph, with one thread. The parts are written below target/sampling once.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import fastpart as fp
from fastpart import _core

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "target" / "sampling"

N, M, K, BATCH, WIDTH = 1 << 20, 16_000_000, 4, 1000, 100
ROUNDS = 3
"""The least time of so many counts."""

Array = npt.NDArray[np.generic]


def main() -> None:
    """Print a line for each sampler."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("graphs", nargs="*", default=["planted", "rmat"], metavar="GRAPH")
    parser.add_argument("--partitioner", default="sigma", choices=["sigma", "random"])
    parser.add_argument("--fanouts", default="10,10")
    parser.add_argument("--steps", type=int, default=40)
    given = parser.parse_args()
    fanouts = [int(fanout) for fanout in given.fanouts.split(",")]
    for name in given.graphs:
        measure(parts_of(name, given.partitioner), fanouts, given.steps)


def parts_of(name: str, partitioner: str) -> Path:
    """Return the partition directory, and write it if it is not there."""
    folder, features = FOLDER / f"{name}-{partitioner}", FOLDER / "x.npy"
    if folder.exists():
        return folder
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not features.exists():
        rng = np.random.default_rng(0)
        np.save(features, rng.standard_normal((N, WIDTH), np.float32))
    graph = generated(name)
    partition = (
        fp.sigma(graph, K) if partitioner == "sigma" else fp.algorithms.random(graph, K, of="vertices")
    )
    partition.save(folder, graph=graph, features=features)
    return folder


def generated(name: str) -> Any:
    """Return the graph. Half of the records of ``hubs`` are of a thousand vertices, which have 8,000 each."""
    if name == "hubs":
        rng = np.random.default_rng(1)
        records = rng.integers(0, N, (M, 2), np.uint32)
        records[::2, 1] = rng.integers(0, 1000, len(records[::2]), np.uint32)
        return fp.open_graph(records, num_vertices=N)
    path = FOLDER / f"{name}.bin"
    generate = fp.generate.planted if name == "planted" else fp.generate.rmat
    return fp.open_graph(path) if path.exists() else generate(path, n=N, m=M, seed=1)


def measure(root: Path, fanouts: list[int], steps: int) -> None:
    """Print the times of one graph."""
    folders = sorted(root.glob("part-*"))
    topology = _core.Topology(folders)
    features = _core.Features([folder / "features.npy" for folder in folders], topology)
    degrees = np.concatenate([np.diff(np.load(folder / "indptr.npy")) for folder in folders])
    seeds = np.random.default_rng(1).permutation(np.flatnonzero(degrees).astype(np.uint32))[: steps * BATCH]
    offsets = np.arange(steps + 1) * BATCH
    print(f"{root.name}, fanouts {fanouts}: processor ms per batch of {BATCH} seeds")
    for kind, merged, threads in product(("uniform", "labor"), (False, True), (1, 2)):
        sampler = _core.Sampler(topology, fanouts, kind=kind, seed=1, merged=merged)
        batches = partial(sampler.batches, seeds, offsets, ahead=4, threads=threads)
        name = f"{kind}{', merged' if merged else ''}, threads {threads}"
        report(name, steps, partial(sizes, batches), partial(sizes, partial(batches, features=features)))
    measure_resident(root, topology.ids_of(seeds), fanouts, steps)
    if importlib.util.find_spec("dgl") is not None:
        measure_dgl(folders, topology, seeds.reshape(steps, BATCH), fanouts)


def measure_resident(root: Path, seeds: Array, fanouts: list[int], steps: int) -> None:
    """Print the times of loaders that keep a share of the features in memory."""
    stored = fp.open_partition(root)
    for share in (0, 0.5, 1):
        resident = int(share * N) * WIDTH * 4
        loader = stored.loader(
            seeds, fanouts=fanouts, batch_size=BATCH, edge_ids=False, ahead=4, resident=resident
        )
        (processor, wall), (nodes, edges) = best_of(steps, partial(sizes_of_loader, loader))
        print(
            f"  {f'loader, {share:.0%} resident':32} {processor:7.2f} (elapsed {wall:.2f}), {nodes:.0f} nodes, "
            f"{edges:.0f} in-edges",
            flush=True,
        )


def sizes_of_loader(loader: Any) -> Iterator[tuple[int, int]]:
    """Yield nodes and in-edges of each batch of a loader."""
    return ((batch.num_nodes, batch.num_edges) for batch in loader)


def sizes(batches: Callable[[], _core.Batches]) -> Iterator[tuple[int, int]]:
    """Yield nodes and in-edges of each batch."""
    return ((len(batch.n_id), len(batch.indices)) for batch in batches())


def report(name: str, steps: int, *runs: Callable[[], Iterator[tuple[int, int]]]) -> None:
    """Print the times of samples, and of samples with features."""
    (bare, (nodes, edges)), (full, _) = (best_of(steps, run) for run in runs)
    print(
        f"  {name:32} {bare[0]:7.2f} samples {full[0]:7.2f} with features (elapsed {bare[1]:.2f}, {full[1]:.2f}), "
        f"{nodes:.0f} nodes, {edges:.0f} in-edges",
        flush=True,
    )


def best_of(steps: int, run: Callable[[], Iterator[tuple[int, int]]]) -> tuple[Array, Array]:
    """Return milliseconds of processor and of elapsed time, and nodes and in-edges, of a batch."""
    rounds, total = [], np.zeros(2)
    for _ in range(ROUNDS):
        wall, processor = time.perf_counter(), time.process_time()
        total = np.sum(list(run()), axis=0) / steps
        rounds.append((time.process_time() - processor, time.perf_counter() - wall))
    return np.min(rounds, axis=0) * 1000 / steps, total


def measure_dgl(folders: list[Path], topology: _core.Topology, seeds: Array, fanouts: list[int]) -> None:
    """Print the times of DGL for the same graph, with rows as ids."""
    import dgl
    import torch

    torch.set_num_threads(1)
    degrees, sources = [np.zeros(1, np.int64)], []
    for folder in folders:
        vertices, indices = np.load(folder / "vertices.npy"), np.load(folder / "indices.npy")
        degrees.append(np.diff(np.load(folder / "indptr.npy")))
        sources.append(topology.rows_of(vertices)[indices].astype(np.int64))
    indptr = np.cumsum(np.concatenate(degrees))
    graph = dgl.graph(
        ("csc", (torch.from_numpy(indptr), torch.from_numpy(np.concatenate(sources)), torch.tensor([])))
    )
    features = torch.from_numpy(np.concatenate([np.load(folder / "features.npy") for folder in folders]))
    rows = torch.from_numpy(seeds.astype(np.int64))
    samplers = {
        "NeighborSampler": dgl.dataloading.NeighborSampler,
        "LaborSampler": dgl.dataloading.LaborSampler,
    }
    for name, make in samplers.items():
        of_dgl = partial(sizes_of_dgl, make(fanouts), graph, rows)
        report(f"DGL {name}", len(rows), partial(of_dgl, None), partial(of_dgl, features))


def sizes_of_dgl(sampler: Any, graph: Any, rows: Any, features: Any) -> Iterator[tuple[int, int]]:
    """Yield nodes and in-edges of each batch of DGL, and copy its features, if there are any."""
    for seeds in rows:
        nodes, _, blocks = sampler.sample_blocks(graph, seeds)
        if features is not None:
            features.index_select(0, nodes)
        yield len(nodes), sum(block.num_edges() for block in blocks)


if __name__ == "__main__":
    main()
