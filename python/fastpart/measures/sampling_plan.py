"""Samples of a training, and the rows that the parts of a graph fetch for them, with the bytes of each type."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core import parameters
from ..core.cache_size import CacheSize
from ..core.inputs import train_of
from ..core.options import RunOptions
from ..core.parameters import meant
from ..core.parsing import mapped
from ..errors import ParameterError, arg
from ..graphs.graph import Graph
from ..graphs.graph_directory import found_in
from ..partitions.loader_options import Fanouts
from ..partitions.partition import Partition, VertexPartition
from ..partitions.types import EdgeKey, relation_fanouts, rows_of_type, type_names


@dataclass(frozen=True)
class RowTypes:
    """The types of rows. A plain graph has one without a name.

    Attributes
    ----------
    names : tuple of str or None
        The types. None: the graph has none.
    row_bytes : tuple of int or None
        Bytes of the features of a row, by type. None: they are unknown.
    """

    names: tuple[str, ...] | None
    row_bytes: tuple[int, ...] | None

    @classmethod
    def of(cls, names: Sequence[str] | None, given: Any, known: Sequence[int] | None) -> Self:
        """Return the types with the bytes that a caller gives, or those that are ``known``.

        Raises
        ------
        ParameterError, TypeError
            Bytes of a type that there is not, or a number below 0.
        """
        if not isinstance(given, Mapping):
            count = 1 if names is None else len(names)
            if given is not None:
                known = [parameters.integer("row_bytes", given, 0, 2**63 - 1)] * count
            types = None if names is None else tuple(names)
            return cls(types, None if known is None else tuple(known))
        if names is None:
            raise ParameterError("row_bytes: the graph has no types. Pass a number")
        for name in given:
            if name not in names:
                raise ParameterError(
                    f"row_bytes: {name!r} is none of the types {', '.join(names)}{meant(str(name), names)}"
                )
        sizes = (parameters.integer(f"row_bytes: {name}", given.get(name, 0), 0, 2**63 - 1) for name in names)
        return cls(tuple(names), tuple(sizes))

    @property
    def worth(self) -> list[float]:
        """What a row is worth to a cache, by type: its bytes. If none are known, all rows are worth the same."""
        if self.row_bytes is None or not any(self.row_bytes):
            return [1.0] * (1 if self.names is None else len(self.names))
        return list(map(float, self.row_bytes))

    @property
    def counted(self) -> list[bool]:
        """Whether rows are fetched, by type."""
        return [worth > 0 for worth in self.worth]


def stored_bytes(partition: VertexPartition) -> list[int] | None:
    """Return the bytes of the features of a row of a directory, by type. None if it has no features at all."""
    parts = [rows_of_type(partition.parts[0], name) for name in type_names(partition)]
    sizes = [part.feature_bytes if "features" in part._manifest else 0 for part in parts]
    return sizes if any(sizes) else None


def directory_bytes(graph: Graph) -> list[int] | None:
    """Return the bytes of the features of a row in a graph directory, by type. None if there are none."""
    if graph._typed is None or graph.directory is None:
        return None
    files = found_in(graph.directory, graph._typed).get("features", {})
    rows = {name: mapped(file) for name, file in files.items()}
    sizes = [
        rows[each.name].nbytes // max(1, len(rows[each.name])) if each.name in rows else 0
        for each in graph._typed.types
    ]
    return sizes if any(sizes) else None


def bytes_of_rows(partition: VertexPartition) -> npt.NDArray[np.float32] | float:
    """Return the bytes of the features of any row, or for a typed graph those of each row of the topology.

    If there are no features, each row has one.
    """
    worth = RowTypes.of(type_names(partition), None, stored_bytes(partition)).worth
    return worth[0] if partition._types is None else of_each_row(partition._types, worth)


def of_each_row(types: _core.Types, by_type: Sequence[float]) -> npt.NDArray[np.float32]:
    """Return the value of the type of each row of the topology: part after part, and type after type in each."""
    counts = np.diff(np.array(types.starts, np.int64), axis=1).astype(np.int64)
    return np.repeat(np.tile(np.array(by_type, np.float32), counts.shape[1]), counts.T.ravel())


class PartTraffic(Protocol):
    """Rows per epoch of a part, by type."""

    @property
    def seeds(self) -> int: ...  # noqa: D102
    @property
    def rows(self) -> Sequence[float]: ...  # noqa: D102
    @property
    def remote(self) -> Sequence[float]: ...  # noqa: D102
    @property
    def cached(self) -> Sequence[Sequence[int]]: ...  # noqa: D102
    @property
    def saved(self) -> Sequence[Sequence[float]]: ...  # noqa: D102


@dataclass(frozen=True)
class SamplingPlan:
    """The fanouts and batches of a training, and the caches to predict for.

    Attributes
    ----------
    fanouts : tuple of int, or dict
        As they were given, checked.
    hops : list of list of int
        In-edges per vertex, by hop and by relation. A plain graph has one relation.
    targets : list of str
        The type of the targets of each relation.
    batch_size : int
        Seeds of a step on all ranks.
    caches : tuple of CacheSize
        The size of each cache of a part.
    """

    fanouts: Fanouts
    hops: list[list[int]]
    targets: list[str]
    batch_size: int
    caches: tuple[CacheSize, ...]

    @classmethod
    def of(
        cls, fanouts: object, batch_size: object, caches: Iterable[object], keys: Sequence[EdgeKey] | None
    ) -> SamplingPlan:
        """Check the values. ``keys`` are the relations of a typed graph. None: it has none."""
        size = parameters.integer("batch_size", batch_size, 1, 2**31 - 1)
        sizes = tuple(map(CacheSize.of, caches))
        if keys is None:
            given = parameters.fanouts_of(fanouts)
            return cls(given, [[fanout] for fanout in given], [""], size, sizes)
        hops = relation_fanouts(fanouts, keys)
        known: Any = dict(fanouts) if isinstance(fanouts, Mapping) else parameters.fanouts_of(fanouts)
        return cls(known, hops, [target for _, _, target in keys], size, sizes)

    def of_core(self, rows: RowTypes) -> list[float | int]:
        """Return the caches as the core takes them, for rows of these bytes."""
        if not any(rows.row_bytes or ()):
            for cache in self.caches:
                cache.refuse_unsized(f"Pass {arg('row_bytes')}, or a share of the rows of a part")
        return [cache.of_core for cache in self.caches]

    def is_cheap_to_count(self, seeds: int, edges: int) -> bool:
        """Return whether sampling an epoch is surely cheaper than its estimate, which reads all edges for each hop.

        Ranking the rows of a cache reads them as well, for each part.
        """
        most = [self._most_sampled(hop) for hop in self.hops]
        if math.inf in most or any(self.caches):
            return False
        sampled = seeds * sum(math.prod(most[: hop + 1]) for hop in range(len(most)))
        return sampled <= edges * len(most)

    def _most_sampled(self, hop: Sequence[int]) -> float:
        """Return the most in-edges that are sampled of a vertex of some type."""
        of_type = dict.fromkeys(self.targets, 0.0)
        for fanout, target in zip(hop, self.targets, strict=True):
            of_type[target] += math.inf if fanout == -1 else fanout
        return max(of_type.values(), default=0.0)


def traffic_of(
    graph: Graph,
    partition: Partition,
    splits: Mapping[str, npt.NDArray[np.int64]],
    plan: SamplingPlan,
    rows: RowTypes,
    options: RunOptions,
) -> list[_core.PartTraffic]:
    """Return the traffic of each part of a graph."""
    partition.refuse_other_graph(graph.num_vertices, graph.num_edges, None)
    if graph._typed is not None:
        graph.identify(options)  # compares the ends of the records with their types, once
    return _core.predict_traffic(
        graph._source,
        partition.assignment,
        partition.k,
        train_of(splits),
        plan.hops,
        directedness=graph.directedness,
        relations=graph._directions,
        types=[each.n for each in graph.types or ()],
        batch_size=plan.batch_size,
        caches=plan.of_core(rows),
        row_bytes=rows.worth,
        options=options,
    )


def edge_keys_of(graph: Graph) -> list[EdgeKey] | None:
    """Return the relations of a graph and their reverse ones. None if it has no types."""
    if graph._typed is None:
        return None
    return [(each.source, each.name, each.target) for each in graph._typed.edge_types]
