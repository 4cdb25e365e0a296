"""The parts of a vertex partition in folders, written by tasks.

A task writes a group of parts into a folder of its own, with a list of all files there, and renames it. The caller
then takes the files over by hard links, or by copies if the output lies on another file system. So what was written
stays in the job until the caller has finished. There are as many groups as the engine has workers, since each task
reads all records. A part has the same bytes in any group.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core.folders import inside, within
from ..core.options import RunOptions
from ..core.parameters import shown
from ..core.parsing import Count, PathBelow, damaged, json_object, mapped
from ..errors import GraphFormatError
from ..graphs.graph import Graph
from .job import ANEW, Job, name_of, read_checked, source_of, write_checked
from .partitioning import Place

_LISTED = "files.bin"
"""What a group holds: the sizes of its parts, and size and xxh3-128 of each of its files."""

Hashes = dict[str, tuple[int, str]]
"""Size and xxh3-128 of files, by their paths below a folder."""


class WrittenParts:
    """The parts of a vertex partition, as tasks write them.

    Parameters
    ----------
    place : Place
        Where the tasks run.
    graph : Graph
        The graph.
    assignment : numpy.ndarray
        int32, length n: the part of each vertex.
    k : int
        Number of parts.
    halo_hops : int
        As in :meth:`fastpart.VertexPartition.save`.
    """

    def __init__(
        self, place: Place, graph: Graph, assignment: npt.NDArray[np.int32], k: int, halo_hops: int
    ) -> None:
        known = {"graph": source_of(graph), "assignment": name_of(assignment), "k": k, "halo_hops": halo_hops}
        self._engine, self._graph = place.engine, graph
        self._job = Job(place.shared, {"parts": known, "version": _core.__version__})
        self._assignment, self._k, self._halo_hops = assignment, k, halo_hops

    def write(self, into: Path, options: RunOptions) -> tuple[list[dict[str, Any]], Hashes]:
        """Write the folders of all parts. Return what ``part.json`` says of each, and facts about all files."""
        folder = self._job.path
        assignment = folder / "assignment.npy"
        _core.write_npy(assignment, self._assignment, options)
        names = {f"parts-{first}-{end}": (first, end) for first, end in self._groups()}
        for name in names:
            if not _is_whole(folder / name):
                shutil.rmtree(folder / name, ignore_errors=True)
        quiet = replace(options, progress=None)
        given = (self._graph, assignment, self._k, self._halo_hops, quiet)
        files = {f"{name}/{_LISTED}": (*given, parts) for name, parts in names.items()}
        sizes: list[dict[str, Any]] = []
        facts: Hashes = {}
        for path in self._job.stage(self._engine, "parts", files, write_group):
            content = _listed(path)
            sizes += content["sizes"]
            facts |= {name: (size, xxh3) for name, (size, xxh3) in content["files"].items()}
            where = f"folder of {shown(path)}, which lists it"
            for name in content["files"]:
                _take(inside(path.parent, name, where), within(into, name, where))
        if len(sizes) != self._k:
            raise GraphFormatError(
                f"{shown(folder)}: lists of {len(sizes)} parts, expected {self._k}. {ANEW}"
            )
        return sizes, facts

    def close(self) -> None:
        """Let other commands go on with what the tasks wrote."""
        self._job.close()

    def remove(self) -> None:
        """Remove what the tasks wrote, once it has been taken over."""
        self._job.remove()
        self.close()

    def _groups(self) -> list[tuple[int, int]]:
        """Return the parts of each group. A job that goes on with other workers keeps its groups."""
        table = self._job.path / "groups.bin"
        if not table.is_file():
            count = min(self._engine.workers, self._k)
            cuts = [self._k * i // count for i in range(count + 1)]
            write_checked(table, json.dumps({"cuts": cuts}).encode())
        cuts = json_object(table, read_checked(table), {"cuts": list[Count]}, ANEW)["cuts"]
        with damaged(table, f"the field 'cuts' is not what fastpart wrote. {ANEW}"):
            if cuts != sorted(cuts) or (cuts[0], cuts[-1]) != (0, self._k):
                raise ValueError(f"expected numbers from 0 to {self._k}")
        return list(pairwise(cuts))


def write_group(
    graph: Graph,
    assignment: Path,
    k: int,
    halo_hops: int,
    options: RunOptions,
    parts: tuple[int, int],
    into: Path,
) -> None:
    """Write the parts in a range, and the list ``into`` beside them. Their folder appears as a whole."""
    folder = into.parent
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as made:
        new = Path(made) / folder.name
        new.mkdir()
        sizes = _core.write_vertex_parts(
            graph._source,
            mapped(assignment),
            k,
            directedness=graph.directedness,
            relations=graph._directions,
            halo_hops=halo_hops,
            into=new,
            options=options,
            parts=parts,
        )
        graph.check_unchanged()
        files = sorted(file for file in new.rglob("*") if file.is_file())
        facts = _core.hash_files(files, options)
        names = [file.relative_to(new).as_posix() for file in files]
        content = {"sizes": sizes, "files": dict(zip(names, facts, strict=True))}
        write_checked(new / into.name, json.dumps(content).encode())
        try:
            new.rename(folder)
        except OSError:
            if not _is_whole(folder):  # the same task did not run twice
                raise


def _listed(file: Path) -> dict[str, Any]:
    """Return the list of a group: the sizes of its parts, and size and checksum of each file."""
    return json_object(file, read_checked(file), _FIELDS, ANEW)


_FIELDS = {"sizes": list[dict[str, Any]], "files": dict[PathBelow, tuple[Count, str]]}


def _is_whole(group: Path) -> bool:
    """Return whether a folder has all files of its list, with their sizes."""
    try:
        files = _listed(group / _LISTED)["files"]
        return all((group / name).stat().st_size == size for name, (size, _) in files.items())
    except (OSError, GraphFormatError):
        return False


def _take(file: Path, target: Path) -> None:
    """Take a file over. It stays where it is, too."""
    target.parent.mkdir(exist_ok=True)
    take: Callable[[Path, Path], Any]
    for take in (os.link, shutil.copyfile):
        try:
            take(file, target)
            return
        except OSError:
            if take is shutil.copyfile:
                raise
