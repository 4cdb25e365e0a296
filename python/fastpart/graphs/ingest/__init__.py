"""Tables with ids of any kind become a graph directory: vertices 0..n-1, records, features, and the way back."""

from __future__ import annotations

from typing import Any, Unpack

from ...core import parameters
from ...core.options import Options, run_options, with_options
from ...core.parameters import StrPath
from ..directory_opening import open_directory
from ..graph import Graph
from .catalog import open_catalog
from .documents import read_schema
from .stages.job import Job

__all__ = ["ingest"]


@with_options
def ingest(
    schema: Any,
    out: StrPath,
    *,
    restart: bool = False,
    shards: int | None = None,
    **options: Unpack[Options],
) -> Graph:
    """Make a graph directory of tables whose ids are text, bytes or any whole numbers.

    Parameters
    ----------
    schema : path, mapping or Schema
        What the tables hold: a .yaml, .toml or .json file, or a dict with the same keys. Also a configuration of
        GraphStorm.
    out : path
        The graph directory to write.
    restart : bool
        Begin anew where an earlier run of this ``out`` was interrupted. Default: go on with what it has done.
    shards : int, optional
        Number of files that the records are written to, for a cluster. Default: one file.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    Graph
        The graph, opened.

    Raises
    ------
    ParameterError
        The schema is wrong, with the entry. Or the tables or the schema changed since an interrupted run.
    GraphFormatError
        A table is damaged or lacks a column, an id is missing, or two rows have one id, with the file and row.
    FileNotFoundError
        A path, a glob or a folder without a file.
    MemoryBudgetError
        The memory limit is too small.

    Notes
    -----
    The number of a vertex is the rank of its id within its type. Types and relations are ordered by name. So neither
    the files nor their order nor the threads change the numbers. Records are ordered by relation, path and row.

    Examples
    --------
    >>> import fastpart as fp, polars as pl, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> edges = pl.DataFrame({"follower": ["ann", "bob"], "followee": ["bob", "eve"]})
    >>> graph = fp.ingest(
    ...     {
    ...         "vertices": {"user": {}},
    ...         "relations": {
    ...             "follows": {"files": edges, "source": {"user": "follower"}, "target": {"user": "followee"}}
    ...         },
    ...     },
    ...     folder / "graph",
    ... )
    >>> graph.num_vertices, graph.num_edges
    (3, 2)
    >>> pl.read_parquet(folder / "graph/ids/user.parquet")["id"].to_list()
    ['ann', 'bob', 'eve']
    """
    from .stages.attributes import write_record_attributes, write_vertex_attributes
    from .stages.finishing import finish
    from .stages.ids import number_types
    from .stages.records import write_records

    target = parameters.path("out", out)
    run = run_options(**options)
    catalog = open_catalog(*read_schema(schema), run)
    if shards is not None:
        shards = parameters.integer("shards", shards, 1, 10_000)
    job = Job(catalog, target, run, parameters.flag("restart", restart), {"shards": shards})
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
    return open_directory(target, run)
