"""The entries of a comparison, and its graphs.

Entries are built-in partitioners, functions of the user, peers, and existing partitions. On each graph the same is
measured, and the same traffic predicted.
"""

from __future__ import annotations

import ctypes
import gc
import inspect
import os
import threading
import time
import warnings
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...core.calls import full_signature
from ...core.frames import pl
from ...core.inputs import labels_of, train_of
from ...core.notes import log
from ...core.options import NAMES, RunOptions
from ...core.parameters import from_text, meant, one_line, shown
from ...core.system import anonymous_bytes
from ...core.vertex_tables import InOrder
from ...errors import GraphWarning, ParameterError, arg
from ...graphs.given_splits import typed_splits
from ...graphs.graph import Graph
from ...graphs.opening import open_graph
from ...partitions.partition import EdgePartition, Partition, VertexPartition
from ...partitions.partitioners import ALGORITHMS, PARTITIONERS, VARIANTS, items_of, needs_splits, partition
from ...partitions.partitioners.builtin import SUCCESSORS
from ..sampling_plan import RowTypes, SamplingPlan, directory_bytes, edge_keys_of, traffic_of
from ..traffic import of_input, summed
from .peers import PEERS, Bench, Peer

CALLS: Mapping[str, Callable[..., Any]] = ChainMap(PARTITIONERS, {"partition": partition})
"""Functions by name: the partitioners, and those that choose among them."""

BUILT_IN = {*CALLS, *SUCCESSORS}
"""The names of the algorithms of fastpart, also of those that begin with a partition."""

SHARED = ("graph", "k", "seed", *NAMES)
"""Parameters that every algorithm gets from the comparison, if it takes them. No entry can have its own."""

BALANCE = 1.03
"""The bound of all methods by default: the largest part over the mean. It is the usual one of partitioners."""


@dataclass(frozen=True)
class Run:
    """A partition and what it cost. None where this was not measured."""

    partition: Partition
    seconds: float | None = None
    memory: int | None = None


@dataclass(frozen=True)
class Entry:
    """An entry of a comparison.

    Attributes
    ----------
    label : str
        Name in tables.
    run : callable
        ``run(graph, k, shared, bench)`` returns a :class:`Run`. ``shared`` holds parameters that all entries get.
    of : str or None
        Whether its partitions are of vertices or of edges, if this is known before the run.
    only_k : int or None
        The number of parts of an existing partition.
    defaults, given : mapping
        The parameters of the function with their defaults, and those that the user gave.
    versions : mapping
        The version of its package by name.
    algorithm : str or None
        The name of the built-in algorithm or of the peer that runs. None: it is the user's own.
    """

    label: str
    run: Callable[[Graph, int, Mapping[str, Any], Bench], Run]
    of: str | None = None
    only_k: int | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str | None] = field(default_factory=dict)
    algorithm: str | None = None

    def parameters(self, balance: float | None) -> dict[str, Any]:
        """Return what it runs with under this bound of the comparison. A bound of its own comes first."""
        bound = {} if balance is None or "balance" not in self.defaults else {"balance": balance}
        return {**self.defaults, **bound, **self.given}


def _function(label: str, function: Callable[..., Any], given: Mapping[str, Any] | None = None) -> Entry:
    """Return the entry of a function that returns partitions, with the parameters that the user gave."""
    given = given or {}

    def run(graph: Graph, k: int, shared: Mapping[str, Any], _: Bench) -> Run:
        known = _parameters_of(function)
        passed = {name: value for name, value in shared.items() if name in known}
        graph._source.forget_csr()  # that of an earlier entry
        with peak() as taken:
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.filterwarnings(
                    "ignore", ".*does not read the weights", GraphWarning
                )  # once is enough
                result = function(graph, k, **{**passed, **given})
            seconds = time.perf_counter() - start
        graph._source.forget_csr()
        return Run(_as_partition(result, graph, k), seconds, taken.growth)

    name = next((name for name, known in CALLS.items() if known is function), None)
    of = None if name is None else items_of(name, given)
    return Entry(label, run, of, defaults=_defaults_of(function), given=given, algorithm=name)


def _existing(label: str, partition: Partition) -> Entry:
    """Return the entry of a partition, which is measured only."""
    return Entry(
        one_line(label), lambda *_: Run(partition), partition.of, partition.k, given=partition.parameters,
        algorithm=partition.algorithm if partition.algorithm in BUILT_IN else None,
    )  # fmt: skip


