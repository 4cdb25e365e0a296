"""Graphs of other kinds than the social, web and citation graphs of most tables: generated, each from a fixed seed.

``quality.py`` measures them beside real graphs. Every graph is simple: an edge is stored once, as u < v.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, permutations, product
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.spatial import Delaunay, cKDTree

import fastpart as fp

Pairs = npt.NDArray[np.int64]
"""Records, of shape (m, 2). Loops and parallel records may occur."""

Cells = npt.NDArray[np.int64]
"""The corners of triangles or tetrahedra, one row each."""


def mesh(folder: Path, points: int = 100_000) -> Pairs:
    """Return the edges of the Delaunay triangulation of random points of a square."""
    return sides(_triangles(np.random.default_rng(1).random((points, 2))))


def graded(points: int = 40_000) -> Cells:
    """Return the triangles of a square whose points lie close together near one corner.

    There are 2 * points + 2 triangles, since only the four corners are on the hull.
    """
    places = np.random.default_rng(6).random((points, 2)) ** 1.5
    return _triangles(np.concatenate([places, list(product((0.0, 1.0), repeat=2))]))


def _triangles(places: npt.NDArray[np.float64]) -> Cells:
    return Delaunay(places).simplices.astype(np.int64)


def tetrahedra(*cubes: int) -> Cells:
    """Return the tetrahedra of a box of cubes, six in each: one for each order of the three steps through it."""
    ids = np.arange(np.prod([side + 1 for side in cubes])).reshape([side + 1 for side in cubes])
    whole = []
    for steps in permutations(np.eye(3, dtype=np.int64)):
        corners = np.cumsum([np.zeros(3, np.int64), *steps], axis=0)
        places = [
            tuple(slice(at, at + side) for at, side in zip(corner, cubes, strict=True)) for corner in corners
        ]
        whole.append(np.column_stack([ids[place].ravel() for place in places]))
    return np.concatenate(whole)


def surface() -> Cells:
    """Return the triangles of the surface of a body of small cubes: ten balls with fourteen rods between them."""
    rng = np.random.default_rng(101)
    body = np.zeros((96, 96, 96), bool)
    places = np.moveaxis(np.indices(body.shape), 0, -1)
    for _ in range(10):
        centre, radius = rng.integers(20, 76, 3), rng.integers(5, 14)
        body |= ((places - centre) ** 2).sum(axis=-1) < radius**2
    for _ in range(14):
        (start, end), width = rng.integers(10, 86, (2, 3)), rng.integers(1, 4)
        for share in np.linspace(0, 1, 150):
            middle = np.round(start + (end - start) * share).astype(np.int64)
            body[tuple(slice(at - width, at + width + 1) for at in middle)] = True
    squares = np.concatenate([_squares(np.pad(body, 1), axis) for axis in range(3)])
    _, numbered = np.unique(squares, return_inverse=True)
    numbered = numbered.reshape(-1, 4).astype(np.int64)
    return np.concatenate([numbered[:, [0, 1, 2]], numbered[:, [0, 2, 3]]])


def _squares(body: npt.NDArray[np.bool_], axis: int) -> Cells:
    """Return the corners of the squares across an axis that lie between inside and outside."""
    layers = np.moveaxis(body, axis, 0)
    squares = np.argwhere(layers[1:] != layers[:-1])
    order = np.argsort([axis, *(other for other in range(3) if other != axis)])
    corners = [(squares + np.array([1, *step]))[:, order] for step in ((0, 0), (1, 0), (1, 1), (0, 1))]
    shape = [side + 1 for side in body.shape]
    return np.column_stack([np.ravel_multi_index(tuple(corner.T), shape) for corner in corners])


def sides(cells: Cells) -> Pairs:
    """Return the pairs of corners of each cell: what couples the unknowns of finite elements."""
    return np.concatenate([cells[:, pair] for pair in combinations(range(cells.shape[1]), 2)])


def dual(cells: Cells) -> Pairs:
    """Return the pairs of cells that share a face: what finite volumes exchange."""
    corners = cells.shape[1]
    faces = np.concatenate([np.sort(np.delete(cells, corner, axis=1), axis=1) for corner in range(corners)])
    order = np.lexsort(faces.T)
    shared = np.flatnonzero((faces[order][1:] == faces[order][:-1]).all(axis=1))
    return np.column_stack([order[shared], order[shared + 1]]) % len(cells)


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
    "tetrahedra": (33_046, lambda folder: sides(tetrahedra(40, 30, 25))),
    "tetrahedra-dual": (20_160, lambda folder: dual(tetrahedra(20, 14, 12))),
    "graded": (40_004, lambda folder: sides(graded())),
    "graded-dual": (80_002, lambda folder: dual(graded())),
    "surface": (32_521, lambda folder: sides(surface())),
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
