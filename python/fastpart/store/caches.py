"""Lists of the rows that each part caches: vertices of other parts that its batches often need."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core.folders import inside, refuse_links
from ..core.outputs import Owner
from ..core.parameters import shown
from ..core.parsing import json_object, mapped
from ..errors import GraphFormatError
from ..partitions.part_files import MANIFEST
from ..partitions.partition import VertexPartition
from ..partitions.parts import part_name
from .manifest import facts_of, identity, manifest_bytes, read_manifest

FILE, RECORD = "cache_ids.npy", "cache.json"
"""The list of a part, in its folder, and what the lists are for, beside the manifest."""

_ANEW = "Write the caches anew with save_cache, or remove this file"

Ids = npt.NDArray[np.int64]


def write_caches(partition: VertexPartition, ids: Sequence[Ids], how: Mapping[str, Any]) -> None:
    """Write the vertices that each part holds, and how they were chosen. Without that record the lists do not count."""
    folder = partition.folder
    assert folder is not None
    files = {}
    for part, cached in enumerate(ids):
        content = io.BytesIO()
        np.save(content, np.sort(cached).astype(np.int64))
        files[f"{part_name(part)}/{FILE}"] = content.getvalue()
    told = {**how, "partition": identity(partition.manifest or {})}
    files[RECORD] = json.dumps(told, indent=1).encode()
    with Owner(folder, "partition"):
        refuse_links(folder, [MANIFEST, *files])
        (folder / RECORD).unlink(missing_ok=True)
        _list(folder, files)
        for name, content_of in files.items():  # the record is the last
            _core.write_file(folder / name, content_of)


def _list(folder: Path, files: Mapping[str, bytes]) -> None:
    """List files in the manifest before they are there: so they belong to the directory even if writing them fails."""
    manifest = read_manifest(folder)
    if "files" in manifest:
        new = {name: facts_of(len(content), _core.hash_bytes(content)) for name, content in files.items()}
        manifest["files"] = dict(sorted((manifest["files"] | new).items()))
        _core.write_file(folder / MANIFEST, manifest_bytes(manifest))


def has_caches(partition: VertexPartition) -> bool:
    """Return whether the directory has lists. Raise an error if they are those of another partition."""
    assert partition.folder is not None
    record = partition.folder / RECORD
    if not os.path.lexists(record):
        return False
    content = inside(partition.folder.resolve(), RECORD).read_bytes()
    of = json_object(record, content, {"partition": str}, _ANEW)["partition"]
    if of != identity(partition.manifest or {}):
        raise GraphFormatError(f"{shown(record)}: the caches are those of another partition. {_ANEW}")
    return True


def read_cache(partition: VertexPartition, index: int) -> Ids:
    """Return the vertices that a part holds, which ascend."""
    part = partition.parts[index]
    file = part._file(FILE)
    ids = mapped(file, "not the list of a cache")
    valid = ids.dtype == np.int64 and ids.ndim == 1 and bool(np.all(np.diff(ids) > 0))
    if valid and len(ids):
        valid = bool(ids[0] >= 0 and ids[-1] < len(partition) and not np.isin(ids, part.inner).any())
    if not valid:
        raise GraphFormatError(
            f"{shown(file)}: expected ascending ids of vertices of other parts. Write the caches anew with save_cache"
        )
    return np.asarray(ids)
