"""Rows of other parts that a part also stores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.parameters import integer, shown
from ..core.rows import Rows
from ..errors import ParameterError, arg
from ..partitions.parts import VertexPartData
from ..store.caches import has_caches, read_cache
from .by_id import scratch
from .common import Array, Source


class CachedRows:
    """The vertices that each part caches: those that are given, or those that the folder of the part lists."""

    def __init__(self, source: Source, given: Mapping[int, npt.ArrayLike] | None) -> None:
        self._partition = source.partition
        self._stored = "features" in source.manifest
        self._given: dict[int, Array] | None = None
        if given is None:
            return
        if not isinstance(given, Mapping):
            raise TypeError(f"cache_ids: expected a mapping of parts to vertices, got {type(given).__name__}")
        if given and not self._stored:
            raise ParameterError(
                f"cache_ids: {shown(source.path)} holds no features. Save it with {arg('features')}"
            )
        of = {integer("cache_ids: part", part, 0, self._partition.k - 1): ids for part, ids in given.items()}
        self._given = {part: self._checked(f"cache_ids[{part}]", ids) for part, ids in of.items()}

    def ids(self, part: VertexPartData) -> Array:
        """Return the vertices that a part caches, int64."""
        if self._given is not None:
            return self._given.get(part.index, np.empty(0, np.int64))
        if not self._stored or not has_caches(self._partition):
            return np.empty(0, np.int64)
        return read_cache(self._partition, part.index)

    def _checked(self, name: str, ids: npt.ArrayLike) -> Array:
        array = np.asarray(ids)
        if array.ndim != 1 or (array.dtype.kind not in "iu" and len(array)):
            raise ParameterError(
                f"{name}: expected a list of vertices, got {array.dtype} of shape {array.shape}"
            )
        last = len(self._partition) - 1
        if len(array) and not 0 <= array.min() <= array.max() <= last:
            raise ParameterError(f"{name}: expected vertices, 0..{last}, got {array.min()}..{array.max()}")
        if len(np.unique(array)) < len(array):
            raise ParameterError(f"{name}: a vertex is listed twice. Use numpy.unique(ids)")
        return array.astype(np.int64)

    def features(self, ids: Array, inside: Path) -> Array:
        """Return the features of vertices of any part, mapped from a nameless file in ``inside``."""
        first = _rows_of(self._partition.parts[0], ids[:0])
        rows = scratch(inside, len(ids), first.shape[1:], first.dtype)
        owners = self._partition.assignment[ids]
        for owner in np.unique(owners):
            those, start = np.flatnonzero(owners == owner), 0
            for some in _rows_of(self._partition.parts[int(owner)], ids[those]).chunks():
                rows[those[start : start + len(some)]] = some
                start += len(some)
        return rows


def _rows_of(part: VertexPartData, ids: Array) -> Rows:
    """Return the features of inner vertices of a part."""
    features: Any = part.features
    places = np.searchsorted(part.inner, ids)
    shape = (len(ids), *features.shape[1:])
    return Rows(shape, features.dtype, lambda start, stop: features[places[start:stop]])
