"""Graphs of other kinds than the social, web and citation graphs of most tables: generated, each from a fixed seed.

``quality.py`` measures them beside real graphs. Every graph is simple: an edge is stored once, as u < v.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.spatial import Delaunay, cKDTree

import fastpart as fp

Pairs = npt.NDArray[np.int64]
"""Records, of shape (m, 2). Loops and parallel records may occur."""


def mesh(folder: Path, points: int = 100_000) -> Pairs:
    """Return the edges of the Delaunay triangulation of random points of a square."""
    triangles = Delaunay(np.random.default_rng(1).random((points, 2))).simplices.astype(np.int64)
    return np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [0, 2]]])


def grid(folder: Path, *sides: int) -> Pairs:
    """Return a grid of any dimension, numbered along its last side first."""
    ids = np.arange(np.prod(sides)).reshape(sides)
    steps = [
        (np.moveaxis(ids, axis, 0)[:-1].ravel(), np.moveaxis(ids, axis, 0)[1:].ravel())
        for axis in range(len(sides))
    ]
    return np.concatenate([np.column_stack(step) for step in steps])


def correlated(folder: Path, things: int = 3_000, edges: int = 600_000) -> Pairs:
    """Return the pairs of largest absolute correlation among things that a few factors drive, as genes are."""
    rng = np.random.default_rng(2)
    factors = rng.integers(-9, 10, (24, 200))
    weights = rng.integers(-3, 4, (things, 24)) * (rng.random((things, 24)) < 0.12)
    values = (weights @ factors + rng.integers(-9, 10, (things, 200))).astype(np.float64)
    products = values @ values.T  # exact: the values are small whole numbers
    squares = np.diag(products)
    u, v = np.triu_indices(things, 1)
    strength = products[u, v] ** 2 / (squares[u] * squares[v])
    strongest = np.argsort(-strength, kind="stable")[:edges]
    return np.column_stack([u[strongest], v[strongest]])


def geometric(folder: Path, points: int = 50_000, degree: int = 12) -> Pairs:
    """Return the pairs of random points of a square that are near. ``degree`` is their mean degree, but for the rim."""
    places = np.random.default_rng(3).random((points, 2))
    radius = (degree / (np.pi * points)) ** 0.5
    return cKDTree(places).query_pairs(radius, output_type="ndarray").astype(np.int64)


def rmat(folder: Path) -> Pairs:
    """Return an R-MAT graph, whose hubs are tied to a tenth of all vertices."""
    return _records(fp.generate.rmat(folder / "rmat.bin", n=65_536, m=1_000_000, seed=4))


def planted(folder: Path) -> Pairs:
    """Return a graph with 16 communities, which hold four of five edges."""
    return _records(fp.generate.planted(folder / "planted.bin", n=20_000, m=200_000, classes=16, seed=5))


def _records(graph: fp.Graph) -> Pairs:
    return np.fromfile(str(graph.path), np.uint32).reshape(-1, 2).astype(np.int64)


KINDS: dict[str, tuple[int, Callable[[Path], Pairs]]] = {
    "mesh": (100_000, mesh),
    "grid-2d": (90_000, lambda folder: grid(folder, 300, 300)),
    "grid-3d": (64_000, lambda folder: grid(folder, 40, 40, 40)),
    "correlated": (3_000, correlated),
    "geometric": (50_000, geometric),
    "rmat": (65_536, rmat),
    "planted": (20_000, planted),
}
"""The number of vertices of each, and what makes its records."""

OTHER_KINDS = ("netlist-ibm14", "power-usa", *KINDS)
"""Graphs that are compared apart from the others: two of ../shared/data, and the generated ones."""


def write(name: str, folder: Path) -> Path:
    """Write a graph into the folder, as an array of shape (m, 2), and return its file."""
    n, records_of = KINDS[name]
    file = folder / f"{name}.npy"
    np.save(file, simple(records_of(folder), n))
    return file


def simple(records: Pairs, n: int) -> npt.NDArray[np.uint32]:
    """Return every edge once, u < v, in order, and no loops."""
    low, high = records.min(axis=1), records.max(axis=1)
    keys = np.unique((low * n + high)[low < high])
    return np.column_stack(np.divmod(keys, n)).astype(np.uint32)
