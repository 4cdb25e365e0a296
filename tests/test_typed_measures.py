"""Evaluations of typed graphs, by type of vertices and by relation, against sums that numpy makes."""

import copy
import json
import pickle

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
import oracles
from fastpart.cli import main
from random_typed import random_typed_graph, records_of, typed_graph
from soaked import examples


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return random_typed_graph(tmp_path_factory.mktemp("typed"), seed=1)


def balance(counts):
    return max(counts) * len(counts) / sum(counts) if sum(counts) else 1.0


def assert_rows(frame, expected):
    assert [list(row) for row in expected] == [frame.columns] * len(expected)
    for row, other in zip(frame.rows(named=True), expected, strict=True):
        assert row == pytest.approx(other)


def expected_types(graph, parts, k):
    halos = oracles.halos(records_of(graph).tolist(), parts.tolist(), k)
    rows = []
    for each in graph.types:
        halo = sum(len(halo & set(each.range)) for halo in halos)
        rows.append(
            {
                "type": each.name,
                "vertices": each.n,
                "vertex_balance": balance(
                    [int((parts[each.first :][: each.n] == p).sum()) for p in range(k)]
                ),
                "halo": halo,
                "halo_rf": (each.n + halo) / each.n if each.n else 1.0,
            }
        )
    return rows


def expected_relations(graph, parts, k):
    rows = []
    for each in graph.relations:
        records = records_of(graph)[each.first :][: each.m]
        inner = records[records[:, 0] != records[:, 1]]
        cut = int((parts[inner[:, 0]] != parts[inner[:, 1]]).sum())
        rows.append(
            {
                "relation": each.name,
                "source": each.source,
                "target": each.target,
                "edges": each.m,
                "loops": each.m - len(inner),
                "edges_cut": cut,
                "cut_ratio": cut / len(inner) if len(inner) else 0.0,
                "edge_balance": balance(np.bincount(parts[inner].ravel(), minlength=k).tolist()),
            }
        )
    return rows


@examples(10)
@given(seed=st.integers(0, 2**32 - 1), k=st.sampled_from([1, 2, 7, 64, 70]), data=st.data())
def test_types_and_relations_of_vertex_partitions(tmp_path_factory, seed, k, data):
    rng = np.random.default_rng(seed)
    types = {name: data.draw(st.integers(0, 12), label=name) for name in "abc"}
    relations = {}
    for index in range(data.draw(st.integers(1, 4))):
        source, target = (data.draw(st.sampled_from("abc")) for _ in range(2))
        count = data.draw(st.integers(0, 40)) if types[source] and types[target] else 0
        ends = [rng.integers(max(1, types[end]), size=count) for end in (source, target)]
        relations[f"r{index}"] = (source, target, np.stack(ends, 1))
    graph = typed_graph(tmp_path_factory.mktemp("g"), types, relations)
    parts = rng.integers(k, size=graph.num_vertices)
    found = fp.evaluate(graph, fp.VertexPartition(parts, k), threads=2)
    assert_rows(found.types, expected_types(graph, parts, k))
    assert_rows(found.relations, expected_relations(graph, parts, k))
    assert found.type_balance == found.types["vertex_balance"].max()
    # The rows add up to the measures of the whole graph.
    assert found.types["halo"].sum() == found.parts["halo"].sum()
    assert found.relations["edges_cut"].sum() * 2 == found.parts["edges_cut"].sum()
    assert found.relations["loops"].sum() == found.loops


@examples(10)
@given(seed=st.integers(0, 2**32 - 1), k=st.sampled_from([1, 3, 66, 300]))
def test_types_and_relations_of_edge_partitions(graph, seed, k):
    parts = np.random.default_rng(seed).integers(k, size=graph.num_edges)
    found = fp.evaluate(graph, fp.EdgePartition(parts, k), threads=2)
    records = records_of(graph)
    replicas = oracles.replicas(records.tolist(), parts.tolist(), k)
    touched = set(records.ravel().tolist())
    rows = [
        {
            "type": each.name,
            "vertices": each.n,
            "replicas": (copies := sum(counts := [len(part & set(each.range)) for part in replicas])),
            "rf": copies / len(touched & set(each.range)),
            "replica_balance": balance(counts),
        }
        for each in graph.types
    ]
    assert_rows(found.types, rows)
    balances = [
        balance(np.bincount(parts[each.first :][: each.m], minlength=k).tolist()) for each in graph.relations
    ]
    assert found.relations["edge_balance"].to_list() == pytest.approx(balances)
    assert found.relations["edges"].to_list() == [each.m for each in graph.relations]
    assert found.types["replicas"].sum() == found.parts["replicas"].sum()
    assert "type_balance" not in found.summary.columns


