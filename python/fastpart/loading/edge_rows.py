"""The in-edges of batches as rows of the directory, where their features are, by relation."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core.cache_size import CacheSize
from ..measures.accesses import Epoch
from ..partitions.partition import VertexPartition
from ..partitions.parts import VertexPartData
from ..partitions.seeds import owner_of
from ..partitions.types import ONLY_RELATION, EdgeKey, edge_keys, of_relation, type_names
from .fetching import Fetching, Fetchings, chained
from .row_files import RelationRows, RowFiles, relations_with_features
from .sample import Sample, SampledArrays, entries_of

Ids = npt.NDArray[np.int64]


class EdgeFetching(Fetchings[EdgeKey]):
    """Where the features of in-edges come from.

    Attributes
    ----------
    of_relation : dict of Fetching
        By relation. Relations without features are left out.
    """

    def __init__(self, partition: VertexPartition, fetching_of_files: Callable[[RowFiles], Fetching]) -> None:
        self._rows: dict[EdgeKey, RelationRows] = {}
        if partition.is_typed:
            self._rows = relations_with_features(partition)
            super().__init__({key: fetching_of_files(each.files) for key, each in self._rows.items()})
        elif partition.parts[0].stored_type("edge_features") is not None:
            super().__init__({ONLY_RELATION: fetching_of_files(RowFiles.of_edges(partition))})
        else:
            super().__init__({})

    @property
    def of_relation(self) -> dict[EdgeKey, Fetching]:  # noqa: D102
        return self._of

    def keep_cached(
        self, partition: VertexPartition, own: npt.NDArray[np.bool_], cache: CacheSize, epoch: Epoch
    ) -> None:
        """Keep in-edges of other ranks, so that batches need not fetch their features. All ranks have to call it."""
        for key, rows in cached_edge_rows_of(partition, own, cache, epoch, self._rows).items():
            self._of[key].keep_cached(rows)

    @property
    def with_batches(self) -> _core.Features | None:
        """The files that the core fills batches from while it makes them, in a graph without types."""
        return self._of[ONLY_RELATION].with_batches if ONLY_RELATION in self._of else None

    def filled(self, sampled: Iterator[SampledArrays], together: int, steps: int) -> Generator[SampledArrays]:
        """Yield the batches with the features of their in-edges. See :meth:`.fetching.Fetching.filled`."""
        stages = [(key, fetching, partial(self._view, key=key)) for key, fetching in self._of.items()]
        with closing(chained(sampled, stages, together, steps)) as filled:
            for batch, found in filled:
                yield self._with(batch, found)

    def _view(self, batch: Any, key: EdgeKey) -> tuple[Ids, npt.NDArray[Any] | None]:
        """Return the rows of the in-edges of a batch, and their features if they were read."""
        if key == ONLY_RELATION:
            rows = batch.edge_rows
            return _NONE if rows is None else rows, batch.edge_features
        return _NONE if batch.e_id is None else self._rows[key].of(batch), None

    def _with(self, batch: Any, found: dict[EdgeKey, Any]) -> SampledArrays:
        if ONLY_RELATION in found:
            features = found[ONLY_RELATION]
            there = batch.edge_rows is None or features is batch.edge_features
        else:
            features, there = found, batch.e_id is None
        return batch if there else Sample(**{**entries_of(batch), "edge_features": features})


_NONE: Ids = np.empty(0, np.int64)


def cached_edge_rows_of(
    partition: VertexPartition,
    own: npt.NDArray[np.bool_],
    cache: CacheSize,
    epoch: Epoch,
    relations: Mapping[EdgeKey, RelationRows],
) -> dict[EdgeKey, Ids]:
    """Return the in-edges of other ranks that a rank caches, by relation, as rows that ascend.

    All in-edges of a relation at a vertex are cached together. They are ranked by the expected steps that sample the
    in-edges of the vertex, times the probability of each in-edge then, times the bytes of its features.

    Parameters
    ----------
    relations : mapping of RelationRows
        The relations that have features. Empty in a graph without types.
    """
    keys = list(relations) or [ONLY_RELATION]
    hops = [hop if isinstance(hop, Sequence) else [hop] for hop in epoch.fanouts]
    if not cache or len(hops) < 2:
        return dict.fromkeys(keys, _NONE)  # seeds are own vertices, and their in-edges own ones
    topology, by_type = partition._topology, partition._rows_by_type
    of_seeds = Epoch(epoch.seeds, epoch.fanouts[:-1], epoch.batch_size, epoch.types)
    steps = of_seeds.expected_steps(topology, own)
    types, _ = by_type.locate(np.arange(topology.num_vertices, dtype=np.uint32))
    names, all_keys = type_names(partition), edge_keys(partition)
    starts = [np.asarray(by_type.starts[names.index(target)], np.int64) for _, _, target in keys]
    runs = [
        [
            relations[key].runs(part) if relations else _runs_of(partition.parts[part])
            for part in range(partition.k)
        ]
        for key in keys
    ]
    row_bytes = [_row_bytes(partition, key) for key in keys]
    scores, counts, owned = [], [], []
    for place, key in enumerate(keys):
        count = np.concatenate([count for _, count in runs[place]])
        fanouts = [hop[all_keys.index(key)] for hop in hops[1:]]
        most = np.inf if min(fanouts) < 0 else max(fanouts)
        sampled = steps[types == names.index(key[2])] * np.minimum(1, most / np.maximum(count, 1))
        scores.append(sampled * (row_bytes[place] / max(row_bytes)))
        counts.append(count)
        owned.append(own[owner_of(np.arange(len(count)), starts[place])])
    score, count, is_own = map(np.concatenate, (scores, counts, owned))
    size = np.repeat(row_bytes, [len(each) for each in counts]) * count
    found = np.flatnonzero((score > 0) & ~is_own & (count > 0))
    found = found[np.lexsort((found, -score[found]))]
    if cache.bytes is None:
        fits = np.cumsum(count[found]) <= cache.held(int(count[is_own].sum()), 0)
    else:
        memory = cache.bytes * np.count_nonzero(own)  # each part of the rank has it
        fits = np.cumsum(size[found]) <= memory
    kept = np.zeros(len(count), bool)
    kept[found[fits]] = True
    cached, first = {}, 0
    for place, key in enumerate(keys):
        of_key = np.flatnonzero(kept[first : first + len(counts[place])])
        first += len(counts[place])
        edge_starts = relations[key].files.starts if relations else topology.edge_starts
        before = np.concatenate([edge_starts[part] + before for part, (before, _) in enumerate(runs[place])])
        cached[key] = _ranges(before[of_key], counts[place][of_key])
    return cached


def _runs_of(part: VertexPartData) -> tuple[Ids, Ids]:
    """Return the place of the first in-edge of each inner vertex of a part, and their number."""
    indptr = np.asarray(part.indptr[: part.num_inner + 1], np.int64)
    return indptr[:-1], np.diff(indptr)


def _row_bytes(partition: VertexPartition, key: EdgeKey) -> int:
    """Return the bytes of the features of an in-edge."""
    stored = of_relation(partition, key[1])[0].stored_type("edge_features")
    assert stored is not None
    return int(stored[0].itemsize * math.prod(stored[1]))


def _ranges(first: Ids, counts: Ids) -> Ids:
    """Return the numbers from each first one on, ``counts`` of them."""
    before = np.cumsum(counts) - counts
    return np.repeat(first - before, counts) + np.arange(counts.sum())


def with_edge_rows(sample: SampledArrays, topology: _core.Topology, num_records: int) -> SampledArrays:
    """Return the sample of a user's function with the rows of its in-edges, found by their ids, if it has these."""
    if getattr(sample, "edge_rows", None) is not None or sample.e_id is None:
        return sample
    counts = np.diff(sample.indptr)
    targets = np.repeat(sample.rows[: len(counts)], counts)
    edge_rows = topology.edge_rows_of(targets, sample.e_id, num_records)
    return Sample(**{**entries_of(sample), "edge_rows": edge_rows})
