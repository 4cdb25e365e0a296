"""`fastpart.compat.pymetis`: the calls of pymetis, with the results counted anew."""

import inspect
import warnings

import networkx
import numpy as np
import pytest

import fastpart as fp
from fastpart.compat import pymetis as ours

GRAPH = networkx.random_geometric_graph(400, 0.1, seed=1)
LISTS = [list(GRAPH[v]) for v in GRAPH]
STARTS = np.cumsum([0, *map(len, LISTS)])
TARGETS = np.concatenate(LISTS).astype(np.int64)


class Options:
    """Options of pymetis, without pymetis: all that are not set are -1."""

    def __init__(self, **given):
        vars(self).update(given)

    def __getattr__(self, name):
        return -1


class Adjacency:
    adj_starts, adjacent = STARTS, TARGETS


def counted(part, weight=lambda u, v: 1):
    return sum(weight(u, v) for u, v in GRAPH.edges if part[u] != part[v])


def test_all_ways_to_give_a_graph_are_one():
    cut, part = ours.part_graph(4, LISTS)
    assert cut == counted(part)
    assert max(np.bincount(part, minlength=4)) <= np.ceil(1.03 * 400 / 4)
    for given in (GRAPH, Adjacency, dict(enumerate(LISTS))):
        assert ours.part_graph(4, given) == (cut, part)
    assert ours.part_graph(4, xadj=STARTS, adjncy=TARGETS.astype(np.int32), recursive=True) == (cut, part)


def test_weights_of_edges_are_those_of_the_cut():
    def weight(u, v):
        return 1 + (u * v) % 7

    weights = [weight(u, v) for u, targets in enumerate(LISTS) for v in targets]
    cut, part = ours.part_graph(4, xadj=STARTS, adjncy=TARGETS, eweights=weights)
    assert cut == counted(part, weight)


def test_weights_of_vertices_take_the_place_of_their_number():
    weights = np.where(np.arange(400) < 100, 30, 1)
    part = ours.part_graph(2, LISTS, vweights=weights, options=Options(ufactor=50))[1]
    assert max(np.bincount(part, weights=weights)) <= np.ceil(1.05 * weights.sum() / 2)


def test_shares_options_and_contiguous_parts():
    part = ours.part_graph(2, LISTS, tpwgts=[0.75, 0.25], options=Options(ufactor=1))[1]
    assert np.abs(np.bincount(part) - [300, 100]).max() <= 1
    a, b = (ours.part_graph(8, LISTS, options=Options(seed=seed))[1] for seed in (1, 2))
    assert a != b
    grid = networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(12, 12))
    for given in ({"contiguous": True}, {"options": Options(contig=1)}):
        part = np.array(ours.part_graph(4, grid, **given)[1])
        assert all(networkx.is_connected(grid.subgraph(np.flatnonzero(part == p).tolist())) for p in range(4))


def test_loops_and_parallel_edges_and_small_graphs():
    assert ours.part_graph(2, [[0, 1, 1], [0, 0]]).edge_cuts == 2
    assert ours.part_graph(3, [])[0] == 0
    assert ours.part_graph(1, LISTS)[1].tolist() == [0] * 400


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"adjacency": [[1], []]}, "adjacency: some edges are there in one direction only"),
        ({"adjacency": [[1, 1], [0]]}, "adjacency: some edges are there in one direction only"),
        ({"adjacency": [[2], [0]]}, "adjacency: names vertices beyond 0 to 1"),
        ({"adjacency": [[-1], [0]]}, "adjacency: names vertices beyond 0 to 1"),
        ({"xadj": [0, 2], "adjncy": [0]}, "xadj: must rise from 0 to the 1 entries"),
        ({"xadj": [], "adjncy": []}, "xadj: must rise"),
        ({"xadj": [0, 3, 1, 2], "adjncy": [0, 1]}, "xadj: must rise"),
        ({"adjacency": [[1], [0]], "vweights": [1]}, "vweights: expected 2 numbers, got 1"),
        ({"adjacency": [[1], [0]], "eweights": [0, 1]}, "eweights: weights are whole numbers above 0"),
        ({"adjacency": [[1], [0]], "options": Options(seed=-5)}, "options.seed"),
        ({"adjacency": [[1], [0]], "tpwgts": [1.0]}, "sizes"),
    ],
)
def test_refusals(given, words):
    with pytest.raises(fp.errors.ParameterError, match=words):
        ours.part_graph(2, **given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "pass the neighbours"),
        ({"xadj": [0]}, "pass the neighbours"),
        ({"adjacency": [[]], "xadj": [0, 0]}, "either adjacency"),
        ({"xadj": [0, 1.5], "adjncy": [0]}, "xadj: expected one row of integers"),
        ({"adjacency": [[1], [0]], "eweights": [[1], [1]]}, "eweights: expected one row"),
    ],
)
def test_arguments_of_wrong_types(given, words):
    with pytest.raises(TypeError, match=words):
        ours.part_graph(2, **given)


def test_the_signature_and_the_results_are_those_of_pymetis():
    theirs = pytest.importorskip("pymetis")
    mine, other = (inspect.signature(each.part_graph).parameters for each in (ours, theirs))
    assert [(each.name, each.kind, each.default) for each in mine.values()] == [
        (each.name, each.kind, each.default) for each in other.values()
    ]
    assert ours.GraphPartition._fields == theirs.GraphPartition._fields
    csr = theirs.CSRAdjacency(STARTS, TARGETS)
    options = theirs.Options(seed=3, ufactor=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = theirs.part_graph(8, csr, recursive=False, options=options)
    found = ours.part_graph(8, csr, recursive=False, options=options)
    assert type(found[1]) is type(expected[1])
    assert found[0] < 1.2 * expected[0]