def test_a_plain_graph_has_neither(graph):
    records = records_of(graph)
    plain = fp.open_graph(records, num_vertices=graph.num_vertices)
    for partition in (fp.algorithms.ldg(plain, 4), fp.algorithms.dbh(plain, 4)):
        found = fp.evaluate(plain, partition)
        assert found.types is None
        assert found.relations is None
        assert set(json.loads(found.to_json())) == {"summary", "parts"}
        assert "type_balance" not in found.summary.columns


def test_the_other_measures_stay(graph):
    records = records_of(graph)
    plain = fp.open_graph(records, num_vertices=graph.num_vertices)
    for parts in (
        fp.VertexPartition(np.arange(graph.num_vertices) % 3, 3),
        fp.EdgePartition(np.arange(graph.num_edges) % 3, 3),
    ):
        typed, other = fp.evaluate(graph, parts), fp.evaluate(plain, parts)
        assert typed.parts.select(other.parts.columns).equals(other.parts)
        assert typed.summary.select(other.summary.columns).equals(other.summary)


def test_an_evaluation_is_copied_compared_and_shown(graph):
    one = fp.evaluate(graph, fp.VertexPartition(np.arange(graph.num_vertices) % 3, 3))
    again = pickle.loads(pickle.dumps(one))
    assert again == one == copy.copy(one)
    assert again.relations.equals(one.relations)
    assert one != fp.evaluate(graph, fp.VertexPartition(np.arange(graph.num_vertices) % 2, 2))
    changed = copy.copy(one)
    changed.types = one.types.head(1)
    assert one != changed
    for text in (str(one), one._repr_html_()):
        assert "author" in text
        assert "has_topic" in text
    content = json.loads(one.to_json())
    assert pl.DataFrame(content["types"]).equals(one.types)
    assert pl.DataFrame(content["relations"]).equals(one.relations)


def test_many_relations_are_shortened(tmp_path):
    relations = {f"r{index:03}": ("a", "a", [[0, 1]]) for index in range(60)}
    shown = str(fp.evaluate(typed_graph(tmp_path, {"a": 2}, relations), [0, 1]))
    assert "r000" in shown
    assert "r059" in shown
    assert "r030" not in shown
    assert "... 20 more relations ..." in shown


def test_records_of_other_types_are_refused(tmp_path):
    graph = typed_graph(tmp_path, {"a": 2, "b": 2}, {"r": ("a", "b", [[0, 1]]), "s": ("a", "a", [[0, 1]])})
    np.array([[0, 1], [0, 1]], "<u4").tofile(graph.path)
    with pytest.raises(fp.errors.GraphFormatError, match="'r' leads"):
        fp.evaluate(fp.open_graph(graph.path), [0, 0, 1, 1])


def test_the_result_does_not_depend_on_threads_or_memory(graph):
    parts = fp.VertexPartition(np.arange(graph.num_vertices) % 5, 5)
    assert fp.evaluate(graph, parts, threads=1) == fp.evaluate(graph, parts, threads=3)


