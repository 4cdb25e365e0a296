"""The settings that batch workers and compute machines read, as a file of the run."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ... import _core
from ...core.cache_size import CacheSize
from ...core.parsing import json_object
from ...loading.cached_rows import most_accessed_rows, refuse_large
from ...measures.ranking import Epoch
from ...partitions.part_files import RowType
from ...partitions.partition import VertexPartition
from ...partitions.seeds import seeds_of
from ...store import open_partition
from ..method_options import Order, Policy
from .cache import RowIds
from .graphs import Sampling
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
    """

    source: str
    fanouts: tuple[int, ...]
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

    def save(self, file: Path) -> None:
        """Write a file that only its owner can read, in a folder of the run."""
        _core.write_file(file, json.dumps(asdict(self)).encode())

    @classmethod
    def load(cls, file: Path) -> Settings:
        """Read what :meth:`save` wrote."""
        values = json_object(file, None, {"source": str, "fanouts": list[int], "token": str})
        return cls(**{**values, "fanouts": tuple(values["fanouts"])})


def cached_rows(cache: float | str, rows: int, parts: int, row_bytes: int) -> int:
    """Return how many of the rows of a graph a compute machine caches."""
    return min(CacheSize.of(cache).held(rows // parts, max(row_bytes, 1)), rows)


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
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        partition = open_partition(settings.source)
        assert isinstance(partition, VertexPartition)
        self.partition, self.topology = partition, partition._topology
        self._seeds = seeds_of("train", partition)
        self.schedule = Schedule(
            self._seeds,
            self.topology.starts,
            settings.batch_size,
            settings.seed,
            settings.order,
            settings.batch_workers,
            settings.hold,
        )
        row = partition.parts[0].stored_type("features")
        assert row is not None
        self.dtype, self.shape = row

    @cached_property
    def sampling(self) -> Sampling:
        """How batches are sampled."""
        settings, edges = self.settings, None
        if settings.edge_features:
            files = [part._file("edge_features.npy") for part in self.partition.parts]
            edges = _core.Features(files, self.topology, starts=self.topology.edge_starts)
        return Sampling(settings.fanouts, settings.sampling, settings.seed, edges)

    @property
    def edge_type(self) -> RowType | None:
        """Type and shape of the features of an in-edge in messages. None if they are not sent."""
        return self.partition.parts[0].stored_type("edge_features") if self.settings.edge_features else None

    @property
    def num_rows(self) -> int:
        """Number of rows of features."""
        return self.topology.num_vertices

    @property
    def row_bytes(self) -> int:
        """Bytes of the features of a vertex."""
        return self.dtype.itemsize * math.prod(self.shape)

    @cached_property
    def capacity(self) -> int:
        """Rows that fit the cache of a compute machine."""
        return cached_rows(self.settings.cache, self.num_rows, self.partition.k, self.row_bytes)

    def refuse_large_cache(self) -> None:
        """Raise an error unless the cache fits the memory."""
        refuse_large(self.capacity, self.row_bytes, _core.memory_budget())

    def most_accessed(self) -> RowIds:
        """Return the rows that the most batches have, as many as the cache holds. They ascend."""
        if not self.capacity:
            return np.empty(0, np.uint32)
        every = np.ones(self.partition.k, np.bool_)
        rows = np.arange(self.num_rows, dtype=np.uint32)
        epoch = Epoch(self._seeds.rows, self.settings.fanouts, self.settings.batch_size)
        return most_accessed_rows(self.topology, every, rows, self.capacity, epoch)
