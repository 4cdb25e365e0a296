"""Mini-batches of the edges of one relation of a typed graph, for link prediction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ... import _core
from ...core.pairs import Keys, among, keys_of
from ...errors import ParameterError, arg
from ...graphs.types import EdgeType
from ...measures.ranking import Epoch
from ...partitions.loader_options import Fanouts, LinkOptions, LoaderOptions
from ...partitions.partition import VertexPartition
from ...partitions.seeds import Seeds, Steps, rank_of_part
from ...partitions.types import EdgeKey, of_type
from ..links import LinkLoader, LinkSteps, edges_of
from ..negatives import AllVertices
from ..timed_edges import EarlierVertices, times_of
from .batch import TypedBatch
from .loader import TypedLoader

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class TypedLinkBatch(TypedBatch):
    """A mini-batch of edges of one relation to tell from negatives. It also has all of :class:`TypedBatch`.

    The first level of its nodes are the ends of the edges and of their negatives, each once. The positives of the
    global batch are not among the in-edges of the relation and of its reverse, with none of their parallel records.
    ``batch_size`` and ``global_size`` count positives. ``input_type`` is the type of the targets.

    Attributes
    ----------
    relation : tuple of str
        Type of the sources, name of the relation, and type of the targets.
    edge_label_index : torch.Tensor
        int64, of shape (2, pairs): source and target of each pair, as places among the nodes of their types. The
        positives come first, then the negatives of the first positive, those of the second one, and so on.
    edge_label : torch.Tensor
        float32, of shape (pairs,): 1 for positives, 0 for negatives.
    """

    relation: EdgeKey
    edge_label_index: Tensor
    edge_label: Tensor

    def __repr__(self) -> str:
        return (
            f"<TypedLinkBatch: {self.batch_size} of {self.global_size} edges of {self.relation[1]}, "
            f"{len(self.edge_label)} pairs, {self.num_nodes} nodes, {self.num_edges} edges>"
        )


class TypedLinkLoader(LinkLoader, TypedLoader):
    """Mini-batches of edges of one relation. :meth:`fastpart.VertexPartition.link_loader` makes it.

    It is a :class:`TypedLoader` whose batches are a :class:`TypedLinkBatch` each. ``batch_size`` counts edges.

    Attributes
    ----------
    relation : tuple of str
        Type of the sources, name of the relation, and type of the targets.
    edges : numpy.ndarray
        int64, of shape (edges, 2): source and target of all edges of all ranks, in the order that ``input_id`` counts.
    """

    def __init__(
        self,
        partition: VertexPartition,
        edges: Any,
        *,
        fanouts: Fanouts,
        options: LinkOptions,
        relation: str | EdgeKey | None = None,
    ) -> None:
        self._of = _relation_of(partition, relation)
        self.relation = (self._of.source, self._of.name, self._of.target)
        super().__init__(partition, edges, fanouts=fanouts, options=options)  # type: ignore[arg-type]  # of relations
        targets = self._ends[1]
        if self._count and len(targets) <= 1 + self._one_type:
            raise ParameterError(
                f"num_negatives: {len(targets)} vertices of {self.relation[2]!r} have no negatives. Pass "
                f"{arg('num_negatives', 0)}"
            )

    @property
    def _one_type(self) -> bool:
        return self.relation[0] == self.relation[2]

    def _seeds_of(self, vertices: Any, partition: VertexPartition, options: LoaderOptions) -> Seeds:
        types = {each.name: each.range for each in partition.parts[0].types or ()}
        self._ends = types[self.relation[0]], types[self.relation[2]]
        self.input, name = self.relation[2], self.relation[1]
        self.edges = self._edges_of(vertices, partition, options.input_time is not None)
        times = times_of(vertices, self.edges, partition, options, name)
        targets = of_type(partition, self.relation[2])
        self._known = AllVertices(self._ends[1], self._one_type)
        if times is not None and targets[0].times is not None:
            if self._rule == "local":
                raise ParameterError(
                    'negatives: "local" does not tell which vertices were there before an edge. Use "uniform" or '
                    '"batch"'
                )
            self._known = EarlierVertices(targets, self._ends[1], self._one_type)
        owners = rank_of_part(partition.k, self.world_size)
        own = [part.inner for part, owner in zip(targets, owners, strict=True) if owner == self.rank]
        self._own_targets = np.concatenate([np.empty(0, np.int64), *own])
        self.vertices = np.unique(self.edges)
        self._rows = partition._topology.rows_of(self.edges.reshape(-1)).reshape(-1, 2)
        keys = keys_of(self.edges[:, 0], self.edges[:, 1]).view(np.int64)
        return Seeds(keys, np.ascontiguousarray(self._rows[:, 1]), None, times)

    def _edges_of(self, edges: Any, partition: VertexPartition, repeated: bool) -> Ids:
        """Return the pairs of a split that are of the relation, or given pairs, checked."""
        pairs = edges_of(edges, partition, repeated)
        if isinstance(edges, str):
            numbers = [each.name for each in partition.parts[0].edge_types or ()]
            return np.ascontiguousarray(pairs[pairs[:, 2] == numbers.index(self.relation[1]), :2])
        for end, (name, ids) in enumerate(zip(self.relation[::2], self._ends, strict=True)):
            wrong = np.flatnonzero((pairs[:, end] < ids.start) | (pairs[:, end] >= ids.stop))
            if wrong.size:
                raise ParameterError(
                    f"edges: {pairs[wrong[0]].tolist()}: vertex {pairs[wrong[0], end]} is not of {name!r}, whose "
                    f"vertices are {ids.start} to {ids.stop - 1}"
                )
        return pairs

    def _epoch_of(self) -> Epoch:
        rows = np.unique(self._rows)
        return Epoch(rows, self.fanouts, min(2 * self.batch_size, max(len(rows), 1)), self._types)

    def _local(self, random: Keys) -> Ids:
        """Return targets of the parts of this rank from random numbers."""
        if not len(self._own_targets):
            raise ParameterError(
                f'negatives: the parts of rank {self.rank} hold no vertices of {self.relation[2]!r}. Use "uniform"'
            )
        places = (random % np.uint64(len(self._own_targets))).astype(np.int64)
        found: Ids = self._own_targets[places]
        return found

    def _batch(  # type: ignore[override]  # by type
        self, arrays: _core.TypedSampledBatch, x: Any, steps: Steps, epoch: int, step: int
    ) -> TypedLinkBatch:
        assert isinstance(steps, LinkSteps)
        places, labels = self._pairs(steps, step)
        numbers = self._rows_by_type.locate(steps.roots(step)[0])[0]
        within = np.empty(len(numbers), np.int64)
        for number in np.unique(numbers):
            those = numbers == number
            within[those] = np.arange(np.count_nonzero(those))
        batch = TypedLinkBatch(
            **vars(TypedLoader._batch(self, arrays, x, steps, epoch, step)),
            relation=self.relation,
            edge_label_index=torch.from_numpy(within[places]),
            edge_label=labels,
        )
        if steps.times is not None:
            return batch  # nothing was there before itself
        return self._without(batch, self._positives(steps, step))

    def _without(self, batch: TypedLinkBatch, pairs: Ids) -> TypedLinkBatch:
        """Return the batch without the in-edges of pairs: of the relation, and of its reverse."""
        keys = [keys_of(pairs[:, 0], pairs[:, 1])]
        if self._of.relation.reverse == "merged":
            keys.append(keys_of(pairs[:, 1], pairs[:, 0]))
        batch = _left_out(batch, self.relation, np.unique(np.concatenate(keys)), False)
        reverse = (self.relation[2], f"rev_{self.relation[1]}", self.relation[0])
        return _left_out(batch, reverse, np.unique(keys[0]), True) if reverse in self.edge_types else batch


def _left_out(batch: TypedLinkBatch, key: EdgeKey, keys: Keys, against: bool) -> TypedLinkBatch:
    """Return the batch without in-edges of a relation, given the ascending keys of their records.

    ``against``: an in-edge leads from the second end of its record to the first.
    """
    indptr, indices = batch.indptr_dict[key].numpy(), batch.indices_dict[key].numpy()
    sources = batch.n_id_dict[key[0]].numpy()[indices]
    targets = np.repeat(batch.n_id_dict[key[2]].numpy()[: len(indptr) - 1], np.diff(indptr))
    stay = ~among(keys_of(targets, sources) if against else keys_of(sources, targets), keys)
    before = np.concatenate(([0], np.cumsum(stay)))
    hops = np.cumsum([0, *batch.num_sampled_edges_dict[key]])
    places = torch.from_numpy(np.flatnonzero(stay))
    kept: dict[str, Any] = {
        name: {**of_relations, key: of_relations[key][places]}
        for name in ("indices_dict", "e_id_dict", "edge_attr_dict")
        if key in (of_relations := getattr(batch, name))
    }
    return replace(
        batch,
        **kept,
        indptr_dict={**batch.indptr_dict, key: torch.from_numpy(before[indptr].astype(np.int32))},
        num_sampled_edges_dict={**batch.num_sampled_edges_dict, key: np.diff(before[hops]).tolist()},
    )


def _relation_of(partition: VertexPartition, relation: str | EdgeKey | None) -> EdgeType:
    """Return a relation by its name or by (type of the sources, name, type of the targets)."""
    known = [each for each in partition.parts[0].edge_types or () if not each.reversed]
    if relation is None:
        if len(known) > 1:
            names = ", ".join(each.name for each in known)
            raise ParameterError(f"relation: the graph has {names}. Name the relation of the edges")
        return known[0]
    for each in known:
        if relation in (each.name, (each.source, each.name, each.target)):
            return each
    reverse = " It is the reverse of one." if str(relation).startswith("rev_") else ""
    names = ", ".join(each.name for each in known)
    raise ParameterError(f"relation: {relation!r} is none of {names}.{reverse} Name one of these")
