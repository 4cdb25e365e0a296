"""Seeds with times, for samples that do not look ahead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ParameterError, arg
from ..graphs.splits import NO_TIME
from .loader_options import TemporalOptions
from .partition import VertexPartition
from .seeds import Seeds, seeds_of

Ids = npt.NDArray[np.int64]


def loaded_seeds(
    vertices: Any, partition: VertexPartition, options: TemporalOptions, input: str | None = None
) -> Seeds:
    """Return the seeds of a loader, given its options. If its samples are temporal, they have times.

    These are the times that the user gives, or those of the directory.
    """
    seeds = seeds_of(vertices, partition, input, options.input_time is not None)
    times = given_times_of(options)
    if options.temporal is None:
        return seeds
    if times is None:
        return replace(seeds, times=_own_times(seeds, partition))
    if isinstance(vertices, str):
        raise ParameterError(
            f"input_time: the order of the vertices of {vertices!r} is not yours. Pass their ids, a time for each"
        )
    refuse_other_times(seeds.ids, times, "vertices")
    return replace(seeds, times=times)


def given_times_of(options: TemporalOptions) -> Ids | None:
    """Return the times that the user gives to seeds, checked. They need temporal samples."""
    times = options.input_time
    if times is None:
        return None
    if options.temporal is None:
        raise ParameterError(
            f"input_time: only temporal samples take times of seeds. Pass {arg('temporal', 'uniform')}"
        )
    array = np.asarray(times)
    if array.ndim != 1 or not np.can_cast(array.dtype, np.int64) or array.dtype == np.bool_:
        raise TypeError(
            f"input_time: expected one whole number per seed, as int64, got {array.dtype} of shape {array.shape}"
        )
    return np.ascontiguousarray(array, np.int64)


def refuse_other_times(items: Ids, times: Ids, name: str) -> None:
    """Raise an error unless each item has a time of the user, and none is there twice with the same."""
    if len(times) != len(items):
        raise ParameterError(f"input_time: {len(times)} times for {len(items)} {name}")
    if (missing := np.flatnonzero(times == NO_TIME)).size:
        raise ParameterError(f"input_time: item {missing[0]} is {NO_TIME}, which stands for no time")
    order = np.lexsort((times, items))
    again = np.flatnonzero((np.diff(items[order]) == 0) & (np.diff(times[order]) == 0))
    if again.size:
        raise ParameterError(
            f"{name}: item {order[again[0] + 1]} occurs more than once with the time {times[order[again[0]]]}"
        )


def _own_times(seeds: Seeds, partition: VertexPartition) -> Ids:
    """Return the times that the directory has of seeds."""
    times = partition._times.of_rows(seeds.rows)
    missing = np.flatnonzero(times == NO_TIME)
    if missing.size:
        raise ParameterError(
            f"temporal: {len(missing)} of {len(times)} seeds have no time, the first is vertex "
            f"{seeds.ids[missing[0]]}. Save the partition with {arg('times')}, leave such vertices out, or pass "
            "ids with "
            f"{arg('input_time')}"
        )
    return times
