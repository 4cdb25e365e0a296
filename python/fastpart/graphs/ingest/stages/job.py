"""What all stages of one ingest share: tables in units of work, work folder, journal, memory, progress."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from .... import _core
from ....core.notes import log
from ....core.options import RunOptions
from ....core.outputs import held, replaceable
from ....core.parameters import shown
from ....errors import MemoryBudgetError
from ...graph_directory import MARKER
from ..catalog import Catalog, RelationTable, VertexTable
from ..tables import IdKind, TableReader
from .work_folder import Journal, WorkFolder

ROWS = 1 << 22
"""Rows of a unit, unless a single file has more and cannot be read in slices."""

_MOST = 128
"""Units of a table, about. So the number of files that a merge opens stays small."""


@dataclass(frozen=True)
class Slice:
    """Rows of one file."""

    file: int
    start: int
    stop: int
    first: int
    """The number of its first row among all rows of the table."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.stop - self.start


@dataclass(frozen=True)
class Unit:
    """Rows that are worked on together."""

    number: int
    slices: tuple[Slice, ...]
    bytes: int
    """Bytes of input, about."""

    @property
    def first(self) -> int:
        """The number of its first row."""
        return self.slices[0].first

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(each.rows for each in self.slices)

    @property
    def name(self) -> str:
        """Its name in the journal and in names of files."""
        return f"{self.number:05}"


