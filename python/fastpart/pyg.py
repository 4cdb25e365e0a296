"""A partition directory for PyG's own loaders: a feature store, a graph store and a sampler.

:meth:`fastpart.VertexPartition.loader` is simpler and faster. Use these where a program is built around
``NodeLoader`` or ``LinkLoader`` of ``torch_geometric.loader``. Vertices have their original ids everywhere.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, Unpack

if find_spec("torch_geometric") is None:
    raise ModuleNotFoundError(
        "fastpart.pyg needs PyG, which is not installed: pip install 'fastpart[train]' torch_geometric",
        name="torch_geometric",
    )

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import EdgeAttr, FeatureStore, GraphStore, TensorAttr
from torch_geometric.data.graph_store import EdgeLayout
from torch_geometric.sampler import (
    BaseSampler,
    EdgeSamplerInput,
    NegativeSampling,
    NodeSamplerInput,
    SamplerOutput,
)

from . import _core
from .core import parameters
from .core.pairs import Keys, undirected_keys
from .core.shared_parameters import with_parameters
from .errors import FastpartError, ParameterError
from .loading.links import edges_without
from .partitions.loadable import LOADER_DEFAULTS, SamplingOptions
from .partitions.partition import VertexPartition
from .partitions.parts import VertexPartData
from .partitions.sampling import sampling_of

__all__ = ["feature_store", "graph_store", "sampler"]

_SPLITS = {"train_mask": "train", "val_mask": "val", "test_mask": "test"}


class PartitionFeatures(FeatureStore):
    """``x``, ``y`` and the masks of a partition directory, read-only. See :func:`feature_store`."""

    def __init__(self, partition: VertexPartition) -> None:
        super().__init__()
        self._partition = partition
        manifest = partition.manifest or {}
        splits = manifest.get("splits", [])
        self._names = {name: of for name, of in {"x": "features", "y": "labels"}.items() if of in manifest}
        self._names |= {name: of for name, of in _SPLITS.items() if of in splits}
        self._files: dict[str, _core.Features] = {}

    def _read(self, name: str, ids: npt.NDArray[np.int64]) -> Tensor:
        topology = self._partition._topology
        if name not in self._files:
            parts, of = self._partition.parts, self._names[name]
            rows = _core.Features([part._file(f"{of}.npy") for part in parts], topology)
            coding = parts[0].coding(of)
            self._files[name] = rows if coding is None else rows.decoded(coding.core)
        return torch.from_numpy(self._files[name].gather(topology.rows_of(ids)))

    def _get_tensor(self, attr: TensorAttr) -> Tensor | None:
        if attr.attr_name not in self._names:
            return None
        n = len(self._partition)
        index = slice(None) if not attr.is_set("index") or attr.index is None else attr.index
        if isinstance(index, slice):
            ids = np.arange(n)[index]
        else:
            ids = np.asarray(index)
            ids = np.flatnonzero(ids) if ids.dtype == np.bool_ else ids.astype(np.int64)
        return self._read(attr.attr_name, np.ascontiguousarray(ids.reshape(-1)))

    def _get_tensor_size(self, attr: TensorAttr) -> tuple[int, ...] | None:
        if attr.attr_name not in self._names:
            return None
        return (len(self._partition), *self._read(attr.attr_name, np.zeros(0, np.int64)).shape[1:])

    def get_all_tensor_attrs(self) -> list[TensorAttr]:
        """Return one attribute per array that was saved."""
        return [TensorAttr(group_name=None, attr_name=name) for name in self._names]

    def _put_tensor(self, tensor: Any, attr: TensorAttr) -> bool:
        raise FastpartError("feature_store: a partition directory is read-only")

    def _remove_tensor(self, attr: TensorAttr) -> bool:
        raise FastpartError("feature_store: a partition directory is read-only")

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_files": {}}

    def __repr__(self) -> str:
        return f"PartitionFeatures({', '.join(self._names)})"


class PartitionEdges(GraphStore):
    """The in-edges of a partition directory, read-only. See :func:`graph_store`."""

    def __init__(self, partition: VertexPartition) -> None:
        super().__init__()
        self._partition = partition

    def _get_edge_index(self, attr: EdgeAttr) -> tuple[Tensor, Tensor] | None:
        if attr.layout == EdgeLayout.CSR:
            return None
        degrees = np.zeros(len(self._partition), np.int64)
        for part in self._partition.parts:
            part.check_assignment(self._partition.assignment, self._partition.loads[part.index])
            degrees[part.inner] = np.diff(part.indptr[: part.num_inner + 1])
        indptr = np.concatenate(([0], np.cumsum(degrees)))
        sources = np.empty(indptr[-1], np.int64)
        for part in self._partition.parts:
            _copy_rows(part, indptr, sources)
        ends = indptr if attr.layout == EdgeLayout.CSC else np.repeat(np.arange(len(degrees)), degrees)
        return torch.from_numpy(sources), torch.from_numpy(ends)

    def get_all_edge_attrs(self) -> list[EdgeAttr]:
        """Return the layouts that there are: COO and CSC, both sorted by target."""
        n = len(self._partition)
        return [EdgeAttr(None, layout, is_sorted=True, size=(n, n)) for layout in ("coo", "csc")]

    def _put_edge_index(self, edge_index: Any, edge_attr: EdgeAttr) -> bool:
        raise FastpartError("graph_store: a partition directory is read-only")

    def _remove_edge_index(self, edge_attr: EdgeAttr) -> bool:
        raise FastpartError("graph_store: a partition directory is read-only")

    def __repr__(self) -> str:
        return f"PartitionEdges({len(self._partition)} vertices)"


def _copy_rows(part: VertexPartData, indptr: npt.NDArray[np.int64], sources: npt.NDArray[np.int64]) -> None:
    """Copy the in-edges of the inner vertices to the rows of the whole graph."""
    counts = np.diff(part.indptr[: part.num_inner + 1])
    edges = int(counts.sum())
    shift = np.repeat(indptr[part.inner] - part.indptr[: part.num_inner], counts)
    sources[np.arange(edges) + shift] = part.vertices[part.indices[:edges]]


class PartitionSampler(BaseSampler):
    """Neighbour samples of a partition directory. See :func:`sampler`."""

    def __init__(self, partition: VertexPartition, fanouts: Sequence[int], **settings: Any) -> None:
        self._partition = partition
        self._fanouts = parameters.fanouts_of(fanouts)
        self._settings = settings
        self._calls = 0
        self._open()

    def _open(self) -> None:
        self._topology = self._partition._topology
        self._sampler = _core.Sampler(self._topology, list(self._fanouts), edge_ids=True, **self._settings)

    def sample_from_nodes(self, index: NodeSamplerInput, **_: Any) -> SamplerOutput:
        """Sample the in-edges around seeds.

        Parameters
        ----------
        index : torch_geometric.sampler.NodeSamplerInput
            ``node`` has the original ids of the seeds. Times are not supported.

        Returns
        -------
        torch_geometric.sampler.SamplerOutput
            ``node`` has original ids, the seeds first, and ``edge`` those of ``edge_ids.npy``.
        """
        if index.time is not None:
            raise ParameterError("sampler: times of seeds are not supported")
        ids = index.node.numpy().astype(np.int64)
        return self._output(self._sample(ids, self._step(ids)), None, (index.input_id, index.time))

    def sample_from_edges(
        self, index: EdgeSamplerInput, neg_sampling: NegativeSampling | None = None
    ) -> SamplerOutput:
        """Sample the in-edges around the ends of edges and of negatives.

        Parameters
        ----------
        index : torch_geometric.sampler.EdgeSamplerInput
            ``row`` and ``col`` have the original ids of the ends. Times are not supported.
        neg_sampling : torch_geometric.sampler.NegativeSampling, optional
            As in PyG, ``"binary"`` or ``"triplet"``.

        Returns
        -------
        torch_geometric.sampler.SamplerOutput
            As of :meth:`sample_from_nodes`. The edges of ``index`` are left out, with their reverse and parallel
            records, so that no message passes over an edge that is to be predicted.
        """
        if index.time is not None:
            raise ParameterError("sampler: times of edges are not supported")
        ends = torch.stack([index.row, index.col]).numpy().astype(np.int64)
        step, label = self._step(ends), index.label
        sources, targets = self._with_negatives(ends, neg_sampling, step)
        if neg_sampling is not None and neg_sampling.is_binary():
            label = torch.ones(ends.shape[1]) if label is None else label
            negatives = label.new_zeros((len(sources) - len(label), *label.shape[1:]))
            label = torch.cat([label, negatives])
        ids, places = np.unique(np.concatenate([sources, targets]), return_inverse=True)
        found = torch.from_numpy(places.astype(np.int64))
        at_sources, at_targets = found[: len(sources)], found[len(sources) :]
        if neg_sampling is None or neg_sampling.is_binary():
            metadata: tuple[Any, ...] = index.input_id, torch.stack([at_sources, at_targets]), label, None
        else:
            count = ends.shape[1]
            negatives = at_targets[count:].view(count, -1).squeeze(-1)
            metadata = index.input_id, at_sources, at_targets[:count], negatives, None
        return self._output(self._sample(ids, step), np.unique(undirected_keys(*ends)), metadata)

    def _with_negatives(
        self, ends: npt.NDArray[np.int64], how: NegativeSampling | None, step: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return sources and targets, with negatives behind them."""
        if how is None:
            return ends[0], ends[1]
        count, n = math.ceil(ends.shape[1] * how.amount), len(self._partition)
        generator = torch.Generator().manual_seed((step ^ self._calls) & (2**63 - 1))

        def sampled(weight: Tensor | None) -> npt.NDArray[np.int64]:
            if weight is None:
                return torch.randint(n, (count,), generator=generator).numpy()
            return torch.multinomial(weight, count, replacement=True, generator=generator).numpy()

        sources = np.concatenate([ends[0], sampled(how.src_weight)]) if how.is_binary() else ends[0]
        return sources, np.concatenate([ends[1], sampled(how.dst_weight)])

    def _step(self, ids: npt.NDArray[np.int64]) -> int:
        """Return a number of the seeds. PyG does not say which step it is: it and the earlier calls take its place."""
        return int.from_bytes(hashlib.blake2b(ids.tobytes(), digest_size=8).digest(), "little")

    def _sample(self, ids: npt.NDArray[np.int64], step: int) -> _core.SampledBatch:
        batch = self._sampler.sample(self._topology.rows_of(ids), epoch=self._calls, step=step)
        self._calls += 1
        return batch

    def _output(self, batch: _core.SampledBatch, keys: Keys | None, metadata: Any) -> SamplerOutput:
        """Return the batch for PyG, without the edges of pairs."""
        assert batch.e_id is not None
        indptr, indices, edge = batch.indptr, batch.indices, batch.e_id
        of_hops = batch.num_sampled_edges
        if keys is not None:
            stay, indptr, of_hops = edges_without(batch.n_id, indptr, indices, of_hops, keys)
            indices, edge = indices[stay], edge[stay]
        counts = np.diff(indptr)
        return SamplerOutput(
            node=torch.from_numpy(batch.n_id),
            row=torch.from_numpy(indices).long(),
            col=torch.from_numpy(np.repeat(np.arange(len(counts)), counts)),
            edge=torch.from_numpy(edge),
            num_sampled_nodes=batch.num_sampled_nodes,
            num_sampled_edges=of_hops,
            metadata=metadata,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in ("_topology", "_sampler")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()


def feature_store(partition: VertexPartition) -> PartitionFeatures:
    """Return what PyG's loaders read features from.

    Parameters
    ----------
    partition : VertexPartition
        Opened from a directory that was saved with ``graph=``.

    Returns
    -------
    torch_geometric.data.FeatureStore
        ``x``, ``y``, ``train_mask``, ``val_mask`` and ``test_mask`` as far as they were saved, by original id. Rows are
        read through maps of the files. Nothing is loaded as a whole.

    Raises
    ------
    FastpartError
        The partition does not come from such a directory.

    Examples
    --------
    See :func:`sampler`.
    """
    _stored(partition)
    return PartitionFeatures(partition)


def graph_store(partition: VertexPartition) -> PartitionEdges:
    """Return what PyG's loaders read edges from.

    Parameters
    ----------
    partition : VertexPartition
        Opened from a directory that was saved with ``graph=`` and ``halo_hops`` of at least 1.

    Returns
    -------
    torch_geometric.data.GraphStore
        ``get_edge_index`` copies all in-edges, 8 to 16 bytes each. :func:`sampler` does not need it.

    Raises
    ------
    FastpartError
        The partition does not come from such a directory.

    Examples
    --------
    See :func:`sampler`.
    """
    _stored(partition)
    return PartitionEdges(partition)


@partial(with_parameters, defaults={**LOADER_DEFAULTS, "merged": True})
def sampler(
    partition: VertexPartition, fanouts: Sequence[int], **given: Unpack[SamplingOptions]
) -> PartitionSampler:
    """Return a sampler for ``NodeLoader`` and ``LinkLoader`` of ``torch_geometric.loader``. It does not need pyg-lib.

    Parameters
    ----------
    partition : VertexPartition
        Opened from a directory that was saved with ``graph=`` and ``halo_hops`` of at least 1.
    fanouts : sequence of int
        In-edges to sample per vertex in each hop. -1 takes all.

    Returns
    -------
    torch_geometric.sampler.BaseSampler
        It samples anew in every call. The same calls in the same order give the same batches.

    Raises
    ------
    FastpartError
        The partition does not come from such a directory.
    ParameterError
        A parameter is out of its range.

    Examples
    --------
    >>> import fastpart as fp, numpy as np, tempfile, torch
    >>> from torch_geometric.loader import NodeLoader
    >>> ring = np.array([[v, (v + 1) % 6] for v in range(6)])
    >>> folder = tempfile.mkdtemp() + "/parts"
    >>> fp.VertexPartition([0, 0, 0, 1, 1, 1], k=2).save(folder, graph=ring, features=np.eye(6, dtype=np.float32))
    >>> stored = fp.open_partition(folder, of="vertices")
    >>> loader = NodeLoader(
    ...     (fp.pyg.feature_store(stored), fp.pyg.graph_store(stored)),
    ...     node_sampler=fp.pyg.sampler(stored, [2, 2]),
    ...     input_nodes=torch.arange(6),
    ...     batch_size=3,
    ... )
    >>> [(batch.batch_size, batch.x.shape[1], batch.n_id[:3].tolist()) for batch in loader]
    [(3, 6, [0, 1, 2]), (3, 6, [3, 4, 5])]
    """
    _stored(partition)
    return PartitionSampler(partition, fanouts, **sampling_of(partition, given))


def _stored(partition: object) -> None:
    """Refuse what has no in-edges of all vertices."""
    if not isinstance(partition, VertexPartition):
        raise TypeError(f"partition: expected a VertexPartition, got {type(partition).__name__}")
    partition.refuse_without_edges()
    partition.refuse_types("partition", "the stores hold")
