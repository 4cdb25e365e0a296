"""convert(): METIS, Parquet, .binedgelist and text, and records dropped or put in another order."""

import gzip
import json
import logging
import random

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.cli import main
from fastpart.graphs import parquet
from soaked import examples
from strategies import edge_lists, raw

RECORDS = [[0, 1], [1, 2], [2, 0], [3, 3], [2, 1], [0, 1]]
"""A triangle, a loop, and two records that repeat a pair."""


def pairs(edges):
    """Return the records of open edges in order."""
    return np.fromfile(edges.path, "<u4").reshape(-1, 2).tolist()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def simple(records):
    """Return the pairs of a graph without loops, lower id first, ascending."""
    return sorted({(min(u, v), max(u, v)) for u, v in records if u != v})


# Loops, repeated pairs, order.


def test_loops_and_repeated_pairs_are_dropped_with_notes(tmp_path, caplog):
    source = raw(tmp_path / "g.bin", RECORDS)
    with caplog.at_level(logging.INFO, "fastpart"):
        edges = fp.convert(source, tmp_path / "out.bin", drop_loops=True, dedup=True)
    assert pairs(edges) == [[0, 1], [1, 2], [2, 0]]
    assert edges.num_vertices == 4
    assert "1 loops are dropped" in caplog.messages
    assert "2 records that repeat a pair are dropped" in caplog.messages
    assert names(tmp_path) == ["g.bin", "out.bin", "out.bin.json"]
    assert edges.identify() == fp.open_graph(np.array([[0, 1], [1, 2], [2, 0]])).identify()


@examples(15)
@given(edge_lists(60, 80), st.booleans(), st.booleans(), st.integers(0, 2**64 - 1))
def test_shuffled_records_are_the_same_records(tmp_path_factory, graph, drop_loops, dedup, seed):
    _, edges = graph
    folder = tmp_path_factory.mktemp("order")
    options = {"drop_loops": drop_loops, "dedup": dedup}
    kept = fp.convert(raw(folder / "g.bin", edges), folder / "kept.bin", **options)
    mixed = [
        fp.convert(
            folder / "g.bin", folder / f"{threads}.bin", shuffle=True, seed=seed, threads=threads, **options
        )
        for threads in (1, 3)
    ]
    assert pairs(mixed[0]) == pairs(mixed[1])
    assert sorted(pairs(mixed[0])) == sorted(pairs(kept))
    # What is dropped is dropped first: shuffling later gives the same.
    later = fp.convert(folder / "kept.bin", folder / "later.bin", shuffle=True, seed=seed)
    assert pairs(later) == pairs(mixed[0])
    assert later.num_vertices == mixed[0].num_vertices == kept.num_vertices


def test_seeds_differ(tmp_path):
    source = raw(tmp_path / "g.bin", [[v, v + 1] for v in range(100)])
    orders = {
        seed: pairs(fp.convert(source, tmp_path / "out.bin", shuffle=True, seed=seed)) for seed in (0, 1)
    }
    assert orders[0] != orders[1]
    assert orders[0] != sorted(orders[0])


def test_the_sidecar_of_the_source_is_used(tmp_path):
    first = fp.convert(
        raw(tmp_path / "g.bin", RECORDS), tmp_path / "h.bin", num_vertices=9, directedness="symmetric"
    )
    assert (first.num_vertices, first.directedness) == (9, "symmetric")
    again = fp.convert(tmp_path / "h.bin", tmp_path / "i.bin", shuffle=True)
    assert (again.num_vertices, again.directedness) == (9, "symmetric")
    once = fp.convert(tmp_path / "h.bin", tmp_path / "i.bin", dedup=True)
    assert (once.num_vertices, once.directedness, once.num_edges) == (9, "undirected", 4)
    said = fp.convert(tmp_path / "h.bin", tmp_path / "i.bin", num_vertices=20, directedness="directed")
    assert (said.num_vertices, said.directedness) == (20, "directed")
    assert fp.convert(tmp_path / "h.bin", tmp_path / "i.bin", relabel=True).num_vertices == 4
    with pytest.raises(
        fp.errors.ParameterError,
        match="directedness: 'directed', but dedup keeps one record of both directions",
    ):
        fp.convert(tmp_path / "h.bin", tmp_path / "i.bin", dedup=True, directedness="directed")


