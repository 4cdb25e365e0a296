"""Tables with ids of any kind become a graph directory: vertices 0..n-1, records, features, and the way back."""

from __future__ import annotations

from typing import Any, Literal, Unpack, overload

from ...core import parameters
from ...core.options import Options, run_options, with_options
from ...core.outputs import Owner
from ...core.parameters import StrPath
from ...errors import ParameterError, arg
from ..graph import Graph, open_directory
from ..graph_directory import GraphDirectory
from .catalog import open_catalog
from .documents import read_schema
from .problems import Problems
from .stages.job import Job

__all__ = ["Problems", "ingest"]


@overload
def ingest(
    schema: Any,
    out: StrPath,
    *,
    check: Literal[False] = False,
    vocabulary: StrPath | Graph | None = None,
    restart: bool = False,
    overwrite: bool = False,
    shards: int | None = None,
    **options: Unpack[Options],
) -> Graph: ...
@overload
def ingest(
    schema: Any,
    out: None = None,
    *,
    check: Literal[True],
    vocabulary: StrPath | Graph | None = None,
    **options: Unpack[Options],
) -> Problems: ...
@with_options
def ingest(
    schema: Any,
    out: StrPath | None = None,
    *,
    check: bool = False,
    vocabulary: StrPath | Graph | None = None,
    restart: bool = False,
    overwrite: bool = False,
    shards: int | None = None,
    **options: Unpack[Options],
) -> Graph | Problems:
    """Make a graph directory of tables whose ids are text, bytes or any whole numbers.

    Parameters
    ----------
    schema : path or mapping
        What the tables hold: a .yaml, .toml or .json file, or a dict with the same keys, whose ``files`` may also be
        frames of Polars, pandas and Arrow. Also a configuration of GraphStorm, the folder of a dataset of OGB or of a
        CSVDataset of DGL, and a .csv of ``apoc.export.csv`` of neo4j. The reference of ingest has all keys.
    out : path
        The graph directory to write, unless ``check``. An earlier one is replaced at the end, if the new one has all
        kinds of data that it has. Any other folder is refused.
    check : bool
        Write nothing, and list all that would be refused: every table is read as for a graph, in a temporary folder.
    vocabulary : path or Graph, optional
        A graph directory of an earlier ingest. Its values of categories keep their columns and codes, and its names of
        classes theirs. Other values of categories count as unknown. New classes get the codes behind. Default: all
        values are numbered anew, sorted.
    restart : bool
        Begin anew where an earlier run of this ``out`` was interrupted. Default: go on with what it has done.
    overwrite : bool
        Replace an earlier graph directory also if that has features, labels, splits, times or weights that the new one
        lacks.
    shards : int, optional
        Number of files that the records are written to, ``edges-00000.bin`` and so on, for a cluster. Small graphs get
        fewer: files are cut at multiples of 2**20 records. Default: one file, ``edges.bin``.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    Graph or Problems
        The graph, opened. Its ``directory`` is ``out``. With ``check`` the problems: ``len(found)`` is 0 if the ingest
        runs, ``print(found)`` lists them with rows and remedies, and ``found.to_frame()`` is a frame of them.

    Raises
    ------
    ParameterError
        The schema is wrong, with the entry. The schema, the vocabulary or a table changed since an interrupted run.
        Another run is at work on the same ``out``. ``vocabulary`` is no graph directory.
    GraphFormatError
        A table is damaged or lacks a column, an id or a value is missing, two rows have one id, or ids have two types.
        With the file and the row, or the line of text.
    EdgeFileChangedError
        A table changed while it was read.
    FileNotFoundError
        A path, a glob or a folder without a file.
    FileExistsError
        A folder at ``out`` that is no graph directory, or one that has data which the new one lacks.
    CapacityError
        There are more than 2**32 - 2 vertices, or more than 1,024 values for ``as: onehot``.
    MemoryBudgetError
        The memory limit is too small.

    See Also
    --------
    restore : Give results back with the ids of the tables.

    Notes
    -----
    **Order.** The number of a vertex is the rank of its id within its type. Types and relations are ordered by name. So
    neither the files nor their order nor the threads change the numbers. Records are ordered by relation, path and row.

    **Interruption.** The work folder ``.OUT.ingest`` beside ``out`` lists what is done. After a kill or a full disk the
    same call goes on from there, with the same result.

    **Memory.** 310 MB and 52 MB for each thread are the least. Sorting takes up to 134 MB more if the limit allows. It
    depends neither on the number of edges nor, below 200 million vertices of a type, on theirs.

    **Disk.** Beside the graph about 20 bytes per vertex, with its id once more while ids are sorted, and 18 (whole
    numbers) or 26 bytes (text) per record, of at most 2**28 records at a time.

    **Exactness.** Whole numbers are looked up exactly, text and bytes by 96 bits of XXH3-128. An id that no table
    declares is taken for another one with a probability of at most 2**-64.

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
    run = run_options(**options)
    earlier = None if vocabulary is None else GraphDirectory.of(vocabulary, "vocabulary").vocabularies()
    if parameters.flag("check", check):
        writing = {"out": out, "restart": restart, "overwrite": overwrite, "shards": shards}
        for name in (name for name, value in writing.items() if value):
            raise ParameterError(f"{name}: a check writes nothing. Leave it out, or {arg('check')}")
        from .checking import check as checked

        return checked(*read_schema(schema), run, earlier)
    if out is None:
        raise ParameterError(f"out: name the folder of the graph, or pass {arg('check', True)}")
    target = parameters.path("out", out)
    catalog = open_catalog(*read_schema(schema), run, earlier)
    if shards is not None:
        shards = parameters.integer("shards", shards, 1, 10_000)
    again = parameters.flag("restart", restart), parameters.flag("overwrite", overwrite)
    with Owner(target):
        _run(Job(catalog, target, run, *again, {"shards": shards}))
    return open_directory(target, run)


def _run(job: Job) -> None:
    """Run all stages of a job."""
    from .stages.attributes import finish, write_record_attributes, write_vertex_attributes
    from .stages.ids import number_types
    from .stages.records import write_records

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
