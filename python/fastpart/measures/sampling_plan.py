"""What a training samples, and the rows that the parts of a graph then fetch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core import parameters
from ..core.cache_size import CacheSize
from ..core.inputs import train_of
from ..core.options import RunOptions
from ..errors import arg
from ..graphs.graph import Graph
from ..partitions.loader_options import Fanouts
from ..partitions.partition import Partition, refuse_other_graph
from ..partitions.types import EdgeKey, relation_fanouts
from .row_types import RowTypes


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
    refuse_other_graph(partition, graph.num_vertices, graph.num_edges, None)
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