# METIS.


# 19
@pytest.mark.parametrize(
    ("text", "line", "column", "what"),
    [
        (b"4 2\n2\n1 3\n2\n", 5, 1, "the header says 4 vertices, and only 3 have a line"),
        (b"3 3\n2\n1 3\n2\n", 1, 3, "the header says 3 edges, but the lines hold 2"),
        (b"3 2 1\n2 9\n1 9 3\n2 9\n", 3, 6, "a neighbour without its weight"),
        (b"2 1\n3\n1\n", 2, 1, r"the neighbour 3 of vertex 1 is outside 1\.\.2"),
        (b"2 1\n2\nx\n", 3, 1, "'x' in a METIS graph"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_wrong_metis_graphs_name_line_and_column(tmp_path, text, line, column, what, packed):
    file = tmp_path / ("g.graph.gz" if packed else "g.graph")
    file.write_bytes(gzip.compress(text) if packed else text)
    with pytest.raises(
        fp.errors.GraphFormatError, match=rf"g\.graph.*: line {line}, column {column}: .*{what}"
    ):
        fp.convert(file, tmp_path / "out.bin")
    assert names(tmp_path) == [file.name]


def test_a_metis_graph_under_another_name_needs_its_format(tmp_path):
    (tmp_path / "g.txt").write_text("3 2\n2\n1 3\n2\n")
    with pytest.raises(fp.errors.GraphFormatError, match="line 2"):
        fp.convert(tmp_path / "g.txt", tmp_path / "out.bin")
    assert pairs(fp.convert(tmp_path / "g.txt", tmp_path / "out.bin", format="metis")) == [[0, 1], [1, 2]]


@examples(15)
@given(edge_lists(40, 80))
def test_through_metis_and_back(tmp_path_factory, graph):
    n, edges = graph
    folder = tmp_path_factory.mktemp("metis")
    fp.convert(raw(folder / "g.bin", edges), folder / "g.graph", num_vertices=n)
    lines = (folder / "g.graph").read_text().splitlines()
    expected = simple(edges.tolist())
    assert lines[0] == f"{n} {len(expected)}"
    neighbours = [sorted({u + v - x for u, v in expected if x in (u, v)}) for x in range(n)]
    assert lines[1:] == [" ".join(str(u + 1) for u in row) for row in neighbours]
    back = fp.convert(folder / "g.graph", folder / "back.bin")
    assert (back.num_vertices, pairs(back)) == (n, [list(pair) for pair in expected])


# Parquet.


@examples(10)
@given(edge_lists(1000, 60), st.integers(1, 25))
def test_through_parquet_and_back(tmp_path_factory, graph, rows):
    n, edges = graph
    folder = tmp_path_factory.mktemp("parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "ROWS", rows)
        fp.convert(raw(folder / "g.bin", edges), folder / "g.parquet", num_vertices=n)
        frame = pl.read_parquet(folder / "g.parquet")
        assert frame.schema == {"source": pl.UInt32, "target": pl.UInt32}
        assert frame.to_numpy().tolist() == edges.tolist()
        back = fp.convert(folder / "g.parquet", folder / "back.bin")
    assert pairs(back) == edges.tolist()
    assert names(folder) == ["back.bin", "back.bin.json", "g.bin", "g.parquet"]


def test_columns_of_any_integer_type(tmp_path, caplog):
    frame = pl.DataFrame(
        {"w": [0.5, 0.5], "u": [0, 7], "v": [3, 1]}, schema_overrides={"u": pl.Int64, "v": pl.UInt8}
    )
    frame.write_parquet(tmp_path / "g.parquet")
    with caplog.at_level(logging.INFO, "fastpart"):
        edges = fp.convert(tmp_path / "g.parquet", tmp_path / "out.bin")
    assert pairs(edges) == [[0, 3], [7, 1]]
    assert any("ignored the columns w" in text for text in caplog.messages)
    (tmp_path / "g.parquet").rename(tmp_path / "g")
    assert (
        fp.convert(tmp_path / "g", tmp_path / "out.bin", format="parquet", num_vertices=20).num_vertices == 20
    )


def test_wide_ids_of_parquet_are_relabelled(tmp_path):
    pl.DataFrame(
        {"u": [2**64 - 1, 5], "v": [5, 2**40]}, schema={"u": pl.UInt64, "v": pl.UInt64}
    ).write_parquet(tmp_path / "g.parquet")
    edges = fp.convert(tmp_path / "g.parquet", tmp_path / "out.bin", relabel=True)
    assert pairs(edges) == [[0, 1], [1, 2]]
    assert np.load(tmp_path / "out.bin.ids.npy").tolist() == [2**64 - 1, 5, 2**40]


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"u": [0, 1, None], "v": [1, 2, 3]}, "column 'u', row 2: the id is null"),
        ({"u": [0, 1], "v": [1, -2]}, "column 'v', row 1: -2 is negative"),
        (
            {"u": [0, 2**32 - 1], "v": [1, 2]},
            "column 'u', row 1: the id 4294967295 exceeds the largest, 4294967294.*--relabel",
        ),
        ({"u": [0, 1]}, r"expected two columns of integers or strings, got 'u' \(Int64\)"),
        ({"a": [0], "b": [1], "c": [2]}, "which columns hold the ids.*'a'.*'b'.*'c'.*columns="),
        ({"u": [0], "v": [1], "src": [1], "dst": [0]}, "several pairs of columns may hold the ids.*columns="),
        ({"u": [0.5], "v": [1.0]}, r"column 'u' is Float64"),
        ({"u": ["0"], "v": ["1"]}, r"column 'u' is String. fp.open_graph numbers vertices with such ids"),
    ],
)
def test_wrong_columns_name_column_and_row(tmp_path, monkeypatch, columns, text):
    monkeypatch.setattr(parquet, "ROWS", 2)
    pl.DataFrame(columns).write_parquet(tmp_path / "g.parquet")
    with pytest.raises(fp.errors.GraphFormatError, match=rf"g\.parquet: .*{text}"):
        fp.convert(tmp_path / "g.parquet", tmp_path / "out.bin")
    assert names(tmp_path) == ["g.parquet"]


