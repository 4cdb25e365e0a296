"""Edges with times: when they came to be, and which vertices were there before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.pairs import Keys, keys_of, mixed
from ..errors import ParameterError, arg
from ..graphs.splits import NO_TIME
from ..partitions.loader_options import TemporalOptions
from ..partitions.part_rows import TypeData
from ..partitions.partition import VertexPartition
from ..partitions.parts import VertexPartData
from ..partitions.seeds import given_times_of, owner_of, refuse_other_times
from ..partitions.types import ONLY_RELATION

Ids = npt.NDArray[np.int64]


def times_of(
    edges: Any,
    pairs: Ids,
    partition: VertexPartition,
    options: TemporalOptions,
    relation: str = ONLY_RELATION[1],
) -> Ids | None:
    """Return the time of each edge of a loader, given its options: that of the user, or of its first record.

    None: samples are not temporal.
    """
    times = given_times_of(options)
    if options.temporal is None:
        return None
    if times is None:
        return _of_records(pairs, partition, relation)
    if isinstance(edges, str):
        raise ParameterError(
            f"input_time: the order of the edges of {edges!r} is not yours. Pass pairs of ids, a time for each"
        )
    refuse_other_times(keys_of(pairs[:, 0], pairs[:, 1]).view(np.int64), times, "edges")
    return times


def _of_records(pairs: Ids, partition: VertexPartition, relation: str) -> Ids:
    """Return the time of the first record of each pair, which the directory has, among those of a relation."""
    times = np.full(len(pairs), NO_TIME)
    owners = owner_of(partition._topology.rows_of(pairs[:, 1].copy()), partition._topology.starts)
    for part in partition.parts:
        those = np.flatnonzero(owners == part.index)
        known = _known_times(part, relation) if len(those) else None
        if known is not None:
            times[those] = _of_pairs(*known, pairs[those])
    missing = np.flatnonzero(times == NO_TIME)
    if missing.size:
        raise ParameterError(
            f"temporal: {len(missing)} of {len(pairs)} edges have no time, the first is {pairs[missing[0]].tolist()}. "
            f"Save the partition with {arg('edge_times')}, leave such edges out, or pass pairs of ids with "
            f"{arg('input_time')}"
        )
    return times


def _known_times(part: VertexPartData, relation: str) -> tuple[Ids, Ids, Ids] | None:
    """Return sources, targets and times of the in-edges of a part that have times."""
    edges = int(part.indptr[part.num_inner])
    if relation == ONLY_RELATION[1]:
        sources, targets, _ = part.in_edges()
        times = part.edge_times
        return None if times is None else (sources[:edges], targets[:edges], np.asarray(times[:edges]))
    data = part.of_relation(relation)
    if data.times is None:
        return None
    sources, targets, _ = data.in_edges()
    inner = data.edges < edges
    return sources[inner], targets[inner], np.asarray(data.times)[inner]


def _of_pairs(sources: Ids, targets: Ids, times: Ids, pairs: Ids) -> Ids:
    """Return the earliest time of the in-edges of pairs. None has that of no edge."""
    keys = keys_of(targets, sources)
    order = np.lexsort((times, keys))
    keys, wanted = keys[order], keys_of(pairs[:, 1], pairs[:, 0])
    places = np.searchsorted(keys, wanted)
    there = places < len(keys)
    there[there] = keys[places[there]] == wanted[there]
    found = np.full(len(pairs), NO_TIME)
    found[there] = times[order[places[there]]]
    return found


class EarlierVertices:
    """The vertices in the order of their times, to take negatives from those that were there before an edge."""

    def __init__(self, parts: Sequence[TypeData], vertices: range, with_sources: bool = True) -> None:
        times, self._first = np.empty(len(vertices), np.int64), vertices.start
        for part in parts:
            assert part.times is not None
            times[part.inner - vertices.start] = part.times
        self.times, self._with_sources = times, with_sources
        self._order = np.argsort(times, kind="stable")
        self._place = np.empty_like(self._order)
        self._place[self._order] = np.arange(len(times))
        self._sorted = times[self._order]

    def others(self, random: Keys, sources: Ids, targets: Ids, before: Ids | None) -> Ids:
        """Return vertices from random numbers: each that was there before, but the two of its pair, alike.

        Raises
        ------
        ParameterError
            An edge that no third vertex was there before.
        """
        assert before is not None
        sources, targets, before = (
            np.broadcast_to(each, random.shape) for each in (sources, targets, before)
        )
        count = np.searchsorted(self._sorted, before)
        ends = [sources, targets] if self._with_sources else [targets]
        excluded = np.sort(np.stack([self._place[each - self._first] for each in ends]), axis=0)
        left = count - (excluded < count).sum(axis=0)
        if (none := np.flatnonzero(left < 1)).size:
            pair = int(sources.flat[none[0]]), int(targets.flat[none[0]])
            raise ParameterError(
                f"negatives: no other vertex was there before the edge {pair}, at {before.flat[none[0]]}. Leave it out"
            )
        places = (random % left.astype(np.uint64)).astype(np.int64)
        for place in excluded:
            places += places >= place
        return self._first + self._order[places]

    def instead(self, ids: Ids, random: Keys, sources: Ids, targets: Ids, before: Ids | None) -> Ids:
        """Return vertices, with others in the place of those of the pair itself and of those that came later."""
        assert before is not None
        wrong = (ids == sources) | (ids == targets) | (self.times[ids - self._first] >= before)
        return np.where(wrong, self.others(mixed(random), sources, targets, before), ids)