def units_of(reader: TableReader) -> list[Unit]:
    """Return the units of a table, from its first row to its last. They depend on its files only."""
    most = max(ROWS, -(-sum(file.rows for file in reader.files) // _MOST))
    units: list[Unit] = []
    slices: list[Slice] = []
    size = first = 0
    for number, file in enumerate(reader.files):
        step = most if reader.divisible(number) else max(file.rows, 1)
        for start in range(0, file.rows, step):
            stop = min(start + step, file.rows)
            slices.append(Slice(number, start, stop, first))
            first += stop - start
            size += file.bytes * (stop - start) // max(file.rows, 1)
            if sum(each.rows for each in slices) >= most:
                units.append(Unit(len(units), tuple(slices), size))
                slices, size = [], 0
    if slices:
        units.append(Unit(len(units), tuple(slices), size))
    return units


def groups_of(units: Sequence[Unit], most: int) -> list[list[Unit]]:
    """Return the units in groups of at most ``most`` records, or of one unit that has more."""
    groups: list[list[Unit]] = []
    for unit in units:
        if not groups or sum(each.rows for each in groups[-1]) + unit.rows > most:
            groups.append([])
        groups[-1].append(unit)
    return groups


def place(reader: TableReader, row: int) -> str:
    """Return the file and row of a row of a table, as messages show it."""
    first = 0
    for number, file in enumerate(reader.files):
        if row < first + file.rows:
            return reader.place(number, row - first)
        first += file.rows
    return f"row {row}"


FORMAT = 5
"""Version of the work folder. One of another version is not gone on with."""

_READER = 230 << 20
"""Bytes that Python and the reader of tables take, and what each thread of it takes."""
_THREAD = 50 << 20

_WORTHLESS = 10
"""Seconds of work that nobody misses. A refusal of the input then leaves nothing behind."""

_LEAST_SORT = 64 << 20
_MOST_SORT = 192 << 20
"""Bytes for sorting. More brings nothing: runs are merged in one pass anyway."""


@dataclass(frozen=True)
class NumberedType:
    """A type whose vertices have numbers."""

    name: str
    kind: IdKind
    first: int
    """The number of its first vertex among all."""
    n: int
    keys: tuple[Path, ...]
    """Files with the keys of its ids, by bucket."""
    facts: dict[str, Any]


class Job:
    """One ingest at work."""

    def __init__(
        self,
        catalog: Catalog,
        out: Path,
        run: RunOptions,
        restart: bool,
        overwrite: bool,
        settings: dict[str, Any],
    ) -> None:
        self.catalog, self.out, self.settings = catalog, out, settings
        self.owned = replaceable(out, MARKER, "", "a graph directory", held(_entries(catalog)), overwrite)
        """Files of an earlier graph at the same place, which go in the end."""
        if not (parent := Path(os.path.abspath(out)).parent).is_dir():
            raise FileNotFoundError(errno.ENOENT, "the folder of the output does not exist", str(parent))
        self.threads = run.threads or _core.default_threads()
        self.sorting = _sorting(run.memory_limit, self.threads)
        self.run = replace(run, progress=None)
        self._progress, self._done = run.progress, 0
        self.units = {name: units_of(reader) for name, reader in readers(catalog).items()}
        self._work = WorkFolder(out, restart)
        self.folder = self._work.path
        self.graph = self.folder / "graph"
        """The graph directory as it grows."""
        try:
            self._started, self._resumed = time.monotonic(), self._work.begin(plan_of(catalog, settings))
            self.graph.mkdir(exist_ok=True)
            self.journal = Journal(self.folder)
        except BaseException:
            self._work.release(remove=False)
            raise
        if self._resumed:
            log.info("%s: going on with what an earlier run has done", shown(self.folder))
        self.total = sum(unit.bytes for units in self.units.values() for unit in units)

    def advance(self, phase: str, bytes: int) -> None:
        """Count bytes of input as read."""
        self._done += bytes
        if self._progress is not None:
            self._progress(phase, min(self._done, self.total), self.total)

    def path(self, *names: str) -> Path:
        """Return a path in the work folder. Its folder exists."""
        path = self.folder.joinpath(*names)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def close(self, done: bool) -> None:
        """End the job. If it is not done, the work folder stays, unless it holds less than some seconds of work."""
        self.journal.close()
        worthless = not self._resumed and time.monotonic() - self._started < _WORTHLESS
        self._work.release(remove=done or worthless)


def _entries(catalog: Catalog) -> dict[str, Any]:
    """Return the entries that ``graph.json`` is going to have, as far as they tell what lies in the directory."""
    entries = {
        of: [
            {
                "name": name,
                "features": table.features,
                "labels": table.entry.label,
                "split": table.entry.split,
                "times": table.entry.time,
            }
            for name, table in tables.items()
        ]
        for of, tables in (("types", catalog.vertices), ("relations", catalog.relations))
    }
    for entry, table in zip(entries["relations"], catalog.relations.values(), strict=True):
        entry["weights"] = table.entry.weight
    return entries


def readers(catalog: Catalog) -> dict[str, TableReader]:
    """Return all tables, by ``vertices/TYPE`` and ``relations/RELATION``."""
    found = {
        f"vertices/{name}": table.reader
        for name, table in catalog.vertices.items()
        if table.reader is not None
    }
    return found | {f"relations/{name}": table.reader for name, table in catalog.relations.items()}


def plan_of(catalog: Catalog, settings: dict[str, Any]) -> dict[str, Any]:
    """Return what decides the result: the schema, the files as they are, and settings."""
    tables = {
        name: [
            [
                file.path,
                file.bytes,
                file.mark,
                file.rows,
                {key: str(value) for key, value in file.dtypes.items()},
            ]
            for file in reader.files
        ]
        for name, reader in readers(catalog).items()
    }
    schema = msgspec.to_builtins(catalog.schema, enc_hook=lambda frame: type(frame).__name__)
    settings = settings | {"vocabulary": _vocabulary_of(catalog)}
    return {"format": FORMAT, "schema": schema, "root": catalog.root, "settings": settings, "tables": tables}


def _vocabulary_of(catalog: Catalog) -> str | None:
    """Return a hash of the earlier values of all columns that have categories or classes now. None: there are none."""
    tables: list[VertexTable | RelationTable] = [*catalog.vertices.values(), *catalog.relations.values()]
    if all(table.vocabulary is None for table in tables):
        return None
    used = []
    for table in tables:
        columns = [each.column for each in table.features if each.as_ in ("onehot", "embedding", "code")]
        columns += [table.entry.label] if table.entry.label else []
        used.append([(table.vocabulary or {}).get(column) for column in columns])
    return blake2b(json.dumps(used).encode(), digest_size=16).hexdigest()


def _sorting(limit: int | None, threads: int) -> int:
    """Return the bytes that sorting may take. Refuse a limit that leaves too little."""
    limit = _core.memory_budget() if limit is None else limit
    least = _READER + threads * _THREAD + _LEAST_SORT
    if limit < least:
        raise MemoryBudgetError(
            f"ingest needs {least / 1e6:.0f} MB of memory with {threads} threads, but the budget is {limit / 1e6:.0f} "
            "MB. Raise memory_limit, or use fewer threads"
        )
    return min(limit - least + _LEAST_SORT, _MOST_SORT)


def blocks(items: Sequence[Any], size: int) -> list[Sequence[Any]]:
    """Return the items in blocks of a size."""
    return [items[start : start + size] for start in range(0, len(items), size)]
