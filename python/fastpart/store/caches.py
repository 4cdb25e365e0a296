"""Lists of the hot rows of each part in a partition directory: vertices of other parts that its batches need often."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import GraphFormatError
from ..parameters import shown
from ..parsing import damaged
from ..partitions import VertexPartition

FILE, RECORD = "cache_ids.npy", "cache.json"
"""The list of a part, in its folder, and what the lists are for, beside the manifest."""

Ids = npt.NDArray[np.int64]

_ELSEWHERE = ("input", "fastpart", "schema")
"""Entries of the manifest that may differ between copies of a directory."""


def identity(manifest: Mapping[str, Any]) -> str:
    """Return a hash of what copies of a directory have in common."""
    known = {name: value for name, value in manifest.items() if name not in _ELSEWHERE}
    return hashlib.blake2b(json.dumps(known, sort_keys=True).encode(), digest_size=16).hexdigest()


def write_caches(partition: VertexPartition, ids: Sequence[Ids], how: Mapping[str, Any]) -> None:
    """Write the vertices that each part holds, and how they were chosen. Without that record the lists do not count."""
    assert partition.folder is not None
    record = partition.folder / RECORD
    record.unlink(missing_ok=True)
    for part, held in zip(partition.parts, ids, strict=True):
        content = io.BytesIO()
        np.save(content, np.sort(held).astype(np.int64))
        _core.write_file(part.folder / FILE, content.getvalue())
    told = {**how, "partition": identity(partition.manifest or {})}
    _core.write_file(record, json.dumps(told, indent=1).encode())


def has_caches(partition: VertexPartition) -> bool:
    """Return whether the directory has lists. Raise an error if they are those of another partition."""
    assert partition.folder is not None
    record = partition.folder / RECORD
    if not record.exists():
        return False
    with damaged(record, "not what save_cache wrote"):
        of = json.loads(record.read_text())["partition"]
    if of != identity(partition.manifest or {}):
        raise GraphFormatError(
            f"{shown(record)}: the caches are those of another partition. Write them anew with save_cache, or remove "
            "this file"
        )
    return True


def read_cache(partition: VertexPartition, index: int) -> Ids:
    """Return the vertices that a part holds, which ascend."""
    part = partition.parts[index]
    file = part.folder / FILE
    with damaged(file, "not the list of a cache"):
        ids = np.load(file)
    valid = ids.dtype == np.int64 and ids.ndim == 1 and np.all(np.diff(ids) > 0)
    if valid and len(ids):
        valid = ids[0] >= 0 and ids[-1] < len(partition) and not np.isin(ids, part.inner).any()
    if not valid:
        raise GraphFormatError(
            f"{shown(file)}: expected ascending ids of vertices of other parts. Write the caches anew with save_cache"
        )
    return np.asarray(ids)
