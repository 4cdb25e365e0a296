"""The settings that batch workers and compute machines read, as a file of the run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from operator import mul
from pathlib import Path

import numpy as np

from .... import _core
from ....core.cache_size import CacheSize
from ....core.parsing import json_object
from ....loading.cached_rows import most_accessed_rows, refuse_large
from ....measures.ranking import Epoch
from ....partitions.partition import VertexPartition
from ....partitions.seeds import seeds_of
from ....partitions.types import ONLY_TYPE, Fanouts
from ....store import open_partition
from ...method_options import Order, Policy
from .cache import CacheIndex, RowIds, cache_index
from .graphs import Sampling
from .groups import Layout
from .schedule import Schedule


@dataclass(frozen=True)
class Settings:
    """The settings of a run.

    Attributes
    ----------
    source : str
        The partition directory.
    fanouts, batch_size, sampling, seed
        As in :func:`fastpart.train.sampled`.
    order, hold, cache, policy, ahead, batch_workers, compute_workers
        As in :func:`fastpart.train.armada`.
    first, local_workers : int
        The first compute worker of a machine, and their number there.
    timeout : float
        Seconds that processes wait for each other.
    token : str
        A secret that identifies the processes of the run.
    edge_features : bool
        Whether features of in-edges are sent.
    target : str
        The type of the training vertices.
    """

    source: str
    fanouts: Fanouts
    batch_size: int
    sampling: str
    seed: int
    order: Order
    hold: int
    cache: float | str
    policy: Policy
    ahead: int
    batch_workers: int
    compute_workers: int
    first: int
    local_workers: int
    timeout: float
    token: str
    edge_features: bool = False
    target: str = ONLY_TYPE

    def save(self, file: Path) -> None:
        """Write a file that only its owner can read, in a folder of the run."""
        _core.write_file(file, json.dumps(asdict(self)).encode())

    @classmethod
    def load(cls, file: Path) -> Settings:
        """Read what :meth:`save` wrote."""
        return cls(**json_object(file, None, {"source": str, "fanouts": list, "token": str}))


def cached_rows(cache: float | str, rows: Sequence[int], parts: int, row_bytes: Sequence[int]) -> list[int]:
    """Return how many rows of each type a compute machine caches: the same share of all types that have features."""
    size, total = CacheSize.of(cache), sum(map(mul, rows, row_bytes))
    if size.bytes is None:
        held = [size.held(count // parts, 0) for count in rows]
    else:
        held = [size.bytes * count // max(total, 1) for count in rows]
    return [min(most, count) if each else 0 for most, count, each in zip(held, rows, row_bytes, strict=True)]


class Source:
    """The partition directory of a run.

    Attributes
    ----------
    settings : Settings
        The run.
    partition : VertexPartition
        The directory.
    topology : Topology
        The in-edges of all parts, mapped.
    schedule : Schedule
        The training vertices of every step.
    layout : Layout
        The arrays of messages.
    starts : list of numpy.ndarray
        First row of each part among those of a type, and their number, by type.
    num_rows : list of int
        Rows of each type.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        partition = open_partition(settings.source)
        assert isinstance(partition, VertexPartition)
        self.partition, self.topology = partition, partition._topology
        self._seeds = seeds_of("train", partition, settings.target or None)
        self.schedule = Schedule(
            self._seeds,
            self.topology.starts,
            settings.batch_size,
            settings.seed,
            settings.order,
            settings.batch_workers,
            settings.hold,
        )
        self.layout = Layout.of(partition, settings.edge_features)
        self.starts = partition._rows_by_type.starts
        self.num_rows = [int(starts[-1]) for starts in self.starts]

    @property
    def sampling(self) -> Sampling:
        """How batches are sampled."""
        settings = self.settings
        return Sampling(settings.fanouts, settings.sampling, settings.seed, settings.edge_features)

    @cached_property
    def capacities(self) -> list[int]:
        """Rows of each type that fit the cache of a compute machine."""
        return cached_rows(self.settings.cache, self.num_rows, self.partition.k, self.layout.row_bytes)

    def refuse_large_cache(self) -> None:
        """Raise an error unless the cache fits the memory."""
        needed = sum(map(mul, self.capacities, self.layout.row_bytes))
        refuse_large(sum(self.capacities), needed // max(sum(self.capacities), 1), _core.memory_budget())

    def indexes(self, worker: int) -> list[CacheIndex]:
        """Return the contents of the cache by type, as a batch worker tracks them."""
        policy, workers = self.settings.policy, self.settings.batch_workers
        fixed = self.most_accessed() if policy == "static" else [np.empty(0, np.uint32)] * len(self.num_rows)
        of_types = zip(self.capacities, fixed, self.num_rows, strict=True)
        return [
            cache_index(policy, capacity, rows, worker, workers, count) for capacity, rows, count in of_types
        ]

    def most_accessed(self) -> list[RowIds]:
        """Return the rows of each type that the most batches have, as many as the cache holds. They ascend."""
        types, of_type = self.partition._rows_by_type.locate(np.arange(sum(self.num_rows), dtype=np.uint32))
        every = np.ones(self.partition.k, np.bool_)
        epoch = Epoch(
            self._seeds.rows, self.settings.fanouts, self.settings.batch_size, self.partition._types
        )
        found = []
        for number, capacity in enumerate(self.capacities):
            rows = np.flatnonzero(types == number).astype(np.uint32) if capacity else np.empty(0, np.uint32)
            found.append(of_type[most_accessed_rows(self.topology, every, rows, capacity, epoch)])
        return found
