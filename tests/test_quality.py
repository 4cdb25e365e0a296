"""How good partitions are, on real graphs: held to the figures measured with a prototype, and to chance."""

import math
import statistics

import numpy as np
import pytest

import fastpart as fp
from soaked import PAIRS, soak

PARTS = (4, 8, 32)

# Halo replication factors of the sequential rule, k = 4, 8, 32.
MEASURED = {"cora": (1.55, 1.69, 1.97), "amazon-computers": (3.22, 5.09, 11.05)}


def halo_rf(edges, part):
    return fp.evaluate(edges, part).summary["halo_rf"][0]


def assert_as_measured(name, edges):
    for k, expected in zip(PARTS, MEASURED[name], strict=True):
        # The figures are rounded; 2 % is more than any rounding.
        assert halo_rf(edges, fp.spring(edges, k, batch=1)) == pytest.approx(expected, rel=0.02), f"k={k}"


@pytest.mark.parametrize("name", MEASURED)
def test_sequential_rule_is_as_good_as_measured(datasets, tmp_path, name):
    assert_as_measured(name, fp.convert(datasets / f"{name}.txt.gz", tmp_path / "g.bin"))


@pytest.mark.parametrize("name", MEASURED)
def test_sequential_rule_is_as_good_as_measured_on_the_sources(real_graphs, name):
    assert_as_measured(name, real_graphs[name])


@PAIRS
def test_parallel_rule_is_as_good_as_the_sequential_one(real_graphs, pairs):
    ratios = {}
    # Below, the default is the sequential rule.
    large = [edges for edges in real_graphs.values() if edges.num_edges >= 2**18]
    for edges, k in pairs(large, PARTS):
        default, sequential = (halo_rf(edges, fp.spring(edges, k, batch=batch)) for batch in (None, 1))
        ratios[edges.path, k] = default / sequential
    assert len(ratios) >= 2
    assert statistics.median(ratios.values()) <= 1.03, ratios


@pytest.mark.parametrize("options", [{}, {"batch": 1}, soak({"passes": 3}), soak({"batch": 4096})], ids=str)
@PAIRS
def test_cap_is_never_exceeded(real_graphs, options, pairs):
    for (name, edges), k in pairs(real_graphs.items(), (2, 3, *PARTS, 100)):
        partition = fp.spring(edges, k, **options)
        assert partition.loads.max() <= partition.cap == math.ceil(1.05 * edges.num_vertices / k), (
            f"{name}, k={k}"
        )


def beats_chance(edges, k):
    """Return whether SPRING is better than the best of some random partitions of equal sizes, by each measure."""
    n = edges.num_vertices
    found = fp.evaluate(edges, fp.spring(edges, k)).summary
    for seed in range(5):
        parts = np.random.default_rng(seed).permutation(n) % k
        random = fp.evaluate(edges, fp.VertexPartition(parts, k)).summary
        if not (
            found["cut_ratio"][0] < random["cut_ratio"][0] and found["halo_rf"][0] < random["halo_rf"][0]
        ):
            return False
    return True


@pytest.mark.parametrize("k", PARTS)
@pytest.mark.parametrize("name", MEASURED)
def test_it_beats_chance_on_clustered_graphs(datasets, tmp_path, name, k):
    assert beats_chance(fp.convert(datasets / f"{name}.txt.gz", tmp_path / "g.bin"), k)


@pytest.mark.parametrize("k", PARTS)
def test_it_beats_chance_on_planted_communities(tmp_path, k):
    assert beats_chance(fp.generate.planted(tmp_path / "g.bin", n=20_000, m=400_000, classes=64, seed=1), k)


def test_it_beats_chance_on_all_real_graphs(real_graphs):
    assert [name for name, edges in real_graphs.items() if not beats_chance(edges, 8)] == []
