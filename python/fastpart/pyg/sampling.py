"""The sampler of a partition directory for PyG's loaders."""

from __future__ import annotations

import hashlib
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.sampler import (
    BaseSampler,
    EdgeSamplerInput,
    HeteroSamplerOutput,
    NegativeSampling,
    NodeSamplerInput,
    SamplerOutput,
)

from .. import _core
from ..core import parameters
from ..core.pairs import undirected_keys
from ..errors import ParameterError
from ..graphs.types import VertexType
from ..loading.links import edges_without
from ..partitions.loader_options import Fanouts
from ..partitions.partition import VertexPartition
from .pairs import Types, located, metadata_of, with_negatives

Ids = npt.NDArray[np.int64]
Output: TypeAlias = SamplerOutput | HeteroSamplerOutput


class PartitionSampler(BaseSampler):
    """Neighbour samples of a partition directory. See :func:`fastpart.pyg.sampler`."""

    def __init__(self, partition: VertexPartition, fanouts: Fanouts, settings: dict[str, Any]) -> None:
        self._partition, self._fanouts, self._settings = partition, fanouts, settings
        self._calls = 0
        self._open()

    def _open(self) -> None:
        """Open what pickling leaves out."""
        self._topology, self._sampler = self._partition._topology, self._opened()

    def _opened(self) -> Any:
        fanouts = list(parameters.fanouts_of(self._fanouts))
        return _core.Sampler(self._partition._topology, fanouts, edge_ids=True, **self._settings)

    def sample_from_nodes(self, index: NodeSamplerInput, **_: Any) -> Output:
        """Sample the in-edges around seeds.

        Parameters
        ----------
        index : torch_geometric.sampler.NodeSamplerInput
            ``node`` has the original ids of the seeds. In a graph with types they count within ``input_type``. Times
            are not supported.

        Returns
        -------
        torch_geometric.sampler.SamplerOutput or torch_geometric.sampler.HeteroSamplerOutput
            ``node`` has original ids, the seeds first, and ``edge`` those of ``edge_ids.npy``. In a graph with types
            they count within types and relations.
        """
        _refuse_times(index.time, "seeds", "input_time", "loader")
        ids = self._vertices(index.node, self._type_of(index.input_type), "input_nodes")
        batch = self._sample(ids, self._step(ids))
        return self._output(batch, None, index.input_type, (index.input_id, index.time))

    def sample_from_edges(
        self, index: EdgeSamplerInput, neg_sampling: NegativeSampling | None = None
    ) -> Output:
        """Sample the in-edges around the ends of edges and of negatives.

        Parameters
        ----------
        index : torch_geometric.sampler.EdgeSamplerInput
            ``row`` and ``col`` have the original ids of the ends. In a graph with types they count within the types of
            the ends of ``input_type``, which is a relation. Times are not supported.
        neg_sampling : torch_geometric.sampler.NegativeSampling, optional
            As in PyG, ``"binary"`` or ``"triplet"``. Negatives are of the types of the ends.

        Returns
        -------
        torch_geometric.sampler.SamplerOutput or torch_geometric.sampler.HeteroSamplerOutput
            As of :meth:`sample_from_nodes`. The edges of ``index`` are left out, with their reverse and parallel
            records, so that no message passes over an edge that is to be predicted. In a graph with types these are
            edges of the relation and of its reverse.
        """
        _refuse_times(index.time, "edges", "edge_label_time", "link_loader")
        types = self._types_of(index.input_type)
        ends = np.stack(
            [
                self._vertices(ids, of, "edge_label_index")
                for ids, of in zip((index.row, index.col), types, strict=True)
            ]
        )
        step = self._step(ends)
        pairs = with_negatives(ends, neg_sampling, types, (step ^ self._calls) & (2**63 - 1))
        ids, places = located(*pairs, types)
        metadata = metadata_of(index, neg_sampling, places)
        return self._output(self._sample(ids, step), ends, index.input_type, metadata)

    def _type_of(self, _: str | None) -> VertexType:
        """Return the type of seeds, given its name. Here it is that of all vertices."""
        return VertexType("", 0, len(self._partition))

    def _types_of(self, _: tuple[str, str, str] | None) -> Types:
        """Return the types of the ends of a relation."""
        return self._type_of(None), self._type_of(None)

    def _vertices(self, ids: Tensor, _of: VertexType, _name: str) -> Ids:
        """Return the vertices of the graph, given their ids within a type. The core checks them."""
        return ids.numpy().astype(np.int64)

    def _step(self, ids: Ids) -> int:
        """Return a number of the seeds. PyG does not say which step it is: it and the earlier calls take its place."""
        return int.from_bytes(hashlib.blake2b(ids.tobytes(), digest_size=8).digest(), "little")

    def _sample(self, ids: Ids, step: int) -> Any:
        batch = self._sampler.sample(self._topology.rows_of(ids), epoch=self._calls, step=step)
        self._calls += 1
        return batch

    def _output(self, batch: Any, left_out: Ids | None, _: Any, metadata: Any) -> Output:
        """Return the batch for PyG, without the edges of pairs, of shape (2, pairs)."""
        indptr, indices, edge, of_hops = batch.indptr, batch.indices, batch.e_id, batch.num_sampled_edges
        if left_out is not None:
            keys = np.unique(undirected_keys(*left_out))
            stay, indptr, of_hops = edges_without(batch.n_id, indptr, indices, of_hops, keys)
            indices, edge = indices[stay], edge[stay]
        row, col = row_and_col(indptr, indices)
        return SamplerOutput(
            node=torch.from_numpy(batch.n_id),
            row=row,
            col=col,
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


def row_and_col(indptr: npt.NDArray[Any], indices: npt.NDArray[Any]) -> tuple[Tensor, Tensor]:
    """Return sources and targets of in-edges, as places of nodes."""
    counts = np.diff(indptr)
    targets = np.repeat(np.arange(len(counts)), counts)
    return torch.from_numpy(indices).long(), torch.from_numpy(targets)


def _refuse_times(times: Tensor | None, of: str, name: str, loader: str) -> None:
    if times is not None:
        raise ParameterError(
            f"{name}: the sampler does not support times of {of}. Leave {name} out, or sample by time with "
            f"VertexPartition.{loader}(temporal=...)"
        )
