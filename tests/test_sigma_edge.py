"""SIGMA of edges: within its cap, and as good as promised."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from soaked import PAIRS
from strategies import edge_lists, raw

PARTS = (4, 8, 32)

# Replication factors to reach on amazon-computers: the paper's at k = 32, and what a better order makes possible.
TO_REACH = {4: 1.60, 8: 1.95, 32: 2.80}


@pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")
@given(edge_lists(max_n=20), st.sampled_from([1, 2, 3, 8, 33, 65, 255, 256]), st.sampled_from([1, 1.1, 3]))
def test_every_record_has_a_part_within_the_cap(graph, k, balance):
    n, edges = graph
    partition = fp.sigma(fp.open_graph(edges, num_vertices=n), k, of="edges", balance=balance)
    assert len(partition) == len(edges)
    assert partition.loads.tolist() == np.bincount(partition.assignment, minlength=k).tolist()
    assert partition.loads.max() <= partition.cap == math.ceil(min(balance, k) * len(edges) / k)


@pytest.mark.parametrize("k", [4, 100, 255])
def test_threads_io_and_out_change_nothing(tmp_path, k):
    edges = np.random.default_rng(1).integers(0, 3000, (60_000, 2), dtype=np.uint32)
    file = raw(tmp_path / "g.bin", edges)
    expected = fp.sigma(edges, k, of="edges", threads=1).assignment
    for io in ("mmap", "read"):
        opened = fp.open_graph(file, io=io)
        assert np.array_equal(fp.sigma(opened, k, of="edges", threads=2).assignment, expected)
    mapped = fp.sigma(file, k, of="edges", out=tmp_path / "parts.npy")
    assert np.array_equal(mapped.assignment, expected)
    assert np.array_equal(np.load(tmp_path / "parts.npy"), expected)


def test_bands_are_fewer_replicas_than_the_order_of_the_file(real_graphs):
    for name in ("amazon-computers", "cit-hep-ph", "fb100-cornell5"):
        edges = real_graphs[name]
        for k in PARTS:
            bands, file = (
                fp.evaluate(edges, fp.sigma(edges, k, of="edges", bands=bands)).summary["rf"][0]
                for bands in (8, 1)
            )
            assert bands < 0.98 * file, f"{name}, k={k}"


def test_parameters_belong_to_a_mode():
    edges = np.array([[0, 1], [1, 2]])
    for options in ({"bands": 4}, {"balance_weight": 2}):
        with pytest.raises(fp.errors.ParameterError, match=r"of=.edges."):
            fp.sigma(edges, 2, **options)
        assert len(fp.sigma(edges, 2, of="edges", **options)) == 2
    for bands in (0, 65):
        with pytest.raises(fp.errors.ParameterError, match=r"^bands:"):
            fp.sigma(edges, 2, of="edges", bands=bands)


def test_clusters_stay_whole():
    cliques = np.array([[8 * c + u, 8 * c + v] for c in range(4) for u in range(8) for v in range(u)])
    bridges = np.array([[0, 8], [8, 16], [16, 24]])
    partition = fp.sigma(np.concatenate([bridges, cliques]), k=4, of="edges")
    owners = partition.assignment[3:].reshape(4, 28)
    assert (owners == owners[:, :1]).all()
    assert len(set(owners[:, 0])) == 4


@pytest.mark.parametrize("k", PARTS)
def test_the_figures_are_reached(real_graphs, k):
    edges = real_graphs["amazon-computers"]
    partition = fp.sigma(edges, k, of="edges")
    found = fp.evaluate(edges, partition).summary
    assert found["rf"][0] <= TO_REACH[k]
    assert found["replica_balance"][0] <= 1.25
    assert partition.loads.max() <= partition.cap


@PAIRS
def test_it_beats_the_streams_without_clusters(real_graphs, pairs):
    # Roads, the power grid and the netlist come in an order that keeps neighbours close, which streams in that order
    # live off: 1.14 to 1.17, 1.22 to 1.29 and 1.44 to 1.74 replicas. SIGMA makes 1.16 to 1.21, 1.27 to 1.39 and 1.47
    # to 1.92.
    others = real_graphs.keys() - {"netlist-ibm14", "power-usa", "road-usa-ny"}
    for name, k in pairs(sorted(others), PARTS):
        edges = real_graphs[name]
        sigma, hdrf, greedy = (
            fp.evaluate(edges, part).summary["rf"][0]
            for part in (
                fp.sigma(edges, k, of="edges"),
                fp.algorithms.hdrf(edges, k),
                fp.algorithms.greedy(edges, k),
            )
        )
        assert sigma < min(hdrf, greedy), f"{name}, k={k}"
