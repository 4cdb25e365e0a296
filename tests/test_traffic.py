"""Predicted traffic: its probabilities against their definition, and its rows against those of batches."""

import numpy as np
import pytest

import fastpart as fp
from fastpart import _core
from fastpart.errors import ParameterError
from sampled import folders, hubs


@pytest.fixture(scope="module")
def topology(tmp_path_factory):
    """Return four parts of a graph with hubs, mapped, and its in-edges as rows."""
    n, records, _ = hubs()
    root = tmp_path_factory.mktemp("traffic") / "parts"
    graph = fp.open_graph(records, num_vertices=n)
    fp.random(graph, 4, of="vertices").save(root, graph=graph)
    topology = _core.Topology(folders(root))
    row = np.argsort(topology.ids_of(np.arange(n, dtype=np.uint32)))
    turned = records[records[:, 0] != records[:, 1]][:, ::-1]
    sources, targets = row[np.concatenate([records, turned])].T
    return topology, sources, targets


def defined(n, sources, targets, seeds, fanouts, num_seeds, batch_size):
    """Return what ``accesses`` means."""
    degrees = np.bincount(targets, minlength=n).clip(1)
    batch_size = min(batch_size, num_seeds)
    present = np.zeros(n)
    present[seeds] = batch_size / num_seeds
    missed = 1 - present
    for fanout in fanouts:
        ratio = np.ones(n) if fanout == -1 else np.minimum(1, fanout / degrees)
        logs = -np.log1p(-np.minimum(ratio * present, 1 - 1e-7))
        present = 1 - np.exp(-np.bincount(sources, logs[targets], minlength=n))
        missed *= 1 - present
    full, rest = divmod(num_seeds, batch_size)
    return full * (1 - missed) + 1 - missed ** (rest / batch_size)


@pytest.mark.parametrize("fanouts", [[], [0], [3], [5, 2], [-1, 4], [4, 3, 2]])
@pytest.mark.parametrize("batch_size", [10, 64, 10_000])
def test_accesses_are_as_defined(topology, fanouts, batch_size):
    topology, sources, targets = topology
    n = topology.num_vertices
    seeds = np.arange(0, n // 4, 7, dtype=np.uint32)
    num_seeds = 4 * len(seeds)
    found = topology.accesses(seeds, fanouts, num_seeds=num_seeds, batch_size=batch_size)
    assert found.dtype == np.float32
    expected = defined(n, sources, targets, seeds, fanouts, num_seeds, batch_size)
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4)


def test_accesses_do_not_depend_on_threads_or_the_order_of_seeds(topology):
    topology = topology[0]
    seeds = np.random.default_rng(0).permutation(topology.num_vertices).astype(np.uint32)[:500]
    found = [
        topology.accesses(
            given, [5, 5], num_seeds=500, batch_size=60, options=fp.options.RunOptions(threads=threads)
        )
        for given, threads in ((seeds, 1), (np.sort(seeds), 3))
    ]
    assert (found[0] == found[1]).all()


def test_more_in_edges_are_more_accesses(topology):
    topology = topology[0]
    seeds = np.arange(100, dtype=np.uint32)
    totals = [
        topology.accesses(seeds, [fanout, fanout], num_seeds=400, batch_size=40) for fanout in (1, 2, 8, -1)
    ]
    for less, more in zip(totals, totals[1:], strict=False):
        assert (less <= more + 1e-4).all()
        assert less.sum() < more.sum()


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"fanouts": [-2]}, "fanouts: -2"),
        ({"batch_size": 0}, "batch_size: 0"),
        ({"seeds": [3000]}, "seeds: the row 3000"),
    ],
)
def test_bad_accesses_are_refused(topology, given, named):
    given = {"seeds": [0], "fanouts": [5], "num_seeds": 10, "batch_size": 2} | given
    seeds = np.array(given.pop("seeds"), np.uint32)
    with pytest.raises(ParameterError, match=named):
        topology[0].accesses(seeds, **given)