def test_the_shell_shows_both(graph, tmp_path, capsys):
    np.save(tmp_path / "parts.npy", np.arange(graph.num_vertices) % 4)
    assert main(["evaluate", str(graph.path), str(tmp_path / "parts.npy")]) == 0
    text = capsys.readouterr().out
    assert "type_balance" in text
    assert "cites" in text
    assert "paper" in text
    assert main(["evaluate", str(graph.path), str(tmp_path / "parts.npy"), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [row["type"] for row in content["types"]] == ["author", "field", "paper"]
    assert [row["relation"] for row in content["relations"]] == ["cites", "has_topic", "writes"]


def test_a_comparison_keeps_and_shows_both(graph, tmp_path):
    made = fp.compare(graph, 3, ["ldg", "dbh"], peers=False)
    assert made.summary["type_balance"].to_list() == [made.outcomes[0].types["vertex_balance"].max(), None]
    assert "type_balance" in str(made)
    made.save(tmp_path / "made.json")
    again = fp.open_comparison(tmp_path / "made.json")
    assert again == made
    assert again.outcomes[1].relations.equals(made.outcomes[1].relations)
    made.report(tmp_path / "made.html")
    page = (tmp_path / "made.html").read_text()
    for heading in ("Vertex partitions by type", "Edge partitions by relation"):
        assert heading in page
    assert "has_topic" in page
    content = json.loads(made.to_json())
    for name, wrong in (("types", 1), ("types", {"type": ["a"]}), ("relations", {"relation": 1})):
        broken = copy.deepcopy(content)
        broken["rows"][0][name] = wrong
        (tmp_path / "broken.json").write_text(json.dumps(broken))
        with pytest.raises(fp.errors.GraphFormatError, match="not a comparison"):
            fp.open_comparison(tmp_path / "broken.json")


@examples(10)
@given(seed=st.integers(0, 2**32 - 1), k=st.sampled_from([1, 2, 5, 70]))
def test_parts_and_splits_of_each_type(graph, seed, k):
    rng = np.random.default_rng(seed)
    parts = rng.integers(k, size=graph.num_vertices)
    halos = oracles.halos(records_of(graph).tolist(), parts.tolist(), k)
    splits = {
        each.name: {
            name: np.flatnonzero(rng.random(each.n) < share) for name, share in (("train", 0.5), ("val", 0.3))
        }
        for each in graph.types[1:]
    }
    found = fp.evaluate(graph, fp.VertexPartition(parts, k), splits=splits)
    for number, each in enumerate(graph.types):
        own = parts[each.first :][: each.n]
        assert found.parts[f"vertices_{each.name}"].to_list() == [int((own == p).sum()) for p in range(k)]
        halo = [len(halos[p] & set(each.range)) for p in range(k)]
        assert found.parts[f"halo_{each.name}"].to_list() == halo
        for name in ("train", "val"):
            ids = splits.get(each.name, {}).get(name, [])
            counts = [int((own[ids] == p).sum()) if len(ids) else 0 for p in range(k)]
            there = f"{name}_{each.name}" in found.parts.columns
            assert there == bool(len(ids))
            row = found.types[f"{name}_balance"][number]
            assert row == pytest.approx(balance(counts)) if there else row is None
            if there:
                assert found.parts[f"{name}_{each.name}"].to_list() == counts
    whole = {
        name: np.concatenate([each.first + splits[each.name][name] for each in graph.types[1:]])
        for name in ("train", "val")
    }
    assert found == fp.evaluate(graph, fp.VertexPartition(parts, k), splits=whole)


def test_splits_of_a_graph_directory_are_measured(tmp_path):
    graph = fp.ingest(fp.generate.typed(tmp_path / "tables", scale=0.001), tmp_path / "graph")
    p = fp.multilevel(graph, 4)
    e = p.evaluate()
    assert e.types["train_balance"].to_list() == [None, None, None, e.train_balance]
    assert e.parts["train"].to_list() == e.parts["train_paper"].to_list() == p.weight_loads.tolist()
    assert e.train_balance == e.weight_balance_paper_train
    p.save(tmp_path / "parts/")
    stored = fp.open_partition(tmp_path / "parts")
    assert fp.evaluate(graph, stored) == e
    assert stored.manifest["summary"]["train_balance"] == e.train_balance
    # Widths and training vertices come from the directory, too.
    t = fp.predict_traffic(p, [5, 5], 100)
    assert t.row_bytes == fp.predict_traffic(stored, [5, 5], 100).row_bytes
    assert t.row_bytes["author"] == 0 < t.row_bytes["paper"]
    assert fp.predict_traffic(stored, [5, 5], 100, exact=False).remote_rows == pytest.approx(
        t.remote_rows, rel=0.05
    )
