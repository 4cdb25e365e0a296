"""Rows in part order for WholeGraph and cuGraph-PyG, as they are read in 26.10."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack

import numpy as np

from .. import _core
from ..core.options import Options, run_options, with_options
from ..core.parameters import Progress, StrPath, shown
from ..errors import ParameterError
from ..partitions.part_rows import RelationData, TypeData
from ..partitions.partition import PartitionSource
from ..partitions.parts import VertexPartData
from .common import MASKS, Array, Counter, PartOrder, Source, append, directory, in_edges, write_json

_BOOK = "partition_book.json"

_DTYPES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64")
"""Types that both WholeGraph and numpy have."""

_EARLIER = r"orig_[ne]ids\.npy|[a-z_]+_part_\d+_of_\d+"
"""Files of versions that kept no list of them."""

_HELD = ("features", "labels", "splits", "edge_features")
"""Data of a partition directory that an export holds, by the entries of the manifest."""


@with_options
def wholegraph(
    source: PartitionSource,
    out: StrPath,
    *,
    overwrite: bool = False,
    **options: Unpack[Options],
) -> Path:
    """Write a vertex partition for WholeGraph and cuGraph-PyG.

    Vertices and edges get new ids, so that each part has a contiguous range. Vertices are ordered by part, then by old
    id. Edges are ordered by the part of their destination, then by destination, then by record.

    Parameters
    ----------
    source : path
        A partition directory of vertices, saved with ``graph=`` and ``halo_hops=1`` (a second hop is left out).
    out : path
        The directory to write. Its parent must exist. An earlier export is replaced if it
        holds nothing else, and no data that ``source`` lacks. Any other directory must be empty.
    overwrite : bool
        Replace an earlier export also if it holds data that ``source`` lacks.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`. The export uses one thread and the memory of the largest part, without its
        features, which are mapped.

    Returns
    -------
    pathlib.Path
        ``out``. ``partition_book.json`` has the number of ``vertices`` and ``edges`` of each part, and under ``arrays``
        the ``dtype`` and ``row`` (its length, 0 for a number) of each array. An array lies in one file of raw
        little-endian values per part, named ``<array>_part_0_of_<k>`` and so on, as WholeGraph names them:
        ``sources`` and ``destinations`` (new ids, one per edge), ``row_offsets`` (n + 1 in all: where the in-edges of
        each vertex begin), ``features``, ``labels`` (-1 = unlabelled; 0 and 1 as int8 for multi-label tasks),
        ``edge_features``, and ``train``, ``val`` and ``test`` (new ids of the part's vertices in the split). Data that
        the partition was saved without is left out. The old ids are in ``orig_nids.npy`` and ``orig_eids.npy`` (int64,
        row = new id, value = vertex, or directed edge: r for record r, m + r for its opposite direction).

        Of a typed graph ``types`` has the number of vertices of each type in each part: their new ids are consecutive
        there. ``relations`` names the relations, and an array of that name has the number of each edge. Rows lie in
        arrays of their type or relation, such as ``paper.features``, ``paper.train`` and ``writes.edge_features``.

    Raises
    ------
    ParameterError
        An edge partition, ``halo_hops=0``, or features of a dtype or shape that WholeGraph does not have.
    FileExistsError
        ``out`` is no earlier export, or holds data that ``source`` lacks.
    OSError
        With path and errno. An earlier export is intact.

    Notes
    -----
    It needs numpy alone. fastpart reads its files back with numpy and torch. It has not been run with WholeGraph,
    which wants at least one vertex in each part of a partition book.

    Examples
    --------
    >>> import json, numpy as np, fastpart as fp, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> graph = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3]])
    >>> stored = fp.VertexPartition([1, 0, 1, 0, 1, 1], k=2).save(f"{folder}/parts", graph=graph)
    >>> root = fp.export.wholegraph(f"{folder}/parts", f"{folder}/wholegraph")
    >>> json.loads((root / "partition_book.json").read_text())["vertices"]
    [2, 4]
    >>> np.load(root / "orig_nids.npy")
    array([1, 3, 0, 2, 4, 5])
    >>> np.fromfile(root / "destinations_part_0_of_2", np.int64)
    array([0, 0, 1, 1, 1])
    """
    run = run_options(**options)
    stored = Source(source, "WholeGraph")
    arrays = _arrays(stored)
    with directory(out, stored, _BOOK, _EARLIER, _HELD, overwrite) as (target, inside):
        writer = _Writer(stored, inside, run.progress)
        for part in stored.parts():
            writer.write(part)
        write_json(inside / _BOOK, writer.book(arrays))
    return target


def _arrays(source: Source) -> dict[str, dict[str, Any]]:
    """Return dtype and row length of each array."""
    arrays: dict[str, dict[str, Any]] = {
        name: {"dtype": "int64", "row": 0} for name in ("sources", "destinations", "row_offsets")
    }
    if source.typed:
        arrays["relations"] = {"dtype": "int32", "row": 0}
    part = source.partition.parts[0]
    for rows in (*part._by_type, *part._by_relation):
        arrays |= _rows(source, rows)
    return arrays


def _rows(source: Source, rows: TypeData | RelationData) -> dict[str, dict[str, Any]]:
    """Return dtype and row length of the arrays of a type or a relation."""
    entry = rows._manifest
    arrays: dict[str, dict[str, Any]] = {
        _name(rows, name): {"dtype": "int64", "row": 0} for name in entry.get("splits", ())
    }
    for name in ("features", "labels", "edge_features"):
        if name in entry:
            dtype, shape = entry[name]["dtype"], entry[name]["shape"]
            dtype = "int8" if name == "labels" and dtype == "uint8" else dtype
            if dtype not in _DTYPES or len(shape) > 1 or 0 in shape:
                raise ParameterError(
                    f"source: {_name(rows, name)} of {shown(source.path)} are {dtype} in rows of shape {shape}, which "
                    "WholeGraph does not have. Save them as float32 or int64, one number or one list of numbers per row"
                )
            arrays[_name(rows, name)] = {"dtype": dtype, "row": shape[0] if shape else 0}
    return arrays


class _Writer:
    """Writes the parts in order."""

    def __init__(self, source: Source, inside: Path, progress: Progress | None) -> None:
        edge_counts = [in_edges(part) for part in source.parts()]
        self._inside, self._k = inside, source.partition.k
        self._types: dict[str, list[int]] = {}
        self._edge_types = [each.name for each in source.partition.parts[0].edge_types or ()]
        self._order = PartOrder(source, inside, edge_counts)
        total = int(self._order.vertices[-1] + self._order.edges[-1])
        self._counter = Counter(progress, "export", total)

    def write(self, part: VertexPartData) -> None:
        """Write one part."""
        edges, first = in_edges(part), self._order.vertices[part.index]
        self._order.add_edges(part.edge_ids[:edges])
        ids, _ = self._order.new_ids(part)
        inner, offsets = ids[: part.num_inner], part.indptr[: part.num_inner + 1]
        last = part.index == self._k - 1
        arrays: dict[str, Array | None] = {
            "sources": ids[self._order.sources(part, edges)],
            "destinations": np.repeat(inner, np.diff(offsets)),
            "row_offsets": self._order.edges[part.index] + (offsets if last else offsets[:-1]),
        }
        if part.relations is not None:
            arrays["relations"] = part.relations[:edges].astype(np.int32)
        for rows in part._by_type:
            named = {"features": rows.features, "labels": rows.labels}
            for name in MASKS:
                mask = getattr(rows, name)
                named[name] = None if mask is None else first + rows.first_inner + np.flatnonzero(mask)
            arrays |= {_name(rows, name): array for name, array in named.items()}
            self._types.setdefault(rows.type.name, []).append(rows.num_inner)
        for relation in part._by_relation:
            features = relation.edge_features
            count = relation.num_of_inner
            arrays[_name(relation, "edge_features")] = None if features is None else features[:count]
        for name, array in arrays.items():
            if array is not None:
                append(self._inside / f"{name}_part_{part.index}_of_{self._k}", array)
        self._counter.advance(part.num_inner + edges)

    def book(self, arrays: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """Return the content of the JSON file."""
        return {
            "num_parts": self._k,
            "vertices": np.diff(self._order.vertices).tolist(),
            "edges": np.diff(self._order.edges).tolist(),
            **({"types": self._types, "relations": self._edge_types} if self._edge_types else {}),
            "arrays": arrays,
            "fastpart": _core.__version__,
        }


def _name(rows: TypeData | RelationData, name: str) -> str:
    return f"{rows.type.name}.{name}" if rows.type.name else name
