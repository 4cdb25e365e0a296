"""What can be compared: partitioners by name, with parameters, of the user's own, of peers; and finished partitions."""

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
class Made:
    """A partition, and what it took to make it; None where nobody measured."""

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
        """What its partitions give parts to, vertices or edges, if that is known before they are made."""

    @property
    def only_k(self) -> int | None:
        """The one number of parts it has, if it is finished."""

    def make(self, graph: Graph, k: int, shared: Mapping[str, Any], bench: Bench) -> Made:
        """Return a partition into k parts."""


@dataclass(frozen=True)
class Partitioner:
    """A function that makes partitions, with parameters of its own."""

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

    def make(self, graph: Graph, k: int, shared: Mapping[str, Any], bench: Bench) -> Made:
        """Run the function from a fresh start: what earlier ones kept for reuse is forgotten."""
        known = _parameters_of(self.function)
        passed = {name: value for name, value in shared.items() if name in known}
        graph._source.forget_csr()
        with peak() as taken:
            start = time.perf_counter()
            made = self.function(graph, k, **passed, **self.given)
            seconds = time.perf_counter() - start
        graph._source.forget_csr()
        return Made(_as_partition(made, graph, k), seconds, taken.growth)


@dataclass(frozen=True)
class Finished:
    """A partition that somebody made before."""

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

    def make(self, graph: Graph, k: int, shared: Mapping[str, Any], bench: Bench) -> Made:
        """Return it."""
        return Made(self.partition)


@dataclass(frozen=True)
class PeerEntry:
    """A partitioner of another package, in a process of its own."""

    label: str
    peer: Peer
    given: Mapping[str, Any] = field(default_factory=dict)
    of: str = "vertices"
    only_k: int | None = None

    def make(self, graph: Graph, k: int, shared: Mapping[str, Any], bench: Bench) -> Made:
        """Run it within the limits of the bench."""
        parts, seconds, memory = bench.run(self.peer, self.label, graph, k, self.given)
        return Made(VertexPartition(parts, k), seconds, memory)


def entries_of(algorithms: Iterable[Any] | None, peers: bool | None) -> list[Entry]:
    """Return the competitors; their labels differ.

    ``algorithms=None`` means every built-in one with its variants, and the peers that are installed unless
    ``peers=False``; ``peers=True`` adds these to any list.
    """
    if isinstance(algorithms, str | bytes | Mapping) or not isinstance(algorithms, Iterable | None):
        raise TypeError(f"algorithms: expected a list, got {type(algorithms).__name__}; write [...]")
    entries = _built_in() if algorithms is None else [_entry(algorithm) for algorithm in algorithms]
    if peers or (peers is None and algorithms is None):
        taken = {entry.label for entry in entries}
        entries += [entry for entry in _installed_peers() if entry.label not in taken]
    if not entries:
        raise ParameterError("algorithms: an empty list; name at least one")
    labels = [entry.label for entry in entries]
    for label in labels:
        if labels.count(label) > 1:
            raise ParameterError(f"algorithms: two are called {label!r}; name one as ('another name', ...)")
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
            return Finished(plain(label), partition)
        case (str() as label, function) if label and callable(function):
            return Partitioner(plain(label), function)
        case Partition():
            return Finished(plain(algorithm.algorithm), algorithm)
        case _ if callable(algorithm):
            return Partitioner(getattr(algorithm, "__name__", type(algorithm).__name__), algorithm)
    raise TypeError(
        "algorithms: an element is the name of an algorithm, (name, {parameter: value}), a partition, a "
        f"callable(graph, k), or (label, one of these two); got {type(algorithm).__name__}"
    )


def _named(name: str, pairs: list[tuple[str, Any]]) -> Entry:
    """Return a built-in algorithm or a peer; values that are text are read as the parameter asks."""
    if name not in PARTITIONERS and name not in PEERS:
        known = [*PARTITIONERS, *PEERS]
        raise ParameterError(
            f"algorithms: unknown {name!r}; known are {', '.join(known)}{meant(name, known)}"
        )
    peer = PEERS.get(name)
    function = peer.parameters if peer else PARTITIONERS[name]
    known_parameters = _parameters_of(function)
    given: dict[str, Any] = {}
    for key, value in pairs:
        parameter = key.replace("-", "_")
        if parameter not in known_parameters or parameter in SHARED:
            valid = ", ".join(other for other in known_parameters if other not in SHARED) or "none"
            raise ParameterError(f"algorithms: unknown parameter {key!r} of {name}; it has {valid}")
        annotation = str(known_parameters[parameter].annotation)
        given[parameter] = from_text(f"{name}:{key}", value, annotation) if isinstance(value, str) else value
    if peer:
        peer.parameters(**given)
    label = _label(name, given)
    return PeerEntry(label, peer, given) if peer else Partitioner(label, PARTITIONERS[name], given)


def _label(name: str, given: Mapping[str, Any]) -> str:
    return plain(":".join([name, *(f"{key}={_short(value)}" for key, value in given.items())]))


def plain(text: str) -> str:
    """Return a text on one line, which any file can hold."""
    return shown(" ".join(text.split()).encode(errors="replace").decode())


def _short(value: Any) -> str:
    text = str(value) if not isinstance(value, np.ndarray) else f"array of {len(value)}"
    return text if len(text) <= 40 else f"{text[:37]}..."


def _parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # some callables written in C
        return {}


def _as_partition(made: Any, graph: Graph, k: int) -> Partition:
    """Wrap what a function returned: an array as long as the vertices, or as the records."""
    if isinstance(made, Partition):
        if made.k != k:
            raise ParameterError(f"it returned a partition of {made.k} parts; asked for were {k}")
        return made
    array = np.asarray(made)
    cls = VertexPartition if len(array) == graph.num_vertices else EdgePartition
    return cls(array, k)
