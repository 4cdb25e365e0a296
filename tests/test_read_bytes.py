"""Bytes that rows of features read: counted, predicted, and by their definition. And how fast a disk is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart import _core
from sampled import folders, hubs
from soaked import examples

BLOCK, WIDTH = 4096, 90


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Return the topology of three parts, and their files of features of 360 bytes."""
    n, records, _ = hubs()
    root = tmp_path_factory.mktemp("bytes") / "parts"
    features = np.random.default_rng(0).random((n, WIDTH), np.float32)
    graph = fp.open_graph(records, num_vertices=n)
    fp.algorithms.random(graph, 3, of="vertices").save(root, graph=graph, features=features)
    return _core.Topology(folders(root)), [folder / "features.npy" for folder in folders(root)]


def is_direct(files):
    return _core.disk_rates(files, 0.01) is not None


def blocks_of(topology, files, rows):
    """Return the bytes of the distinct blocks of rows."""
    total, starts = 0, topology.starts
    for part, file in enumerate(files):
        head = np.load(file, mmap_mode="r").offset
        wanted = set()
        for row in rows[(rows >= starts[part]) & (rows < starts[part + 1])]:
            first = head + (int(row) - int(starts[part])) * 4 * WIDTH
            wanted |= set(range(first // BLOCK, (first + 4 * WIDTH - 1) // BLOCK + 1))
        total += BLOCK * len(wanted)
    return total


@examples(10)
@given(st.lists(st.integers(0, 2999), max_size=40))
def test_bytes_of_rows_are_those_of_their_blocks(parts, rows):
    topology, files = parts
    rows = np.array(rows, np.uint32)
    for direct in (False, True):
        features = _core.Features(files, topology, direct=direct)
        expected = features.bytes_of(rows)
        if direct and is_direct(files):
            assert expected == blocks_of(topology, files, rows)
        else:
            assert expected == 4 * WIDTH * len(rows)
        assert features.read_bytes() == 0
        features.gather(rows)
        assert (features.read_bytes(), features.read_bytes()) == (expected, 0)


@pytest.mark.parametrize("direct", [False, True])
def test_bytes_of_batches_are_those_of_their_rows(parts, direct):
    topology, files = parts
    features = _core.Features(files, topology, direct=direct)
    sampler = _core.Sampler(topology, [5, 5], seed=1)
    seeds, offsets = np.arange(0, 3000, 7, dtype=np.uint32), np.array([0, 100, 100, 300, 429])
    batches = list(sampler.batches(seeds, offsets, features=features, threads=2))
    assert features.read_bytes() == sum(features.bytes_of(batch.rows) for batch in batches)


def test_rows_that_are_not_here_read_nothing(parts):
    topology, files = parts
    features = _core.Features([files[0], None, files[2]], topology)
    everything = np.arange(3000, dtype=np.uint32)
    first, end = topology.starts[1:3].tolist()
    assert features.bytes_of(everything) == 4 * WIDTH * (3000 - (end - first))
    features.gather(everything)
    assert features.read_bytes() == features.bytes_of(everything)


def test_rates_of_a_disk(parts, tmp_path):
    _, files = parts
    rates = _core.disk_rates(files, 0.05)
    assert rates is None or min(rates) > 0
    (tmp_path / "short").write_bytes(b"1")
    assert _core.disk_rates([tmp_path / "short"], 0.05) is None
    assert _core.disk_rates([], 0.05) is None
    with pytest.raises(FileNotFoundError, match="none"):
        _core.disk_rates([tmp_path / "none"], 0.05)
    with pytest.raises(fp.errors.ParameterError, match="seconds: NaN is no time"):
        _core.disk_rates(files, float("nan"))
