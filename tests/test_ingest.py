"""Ingest against an oracle of ten lines."""

import json
import os
import pickle

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.core.pairs import mixed
from fastpart.graphs import graph_directory
from fastpart.graphs.ingest import ingest
from fastpart.graphs.ingest.stages import attributes
from ingest_tables import oracle, pairs_of, plain, small, write
from soaked import examples

TYPES = {
    "string": (pl.String, st.text(max_size=14)),
    "long string": (pl.String, st.text(min_size=11, max_size=20)),
    "int64": (pl.Int64, st.integers(-(2**63), 2**63 - 1)),
    "uint64": (pl.UInt64, st.integers(0, 2**64 - 1)),
    "int32": (pl.Int32, st.integers(-(2**31), 2**31 - 1)),
    "binary": (pl.Binary, st.binary(max_size=14)),
}


@st.composite
def tables(draw):
    dtype, id = TYPES[draw(st.sampled_from(sorted(TYPES)))]
    ids = draw(st.lists(id, min_size=1, max_size=30, unique=True))
    others = draw(st.lists(id, min_size=1, max_size=10, unique=True))
    pairs = st.lists(st.tuples(st.sampled_from(ids), st.sampled_from(ids)), max_size=60)
    across = st.lists(st.tuples(st.sampled_from(ids), st.sampled_from(others)), max_size=60)
    return dtype, draw(st.permutations(ids)), others, draw(pairs), draw(across)


def frame(dtype, **columns):
    return pl.DataFrame({name: pl.Series(values, dtype=dtype) for name, values in columns.items()})


CUTS = st.lists(st.integers(0, 60), max_size=4)
SIZES = st.tuples(st.sampled_from([None, 3, 7]), st.sampled_from([None, 64]))


@examples(15)
@given(tables(), CUTS, SIZES)
def test_vertices_are_ranks_and_records_keep_their_order(tmp_path_factory, data, cuts, sizes):
    dtype, ids, others, pairs, across = data
    folder = tmp_path_factory.mktemp("ingest")
    write(folder, "b", frame(dtype, id=ids), cuts)
    write(folder, "a", frame(dtype, id=others), cuts)
    for name, records in (("y", pairs), ("x", across)):
        write(folder, name, frame(dtype, src=[a for a, _ in records], dst=[b for _, b in records]), cuts)
    schema = {
        "root": str(folder),
        "vertices": {"b": {"files": "b/", "id": "id"}, "a": {"files": "a/", "id": "id"}},
        "relations": {
            "y": {"files": "y/", "source": {"b": "src"}, "target": {"b": "dst"}},
            "x": {"files": "x/", "source": {"b": "src"}, "target": {"a": "dst"}},
        },
    }
    with small(*sizes):
        graph = ingest(schema, folder / "graph")
    numbers, n, expected = oracle({"b": ids, "a": others}, {"y": ("b", "b", pairs), "x": ("b", "a", across)})
    assert (graph.num_vertices, graph.num_edges) == (n, len(expected))
    assert np.array_equal(pairs_of(folder / "graph"), expected)
    for name in "ab":
        table = pl.read_parquet(folder / "graph" / "ids" / f"{name}.parquet")
        assert table.schema == {"id": dtype, "vertex": pl.UInt32}
        assert dict(table.rows()) == numbers[name]


