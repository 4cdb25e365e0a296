"""PyG's partition layout, as PyG 2.6.1 reads it."""

from __future__ import annotations

import math
import os
import tempfile
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from .. import _core
from ..options import Options, run_options, with_options
from ..parameters import Progress, StrPath
from ..parsing import named
from ..parts import VertexPartData
from .common import MASKS, Array, Counter, Source, directory, failed, in_edges, missing, tensor, write_json


@with_options
def pyg(source: StrPath, out: StrPath, **options: Unpack[Options]) -> Path:
    """Write a vertex partition for ``torch_geometric.distributed``.

    Ids do not change, neither of vertices nor of directed edges (r for record r, m + r for its opposite direction).

    Parameters
    ----------
    source : path
        A partition directory of vertices, saved with ``graph=`` and ``halo_hops=1`` (a second hop is left out).
    out : path
        The directory to write. Its parent must exist. An earlier export is replaced. Any other directory must be empty.
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

    Raises
    ------
    ParameterError
        An edge partition, ``halo_hops=0``, or features of a dtype that torch does not have.
    ModuleNotFoundError
        torch is not installed. The text says what to install.
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
    with directory(out, stored, "META.json") as (target, inside):
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
        self._partition, self._inside = source.partition, inside
        n, m = len(source.partition), source.manifest["m"]
        self._edge_map = self._scratch(2 * m if source.manifest["directedness"] == "undirected" else m)
        self._labels: Array | None = None
        if "labels" in source.manifest:
            labels = source.partition.parts[0].labels
            self._labels = self._scratch(n, labels.shape[1:], labels.dtype)
        self._counter = Counter(progress, "export", n + source.manifest["num_directed_edges"])

    def _scratch(self, length: int, row: tuple[int, ...] = (), dtype: npt.DTypeLike = np.int64) -> Array:
        """Return an array in a nameless file. It is filled with -1, or with 0 if its type is unsigned."""
        shape, dtype = (length, *row), np.dtype(dtype)
        if not length:
            return np.empty(shape, dtype)
        with named(self._inside), tempfile.TemporaryFile(dir=self._inside) as file:
            # Without this, writing to the map would kill the process when the disk is full.
            os.posix_fallocate(file.fileno(), 0, math.prod(shape) * dtype.itemsize)
            array: Array = np.memmap(file, dtype, "r+", shape=shape)
            array[:] = -1 if dtype.kind == "i" else 0
            return array

    def write(self, part: VertexPartData) -> None:
        """Write one part."""
        folder = self._inside / f"part_{part.index}"
        folder.mkdir()
        edges = in_edges(part)
        edge_ids = part.edge_ids[:edges]
        self._edge_map[edge_ids] = part.index
        if self._labels is not None:
            self._labels[part.inner] = part.labels
        n = len(self._partition)
        degrees = np.diff(part.indptr[: part.num_inner + 1])
        graph = {
            "row": part.vertices[part.indices[:edges]],
            "col": np.repeat(part.inner, degrees),
            "edge_id": edge_ids,
        }
        self._save(folder / "graph.pt", self._tensors(graph) | {"size": (n, n)})
        self._counter.advance(edges)
        # PyG fails on an empty file of ids, but not on a missing one.
        if part.num_inner:
            of_nodes = {} if part.features is None else {"x": part.features}
            self._save(folder / "node_feats.pt", self._rows(part.inner, of_nodes))
        of_edges = {}
        if edges and part.edge_features is not None:
            of_edges = self._rows(edge_ids, {"edge_attr": part.edge_features[:edges]})
        self._save(folder / "edge_feats.pt", of_edges)
        self._save_splits(part)
        self._counter.advance(part.num_inner)

    def _save_splits(self, part: VertexPartData) -> None:
        for name in MASKS:
            mask = getattr(part, name)
            if mask is not None:
                folder = self._inside / f"{name}-partitions"
                folder.mkdir(exist_ok=True)
                self._save(folder / f"partition{part.index}.pt", self._torch.from_numpy(part.inner[mask]))

    def _rows(self, ids: Array, named: dict[str, Array]) -> dict[str, Any]:
        return self._tensors({"global_id": ids}) | {"feats": self._tensors(named)}

    def finish(self) -> None:
        """Write the files about all parts."""
        node_map = self._torch.from_numpy(self._partition.assignment.astype(np.int64))
        self._save(self._inside / "node_map.pt", node_map)
        self._save(self._inside / "edge_map.pt", self._torch.from_numpy(self._edge_map))
        if self._labels is not None:
            self._save(self._inside / "label.pt", self._torch.from_numpy(self._labels))
        meta = {
            "num_parts": self._partition.k,
            "node_types": None,
            "edge_types": None,
            "node_offset": None,
            "is_hetero": False,
            "is_sorted": True,
            "fastpart": _core.__version__,
        }
        write_json(self._inside / "META.json", meta)

    def _tensors(self, arrays: dict[str, Array]) -> dict[str, Any]:
        return {name: tensor(self._torch, array) for name, array in arrays.items()}

    def _save(self, file: Path, content: Any) -> None:
        try:
            with named(file), file.open("wb") as opened:
                self._torch.save(content, opened)
        except RuntimeError:  # how torch reports a failed write
            raise failed(file, "torch") from None
