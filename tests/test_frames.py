"""Results as frames, with the ids that the user has."""

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import fastpart as fp
from fastpart.errors import FastpartError

IDS = [f"n{v:02}" for v in range(40)]
EDGES = pl.DataFrame({"source": IDS[::-1], "target": IDS[3:] + IDS[:3]})


@pytest.fixture(scope="module")
def graph():
    return fp.open_graph(EDGES)


def test_a_partition_has_the_ids_of_the_frame(graph):
    partition = fp.spring(graph, 3)
    found = partition.to_frame()
    assert found.columns == ["id", "part"]
    assert found.equals(fp.store.restore(partition, graph=graph))
    assert dict(found.rows())["n07"] == partition.assignment[IDS.index("n07")]


def test_a_directory_has_them_too(graph, tmp_path):
    stored = fp.spring(graph, 3).save(tmp_path / "parts")
    opened = fp.open_partition(tmp_path / "parts")
    assert opened.to_frame().equals(stored.to_frame())
    assert opened.to_frame()["id"].to_list() == IDS


def test_records_have_the_ids_of_both_ends(graph):
    partition = fp.algorithms.hdrf(graph, 3)
    found = partition.to_frame()
    assert found.select("source", "target").equals(EDGES)
    assert found["part"].to_list() == partition.assignment.tolist()


def test_types_stand_before_ids(tmp_path):
    buys = pl.DataFrame({"who": ["ann", "bob"], "what": [7, 5]})
    ends = {"source": {"user": "who"}, "target": {"item": "what"}}
    schema = {"vertices": {"user": {}, "item": {}}, "relations": {"buys": {"files": buys, **ends}}}
    graph = fp.ingest(schema, tmp_path / "graph")
    rows = [("item", "5", 0), ("item", "7", 0), ("user", "ann", 0), ("user", "bob", 0)]
    assert fp.multilevel(graph, k=1).to_frame().rows() == rows
    parts = fp.algorithms.hdrf(graph, k=1).to_frame()
    assert parts.rows() == [("ann", "7", 0), ("bob", "5", 0)]


def test_without_ids_vertices_and_records_are_numbered():
    assert fp.VertexPartition([1, 0], 2).to_frame().rows() == [(0, 1), (1, 0)]
    assert fp.EdgePartition([1, 0], 2).to_frame().rows() == [(0, 1), (1, 0)]
    ring = np.array([[v, (v + 1) % 4] for v in range(4)])
    assert fp.spring(ring, 1).to_frame()["id"].to_list() == [0, 1, 2, 3]


def test_clusters_and_orders_have_them(graph, tmp_path):
    clusters = fp.cluster(graph)
    assert clusters.to_frame().rows() == list(zip(IDS, clusters.assignment.tolist(), strict=True))
    order = fp.order(graph, out=tmp_path / "ordered.bin")
    places = dict(order.to_frame().rows())
    assert [IDS[old] for old in order.ids] == sorted(IDS, key=places.get)


def test_measures_are_tables(graph):
    partition = fp.spring(graph, 2)
    measures = partition.evaluate()
    assert measures.to_frame() is measures.parts
    traffic = fp.predict_traffic(partition, [2], graph=graph, splits={"train": np.arange(40)})
    assert traffic.to_frame() is traffic.parts
    compared = fp.compare(graph, 2, ["spring"])
    assert compared.to_frame().equals(compared.summary)


def test_pandas_gets_the_same(graph):
    pytest.importorskip("pandas")
    partition = fp.spring(graph, 2)
    found = partition.to_pandas()
    assert found.to_dict("list") == partition.to_frame().to_dict(as_series=False)
    assert partition.evaluate().to_pandas()["vertices"].tolist() == partition.loads.tolist()


def test_without_pandas_the_refusal_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        FastpartError, match=r"^to_pandas: pandas is not installed\. Install it, or use to_frame"
    ):
        fp.VertexPartition([0, 1], 2).to_pandas()


def test_frames_of_pandas_need_no_pyarrow(tmp_path):
    pytest.importorskip("pandas")
    code = f"""
import sys
sys.modules["pyarrow"] = None
import pandas, fastpart as fp
edges = pandas.DataFrame({{"a": ["x", "y", "z"], "b": ["y", "z", "x"]}})
ends = {{"source": {{"v": "a"}}, "target": {{"v": "b"}}}}
schema = {{"vertices": {{"v": {{}}}}, "relations": {{"e": {{"files": edges, **ends}}}}}}
graph = fp.ingest(schema, {str(tmp_path / "g")!r})
print(fp.multilevel(graph, k=1).to_pandas()["id"].tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "['x', 'y', 'z']\n", done.stderr
