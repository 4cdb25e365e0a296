"""The assignment as text, for DGL's dispatch pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from .. import _core
from ..core.options import Options, run_options, with_options
from ..core.parameters import StrPath
from ..partitions.part_rows import typed_of
from ..partitions.partition import PartitionSource
from .common import Source, directory, write_json

_EARLIER = r"assignment\.txt|_N\.txt|partition_meta\.json"
"""Files of versions that kept no list of them."""


@with_options
def text(source: PartitionSource, out: StrPath, **options: Unpack[Options]) -> Path:
    r"""Write the parts of the vertices as text, for the dispatch pipeline in DGL's ``tools/``.

    Parameters
    ----------
    source : path
        A partition of vertices: a directory, or any file that :func:`fastpart.open_partition` reads.
    out : path
        The directory to write. Its parent must exist. An earlier export is replaced if it
        holds nothing else. Any other directory must be empty.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    pathlib.Path
        ``out``, the ``--partitions-dir`` of ``tools/dispatch_data.py``. It holds ``assignment.txt``, whose line v is
        the part of vertex v, and ``part_meta.json`` (``num_parts``, ``algo_name``, ``version``). The pipeline opens
        them under other names, so there are links: ``partition_meta.json`` and ``_N.txt``. The latter is named after
        the node type. Rename it if your graph has another type. Of a typed graph there is a file for each type,
        such as ``paper.txt``, whose line i is the part of vertex i of the type.

    Raises
    ------
    ParameterError
        An edge partition.
    OSError
        With path and errno. An earlier export is intact.

    Notes
    -----
    ``algo_name`` is always "metis", because the pipeline accepts only this and "random". It uses neither. ``algorithm``
    is the name of the partitioner.

    Examples
    --------
    >>> import fastpart as fp, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> stored = fp.VertexPartition([1, 0, 1], k=2).save(f"{folder}/part.npy")
    >>> out = fp.export.text(f"{folder}/part.npy", f"{folder}/text")
    >>> (out / "assignment.txt").read_text()
    '1\n0\n1\n'
    """
    run = run_options(**options)
    stored = Source(source, "DGL", halo=False)
    partition = stored.partition
    typed = typed_of(stored.manifest)
    with directory(out, stored, "part_meta.json", _EARLIER) as (target, inside):
        _core.write_lines(inside / "assignment.txt", partition.assignment, run)
        if typed is None:
            (inside / "_N.txt").symlink_to("assignment.txt")
        for each in () if typed is None else typed.types:
            of_type = partition.assignment[each.first : each.range.stop]
            _core.write_lines(inside / f"{each.name}.txt", of_type, run)
        meta = {
            "version": "1.0.0",
            "num_parts": partition.k,
            "algo_name": "metis",
            "algorithm": partition.algorithm,
            "fastpart": _core.__version__,
        }
        write_json(inside / "part_meta.json", meta)
        (inside / "partition_meta.json").symlink_to("part_meta.json")
    return target
