"""The rows of other parts in the batches of an epoch, counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .. import _core
from ..core.options import RunOptions
from ..core.parameters import sized
from ..errors import MemoryBudgetError
from ..partitions.loadable import LOADER_DEFAULTS, LoaderOptions
from ..partitions.partition import VertexPartition
from ..partitions.seeds import Seeds
from .accesses import SampledEpochs
from .ranking import Epoch, most_needed_of_others


@dataclass(frozen=True)
class PartCount:
    """What was counted of a part, with the names of ``_core.PartTraffic``."""

    seeds: int
    rows: float
    remote: float
    cached: Sequence[int]
    saved: Sequence[float]


def counted(
    partition: VertexPartition,
    seeds: Seeds,
    epoch: Epoch,
    caches: Sequence[float],
    seed: int,
    options: RunOptions,
) -> list[PartCount]:
    """Return the traffic of each part in epoch 0 of the loader of that seed, with one rank per part."""
    given: LoaderOptions = {
        **LOADER_DEFAULTS,
        "batch_size": epoch.batch_size,
        "seed": seed,
        "shuffle": True,
        "threads": _threads(len(partition), options),
    }
    sampled = SampledEpochs.of(partition, seeds.ids, epoch.fanouts, partition.k, given)
    return [_counted(partition, part, sampled, epoch, caches, options) for part in range(partition.k)]


def _counted(
    partition: VertexPartition,
    part: int,
    sampled: SampledEpochs,
    epoch: Epoch,
    caches: Sequence[float],
    options: RunOptions,
) -> PartCount:
    topology = partition._topology
    is_kept = np.zeros((len(caches), topology.num_vertices if any(caches) else 0), np.bool_)
    if any(caches):
        scores = epoch.expected_steps(topology, np.arange(partition.k) == part, options)
        for mask, share in zip(is_kept, caches, strict=True):
            mask[most_needed_of_others(topology, part, share, scores)] = True
    first, end = topology.starts[part : part + 2]
    needed, remote, saved, steps = 0, 0, np.zeros(len(caches), np.int64), len(sampled.deal)
    for step, rows in enumerate(sampled.rows(0, part)):
        own = slice(*np.searchsorted(rows, (first, end)))
        needed += len(rows)
        remote += len(rows) - (own.stop - own.start)
        if is_kept.size:
            saved += np.count_nonzero(is_kept[:, rows], axis=1)
        if options.progress is not None:
            options.progress("batches", part * steps + step + 1, partition.k * steps)
    count = int(np.count_nonzero(sampled.deal.ranks == part))
    return PartCount(count, needed, remote, np.count_nonzero(is_kept, axis=1).tolist(), saved.tolist())


def _threads(n: int, options: RunOptions) -> int:
    """Return how many threads may sample: 4 bytes per vertex each, beside 1 of a mask."""
    budget = options.memory_limit or _core.memory_budget()
    fitting = (budget - n) // max(4 * n, 1)
    if fitting < 1:
        raise MemoryBudgetError(
            f"samples of {n:,} vertices need {sized(5 * n)}, but the memory limit is {sized(budget)}. Raise it"
        )
    return int(min(options.threads or _core.default_threads(), fitting))
