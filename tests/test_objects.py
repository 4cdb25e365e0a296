"""Results follow the protocols of their ecosystem: arrays, tables, notebooks, values that compare and pickle."""

import copy
import os
import pickle
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import polars as pl
import pytest

import fastpart as fp
from strategies import raw

GRAPH = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3]])


@pytest.fixture
def parts(tmp_path):
    """The stored partition of the graph."""
    fp.spring(GRAPH, k=2).save(tmp_path / "parts", graph=GRAPH, features=np.eye(6))
    return fp.open_partition(tmp_path / "parts")


def results():
    """One of each that is an array, with its column."""
    return [
        (fp.spring(GRAPH, k=2), "part"),
        (fp.algorithms.dbh(GRAPH, k=3), "part"),
        (fp.VertexPartition([0, 1, 1], k=2), "part"),
        (fp.cluster(GRAPH), "cluster"),
    ]


# Arrays and tables.


@pytest.mark.parametrize(("result", "column"), results())
def test_results_are_arrays_and_tables(result, column):
    assignment = result.assignment
    assert np.asarray(result) is assignment
    assert np.asarray(result, dtype=np.int64).dtype == np.int64
    copied = np.array(result)
    assert copied.flags.writeable
    assert not np.shares_memory(copied, assignment)
    assert np.array_equal(np.from_dlpack(result), assignment)
    frame = pl.DataFrame(result)
    assert frame.columns == [column]
    assert frame[column].to_list() == assignment.tolist()


def test_dlpack_says_what_consumers_may_do():
    p = fp.spring(GRAPH, k=2)
    assert p.__dlpack_device__() == (1, 0)
    legacy = np.from_dlpack(Capsule(p.__dlpack__()))  # who cannot be told that it is read-only
    assert not np.shares_memory(legacy, p.assignment)
    with pytest.raises(BufferError, match="read-only"):
        p.__dlpack__(copy=False)
    with pytest.raises(BufferError, match="not on device"):
        p.__dlpack__(dl_device=(2, 0))
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        shared = np.from_dlpack(Capsule(p.__dlpack__(max_version=(1, 0), copy=False)))
        assert np.shares_memory(shared, p.assignment)
        assert not shared.flags.writeable
        for copy in (True, None):
            copied = np.from_dlpack(Capsule(p.__dlpack__(max_version=(1, 0), copy=copy)))
            assert not np.shares_memory(copied, p.assignment)


class Capsule:
    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


@pytest.mark.torch
def test_torch_takes_partitions():
    import torch

    p = fp.spring(GRAPH, k=2)
    tensor = torch.from_dlpack(p)
    before = p.assignment.tolist()
    tensor += 1
    assert p.assignment.tolist() == before == (tensor.numpy() - 1).tolist()


def test_measures_are_tables():
    evaluation = fp.evaluate(GRAPH, fp.spring(GRAPH, k=2))
    assert pl.DataFrame(evaluation).equals(evaluation.parts)
    comparison = fp.compare(GRAPH, k=2, algorithms=["spring", "dbh"])
    assert pl.DataFrame(comparison).equals(comparison.summary)


# Measures.


def test_a_clustering_is_evaluated():
    clusters = fp.cluster(GRAPH)
    assert fp.evaluate(GRAPH, clusters).cut_ratio == pytest.approx(1 / 7)
    many = np.array([0] * 5 + [2**20])
    with pytest.raises(
        fp.errors.ParameterError, match="largest part or cluster is 1048576, but at most 1048576 can"
    ):
        fp.evaluate(GRAPH, many)


def test_partitions_measure_themselves(tmp_path):
    p = fp.spring(GRAPH, k=2)
    assert p.cut_ratio == p.evaluate().cut_ratio == fp.evaluate(GRAPH, p).summary["cut_ratio"][0]
    assert p.evaluate(splits={"train": [0, 1]}, labels=[0] * 6).train_balance >= 1
    edges = fp.algorithms.dbh(GRAPH, k=2)
    assert edges.rf == edges.evaluate().summary["rf"][0] == fp.evaluate(GRAPH, edges).rf
    assert fp.home_parts(GRAPH, edges).cut_ratio >= 0
    assert fp.algorithms.custom(GRAPH, 2, [0, 0, 0, 1, 1, 1]).cut_ratio == pytest.approx(1 / 7)
    p.save(tmp_path / "p.npy")
    alone = fp.open_partition(tmp_path / "p.npy")
    with pytest.raises(fp.FastpartError, match=r"fp\.evaluate\(graph, p\)"):
        alone.evaluate()
    with pytest.raises(fp.FastpartError, match=r"fp\.evaluate\(graph, p\)"):
        _ = alone.cut_ratio
    assert fp.open_partition(tmp_path / "p.npy", graph=GRAPH).cut_ratio == p.cut_ratio


