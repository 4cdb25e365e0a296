"""Edges of several relations split before partitioning, and the splits in the parts of a typed graph."""

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from random_typed import records_of
from soaked import examples
from typed_graphs import authors, typed_graphs


def triples_of(graph):
    """Return source, target and relation of each record."""
    numbers = np.repeat(np.arange(len(graph.relations)), [each.m for each in graph.relations])
    return np.column_stack([records_of(graph), numbers])


def said(graph, triple):
    """Return a triple, whatever the direction if its relation takes both for one."""
    u, v, r = map(int, triple)
    return (r, *sorted((u, v))) if graph.relations[r].reverse == "merged" else (r, u, v)


def check_parts(typed, graph, splits, kept, opened):
    """Compare the splits in the parts with the records that were kept and those that were not."""
    expected = {"val": splits.val.tolist(), "test": splits.test.tolist()}
    expected["train"] = list({said(graph, each): each for each in reversed(kept)}.values())
    assignment = np.asarray(typed.parts, int)
    for split, triples in expected.items():
        found = [getattr(part, f"edge_{split}") for part in opened.parts]
        assert Counter(map(tuple, np.concatenate(found).tolist())) == Counter(map(tuple, triples))
        for part, pairs in zip(opened.parts, found, strict=True):
            assert (assignment[pairs[:, 1]] == part.index).all()
            assert pairs[:, [1, 0, 2]].tolist() == sorted(pairs[:, [1, 0, 2]].tolist())
    m = splits.graph.num_edges
    for part in opened.parts:
        edges = zip(*part.in_edges(), part.relations, part.edge_reverse, strict=True)
        for u, v, edge, number, other in edges:
            reverse = part.edge_types[number].relation.reverse
            loop = reverse == "merged" and u == v
            assert other == (-1 if not reverse else edge if loop else (edge + m) % (2 * m))


@examples(10)
@given(typed_graphs(), st.floats(0, 0.5), st.floats(0, 0.49), st.integers(0, 3), st.sampled_from([1, 2]))
def test_each_record_is_in_one_split_and_each_pair_in_the_part_of_its_target(typed, val, test, seed, hops):
    with tempfile.TemporaryDirectory() as folder:
        graph = typed.graph(folder)
        splits = fp.split_edges(graph, val, test, seed=seed)
        assert [(each.name, each.reverse) for each in splits.graph.relations] == [
            (each.name, each.reverse) for each in graph.relations
        ]
        held = {said(graph, each) for each in (*splits.val, *splits.test)}
        assert len(held) == len(splits.val) + len(splits.test)
        kept = [each for each in triples_of(graph).tolist() if said(graph, each) not in held]
        assert kept == triples_of(splits.graph).tolist()
        assert held <= {said(graph, each) for each in triples_of(graph)}
        p = fp.VertexPartition(typed.parts, typed.k)
        p.save(f"{folder}/parts", graph=splits.graph, edge_splits=splits, halo_hops=hops)
        check_parts(typed, graph, splits, kept, fp.open_partition(f"{folder}/parts"))


@examples(10)
@given(typed_graphs(), st.data())
def test_pairs_of_a_user_are_held_out_and_no_others(typed, data):
    with tempfile.TemporaryDirectory() as folder:
        graph = typed.graph(folder)
        distinct = list({said(graph, each): each for each in triples_of(graph).tolist()}.values())
        chosen = data.draw(st.lists(st.integers(0, 2), min_size=len(distinct), max_size=len(distinct)))
        held = [
            np.array([each for each, of in zip(distinct, chosen, strict=True) if of == split]).reshape(-1, 3)
            for split in (0, 1)
        ]
        held = [each.astype(int) for each in held]
        splits = fp.split_edges(graph, val=held[0], test=held[1])
        np.testing.assert_array_equal(splits.val, held[0])
        np.testing.assert_array_equal(splits.test, held[1])
        away = {said(graph, each) for each in (*held[0], *held[1])}
        kept = [each for each in triples_of(graph).tolist() if said(graph, each) not in away]
        assert kept == triples_of(splits.graph).tolist()
        again = fp.split_edges(splits.graph, val=held[0], test=held[1])  # the training records alone will do
        assert again.graph == splits.graph


def test_plain_pairs_of_a_user_are_held_out():
    ring = np.array([[v, (v + 1) % 6] for v in range(6)])
    splits = fp.split_edges(ring, val=[[1, 0]], test=[[3, 4], [4, 5]])
    assert records_of(splits.graph).tolist() == [[1, 2], [2, 3], [5, 0]]
    assert splits.val.tolist() == [[1, 0]]