def test_what_is_no_parquet_is_refused(tmp_path):
    (tmp_path / "g.parquet").write_text("0 1\n")
    with pytest.raises(fp.errors.GraphFormatError, match=r"g\.parquet: not a Parquet file of edges"):
        fp.convert(tmp_path / "g.parquet", tmp_path / "out.bin")
    with pytest.raises(FileNotFoundError, match=r"absent\.parquet"):
        fp.convert(tmp_path / "absent.parquet", tmp_path / "out.bin")
    with pytest.raises(fp.errors.ParameterError, match="format: dtype= applies to raw pairs"):
        fp.convert(tmp_path / "g.parquet", tmp_path / "out.bin", dtype="u32", format="parquet")
    assert names(tmp_path) == ["g.parquet"]


# Text and .binedgelist.


@pytest.mark.parametrize("suffix", [".txt", ".tsv", ".binedgelist", ".parquet"])
def test_every_format_leads_back(tmp_path, suffix):
    records = np.random.default_rng(1).integers(0, 5000, (70_000, 2))
    out = tmp_path / f"g{suffix}"
    written = fp.convert(raw(tmp_path / "g.bin", records), out, dedup=True, shuffle=True, seed=3)
    same = fp.convert(tmp_path / "g.bin", tmp_path / "same.bin", dedup=True, shuffle=True, seed=3)
    assert written.identify() == same.identify()
    assert (written.path, written.num_edges) == (None, same.num_edges)
    assert fp.spring(written, 4).loads.tolist() == fp.spring(same, 4).loads.tolist()
    back = fp.convert(out, tmp_path / "back.bin")
    assert back.identify() == same.identify()
    assert not (tmp_path / f"g{suffix}.json").exists()
    assert len(names(tmp_path)) == 6


def test_relabelled_output_of_another_format_has_its_map(tmp_path):
    (tmp_path / "g.txt").write_text("70 5\n5 9\n")
    fp.convert(tmp_path / "g.txt", tmp_path / "g.graph", relabel=True)
    assert (tmp_path / "g.graph").read_text() == "3 2\n2\n1 3\n2\n"
    assert np.load(tmp_path / "g.graph.ids.npy").tolist() == [70, 5, 9]
    assert names(tmp_path) == ["g.graph", "g.graph.ids.npy", "g.txt"]


