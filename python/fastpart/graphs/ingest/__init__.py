"""Tables with ids of any kind become a graph directory: vertices 0..n-1, records, features, and the way back."""

from __future__ import annotations

from typing import Any, Unpack

from ...core import parameters
from ...core.options import Options, run_options, with_options
from ...core.parameters import StrPath
from ..graph import Graph, open_graph
from ..graph_directory import EDGES
from .catalog import open_catalog
from .documents import read_schema
from .job import Job

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
    catalog = open_catalog(*read_schema(schema), run)
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