def _peer(label: str, peer: Peer, given: Mapping[str, Any]) -> Entry:
    """Return the entry of a partitioner of another package. It runs within the limits of the bench."""

    def run(graph: Graph, k: int, _: Mapping[str, Any], bench: Bench) -> Run:
        parts, seconds, memory = bench.run(peer, label, graph, k, given)
        return Run(VertexPartition(parts, k), seconds, memory)

    return Entry(
        label, run, "vertices", defaults={**peer.defaults, "balance": BALANCE}, given=given,
        versions={peer.module: peer.version}, algorithm=peer.name,
    )  # fmt: skip


def entries_of(
    algorithms: Iterable[Any] | None, peers: bool | None, *, with_splits: bool = False
) -> list[Entry]:
    """Return the entries, which have different labels.

    ``algorithms=None`` means every built-in one with its variants, but those that need splits only if there are any
    (``with_splits``), and the installed peers unless ``peers=False``.
    ``peers=True`` adds these to any list.
    """
    if isinstance(algorithms, Mapping):
        algorithms = algorithms.items()
    if isinstance(algorithms, str | bytes) or not isinstance(algorithms, Iterable | None):
        raise TypeError(
            f"algorithms: expected a list, got {type(algorithms).__name__}. Write it as a list: [...]"
        )
    entries = (
        _built_in(with_splits) if algorithms is None else [_entry(algorithm) for algorithm in algorithms]
    )
    if peers or (peers is None and algorithms is None):
        taken = {entry.label for entry in entries}
        entries += [entry for entry in _installed_peers() if entry.label not in taken]
    if not entries:
        raise ParameterError("algorithms: the list is empty. Name at least one")
    labels = [entry.label for entry in entries]
    for label in labels:
        if labels.count(label) > 1:
            raise ParameterError(f"algorithms: two are called {label!r}. Rename one: ('another name', ...)")
    return entries


def _built_in(with_splits: bool) -> list[Entry]:
    entries = [
        _function(_label(name, given), function, given)
        for name, function in PARTITIONERS.items()
        if with_splits or name not in ALGORITHMS or not needs_splits(name)
        for given in ({}, *VARIANTS.get(name, ()))
    ]
    return sorted(entries, key=lambda entry: entry.of != "vertices")


def _installed_peers() -> list[Entry]:
    return [
        _peer(_label(name, given), peer, given)
        for name, peer in PEERS.items()
        if peer.installed()
        for given in ({}, *peer.variants)
    ]


def _entry(algorithm: Any) -> Entry:
    """Read one element of ``algorithms``."""
    match algorithm:
        case str():
            name, *pairs = algorithm.split(":")
            return _named(name, [pair.partition("=")[::2] for pair in pairs])
        case (str() as name, Mapping() as given):
            return _named(name, list(given.items()))
        case (str() as label, Partition() as partition) if label:
            return _existing(label, partition)
        case (str() as label, function) if label and callable(function):
            return _function(one_line(label), function)
        case (str() as label, (str() | (str(), Mapping())) as named) if label:
            return _renamed(one_line(label), _entry(named))
        case Partition():
            return _existing(algorithm.algorithm, algorithm)
        case _ if callable(algorithm):
            return _function(getattr(algorithm, "__name__", type(algorithm).__name__), algorithm)
    raise TypeError(
        "algorithms: expected the name of an algorithm, (name, {parameter: value}), a partition, a "
        f"callable(graph, k), or a pair of a label and an algorithm, got {type(algorithm).__name__}"
    )


def _renamed(label: str, entry: Entry) -> Entry:
    """Return an entry with the name that the user gives it in tables."""
    if label != entry.algorithm and (label in BUILT_IN or label in PEERS):
        raise ParameterError(f"algorithms: {label!r} is the name of another algorithm. Choose another name")
    return replace(entry, label=label)


def _named(name: str, pairs: list[tuple[str, Any]]) -> Entry:
    """Return a built-in algorithm or a peer. Text values are converted to the type of the parameter."""
    if name not in CALLS and name not in PEERS:
        known = [*PARTITIONERS, "partition", *PEERS]
        raise ParameterError(
            f"algorithms: unknown name {name!r}. The names are {', '.join(known)}{meant(name, known)}"
        )
    peer = PEERS.get(name)
    function = peer.parameters if peer else CALLS[name]
    known_parameters = _parameters_of(function)
    given: dict[str, Any] = {}
    for key, value in pairs:
        parameter = key.replace("-", "_")
        if parameter not in known_parameters or parameter in SHARED:
            valid = ", ".join(other for other in known_parameters if other not in SHARED) or "none"
            raise ParameterError(f"algorithms: unknown parameter {key!r} of {name}. Its parameters: {valid}")
        annotation = str(known_parameters[parameter].annotation)
        given[parameter] = from_text(f"{name}:{key}", value, annotation) if isinstance(value, str) else value
    if peer:
        peer.parameters(**given)
    label = _label(name, given)
    return _peer(label, peer, given) if peer else _function(label, CALLS[name], given)