def test_the_graph_is_kept_by_reference():
    graph = fp.open_graph(GRAPH)
    assert fp.spring(graph, k=2).graph is graph
    array = GRAPH.copy()
    p = fp.spring(array, k=2)
    array[0] = 5, 5
    with pytest.raises(fp.errors.GraphFormatError, match="belongs to another graph"):
        p.evaluate()


def test_measures_are_attributes():
    evaluation = fp.evaluate(GRAPH, fp.spring(GRAPH, k=2))
    for name in evaluation.summary.columns:
        assert getattr(evaluation, name) == evaluation.summary[name][0]
        assert name in dir(evaluation)
    assert "to_json" in dir(evaluation)
    assert not hasattr(evaluation, "rf")
    with pytest.raises(AttributeError, match=r"'cut'. The measures are of, algorithm, k, .*cut_ratio"):
        _ = evaluation.cut


# Notebooks.


def test_pages_are_small_and_escaped(parts):
    comparison = fp.compare(GRAPH, k=2, algorithms=["spring", "dbh"])
    named = fp.algorithms.custom(GRAPH, 2, [0, 0, 0, 1, 1, 1], name="<script>")
    shown = [
        *(result for result, _ in results()),
        fp.open_graph(GRAPH),
        named,
        named.evaluate(),
        comparison,
        parts,
        parts.parts,
        parts.parts[1],
    ]
    for value in shown:
        page = value._repr_html_()
        assert page.startswith("<div>")
        assert len(page) < 4000
        assert "<script" not in page
        assert "http" not in page
        assert "color" not in page
    assert "&lt;script&gt;" in named._repr_html_()
    assert "<th>cut_ratio</th>" in comparison._repr_html_()
    assert "<th>halo</th>" in named.evaluate()._repr_html_()
    many = fp.VertexPartition(np.arange(100), k=100)
    assert "<td>...</td>" in fp.evaluate(np.array([[0, 99]]), many)._repr_html_()


# Values.


def test_equal_values(parts):
    p = fp.spring(GRAPH, k=2)
    assert p == fp.VertexPartition(p.assignment, k=2) == parts
    assert p != fp.VertexPartition(p.assignment, k=3)
    assert p != fp.VertexPartition(1 - p.assignment, k=2)
    assert fp.VertexPartition([0, 1], k=2) != fp.EdgePartition([0, 1], k=2)
    assert p != p.assignment.tolist()
    assert fp.cluster(GRAPH) == fp.cluster(GRAPH)
    assert p.evaluate() == fp.evaluate(GRAPH, p) != fp.evaluate(GRAPH, fp.algorithms.random(GRAPH, k=3))
    assert parts.parts[0] == parts.parts[0] != parts.parts[1]
    assert parts.parts == parts.parts
    for value in (p, p.evaluate(), parts.parts, parts.parts[0]):
        with pytest.raises(TypeError, match="unhashable"):
            hash(value)


def test_equal_parts_of_two_folders(parts, tmp_path):
    for name, features in (("same", np.eye(6)), ("other", 2 * np.eye(6))):
        fp.spring(GRAPH, k=2).save(tmp_path / name, graph=GRAPH, features=features)
    assert fp.open_partition(tmp_path / "same").parts == parts.parts
    assert fp.open_partition(tmp_path / "other").parts != parts.parts
    edges = fp.algorithms.dbh(GRAPH, k=2)
    for name in ("a", "b"):
        edges.save(tmp_path / name, graph=GRAPH)
    assert fp.open_partition(tmp_path / "a").parts == fp.open_partition(tmp_path / "b").parts != parts.parts


def test_equal_graphs(tmp_path):
    file = fp.open_graph(raw(tmp_path / "g.bin", GRAPH), num_vertices=6)
    array = fp.open_graph(GRAPH)
    assert file == array
    assert hash(file) == hash(array)
    assert array != fp.open_graph(GRAPH, num_vertices=7)
    assert array != fp.open_graph(GRAPH[::-1])
    assert array != fp.open_graph(GRAPH, directedness="directed")
    assert array != 3


def test_equal_comparisons(tmp_path):
    comparison = fp.compare(GRAPH, k=2, algorithms=["spring", "dbh"])
    comparison.save(tmp_path / "c.json")
    assert fp.open_comparison(tmp_path / "c.json") == pickle.loads(pickle.dumps(comparison)) == comparison
    assert comparison != fp.compare(GRAPH, k=3, algorithms=["spring", "dbh"])


# Pickles.


def arrays(value):
    return {name: array for name, array in vars(value).items() if isinstance(array, np.ndarray)}


@pytest.mark.parametrize("protocol", [2, 5])
@pytest.mark.parametrize("result", [result for result, _ in results()])
def test_unpickled_results_stay_read_only(result, protocol):
    for again in (pickle.loads(pickle.dumps(result, protocol)), copy.deepcopy(result)):
        assert again == result
        assert repr(again) == repr(result)
        assert arrays(again).keys() == arrays(result).keys()
        assert not any(array.flags.writeable for array in arrays(again).values())


