"""Pairs of vertices as numbers, pseudorandom numbers of them, distinct numbers, and which are among others."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint64]


def keys_of(sources: npt.NDArray[Any], targets: npt.NDArray[Any]) -> Keys:
    """Return one number per pair. Different pairs of ids below 2**32 have different numbers."""
    return (sources.astype(np.uint64) << np.uint64(32)) | targets.astype(np.uint64)


def undirected_keys(sources: npt.NDArray[Any], targets: npt.NDArray[Any]) -> Keys:
    """Return one number per pair. A pair and its reverse have the same number."""
    return keys_of(np.minimum(sources, targets), np.maximum(sources, targets))


def mixed(x: Any) -> Any:
    """Return pseudorandom numbers, by SplitMix64. Different numbers have different results."""
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def hashed(keys: Keys, count: int, *of: int) -> Keys:
    """Return ``count`` pseudorandom numbers for each key, of shape (keys, count). They also depend on ``of``."""
    state = np.uint64(0)
    for each in of:
        state = mixed(state ^ np.uint64(each))
    return mixed(mixed(keys ^ state)[:, None] + np.arange(count, dtype=np.uint64))  # type: ignore[no-any-return]


def distinct(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the distinct values, which ascend. ``np.unique`` hashes, and takes 40 times as long as this sort."""
    ordered = np.sort(values)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def among(values: npt.NDArray[Any], keys: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which values are among the keys, which ascend."""
    return located(values, keys)[0]


def located(
    values: npt.NDArray[Any], keys: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Return which values are among the keys, which ascend, and the places of those. Others have any place."""
    places = np.searchsorted(keys, values)
    if not len(keys):
        return np.zeros(len(values), np.bool_), places
    places[places == len(keys)] = 0
    return keys[places] == values, places
