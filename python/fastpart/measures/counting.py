"""The rows of other parts in the batches of an epoch, counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .. import _core
from ..core.cache_size import CacheSize
from ..core.options import RunOptions
from ..core.parameters import sized
from ..errors import MemoryBudgetError
from ..partitions.loader_options import EpochOptions
from ..partitions.partition import VertexPartition
from ..partitions.seeds import Seeds
from .accesses import SampledEpochs
from .ranking import Epoch, most_needed_of_others, rows_by_type
from .row_types import RowTypes, of_each_row


@dataclass(frozen=True)
class PartCount:
    """What was counted of a part, with the names of ``_core.PartTraffic``: by type, and by cache and type."""

    seeds: int
    rows: Sequence[float]
    remote: Sequence[float]
    cached: Sequence[Sequence[int]]
    saved: Sequence[Sequence[float]]


def counted(
    partition: VertexPartition,
    seeds: Seeds,
    epoch: Epoch,
    caches: Sequence[CacheSize],
    rows: RowTypes,
    seed: int,
    options: RunOptions,
) -> list[PartCount]:
    """Return the traffic of each part in epoch 0 of the loader of that seed, with one rank per part."""
    of_loader = EpochOptions(batch_size=epoch.batch_size, seed=seed, shuffle=True)
    threads = _threads(len(partition), options)
    sampled = SampledEpochs.of_seeds(partition, seeds, epoch.fanouts, partition.k, of_loader, threads)
    return [_counted(partition, part, sampled, epoch, caches, rows, options) for part in range(partition.k)]


def _counted(
    partition: VertexPartition,
    part: int,
    sampled: SampledEpochs,
    epoch: Epoch,
    caches: Sequence[CacheSize],
    rows: RowTypes,
    options: RunOptions,
) -> PartCount:
    topology = partition._topology
    starts = [topology.starts] if epoch.types is None else epoch.types.starts
    own_rows = [each[part : part + 2] for each in starts]
    is_kept = [np.zeros((len(caches), each[-1] if any(caches) else 0), np.bool_) for each in starts]
    if any(caches):
        scores = epoch.expected_steps(topology, np.arange(partition.k) == part, options)
        worth = rows.worth[0] if epoch.types is None else of_each_row(epoch.types, rows.worth)
        for index, cache in enumerate(caches):
            held = most_needed_of_others(topology, part, cache, scores, worth)
            for masks, kept in zip(is_kept, rows_by_type(epoch.types, held), strict=True):
                masks[index, kept] = True
    needed, remote = np.zeros((2, len(starts)), np.int64)
    saved, steps = np.zeros((len(caches), len(starts)), np.int64), len(sampled.deal)
    for step, of_types in enumerate(sampled.rows_of_types(0, part)):
        for number, (found, bounds, masks) in enumerate(zip(of_types, own_rows, is_kept, strict=True)):
            own = slice(*np.searchsorted(found, bounds))
            needed[number] += len(found)
            remote[number] += len(found) - (own.stop - own.start)
            if any(caches):
                saved[:, number] += np.count_nonzero(masks[:, found], axis=1)
        if options.progress is not None:
            options.progress("batches", part * steps + step + 1, partition.k * steps)
    count = int(np.count_nonzero(sampled.deal.ranks == part))
    cached = np.stack([np.count_nonzero(masks, axis=1) for masks in is_kept], axis=1)
    return PartCount(count, needed.tolist(), remote.tolist(), cached.tolist(), saved.tolist())


def _threads(n: int, options: RunOptions) -> int:
    """Return how many threads may sample: 4 bytes per vertex each, beside 1 of a mask."""
    budget = options.memory_limit or _core.memory_budget()
    fitting = (budget - n) // max(4 * n, 1)
    if fitting < 1:
        raise MemoryBudgetError(
            f"samples of {n:,} vertices need {sized(5 * n)}, but the memory limit is {sized(budget)}. Raise it"
        )
    return int(min(options.threads or _core.default_threads(), fitting))
