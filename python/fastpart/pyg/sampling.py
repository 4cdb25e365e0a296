"""The sampler of a partition directory for PyG's loaders."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
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
from ..core.pairs import Keys, among, keys_of, undirected_keys
from ..errors import ParameterError
from ..graphs.types import EdgeType, VertexType
from ..loading.batch import rows_without
from ..partitions.loader_options import Fanouts
from ..partitions.partition import VertexPartition
from ..partitions.types import (
    ONLY_RELATION,
    ONLY_TYPE,
    EdgeKey,
    edge_types,
    fanouts_of,
    key_of,
    vertex_types,
)
from .features import vertices_of

Ids = npt.NDArray[np.int64]
Output: TypeAlias = SamplerOutput | HeteroSamplerOutput


class PartitionSampler(BaseSampler):
    """Neighbour samples of a partition directory. See :func:`fastpart.pyg.sampler`."""

    def __init__(self, partition: VertexPartition, fanouts: Fanouts, settings: dict[str, Any]) -> None:
        self._partition, self._settings = partition, settings
        self._fanouts = fanouts_of(fanouts, partition)
        self._types = {each.name: each for each in vertex_types(partition)}
        self._relations = {key_of(each): each for each in edge_types(partition)}
        self._calls = 0
        self._open()

    def _open(self) -> None:
        """Open what pickling leaves out."""
        self._topology, types = self._partition._topology, self._partition._types
        self._sampler = _core.Sampler(
            self._topology, self._fanouts, types=types, edge_ids=True, **self._settings
        )

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
        ids = vertices_of(index.node.numpy().astype(np.int64), self._type_of(index.input_type), "input_nodes")
        batch = self._sample(ids, self._step(ids))
        return self._output(batch, {}, (index.input_id, index.time))

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
        relation = self._relation_of(index.input_type)
        types = self._types[relation.source], self._types[relation.target]
        ends = np.stack(
            [
                vertices_of(ids.numpy().astype(np.int64), of, "edge_label_index")
                for ids, of in zip((index.row, index.col), types, strict=True)
            ]
        )
        step = self._step(ends)
        pairs = with_negatives(ends, neg_sampling, types, (step ^ self._calls) & (2**63 - 1))
        ids, places = located(*pairs, types)
        metadata = metadata_of(index, neg_sampling, places)
        return self._output(self._sample(ids, step), self._keys_of(ends, relation), metadata)

    def _type_of(self, name: str | None) -> VertexType:
        if not self._partition.is_typed:
            name = ONLY_TYPE
        if name not in self._types:
            raise ParameterError(
                f"input_nodes: expected one of the types {', '.join(self._types)} beside the ids, as "
                f"({next(iter(self._types))!r}, ids), got {name!r}"
            )
        return self._types[name]

    def _relation_of(self, key: EdgeKey | None) -> EdgeType:
        if not self._partition.is_typed:
            key = ONLY_RELATION
        of = None if key is None else self._relations.get(key)
        if of is None:
            raise ParameterError(
                f"edge_label_index: expected one of the relations {', '.join(map(repr, self._relations))} beside the "
                f"pairs, as ({next(iter(self._relations))!r}, pairs), got {key!r}"
            )
        return of

    def _step(self, ids: Ids) -> int:
        """Return a number of the seeds. PyG does not say which step it is: it and the earlier calls take its place."""
        return int.from_bytes(hashlib.blake2b(ids.tobytes(), digest_size=8).digest(), "little")

    def _sample(self, ids: Ids, step: int) -> Any:
        batch = self._sampler.sample(self._topology.rows_of(ids), epoch=self._calls, step=step)
        self._calls += 1
        return batch

    def _output(self, batch: Any, left_out: Mapping[str, Keys], metadata: Any) -> Output:
        """Return the batch for PyG, without the edges of the pairs of each relation, which are given by keys."""
        plain = not self._partition.is_typed

        def of_each(*names: str) -> list[Any]:
            return [[getattr(batch, name)] if plain else getattr(batch, name) for name in names]

        nodes, counts = (
            dict(zip(self._types, of_types, strict=True)) for of_types in of_each("n_id", "num_sampled_nodes")
        )
        by_relation = of_each("indptr", "indices", "e_id", "num_sampled_edges")
        m = self._partition.num_edges or 0
        edges: dict[str, dict[EdgeKey, Any]] = {
            name: {} for name in ("row", "col", "edge", "num_sampled_edges")
        }
        for (key, each), indptr, indices, e_id, of_hops in zip(
            self._relations.items(), *by_relation, strict=True
        ):
            if each.name in left_out:
                targets = np.repeat(nodes[each.target][: len(indptr) - 1], np.diff(indptr))
                pairs = _key(each)(nodes[each.source][indices], targets)
                stay = ~among(pairs, left_out[each.name])
                indptr, of_hops = rows_without(stay, indptr, of_hops)
                indices, e_id = indices[stay], e_id[stay]
            edge = torch.from_numpy(each.ids_within(e_id, m) if each.name else e_id)
            for name, value in zip(edges, (*row_and_col(indptr, indices), edge, of_hops), strict=True):
                edges[name][key] = value
        node = {name: torch.from_numpy(ids - self._types[name].first) for name, ids in nodes.items()}
        found: dict[str, dict[Any, Any]] = {"node": node, **edges, "num_sampled_nodes": counts}
        if not plain:
            return HeteroSamplerOutput(**found, metadata=metadata)
        return SamplerOutput(
            **{name: next(iter(each.values())) for name, each in found.items()}, metadata=metadata
        )

    def _keys_of(self, ends: Ids, of: EdgeType) -> dict[str, Keys]:
        """Return the keys of pairs in their relation and in its reverse, by name. They ascend."""
        return {
            each.name: np.unique(_key(each)(*(ends if each.reversed == of.reversed else ends[::-1])))
            for each in self._relations.values()
            if each.relation.name == of.relation.name
        }

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in ("_topology", "_sampler")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()


def _key(of: EdgeType) -> Callable[[Ids, Ids], Keys]:
    """Return what makes a number of each pair. A merged relation has no direction, nor do pairs without relations."""
    return keys_of if of.name and of.relation.reverse != "merged" else undirected_keys


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


Types = tuple[VertexType, VertexType]
"""The types of the sources and of the targets."""


def with_negatives(ends: Ids, how: NegativeSampling | None, types: Types, seed: int) -> tuple[Ids, Ids]:
    """Return sources and targets, with negatives behind them."""
    if how is None:
        return ends[0], ends[1]
    count = math.ceil(ends.shape[1] * how.amount)
    generator = torch.Generator().manual_seed(seed)

    def sampled(of: VertexType, weight: Tensor | None) -> Ids:
        if weight is None:
            found = torch.randint(of.n, (count,), generator=generator)
        else:
            found = torch.multinomial(weight, count, replacement=True, generator=generator)
        return of.first + found.numpy()

    sources = np.concatenate([ends[0], sampled(types[0], how.src_weight)]) if how.is_binary() else ends[0]
    return sources, np.concatenate([ends[1], sampled(types[1], how.dst_weight)])


def located(sources: Ids, targets: Ids, types: Types) -> tuple[Ids, list[Tensor]]:
    """Return the distinct vertices, which ascend, and the places of sources and targets among those of their types."""
    ids, places = np.unique(np.concatenate([sources, targets]), return_inverse=True)
    firsts = np.searchsorted(ids, [each.first for each in types])
    of_ends = np.split(places.astype(np.int64), [len(sources)])
    return ids, [torch.from_numpy(of - first) for of, first in zip(of_ends, firsts, strict=True)]


def metadata_of(index: EdgeSamplerInput, how: NegativeSampling | None, at: list[Tensor]) -> tuple[Any, ...]:
    """Return what PyG's LinkLoader reads beside the sample, given the places of sources and targets."""
    count, (sources, targets) = len(index.row), at
    if how is not None and how.is_triplet():
        negatives = targets[count:].view(count, -1).squeeze(-1)
        return index.input_id, sources, targets[:count], negatives, None
    label = index.label
    if how is not None:
        label = torch.ones(count) if label is None else label
        label = torch.cat([label, label.new_zeros((len(sources) - count, *label.shape[1:]))])
    return index.input_id, torch.stack([sources, targets]), label, None