def test_pickles_of_mapped_and_stored_partitions(parts, tmp_path, monkeypatch):
    mapped = fp.algorithms.dbh(GRAPH, k=2, out=tmp_path / "e.npy")
    assert mapped.rf >= 1
    again = pickle.loads(pickle.dumps(mapped))
    assert again == mapped
    assert again.graph is None
    assert type(again.assignment) is np.ndarray
    monkeypatch.chdir(tmp_path)
    data = pickle.dumps(fp.open_partition("parts"))
    listed = pickle.dumps(fp.open_partition("parts").parts)
    monkeypatch.chdir("/")
    again = pickle.loads(data)
    assert (again.folder, again.manifest) == (parts.folder, parts.manifest)
    assert again.parts[1].features.argmax(axis=1).tolist() == parts.parts[1].inner.tolist()
    assert pickle.loads(listed) == parts.parts
    part = parts.parts[0]
    assert part.features is not None  # mapped, and not in the pickle
    assert len(pickle.dumps(part)) < 4000
    assert pickle.loads(pickle.dumps(part)) == part


def test_pickled_evaluations():
    evaluation = fp.spring(GRAPH, k=2).evaluate()
    again = pickle.loads(pickle.dumps(evaluation))
    assert again == evaluation
    assert again.cut_matrix.tolist() == evaluation.cut_matrix.tolist()
    assert copy.copy(evaluation).cut_ratio == evaluation.cut_ratio


def test_a_graph_of_an_array_pickles_its_records():
    graph = fp.open_graph(GRAPH, num_vertices=9, directedness="directed")
    assert pickle.loads(pickle.dumps(graph)) == graph
    empty = fp.open_graph(np.empty((0, 2), int), num_vertices=3)
    assert pickle.loads(pickle.dumps(empty)) == empty


@pytest.mark.parametrize("name", ["g.bin", "g.npy"])
def test_a_graph_in_a_file_pickles_its_path(tmp_path, monkeypatch, name):
    records = np.repeat(GRAPH, 100, axis=0).astype("<u8")
    np.save(tmp_path / name, records.T.copy()) if name == "g.npy" else raw(tmp_path / name, records, "<u8")
    monkeypatch.chdir(tmp_path)
    dtype = None if name == "g.npy" else "u64"
    graph = fp.open_graph(name, dtype=dtype, num_vertices=8, directedness="symmetric", io="read")
    data = pickle.dumps(graph)
    assert len(data) < 600
    monkeypatch.chdir("/")
    again = pickle.loads(data)
    assert again == graph
    assert again.path == tmp_path / name


def test_a_changed_file_is_not_the_pickled_graph(tmp_path):
    file = raw(tmp_path / "g.bin", GRAPH)
    graph = fp.open_graph(file, num_vertices=6)
    unread = pickle.dumps(graph)
    graph.identify()
    known = pickle.dumps(graph)
    os.utime(file, ns=(0, 0))
    assert pickle.loads(known).identify() == fp.open_graph(GRAPH).identify()  # read again, and the same
    with pytest.raises(
        fp.errors.EdgeFileChangedError, match=r"written since.*Open it again by fp\.open_graph"
    ):
        pickle.loads(unread)
    raw(file, GRAPH[::-1])
    with pytest.raises(
        fp.errors.EdgeFileChangedError, match="the records changed after the graph was pickled"
    ):
        pickle.loads(known)
    raw(file, GRAPH[:3])
    with pytest.raises(fp.errors.EdgeFileChangedError, match="24 bytes, then 56"):
        pickle.loads(known)
    file.unlink()
    with pytest.raises(FileNotFoundError, match=r"g\.bin"):
        pickle.loads(known)


SPAWNING = """
import multiprocessing, sys
import fastpart as fp

def loads_of(graph, p):
    return fp.spring(graph, k=2).loads.tolist(), p.loads.tolist()

if __name__ == "__main__":
    graph = fp.open_graph(sys.argv[1], num_vertices=6)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(loads_of, (graph, fp.spring(graph, k=2))) == ([3, 3], [3, 3])
"""


def test_spawned_processes_get_graphs_and_partitions(tmp_path):
    # In a process of its own: a pool leaves a tracker of resources behind, a child that other tests would count.
    (tmp_path / "spawning.py").write_text(SPAWNING)
    subprocess.run([sys.executable, tmp_path / "spawning.py", raw(tmp_path / "g.bin", GRAPH)], check=True)


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed")
def test_loading_without_torch_says_what_to_install():
    for call in (lambda: fp.VertexPartition([0], 1).loader(fanouts=[1]), lambda: fp.pyg):
        with pytest.raises(ModuleNotFoundError, match="is not installed: pip install 'fastpart"):
            call()
