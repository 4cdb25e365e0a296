"""Mini-batches of edges, for link prediction and unsupervised training."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..core.calls import called_well
from ..core.pairs import Keys, among, hashed, keys_of, undirected_keys
from ..errors import ParameterError, arg
from ..graphs.types import REVERSE
from ..measures.accesses import Epoch
from ..partitions.loader_options import Fanouts, LinkOptions, LoaderOptions
from ..partitions.partition import VertexPartition
from ..partitions.seeds import Seeds, Steps, rank_of_part
from ..partitions.types import ONLY_RELATION, EdgeKey, of_type, range_of_type
from .batch import Batch, MiniBatch, TypedBatch
from .loader import Loader
from .making import ScheduledSource
from .negatives import AllVertices, ByDegree, HardNegatives, partners
from .sample import SampledArrays
from .scheduler import BatchState
from .timed_edges import EarlierVertices, times_of

Ids = npt.NDArray[np.int64]
RowIds = npt.NDArray[np.uint32]
AnyBatch = TypeVar("AnyBatch", bound=MiniBatch)


@dataclass(frozen=True, eq=False, repr=False)
class LinkBatch(Batch):
    """A mini-batch of edges to tell from negatives, with the names of PyG. It also has all of :class:`Batch`.

    The first level of its nodes are the ends of the edges and of their negatives, each once. The positives of the
    global batch are not among the in-edges, in no direction and with none of their parallel records. In temporal
    batches each end has the time of its edge, and only edges before it are among the in-edges. ``batch_size`` and
    ``global_size`` count positives. ``input_id`` are their positions among the edges of the loader.

    Attributes
    ----------
    edge_label_index : torch.Tensor
        int64, of shape (2, pairs): source and target of each pair as rows of ``x``. The positives come first, then the
        negatives of the first positive, those of the second one, and so on.
    edge_label : torch.Tensor
        float32, of shape (pairs,): 1 for positives, 0 for negatives.
    """

    edge_label_index: Tensor
    edge_label: Tensor

    def __repr__(self) -> str:
        return (
            f"<LinkBatch: {self.batch_size} of {self.global_size} edges, {len(self.edge_label)} pairs, "
            f"{self.num_nodes} nodes, {self.num_edges} edges>"
        )


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


@dataclass(frozen=True)
class LinkSteps(Steps):
    """The edges of a rank in each step of an epoch.

    Attributes
    ----------
    order : numpy.ndarray
        int64: positions of the edges of all ranks, batch by batch.
    places : numpy.ndarray
        int64: places of the edges of this rank in this order.
    ends : numpy.ndarray
        uint32, of shape (edges, 2 + negatives): rows of the source, the target and the negative targets.
    times : numpy.ndarray or None
        int64: times of the edges, for temporal samples.
    """

    order: Ids
    places: Ids
    ends: RowIds
    times: Ids | None

    def of(self, step: int) -> slice:
        """Return which of the edges are those of a step."""
        return slice(int(self.offsets[step]), int(self.offsets[step + 1]))

    def roots(self, step: int) -> tuple[RowIds, Ids | None, npt.NDArray[np.intp]]:
        """Return the distinct ends of a step with their times, and the place of each end among them."""
        ends = self.ends[self.of(step)]
        if self.times is None:
            rows, places = np.unique(ends, return_inverse=True)
            return rows, None, places.reshape(ends.shape)
        times, numbers = np.unique(self.times[self.of(step)], return_inverse=True)
        keys, places = np.unique(
            keys_of(np.broadcast_to(numbers[:, None], ends.shape), ends), return_inverse=True
        )
        return (
            keys.astype(np.uint32),
            times[keys >> np.uint64(32)],
            places.reshape(ends.shape),
        )  # the lower half


class LinkLoader(Loader):
    """Mini-batches of edges of one rank. See :meth:`fastpart.VertexPartition.link_loader`, which makes it.

    It is a :class:`Loader` whose batches are a :class:`LinkBatch` each, or a :class:`TypedLinkBatch` in a graph with
    types. ``batch_size`` counts edges.

    Attributes
    ----------
    edges : numpy.ndarray
        int64, of shape (edges, 2): source and target of all edges of all ranks, in the order that ``input_id`` counts.
    relation : tuple of str
        Type of the sources, name of the relation, and type of the targets. All are empty in a graph without types.
    """

    _items = "edges"

    def __init__(
        self,
        partition: VertexPartition,
        edges: Any,
        *,
        fanouts: Fanouts,
        options: LinkOptions,
        relation: str | EdgeKey | None = None,
    ) -> None:
        self._rule, self._sampled = options.negatives, options.num_negatives
        hard = 0 if options.hard_negatives is None else options.num_hard_negatives
        self._count = self._sampled + hard
        self._merged, self.relation = _relation_of(partition, relation)
        self._ends = range_of_type(partition, self.relation[0]), range_of_type(partition, self.relation[2])
        self._hard = self._hard_of(options, partition)
        super().__init__(partition, edges, fanouts=fanouts, options=options)

    def _seeds_of(self, vertices: Any, partition: VertexPartition, options: LoaderOptions) -> Seeds:
        self.input, one_type = self.relation[2], self.relation[0] == self.relation[2]
        if self._count and len(self._ends[1]) <= 1 + one_type:
            what = f" of {self.input!r}" if partition.is_typed else ""
            raise ParameterError(
                f"num_negatives: {len(self._ends[1])} vertices{what} have no negatives. Pass "
                f"{arg('num_negatives', 0)}"
            )
        repeated = options.input_time is not None or not self._count
        self.edges = self._edges_of(vertices, partition, repeated)
        times = times_of(vertices, self.edges, partition, options, self.relation[1])
        targets = of_type(partition, self.input)
        self._known: AllVertices | EarlierVertices = AllVertices(self._ends[1], one_type)
        if times is not None and targets[0].times is not None:
            if self._rule in ("degree", "local"):
                raise ParameterError(
                    f'negatives: "{self._rule}" does not tell which vertices were there before an edge. Use '
                    '"uniform" or "batch"'
                )
            self._known = EarlierVertices(targets, self._ends[1], one_type)
        if self._rule == "degree":
            self._by_degree = ByDegree(self.edges.reshape(-1), self._ends[1])
        if self._rule == "local":
            owners = rank_of_part(partition.k, self.world_size)
            own = [part.inner for part, owner in zip(targets, owners, strict=True) if owner == self.rank]
            self._own_targets = np.concatenate([np.empty(0, np.int64), *own])
        self.vertices = np.unique(self.edges)
        self._rows = partition._topology.rows_of(self.edges.reshape(-1)).reshape(-1, 2)
        keys = keys_of(self.edges[:, 0], self.edges[:, 1]).view(np.int64)
        return Seeds(keys, np.ascontiguousarray(self._rows[:, 1]), None, times, self.input)

    @property
    def pairs_of_edge(self) -> int:
        """Pairs that an edge gives: itself, and its negatives."""
        return 1 + self._count

    def _edges_of(self, edges: Any, partition: VertexPartition, repeated: bool) -> Ids:
        """Return the pairs of a split that are of the relation, or given pairs, checked."""
        pairs = edges_of(edges, partition, repeated, loops=not self._count)
        if not partition.is_typed:
            return pairs
        if isinstance(edges, str):
            return np.ascontiguousarray(pairs[pairs[:, 2] == self.edge_types.index(self.relation), :2])
        self._refuse_other_types("edges", pairs)
        return pairs

    def _hard_of(self, options: LinkOptions, partition: VertexPartition) -> HardNegatives | None:
        """Return the hard negatives of the user, checked."""
        if options.hard_negatives is None:
            return None
        name = "hard_negatives"
        pairs = _checked(name, options.hard_negatives, len(partition), repeated=True, loops=True)
        self._refuse_other_types(name, pairs)
        table = np.column_stack([pairs, np.zeros(len(pairs), np.int64)])
        return HardNegatives.of(table, 1, options.num_hard_negatives, options.seed)

    def _refuse_other_types(self, what: str, pairs: Ids) -> None:
        """Raise an error for pairs whose ends are of other types than those of the relation."""
        for end, (name, ids) in enumerate(zip(self.relation[::2], self._ends, strict=True)):
            wrong = np.flatnonzero((pairs[:, end] < ids.start) | (pairs[:, end] >= ids.stop))
            if wrong.size:
                raise ParameterError(
                    f"{what}: {pairs[wrong[0]].tolist()}: vertex {pairs[wrong[0], end]} is not of {name!r}, whose "
                    f"vertices are {ids.start} to {ids.stop - 1}"
                )

    def _epoch_of(self) -> Epoch:
        rows = np.unique(self._rows)
        return Epoch(rows, self.fanouts, min(2 * self.batch_size, max(len(rows), 1)), self._types)

    def _dealt(self, order: Ids, epoch: int) -> LinkSteps:
        steps = super()._dealt(order, epoch)
        places = np.flatnonzero(self._deal.ranks[order] == self.rank)
        ends = np.empty((len(places), 2 + self._count), np.uint32)
        made = LinkSteps(**vars(steps), order=order, places=places, ends=ends, times=steps.seed_times)
        if isinstance(self._source, ScheduledSource):
            return made
        everything = slice(None)
        made.ends[:, :2], made.ends[:, 2:] = (
            self._positive(made, everything),
            self._negative(made, everything, epoch),
        )
        if made.times is not None:
            return self._with_timed_roots(made)
        seeds = np.unique(keys_of(np.repeat(places // self.batch_size, ends.shape[1]), ends.reshape(-1)))
        starts = np.arange(len(self) + 1, dtype=np.uint64) << np.uint64(32)
        return replace(
            made,
            seeds=seeds.astype(np.uint32),  # the lower half
            seed_offsets=np.searchsorted(seeds, starts).astype(np.int64),
        )

    def _with_timed_roots(self, steps: LinkSteps) -> LinkSteps:
        """Return steps whose seeds are the ends of their edges, each with the time of its edge."""
        roots = [steps.roots(step)[:2] for step in range(len(self))]
        return replace(
            steps,
            seeds=np.concatenate([np.empty(0, np.uint32), *(rows for rows, _ in roots)]),
            seed_times=np.concatenate(
                [np.empty(0, np.int64), *(times for _, times in roots if times is not None)]
            ),
            seed_offsets=np.cumsum([0, *(len(rows) for rows, _ in roots)], dtype=np.int64),
        )

    def sample(self, steps: Steps, epoch: int) -> Generator[SampledArrays]:
        """Stage 2: yield a neighbourhood of the ends of the edges and negatives of each step."""
        source = self._source
        if not isinstance(source, ScheduledSource):
            return super().sample(steps, epoch)
        assert isinstance(steps, LinkSteps)

        def positive(making: BatchState) -> None:
            steps.ends[making["seed"], :2] = self._positive(steps, making["seed"])

        def negative(making: BatchState) -> None:
            steps.ends[making["seed"], 2:] = self._negative(steps, making["seed"], epoch)

        return source.run(
            len(self),
            epoch,
            lambda making: steps.of(making.step),
            lambda making: np.unique(steps.ends[making["seed"]]),
            positive=positive,
            negative=negative,
        )

    def _positive(self, steps: LinkSteps, chosen: slice) -> RowIds:
        """Return the rows of the ends of edges of this rank."""
        return self._rows[steps.positions[chosen]]

    def _negative(self, steps: LinkSteps, chosen: slice, epoch: int) -> RowIds:
        """Return the rows of their negative targets."""
        ids = self._negatives(steps.order, steps.places[chosen], epoch)
        return self._topology.rows_of(ids.reshape(-1)).reshape(ids.shape)

    def _negatives(self, order: Ids, places: Ids, epoch: int) -> Ids:
        """Return the negative targets of the edges at places in the order of an epoch."""
        positions = order[places]
        sources, targets = (self.edges[positions, end][:, None] for end in (0, 1))
        random = hashed(self._seeds.ids[positions].view(np.uint64), self._count, self.seed, epoch)
        if not random.size:
            return random.astype(np.int64)
        before = None if self._seeds.times is None else self._seeds.times[positions][:, None]
        if self._hard is not None:
            facts = np.column_stack([sources, targets, np.zeros(len(positions), np.int64)])
            hard, _ = self._hard.of_facts(facts, self._seeds.ids[positions], epoch)
            random, others = np.split(random, [self._sampled], axis=1)
            hard = self._known.instead(hard, others, sources, targets, before)
            return np.concatenate([self._by_rule(random, order, places, before), hard], axis=1)
        return self._by_rule(random, order, places, before)

    def _by_rule(self, random: Keys, order: Ids, places: Ids, before: Ids | None) -> Ids:
        """Return negative targets from random numbers, as the rule says."""
        sources, targets = (self.edges[order[places], end][:, None] for end in (0, 1))
        if self._rule == "uniform":
            return self._known.others(random, sources, targets, before)
        if self._rule == "batch":
            found = self.edges[order[partners(random, places, self.batch_size, len(order))], 1]
        elif self._rule == "degree":
            found = self._by_degree.of(random)
        else:
            found = self._local(random)
        return self._known.instead(found, random, sources, targets, before)

    def _local(self, random: Keys) -> Ids:
        """Return targets of the parts of this rank from random numbers."""
        if not len(self._own_targets):
            raise ParameterError(
                f'negatives: the parts of rank {self.rank} hold no vertices of {self.input!r}. Use "uniform"'
            )
        places = (random % np.uint64(len(self._own_targets))).astype(np.int64)
        found: Ids = self._own_targets[places]
        return found

    def _pairs(self, steps: LinkSteps, step: int) -> tuple[npt.NDArray[np.intp], Tensor]:
        """Return the pairs of a step, as places of their ends among the nodes of their types, and their labels."""
        rows, _, ends = steps.roots(step)
        if self._types is not None:
            numbers, within = self._types.locate(rows)[0], np.empty(len(rows), np.int64)
            for number in np.unique(numbers):
                those = numbers == number
                within[those] = np.arange(np.count_nonzero(those))
            ends = within[ends]
        targets = np.concatenate([ends[:, 1], ends[:, 2:].reshape(-1)])
        sources = np.concatenate([ends[:, 0], np.repeat(ends[:, 0], self._count)])
        labels = torch.zeros(len(targets))
        labels[: len(ends)] = 1
        return np.stack([sources, targets]), labels

    def _positives(self, steps: LinkSteps, step: int) -> Ids:
        """Return the edges of a step of all ranks."""
        return self.edges[steps.order[step * self.batch_size : (step + 1) * self.batch_size]]

    def _batch(
        self, arrays: SampledArrays, x: Any, steps: Steps, epoch: int, step: int
    ) -> LinkBatch | TypedLinkBatch:
        assert isinstance(steps, LinkSteps)
        pairs, labels = self._pairs(steps, step)
        entries = self._entries(arrays, x, steps, epoch, step)
        entries |= {"edge_label_index": torch.from_numpy(pairs), "edge_label": labels}
        batch: LinkBatch | TypedLinkBatch = (
            LinkBatch(**entries) if self._types is None else TypedLinkBatch(**entries, relation=self.relation)
        )
        if steps.times is not None:
            return batch  # nothing was there before itself
        return self._without(batch, self._positives(steps, step))

    def _without(self, batch: AnyBatch, pairs: Ids) -> AnyBatch:
        """Return the batch without the in-edges of pairs: of the relation, and of its reverse."""
        number = undirected_keys if self._merged else keys_of
        source, name, target = self.relation
        reverse, stay = (target, f"{REVERSE}{name}", source), {}
        keys = np.unique(number(pairs[:, 0], pairs[:, 1]))
        for key in {self.relation, reverse} & set(self.edge_types):
            ends = batch.ends(key)
            stay[key] = ~among(number(*(ends[::-1] if key == reverse else ends)), keys)
        return batch.without(stay)


def edges_of(edges: Any, partition: VertexPartition, repeated: bool = False, loops: bool = False) -> Ids:
    """Return the pairs of a split by target and source, or given pairs, checked. These may be repeated, or loops."""
    if not isinstance(edges, str):
        return _checked("edges", edges, len(partition), repeated, loops)
    splits = (partition.manifest or {}).get("edge_splits", {})
    if edges not in splits:
        there = ", ".join(map(repr, splits)) or "none"
        raise ParameterError(
            f"edges: the directory has no edge split {edges!r}. It has {there}. Split the edges with split_edges "
            f"before partitioning, and save the partition with {arg('edge_splits')}"
        )
    pairs: Ids = np.concatenate([getattr(part, f"edge_{edges}") for part in partition.parts])
    return pairs[np.lexsort((pairs[:, 0], pairs[:, 1]))]


def _checked(name: str, edges: Any, n: int, repeated: bool, loops: bool) -> Ids:
    array, splits = np.asarray(edges), "'train', 'val', 'test' or " if name == "edges" else ""
    if array.ndim != 2 or array.shape[1] != 2 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(
            f"{name}: expected {splits}pairs of ids, of shape (pairs, 2), got {array.dtype} of shape {array.shape}"
        )
    bad = np.flatnonzero(((array < 0) | (array >= n)).any(axis=1))
    if bad.size:
        raise ParameterError(f"{name}: {array[bad[0]].tolist()} is not between 0 and {n - 1}")
    same = np.flatnonzero(array[:, 0] == array[:, 1])
    if same.size and not loops:
        raise ParameterError(f"edges: {array[same[0]].tolist()} is a loop")
    keys, first = np.unique(keys_of(array[:, 0], array[:, 1]), return_index=True)
    if len(keys) < len(array) and not repeated:
        again = np.setdiff1d(np.arange(len(array)), first)[0]
        raise ParameterError(f"edges: {array[again].tolist()} occurs more than once")
    return np.ascontiguousarray(array, np.int64)


def _relation_of(partition: VertexPartition, relation: str | EdgeKey | None) -> tuple[bool, EdgeKey]:
    """Return whether a relation takes both directions of a record for one, and its key, given it or its name."""
    if not partition.is_typed:
        if relation is not None:
            raise ParameterError("relation: this graph has no types, so it has one relation. Leave it out")
        return True, ONLY_RELATION
    known = [each for each in partition.parts[0].edge_types or () if not each.reversed]
    names = ", ".join(each.name for each in known)
    if relation is None and len(known) > 1:
        raise ParameterError(f"relation: the graph has {names}. Name the relation of the edges")
    for each in known:
        key = (each.source, each.name, each.target)
        if relation in (None, each.name, key):
            return each.relation.reverse == "merged", key
    reverse = ", and this is the reverse of one" if str(relation).startswith(REVERSE) else ""
    raise ParameterError(f"relation: unknown relation {relation!r}. The relations are {names}{reverse}")


@called_well
def link_loader(partition: VertexPartition, edges: Any = "train", **given: Any) -> LinkLoader:
    """Return a loader of edges, as :meth:`fastpart.VertexPartition.link_loader` documents."""
    return partition.link_loader(edges, **given)  # type: ignore[return-value]  # there is no other
