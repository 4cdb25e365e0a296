"""The sampler of a directory with types for PyG's loaders. Ids count within a type, and within a relation."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.sampler import HeteroSamplerOutput

from .. import _core
from ..core.pairs import Keys, among, keys_of, undirected_keys
from ..errors import ParameterError
from ..graphs.types import EdgeType, VertexType
from ..loading.links import rows_without
from ..partitions.loader_options import Fanouts
from ..partitions.partition import VertexPartition
from ..partitions.types import EdgeKey, edge_keys, relation_fanouts
from .pairs import Types
from .sampling import PartitionSampler, row_and_col
from .typed_rows import vertices_of

Ids = npt.NDArray[np.int64]


class TypedPartitionSampler(PartitionSampler):
    """Neighbour samples of a directory with types. See :func:`fastpart.pyg.sampler`."""

    def __init__(self, partition: VertexPartition, fanouts: Fanouts, settings: dict[str, Any]) -> None:
        first = partition.parts[0]
        self._types = {each.name: each for each in first.types or ()}
        self._relations = dict(zip(edge_keys(partition), first.edge_types or (), strict=True))
        super().__init__(partition, fanouts, settings)

    def _opened(self) -> Any:
        fanouts = relation_fanouts(self._fanouts, list(self._relations))
        return _core.Sampler(
            self._partition._topology,
            fanouts,
            types=self._partition._types,
            edge_ids=True,
            **self._settings,
        )

    def _type_of(self, name: str | None) -> VertexType:
        if name not in self._types:
            raise ParameterError(
                f"input_nodes: expected one of the types {', '.join(self._types)} beside the ids, as "
                f"({next(iter(self._types))!r}, ids), got {name!r}"
            )
        return self._types[name]

    def _relation_of(self, key: EdgeKey | None) -> EdgeType:
        of = None if key is None else self._relations.get(key)
        if of is None:
            raise ParameterError(
                f"edge_label_index: expected one of the relations {', '.join(map(repr, self._relations))} beside the "
                f"pairs, as ({next(iter(self._relations))!r}, pairs), got {key!r}"
            )
        return of

    def _types_of(self, key: EdgeKey | None) -> Types:
        of = self._relation_of(key)
        return self._types[of.source], self._types[of.target]

    def _vertices(self, ids: Tensor, of: VertexType, name: str) -> Ids:
        return vertices_of(super()._vertices(ids, of, name), of, name)

    def _output(self, batch: Any, left_out: Ids | None, of: Any, metadata: Any) -> HeteroSamplerOutput:
        n_id = dict(zip(self._types, batch.n_id, strict=True))
        keys = {} if left_out is None else self._keys_of(left_out, self._relation_of(of))
        m = self._partition.num_edges or 0
        row, col, edge, hops = {}, {}, {}, {}
        for number, (key, each) in enumerate(self._relations.items()):
            indptr, indices, e_id = batch.indptr[number], batch.indices[number], batch.e_id[number]
            of_hops = batch.num_sampled_edges[number]
            if each.name in keys:
                targets = np.repeat(n_id[each.target][: len(indptr) - 1], np.diff(indptr))
                stay = ~among(_key(each)(n_id[each.source][indices], targets), keys[each.name])
                indptr, of_hops = rows_without(stay, indptr, of_hops)
                indices, e_id = indices[stay], e_id[stay]
            row[key], col[key] = row_and_col(indptr, indices)
            edge[key], hops[key] = torch.from_numpy(each.ids_within(e_id, m)), of_hops
        return HeteroSamplerOutput(
            node={name: torch.from_numpy(ids - self._types[name].first) for name, ids in n_id.items()},
            row=row,
            col=col,
            edge=edge,
            num_sampled_nodes=dict(zip(self._types, batch.num_sampled_nodes, strict=True)),
            num_sampled_edges=hops,
            metadata=metadata,
        )

    def _keys_of(self, ends: Ids, of: EdgeType) -> dict[str, Keys]:
        """Return the keys of pairs in their relation and in its reverse, by name. They ascend."""
        return {
            each.name: np.unique(_key(each)(*(ends if each.reversed == of.reversed else ends[::-1])))
            for each in self._relations.values()
            if each.relation.name == of.relation.name
        }


def _key(of: EdgeType) -> Any:
    """Return what makes a number of each pair. A merged relation has no direction."""
    return undirected_keys if of.relation.reverse == "merged" else keys_of
