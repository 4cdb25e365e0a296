"""Files of a partition directory that an updated partition has as they are."""

from __future__ import annotations

import os
from filecmp import clear_cache, cmp
from pathlib import Path

from ..core.folders import below, leads_out
from ..core.parsing import named
from ..partitions.partition import Partition
from ..partitions.parts import PART, part_name

_NUMBERS = {"edge_ids.npy", "edge_reverse.npy", "halo_rows.npy"}
"""Files with numbers that records and vertices have elsewhere: in the list of records, in other parts."""


def keep_unchanged(inside: Path, target: Path, partition: Partition) -> list[int]:
    """Link the files of ``target`` that ``inside`` has with the same content, and return the parts that differ.

    Ids of records do not count: those of the second directions of edges grow with the number of records. Nor do the
    rows of the halo: they shift where a vertex enters or leaves another part.
    A file that is kept has its old inode and time of change, so a copy of the directory is updated without it.
    """
    clear_cache()
    return [
        part
        for part, old in enumerate(partition.parameters["old_parts"])
        if not _keep(inside / part_name(part), None if old is None else target / part_name(old))
    ]


def _keep(new: Path, old: Path | None) -> bool:
    """Link the equal files of the folder of a part. Return whether nothing but numbers differs."""
    names = set(below(new))
    if old is None or not (old / PART).is_file():
        return False
    kept = {name for name in names if not leads_out(old / name, old.parent) and _link(old / name, new / name)}
    return names - _NUMBERS == set(below(old)) - _NUMBERS and names - kept <= _NUMBERS


def _link(old: Path, new: Path) -> bool:
    """Put a link to the old file in the place of the new one, if they are equal. Return whether they are."""
    with named(old):
        if old.is_symlink() or not old.is_file() or not cmp(old, new, shallow=False):
            return False
    link = new.with_name(f".{new.name}.kept")
    try:
        os.link(old, link)
    except OSError:  # the file system has no links: the new file is as good
        return True
    os.replace(link, new)
    return True