def test_a_file_and_names_of_relations_will_do(tmp_path):
    graph = authors().graph(tmp_path)
    by_name = {"cites": [[5, 6]], "writes": [[0, 5], [1, 6]]}
    splits = fp.split_edges(graph, val={}, test=by_name, out=tmp_path / "train.bin")
    assert splits.test.tolist() == [[5, 6, 1], [0, 5, 4], [1, 6, 4]]
    assert splits.graph.path == tmp_path / "train.bin"
    assert [each.m for each in splits.graph.relations] == [4, 2, 3, 2, 3]  # both records of 5 cites 6 are out
    assert splits.graph == fp.split_edges(graph, val={}, test=by_name).graph
    p = fp.VertexPartition(authors().parts, 2)
    for name, held in (("a", splits), ("b", tmp_path / "train.bin.splits.npz"), ("c", {"test": by_name})):
        p.save(tmp_path / name, graph=splits.graph, edge_splits=held)
        part = fp.open_partition(tmp_path / name).parts[0]
        np.testing.assert_array_equal(part.edge_test, [[0, 5, 4]])
    assert fp.store.verify(tmp_path / "a").foreign == ()


def test_triples_of_a_table_are_held_out_by_their_names(tmp_path):
    """As the guide shows it."""
    columns = {"head": ["eve", "bob", "bob", "ann"], "relation": ["knows", "knows", "likes", "likes"]}
    triples = pl.DataFrame({**columns, "tail": ["ann", "eve", "ann", "eve"]})
    every = {
        "files": triples,
        "source": {"entity": "head"},
        "target": {"entity": "tail"},
        "relation": "relation",
    }
    schema = {"directedness": "directed", "vertices": {"entity": {}}, "relations": {"*": every}}
    graph = fp.ingest(schema, tmp_path / "graph")
    vertex = dict(pl.read_parquet(tmp_path / "graph/ids/entity.parquet").select("id", "vertex").iter_rows())
    held = {
        name: [[vertex[h], vertex[t]] for h, _, t in rows.iter_rows()]
        for (name,), rows in triples[1:3].group_by("relation")
    }
    splits = fp.split_edges(graph, val={}, test=held)
    assert sorted(splits.test.tolist()) == [[1, 0, 1], [1, 2, 0]]
    assert triples_of(splits.graph).tolist() == [[2, 0, 0], [0, 2, 1]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"val": 0.1, "test": [[0, 5, 4]]}, "val, test: one is a share"),
        ({"val": [[0, 5]], "test": {}}, r"val: expected pairs of ids, with the number of the relation"),
        ({"val": [[0, 9, 4]], "test": {}}, "val: ids must be from 0 to 8"),
        (
            {"val": [[0, 5, 5]], "test": {}},
            "val: numbers of relations, in the third column, must be from 0 to 4",
        ),
        (
            {"val": [[5, 6, 4]], "test": {}},
            r"val: the pair \(5, 6\) is of 'writes', but 5 is no vertex of type 'author'",
        ),
        (
            {"val": {"wrote": [[0, 5]]}, "test": {}},
            r"val: 'wrote' is no relation of the graph. Did you mean 'writes'",
        ),
        ({"val": {"writes": [0, 5]}, "test": {}}, "val: writes: expected pairs of ids"),
        ({"val": [[0, 5, 4], [0, 5, 4]], "test": {}}, "val: a pair occurs more than once"),
        ({"val": [[6, 5, 1]], "test": [[5, 6, 1]]}, r"val and test both hold the pair \(6, 5, 1\)"),
    ],
)
def test_refused_pairs(tmp_path, given, message):
    with pytest.raises(fp.errors.ParameterError, match=message):
        fp.split_edges(authors().graph(tmp_path), **given)


def test_pairs_of_the_graph_are_no_held_out_ones(tmp_path):
    graph = authors().graph(tmp_path)
    p = fp.VertexPartition(authors().parts, 2)
    with pytest.raises(
        fp.errors.ParameterError, match=r"held-out pair \(0, 5\) is an edge 'writes' of the graph"
    ):
        p.save(tmp_path / "parts", graph=graph, edge_splits={"val": [[0, 5, 4]]})
    p.save(tmp_path / "parts", graph=graph, edge_splits={"val": [[1, 7, 4]]})  # another relation may hold it
    with pytest.raises(fp.errors.ParameterError, match="edge_splits: val: expected pairs of ids"):
        p.save(tmp_path / "more", graph=graph, edge_splits={"val": [[1, 7]]})


@pytest.mark.parametrize("column", [0, 1, 2])
def test_damaged_pairs_are_refused(tmp_path, column):
    graph = authors().graph(tmp_path)
    fp.VertexPartition(authors().parts, 2).save(tmp_path / "parts", graph=graph, edge_splits={"val": {}})
    file = Path(tmp_path, "parts", "part-00000", "edge_train.npy")
    pairs = np.load(file)
    pairs[0, column] = [3, 4, 1][column]
    np.save(file, pairs)
    with pytest.raises(fp.errors.GraphFormatError, match="edge_train"):
        assert fp.open_partition(tmp_path / "parts").parts[0].edge_train is None