@examples(15)
@given(tables(), CUTS, SIZES, st.sampled_from(["drop", "add"]), st.data())
def test_undeclared_ends_are_dropped_or_added(tmp_path_factory, data, cuts, sizes, missing, more):
    dtype, ids, _, pairs, _ = data
    declared = more.draw(st.lists(st.sampled_from(ids), unique=True))
    folder = tmp_path_factory.mktemp("ingest")
    write(folder, "v", frame(dtype, id=declared), cuts)
    write(folder, "e", frame(dtype, src=[a for a, _ in pairs], dst=[b for _, b in pairs]), cuts)
    ends = {"source": {"v": "src"}, "target": {"v": "dst"}}
    schema = {
        "root": str(folder),
        "vertices": {"v": {"files": "v/", "id": "id"}},
        "relations": {"e": {"files": "e/", **ends, "missing": missing}},
    }
    with small(*sizes):
        graph = ingest(schema, folder / "graph")
    if missing == "drop":
        pairs = [pair for pair in pairs if set(pair) <= set(declared)]
    else:
        declared = {*declared, *(id for pair in pairs for id in pair)}
    _, n, expected = oracle({"v": declared}, {"e": ("v", "v", pairs)})
    assert (graph.num_vertices, graph.num_edges) == (n, len(expected))
    assert np.array_equal(pairs_of(folder / "graph"), expected)


@examples(10)
@given(
    st.lists(st.tuples(st.none() | st.integers(0, 9), st.none() | st.integers(0, 9)), max_size=40),
    CUTS,
    SIZES,
)
def test_null_ends_are_dropped(tmp_path_factory, pairs, cuts, sizes):
    folder = tmp_path_factory.mktemp("ingest")
    schema = plain(folder, [10 * id for id in range(10)], [], nulls="drop")
    for file in (folder / "e").iterdir():
        file.unlink()
    (folder / "e").rmdir()
    ends = {
        side: [None if each[at] is None else 10 * each[at] for each in pairs]
        for at, side in enumerate(("src", "dst"))
    }
    write(folder, "e", pl.DataFrame(ends, schema={"src": pl.Int64, "dst": pl.Int64}), cuts)
    with small(*sizes):
        ingest(schema, folder / "graph")
    assert pairs_of(folder / "graph").tolist() == [list(pair) for pair in pairs if None not in pair]
    described = json.loads((folder / "graph" / "graph.json").read_text())["relations"][0]
    assert described["nulls"] == sum(None in pair for pair in pairs)
    assert described["missing"] == 0


@example([(0, 1), (9, 1), (2, 3), (4, None), (1, 9), (1, 2)], [2, 4], (None, None))
@example([(0, 1), (9, 1), (2, 3), (4, None), (1, 9), (1, 2)], [1, 2, 5], (3, 64))
@examples(10)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.none() | st.integers(0, 9)), min_size=1, max_size=40),
    CUTS,
    SIZES,
)
def test_columns_stay_with_their_records_where_others_are_dropped(tmp_path_factory, pairs, cuts, sizes):
    folder = tmp_path_factory.mktemp("ingest")
    schema = plain(
        folder, list(range(6)), [(0, 0)], missing="drop", nulls="drop", weight="w", time="at", features=["x"]
    )
    (folder / "e" / "000.parquet").unlink()
    (folder / "e").rmdir()
    rows = range(len(pairs))
    records = pl.DataFrame(
        {
            "src": [u for u, _ in pairs],
            "dst": pl.Series([v for _, v in pairs], dtype=pl.Int64),
            "w": [row + 1 for row in rows],
            "at": [10 * row for row in rows],
            "x": [row / 2 for row in rows],
        }
    )
    write(folder, "e", records, cuts)
    with small(*sizes):
        graph = ingest(schema, folder / "graph")
    kept = [row for row, pair in enumerate(pairs) if all(end in range(6) for end in pair)]
    assert pairs_of(folder / "graph").tolist() == [list(pairs[row]) for row in kept]
    assert np.load(folder / "graph" / "edges.bin.times.npy").tolist() == [10 * row for row in kept]
    assert np.load(folder / "graph" / "edge_features.npy")[:, 0].tolist() == [row / 2 for row in kept]
    files = {"edges.bin", "edges.bin.json", "edges.bin.times.npy", "edge_features.npy", "graph.json", "ids"}
    assert {*os.listdir(folder / "graph")} == files | ({"edges.bin.weights.npy"} if kept else set())
    if kept:
        assert graph.weights.tolist() == [row + 1 for row in kept]


