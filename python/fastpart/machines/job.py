"""A job: the folder that all machines see, with a file for everything that is done.

A task writes its file under another name and renames it, so a file is there as a whole or not at all, and a task that
runs twice does no harm. The files have checksums inside, which whoever reads them compares. When all files of a stage
are there, a manifest lists them with their sizes and xxh3-128, and the next run of the same job goes on behind it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np

from .. import _core
from ..core.folders import OwnFolder
from ..core.options import RunOptions
from ..core.outputs import Owner
from ..core.parameters import regular, shown
from ..core.parsing import Count, checked_object, conform, json_object
from ..core.system import ends_of
from ..errors import GraphFormatError, ParameterError
from ..graphs.graph import Graph
from .engine import Engine

_MARKER = "job.json"
_FILES = "|".join(
    (
        r"(counts|scattered|shards|parts)\.json",
        r"(counts|scattered|shard)-\d+\.bin",
        r"(pieces|groups|cut|components)\.bin",
        r"halo-\d+-\d+\.bin",
        r"assignment\.npy",
        r"(lists-\d+|spill)-\d+\.bin",
        r"steps/checkpoint(-(clusters|lists|parts)-\d+\.bin|\.txt|\.lock)",
        r"(\.parts-\d+-\d+-[^/]+/)?parts-\d+-\d+/(files\.bin|part-\d+/(.+/)?[^/]+\.(npy|json))",
    )
)
"""What the stages of all jobs write there. A group of parts lies in a temporary folder until it is whole."""
_DIGITS = 32
"""Digits of an xxh3-128."""
ANEW = "Remove it, and run again: it is made anew"
"""What helps if a file of a job is damaged."""
_IN_MEMORY = 1 << 21
"""Records that a graph in memory may have: each task gets a copy of them, 16 MiB at most."""


class Facts(msgspec.Struct):
    """What is known of a file that a task wrote."""

    bytes: Count
    xxh3: str


class Job(OwnFolder):
    """What is done of a job. Other commands are kept from work on the same job until :meth:`close`.

    Parameters
    ----------
    shared : pathlib.Path
        A folder that all machines see.
    identity : mapping
        What the result depends on. Another job has another folder in ``shared``.
    """

    def __init__(self, shared: Path, identity: Mapping[str, Any]) -> None:
        text = json.dumps(identity, sort_keys=True, default=str)
        folder = shared / f"fastpart-job-{_core.hash_bytes(text.encode())[:16]}"
        self._owner = Owner(folder, "shared")
        try:
            super().__init__(folder, _MARKER, _FILES, "name another folder as shared")
            _core.write_file(self.marker, text.encode())
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let other commands go on with the job."""
        self._owner.release()

    def stage(
        self, engine: Engine, name: str, files: Mapping[str, tuple[Any, ...]], task: Callable[..., Any]
    ) -> list[Path]:
        """Have an engine make the files of a stage that are not there yet.

        Parameters
        ----------
        engine : Engine
            Where the tasks run.
        name : str
            Name of the stage.
        files : mapping of str to tuple
            The arguments of the task for each file, by its path in the folder. The file is its last argument.
        task : callable
            Writes a file.
        """
        paths = {file: self.path / file for file in files}
        manifest = self.path / f"{name}.json"
        known = _read(manifest)
        missing = [
            (task, file, (*files[file], path))
            for file, path in paths.items()
            if not path.is_file()
            or known.get(file, {}).get("bytes", path.stat().st_size) != path.stat().st_size
        ]
        if missing or not known:
            done = _checked(manifest, engine.submit(made, missing))
            found = {file: done.get(file) or known.get(file) or _facts(path) for file, path in paths.items()}
            _core.write_file(manifest, json.dumps(found, indent=1).encode())
        return list(paths.values())

    def forget(self, paths: list[Path]) -> None:
        """Remove files that no later stage reads."""
        for path in paths:
            path.unlink(missing_ok=True)


def write_checked(path: Path, content: bytes) -> None:
    """Write a small file with its xxh3-128 in front."""
    _core.write_file(path, _core.hash_bytes(content).encode() + content)


def read_checked(path: Path) -> bytes:
    """Return the content of a small file, which is what was written."""
    whole = regular(path).read_bytes()
    digest, content = whole[:_DIGITS], whole[_DIGITS:]
    if digest != _core.hash_bytes(content).encode():
        raise GraphFormatError(f"{shown(path)}: the file is damaged. {ANEW}")
    return content


def source_of(graph: Graph) -> list[Any]:
    """Return what tells a graph from others, without reading it where it lies in files."""
    known: list[Any] = [graph.num_vertices, graph.num_edges, graph.directedness]
    if graph.path is None:
        if graph.num_edges > _IN_MEMORY:
            raise ParameterError(
                f"graph: its {graph.num_edges:,} records are in memory, and every task of a cluster would get a copy. "
                'Write them to a file that all machines see, as by np.save("g.npy", records), and pass its path'
            )
        return [*known, *graph.identify()]
    files = sorted(graph.path.rglob("*")) if graph.path.is_dir() else [graph.path]
    # Tasks on other machines may see other inodes.
    states = ((shown(file), file.stat().st_mtime_ns, ends_of(file)) for file in files if file.is_file())
    return [*known, *states]


def name_of(value: Any) -> Any:
    """Return a value as JSON has it. An array is named by its hash."""
    if isinstance(value, np.ndarray):
        return f"array {value.dtype} {value.shape} {_core.hash_bytes(np.ascontiguousarray(value).tobytes())}"
    return [name_of(each) for each in value] if isinstance(value, list | tuple) else value


def made(task: Callable[..., Any], file: str, given: tuple[Any, ...]) -> tuple[str, dict[str, Any]]:
    """Make a file by a task, whose last argument it is, and return facts about it."""
    task(*given)
    return file, _facts(given[-1])


def _facts(path: Path) -> dict[str, Any]:
    return {
        "bytes": path.stat().st_size,
        "xxh3": _core.hash_files([regular(path)], RunOptions(threads=1))[0][1],
    }


def _checked(manifest: Path, results: Any) -> dict[str, Any]:
    """Return the results of :func:`made` by file. They may come from a file of another machine."""
    try:
        conform({"results": results}, {"results": list[tuple[str, Facts]]})
    except ValueError as error:
        raise GraphFormatError(f"{shown(manifest)}: what its tasks returned: {error}. {ANEW}") from None
    return dict(results)


def _read(manifest: Path) -> dict[str, Any]:
    """Return facts about the files of a stage. A damaged list counts as none: it is made anew."""
    try:
        content = json_object(manifest)
        return checked_object(manifest, content, dict.fromkeys(content, Facts))
    except (FileNotFoundError, GraphFormatError):
        return {}