def _label(name: str, given: Mapping[str, Any]) -> str:
    return one_line(":".join([name, *(f"{key}={_short(value)}" for key, value in given.items())]))


def _short(value: Any) -> str:
    text = str(value) if not isinstance(value, np.ndarray) else f"array of {len(value)}"
    return text if len(text) <= 40 else f"{text[:37]}..."


def _parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return full_signature(function).parameters
    except (TypeError, ValueError):  # some callables written in C
        return {}


def _defaults_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the defaults of the parameters that decide what a function returns."""
    known = {
        name: each.default for name, each in _parameters_of(function).items() if name not in (*SHARED, "out")
    }
    return {name: default for name, default in known.items() if default is not inspect.Parameter.empty}


def _as_partition(result: Any, graph: Graph, k: int) -> Partition:
    """Return the partition of a function. An array has one part per vertex or one per record."""
    if isinstance(result, Partition):
        if result.k != k:
            raise ParameterError(f"the function returned a partition of {result.k} parts instead of {k}")
        return result
    array = np.asarray(result)
    n, m = graph.num_vertices, graph.num_edges
    if array.ndim == 1 and len(array) not in (n, m):
        raise ParameterError(
            f"the function returned {len(array):,} parts. Return one for each of the {n:,} vertices, or for each of "
            f"the {m:,} records"
        )
    return (VertexPartition if array.shape == (n,) else EdgePartition)(array, k)


PERIOD = 0.001
"""Seconds between two looks."""


class Peak:
    """The largest growth so far, in bytes."""

    def __init__(self) -> None:
        self.base = anonymous_bytes()
        self.growth = 0

    def look(self) -> None:
        """Sample the memory in use."""
        self.growth = max(self.growth, anonymous_bytes() - self.base)


@contextmanager
def peak() -> Iterator[Peak]:
    """Watch the anonymous memory of this process while the block runs.

    A thread samples it every millisecond. It needs the GIL, which long calls of the core release. Memory that was freed
    earlier but not returned to the kernel would hide growth, so it is returned first.
    """
    gc.collect()
    with suppress(AttributeError, OSError):  # a C library without it
        ctypes.CDLL(None).malloc_trim(0)
    seen, over = Peak(), threading.Event()

    def watch() -> None:
        while not over.wait(PERIOD):
            seen.look()

    thread = threading.Thread(target=watch, name="memory", daemon=True)
    thread.start()
    try:
        yield seen
        seen.look()
    finally:
        over.set()
        thread.join()


class Predicted(NamedTuple):
    """The traffic of a partition: columns of its row, and those of its types."""

    row: dict[str, float]
    types: list[pl.Series]


Prediction = Callable[[Partition], Predicted]


@dataclass(frozen=True)
class Subject:
    """A graph of a comparison.

    Attributes
    ----------
    name : str
        Its name in tables: the one that the user gave, that of the file, or "graph". No two have the same.
    graph : Graph
        Open.
    measured : mapping
        ``labels`` and ``splits`` for :func:`fastpart.evaluate`.
    predict : callable
        Predicts the traffic of a partition.
    """

    name: str
    graph: Graph
    measured: Mapping[str, Any]
    predict: Prediction

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes, for the row of a failed run."""
        return {"n": self.graph.num_vertices, "m": self.graph.num_edges, "loops": self.graph.identify()[0]}

    def facts(self, run: RunOptions) -> dict[str, Any]:
        """Return name, sizes and checksum. This also reads the file into the page cache."""
        checksum = self.graph.identify(run)[1]
        if self.graph.weights is not None:
            log.info(
                "the records are weighted. multilevel and the peers read weights, the others count each record once"
            )
        return {"name": self.name, **self.sizes, "checksum": checksum}


