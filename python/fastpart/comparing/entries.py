"""The entries of a comparison: built-in partitioners, functions of the user, peers, and existing partitions."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..errors import ParameterError
from ..graph import Graph
from ..options import NAMES
from ..parameters import from_text, meant, shown
from ..partitioners import PARTITIONERS, VARIANTS, items_of
from ..partitions import EdgePartition, Partition, VertexPartition
from .memory import peak
from .peers import PEERS, Bench, Peer

SHARED = ("graph", "k", "seed", *NAMES)
"""Parameters that every algorithm gets from the comparison, if it takes them."""


@dataclass(frozen=True)
class Run:
    """A partition and what it cost. None where this was not measured."""

    partition: Partition
    seconds: float | None = None
    memory: int | None = None


class Entry(Protocol):
    """One competitor."""

    @property
    def label(self) -> str:
        """Name in tables."""

    @property
    def of(self) -> str | None:
        """Whether its partitions are of vertices or of edges, if this is known before the run."""

    @property
    def only_k(self) -> int | None:
        """The number of parts of an existing partition."""

    def run(self, graph: Graph, k: int, shared: Mapping[str, Any], bench: Bench) -> Run:
        """Return a partition into k parts."""


@dataclass(frozen=True)
class Partitioner:
    """A function that returns partitions, with the parameters that the user gave."""

    label: str
    function: Callable[..., Any]
    given: Mapping[str, Any] = field(default_factory=dict)
    only_k: int | None = None

    @property
    def of(self) -> str | None:
        """Known of the built-in ones."""
        return next(
            (items_of(name, self.given) for name, known in PARTITIONERS.items() if known is self.function),
            None,
        )

    def run(self, graph: Graph, k: int, shared: Mapping[str, Any], bench: Bench) -> Run:
        """Run the function. The adjacency that an earlier entry built is dropped first."""
        known = _parameters_of(self.function)
        passed = {name: value for name, value in shared.items() if name in known}
        graph._source.forget_csr()
        with peak() as taken:
            start = time.perf_counter()
            result = self.function(graph, k, **passed, **self.given)
            seconds = time.perf_counter() - start
        graph._source.forget_csr()
        return Run(_as_partition(result, graph, k), seconds, taken.growth)


@dataclass(frozen=True)
class Existing:
    """A partition from elsewhere, which is measured only."""

    label: str
    partition: Partition

    @property
    def of(self) -> str:
        """Of the partition."""
        return self.partition.of

    @property
    def only_k(self) -> int:
        """Of the partition."""
        return self.partition.k

    def run(self, graph: Graph, k: int, shared: Mapping[str, Any], bench: Bench) -> Run:
        """Return it."""
        return Run(self.partition)


@dataclass(frozen=True)
class PeerEntry:
    """A partitioner of another package, in a process of its own."""

    label: str
    peer: Peer
    given: Mapping[str, Any] = field(default_factory=dict)
    of: str = "vertices"
    only_k: int | None = None

    def run(self, graph: Graph, k: int, shared: Mapping[str, Any], bench: Bench) -> Run:
        """Run it within the limits of the bench."""
        parts, seconds, memory = bench.run(self.peer, self.label, graph, k, self.given)
        return Run(VertexPartition(parts, k), seconds, memory)


def entries_of(algorithms: Iterable[Any] | None, peers: bool | None) -> list[Entry]:
    """Return the entries, which have different labels.

    ``algorithms=None`` means every built-in one with its variants, and the installed peers unless ``peers=False``.
    ``peers=True`` adds these to any list.
    """
    if isinstance(algorithms, str | bytes | Mapping) or not isinstance(algorithms, Iterable | None):
        raise TypeError(
            f"algorithms: expected a list, got {type(algorithms).__name__}. Write it as a list: [...]"
        )
    entries = _built_in() if algorithms is None else [_entry(algorithm) for algorithm in algorithms]
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


def _built_in() -> list[Entry]:
    entries: list[Entry] = [
        Partitioner(_label(name, given), function, given)
        for name, function in PARTITIONERS.items()
        for given in ({}, *VARIANTS.get(name, ()))
    ]
    return sorted(entries, key=lambda entry: entry.of != "vertices")


def _installed_peers() -> list[Entry]:
    return [
        PeerEntry(_label(name, given), peer, given)
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
            return Existing(plain(label), partition)
        case (str() as label, function) if label and callable(function):
            return Partitioner(plain(label), function)
        case Partition():
            return Existing(plain(algorithm.algorithm), algorithm)
        case _ if callable(algorithm):
            return Partitioner(getattr(algorithm, "__name__", type(algorithm).__name__), algorithm)
    raise TypeError(
        "algorithms: expected the name of an algorithm, (name, {parameter: value}), a partition, a "
        f"callable(graph, k), or (label, one of these two), got {type(algorithm).__name__}"
    )


def _named(name: str, pairs: list[tuple[str, Any]]) -> Entry:
    """Return a built-in algorithm or a peer. Text values are converted to the type of the parameter."""
    if name not in PARTITIONERS and name not in PEERS:
        known = [*PARTITIONERS, *PEERS]
        raise ParameterError(
            f"algorithms: unknown name {name!r}. The names are {', '.join(known)}{meant(name, known)}"
        )
    peer = PEERS.get(name)
    function = peer.parameters if peer else PARTITIONERS[name]
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
    return PeerEntry(label, peer, given) if peer else Partitioner(label, PARTITIONERS[name], given)


def _label(name: str, given: Mapping[str, Any]) -> str:
    return plain(":".join([name, *(f"{key}={_short(value)}" for key, value in given.items())]))


def plain(text: str) -> str:
    """Return a text as one line of valid UTF-8."""
    return shown(" ".join(text.split()).encode(errors="replace").decode())


def _short(value: Any) -> str:
    text = str(value) if not isinstance(value, np.ndarray) else f"array of {len(value)}"
    return text if len(text) <= 40 else f"{text[:37]}..."


def _parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # some callables written in C
        return {}


def _as_partition(result: Any, graph: Graph, k: int) -> Partition:
    """Return the partition of a function. An array has one part per vertex or one per record."""
    if isinstance(result, Partition):
        if result.k != k:
            raise ParameterError(f"the function returned a partition of {result.k} parts instead of {k}")
        return result
    array = np.asarray(result)
    cls = VertexPartition if len(array) == graph.num_vertices else EdgePartition
    return cls(array, k)
