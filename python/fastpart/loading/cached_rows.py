"""The rows of other parts that a part caches: those that its batches will need most often."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core.cache_size import CacheSize
from ..core.parameters import CacheCriterion
from ..errors import MemoryBudgetError, arg
from ..measures.accesses import Epoch, largest, most_needed_of_others
from ..measures.sampling_plan import bytes_of_rows, stored_bytes
from ..partitions.loader_options import Fanouts, FetchingOptions, LoaderOptions
from ..partitions.partition import VertexPartition
from ..partitions.seeds import owner_of, seeds_of
from ..partitions.types import fanouts_of
from ..store.caches import has_caches, read_cache, write_caches

RowIds = npt.NDArray[np.uint32]


def save_cache(
    partition: VertexPartition, fanouts: Fanouts, input: str | None, options: LoaderOptions
) -> None:
    """List the rows that each part caches, as :meth:`fastpart.VertexPartition.save_cache` documents."""
    held, cache_by, size = options.cache, options.cache_by, options.batch_size
    assert held is not None
    partition.refuse_without_edges()
    epoch = _epoch_of(partition, fanouts, size, input)
    ids = [
        partition._topology.ids_of(rows_to_cache(partition, part, held, cache_by, epoch))
        for part in range(partition.k)
    ]
    hops = [list(hop) if isinstance(hop, Sequence) else hop for hop in epoch.fanouts]
    write_caches(partition, ids, {"cache": held.given, "hot": cache_by, "fanouts": hops, "batch_size": size})


def _epoch_of(partition: VertexPartition, fanouts: Fanouts, size: int, input: str | None) -> Epoch:
    """Return an epoch over the training vertices."""
    seeds = seeds_of("train", partition, input)
    return Epoch(seeds.rows, fanouts_of(fanouts, partition), size, partition._types)


def cached_rows_of(
    partition: VertexPartition,
    own: npt.NDArray[np.bool_],
    options: FetchingOptions,
    epoch: Epoch,
) -> RowIds:
    """Return the rows of other ranks that a rank caches. They ascend.

    Parameters
    ----------
    partition : VertexPartition
        The parts.
    own : numpy.ndarray
        Mask of the parts of the rank.
    options : FetchingOptions
        ``cache`` says how many rows each part caches, and ``cache_by`` which. Without a ``cache``, they are those that
        the directory lists, if it does.
    epoch : Epoch
        The seeds and the sampling of an epoch.
    """
    parts, topology = np.flatnonzero(own).tolist(), partition._topology
    cache, by = options.cache, options.cache_by
    if cache is None:
        if not has_caches(partition):
            return np.empty(0, np.uint32)
        lists = [topology.rows_of(read_cache(partition, part)) for part in parts]
    else:
        lists = [rows_to_cache(partition, part, cache, by, epoch) for part in parts] if cache else []
    rows = np.unique(np.concatenate([np.empty(0, np.uint32), *lists]))
    return rows[~own[owner_of(rows, topology.starts)]]


def rows_to_cache(
    partition: VertexPartition, part: int, cache: CacheSize, cache_by: CacheCriterion, epoch: Epoch
) -> RowIds:
    """Return the rows of other parts with the highest scores that a cache of the part holds, or its whole first hop.

    Rows of several types are ranked by their scores times their bytes.
    """
    topology, scores = partition._topology, _scores(partition, part, cache_by, epoch)
    if cache.bytes and not stored_bytes(partition):
        cache.refuse_unsized(
            f"Save the partition with {arg('features')}, or pass a share of the rows of a part"
        )
    held = None if cache_by == "halo" else cache
    return most_needed_of_others(topology, part, held, scores, bytes_of_rows(partition))


def most_accessed_rows(
    topology: _core.Topology, own: npt.NDArray[np.bool_], rows: RowIds, count: int, epoch: Epoch
) -> RowIds:
    """Return so many of the rows, those in the most batches of the parts of a rank. They ascend."""
    if count >= len(rows):
        return rows
    return largest(rows, epoch.expected_steps(topology, own), count)


def _scores(
    partition: VertexPartition, part: int, cache_by: CacheCriterion, epoch: Epoch
) -> npt.NDArray[np.float32]:
    """Return the score of each row. Rows with higher scores are cached first."""
    topology = partition._topology
    n, starts = topology.num_vertices, topology.starts
    if cache_by == "access":
        return epoch.expected_steps(topology, np.arange(partition.k) == part)
    if cache_by == "degree":
        return topology.degrees_of(np.arange(n, dtype=np.uint32)).astype(np.float32)
    data = partition.parts[part]
    links = np.bincount(data.indices[: data.indptr[data.num_inner]], minlength=len(data.vertices))[
        data.num_inner :
    ]
    score = np.zeros(n, np.float32)
    score[starts[data.halo_parts] + data.halo_rows] = links
    return score


def refuse_large(rows: int, row_bytes: int, budget: int) -> None:
    """Raise an error unless so many rows fit the memory."""
    if rows * row_bytes > budget:
        raise MemoryBudgetError(
            f"cache: {rows:,} rows need {rows * row_bytes:,} bytes, but the memory limit leaves {budget:,}. Use a "
            "smaller share"
        )
