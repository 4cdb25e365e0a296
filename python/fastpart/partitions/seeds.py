"""The seeds of every step, with times or without, which of them a rank takes, and how their neighbours are sampled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..core import parameters
from ..core.inputs import refuse_repeated
from ..core.pairs import mixed
from ..core.rows import rows_of
from ..errors import ParameterError, arg
from ..graphs.splits import NO_TIME
from .loader_options import EpochOptions, SamplingOptions, TemporalOptions
from .partition import VertexPartition
from .types import ONLY_TYPE, entry_of_type, of_type, type_names, types_with


def sampling_of(partition: VertexPartition, options: SamplingOptions) -> dict[str, Any]:
    """Return how neighbours are sampled, as the sampler of the core takes it."""
    how = {
        "kind": options.sampling,
        "weights": _weights_of(options.weights, partition),
        "seed": options.seed,
        "merged": options.merged,
    }
    if not isinstance(options, TemporalOptions) or options.temporal is None:
        return how
    if options.sampling != "uniform":
        raise ParameterError(
            f"sampling: {arg(f'temporal={options.temporal!r}')} says how neighbours are sampled. "
            f"Leave out {arg(f'sampling={options.sampling!r}')}"
        )
    return {**how, "times": partition._times, "temporal": options.temporal}


def _weights_of(weights: Any, partition: VertexPartition) -> npt.NDArray[Any] | None:
    """Return one weight per record as contiguous float32 or float64. None stays None."""
    if weights is None:
        return None
    rows, m = rows_of("weights", weights), partition.num_edges or 0
    if rows.shape != (m,):
        raise ParameterError(f"weights: expected one per record, of shape ({m},), got {rows.shape}")
    array = rows.read(0, m)
    return np.ascontiguousarray(array, np.float32 if array.dtype == np.float32 else np.float64)


Ids = npt.NDArray[np.int64]
RowIds = npt.NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Seeds:
    """Vertices to make batches for, in their order.

    Attributes
    ----------
    ids : numpy.ndarray
        int64: original ids. Those of a split ascend.
    rows : numpy.ndarray
        uint32: row of each in the topology.
    labels : numpy.ndarray or None
        Label of each.
    times : numpy.ndarray or None
        int64: time of each, for temporal samples. A vertex may then occur several times.
    type : str
        The type of all of them.
    """

    ids: Ids
    rows: npt.NDArray[np.uint32]
    labels: npt.NDArray[Any] | None
    times: Ids | None = None
    type: str = ONLY_TYPE

    def order(self, seed: int, epoch: int) -> Ids:
        """Return a permutation of the positions. It depends on the ids and times, not on their order."""
        key = mixed(mixed(np.uint64(seed)) ^ np.uint64(epoch))
        numbers = mixed(self.ids.astype(np.uint64) ^ key)  # different ids have different numbers
        if self.times is not None:
            numbers = mixed(numbers ^ self.times.view(np.uint64))
        return np.argsort(numbers)


@dataclass(frozen=True)
class Steps:
    """The items of a rank in each step of an epoch.

    Attributes
    ----------
    positions, offsets : numpy.ndarray
        int64: positions of the items among all of the loader, and where those of each step begin.
    global_sizes : numpy.ndarray
        int64: items of each step on all ranks.
    seeds, seed_offsets : numpy.ndarray
        Rows of the vertices to sample from, and where those of each step begin.
    seed_times : numpy.ndarray or None
        int64: their times, for temporal samples.
    """

    positions: Ids
    offsets: Ids
    global_sizes: Ids
    seeds: npt.NDArray[np.uint32]
    seed_offsets: Ids
    seed_times: Ids | None


@dataclass(frozen=True, eq=False)
class Deal:
    """How the seeds of an epoch are dealt to its steps, and those of a step to the ranks. ``len`` counts the steps.

    Attributes
    ----------
    seeds : Seeds
        All of them.
    ranks : numpy.ndarray
        int64: the rank that takes each of them, which has its part.
    batch_size : int
        Seeds of a step on all ranks.
    seed : int
        Seed of the order.
    shuffle, drop_last : bool
        Whether each epoch has an order of its own, and whether a last step of fewer seeds is left out.
    """

    seeds: Seeds
    ranks: Ids
    batch_size: int
    seed: int
    shuffle: bool
    drop_last: bool

    @classmethod
    def of(cls, seeds: Seeds, starts: Ids, owners: Ids, vertices: Any, options: EpochOptions) -> Self:
        """Return how seeds are dealt.

        Parameters
        ----------
        seeds : Seeds
            All of them.
        starts, owners : numpy.ndarray
            int64: first row of each part, and its rank.
        vertices : {"train", "val", "test"} or array
            What the user asked for. "train" is shuffled by default.
        options : EpochOptions
            The options of the loader.
        """
        trains = isinstance(vertices, str) and vertices == "train"
        return cls(
            seeds,
            owners[owner_of(seeds.rows, starts)],
            options.batch_size,
            options.seed,
            trains if options.shuffle is None else options.shuffle,
            options.drop_last,
        )

    def __len__(self) -> int:
        whole, rest = divmod(len(self.seeds.ids), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def order(self, epoch: int) -> Ids:
        """Return the positions of the seeds of an epoch, step by step. They are the same on all ranks."""
        order = self.seeds.order(self.seed, epoch) if self.shuffle else np.arange(len(self.seeds.ids))
        return order[: len(self) * self.batch_size]

    def steps(self, order: Ids, rank: int) -> Steps:
        """Return what a rank takes of the seeds of an epoch."""
        bounds = np.minimum(np.arange(len(self) + 1) * self.batch_size, len(order))
        own = self.ranks[order] == rank
        offsets = np.concatenate(([0], np.cumsum(own)))[bounds]
        positions = order[own]
        times = None if self.seeds.times is None else self.seeds.times[positions]
        return Steps(positions, offsets, np.diff(bounds), self.seeds.rows[positions], offsets, times)


def seeds_of(
    vertices: Any, partition: VertexPartition, input: str | None = None, repeated: bool = False
) -> Seeds:
    """Return the labelled vertices of a split, or given vertices, of one type.

    Parameters
    ----------
    vertices : str or array
        A split, whose vertices ascend, or ids in their order.
    partition : VertexPartition
        The parts.
    input : str, optional
        The type. Default: the one that has the split, or that the given vertices are of.
    repeated : bool
        Whether given vertices may be there several times.
    """
    _refuse_input(input, partition)
    topology = partition._topology
    if not isinstance(vertices, str):
        ids = vertex_ids(vertices, topology.num_vertices, "'train', 'val', 'test', ", repeated)
        rows = topology.rows_of(ids)
        return _of_rows(rows, partition, _type_of(rows, partition, input))
    name = _type_with(vertices, partition) if input is None else input
    if vertices not in entry_of_type(partition, name).get("splits", []):
        raise ParameterError(
            f"vertices: {name!r} has no split {vertices!r}. Save the partition with {arg('splits')}, or pass ids"
        )
    pieces = [
        np.flatnonzero(mask) + (topology.starts[place] + part.first_inner)
        for place, part in enumerate(of_type(partition, name))
        if (mask := part.labelled(vertices)) is not None
    ]
    seeds = _of_rows(np.concatenate(pieces).astype(np.uint32), partition, name)
    order = np.argsort(seeds.ids)
    labels = None if seeds.labels is None else seeds.labels[order]
    return replace(seeds, ids=seeds.ids[order], rows=seeds.rows[order], labels=labels)


def _refuse_input(input: str | None, partition: VertexPartition) -> None:
    names = type_names(partition)
    if input is None or input in names:
        return
    if not partition.is_typed:
        raise ParameterError(
            "input: this graph has no types, so all of its vertices are of one. Leave it out"
        )
    raise ParameterError(f"input: unknown type {input!r}. The types are {', '.join(names)}")


def _type_with(split: str, partition: VertexPartition) -> str:
    found = types_with(split, partition)
    if len(found) == 1:
        return found[0]
    if found:
        raise ParameterError(
            f"input: {', '.join(found)} have a split {split!r}. Name one of them with {arg('input')}"
        )
    if partition.is_typed:
        raise ParameterError(
            f"vertices: no type has a split {split!r}. Save the partition with {arg('splits')}, as "
            f"{{{type_names(partition)[0]!r}: "
            "...}, or pass ids"
        )
    there = ", ".join(map(repr, entry_of_type(partition, ONLY_TYPE).get("splits", []))) or "none"
    raise ParameterError(
        f"vertices: the directory has no split {split!r}. It has {there}. Save the partition with "
        f"{arg('splits')}, or pass ids"
    )


def _type_of(rows: npt.NDArray[np.uint32], partition: VertexPartition, name: str | None) -> str:
    """Return the one type of some rows."""
    names = type_names(partition)
    if len(names) == 1:
        return names[0]
    found: list[int] = np.unique(partition._rows_by_type.locate(rows)[0]).tolist()
    there = [names[number] for number in found]
    if name is None and len(there) == 1:
        return there[0]
    if name is None or set(there) - {name}:
        expected = "one type" if name is None else repr(name)
        raise ParameterError(
            f"vertices: expected ids of {expected}, got those of {', '.join(there) or 'none'}"
        )
    return name


def vertex_ids(vertices: Any, n: int, names: str = "", repeated: bool = False, name: str = "vertices") -> Ids:
    """Return ids as int64, from ids or from a mask. ``names`` are what else is accepted, for the text of an error.

    Each is there once, unless they may be ``repeated``. ``name`` is that of the parameter.
    """
    array = np.asarray(vertices)
    if array.dtype == np.bool_ and array.shape == (n,):
        return np.flatnonzero(array)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(
            f"{name}: expected {names}integer ids or a bool mask of length {n}, got "
            f"{array.dtype} of shape {array.shape}"
        )
    bad = np.flatnonzero((array < 0) | (array >= n))
    if bad.size:
        raise ParameterError(f"{name}: {array[bad[0]]} is not between 0 and {n - 1}")
    if not repeated:
        refuse_repeated(name, array)
    return np.ascontiguousarray(array, np.int64)


def _of_rows(rows: npt.NDArray[np.uint32], partition: VertexPartition, name: str) -> Seeds:
    ids, labels = partition._topology.ids_of(rows), None
    number, by_type = type_names(partition).index(name), partition._rows_by_type
    of_type_rows, starts = by_type.locate(rows)[1], by_type.starts[number]
    for part, (first, end) in zip(of_type(partition, name), pairwise(starts), strict=True):
        if part.labels is None:
            continue
        if labels is None:
            labels = np.empty((len(rows), *part.labels.shape[1:]), part.labels.dtype)
        those = np.flatnonzero((of_type_rows >= first) & (of_type_rows < end))
        labels[those] = part.labels[of_type_rows[those] - first]
    return Seeds(ids, rows, labels, type=name)


def owner_of(rows: npt.NDArray[Any], starts: Ids) -> Ids:
    """Return the part of each row of the topology."""
    return np.searchsorted(starts, rows, side="right") - 1


def rank_of_part(k: int, world_size: int) -> Ids:
    """Return the rank that owns each part: consecutive parts, as evenly as possible."""
    return np.arange(k) * world_size // k


def given_rank(rank: int | None, world_size: int | None) -> tuple[int, int] | None:
    """Check a rank and the number of ranks. None: neither is given."""
    if (rank is None) != (world_size is None):
        raise ParameterError("rank, world_size: pass both or none")
    if rank is None or world_size is None:
        return None
    size = parameters.integer("world_size", world_size, 1, 2**31 - 1)
    return parameters.integer("rank", rank, 0, size - 1), size


class TypeVertices:
    """The vertices of one or several types: part after part, and type after type within a part.

    Attributes
    ----------
    starts : numpy.ndarray
        int64: first row of each part among those of the types, and their number.
    firsts : numpy.ndarray
        int64: row of the first vertex of each type in each part, among all rows of the topology.
    """

    def __init__(self, partition: VertexPartition, *names: str) -> None:
        self._topology, self._names = partition._topology, names
        of = [of_type(partition, name) for name in names]
        inside = np.array([[part.first_inner for part in each] for each in of], np.int64)
        sizes = np.array([[part.num_inner for part in each] for each in of], np.int64)
        self.firsts = (self._topology.starts[:-1] + inside).T.ravel()
        self._starts = np.concatenate(([0], np.cumsum(sizes.T)))  # of each type in each part
        self.starts = self._starts[:: len(names)]
        self._of_types = np.pad(np.cumsum(sizes, axis=1), ((0, 0), (1, 0)))  # of each part within the type

    def ids_of(self, rows: RowIds) -> Ids:
        """Return the id of the vertex of each row."""
        of = owner_of(rows, self._starts)
        return self._topology.ids_of((rows - self._starts[of] + self.firsts[of]).astype(np.uint32))

    def rows_of(self, name: str, rows: RowIds) -> RowIds:
        """Return the rows here of vertices of a type, given those among all vertices of the type."""
        number = self._names.index(name)
        starts = self._of_types[number]
        moved = self._starts[number : -1 : len(self._names)] - starts[:-1]
        moved_rows: RowIds = (rows + moved[owner_of(rows, starts)]).astype(np.uint32)
        return moved_rows

    def within(self, name: str, part: int) -> slice:
        """Return where the rows of a type are among those of a part."""
        number = part * len(self._names) + self._names.index(name)
        start, stop = self._starts[number : number + 2] - self.starts[part]
        return slice(int(start), int(stop))


def loaded_seeds(
    vertices: Any, partition: VertexPartition, options: TemporalOptions, input: str | None = None
) -> Seeds:
    """Return the seeds of a loader, given its options. If its samples are temporal, they have times.

    These are the times that the user gives, or those of the directory.
    """
    seeds = seeds_of(vertices, partition, input, options.input_time is not None)
    times = given_times_of(options)
    if options.temporal is None:
        return seeds
    if times is None:
        return replace(seeds, times=_own_times(seeds, partition))
    if isinstance(vertices, str):
        raise ParameterError(
            f"input_time: the order of the vertices of {vertices!r} is not yours. Pass their ids, a time for each"
        )
    refuse_other_times(seeds.ids, times, "vertices")
    return replace(seeds, times=times)


def given_times_of(options: TemporalOptions) -> Ids | None:
    """Return the times that the user gives to seeds, checked. They need temporal samples."""
    times = options.input_time
    if times is None:
        return None
    if options.temporal is None:
        raise ParameterError(
            f"input_time: only temporal samples take times of seeds. Pass {arg('temporal', 'uniform')}"
        )
    array = np.asarray(times)
    if array.ndim != 1 or not np.can_cast(array.dtype, np.int64) or array.dtype == np.bool_:
        raise TypeError(
            f"input_time: expected one whole number per seed, as int64, got {array.dtype} of shape {array.shape}"
        )
    return np.ascontiguousarray(array, np.int64)


def refuse_other_times(items: Ids, times: Ids, name: str) -> None:
    """Raise an error unless each item has a time of the user, and none is there twice with the same."""
    if len(times) != len(items):
        raise ParameterError(f"input_time: {len(times)} times for {len(items)} {name}")
    if (missing := np.flatnonzero(times == NO_TIME)).size:
        raise ParameterError(f"input_time: item {missing[0]} is {NO_TIME}, which stands for no time")
    order = np.lexsort((times, items))
    again = np.flatnonzero((np.diff(items[order]) == 0) & (np.diff(times[order]) == 0))
    if again.size:
        raise ParameterError(
            f"{name}: item {order[again[0] + 1]} occurs more than once with the time {times[order[again[0]]]}"
        )


def _own_times(seeds: Seeds, partition: VertexPartition) -> Ids:
    """Return the times that the directory has of seeds."""
    times = partition._times.of_rows(seeds.rows)
    missing = np.flatnonzero(times == NO_TIME)
    if missing.size:
        raise ParameterError(
            f"temporal: {len(missing)} of {len(times)} seeds have no time, the first is vertex "
            f"{seeds.ids[missing[0]]}. Save the partition with {arg('times')}, leave such vertices out, or pass "
            "ids with "
            f"{arg('input_time')}"
        )
    return times