@pytest.mark.parametrize("sizes", [(None, None), (2, 64)])
def test_the_first_undeclared_end_is_named(tmp_path, sizes):
    schema = plain(tmp_path, ["a", "b"], [("a", "b"), ("b", "a"), ("a", "zz"), ("yy", "xx"), ("a", "a")])
    with small(*sizes), pytest.raises(fp.errors.GraphFormatError) as error:
        ingest(schema, tmp_path / "graph")
    text = str(error.value)
    assert "e: 2 records name a vertex that no table declares" in text
    assert "000.parquet: row 2: 'dst' is 'zz', which is no id of 'v'" in text
    assert "`missing: drop`" in text
    assert sorted(os.listdir(tmp_path)) == ["e", "v"]


@pytest.mark.parametrize("sizes", [(None, None), (2, 64)])
def test_a_null_end_is_named(tmp_path, sizes):
    schema = plain(tmp_path, ["a", "b"], [("a", "b"), ("b", None)])
    with (
        small(*sizes),
        pytest.raises(fp.errors.GraphFormatError, match=r"000\.parquet: row 1: an id is null"),
    ):
        ingest(schema, tmp_path / "graph")


def test_a_null_id_is_named(tmp_path):
    schema = plain(tmp_path, ["a", None, "b"], [])
    with pytest.raises(fp.errors.GraphFormatError, match=r"000\.parquet: row 1: column 'id': the id is null"):
        ingest(schema, tmp_path / "graph")


def test_duplicates_are_named_with_both_rows(tmp_path):
    schema = plain(tmp_path, ["c", "a", "b"], [("a", "b")])
    pl.DataFrame({"id": ["d", "a"]}).write_parquet(tmp_path / "v" / "001.parquet")
    with pytest.raises(fp.errors.GraphFormatError) as error:
        ingest(schema, tmp_path / "graph")
    text = str(error.value)
    assert "v: the id 'a' is in " in text
    assert "000.parquet: row 1 and in " in text
    assert "001.parquet: row 1. Remove one, or say `duplicates: first`" in text
    schema["vertices"]["v"] |= {"duplicates": "first"}
    assert ingest(schema, tmp_path / "graph").num_vertices == 4


def test_ids_that_differ_by_blanks_are_told(tmp_path, caplog):
    caplog.set_level("INFO", "fastpart")
    graph = ingest(plain(tmp_path, ["a", "a ", "b", " a"], [("a", "a ")]), tmp_path / "graph")
    assert graph.num_vertices == 4
    assert "v: 2 ids differ from another one by blanks at their ends only" in caplog.text


def test_another_order_of_files_and_threads_changes_nothing(tmp_path):
    rng = np.random.default_rng(0)
    ids = [f"v{id:04}" for id in rng.permutation(500)]
    pairs = [(ids[a], ids[b]) for a, b in rng.integers(0, 500, (2000, 2))]
    made = []
    for name, threads in (("one", 1), ("two", 2)):
        folder = tmp_path / name
        schema = plain(folder, ids if name == "one" else ids[::-1], pairs)
        with small(100, 1000):
            ingest(schema, folder / "graph", threads=threads)
        made.append([(folder / "graph" / file).read_bytes() for file in ("edges.bin", "edges.bin.json")])
    assert made[0] == made[1]


def test_a_type_without_a_table_has_the_ids_that_relations_name(tmp_path):
    schema = plain(tmp_path, ["unused"], [("b", "a"), ("a", "c")])
    schema["vertices"]["v"] = {}
    graph = ingest(schema, tmp_path / "graph")
    assert graph.num_vertices == 3
    assert pairs_of(tmp_path / "graph").tolist() == [[1, 0], [0, 2]]


def test_empty_tables_are_a_graph(tmp_path):
    schema = plain(tmp_path, [], [])
    for table, columns in (("v", ["id"]), ("e", ["src", "dst"])):
        pl.DataFrame(schema=dict.fromkeys(columns, pl.String)).write_parquet(tmp_path / table / "000.parquet")
    graph = ingest(schema, tmp_path / "graph")
    assert (graph.num_vertices, graph.num_edges) == (0, 0)


