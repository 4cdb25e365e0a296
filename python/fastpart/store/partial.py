"""``OUT.partial``: what a command has found is on disk before it tries anything else.

Hours of work end in a partition, or in the rows of a comparison. What follows may fail: the disk is full, memory is
short, somebody presses Ctrl-C. So a command keeps its result in a folder beside its output and removes that folder when
the output is complete. The folder appears by one rename. Its marker, a JSON file, says whose it is and lists its files.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from .. import _core
from ..core.folders import content_of, refuse_links
from ..core.notes import log
from ..core.options import RunOptions
from ..core.outputs import new_folder
from ..core.parameters import shown
from ..errors import FastpartError, ParameterError
from ..graphs.graph import Graph
from ..graphs.sidecars import beside
from ..partitions.part_files import MANIFEST
from ..partitions.partition import Partition
from .directory import identity
from .loading import open_partition
from .manifest import Listing, as_json, manifest_bytes
from .schemas import SCHEMA

_ASSIGNMENT = "assignment.npy"
_KEY = "partial"
"""The entry of a marker that tells a kept result from a complete one."""


class Partial:
    """The folder ``OUT.partial`` of an output.

    ``files`` are the names of its files beside the marker. Nothing else in the folder is ever touched.
    """

    def __init__(self, out: Path, marker: str, files: tuple[str, ...] = ()) -> None:
        named = out if out.name.strip(".") else Path(os.path.abspath(out))
        self.folder = beside(named, "partial")
        self.marker, self.files = marker, files
        self.kept = False
        """Whether the folder holds the result of this command."""

    def found(self) -> dict[str, Any] | None:
        """Return the marker of an earlier command, or None if there is none. Refuse a folder that is not ours."""
        if not os.path.lexists(self.folder):
            return None
        if self.folder.is_dir() and not self.folder.is_symlink():
            refuse_links(self.folder, [*self.files, self.marker])
            content = content_of(self.folder / self.marker)
            if _KEY in content:
                # A command that was killed while it removed the folder leaves the marker for last.
                return content if all((self.folder / name).is_file() for name in self.files) else None
            if not any(self.folder.iterdir()):
                return None
        raise FileExistsError(
            errno.EEXIST,
            "exists and is not a result that fastpart has kept. Rename it, or choose another name for the output",
            str(self.folder),
        )

    def write(
        self, content: Mapping[str, Any], about: object, fill: Callable[[Path], None] = lambda _: None
    ) -> None:
        """Put the marker in place, and the files that ``fill`` writes. A folder that cannot be written is a note."""
        try:
            with new_folder(self.folder, [self.marker, *self.files]) as inside:
                fill(inside)
                listing = Listing(inside, RunOptions())
                listing.add(self.files)
                marker = {"fastpart": _core.__version__, **content, "files": listing.files, _KEY: about}
                (inside / self.marker).write_bytes(manifest_bytes(marker))
            self.kept = True
        except (OSError, FastpartError) as error:  # the output itself may fit all the same
            log.warning(
                "%s cannot be written: %s. A failure would lose the result", shown(self.folder), error
            )

    def remove(self) -> None:
        """Remove the files, and the folder if it is empty then."""
        try:
            for name in (*self.files, self.marker):
                (self.folder / name).unlink(missing_ok=True)
            if self.folder.is_dir() and not any(self.folder.iterdir()):
                self.folder.rmdir()
        except OSError as error:
            log.warning("%s is no longer needed, but cannot be removed: %s", shown(self.folder), error)

    def named(self, how: str) -> AbstractContextManager[None]:
        """Add to every error in the block where the result is kept, if it is, and how to go on."""
        return noting(lambda: f"The result is kept in {shown(self.folder)}. {how}" if self.kept else "")


@contextmanager
def noting(note: Callable[[], str]) -> Iterator[None]:
    """Add a note to every error in the block, Ctrl-C included."""
    try:
        yield
    except BaseException as error:
        if text := note():
            error.add_note(text)
        raise


def of_partition(out: Path) -> Partial:
    """Return the folder for a partition: a partition directory without parts, which :func:`open_partition` reads."""
    return Partial(out, MANIFEST, (_ASSIGNMENT,))


def keep_partition(
    partial: Partial, partition: Partition, asked: Mapping[str, Any], options: RunOptions
) -> None:
    """Keep a partition, with what was asked for."""
    partial.write(
        {"schema": SCHEMA, **identity(partition)},
        {"asked": asked, "costs": partition.costs},
        lambda inside: _core.write_npy(inside / _ASSIGNMENT, partition.assignment, options),
    )


def resume_partition(
    partial: Partial, asked: Mapping[str, Any], graph: Graph, options: RunOptions
) -> Partition | None:
    """Return the kept partition, if there is one. Refuse one of another graph or of other parameters."""
    found = partial.found()
    if found is None:
        return None
    about = _object(found[_KEY])
    earlier = _object(about.get("asked"))
    now = json.loads(as_json(dict(asked)))
    changed = [
        f"{name} was {earlier.get(name)!r} and is {now.get(name)!r}"
        for name in {**earlier, **now}
        if earlier.get(name) != now.get(name)
    ]
    if changed:
        raise ParameterError(
            f"--resume: the partition in {shown(partial.folder)} was made otherwise: {', '.join(changed)}. Give the "
            "same options, or --overwrite instead of --resume to begin anew"
        )
    partition: Partition = open_partition(partial.folder, graph, **vars(options))
    partition.folder = partition.manifest = None  # it is as if it had just been found
    partition.costs = about.get("costs")
    partial.kept = True
    return partition


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