def test_the_header_of_2ps_and_hep(tmp_path):
    header = np.uint32(5).tobytes() + np.uint64(2).tobytes()
    (tmp_path / "g.binedgelist").write_bytes(header + np.array([[0, 1], [4, 2]], "<u4").tobytes())
    edges = fp.convert(tmp_path / "g.binedgelist", tmp_path / "out.bin")
    assert (edges.num_vertices, pairs(edges)) == (5, [[0, 1], [4, 2]])
    with pytest.raises(fp.errors.GraphFormatError, match=r"fastpart convert x\.binedgelist OUT\.bin"):
        fp.convert(tmp_path / "g.binedgelist", tmp_path / "out.bin", dtype="u32")


# Faults.


@pytest.mark.parametrize("out", ["out.bin", "out.graph", "out.parquet", "out.txt", "out.binedgelist"])
def test_refused_conversions_leave_nothing(tmp_path, out):
    (tmp_path / "g.txt").write_text("0 1\n1 x\n")
    (tmp_path / out).write_text("before")
    with pytest.raises(fp.errors.GraphFormatError, match="line 2"):
        fp.convert(tmp_path / "g.txt", tmp_path / out, dedup=True, shuffle=True)
    with pytest.raises(fp.errors.MemoryBudgetError):
        fp.convert(raw(tmp_path / "g.bin", RECORDS), tmp_path / out, shuffle=True, memory_limit="1M")

    def stop(*_):
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        fp.convert(tmp_path / "g.bin", tmp_path / out, shuffle=True, progress=stop)
    assert (tmp_path / out).read_text() == "before"
    assert names(tmp_path) == sorted(["g.bin", "g.txt", out])


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        (
            {"format": "gml"},
            fp.errors.ParameterError,
            "format: unknown value 'gml'. Valid values are 'text', 'metis'",
        ),
        ({"format": 1}, TypeError, "format: expected a string, got int"),
        ({"dedup": 1}, TypeError, "dedup: expected True or False"),
        ({"drop_loops": "no"}, TypeError, "drop_loops: expected True or False"),
        ({"shuffle": 7}, TypeError, "shuffle: expected True or False"),
        ({"seed": -1, "shuffle": True}, fp.errors.ParameterError, "seed: -1"),
        (
            {"format": "metis", "swap": True},
            fp.errors.ParameterError,
            "format: dtype= and swap= are for raw pairs",
        ),
    ],
)
def test_parameters_that_are_refused(tmp_path, options, error, text):
    with pytest.raises(error, match=text):
        fp.convert(raw(tmp_path / "g.bin", RECORDS), tmp_path / "out.bin", **options)
    assert names(tmp_path) == ["g.bin"]


def test_the_command_line(tmp_path, capsys):
    source = raw(tmp_path / "g.bin", RECORDS)
    out = tmp_path / "out.graph"
    assert (
        main(
            [
                "convert",
                str(source),
                str(out),
                "--drop-loops",
                "--dedup",
                "--shuffle",
                "--seed",
                "4",
                "--json",
            ]
        )
        == 0
    )
    facts = json.loads(capsys.readouterr().out)
    assert (facts["n"], facts["m"], facts["loops"]) == (4, 3, 0)
    assert out.read_text() == "4 3\n2 3\n1 3\n1 2\n\n"
    assert main(["convert", str(out), str(tmp_path / "back.bin")]) == 0
    assert "n = 4, m = 3, undirected, sidecar back.bin.json" in capsys.readouterr().out
    assert main(["convert", str(out), str(tmp_path / "g.txt"), "--format", "metis"]) == 0
    assert capsys.readouterr().out.endswith("g.txt: n = 4, m = 3, undirected\n")


# Dropping repeated pairs is what a set does.
def test_dedup_against_a_set(tmp_path):
    chance = random.Random(5)
    records = [[chance.randrange(300), chance.randrange(300)] for _ in range(90_000)]
    seen, expected = set(), []
    for u, v in records:
        if (min(u, v), max(u, v)) not in seen:
            seen.add((min(u, v), max(u, v)))
            expected.append([u, v])
    for threads in (1, 3):
        edges = fp.convert(
            raw(tmp_path / "g.bin", records), tmp_path / "out.bin", dedup=True, threads=threads
        )
        assert pairs(edges) == expected
