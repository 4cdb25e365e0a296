"""Small partitions to train over, and what processes a run has."""

import os
from contextlib import suppress
from pathlib import Path

import numpy as np

import fastpart as fp


def planted(folder, k, assignment=None, train=None, n=300, isolated=()):
    """Save a graph of three classes that hold together, with features that tell little; return the directory."""
    random = np.random.default_rng(0)
    labels = np.arange(n) % 3
    sources = random.integers(0, n, 5 * n)
    targets = (sources + 3 * random.integers(0, n // 3, 5 * n)) % n
    edges = np.stack([sources, targets], axis=1)
    edges = edges[~np.isin(edges, isolated).any(axis=1)]
    features = random.normal(size=(n, 8)).astype(np.float32)
    features[np.arange(n), labels] += 1
    order = random.permutation(n)
    splits = {
        "train": order[: n // 2] if train is None else train,
        "val": order[n // 2 : 3 * n // 4],
        "test": order[3 * n // 4 :],
    }
    partition = fp.VertexPartition(np.arange(n) % k if assignment is None else assignment, k)
    edges = fp.open_graph(edges, num_vertices=n)
    partition.save(folder, graph=edges, features=features, labels=labels, splits=splits)
    return folder


def children(parent=None):
    """Return the environments of the processes that a supervisor has started, by process id."""
    parent = os.getpid() if parent is None else parent
    found = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
            if (
                int(stat[1]) == parent
                and b"fastpart.train.methods.distdgl" in (entry / "cmdline").read_bytes()
            ):
                lines = (entry / "environ").read_bytes().decode().split("\0")
                found[int(entry.name)] = dict(line.split("=", 1) for line in lines if "=" in line)
    return found


def process_of(**variables):
    """Return the process of a run of ours with such variables in its environment."""
    return next(pid for pid, environment in children().items() if variables.items() <= environment.items())
