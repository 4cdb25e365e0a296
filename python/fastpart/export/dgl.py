"""DGL's partition format, as DGL 2.1.0 reads it."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from .. import _core
from ..core.options import Options, RunOptions, run_options, with_options
from ..core.parameters import StrPath, shown
from ..errors import MemoryBudgetError, ParameterError
from ..graphs.types import EdgeType
from ..partitions.part_rows import VertexRows
from ..partitions.partition import PartitionSource
from ..partitions.parts import VertexPartData
from ..partitions.types import key_of
from .common import (
    MASKS,
    Array,
    Counter,
    PartOrder,
    Source,
    directory,
    failed,
    in_edges,
    missing,
    tensor,
    write_json,
)

_GRAPH_EDGE_BYTES = 8 + 8 + 1
_GRAPH_VERTEX_BYTES = 8 + 8 + 1 + 8
"""In ``graph.dgl``, per edge: source, id, inner flag. Per vertex: offset, id, inner flag, part."""

_HALO_BYTES = 5 * 8
"""Additional bytes per vertex while new ids are looked up."""

_EARLIER = r"orig_[ne]ids\.npy|part\d+/(graph|node_feat|edge_feat)\.dgl"
"""Files of versions that kept no list of them."""

_HELD = ("features", "labels", "splits", "times", "edge_features", "edge_times")
"""Data of a partition directory that an export holds, by the entries of the manifest."""


@with_options
def dgl(
    source: PartitionSource,
    out: StrPath,
    graph_name: str = "graph",
    *,
    overwrite: bool = False,
    **options: Unpack[Options],
) -> Path:
    """Write a vertex partition as ``dgl.distributed.partition_graph`` does, for DistDGL.

    Vertices and edges get new ids. Vertices are ordered by part, then by old id. Edges are ordered by the part of their
    destination, then by destination, then by record. Node data are ``feat``, ``label``, ``train_mask``, ``val_mask``
    and ``test_mask`` (masks and multi-label labels as uint8), edge data are ``feat``, each if the partition was saved
    with it.

    Parameters
    ----------
    source : path
        A partition directory of vertices, saved with ``graph=`` and ``halo_hops=1`` (a second hop is left out).
    out : path
        The directory to write. Its parent must exist. An earlier export of this ``graph_name`` is replaced if it
        holds nothing else, and no data that ``source`` lacks. Any other directory must be empty.
    graph_name : str
        Name of the graph in ``dgl.distributed``: letters, digits, ``_``, ``-`` and ``.``.
    overwrite : bool
        Replace an earlier export also if it holds data that ``source`` lacks.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`. More than two threads are no faster. The memory limit is for the largest part.
        torch and dgl themselves take 250 MB more.

    Returns
    -------
    pathlib.Path
        ``OUT/<graph_name>.json``, the ``part_config`` of ``dgl.distributed``. Beside it lie ``part0/``, ``part1/``, ...
        and the old ids, ``orig_nids.npy`` and ``orig_eids.npy`` (int64, row = new id, value = vertex, or directed edge:
        r for record r, m + r for its opposite direction).

    Raises
    ------
    ParameterError
        An edge partition, ``halo_hops=0``, or features of a dtype that torch does not have.
    ModuleNotFoundError
        torch or dgl is not installed. The text says what to install.
    MemoryBudgetError
        Before anything is written.
    FileExistsError
        ``out`` is no earlier export, or holds data that ``source`` lacks.
    OSError
        With path and errno. An earlier export is intact.

    Notes
    -----
    One part is in memory at a time, without its features, which are mapped.

    Examples
    --------
    >>> import numpy as np, fastpart as fp, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> graph = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3]])
    >>> stored = fp.VertexPartition([1, 0, 1, 0, 0, 1], k=2).save(f"{folder}/parts", graph=graph)
    >>> config = fp.export.dgl(f"{folder}/parts", f"{folder}/dgl")
    >>> np.load(config.parent / "orig_nids.npy")
    array([1, 3, 4, 0, 2, 5])
    >>> from dgl.distributed import load_partition
    >>> part, node_data, edge_data, book, *_ = load_partition(config, 1)
    >>> book.partid2nids(1)
    tensor([3, 4, 5])
    """
    _refuse_name(graph_name)
    run = run_options(**options)
    stored = Source(source, "DGL")
    edge_counts = [in_edges(part) for part in stored.parts()]
    layout = Layout(stored.parts())
    _refuse_large(stored, layout, edge_counts, run.memory_limit)
    config = f"{graph_name}.json"
    with directory(out, stored, config, _EARLIER, _HELD, overwrite) as (target, inside):
        _refuse_encoding(target)
        writer = _Writer(stored, layout, inside, edge_counts, run)
        writer.write(stored.parts())
        write_json(inside / config, writer.config(graph_name))
    return target / config


def _refuse_name(graph_name: object) -> None:
    if not isinstance(graph_name, str):
        raise TypeError(f"graph_name: expected a string, got {type(graph_name).__name__}")
    if not re.fullmatch(r"\w[\w.-]{0,99}", graph_name, re.ASCII):
        raise ParameterError(
            f"graph_name: {graph_name!r} is invalid. Use up to 100 letters, digits, '_', '-' and '.', and begin with "
            "none of '-' and '.'"
        )


def _refuse_large(source: Source, layout: Layout, edge_counts: list[int], limit: int | None) -> None:
    if limit is None:
        return
    for part, edges in zip(source.partition.parts, edge_counts, strict=True):
        vertices = part.num_inner + part.halo_sizes[0]
        needed = (_GRAPH_EDGE_BYTES + 2 * layout.edge_bytes) * edges
        needed += (_GRAPH_VERTEX_BYTES + layout.vertex_bytes + _HALO_BYTES) * vertices
        if needed > limit:
            raise MemoryBudgetError(
                f"export of part {part.index} needs {needed:,} bytes of memory, but the budget is {limit:,}. Raise "
                "memory_limit, or use more parts"
            )


def _refuse_encoding(target: Path) -> None:
    try:
        str(target.absolute()).encode()
    except UnicodeEncodeError:
        raise ParameterError(
            f"out: {shown(target)} is not UTF-8, which DGL needs. Choose another path"
        ) from None


def _libraries() -> tuple[Any, Any]:
    """Import torch and dgl without their warnings."""
    # Without it, dgl prompts for its backend and writes a default to the home directory.
    os.environ.setdefault("DGLBACKEND", "pytorch")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import dgl
            import torch
    except ModuleNotFoundError as error:
        raise missing("DGL", error) from None
    return torch, dgl


class _Writer:
    """Writes the parts in order."""

    def __init__(
        self, source: Source, layout: Layout, inside: Path, edge_counts: list[int], options: RunOptions
    ) -> None:
        self._torch, self._dgl = _libraries()
        source.refuse_foreign_types(self._torch)
        self._partition, self._layout, self._inside = source.partition, layout, inside
        self._order = PartOrder(source, inside, edge_counts)
        total = int(self._order.vertices[-1] + self._order.edges[-1])
        self._counter = Counter(options.progress, "export", total)
        self._threads = options.threads or _core.default_threads()

    def write(self, parts: Iterable[VertexPartData]) -> None:
        """Write all parts in order. A second thread writes everything but the graph."""
        with ThreadPoolExecutor(1) as second:
            for part in parts:
                folder = self._inside / f"part{part.index}"
                folder.mkdir()
                edges = in_edges(part)
                data = second.submit(self._save_data, folder, part, edges)
                if self._threads == 1:
                    data.result()
                self._save_graph(folder / "graph.dgl", part, edges)
                data.result()
                self._counter.advance(part.num_inner + edges)

    def _save_data(self, folder: Path, part: VertexPartData, edges: int) -> None:
        order = self._layout.edge_order(part, edges)
        self._order.add_edges(part.edge_ids[:edges] if order is None else part.edge_ids[order])
        self._save_tensors(folder / "node_feat.dgl", self._layout.node_data(part))
        self._save_tensors(folder / "edge_feat.dgl", self._layout.edge_data(part))

    def _save_tensors(self, file: Path, arrays: dict[str, Array]) -> None:
        for name, array in arrays.items():
            arrays[name] = array.view(np.uint8) if array.dtype == bool else array
        tensors = {name: tensor(self._torch, array) for name, array in arrays.items()}
        empty = {name: rows[:0] for name, rows in tensors.items()}
        size = sum(array.nbytes for array in arrays.values())
        self._save(file, self._dgl.data.utils.save_tensors, empty, tensors, size)

    def _save_graph(self, file: Path, part: VertexPartData, edges: int) -> None:
        """Save the in-edges of the inner vertices. Rows and edges already are in DGL's order."""
        nodes, owners = self._order.new_ids(part)
        indices = self._order.sources(part, edges)
        indptr = np.full(len(nodes) + 1, edges)
        indptr[: part.num_inner] = part.indptr[: part.num_inner]
        empty = self._graph(part, np.zeros(1, np.int64), indices[:0], nodes[:0], owners[:0])
        graph = self._graph(part, indptr, indices, nodes, owners)
        size = (_GRAPH_VERTEX_BYTES + self._layout.vertex_bytes) * len(nodes)
        size += (_GRAPH_EDGE_BYTES + self._layout.edge_bytes) * edges
        self._save(file, partial(self._dgl.save_graphs, formats=["csc"]), [empty], [graph], size)

    def _graph(self, part: VertexPartData, indptr: Array, indices: Array, nodes: Array, owners: Array) -> Any:
        torch = self._torch
        ids, order = torch.empty(0, dtype=torch.int64), self._layout.edge_order(part, len(indices))
        if order is not None:
            ids = torch.empty(len(indices), dtype=torch.int64)
            ids[torch.from_numpy(order)] = torch.arange(len(indices))
        csc = (torch.from_numpy(indptr), torch.from_numpy(indices), ids)
        graph = self._dgl.graph(("csc", csc), num_nodes=len(nodes))
        graph.ndata[self._dgl.NID] = torch.from_numpy(nodes)
        graph.ndata["inner_node"] = (torch.arange(len(nodes)) < part.num_inner).to(torch.uint8)
        graph.ndata["part_id"] = torch.from_numpy(owners)
        first = int(self._order.edges[part.index])
        graph.edata[self._dgl.EID] = torch.arange(first, first + len(indices))
        graph.edata["inner_edge"] = torch.ones(len(indices), dtype=torch.uint8)
        tags = self._layout.node_tags(part), self._layout.edge_tags(part)
        if tags[0] is not None and tags[1] is not None:
            graph.ndata[self._dgl.NTYPE] = torch.from_numpy(tags[0][: len(nodes)])
            graph.edata[self._dgl.ETYPE] = torch.from_numpy(tags[1][: len(indices)])
        return graph

    def _save(self, file: Path, save: Callable[[str, Any], object], empty: Any, full: Any, size: int) -> None:
        """Save, and check that the file is ``size`` bytes longer than that of ``empty``: DGL misses a full disk."""
        try:
            save(str(file), empty)
            header = file.stat().st_size
            save(str(file), full)
        except self._dgl.DGLError as error:
            raise failed(file, "DGL") from error
        if header == 0 or file.stat().st_size != header + size:
            raise failed(file, "DGL")

    def config(self, graph_name: str) -> dict[str, Any]:
        """Return the content of the JSON file."""
        files = {"node_feats": "node_feat.dgl", "edge_feats": "edge_feat.dgl", "part_graph": "graph.dgl"}
        return {
            "graph_name": graph_name,
            "num_nodes": int(self._order.vertices[-1]),
            "num_edges": int(self._order.edges[-1]),
            "part_method": self._partition.algorithm,
            "num_parts": self._partition.k,
            "halo_hops": 1,
            **self._layout.config(),
            **{
                f"part-{i}": {key: f"part{i}/{name}" for key, name in files.items()}
                for i in range(self._partition.k)
            },
            "fastpart": _core.__version__,
        }


_NODES, _EDGES = "_N", "_N:_E:_N"
"""DGL's names of the node type and the edge type of a homogeneous graph."""

Tensors = dict[str, Array]


class Layout:
    """New ids ascend by part and type, and by part and edge type. DGL names the one type of a plain graph ``_N``.

    Attributes
    ----------
    edge_bytes, vertex_bytes : int
        Bytes per edge and vertex of what a graph with types has besides in ``graph.dgl``.
    """

    def __init__(self, parts: Iterable[VertexPartData]) -> None:
        self._vertices, self._edges = [], []
        for part in parts:
            self._typed = part.types is not None
            self._vertices.append([rows.num_inner for rows in part._by_type])
            self._edges.append([relation.num_of_inner for relation in part._by_relation])
        self._names = [rows.type.name or _NODES for rows in part._by_type]
        self._triples = [_triple(relation.type) for relation in part._by_relation]
        self.edge_bytes, self.vertex_bytes = (8 + 4, 2) if self._typed else (0, 0)

    def edge_order(self, part: VertexPartData, edges: int) -> Array | None:
        """Return the places of the edges by edge type, the order of their new ids. None if it is that of the rows."""
        return None if part.relations is None else np.argsort(part.relations[:edges], kind="stable")

    def node_tags(self, part: VertexPartData) -> Array | None:
        """Return the type of each inner vertex and each neighbour, int16, as DGL keeps it. None if there is one."""
        if not self._typed:
            return None
        counts = [
            stop - start for hop in (0, 1) for rows in part._by_type for start, stop in [rows.spans[hop]]
        ]
        return np.repeat(np.tile(np.arange(len(self._names), dtype=np.int16), 2), counts)

    def edge_tags(self, part: VertexPartData) -> Array | None:
        """Return the edge type of each edge in the order of the new ids, int32, as in DGL. None if there is one."""
        if not self._typed:
            return None
        return np.repeat(np.arange(len(self._triples), dtype=np.int32), self._edges[part.index])

    def node_data(self, part: VertexPartData) -> Tensors:
        """Return the data of the inner vertices of each type."""
        found: Tensors = {}
        for name, rows in zip(self._names, part._by_type, strict=True):
            found |= _rows_of(name, rows)
        return found

    def edge_data(self, part: VertexPartData) -> Tensors:
        """Return the data of the in-edges of the inner vertices of each edge type, in the order of the new ids."""
        found: Tensors = {}
        for name, relation in zip(self._triples, part._by_relation, strict=True):
            named, count = {"feat": relation.edge_features, "time": relation.times}, relation.num_of_inner
            found |= {f"{name}/{key}": rows[:count] for key, rows in named.items() if rows is not None}
        return found

    def config(self) -> dict[str, Any]:
        """Return the entries of the JSON file."""
        return {
            "node_map": _ranges(self._names, np.array(self._vertices)),
            "edge_map": _ranges(self._triples, np.array(self._edges)),
            "ntypes": {name: number for number, name in enumerate(self._names)},
            "etypes": {name: number for number, name in enumerate(self._triples)},
        }


def _triple(of: EdgeType) -> str:
    return ":".join(key_of(of)) if of.name else _EDGES


def _rows_of(name: str, rows: VertexRows) -> Tensors:
    of_nodes: dict[str, Array | None] = {"feat": rows.features, "label": rows.labels}
    of_nodes |= {f"{split}_mask": getattr(rows, split) for split in MASKS}
    of_nodes["time"] = rows.times
    return {f"{name}/{key}": array for key, array in of_nodes.items() if array is not None}


def _ranges(names: list[str], counts: Array) -> dict[str, list[list[int]]]:
    """Return the range of new ids of each name in each part, from the counts by part and name."""
    ends = np.cumsum(counts).reshape(counts.shape)
    starts = ends - counts
    return {name: np.stack([starts[:, at], ends[:, at]], axis=1).tolist() for at, name in enumerate(names)}
