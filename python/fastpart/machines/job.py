"""A job: the folder that all machines see, with a file for everything that is done.

A task writes its file under another name and renames it, so a file is there as a whole or not at all, and a task that
runs twice does no harm. The files have checksums inside, which whoever reads them compares. When all files of a stage
are there, a manifest lists them with their sizes and xxh3-128, and the next run of the same job goes on behind it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from .. import _core
from ..core.options import RunOptions
from ..core.parameters import shown
from ..errors import GraphFormatError, ParameterError
from .engine import Engine

_MARKER = "job.json"
_DIGITS = 32
"""Digits of an xxh3-128."""


class Job:
    """What is done of a job. One command at a time works on it, with a lock that ends with its process.

    Parameters
    ----------
    shared : pathlib.Path
        A folder that all machines see.
    identity : mapping
        What the result depends on. Another job has another folder in ``shared``.
    """

    def __init__(self, shared: Path, identity: Mapping[str, Any]) -> None:
        text = json.dumps(identity, sort_keys=True, default=str)
        self.folder = shared / f"fastpart-job-{_core.hash_bytes(text.encode())[:16]}"
        self.folder.mkdir(exist_ok=True)
        self._lock = (self.folder / "job.lock").open("a")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _core.write_file(self.folder / _MARKER, text.encode())
        except OSError as error:
            self._lock.close()
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            raise ParameterError(
                f"shared: another command is at work on this job in {shown(self.folder)}. Wait for it"
            ) from None

    def __enter__(self) -> Self:
        """Return the job."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let other commands work on the job."""
        self._lock.close()

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
            The arguments of the task for each file, which is its last argument.
        task : callable
            Writes a file.
        """
        paths = [self.folder / file for file in files]
        manifest = self.folder / f"{name}.json"
        known = _read(manifest)
        missing = [
            (task, (*given, path))
            for path, given in zip(paths, files.values(), strict=True)
            if not path.is_file()
            or known.get(path.name, {}).get("bytes", path.stat().st_size) != path.stat().st_size
        ]
        if missing or not known:
            made = dict(engine.submit(_made, missing))
            found = {path.name: made.get(path.name) or known.get(path.name) or _facts(path) for path in paths}
            _core.write_file(manifest, json.dumps(found, indent=1).encode())
        return paths

    def forget(self, paths: list[Path]) -> None:
        """Remove files that no later stage reads."""
        for path in paths:
            path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the folder of a job that is done."""
        self._lock.close()  # some file systems keep what is open
        shutil.rmtree(self.folder)


def write_checked(path: Path, content: bytes) -> None:
    """Write a small file with its xxh3-128 in front."""
    _core.write_file(path, _core.hash_bytes(content).encode() + content)


def read_checked(path: Path) -> bytes:
    """Return the content of a small file, which is what was written."""
    whole = path.read_bytes()
    digest, content = whole[:_DIGITS], whole[_DIGITS:]
    if digest != _core.hash_bytes(content).encode():
        raise GraphFormatError(
            f"{shown(path)}: the file is damaged. Remove it, and run again: it is made anew"
        )
    return content


def _made(task: Callable[..., Any], given: tuple[Any, ...]) -> tuple[str, dict[str, Any]]:
    task(*given)
    path: Path = given[-1]
    return path.name, _facts(path)


def _facts(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "xxh3": _core.hash_files([path], RunOptions(threads=1))[0][1]}


def _read(manifest: Path) -> dict[str, Any]:
    try:
        content = json.loads(manifest.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
