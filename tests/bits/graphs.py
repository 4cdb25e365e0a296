"""The partition directories whose batches, losses and exports are recorded, each made at its first use."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

import fastpart as fp
from attributed import attributed
from coded import FEATURES
from linked import random_graph
from random_typed import random_typed_graph
from temporal import NO_TIME, save, timed_graph
from typed_training import typed_parts

N = 300
SIZES = {"author": 160, "field": 20, "paper": 240}
"""Vertices of the typed graphs, by type."""

RECORDS = {"cites": 600, "has_topic": 360, "writes": 480}
"""Records of the typed graphs, by relation."""


@cache
def root():
    """Return a folder that is removed when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="fastpart-bits-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def directory(name):
    """Return the partition directory of a name, opened."""
    folder = root() / name
    folder.mkdir()
    return DIRECTORIES[name](folder)


def _plain(folder, directedness="undirected", bare=False, **more):
    graph, rows = attributed(directedness=directedness)
    fp.algorithms.hash(graph, 3).save(folder / "parts", **({"graph": graph} if bare else rows | more))
    return fp.open_partition(folder / "parts", of="vertices")


def _timed(folder, vertices=True, edges=True):
    records, _, edge_times = timed_graph(N)
    rng = np.random.default_rng(1)
    features = rng.normal(size=(N, 6)).astype(np.float32)
    times = rng.integers(0, 60, N) if vertices else None
    rows = {
        "features": features,
        "labels": features[:, :3].argmax(1),
        "splits": {"train": np.arange(0, N, 2), "val": np.arange(1, N, 4), "test": np.arange(3, N, 4)},
        "edge_features": rng.normal(size=(len(records), 2)).astype(np.float32),
    }
    return save(folder / "parts", N, records, 3, times, edge_times if edges else None, **rows)


def _labelled(folder):
    return _plain(folder, **_edge_labels(2000))


def _typed_labelled(folder):
    of = {"writes": _edge_labels(RECORDS["writes"]), "cites": _edge_labels(RECORDS["cites"])}
    names = next(iter(of.values()))
    stored, *_ = typed_parts(folder, 3, **{name: {key: of[key][name] for key in of} for name in names})
    return stored


def _edge_labels(records):
    """Return features, labels and splits of edges. The labels follow from the features."""
    features = _floats(np.random.default_rng(5), records, 2)
    splits = {"train": np.arange(0, records, 2), "val": np.arange(1, records, 4)}
    splits["test"] = np.arange(3, records, 4)
    labels = features.argmax(1)
    return {"edge_features": features, "edge_labels": labels, "edge_label_splits": splits}


def _typed(folder, vertices=False, edges=False):
    rng = np.random.default_rng(7)
    more = {"edge_features": {name: _floats(rng, RECORDS[name], 2) for name in ("cites", "writes")}}
    if vertices:
        more["times"] = {name: rng.integers(0, 60, SIZES[name]) for name in ("author", "paper")}
    if edges:
        more["edge_times"] = {name: rng.integers(0, 90, RECORDS[name]) for name in ("cites", "writes")}
    stored, *_ = typed_parts(folder, 3, **more)
    return stored


def _links(folder, directedness="undirected"):
    graph = random_graph(N, 1500, directedness)
    splits = fp.split_edges(graph, 0.1, 0.1, out=folder / "train.bin")
    features = _floats(np.random.default_rng(3), N, 6)
    partition = fp.VertexPartition(np.arange(N) * 7 % 11 % 3, 3)
    partition.save(folder / "parts", graph=splits.graph, edge_splits=splits, features=features)
    return fp.open_partition(folder / "parts")


def _timed_links(folder):
    records, _, edge_times = timed_graph(N, 1500)
    edge_times[edge_times == NO_TIME] = 3
    splits = fp.split_edges(fp.open_graph(records, num_vertices=N), 0.1, 0.2, times=edge_times)
    rng = np.random.default_rng(0)
    rows = {
        "features": _floats(rng, N, 6),
        "times": np.minimum(rng.integers(-50, 60, N), -1),
        "edge_times": splits.edge_times,
    }
    partition = fp.algorithms.random(splits.graph, k=3, of="vertices")
    partition.save(folder / "parts", graph=splits.graph, edge_splits=splits, **rows)
    return fp.open_partition(folder / "parts")


def _typed_links(folder):
    graph = random_typed_graph(folder / "graph", 5, scale=4)
    splits = fp.split_edges(graph, 0.1, 0.1, out=folder / "split.bin")
    return _saved_links(folder, splits.graph, splits)


def _timed_typed_links(folder):
    rng = np.random.default_rng(4)
    graph = random_typed_graph(folder / "graph", 5, scale=4)
    times = {name: rng.integers(-50, 20, size) for name, size in SIZES.items()}
    edge_times = {name: rng.integers(0, 90, count) for name, count in RECORDS.items()}
    nothing = {"val": np.empty((0, 3), int)}  # records of several types are not split by time
    return _saved_links(folder, graph, nothing, times=times, edge_times=edge_times)


def _saved_links(folder, graph, splits, **more):
    rng = np.random.default_rng(3)
    features = {name: _floats(rng, size, 4) for name, size in SIZES.items()}
    partition = fp.VertexPartition(rng.integers(0, 3, graph.num_vertices), 3)
    partition.save(folder / "parts", graph=graph, edge_splits=splits, features=features, **more)
    return fp.open_partition(folder / "parts")


def _floats(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


DIRECTORIES = {
    "plain": _plain,
    "plain directed": lambda folder: _plain(folder, "directed"),
    "plain symmetric": lambda folder: _plain(folder, "symmetric"),
    "plain bare": lambda folder: _plain(folder, bare=True),
    "plain int8 by row": lambda folder: _plain(folder, features=FEATURES["row"], feature_dtype="int8"),
    "plain int8 by column": lambda folder: _plain(folder, features=FEATURES["column"], feature_dtype="int8"),
    "plain float16": lambda folder: _plain(folder, features=FEATURES["row"], feature_dtype="float16"),
    "plain temporal": _timed,
    "plain times of vertices": lambda folder: _timed(folder, edges=False),
    "plain times of edges": lambda folder: _timed(folder, vertices=False),
    "typed": _typed,
    "typed temporal": lambda folder: _typed(folder, True, True),
    "typed times of vertices": lambda folder: _typed(folder, vertices=True),
    "typed times of edges": lambda folder: _typed(folder, edges=True),
    "plain links": _links,
    "plain links directed": lambda folder: _links(folder, "directed"),
    "plain links symmetric": lambda folder: _links(folder, "symmetric"),
    "plain links temporal": _timed_links,
    "plain edge labels": _labelled,
    "typed edge labels": _typed_labelled,
    "typed links": _typed_links,
    "typed links temporal": _timed_typed_links,
}
"""What makes each directory, by its name."""
