"""Ingest against a ten-line oracle: Polars joins in memory."""

from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpart.graphs.ingest import ids as ids_module
from fastpart.graphs.ingest import ingest, units

TYPES = {
    "string": st.text(max_size=14),
    "long string": st.text(min_size=11, max_size=20),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint64": st.integers(0, 2**64 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "binary": st.binary(max_size=14),
}
DTYPES = {
    "string": pl.String,
    "long string": pl.String,
    "int64": pl.Int64,
    "uint64": pl.UInt64,
    "int32": pl.Int32,
    "binary": pl.Binary,
}


def oracle(vertices, records):
    """Ranks of sorted ids, type by type by name, and the records by them, relation by relation by name."""
    first, numbers = 0, {}
    for name in sorted(vertices):
        ids = sorted(set(vertices[name]), key=lambda id: id.encode() if isinstance(id, str) else id)
        numbers[name] = {id: first + rank for rank, id in enumerate(ids)}
        first += len(ids)
    rows = []
    for name in sorted(records):
        source, target, pairs = records[name]
        rows += [(numbers[source][a], numbers[target][b]) for a, b in pairs]
    return numbers, first, np.array(rows, np.uint32).reshape(-1, 2)


def write(folder, name, frame, cuts):
    """Write a frame as several Parquet files, cut at these rows."""
    (folder / name).mkdir(parents=True)
    ends = sorted({min(cut, len(frame)) for cut in cuts} | {0, len(frame)})
    for number, (start, stop) in enumerate(zip(ends, ends[1:] or [0], strict=False)):
        frame.slice(start, stop - start).write_parquet(folder / name / f"{number:03}.parquet")


@contextmanager
def small(rows=None, join=False, table=None):
    """Make units, buckets and groups so small that little data takes every path."""
    with pytest.MonkeyPatch.context() as patch:
        if rows:
            patch.setattr(units, "ROWS", rows)
            patch.setattr(units, "_MOST", 10**9)
            patch.setattr(
                units, "groups_of", lambda units, most=3 * rows, plain=units.groups_of: plain(units, most)
            )
            from fastpart.graphs.ingest import records

            patch.setattr(records, "groups_of", units.groups_of)
        if join:
            patch.setattr(ids_module, "_TABLE", table or 64)
        yield


@st.composite
def tables(draw):
    kind = draw(st.sampled_from(sorted(TYPES)))
    ids = draw(st.lists(TYPES[kind], min_size=1, max_size=30, unique=True))
    others = draw(st.lists(TYPES[kind], min_size=1, max_size=10, unique=True))
    pairs = st.lists(st.tuples(st.sampled_from(ids), st.sampled_from(ids)), max_size=60)
    across = st.lists(st.tuples(st.sampled_from(ids), st.sampled_from(others)), max_size=60)
    return DTYPES[kind], draw(st.permutations(ids)), others, draw(pairs), draw(across)


def schema_of(folder, missing="error"):
    return {
        "root": str(folder),
        "vertices": {"b": {"files": "b/", "id": "id"}, "a": {"files": "a/", "id": "id"}},
        "relations": {
            "y": {"files": "y/", "source": {"b": "src"}, "target": {"b": "dst"}, "missing": missing},
            "x": {"files": "x/", "source": {"b": "src"}, "target": {"a": "dst"}, "missing": missing},
        },
    }


@given(tables(), st.lists(st.integers(0, 60), max_size=4), st.sampled_from([None, 3, 7]), st.booleans())
def test_vertices_are_ranks_and_records_keep_their_order(tmp_path_factory, data, cuts, rows, join):
    dtype, ids, others, pairs, across = data
    folder = tmp_path_factory.mktemp("ingest")
    write(folder, "b", pl.DataFrame({"id": pl.Series(ids, dtype=dtype)}), cuts)
    write(folder, "a", pl.DataFrame({"id": pl.Series(others, dtype=dtype)}), cuts)
    for name, records in (("y", pairs), ("x", across)):
        columns = {
            key: pl.Series([each[side] for each in records], dtype=dtype)
            for side, key in enumerate(("src", "dst"))
        }
        write(folder, name, pl.DataFrame(columns), cuts)
    with small(rows, join):
        graph = ingest(schema_of(folder), folder / "graph")
    numbers, n, expected = oracle({"b": ids, "a": others}, {"y": ("b", "b", pairs), "x": ("b", "a", across)})
    assert (graph.num_vertices, graph.num_edges) == (n, len(expected))
    assert np.array_equal(np.fromfile(folder / "graph" / "edges.bin", "<u4").reshape(-1, 2), expected)
    for name in "ab":
        table = pl.read_parquet(folder / "graph" / "ids" / f"{name}.parquet")
        assert table.schema == {"id": dtype, "vertex": pl.UInt32}
        assert dict(table.rows()) == numbers[name]
