"""The partition layout of GraphLearn-for-PyTorch (GLT), as its release 0.2.5 reads it."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core.options import Options, RunOptions, run_options, with_options
from ..core.parameters import StrPath, integer, shown
from ..core.parsing import named
from ..core.rows import Rows, rows_of
from ..errors import ParameterError, arg
from ..partitions.partition import PartitionSource
from ..partitions.parts import VertexPartData
from ..store.caches import has_caches, read_cache
from .common import (
    BY_ID,
    Array,
    Counter,
    Source,
    WholeGraph,
    directory,
    in_coo,
    in_edges,
    save,
    scratch,
    tensor,
    torch_for,
    write_json,
)

_MARKER = "fastpart.json"

_EARLIER = (
    rf"META|(node|edge)_pb\.pt|{BY_ID}|part\d+/(graph/(rows|cols|eids)\.pt|(node|edge)_feat/(feats|ids)\.pkl|"
    r"node_feat/cache_(feats|ids)\.pt)"
)
"""Files of versions that kept no list of them."""

_HELD = ("features", "edge_features")
"""Data of a partition directory that an export holds, by the entries of the manifest."""


@with_options
def glt(
    source: PartitionSource,
    out: StrPath,
    cache_ids: Mapping[int, npt.ArrayLike] | None = None,
    *,
    overwrite: bool = False,
    **options: Unpack[Options],
) -> Path:
    """Write a vertex partition for ``graphlearn_torch.distributed``.

    Ids do not change, neither of vertices nor of directed edges (r for record r, m + r for its opposite direction).

    Parameters
    ----------
    source : path
        A partition directory of vertices, saved with ``graph=`` and ``halo_hops=1`` (a second hop is left out).
    out : path
        The directory to write. Its parent must exist. An earlier export is replaced if it
        holds nothing else, and no data that ``source`` lacks. Any other directory must be empty.
    cache_ids : mapping of int to array_like of int, optional
        For each part, the vertices whose features it also stores, so that GLT does not fetch them. Parts that are not
        named have none, so ``{}`` turns caches off. Default: what ``cache_ids.npy`` in the folder of a part lists, if
        there is one.
    overwrite : bool
        Replace an earlier export also if it holds data that ``source`` lacks.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`. The export uses one thread and the memory of the largest part, without its
        features, which are mapped.

    Returns
    -------
    pathlib.Path
        ``out``, the ``root_dir`` of ``DistDataset(edge_dir="in").load``. It holds ``META``, ``node_pb.pt`` and
        ``edge_pb.pt`` (int64: part of each id, -1 for ids m + r of loops, which do not exist), and ``part0/``, ... with
        ``graph/rows.pt`` (sources), ``cols.pt`` (destinations) and ``eids.pt``, ``node_feat/`` and ``edge_feat/`` with
        ``feats.pkl`` and ``ids.pkl``, and for the cache ``node_feat/cache_feats.pt`` and ``cache_ids.pt``. It also
        holds ``label.pt`` (int64, one per vertex, or uint8 of shape (n, classes) for multi-label tasks) and
        ``train-partitions/partition0.pt``, ... (the ids of the part's training vertices, and likewise for ``val`` and
        ``test``). Data that the partition was saved without is left out. A part without vertices has no ``node_feat``
        and one without edges no ``edge_feat``, because GLT fails on empty ones.

    Raises
    ------
    ParameterError
        An edge partition, ``halo_hops=0``, features of a dtype that torch does not have, or ``cache_ids`` that are no
        vertices or name one twice.
    ModuleNotFoundError
        torch is not installed. The text says what to install.
    FileExistsError
        ``out`` is no earlier export, or holds data that ``source`` lacks.
    OSError
        With path and errno. An earlier export is intact.

    Notes
    -----
    GLT's layout consists of pickles, which can execute code when they are loaded. fastpart reads its files back with
    torch alone. It has not been run with GLT.

    Examples
    --------
    >>> import numpy as np, fastpart as fp, tempfile, torch
    >>> folder = tempfile.mkdtemp()
    >>> graph = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3]])
    >>> stored = fp.VertexPartition([1, 0, 1, 0, 0, 1], k=2).save(f"{folder}/parts", graph=graph, features=np.eye(6))
    >>> root = fp.export.glt(f"{folder}/parts", f"{folder}/glt", cache_ids={0: [0, 5]})
    >>> torch.load(root / "node_pb.pt")
    tensor([1, 0, 1, 0, 0, 1])
    >>> torch.load(root / "part0" / "node_feat" / "cache_ids.pt")
    tensor([0, 5])
    """
    run = run_options(**options)
    stored = Source(source, "GLT")
    stored.refuse_types("GLT")
    cached = CachedRows(stored, cache_ids)
    with directory(out, stored, _MARKER, _EARLIER, _HELD, overwrite) as (target, inside):
        writer = _Writer(stored, cached, inside, run)
        for part in stored.parts():
            writer.write(part)
        writer.finish()
    return target


class _Writer:
    """Writes the parts, and after the last part the arrays over all ids."""

    def __init__(self, source: Source, cached: CachedRows, inside: Path, options: RunOptions) -> None:
        self._torch = torch_for("GLT", source)
        self._k, self._cached, self._inside = source.partition.k, cached, inside
        self._whole = WholeGraph(self._torch, source, inside)
        total = len(source.partition) + source.manifest["num_directed_edges"]
        self._counter = Counter(options.progress, "export", total)

    def write(self, part: VertexPartData) -> None:
        """Write one part."""
        folder = self._inside / f"part{part.index}"
        edges = in_edges(part)
        (relation,) = part._by_relation
        edge_ids = part.edge_ids[:edges]
        self._whole.add(part, {relation.type.name: edge_ids})
        sources, destinations = in_coo(part, relation)
        self._tensors(folder / "graph", {"rows": sources, "cols": destinations, "eids": edge_ids})
        self._counter.advance(edges)
        self._rows(folder / "node_feat", part.inner, part.features)
        features = None if part.edge_features is None else part.edge_features[:edges]
        self._rows(folder / "edge_feat", edge_ids, features)
        ids = self._cached.ids(part)
        if len(ids) and part.num_inner:
            rows = self._cached.features(ids, self._inside)
            self._tensors(folder / "node_feat", {"cache_feats": rows, "cache_ids": ids})
        self._counter.advance(part.num_inner)

    def _tensors(self, folder: Path, arrays: dict[str, Array]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, array in arrays.items():
            save(self._torch, folder / f"{name}.pt", tensor(self._torch, array))

    def _rows(self, folder: Path, ids: Array, features: Array | None) -> None:
        """Write features as GLT does: tensors of some rows each, pickled one after the other."""
        if features is None or not len(ids):  # GLT fails on an empty file, but not on a missing one.
            return
        folder.mkdir(parents=True)
        for name, array in {"feats": features, "ids": ids}.items():
            file = folder / f"{name}.pkl"
            with named(file), file.open("wb") as opened:
                for rows in rows_of(name, array).chunks():
                    pickle.dump(tensor(self._torch, rows), opened)

    def finish(self) -> None:
        """Write the files about all parts."""
        self._whole.finish("node_pb.pt", "edge_pb.pt")
        meta = {"num_parts": self._k, "data_cls": "homo", "node_types": None, "edge_types": None}
        _core.write_file(self._inside / "META", pickle.dumps(meta, pickle.HIGHEST_PROTOCOL))
        write_json(self._inside / _MARKER, {"format": "glt", "fastpart": _core.__version__})


class CachedRows:
    """The vertices that each part caches: those that are given, or those that the folder of the part lists."""

    def __init__(self, source: Source, given: Mapping[int, npt.ArrayLike] | None) -> None:
        self._partition = source.partition
        self._stored = "features" in source.manifest
        self._given: dict[int, Array] | None = None
        if given is None:
            return
        if not isinstance(given, Mapping):
            raise TypeError(f"cache_ids: expected a mapping of parts to vertices, got {type(given).__name__}")
        if given and not self._stored:
            raise ParameterError(
                f"cache_ids: {shown(source.path)} holds no features. Save it with {arg('features')}"
            )
        of = {integer("cache_ids: part", part, 0, self._partition.k - 1): ids for part, ids in given.items()}
        self._given = {part: self._checked(f"cache_ids[{part}]", ids) for part, ids in of.items()}

    def ids(self, part: VertexPartData) -> Array:
        """Return the vertices that a part caches, int64."""
        if self._given is not None:
            return self._given.get(part.index, np.empty(0, np.int64))
        if not self._stored or not has_caches(self._partition):
            return np.empty(0, np.int64)
        return read_cache(self._partition, part.index)

    def _checked(self, name: str, ids: npt.ArrayLike) -> Array:
        array = np.asarray(ids)
        if array.ndim != 1 or (array.dtype.kind not in "iu" and len(array)):
            raise ParameterError(
                f"{name}: expected a list of vertices, got {array.dtype} of shape {array.shape}"
            )
        last = len(self._partition) - 1
        if len(array) and not 0 <= array.min() <= array.max() <= last:
            raise ParameterError(f"{name}: expected vertices, 0..{last}, got {array.min()}..{array.max()}")
        if len(np.unique(array)) < len(array):
            raise ParameterError(f"{name}: a vertex is listed twice. Use numpy.unique(ids)")
        return array.astype(np.int64)

    def features(self, ids: Array, inside: Path) -> Array:
        """Return the features of vertices of any part, mapped from a nameless file in ``inside``."""
        first = _rows_of(self._partition.parts[0], ids[:0])
        rows = scratch(inside, len(ids), first.shape[1:], first.dtype)
        owners = self._partition.assignment[ids]
        for owner in np.unique(owners):
            those, start = np.flatnonzero(owners == owner), 0
            for some in _rows_of(self._partition.parts[int(owner)], ids[those]).chunks():
                rows[those[start : start + len(some)]] = some
                start += len(some)
        return rows


def _rows_of(part: VertexPartData, ids: Array) -> Rows:
    """Return the features of inner vertices of a part."""
    features: Any = part.features
    places = np.searchsorted(part.inner, ids)
    shape = (len(ids), *features.shape[1:])
    return Rows(shape, features.dtype, lambda start, stop: features[places[start:stop]])