def test_shards_are_the_same_graph(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    pairs = [(f"v{a}", f"v{b}") for a, b in rng.integers(0, 100, (1000, 2))]
    schema = plain(tmp_path, [f"v{id}" for id in range(100)], pairs)
    whole = ingest(schema, tmp_path / "whole")
    monkeypatch.setattr(graph_directory, "UNIT", 64)
    graph = ingest(schema, tmp_path / "graph", shards=5)
    names = [name for name in sorted(os.listdir(tmp_path / "graph")) if name.endswith(".bin")]
    assert names == [f"edges-0000{number}.bin" for number in range(5)]
    sizes = [(tmp_path / "graph" / name).stat().st_size // 8 for name in names]
    assert sum(sizes) == 1000
    assert all(size % 64 == 0 for size in sizes[:-1])
    opened = fp.open_graph(tmp_path / "graph")
    assert opened == graph == whole
    assert opened.identify() == whole.identify()
    assert pickle.loads(pickle.dumps(opened)) == whole
    assert np.array_equal(
        fp.algorithms.hash(opened, k=3).assignment, fp.algorithms.hash(whole, k=3).assignment
    )
    assert fp.store.restore(np.arange(100), graph=opened).height == 100
    with pytest.raises(fp.errors.ParameterError, match=r"num_vertices: .* says it by itself"):
        fp.open_graph(tmp_path / "graph", num_vertices=100)
    os.truncate(tmp_path / "graph" / names[2], 64)
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"its files hold [\d,]+ records, but its sidecar says 1,000"
    ):
        fp.open_graph(tmp_path / "graph")
    (tmp_path / "graph" / names[2]).unlink()
    with pytest.raises(fp.errors.GraphFormatError, match=rf"without {names[2]}\. Ingest again"):
        fp.open_graph(tmp_path / "graph")


def test_too_little_memory_is_refused_at_once(tmp_path):
    schema = plain(tmp_path, ["a"], [("a", "a")])
    with pytest.raises(fp.errors.MemoryBudgetError, match=r"ingest needs 4\d\d MB of memory with 2 threads"):
        ingest(schema, tmp_path / "graph", memory_limit="200M", threads=2)
    assert sorted(os.listdir(tmp_path)) == ["e", "v"]


def test_an_output_that_is_not_ours_is_left_alone(tmp_path):
    schema = plain(tmp_path, ["a"], [("a", "a")])
    (tmp_path / "graph").mkdir()
    (tmp_path / "graph" / "thesis.tex").write_text("years of work")
    with pytest.raises(FileExistsError, match="is not a graph directory"):
        ingest(schema, tmp_path / "graph")
    assert (tmp_path / "graph" / "thesis.tex").read_text() == "years of work"
    (tmp_path / "graph" / "thesis.tex").unlink()
    ingest(schema, tmp_path / "graph")
    ingest(schema, tmp_path / "graph")
    assert sorted(os.listdir(tmp_path / "graph")) == ["edges.bin", "edges.bin.json", "graph.json", "ids"]


def test_a_note_counts_the_records_that_are_dropped(tmp_path, caplog):
    caplog.set_level("INFO", "fastpart")
    fp.ingest(plain(tmp_path, ["a"], [("a", "a"), ("a", "b")], missing="drop"), tmp_path / "graph")
    assert "e: dropped 1 record, 0 for a null id and 1 for an id that no table declares" in caplog.text


@examples(6)
@given(
    st.lists(st.tuples(st.none() | st.integers(0, 9), st.none() | st.integers(0, 9)), max_size=20),
    CUTS,
    SIZES,
)
def test_a_record_that_a_null_drops_makes_no_vertex(tmp_path_factory, pairs, cuts, sizes):
    folder = tmp_path_factory.mktemp("ingest")
    columns = {"src": [u for u, _ in pairs], "dst": [None if v is None else str(v) for _, v in pairs]}
    write(folder, "e", pl.DataFrame(columns, schema={"src": pl.Int64, "dst": pl.String}), cuts)
    relation = {"files": str(folder / "e"), "source": {"a": "src"}, "target": {"b": "dst"}, "nulls": "drop"}
    with small(*sizes):
        graph = ingest({"vertices": {"a": {}, "b": {}}, "relations": {"e": relation}}, folder / "graph")
    whole = [pair for pair in pairs if None not in pair]
    assert [each.n for each in graph.types] == [len({u for u, _ in whole}), len({v for _, v in whole})]
    assert graph.num_edges == len(whole)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "ndjson", "arrow"])
