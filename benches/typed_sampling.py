"""Processor time of a mini-batch of a typed graph: samples of each relation, with the features of their nodes.

``python benches/typed_sampling.py [--scale 1.0] [--fanouts 25,20] [--steps 20]`` samples batches of 1,000 papers from a
generated graph of the shape of ogbn-mag (at scale 1: n = 1.9 M, m = 21 M, 4 types, 4 relations and their reverses, 128
features) in 4 parts, and prints milliseconds per batch, in which each vertex has so many in-edges of each relation. If
dgl can be imported, its ``NeighborSampler`` samples the same graph, with one thread, and gathers the same features,
which are in memory, as those of "loaded" are. The others are mapped. DGL samples seeds again in hop 2, where they are
targets, too. Tables, graph and parts are written below target/typed-sampling once.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import fastpart as fp
from fastpart import _core

sys.path.insert(0, str(Path(__file__).parent))

from sampling import BATCH, best_of

FOLDER = Path(__file__).resolve().parents[1] / "target" / "typed-sampling"
K, INPUT = 4, "paper"

Sizes = Iterator[tuple[int, int]]


def main() -> None:
    """Print a line for each sampler."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--fanouts", default="25,20")
    parser.add_argument("--steps", type=int, default=20)
    given = parser.parse_args()
    fanouts = [int(fanout) for fanout in given.fanouts.split(",")]
    stored = parts_of(given.scale)
    papers = np.concatenate([part.of_type(INPUT).inner for part in stored.parts])
    seeds = np.random.default_rng(1).permutation(papers)[: given.steps * BATCH]
    measure(stored, seeds, fanouts, given.steps)
    if importlib.util.find_spec("dgl") is not None:
        measure_dgl(stored, seeds, fanouts, given.steps)


def parts_of(scale: float) -> fp.VertexPartition:
    """Open the partition directory, and write it if it is not there."""
    folder = FOLDER / f"scale-{scale}"
    if not (folder / "parts").exists():
        folder.mkdir(parents=True, exist_ok=True)
        fp.generate.typed(folder / "tables", scale=scale)
        graph = fp.ingest(folder / "tables" / "schema.yaml", folder / "graph")
        fp.partition(graph, k=K).save(folder / "parts")
    return fp.open_partition(folder / "parts", of="vertices")


def measure(stored: fp.VertexPartition, seeds: npt.NDArray[np.int64], fanouts: list[int], steps: int) -> None:
    """Print the times of fastpart."""
    types, topology = stored._types, stored._topology
    names = [each.name for each in stored.parts[0].types or ()]
    features = [
        _core.Features(
            [part.folder / "types" / name / "features.npy" for part in stored.parts], topology, starts=starts
        )
        if stored.parts[0].of_type(name).row_type("features")
        else None
        for name, starts in zip(names, types.starts, strict=True)
    ]
    relations = len(stored.parts[0].edge_types or ())
    rows, offsets = topology.rows_of(seeds), np.arange(steps + 1) * BATCH
    print(f"fanouts {fanouts} of {relations} relations: processor ms per batch of {BATCH} seeds")
    for kind in ("uniform", "labor"):
        by_hop = [[fanout] * relations for fanout in fanouts]
        batches = partial(
            _core.Sampler(topology, by_hop, types=types, kind=kind, seed=1).batches, rows, offsets, ahead=4
        )
        report(kind, steps, partial(sizes, batches), partial(sizes, partial(batches, features=features)))
    loaded = [each and each.loaded() for each in features]
    batches = partial(
        _core.Sampler(topology, [[fanout] * relations for fanout in fanouts], types=types, seed=1).batches,
        rows,
        offsets,
        ahead=4,
    )
    report(
        "uniform, loaded", steps, partial(sizes, batches), partial(sizes, partial(batches, features=loaded))
    )


def sizes(batches: Any) -> Sizes:
    """Yield nodes and in-edges of each batch."""
    return ((sum(map(len, batch.n_id)), sum(map(len, batch.indices))) for batch in batches())


def report(name: str, steps: int, bare: Any, full: Any) -> None:
    """Print the times of samples, and of samples with features."""
    (alone, (nodes, edges)), (filled, _) = best_of(steps, bare), best_of(steps, full)
    print(
        f"  {name:16} {alone[0]:8.2f} samples {filled[0]:8.2f} with features (elapsed {alone[1]:.2f}, "
        f"{filled[1]:.2f}), {nodes:.0f} nodes, {edges:.0f} in-edges",
        flush=True,
    )


def measure_dgl(
    stored: fp.VertexPartition, seeds: npt.NDArray[np.int64], fanouts: list[int], steps: int
) -> None:
    """Print the times of DGL for the same graph, with ids within the types."""
    import dgl
    import torch

    torch.set_num_threads(1)
    types = {each.name: each for each in stored.parts[0].types or ()}
    edges = {}
    for each in stored.parts[0].edge_types or ():
        pieces = [part.of_relation(each.name).in_edges()[:2] for part in stored.parts]
        sources, targets = (np.concatenate(ends) for ends in zip(*pieces, strict=True))
        ends = sources - types[each.source].first, targets - types[each.target].first
        edges[each.source, each.name, each.target] = tuple(map(torch.from_numpy, ends))
    graph = dgl.heterograph(edges, {name: each.n for name, each in types.items()}).formats("csc")
    features = {}
    for name, each in types.items():
        if stored.parts[0].of_type(name).row_type("features"):
            pieces = [part.of_type(name) for part in stored.parts]
            rows = np.empty((each.n, *pieces[0].features.shape[1:]), np.float32)
            for piece in pieces:
                rows[piece.inner - each.first] = piece.features
            features[name] = torch.from_numpy(rows)
    batches = torch.from_numpy(seeds - types[INPUT].first).split(BATCH)
    sampler = dgl.dataloading.NeighborSampler(fanouts[::-1])  # the first is that of the last hop
    of_dgl = partial(sizes_of_dgl, sampler, graph, batches)
    report("DGL", steps, partial(of_dgl, {}), partial(of_dgl, features))


def sizes_of_dgl(sampler: Any, graph: Any, batches: Any, features: dict[str, Any]) -> Sizes:
    """Yield nodes and in-edges of each batch of DGL, and copy its features, if there are any."""
    for seeds in batches:
        nodes, _, blocks = sampler.sample_blocks(graph, {INPUT: seeds})
        for name, rows in features.items():
            rows.index_select(0, nodes[name])
        yield sum(map(len, nodes.values())), sum(block.num_edges() for block in blocks)


if __name__ == "__main__":
    main()
