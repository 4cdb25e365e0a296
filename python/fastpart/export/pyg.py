"""PyG's partition layout, as PyG 2.6.1 reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from .. import _core
from ..core.options import Options, run_options, with_options
from ..core.parameters import Progress, StrPath
from ..partitions.part_rows import RelationData, TypeData
from ..partitions.partition import PartitionSource
from ..partitions.parts import VertexPartData
from ..partitions.types import edge_types, key_of, rows_of_type, vertex_types
from .common import (
    BY_ID,
    MASKS,
    Array,
    Counter,
    Source,
    WholeGraph,
    directory,
    edge_ids_within,
    in_coo,
    in_edges,
    save,
    tensors,
    torch_for,
    write_json,
)

_EARLIER = rf"(node|edge)_map\.pt|{BY_ID}|part_\d+/(graph|node_feats|edge_feats)\.pt"
"""Files of versions that kept no list of them."""

_HELD = ("features", "labels", "splits", "times", "edge_features", "edge_times")
"""Data of a partition directory that an export holds, by the entries of the manifest."""


@with_options
def pyg(
    source: PartitionSource,
    out: StrPath,
    *,
    overwrite: bool = False,
    **options: Unpack[Options],
) -> Path:
    """Write a vertex partition for ``torch_geometric.distributed``.

    Ids do not change, neither of vertices nor of directed edges (r for record r, m + r for its opposite direction).

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
        As in :class:`fastpart.Options`. The export uses one thread and the memory of the largest part.

    Returns
    -------
    pathlib.Path
        ``out``, for ``LocalGraphStore.from_partition`` and ``LocalFeatureStore.from_partition``. It holds
        ``META.json``, ``node_map.pt`` and ``edge_map.pt`` (int64: part of each id, -1 for ids m + r of loops, which do
        not exist), and ``part_0/``, ... with ``graph.pt``, ``node_feats.pt`` (``x`` and ``time``) and ``edge_feats.pt``
        (``edge_attr`` and ``edge_time``). As in PyG's examples, it also holds ``label.pt`` (int64, one per vertex, or
        uint8 of shape (n, classes) for multi-label tasks) and ``train-partitions/partition0.pt``, ... (the ids of the
        part's training vertices, and likewise for ``val`` and ``test``). Data that the partition was saved without is
        left out. A part without vertices has no ``node_feats.pt``, because PyG fails on empty ones.

        Of a typed graph all ids count from 0 in each type and relation, and ``node_map/<type>.pt`` and
        ``edge_map/<source>__<relation>__<target>.pt`` hold the parts. ``part_0/data.pt``, ... hold the part for
        ``HeteroData.from_dict(torch.load(file))``: of each type ``n_id`` (ids of the inner vertices, then of their
        neighbours in other parts), ``num_inner``, ``x``, ``y``, ``time`` and masks, which name inner vertices only, and
        of each relation ``edge_index`` (the in-edges of the inner vertices, by their places in ``n_id``), ``e_id``,
        ``edge_attr`` and ``time``.

    Raises
    ------
    ParameterError
        An edge partition, ``halo_hops=0``, or features of a dtype that torch does not have.
    ModuleNotFoundError
        torch is not installed. The text says what to install.
    FileExistsError
        ``out`` is no earlier export, or holds data that ``source`` lacks.
    OSError
        With path and errno. An earlier export is intact.

    Notes
    -----
    PyG's layout consists of pickles, which can execute code when they are loaded.

    Examples
    --------
    >>> import numpy as np, fastpart as fp, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> graph = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3]])
    >>> stored = fp.VertexPartition([1, 0, 1, 0, 0, 1], k=2).save(f"{folder}/parts", graph=graph)
    >>> root = fp.export.pyg(f"{folder}/parts", f"{folder}/pyg")
    >>> from torch_geometric.distributed import LocalGraphStore
    >>> LocalGraphStore.from_partition(str(root), 0).node_pb
    tensor([1, 0, 1, 0, 0, 1])
    """
    run = run_options(**options)
    stored = Source(source, "PyG")
    with directory(out, stored, "META.json", _EARLIER, _HELD, overwrite) as (target, inside):
        writer = Writer(stored, inside, run.progress)
        for part in stored.parts():
            writer.write(part)
        writer.finish()
    return target


class Writer:
    """Writes the parts, and after the last part the arrays over all ids.

    Ids count from 0 in each type of vertices, and in each relation: see :meth:`EdgeType.ids_within`. A graph without
    types has one of each, and its rows stand in files without their names.
    """

    def __init__(self, source: Source, inside: Path, progress: Progress | None) -> None:
        self._torch, self._source, self._inside = torch_for("PyG", source), source, inside
        self._whole = WholeGraph(self._torch, source, inside)
        total = len(source.partition) + source.manifest["num_directed_edges"]
        self._counter = Counter(progress, "export", total)

    def write(self, part: VertexPartData) -> None:
        """Write one part."""
        typed, folder = self._source.typed, self._inside / f"part_{part.index}"
        folder.mkdir()
        types = {of.type.name: _Type(self._source, part, of) for of in part._by_type}
        relations = {key_of(of.type): of for of in part._by_relation}
        ids = {key: edge_ids_within(of) for key, of in relations.items()}
        self._whole.add(part, {of.type.name: ids[key] for key, of in relations.items()})
        graph = {}
        for key, of in relations.items():
            row, col = in_coo(part, of)
            size = tuple(types[end].of.type.n for end in (key[0], key[2]))
            graph[key] = self._tensors({"row": row, "col": col, "edge_id": ids[key]}) | {"size": size}
        self._save(folder / "graph.pt", graph)
        self._counter.advance(in_edges(part))
        if typed:
            data = {name: self._tensors(view.data()) for name, view in types.items()}
            of_relations = {
                key: _edges(part, of, types) | {"e_id": ids[key]} for key, of in relations.items()
            }
            named = {key: self._tensors(of_relations[key] | _data_of(of)) for key, of in relations.items()}
            save(self._torch, folder / "data.pt", data | named)
        rows = {name: self._nested(view.rows(typed)) for name, view in types.items() if view.of.num_inner}
        if rows or typed:  # PyG fails on an empty file of ids, but not on a missing one.
            self._save(folder / "node_feats.pt", rows)
        of_edges = {key: self._nested(rows) for key, of in relations.items() if (rows := _rows(of, ids[key]))}
        self._save(folder / "edge_feats.pt", of_edges)
        self._counter.advance(part.num_inner)

    def _save(self, file: Path, named: dict[Any, Any]) -> None:
        """Write what each type or each relation has. A graph without types has one, whose name is left out."""
        save(self._torch, file, named if self._source.typed else next(iter(named.values()), {}))

    def _tensors(self, arrays: dict[str, Any]) -> dict[str, Any]:
        numbers = {name: value for name, value in arrays.items() if isinstance(value, int)}
        return tensors(self._torch, {name: arrays[name] for name in arrays if name not in numbers}) | numbers

    def _nested(self, found: dict[str, Any]) -> dict[str, Any]:
        feats = self._tensors(found["feats"])
        return self._tensors({name: found[name] for name in found if name != "feats"}) | {"feats": feats}

    def finish(self) -> None:
        """Write the files about all parts."""
        typed, partition = self._source.typed, self._source.partition
        if typed:
            self._whole.finish("node_map/{}.pt", "edge_map/{}.pt")
        else:
            self._whole.finish("node_map.pt", "edge_map.pt")
        types, relations = vertex_types(partition), edge_types(partition)
        meta = {
            "num_parts": partition.k,
            "node_types": [each.name for each in types] if typed else None,
            "edge_types": [list(key_of(each)) for each in relations] if typed else None,
            "node_offset": [each.first for each in types] if typed else None,
            "is_hetero": typed,
            "is_sorted": True,
            "fastpart": _core.__version__,
        }
        write_json(self._inside / "META.json", meta)


class _Type:
    """The vertices of a type in a part: the inner ones, then the neighbours of inner vertices."""

    def __init__(self, source: Source, part: VertexPartData, of: TypeData) -> None:
        self._source, self.of = source, of
        self.span, self.halo_span = of.spans[:2]
        self._halo = part.vertices[slice(*self.halo_span)]

    def rows(self, typed: bool) -> dict[str, Any]:
        """Return the rows of the inner vertices by id."""
        ids = self.of.inner - self.of.type.first
        found: dict[str, Any] = {"global_id": ids, "id": ids} if typed else {"global_id": ids}
        if self.of.times is not None:
            found["time"] = self.of.times
        return found | {"feats": {} if self.of.features is None else {"x": self.of.features}}

    def data(self) -> dict[str, Any]:
        """Return what ``HeteroData`` has of the type. The masks name inner vertices only."""
        ids = np.concatenate([self.of.inner, self._halo]) - self.of.type.first
        found: dict[str, Any] = {"n_id": ids, "num_nodes": len(ids), "num_inner": self.of.num_inner}
        for name, attribute in {"x": "features", "y": "labels", "time": "times"}.items():
            inner = getattr(self.of, attribute)
            if inner is not None:
                found[name] = np.concatenate([inner, self._halo_rows(attribute, inner)])
        for name in MASKS:
            mask = getattr(self.of, name)
            if mask is not None:
                found[f"{name}_mask"] = np.concatenate([mask, np.zeros(len(self._halo), np.bool_)])
        return found

    def _halo_rows(self, attribute: str, inner: Array) -> Array:
        """Return the rows of neighbours from the parts that own them."""
        owners = self._source.partition.assignment[self._halo]
        rows = np.empty((len(self._halo), *inner.shape[1:]), inner.dtype)
        for owner in np.flatnonzero(np.bincount(owners)).tolist():
            view = rows_of_type(self._source.partition.parts[owner], self.of.type.name)
            those = owners == owner
            rows[those] = getattr(view, attribute)[np.searchsorted(view.inner, self._halo[those])]
        return rows

    def places(self, local: Array) -> Array:
        """Return the places in the type of vertices of the part. Neighbours lie behind the inner vertices."""
        (start, stop), (first, end) = self.span, self.halo_span
        inner = (local >= start) & (local < stop)
        if not np.all(inner | (local >= first) & (local < end)):
            raise self.of._part._damaged("relations", "edges whose ends are of the types of their relations")
        return np.where(inner, local - start, local - first + stop - start)


def _edges(part: VertexPartData, of: RelationData, types: Mapping[str, _Type]) -> dict[str, Any]:
    """Return the ends of the in-edges of the inner vertices by their places in the types."""
    sources, targets, _ = part.in_edges(local=True)
    ends = zip((of.type.source, of.type.target), (sources, targets), strict=True)
    return {
        "edge_index": np.stack([types[name].places(local[of.of_inner]) for name, local in ends]).astype(
            np.int64
        )
    }


def _data_of(of: RelationData) -> dict[str, Any]:
    """Return the rows that ``HeteroData`` has of a relation."""
    named = {"edge_attr": of.edge_features, "time": of.times}
    return {name: rows[: of.num_of_inner] for name, rows in named.items() if rows is not None}


def _rows(of: RelationData, ids: Array) -> dict[str, Any]:
    """Return the rows of the edges by id, if there are any."""
    found = _data_of(of)
    if not found or not len(ids):
        return {}
    times = {"edge_time": found.pop("time")} if "time" in found else {}
    return {"global_id": ids, "feats": found, **times}
