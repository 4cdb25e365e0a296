"""Tables with columns, ingested unit by unit as a process does that may be killed in between."""

import json
import tempfile
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from fastpart.graphs.ingest.catalog import RelationTable, VertexTable
from fastpart.graphs.ingest.catalog.requirements import features_of
from fastpart.graphs.ingest.columns import RelationColumns, VertexColumns
from fastpart.graphs.ingest.schema import Relation, Vertices
from fastpart.graphs.ingest.tables import open_table

UNKNOWN = np.iinfo(np.int64).min
RATES = {"train": 0.6, "val": 0.2, "test": 0.2}


def reader(folder, frames):
    """Write frames as the files of a table."""
    files = []
    for number, frame in enumerate(frames):
        file = folder / f"{number}.parquet"
        frame.write_parquet(file)
        files.append(file)
    return open_table("vertices.paper", files)


def vertices_of(table, n, vocabulary=None, **entry):
    entry = msgspec.convert({"id": "id", **entry}, Vertices)
    features = features_of("vertices.paper", entry, table, ["id"]) if table else ()
    return VertexColumns(
        VertexTable("paper", entry, table, "id", "signed", pl.Int64, features, vocabulary), n
    )


def records_of(table, m, **entry):
    entry = msgspec.convert({"source": {"a": "s"}, "target": {"a": "t"}, **entry}, Relation)
    features = features_of("relations.cites", entry, table, ["s", "t"])
    return RelationColumns(RelationTable("cites", entry, table, "a", "a", ("s", "t"), features), m)


def ingested(make, folder, table, vertices, units=None):
    """Work through the units, (file, start, stop) each, with new objects, as after a kill."""
    out = Path(tempfile.mkdtemp(dir=folder))
    surveys = [json.loads(json.dumps(make().survey(number))) for number in range(len(table.files))]
    for number, start, stop in units or [(number, 0, each.rows) for number, each in enumerate(table.files)]:
        columns = make()
        columns.begin(out, surveys)
        columns.write(out, number, vertices[number][start:stop], start, stop)
    last = make()
    last.begin(out, surveys)
    told = last.finish(out, surveys)
    assert make().finish(out, surveys) == json.loads(json.dumps(told))
    return out, told


def simple(tmp_path, frame, n=None, vocabulary=None, **entry):
    """Ingest one file whose row i is vertex i."""
    table = reader(tmp_path, [frame])
    n = len(frame) if n is None else n
    vertices = [np.arange(len(frame), dtype=np.uint32)]
    return ingested(lambda: vertices_of(table, n, vocabulary, **entry), tmp_path, table, vertices)


def content(folder):
    return {each.name: each.read_bytes() for each in folder.iterdir()}
