"""The engine that leaves its tasks in a file, for arrays of Slurm, indexed jobs of Kubernetes, or any other launcher.

The driver writes the tasks of a stage to ``tasks.json`` in the shared folder, in piles, and waits until each pile has a
file of results. :func:`work` runs one pile. It holds no state, so it may run on any machine, and twice. A task is the
name of a function in a fixed table, with plain arguments, and a graph is a path and how it was opened. So what a
machine reads there cannot make it run anything else. Replicas run in the process of the driver.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import msgspec

from .. import _core
from ..core.folders import refuse_links, remove_files
from ..core.notes import log
from ..core.options import RunOptions
from ..core.outputs import Owner
from ..core.parameters import StrPath, integer, path, regular, shown
from ..core.parsing import damaged, is_intact, json_object, with_checksum
from ..errors import EdgeFileChangedError, GraphFormatError, ParameterError
from ..graphs.files import is_url
from ..graphs.graph import Graph
from ..graphs.opening import open_graph
from .engine import Program, Threads
from .job import read_checked, source_of, write_checked

_FILE = "tasks.json"
_RESULT = r"\d+"
"""Files of results."""
_LOOK = 0.5
"""Seconds between two looks at the results."""
_REMIND = 60.0
"""Seconds between two notes about what is missing."""

_Stage = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{16}\Z")]

_ANEW = "Run the command that waits for the tasks again"

FUNCTIONS = (
    "machines.job:made",
    "machines.partitioning:count",
    "machines.partitioning:scatter",
    "machines.partitioning:gather",
    "machines.parts:write_group",
    "measures.vertex_counts:count_kind",
)
"""What a task may call."""


class TaskFiles:
    """The engine whose tasks lie in a file until :func:`work` runs them.

    Parameters
    ----------
    shared : pathlib.Path
        A folder that all machines see. One command at a time has its tasks there (:meth:`alone`).
    workers : int
        Number of piles, at most.
    """

    def __init__(self, shared: Path, workers: int = 16) -> None:
        self._shared, self.workers = shared, workers

    def submit(self, task: Callable[..., Any], each: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Leave tasks, and wait for their results."""
        if not each:
            return []
        with self.alone():
            return self._submit(task, each)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep the tasks of other commands out of the folder, and remove those that a kill has left there."""
        with Owner(self._shared / _FILE, "shared"):
            if (left := _left(self._shared / _FILE)) is not None:
                log.info("%s: removing the tasks of a command that was killed", shown(self._shared))
                self._remove(left)
            yield

    def _remove(self, results: Path) -> None:
        remove_files(results, _RESULT)
        (self._shared / _FILE).unlink(missing_ok=True)

    def _submit(self, task: Callable[..., Any], each: Sequence[tuple[Any, ...]]) -> list[Any]:
        count, stage = min(self.workers, len(each)), secrets.token_hex(8)
        piles = [[_plain([task, *given]) for given in each[i::count]] for i in range(count)]
        folder, file = self._shared / f"results-{stage}", self._shared / _FILE
        try:
            # The list comes first: it tells whose folder that is, also after a kill. No task begins without the folder.
            _core.write_file(file, _text(stage, piles))
            folder.mkdir()
            _wait(folder, count)
            results = [_results(folder / str(number), len(piles[number])) for number in range(count)]
        finally:
            self._remove(folder)
        return [results[i % count][i // count] for i in range(len(each))]

    def replicas(self, program: Program) -> Any:
        """Run one replica, in this process."""
        return Threads(1).replicas(program)


def _text(stage: str, piles: list[list[Any]]) -> bytes:
    return with_checksum(f'{{\n "stage": {json.dumps(stage)},\n "piles": {json.dumps(piles)}\n}}\n'.encode())


def _read(file: Path) -> dict[str, Any]:
    """Return the list of tasks, which is what a command wrote."""
    text = regular(file).read_bytes()
    content = json_object(file, text, {"stage": _Stage, "piles": list[list[list[Any]]]}, _ANEW)
    if not is_intact(text):
        raise GraphFormatError(f"{shown(file)}: not as it was written. {_ANEW}")
    return content


def _left(file: Path) -> Path | None:
    """Return the folder of results that a list of tasks names, if there is such a list. Refuse any other file."""
    if not os.path.lexists(file):
        return None
    refuse_links(file.parent, [file.name])
    with suppress(OSError, GraphFormatError):
        content = _read(file)
        return file.with_name(f"results-{content['stage']}")
    raise FileExistsError(
        errno.EEXIST,
        "is no list of tasks of fastpart. Move it away, or name another folder as shared",
        str(file),
    )


def _results(file: Path, count: int) -> list[Any]:
    """Return the results of a pile of so many tasks."""
    results: list[Any] = json_object(file, read_checked(file), {"results": list}, _ANEW)["results"]
    if len(results) != count:
        raise GraphFormatError(f"{shown(file)}: {len(results)} results of {count} tasks. {_ANEW}")
    return results


def _wait(folder: Path, count: int) -> None:
    """Wait for the results of all piles, and say what is missing now and then."""
    start = reminded = time.monotonic()
    log.info(
        "%d tasks wait in %s. Run `fastpart work %s --task I` for I from 0 to %d",
        count,
        shown(folder.parent),
        shown(folder.parent),
        count - 1,
    )
    while missing := [number for number in range(count) if not (folder / str(number)).is_file()]:
        if time.monotonic() - reminded > _REMIND:
            reminded = time.monotonic()
            log.info(
                "after %.0f s, these tasks in %s are not done: %s",
                reminded - start,
                shown(folder.parent),
                ", ".join(map(str, missing)),
            )
        time.sleep(_LOOK)


def work(shared: StrPath, *, task: int) -> bool:
    """Run a task of the stage that a job is at, and return whether there was one to run.

    A launcher calls this again and again on every machine, until the command that waits for the tasks has ended. The
    result does not depend on who runs which task, nor how often.

    Parameters
    ----------
    shared : path
        The folder ``shared`` of the command that waits.
    task : int
        Number of the task, from 0 on.

    Returns
    -------
    bool
        False if no command waits, if the stage has fewer tasks, or if this one is done.

    Raises
    ------
    EdgeFileChangedError
        This machine sees another file of the graph than the command does.
    GraphFormatError
        What lies there is no list of tasks.
    ParameterError
        There is no such folder.

    Examples
    --------
    >>> import tempfile
    >>> from fastpart.machines.tasks import work
    >>> work(tempfile.mkdtemp(), task=0)
    False
    """
    folder, number = path("shared", shared), integer("task", task, 0, 2**31)
    if not folder.is_dir():
        raise ParameterError(f"shared: {shown(folder)} is not a folder")
    file = folder / _FILE
    refuse_links(folder, [_FILE])
    try:
        content = _read(file)
    except FileNotFoundError:
        return False
    piles, results = content["piles"], folder / f"results-{content['stage']}"
    into = results / str(number)
    refuse_links(folder, [into.relative_to(folder)])
    if number >= len(piles) or into.exists() or not results.is_dir():
        return False
    with damaged(file, f"task {number} is not what fastpart wrote. {_ANEW}"):
        calls = [_restored(each) for each in piles[number]]
        if not all(call and callable(call[0]) for call in calls):
            raise GraphFormatError(f"{shown(file)}: task {number} names no function. {_ANEW}")
        for function, *given in calls:
            signature(function).bind(*given)
    done = [function(*given) for function, *given in calls]
    try:
        write_checked(into, json.dumps({"results": _plain(done)}).encode())
    except FileNotFoundError:  # the command no longer waits
        if results.is_dir():
            raise
    return True


def _plain(value: Any) -> Any:
    """Return a value as JSON. What JSON has no word for is an object with one key, its kind."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Path):
        return {"path": str(value)}
    if isinstance(value, RunOptions):
        return {"options": {name: _plain(each) for name, each in asdict(value).items()}}
    if isinstance(value, Graph):
        known = None if value._origin is None else value._origin.arguments()
        if known is None:
            raise ParameterError(
                "graph: tasks in a folder need a graph that lies in a file of raw pairs, a .npy or a graph directory. "
                "Write it by fastpart convert, and pass the new file"
            )
        return {"graph": [known, _marks(value)]}
    if callable(value):
        name = f"{value.__module__.partition('.')[2]}:{value.__name__}"
        if name not in FUNCTIONS:
            raise ParameterError(f"task: {name} is no task")
        return {"function": name}
    return value


def _restored(value: Any) -> Any:
    """Return what JSON stands for. Lists become tuples."""
    if isinstance(value, list):
        return tuple(_restored(each) for each in value)
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "path":
        return Path(content)
    if kind == "options":
        return RunOptions(**{name: _restored(each) for name, each in content.items()})
    if kind == "function" and content in FUNCTIONS:
        module, _, name = content.partition(":")
        return getattr(import_module(f"{__name__.partition('.')[0]}.{module}"), name)
    if kind == "graph":
        known, marks = content
        if is_url(known["source"]):
            raise GraphFormatError(
                f"graph: {shown(known['source'])} is a URL. Tasks read files that all machines see"
            )
        graph = open_graph(**known, weights=False)
        if _marks(graph) != marks:
            raise EdgeFileChangedError(
                f"{shown(known['source'])}: it is another file here than where the command runs. Let all machines see "
                "the same, and run the command again if it changed"
            )
        return graph
    raise ParameterError(f"tasks: {shown(kind)} is unknown. Is fastpart the same on all machines?")


def _marks(graph: Graph) -> list[Any]:
    """Return what tells a graph from others, without the names of its files."""
    return [list(each[1:]) if isinstance(each, tuple) else each for each in source_of(graph)]
