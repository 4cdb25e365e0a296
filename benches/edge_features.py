"""Processor time of features of in-edges: in batches, and in steps of GATv2.

``python benches/edge_features.py [--vertices 262144] [--records 4000000] [--fanouts 10,10] [--rounds 9]`` takes batches
of 1,000 seeds over a planted graph in 4 parts with 100 features of vertices and 16 of edges, float32, with one thread.
It prints milliseconds per batch without features of edges, with those that the core gathers while it samples, and with
those that are searched by their ids in numpy. Then it prints milliseconds per step of GATv2, forward and backward,
without and with 16 features of edges, and the ratio: the median of pairs that are measured one after the other. The
parts are written below target/edge-features once.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import fastpart as fp
from fastpart import _core
from fastpart.train.graphs.rows import Rows
from fastpart.train.models import build
from fastpart.train.models.scores import Task
from fastpart.train.options import Options

FOLDER = Path(__file__).resolve().parents[1] / "target" / "edge-features"

PARTS, BATCH, WIDTH, EDGE_WIDTH, CLASSES = 4, 1000, 100, 16, 40


def main() -> None:
    """Print times and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--vertices", type=int, default=1 << 18)
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--fanouts", default="10,10")
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    torch.set_num_threads(1)
    stored = fp.open_partition(written(given.vertices, given.records))
    fanouts = [int(fanout) for fanout in given.fanouts.split(",")]
    print(f"n = {given.vertices:,}, m = {given.records:,}, fanouts {fanouts}, 1 thread", flush=True)
    batches(stored, fanouts, given.rounds)
    steps(stored, fanouts, given.rounds)


def written(n: int, m: int) -> Path:
    """Return the partition directory, and write it if it is not there."""
    folder = FOLDER / f"{n}-{m}"
    if not folder.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        graph = fp.generate.planted(FOLDER / "g.bin", n=n, m=m, seed=1)
        random = np.random.default_rng(0)
        features, of_edges = (
            random.standard_normal(shape, np.float32) for shape in ((n, WIDTH), (m, EDGE_WIDTH))
        )
        partition = fp.algorithms.random(graph, PARTS, of="vertices")
        partition.save(folder, graph=graph, features=features, edge_features=of_edges)
    return folder


def batches(stored: Any, fanouts: list[int], rounds: int) -> None:
    """Print the time of batches."""
    topology = stored._topology
    opened = {
        name: _core.Features([part.folder / f"{name}.npy" for part in stored.parts], topology, starts=starts)
        for name, starts in (("features", topology.starts), ("edge_features", topology.edge_starts))
    }
    sampler = _core.Sampler(topology, fanouts, edge_ids=True, edge_rows=True)
    plain = _core.Sampler(topology, fanouts)
    search = Search(stored)
    random = np.random.default_rng(1)
    found = []
    for step in range(rounds):
        seeds = random.choice(topology.num_vertices, BATCH, replace=False).astype(np.uint32)

        def searched(seeds: Any = seeds, step: int = step) -> None:
            search.of(sampler.sample(seeds, step=step, features=opened["features"]))

        ways: list[Callable[[], Any]] = [
            lambda seeds=seeds, step=step: plain.sample(seeds, step=step, features=opened["features"]),
            lambda seeds=seeds, step=step: sampler.sample(seeds, step=step, **opened),
            searched,
        ]
        found.append([seconds(way) for way in ways])
    none, gathered, by_ids = 1e3 * np.median(found, axis=0)
    ratio = np.median([one / other for _, one, other in found])
    print(
        f"batch of {BATCH}: {none:.1f} ms without features of edges, {gathered:.1f} gathered, {by_ids:.1f} searched: "
        f"gathered / searched {ratio:.2f}",
        flush=True,
    )


class Search:
    """Features of in-edges by a binary search of their ids among those of their target, in numpy."""

    def __init__(self, stored: Any) -> None:
        self._parts, self._starts, self._m = list(stored.parts), stored._topology.starts, stored.manifest["m"]

    def of(self, sample: Any) -> np.ndarray:
        """Return the features of the in-edges of a batch."""
        counts = np.diff(sample.indptr)
        targets, ids, m = np.repeat(sample.rows[: len(counts)], counts), sample.e_id, self._m
        found = np.empty((len(ids), EDGE_WIDTH), np.float32)
        owners = np.searchsorted(self._starts, targets, side="right") - 1
        for owner, part in enumerate(self._parts):
            those = np.flatnonzero(owners == owner)
            rows, wanted = targets[those].astype(np.int64) - self._starts[owner], ids[those]
            places = part.indptr[rows]
            left, records = part.indptr[rows + 1] - places, wanted - m * (wanted >= m)
            while np.any(left > 1):
                half = left >> 1
                known = part.edge_ids[places + (half - 1).clip(min=0)]
                places += half * (known - m * (known >= m) < records)
                left -= half
            found[those] = part.edge_features[places]
        return found


def steps(stored: Any, fanouts: list[int], rounds: int) -> None:
    """Print the time of steps of GATv2, with batches and without."""
    given = {"fanouts": fanouts, "batch_size": BATCH, "ahead": 0, "seed": 1}
    seeds = np.arange(BATCH * (rounds + 1))
    pairs = []
    options = Options(model="gatv2", layers=len(fanouts), hidden=16, heads=4)
    networks = [
        build(Task(WIDTH, CLASSES, multilabel=False, edge_features=width), options)
        for width in (0, EDGE_WIDTH)
    ]
    loaders = [iter(stored.loader(seeds, edge_ids=with_edges, **given)) for with_edges in (False, True)]
    for _ in range(rounds + 1):
        pairs.append(
            [
                seconds(lambda one=one, network=network: step(network, next(one), stored._topology))
                for one, network in zip(loaders, networks, strict=True)
            ]
        )
    without, with_edges = 1e3 * np.median(pairs[1:], axis=0)
    ratio = np.median([one / other for other, one in pairs[1:]])
    print(
        f"GATv2, 4 heads of 16: {without:.0f} ms without features of edges, {with_edges:.0f} with {EDGE_WIDTH}: "
        f"ratio {ratio:.2f}",
        flush=True,
    )


def step(network: Any, batch: Any, topology: Any) -> None:
    """Compute outputs and gradients."""
    whole = Rows(
        batch.indptr.numpy(),
        batch.indices.numpy(),
        lambda: torch.from_numpy(topology.degrees_of(batch.rows)),
        batch.n_id,
        sources=batch.num_nodes,
        edge_attr=batch.edge_attr,
    )
    network.zero_grad()
    network(whole.by_layer(batch.num_sampled_nodes), batch.x).sum().backward()


def seconds(work: Callable[[], Any]) -> float:
    """Return the processor time of some work."""
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main()
