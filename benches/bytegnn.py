"""Rows that training fetches with the parts of bytegnn, beside those of other partitioners.

    python benches/bytegnn.py DATA OUT [NAME ...]

DATA has a folder with edges.npy for each real graph. "planted" is generated: 1 M vertices, 16 M edges. OUT keeps it.
Prints one row per graph, kind of splits and partitioner: share of the edges that are cut, predicted remote rows of an
epoch of all four ranks with fanouts 15,10 and 10,10, the largest share of training vertices, and seconds.

10 % of the vertices are for training, 5 % for validation and 10 % for test. They are "random", or "clustered": the
vertices of random clusters.
"""

import sys
from pathlib import Path

import numpy as np
from traffic import FANOUTS, REAL, opened

import fastpart as fp
from fastpart.core.options import run_options
from fastpart.measures.compare.entries import entries_of
from fastpart.measures.compare.peers import Bench

K = 4
SHARES = {"train": 0.1, "val": 0.05, "test": 0.1}
OTHERS = ["multilevel", "multilevel:effort=quick", "metis", "sigma", "ldg", "hash"]


def main(data: Path, out: Path, names: list[str]) -> None:
    print("| graph | splits | partitioner | cut | rows 15,10 | rows 10,10 | train balance | seconds |")
    print("|---|---|---|---:|---:|---:|---:|---:|")
    for name in names or ["amazon-computers", "coauthor-cs", "planted"]:
        graph = opened(data, out, name)
        batch_size = REAL.get(name, (0.1, 1000))[1]
        with Bench(run_options(), 0, 600.0) as bench:
            others = [(entry.label, *made(entry, graph, bench, None)) for entry in entries_of(OTHERS, False)]
            for kind, splits in kinds(graph).items():
                own = [
                    (entry.label, *made(entry, graph, bench, splits))
                    for entry in entries_of(["bytegnn", "bytegnn:rule=paper", "bytegnn:hops=1"], False)
                ]
                own += balanced(graph, splits)
                for label, partition, seconds in [*own, *others]:
                    row(graph, (name, kind, label), partition, seconds, splits, batch_size)


def made(entry, graph, bench, splits):
    """Return the partition of an entry, and its seconds."""
    result = entry.run(graph, K, {"seed": 0, "splits": splits}, bench)
    return result.partition, result.seconds


def balanced(graph, splits):
    """Yield the partitions that know the training vertices in another way."""
    mask = np.zeros(graph.num_vertices, bool)
    mask[splits["train"]] = True
    for label, function, given in (
        ("multilevel:balance_on=train", fp.multilevel, {"balance_on": mask}),
        ("partition:objective=traffic", fp.partition, {"objective": "traffic", "splits": splits}),
    ):
        partition = function(graph, K, **given)
        yield label, partition, partition.costs["seconds"]


def kinds(graph):
    """Return splits of both kinds."""
    n, dice = graph.num_vertices, np.random.default_rng(3)
    bounds = np.cumsum([int(n * share) for share in SHARES.values()])[:-1]
    clusters = fp.cluster(graph)
    order = dice.permutation(clusters.num_clusters)[clusters.assignment]
    orders = {"random": dice.permutation(n), "clustered": np.argsort(order, kind="stable")}
    count = int(n * sum(SHARES.values()))
    return {
        kind: dict(zip(SHARES, np.split(order[:count], bounds), strict=True))
        for kind, order in orders.items()
    }


def row(graph, names, partition, seconds, splits, batch_size):
    """Print a row of the table."""
    rows = [
        fp.predict_traffic(partition, fanouts, batch_size, cache=0, graph=graph, splits=splits).remote_rows
        for fanouts in reversed(FANOUTS)
    ]
    loads = np.bincount(np.asarray(partition.assignment)[splits["train"]], minlength=K)
    cut = fp.evaluate(graph, partition).summary["cut_ratio"][0]
    cells = [*names, f"{cut:.3f}", *(f"{count:,.0f}" for count in rows)]
    cells += [f"{loads.max() / loads.mean():.2f}", f"{seconds:.2f}"]
    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
