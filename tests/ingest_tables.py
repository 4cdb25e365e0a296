"""Small tables for tests of ingest, and what becomes of them, by an oracle of ten lines."""

from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest

from fastpart.graphs.ingest.stages import ids, job, records


def oracle(vertices, records):
    """Ranks of sorted ids, type by type by name, and the records by them, relation by relation by name."""
    first, numbers = 0, {}
    for name in sorted(vertices):
        ordered = sorted(set(vertices[name]), key=lambda id: id.encode() if isinstance(id, str) else id)
        numbers[name] = {id: first + rank for rank, id in enumerate(ordered)}
        first += len(ordered)
    rows = []
    for name in sorted(records):
        source, target, pairs = records[name]
        rows += [(numbers[source][a], numbers[target][b]) for a, b in pairs]
    return numbers, first, np.array(rows, np.uint32).reshape(-1, 2)


def write(folder, name, frame, cuts=()):
    """Write a frame as several Parquet files, cut at these rows."""
    (folder / name).mkdir(parents=True)
    ends = sorted({min(cut, len(frame)) for cut in cuts} | {0, len(frame)})
    for number, (start, stop) in enumerate(zip(ends, ends[1:] or [0], strict=False)):
        frame.slice(start, stop - start).write_parquet(folder / name / f"{number:03}.parquet")


def pairs_of(folder):
    """Return the records of a graph directory."""
    return np.fromfile(folder / "edges.bin", "<u4").reshape(-1, 2)


@contextmanager
def small(rows=None, table=None):
    """Make units and groups of a few rows, and buckets of a few ids, so that little data takes every path."""
    with pytest.MonkeyPatch.context() as patch:
        if rows:
            patch.setattr(job, "ROWS", rows)
            patch.setattr(job, "_MOST", 10**9)
            patch.setattr(records, "GROUP", 3 * rows)
        if table:
            patch.setattr(ids, "_TABLE", table)
        yield


def plain(folder, ids_, pairs, **relation):
    """Write tables of one type and one relation, and return their schema."""
    write(folder, "v", pl.DataFrame({"id": ids_}))
    write(folder, "e", pl.DataFrame({"src": [a for a, _ in pairs], "dst": [b for _, b in pairs]}))
    ends = {"source": {"v": "src"}, "target": {"v": "dst"}}
    return {
        "root": str(folder),
        "vertices": {"v": {"files": "v/", "id": "id"}},
        "relations": {"e": {"files": "e/", **ends, **relation}},
    }
