"""Which rows of other parts are worth holding: those that the batches of a part will need most often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core import parameters
from ..errors import MemoryBudgetError
from ..partitions.partition import VertexPartition
from ..store.caches import has_caches, read_cache, write_caches
from .seeds import owner_of, seeds_of

Hot = Literal["access", "degree", "links", "halo"]
HOT: tuple[Hot, ...] = get_args(Hot)

RowIds = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Epoch:
    """What the batches of an epoch begin with.

    Attributes
    ----------
    seeds : numpy.ndarray
        uint32: rows of all seeds.
    fanouts : sequence of int
        In-edges per vertex in each hop.
    batch_size : int
        Seeds of a step.
    """

    seeds: RowIds
    fanouts: Sequence[int]
    batch_size: int


def save_cache(
    partition: VertexPartition, cache: float, *, fanouts: Sequence[int], batch_size: int, hot: Hot
) -> None:
    """List the hot rows of each part, as :meth:`fastpart.VertexPartition.save_cache` documents."""
    share = checked(cache, hot)
    assert share is not None
    hops, size = parameters.fanouts_of(fanouts), parameters.integer("batch_size", batch_size, 1, 2**31 - 1)
    parts, manifest = partition.parts, partition.manifest or {}
    partition.refuse_without_edges()
    seeds = seeds_of("train", parts, partition._topology, manifest.get("splits", []))
    epoch = Epoch(seeds.rows, hops, size)
    ids = [
        partition._topology.ids_of(hot_rows(partition, part, share, hot, epoch))
        for part in range(partition.k)
    ]
    write_caches(partition, ids, {"cache": share, "hot": hot, "fanouts": list(hops), "batch_size": size})


def checked(cache: float | None, hot: Hot) -> float | None:
    """Check both parameters, and return the share."""
    parameters.choice("hot", hot, HOT)
    return None if cache is None else parameters.share_or_none("cache", cache)


def held_by(
    partition: VertexPartition, own: npt.NDArray[np.bool_], cache: float | None, hot: Hot, epoch: Epoch
) -> RowIds:
    """Return the rows that a rank holds of the parts of others, which ascend.

    Parameters
    ----------
    partition : VertexPartition
        The parts.
    own : numpy.ndarray
        Mask of the parts of the rank.
    cache : float or None
        How many rows each part holds, as a share of its own. None: those that the directory lists, if it does.
    hot : {"access", "degree", "links", "halo"}
        How they are chosen.
    epoch : Epoch
        What the batches begin with.
    """
    parts, topology = np.flatnonzero(own).tolist(), partition._topology
    if cache is None:
        if not has_caches(partition):
            return np.empty(0, np.uint32)
        lists = [topology.rows_of(read_cache(partition, part)) for part in parts]
    else:
        lists = [hot_rows(partition, part, cache, hot, epoch) for part in parts] if cache else []
    rows = np.unique(np.concatenate([np.empty(0, np.uint32), *lists]))
    return rows[~own[owner_of(rows, topology.starts)]]


def hot_rows(partition: VertexPartition, part: int, share: float, hot: Hot, epoch: Epoch) -> RowIds:
    """Return the hottest rows of other parts: so many as a share of the rows of the part, or its whole first hop."""
    starts = partition._topology.starts
    first, end = int(starts[part]), int(starts[part + 1])
    heat = _heat(partition, part, hot, epoch)
    found = np.flatnonzero(heat > 0)
    found = found[(found < first) | (found >= end)]
    count = len(found) if hot == "halo" else min(int(share * (end - first)), len(found))
    return _largest(found, heat, count)


def own_rows(starts: npt.NDArray[np.int64], own: npt.NDArray[np.bool_]) -> RowIds:
    """Return the rows of some parts, which ascend."""
    rows = [np.arange(starts[part], starts[part + 1], dtype=np.uint32) for part in np.flatnonzero(own)]
    return np.concatenate([np.empty(0, np.uint32), *rows])


def hottest(
    topology: _core.Topology, own: npt.NDArray[np.bool_], rows: RowIds, count: int, epoch: Epoch
) -> RowIds:
    """Return so many of the rows, those in the most batches of the parts of a rank. They ascend."""
    if count >= len(rows):
        return rows
    mine = epoch.seeds[own[owner_of(epoch.seeds, topology.starts)]]
    heat = topology.accesses(mine, epoch.fanouts, num_seeds=len(epoch.seeds), batch_size=epoch.batch_size)
    return _largest(rows, heat, count)


def _largest(rows: npt.NDArray[Any], heat: npt.NDArray[np.float32], count: int) -> RowIds:
    """Return so many of the hottest rows. They ascend."""
    # Equal rows are told apart by their number, so that the choice is the same everywhere.
    order = np.lexsort((rows, -heat[rows]))[:count]
    return np.sort(rows[order]).astype(np.uint32)


def _heat(partition: VertexPartition, part: int, hot: Hot, epoch: Epoch) -> npt.NDArray[np.float32]:
    """Return a number for each row, the larger the hotter."""
    topology = partition._topology
    n, starts = topology.num_vertices, topology.starts
    if hot == "access":
        mine = epoch.seeds[owner_of(epoch.seeds, starts) == part]
        return topology.accesses(mine, epoch.fanouts, num_seeds=len(epoch.seeds), batch_size=epoch.batch_size)
    if hot == "degree":
        return topology.degrees_of(np.arange(n, dtype=np.uint32)).astype(np.float32)
    data = partition.parts[part]
    links = np.bincount(data.indices[: data.indptr[data.num_inner]], minlength=len(data.vertices))[
        data.num_inner :
    ]
    heat = np.zeros(n, np.float32)
    heat[starts[data.halo_parts] + data.halo_rows] = links
    return heat


def refuse_large(rows: int, row_bytes: int, budget: int) -> None:
    """Raise an error unless so many rows fit the memory."""
    if rows * row_bytes > budget:
        raise MemoryBudgetError(
            f"cache: {rows:,} rows need {rows * row_bytes:,} bytes, but the memory limit leaves {budget:,}. Use a "
            "smaller share"
        )
