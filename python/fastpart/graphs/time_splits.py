"""Edges split by time: the records before a time are trained on, and links that are new after it are held out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.options import RunOptions
from ..core.pairs import among, undirected_keys
from ..core.rows import rows_of
from ..errors import ParameterError
from .graph import Graph

Ids = npt.NDArray[np.int64]

_BLOCK = 1 << 20
"""Records per step."""


@dataclass(frozen=True, eq=False)
class TimeSplit:
    """How records are split by time.

    Attributes
    ----------
    times : numpy.ndarray
        int64: time of each record of the graph.
    before : int
        The training records are those whose time is strictly before.
    val, test : tuple of numpy.ndarray
        Pairs of ids, int64 of shape (pairs, 2), and the time of the first record of each.
    """

    times: Ids
    before: int
    val: tuple[Ids, Ids]
    test: tuple[Ids, Ids]

    def trains(self, start: int, stop: int) -> npt.NDArray[np.bool_]:
        """Return which of some records are trained on."""
        return np.asarray(self.times[start:stop] < self.before)


def split_by_time(graph: Graph, times: Any, shares: tuple[float, float], run: RunOptions) -> TimeSplit:
    """Split the records of a graph by their times.

    Parameters
    ----------
    graph : Graph
        The graph.
    times : path or array
        A whole number for each record.
    shares : tuple of float
        How many of the latest records validation and test begin with.
    """
    known = _times_of(times, graph.num_edges)
    before, between = _bounds(known, shares)
    pairs, first = _candidates(graph, known, before)
    new = ~_linked_before(graph, known, before, undirected_keys(pairs[:, 0], pairs[:, 1]), run)
    pairs, first = pairs[new], first[new]
    early = first < between
    return TimeSplit(known, before, (pairs[early], first[early]), (pairs[~early], first[~early]))


def _times_of(given: Any, m: int) -> Ids:
    rows = rows_of("times", given)
    if rows.dtype.kind not in "iu" or rows.dtype == np.uint64:
        raise TypeError(f"times: expected whole numbers of int64, got {rows.dtype}")
    if rows.shape not in ((m,), (m, 1)):
        raise ParameterError(f"times: expected one per record, of shape ({m},), got {rows.shape}")
    return np.ascontiguousarray(rows.read(0, m).reshape(-1), np.int64)


def _bounds(times: Ids, shares: tuple[float, float]) -> tuple[int, int]:
    """Return when validation and test begin. Records of one time stay together, in the later split."""
    m = len(times)
    places = [min(math.ceil(round((1 - share) * m, 6)), m - 1) for share in (sum(shares), shares[1])]
    if not m or not sum(shares):
        raise ParameterError("val, test: nothing is held out. Pass the shares of the latest records")
    ordered = np.partition(times, places)
    before, between = (int(ordered[place]) for place in places)
    if before == times.min():
        raise ParameterError(
            f"times: no record is before {before}, the time at which the held-out ones begin. Hold out fewer"
        )
    return before, between if shares[1] else int(times.max()) + 1


def _blocks(graph: Graph) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
    for start in range(0, graph.num_edges, _BLOCK):
        stop = min(start + _BLOCK, graph.num_edges)
        yield slice(start, stop), graph._source.block(start, stop)


def _candidates(graph: Graph, times: Ids, before: int) -> tuple[Ids, Ids]:
    """Return the pairs with a late record, each once, with the ends and the time of the earliest of these."""
    pairs, late = [np.empty((0, 2), np.int64)], [np.empty(0, np.int64)]
    for rows, block in _blocks(graph):
        those = (times[rows] >= before) & (block[:, 0] != block[:, 1])
        pairs.append(block[those].astype(np.int64))
        late.append(times[rows][those])
    ends, when = np.concatenate(pairs), np.concatenate(late)
    keys = undirected_keys(ends[:, 0], ends[:, 1])
    order = np.lexsort((when, keys))  # it is stable: of equal times the first record
    first = order[np.concatenate(([True], keys[order][1:] != keys[order][:-1]))[: len(order)]]
    first.sort()
    return ends[first], when[first]


def _linked_before(
    graph: Graph, times: Ids, before: int, keys: npt.NDArray[np.uint64], run: RunOptions
) -> npt.NDArray[np.bool_]:
    """Return which of some pairs have a training record, in any direction."""
    ordered = np.sort(keys)
    linked = np.zeros(len(keys), np.bool_)
    for rows, block in _blocks(graph):
        early = block[times[rows] < before]
        known = np.unique(undirected_keys(early[:, 0], early[:, 1]))
        linked |= among(ordered, known)
        if run.progress is not None:
            run.progress("split", rows.stop, graph.num_edges)
    graph.check_unchanged()
    return linked[np.searchsorted(ordered, keys)]
