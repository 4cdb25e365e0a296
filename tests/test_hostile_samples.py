"""Samples of what is wrong, damaged, or changes while it is mapped: refused by name, and nothing is indexed by it."""

import os
import shutil

import numpy as np
import pytest

from fastpart import _core
from fastpart.errors import GraphFormatError, ParameterError
from sampled import folders, hubs, opened, store


@pytest.fixture(scope="module")
def graph():
    return hubs()


@pytest.fixture(scope="module")
def stored(graph, tmp_path_factory):
    return store(graph, tmp_path_factory.mktemp("stored"))


def test_refused(graph, stored):
    n, records, _ = graph
    topology, features = opened(stored, "random")
    rows = np.array([1, 2], np.uint32)
    sampler = _core.Sampler(topology, [3])
    with pytest.raises(ParameterError, match=r"fanouts: expected -1 \(all\) or at least 0, got -2"):
        _core.Sampler(topology, [-2])
    with pytest.raises(
        ParameterError, match=r'kind: unknown value "best"\. Known are uniform, weighted, labor'
    ):
        _core.Sampler(topology, [2], kind="best")
    with pytest.raises(ParameterError, match='weights: kind="weighted" needs them'):
        _core.Sampler(topology, [2], kind="weighted")
    with pytest.raises(ParameterError, match='weights: only kind="weighted" takes them'):
        _core.Sampler(topology, [2], weights=np.ones(len(records)))
    for bad in (-1.0, np.nan, np.inf):
        weights = np.ones(len(records))
        weights[3] = bad
        with pytest.raises(ParameterError, match="record 3 has the weight"):
            _core.Sampler(topology, [2], kind="weighted", weights=weights)
    with pytest.raises(TypeError, match="weights: expected contiguous float32 or float64"):
        _core.Sampler(topology, [2], kind="weighted", weights=np.ones(len(records), int))
    few = _core.Sampler(topology, [2], kind="weighted", weights=np.ones(5))
    with pytest.raises(ParameterError, match="weights: 5 for the records of a graph that has the edge"):
        few.sample(rows)
    for call in (sampler.sample, topology.subgraph, features.gather, topology.ids_of, topology.degrees_of):
        with pytest.raises(ParameterError, match=f"the row {n} is outside 0..{n}"):
            call(np.array([0, n], np.uint32))
    with pytest.raises(ParameterError, match=f"roots: the row {n}"):
        topology.walks(np.array([n], np.uint32), 3, seed=0)
    with pytest.raises(ParameterError, match=r"seeds: vertex \d+ occurs twice in a batch"):
        sampler.sample(np.array([5, 6, 5], np.uint32))
    with pytest.raises(ParameterError, match=f"ids: no part holds the vertex {n}"):
        topology.rows_of(np.array([0, n]))
    for offsets in ([0, 1], [0, 2, 1, 2], [1, 2], []):
        with pytest.raises(ParameterError, match="offsets: expected numbers that ascend from 0 to 2"):
            sampler.batches(rows, np.array(offsets, np.int64))
    with pytest.raises(ParameterError, match="files: 1 files for 4 parts"):
        _core.Features([None], topology)
    with pytest.raises(ParameterError, match="files: no part has features"):
        _core.Features([None] * 4, topology)
    # An error takes the place of its batch, and ends the epoch.
    batches = sampler.batches(np.array([1, 2, 3, 3, 4], np.uint32), np.array([0, 2, 4, 5]), ahead=2)
    next(batches)
    with pytest.raises(ParameterError, match="twice"):
        next(batches)
    assert list(batches) == []
    assert len(sampler.sample(rows).n_id) > 2


@pytest.mark.parametrize(
    "name", ["vertices", "indptr", "indices", "edge_ids", "halo_parts", "halo_rows", "features"]
)
def test_damaged_parts_are_refused(stored, tmp_path, name):
    """Of a file that is cut, of another type, or gone, when it is opened."""

    def copied():
        shutil.rmtree(tmp_path / "parts", ignore_errors=True)
        shutil.copytree(stored / "random", tmp_path / "parts")
        return folders(tmp_path / "parts")[1] / f"{name}.npy"

    def open_all():
        return opened(tmp_path, "parts")

    file = copied()
    with file.open("r+b") as cut:
        cut.truncate(file.stat().st_size - 3)
    with pytest.raises(GraphFormatError, match=f"{name}.npy: .* bytes do not hold the shape"):
        open_all()
    array = np.load(copied())
    np.save(file, array.astype(np.float64))
    with pytest.raises(GraphFormatError, match="dtype <f8"):
        open_all()
    np.save(copied(), array[: 5 if name == "vertices" else -1])
    with pytest.raises(GraphFormatError, match=r"contradict each other|rows of dtype"):
        open_all()
    file = copied()
    file.write_bytes(b"nothing")
    with pytest.raises(GraphFormatError, match=r"no .npy magic"):
        open_all()
    os.unlink(file)
    if name == "halo_rows":
        assert open_all()[0].num_vertices == 3000
    else:
        with pytest.raises(FileNotFoundError):
            open_all()


@pytest.mark.parametrize(
    ("name", "value"), [("halo_parts", 4), ("halo_parts", -1), ("halo_rows", 2**31 - 1), ("halo_rows", -1)]
)
def test_halos_that_name_no_vertex_are_refused(stored, tmp_path, name, value):
    """When they are opened. What changes under the map later is not read."""
    shutil.copytree(stored / "random", tmp_path / "parts")
    topology, _ = opened(tmp_path, "parts")
    rows = np.arange(topology.num_vertices, dtype=np.uint32)
    before = _core.Sampler(topology, [4, 4], seed=1).sample(rows).n_id.copy()
    array = np.load(folders(tmp_path / "parts")[2] / f"{name}.npy", mmap_mode="r+")
    array[1:-1] = value
    array.flush()
    what = "halo_parts.npy: a vertex of the halo that its owner does not hold"
    with pytest.raises(GraphFormatError, match=what):
        opened(tmp_path, "parts")
    assert np.array_equal(_core.Sampler(topology, [4, 4], seed=1).sample(rows).n_id, before)


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("indices", 2**31 - 1, "indices.npy: a local id of no vertex"),
        ("indices", -1, "indices.npy: a local id of no vertex"),
        ("indptr", -5, "indptr.npy: offsets that do not ascend"),
        ("indptr", 2**62, "indptr.npy: offsets that do not ascend"),
    ],
)
@pytest.mark.parametrize("kind", ["uniform", "labor"])
def test_values_that_change_under_the_map_are_refused(stored, tmp_path, name, value, what, kind):
    """Nothing is indexed by them. Another sample of the same sampler works once they are mended."""
    shutil.copytree(stored / "random", tmp_path / "parts")
    file = folders(tmp_path / "parts")[2] / f"{name}.npy"
    topology, _ = opened(tmp_path, "parts")
    sampler = _core.Sampler(topology, [4, 4], kind=kind, seed=1)
    rows = np.arange(topology.num_vertices, dtype=np.uint32)
    before = sampler.sample(rows).n_id.copy()
    array = np.load(file, mmap_mode="r+")
    whole = array.copy()
    array[1:-1] = value
    array.flush()
    for call in (sampler.sample, lambda rows: next(sampler.batches(rows, np.array([0, len(rows)])))):
        with pytest.raises(GraphFormatError, match=what):
            call(rows)
    array[:] = whole
    array.flush()
    assert np.array_equal(sampler.sample(rows).n_id, before)
