"""PyG's partition layout, as PyG 2.6.1 reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack

from .. import _core
from ..core.options import Options, run_options, with_options
from ..core.parameters import Progress, StrPath
from ..partitions.partition import PartitionSource
from ..partitions.parts import VertexPartData
from .by_id import BY_ID, WholeGraph, in_coo, save, tensors
from .common import Array, Counter, Source, directory, in_edges, missing, write_json
from .pyg_typed import TypedWriter

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
        not exist), and ``part_0/``, ... with ``graph.pt``, ``node_feats.pt`` (``x``) and ``edge_feats.pt``
        (``edge_attr``). As in PyG's examples, it also holds ``label.pt`` (int64, one per vertex, or uint8 of shape
        (n, classes) for multi-label tasks) and ``train-partitions/partition0.pt``, ... (the ids of the part's training
        vertices, and likewise for ``val`` and ``test``). Data that the partition was saved without is left out. A part
        without vertices has no ``node_feats.pt``, because PyG fails on empty ones.

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
    >>> fp.VertexPartition([1, 0, 1, 0, 0, 1], k=2).save(f"{folder}/parts", graph=graph)
    >>> root = fp.export.pyg(f"{folder}/parts", f"{folder}/pyg")
    >>> from torch_geometric.distributed import LocalGraphStore
    >>> LocalGraphStore.from_partition(str(root), 0).node_pb
    tensor([1, 0, 1, 0, 0, 1])
    """
    run = run_options(**options)
    stored = Source(source, "PyG")
    with directory(out, stored, "META.json", _EARLIER, _HELD, overwrite) as (target, inside):
        writer = _Writer(stored, inside, run.progress)
        for part in stored.parts():
            writer.write(part)
        writer.finish()
    return target


class _Writer:
    """Writes the parts, and after the last part the arrays over all ids."""

    def __init__(self, source: Source, inside: Path, progress: Progress | None) -> None:
        try:
            import torch
        except ModuleNotFoundError as error:
            raise missing("PyG", error) from None
        self._torch = torch
        source.refuse_foreign_types(torch)
        self._n, self._k, self._inside = len(source.partition), source.partition.k, inside
        self._typed = TypedWriter(torch, source, inside) if source.typed else None
        self._whole = None if source.typed else WholeGraph(torch, source, inside)
        self._counter = Counter(progress, "export", self._n + source.manifest["num_directed_edges"])

    def write(self, part: VertexPartData) -> None:
        """Write one part."""
        if self._whole is None:
            self._write_typed(part)
            return
        folder = self._inside / f"part_{part.index}"
        folder.mkdir()
        edges = in_edges(part)
        edge_ids = part.edge_ids[:edges]
        self._whole.add(part, edge_ids)
        sources, destinations = in_coo(part, edges)
        graph = tensors(self._torch, {"row": sources, "col": destinations, "edge_id": edge_ids})
        save(self._torch, folder / "graph.pt", graph | {"size": (self._n, self._n)})
        self._counter.advance(edges)
        # PyG fails on an empty file of ids, but not on a missing one.
        if part.num_inner:
            of_nodes = {} if part.features is None else {"x": part.features}
            save(self._torch, folder / "node_feats.pt", self._rows(part.inner, of_nodes))
        of_edges = {}
        if edges and part.edge_features is not None:
            of_edges = self._rows(edge_ids, {"edge_attr": part.edge_features[:edges]})
        save(self._torch, folder / "edge_feats.pt", of_edges)
        self._counter.advance(part.num_inner)

    def _write_typed(self, part: VertexPartData) -> None:
        assert self._typed is not None
        self._typed.write(part)
        self._counter.advance(part.num_inner + in_edges(part))

    def _rows(self, ids: Array, named: dict[str, Array]) -> dict[str, Any]:
        return tensors(self._torch, {"global_id": ids}) | {"feats": tensors(self._torch, named)}

    def finish(self) -> None:
        """Write the files about all parts."""
        types: dict[str, Any] = {
            "node_types": None,
            "edge_types": None,
            "node_offset": None,
            "is_hetero": False,
        }
        if self._whole is not None:
            self._whole.finish("node_map.pt", "edge_map.pt")
        if self._typed is not None:
            types = self._typed.finish()
        meta = {"num_parts": self._k, **types, "is_sorted": True, "fastpart": _core.__version__}
        write_json(self._inside / "META.json", meta)
