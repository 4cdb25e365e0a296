"""Tables with ids of any kind become a graph directory: vertices 0..n-1, records, features, and the way back."""

from __future__ import annotations

from typing import Any, Unpack

from ...core import parameters
from ...core.options import Options, run_options, with_options
from ...core.parameters import StrPath
from ..graph import Graph, open_graph
from ..graph_directory import EDGES
from .job import Job
from .schema import Schema

__all__ = ["ingest"]


@with_options
def ingest(
    schema: Any,
    out: StrPath,
    *,
    restart: bool = False,
    shards: int | None = None,
    keep_rows: bool = False,
    **options: Unpack[Options],
) -> Graph:
    """Make a graph of tables with ids of any kind."""
    from .attributes import write_record_attributes, write_vertex_attributes
    from .finishing import finish
    from .ids import number_types
    from .records import write_records

    target = parameters.path("out", out)
    run = run_options(**options)
    catalog = _catalog(schema, run)
    job = Job(catalog, target, run, parameters.flag("restart", restart), {"keep_rows": keep_rows})
    done = False
    try:
        types = number_types(job)
        records = write_records(job, types)
        attributes = {
            "types": write_vertex_attributes(job, types),
            "relations": write_record_attributes(job, records),
        }
        finish(job, types, records, attributes)
        done = True
    finally:
        job.close(done)
    return open_graph(target / EDGES)


def _catalog(schema: Any, run: Any) -> Any:
    import polars as pl

    from .catalog import Catalog, RelationTable, VertexTable
    from .documents import read_schema
    from .tables import open_table

    parsed, root = read_schema(schema)
    vertices = {}
    for name, entry in sorted(parsed.vertices.items()):
        reader = None if entry.files is None else open_table(name, entry.files, entry.format, root)
        dtype = next(iter(reader.files)).dtypes[entry.id] if reader else pl.String
        kind = {pl.String: "string", pl.Binary: "binary", pl.UInt64: "unsigned"}.get(
            type(dtype) if not isinstance(dtype, type) else dtype, "signed"
        )
        vertices[name] = VertexTable(name, entry, reader, entry.id, kind, dtype)
    relations = {}
    for name, each in sorted(parsed.relations.items()):
        reader = open_table(name, each.files, each.format, root)
        ((source, a),) = each.source.items()
        ((target, b),) = each.target.items()
        relations[name] = RelationTable(name, each, reader, source, target, (a, b))
    return Catalog(parsed, root, vertices, relations)
