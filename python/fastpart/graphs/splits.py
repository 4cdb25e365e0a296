"""Edges split into training, validation and test, for link prediction."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from ..core import parameters
from ..core.options import Options, RunOptions, run_options, with_options
from ..core.pairs import among, mixed, undirected_keys
from ..core.parameters import StrPath, meant
from ..core.rows import rows_of
from ..errors import ParameterError, arg
from .convert import refuse_input
from .given_splits import Facts, Pairs, pairs_of
from .graph import Graph, GraphState, graph_of_records, warn_of_unread_weights
from .opening import open_graph
from .sidecars import RAW, Sidecar, beside, staged
from .types import TypedRanges

_BLOCK = 1 << 20
"""Records per step."""

Ids = npt.NDArray[np.int64]

NO_TIME = np.iinfo(np.int64).min
"""Stands for no time, of a record or a vertex that was always there."""

Timed = tuple[str, int | None, slice]
"""Name and number of a relation, and where its records are."""


@dataclass(frozen=True, eq=False)
class EdgeSplits:
    """The edges of a graph, split into training, validation and test. :func:`split_edges` makes it.

    Attributes
    ----------
    graph : Graph
        The records to train on. Partition and save this graph.
    val, test : numpy.ndarray
        int64, of shape (pairs, 2): the held-out pairs of vertices, source and target. In a graph with types it is of
        shape (pairs, 3): the third column is the number of the relation in ``graph.relations``.
    edge_times : numpy.ndarray or dict of numpy.ndarray or None
        int64: time of each training record, for ``save(edge_times=...)``, if the split is by time. In a graph with
        types by the name of the relation, of those with times.
    val_times, test_times : numpy.ndarray or None
        int64: time of the first record of each held-out pair, if the split is by time.
    """

    graph: Graph
    val: Pairs = field(repr=False)
    test: Pairs = field(repr=False)
    edge_times: Any = field(default=None, repr=False)
    val_times: Pairs | None = field(default=None, repr=False)
    test_times: Pairs | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return (
            f"{self.graph.num_edges} records to train on, {len(self.val)} val and {len(self.test)} test pairs"
        )


@with_options
def split_edges(
    graph: Any,
    val: float | Any = 0.05,
    test: float | Any = 0.1,
    *,
    seed: int = 0,
    times: Any = None,
    out: StrPath | None = None,
    **options: Unpack[Options],
) -> EdgeSplits:
    """Split the edges of a graph into training, validation and test, for link prediction.

    Split before you partition. Then neither the partition nor a message of training sees the held-out edges.

    Parameters
    ----------
    graph : path, array or Graph
        The graph, as :func:`open_graph` accepts it.
    val, test : float, array or mapping
        Shares of the edges that are held out, of each relation by itself. Or the pairs to hold out, as a benchmark
        gives them: ids of shape (pairs, 2), in a graph with types of shape (pairs, 3) with the number of the relation
        in the third column, or pairs of ids by the name of the relation. Give both as shares or both as pairs. The
        graph may hold these pairs or not.
    seed : int
        Seed of the split.
    times : path, array or mapping, optional
        A whole number per record: when it came to be. In a graph with types by the name of the relation. Then the split
        does not look ahead. Training has the earliest records, and the held-out pairs are those whose first record is
        among the latest. Default: a random split.
    out : path, optional
        A file of raw pairs for the training records, with its sidecar ``OUT.json``. The held-out pairs go to
        ``OUT.splits.npz``, which ``save(edge_splits=...)`` takes, and times of the training records to
        ``OUT.times.npy``. Default: the training records stay in memory.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    EdgeSplits

    Raises
    ------
    ParameterError
        The shares are negative or add up to 1 or more, given pairs are not those of the graph's vertices and relations
        or occur twice, or the output is the input.

    Notes
    -----
    The split of a pair of vertices is a hash of both ids and the seed. So all records of a pair, also in the other
    direction, go to the same split, and nothing leaks. The shares are met up to chance. Loops stay in the training
    graph. A held-out pair is listed once, as its first record has it. In a directed graph both directions are listed
    if there are records of both. Weights of records are left out.

    In a graph with types the split of a record is a hash of its relation, too. So each relation is split by itself, and
    two vertices may have a record of one relation in training and one of another held out. A reverse relation
    (``rev_NAME``) has no records of its own: its edges are those of the training records.

    With ``times``, validation begins at a time and test at a later one. The shares are those of all records, and
    records of one time stay together, in the later split. A pair that was linked before is not held out again: its
    later records are left out, as are late loops. A held-out pair has the direction of its first record. Records
    without a time, the smallest int64, were always there. In a graph with types all relations with times are split at
    the same two times. Relations without times were always there. Leave out ``out`` then.

    Records are streamed. In memory are 40 bytes per held-out record and, without ``out``, 8 per training record. With
    ``times`` 24 per record more.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> ring = np.array([[v, (v + 1) % 1000] for v in range(1000)])
    >>> splits = fp.split_edges(ring, val=0.1, test=0.2)
    >>> print(splits)
    702 records to train on, 86 val and 212 test pairs
    >>> splits.graph
    <Graph: n=1000, m=702, undirected>
    """
    number, run = parameters.seed(seed), run_options(**options)
    target = None if out is None else parameters.in_folder(parameters.path("out", out))
    opened = open_graph(graph, **options)
    warn_of_unread_weights(opened, "split_edges")
    if times is not None:
        return _split_by_time(opened, times, (val, test), target, run)
    rule = _rule(opened, val, test, number)
    if target is None:
        pieces = [np.empty((0, 2), np.uint32)]
        held_out, typed = _split(opened, rule, pieces.append, run)
        records = np.concatenate(pieces)
        n, directedness = opened.num_vertices, opened.directedness
        return EdgeSplits(graph_of_records(records, GraphState(n, directedness, typed=typed)), *held_out)
    if opened.path is not None:
        refuse_input(opened.path, target)
    with staged(target, [*RAW, "splits.npz"], run) as file:
        held_out = _write(opened, rule, file, run)
    return EdgeSplits(open_graph(target), *held_out)


def _split_by_time(
    graph: Graph, times: Any, shares: tuple[Any, Any], target: Path | None, run: RunOptions
) -> EdgeSplits:
    """Split the records by their times."""
    typed, n = graph._typed, graph.num_vertices
    if typed is not None and target is not None:
        raise ParameterError(
            "out: times of relations go to save(edge_times=splits.edge_times), which takes them from memory. Leave it "
            "out"
        )
    found = split_by_time(graph, times, _shares(*shares), run)
    (val, val_times), (test, test_times) = found.val, found.test
    of_pairs = {"val": val, "test": test, "val_times": val_times, "test_times": test_times}
    trained = found.trains(0, graph.num_edges)
    edge_times: Any = found.times[trained]
    if typed is not None:
        edge_times = {name: found.times[rows][trained[rows]] for name, _, rows in found.timed}
        typed = typed.with_records(
            [int(trained[each.first : each.range.stop].sum()) for each in typed.relations]
        )
    records = (
        np.ascontiguousarray(graph._source.block(start, stop)[found.trains(start, stop)])
        for start, stop in pairwise([*range(0, graph.num_edges, _BLOCK), graph.num_edges])
    )
    if target is None:
        state = GraphState(n, graph.directedness, typed=typed)
        training = graph_of_records(np.concatenate(list(records)), state)
        return EdgeSplits(training, **of_pairs, edge_times=edge_times)
    if graph.path is not None:
        refuse_input(graph.path, target)
    with staged(target, [*RAW, "splits.npz", "times.npy"], run) as file:
        with file.open("wb") as opened:
            for block in records:
                opened.write(block.tobytes())
        _complete(graph, file, None, of_pairs, run)
        np.save(beside(file, "times.npy"), edge_times)
    return EdgeSplits(open_graph(target), **of_pairs, edge_times=edge_times)


def _shares(val: Any, test: Any) -> tuple[float, float]:
    """Check the shares that are held out."""
    shares = parameters.share_or_none("val", val), parameters.share_or_none("test", test)
    if sum(shares) >= 1:
        raise ParameterError(f"val, test: {val} and {test} leave no edges to train on")
    return shares


class _Shares:
    """Splits records by a hash of both ends, the relation and the seed."""

    def __init__(self, val: float, test: float, seed: int) -> None:
        shares = _shares(val, test)
        self._key = mixed(np.uint64(seed))
        self._bounds = np.array([math.ceil(share * 2.0**64) for share in (shares[0], sum(shares))], np.uint64)

    def of(self, block: npt.NDArray[np.uint32], relation: int | None) -> npt.NDArray[np.int64]:
        """Return the split of each record: 0 and 1 are held out, 2 is for training."""
        key = self._key if relation is None else mixed(self._key ^ np.uint64(relation))
        hashes = mixed(undirected_keys(block[:, 0], block[:, 1]) ^ key)
        split = np.searchsorted(self._bounds, hashes, side="right")
        return np.where(block[:, 0] == block[:, 1], len(self._bounds), split)

    def listed(self, found: list[Pairs], facts: Facts) -> tuple[Pairs, Pairs]:
        """Return the pairs of the held-out records, each once, in the order of the first records."""
        val, test = (facts.once(pairs) for pairs in found)
        return val, test


class _Listed:
    """Holds out the pairs of a user."""

    def __init__(self, held_out: tuple[Pairs, Pairs], facts: Facts) -> None:
        self._held_out = held_out
        self._known = [facts.known(pairs) for pairs in held_out]

    def of(self, block: npt.NDArray[np.uint32], relation: int | None) -> npt.NDArray[np.int64]:
        """Return the split of each record: 0 and 1 are held out, 2 is for training."""
        records = block.astype(np.int64)
        if relation is not None:
            records = np.column_stack([records, np.full(len(records), relation)])
        split = np.full(len(block), len(self._known))
        for index, known in enumerate(self._known):
            split[known.hold(records)] = index
        return split

    def listed(self, found: list[Pairs], facts: Facts) -> tuple[Pairs, Pairs]:
        """Return the pairs as they were given."""
        return self._held_out


def _rule(graph: Graph, val: Any, test: Any, seed: int) -> _Shares | _Listed:
    """Return what splits the records, by the parameters of a user."""
    shares = [isinstance(each, int | float | np.number | str) for each in (val, test)]
    if all(shares):
        return _Shares(val, test, seed)
    if any(shares):
        raise ParameterError(
            "val, test: one is a share and the other one lists pairs. Give both the same way"
        )
    facts, n = Facts.of(graph._typed, graph.directedness), graph.num_vertices
    held_out = pairs_of("val", val, n, graph._typed), pairs_of("test", test, n, graph._typed)
    facts.refuse_common(*held_out)
    return _Listed(held_out, facts)


def _write(graph: Graph, rule: _Shares | _Listed, file: Path, run: RunOptions) -> tuple[Pairs, Pairs]:
    """Write the training records with their sidecar, and the held-out pairs."""
    with file.open("wb") as opened:
        held_out, typed = _split(graph, rule, lambda block: opened.write(block.tobytes()), run)
    _complete(graph, file, typed, {"val": held_out[0], "test": held_out[1]}, run)
    return held_out


def _complete(
    graph: Graph, file: Path, typed: TypedRanges | None, of_pairs: dict[str, Ids], run: RunOptions
) -> None:
    """Write the sidecar of the training records, and the held-out pairs."""
    n = graph.num_vertices
    written = open_graph(file, dtype="u32", num_vertices=n, directedness=graph.directedness)
    checksum = written.identify(run)[1]
    Sidecar("u32", n, written.num_edges, graph.directedness, checksum, typed=typed).write(file)
    with beside(file, "splits.npz").open("wb") as opened:
        np.savez(opened, **of_pairs)  # type: ignore[arg-type]  # arrays by name


def _split(
    graph: Graph, rule: _Shares | _Listed, put: Callable[[npt.NDArray[np.uint32]], object], run: RunOptions
) -> tuple[tuple[Pairs, Pairs], TypedRanges | None]:
    """Pass the training records to ``put`` block by block.

    Returns the pairs of the other splits, and the types of the graph with the relations of the training records.
    """
    typed, total = graph._typed, graph.num_edges
    ranges = (
        [(None, 0, total)]
        if typed is None
        else [(number, each.first, each.range.stop) for number, each in enumerate(typed.relations)]
    )
    held_out: tuple[list[Pairs], list[Pairs]] = [], []
    kept = []
    for relation, first, last in ranges:
        kept.append(0)
        for start in range(first, last, _BLOCK):
            block = graph._source.block(start, min(start + _BLOCK, last))
            split = rule.of(block, relation)
            training = np.ascontiguousarray(block[split == len(held_out)])
            kept[-1] += len(training)
            put(training)
            for index, pairs in enumerate(held_out):
                those = block[split == index].astype(np.int64)
                number = () if relation is None else (np.full(len(those), relation),)
                pairs.append(np.column_stack([those, *number]))
            if run.progress is not None:
                run.progress("split", min(start + _BLOCK, last), total)
    graph._check_unchanged()
    width = 2 if typed is None else 3
    found = [np.concatenate([np.empty((0, width), np.int64), *pairs]) for pairs in held_out]
    facts = Facts.of(typed, graph.directedness)
    return rule.listed(found, facts), None if typed is None else typed.with_records(kept)


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
        Pairs of ids, int64 of shape (pairs, 2), and the time of the first record of each. In a graph with types of
        shape (pairs, 3), with the number of the relation.
    timed : list
        Name and number of each relation with times, and where its records are. A graph without types has one, without
        a name.
    """

    times: Ids
    before: int
    timed: Sequence[Timed]
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
    times : path, array or mapping
        A whole number for each record, in a graph with types by relation.
    shares : tuple of float
        How many of the latest records validation and test begin with.
    """
    known, timed = np.full(graph.num_edges, NO_TIME), _timed(graph, times)
    for (_, _, rows), given in timed:
        known[rows] = _times_of(given, rows.stop - rows.start)
    before, between = _bounds(np.concatenate([known[rows] for (_, _, rows), _ in timed]), shares)
    held_out = list[Ids]()
    first = list[Ids]()
    for (_, number, rows), _ in timed:
        pairs, late = _candidates(graph, rows, known, before)
        new = ~_linked_before(graph, rows, known, before, undirected_keys(pairs[:, 0], pairs[:, 1]), run)
        relation = [] if number is None else [np.full(np.count_nonzero(new), number)]
        held_out.append(np.column_stack([pairs[new], *relation]))
        first.append(late[new])
    graph._check_unchanged()
    pairs, late = np.concatenate(held_out), np.concatenate(first)
    early = late < between
    found = (pairs[early], late[early]), (pairs[~early], late[~early])
    return TimeSplit(known, before, [each for each, _ in timed], *found)


def _timed(graph: Graph, times: Any) -> list[tuple[Timed, Any]]:
    """Return the relations with times, and what the user gave for each."""
    typed = graph._typed
    if typed is None:
        return [(("", None, slice(0, graph.num_edges)), times)]
    if not isinstance(times, Mapping) or not times:
        raise ParameterError(
            f"times: the graph has types. Give times by relation, as {arg(f'times={{{typed.names[0]!r}: ...}}')}"
        )
    for name in times:
        if name not in typed.names:
            raise ParameterError(
                f"times: {name!r} is no relation of the graph{meant(str(name), typed.names)}"
            )
    return [
        ((each.name, number, slice(each.first, each.range.stop)), times[each.name])
        for number, each in enumerate(typed.relations)
        if each.name in times
    ]


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


def _blocks(graph: Graph, rows: slice) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
    for start in range(rows.start, rows.stop, _BLOCK):
        stop = min(start + _BLOCK, rows.stop)
        yield slice(start, stop), graph._source.block(start, stop)


def _candidates(graph: Graph, of: slice, times: Ids, before: int) -> tuple[Ids, Ids]:
    """Return the pairs with a late record among some records, each once, and the time of the earliest such record."""
    pairs, late = [np.empty((0, 2), np.int64)], [np.empty(0, np.int64)]
    for rows, block in _blocks(graph, of):
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
    graph: Graph, of: slice, times: Ids, before: int, keys: npt.NDArray[np.uint64], run: RunOptions
) -> npt.NDArray[np.bool_]:
    """Return which of some pairs have a training record among some records, in any direction."""
    ordered = np.sort(keys)
    linked = np.zeros(len(keys), np.bool_)
    for rows, block in _blocks(graph, of):
        early = block[times[rows] < before]
        known = np.unique(undirected_keys(early[:, 0], early[:, 1]))
        linked |= among(ordered, known)
        if run.progress is not None:
            run.progress("split", rows.stop, graph.num_edges)
    return linked[np.searchsorted(ordered, keys)]