def test_nulls_are_dropped_alike_in_all_formats(tmp_path, suffix):
    frame = pl.DataFrame({"s": ["a", "b", None, "q"], "t": ["b", None, "c", "b"]})
    write = {"arrow": frame.write_ipc}.get(suffix) or getattr(frame, f"write_{suffix}")
    write(tmp_path / f"e.{suffix}")
    relation = {"files": str(tmp_path / f"e.{suffix}"), "source": {"v": "s"}, "target": {"v": "t"}}
    schema = {"vertices": {"v": {}}, "relations": {"e": relation | {"nulls": "drop"}}}
    ingest(schema, tmp_path / "graph")
    assert pl.read_parquet(tmp_path / "graph/ids/v.parquet")["id"].to_list() == ["a", "b", "q"]


@pytest.mark.parametrize("counted", [10**6, 40, 4])
def test_repeated_records_are_counted(tmp_path, caplog, monkeypatch, counted):
    monkeypatch.setattr(attributes, "COUNTED", counted)
    monkeypatch.setattr(attributes, "_PAIRS", 7)
    pairs = [(u, v) for u in range(10) for v in range(10)] + [(1, 2), (1, 2), (3, 4), (4, 3)]
    schema = plain(tmp_path, list(range(10)), pairs)
    with caplog.at_level("INFO", "fastpart"):
        ingest(schema, tmp_path / "graph")
    found = json.loads((tmp_path / "graph/graph.json").read_text())["relations"][0]["repeated"]
    if counted > 104:
        assert found == 4
        assert "e: 4 of 104 records have the source and target of an earlier one" in caplog.text
    else:  # an estimate of a sample, which has all records of a pair or none
        keys = np.array([v << 32 | u for u, v in pairs], np.uint64)
        shift = {40: 2, 4: 5}[counted]
        sample = keys[mixed(keys) >> np.uint64(64 - shift) == 0]
        assert found == (len(sample) - len(set(sample.tolist()))) << shift


def test_repeated_records_with_times_are_events(tmp_path, caplog):
    schema = plain(tmp_path, [0, 1], [(0, 1), (0, 1)], time="at")
    records = pl.read_parquet(tmp_path / "e/000.parquet").with_columns(at=pl.Series([3, 4]))
    records.write_parquet(tmp_path / "e/000.parquet")
    with caplog.at_level("INFO", "fastpart"):
        ingest(schema, tmp_path / "graph")
    assert "of an earlier one" not in caplog.text


@pytest.mark.parametrize("at_once", [1 << 26, 2])
def test_vertices_whose_records_are_all_dropped_are_said(tmp_path, caplog, monkeypatch, at_once):
    monkeypatch.setattr(attributes, "_WEIGHED", at_once)
    pairs = pl.DataFrame({"s": ["a", "z", "a", "y"], "t": ["p", "q", "p", "r"]})
    schema = {
        "vertices": {"u": {"files": pl.DataFrame({"id": ["a"]}), "id": "id"}, "v": {}},
        "relations": {"e": {"files": pairs, "source": {"u": "s"}, "target": {"v": "t"}, "missing": "drop"}},
    }
    with caplog.at_level("INFO", "fastpart"):
        assert ingest(schema, tmp_path / "graph").num_vertices == 4
    assert "v: 2 vertices are in no record, because `missing: drop` dropped all that name them" in caplog.text
