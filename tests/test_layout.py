"""Where the vertices of a small graph are drawn: near their neighbours, the same in every run."""

import numpy as np
import pytest

import fastpart as fp
from fastpart.report.partitions import _pushes, _waves, layout


def lengths(places, pairs):
    return np.linalg.norm(places[pairs[:, 0]] - places[pairs[:, 1]], axis=1)


def test_neighbours_lie_near():
    pairs = fp.datasets.cora().graph._source.block(0, 5278)
    places = layout(pairs, 2708)
    others = np.random.default_rng(1).integers(2708, size=(5278, 2))
    assert np.median(lengths(places, pairs)) < np.median(lengths(places, others)) / 4
    assert np.array_equal(places, layout(pairs, 2708))


def test_two_cliques_lie_apart():
    clique = np.stack(np.triu_indices(20, 1), axis=1)
    places = layout(np.concatenate([clique, clique + 20, [[0, 20]]]), 40)
    middles = places[:20].mean(axis=0), places[20:].mean(axis=0)
    apart = np.linalg.norm(middles[0] - middles[1])
    for some, middle in zip((places[:20], places[20:]), middles, strict=True):
        assert np.linalg.norm(some - middle, axis=1).max() < apart


def test_pushes_are_those_of_all_pairs():
    rng = np.random.default_rng(0)
    places, mass = rng.random((400, 2)) * 7, rng.integers(1, 9, 400).astype(float)
    between = places[:, None] - places
    squared = (between**2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    exact = (mass[:, None] * between / squared[:, :, None]).sum(axis=1)
    wrong = np.linalg.norm(_pushes(places, mass, _waves()) - exact, axis=1) / np.linalg.norm(exact, axis=1)
    assert np.median(wrong) < 0.02  # of a pair in one cell of the grid it may be anything


@pytest.mark.parametrize(
    ("pairs", "n"),
    [
        ([[0, 0]], 1),
        ([[0, 1]], 2),
        ([[0, 1], [1, 0], [0, 1], [0, 0]], 9),
        ([[0, v] for v in range(1, 900)], 900),
    ],
    ids=["loop", "edge", "duplicates", "star"],
)
def test_whatever_the_graph(pairs, n):
    places = layout(np.array(pairs, np.uint32), n)
    assert places.shape == (n, 2)
    assert np.isfinite(places).all()
    assert len(np.unique(places, axis=0)) == n