def subjects_of(
    source: Any, measured: tuple[Any, Any, Any], traffic: tuple[Any, ...], run: RunOptions
) -> list[Subject]:
    """Open the graph, or each of several. ``measured`` is labels, splits and the number of the split."""
    if _names_in_pairs(source):
        raise TypeError("graph: expected graphs, got pairs with names. A dict names graphs: {'Cora': graph}")
    names, sources = (
        _named_graph(source) if _names_graphs(source) else (None, source if _several(source) else [source])
    )
    if len(sources) > 1:
        for name, given in zip(("labels", "splits"), measured, strict=False):
            if given is not None:
                raise ParameterError(f"{name}: they are those of one graph. Compare the graphs one by one")
    subjects: list[Subject] = []
    for place, each in enumerate(sources):
        opened = open_graph(each, **vars(run))
        name = shown(Path(opened.path).name) if opened.path else "graph"
        name = names[place] if names else name
        alike = sum(name == other.name.partition(" #")[0] for other in subjects)
        subjects.append(_subject(f"{name} #{alike + 1}" if alike else name, opened, measured, traffic, run))
    return subjects


def _names_graphs(source: Any) -> bool:
    """Return whether a dict has graphs by name. One with ``edge_index`` is itself a graph, of OGB."""
    return isinstance(source, Mapping) and "edge_index" not in source


def _named_graph(source: Mapping[Any, Any]) -> tuple[list[str], list[Any]]:
    """Return the names of several graphs, and the graphs."""
    if not source or not all(isinstance(name, str) and name.strip() for name in source):
        raise ParameterError(
            "graph: expected graphs by name, such as {'Cora': graph}. Give each a name of letters"
        )
    names = [one_line(name) for name in source]
    if len(set(names)) < len(names):
        raise ParameterError("graph: two graphs have the same name. Rename one")
    return names, [*source.values()]


def _names_in_pairs(source: Any) -> bool:
    """Return whether a list has graphs by name, as pairs. Pairs of strings are edges."""
    return (
        isinstance(source, list | tuple)
        and bool(source)
        and all(
            isinstance(each, list | tuple)
            and len(each) == 2
            and isinstance(each[0], str)
            and not np.isscalar(each[1])
            for each in source
        )
    )


def _several(source: Any) -> bool:
    """Return whether a list holds graphs, rather than the edges of one."""
    return (
        isinstance(source, list | tuple)
        and bool(source)
        and all(
            isinstance(each, str | os.PathLike | Graph) or len(getattr(each, "shape", ())) == 2
            for each in source
        )
    )


def _subject(
    name: str, graph: Graph, measured: tuple[Any, Any, Any], traffic: tuple[Any, ...], run: RunOptions
) -> Subject:
    labels, splits, split = measured
    of_graph = {
        "labels": None if labels is None else labels_of(labels, graph.num_vertices, graph._id_tables),
        "splits": typed_splits(graph, splits, split) or None,
    }
    predict = _prediction(graph, of_graph["splits"], traffic, run)
    measured_ = {key: None if each is None else InOrder(each) for key, each in of_graph.items()}
    return Subject(name, graph, measured_, predict)


def _prediction(graph: Graph, splits: Any, given: tuple[Any, ...], run: RunOptions) -> Prediction:
    """Return what predicts the columns of the traffic of a partition."""
    fanouts, batch_size, cache, row_bytes, input = given
    if fanouts is None:
        return lambda partition: Predicted({}, [])
    if not splits:
        raise ParameterError(
            f"splits: the traffic of training depends on its vertices. Pass {arg('splits')} with train"
        )
    train = of_input(splits, graph, input)
    train_of(train)
    caches = cache if isinstance(cache, Iterable) and not isinstance(cache, str) else [cache]
    plan = SamplingPlan.of(fanouts, batch_size, caches, edge_keys_of(graph))
    names = None if graph.types is None else [each.name for each in graph.types]
    rows = RowTypes.of(names, row_bytes, directory_bytes(graph))

    def predict(partition: Partition) -> Predicted:
        if isinstance(partition, EdgePartition):
            return Predicted({}, [])
        found = traffic_of(graph, partition, train, plan, rows, run)
        columns = {}
        types: list[pl.Series] = []
        for index, size in enumerate(plan.caches):
            traffic = summed(found, plan, index, rows)
            end = f"_{size}" if size else ""
            columns[f"remote_rows{end}"] = float(round(traffic.fetched_rows))
            if traffic.fetched_mb is not None:
                columns[f"remote_mb{end}"] = traffic.fetched_mb
            if traffic.types is not None:
                types += _of_types(traffic.types, end)
        return Predicted(columns, types)

    return predict


def _of_types(traffic: pl.DataFrame, end: str) -> list[pl.Series]:
    """Return the columns of the traffic of each type, with this end of their names."""
    fetched = (traffic["remote_rows"] - traffic["saved_rows"]).round()
    columns = [fetched.rename(f"remote_rows{end}")]
    if traffic["fetched_mb"].null_count() < len(traffic):
        columns.append(traffic["fetched_mb"].rename(f"remote_mb{end}"))
    return columns
