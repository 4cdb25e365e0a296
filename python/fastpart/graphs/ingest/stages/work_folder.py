"""The work folder ``.OUT.ingest`` beside the output: what a killed ingest goes on from.

It holds the plan, the journal and the files of the units that are done. The plan is the marker of the folder: it is the
first file and the last. Only a folder with a journal is gone on with, and the journal is removed before anything else.
A kill while the folder is removed then leaves no journal that tells of files that are gone.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .... import _core
from ....core.folders import OwnFolder
from ....core.notes import log
from ....core.options import RunOptions
from ....core.parameters import regular, shown
from ....core.parsing import json_object
from ....core.rows import STATISTICS
from ....errors import GraphFormatError, ParameterError
from ...graph_directory import CATEGORIES
from ..columns import DESCRIPTION, FEATURES, LABELS, RAW, SPLIT, SPLIT_STATES, STATES, TIMES, WEIGHTS
from ..columns.rows import RESTART

NAME = "journal.jsonl"

_CHECKSUM = "checksum"

_BLOCK = 8 << 20
"""Bytes of a file that are hashed at a time."""


class Journal:
    """The units that are done, in a file of JSON lines in the work folder.

    A unit may be done again at any time with the same result. So a kill costs at most the units at work. A last line
    that is cut off is ignored. Other damage is refused, which the checksum of each line finds. A unit whose results are
    lost is forgotten in the file as well, before they are made again. Otherwise a kill in between would leave lines
    about results that are there, but not filled.

    A line has size and checksum of each file of its unit, and of each piece of a file that several units write. They
    are compared once for units of an earlier run. What differs is lost.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._done: dict[tuple[str, str], dict[str, Any]] = {}
        self._compared: set[tuple[str, str]] = set()
        file = folder / NAME
        kept = 0
        for number, line in enumerate(
            regular(file).read_bytes().split(b"\n")[:-1] if file.exists() else (), 1
        ):
            entry = _read(file.with_name(f"{NAME}: line {number}"), line)
            kept += len(line) + 1
            if "forgotten" in entry:
                self._done.pop((entry["stage"], entry["unit"]), None)
            else:
                self._done[entry["stage"], entry["unit"]] = entry
        self._file = file.open("ab")
        self._file.truncate(kept)

    def done(self, stage: str, unit: str, files: bool = True) -> dict[str, Any] | None:
        """Return what was noted when the unit was done. None if it was not, or if any of its ``files`` is not whole."""
        entry = self._done.get((stage, unit))
        if entry is None or (files and not self._whole((stage, unit), entry)):
            return None
        counts: dict[str, Any] = entry["counts"]
        return counts

    def _whole(self, unit: tuple[str, str], entry: dict[str, Any]) -> bool:
        """Return whether the files of a unit are there, as they were when it was noted."""
        files = {self.folder / name: facts for name, facts in entry["files"].items()}
        try:
            if any(file.stat().st_size != size for file, (size, _) in files.items()):
                return False
            if unit not in self._compared:
                found = [list(facts) for facts in _core.hash_files(list(files), RunOptions())]
                pieces = ((self.folder / name, *facts) for name, facts in entry["pieces"].items())
                if found != [*files.values()] or any(
                    hash_of(file, start, stop) != xxh3 for file, start, stop, xxh3 in pieces
                ):
                    log.info("%s: %s of %s is damaged. It is made again", shown(self.folder), *unit)
                    return False
                self._compared.add(unit)
        except FileNotFoundError:
            return False
        return True

    def add(
        self,
        stage: str,
        unit: str,
        files: Iterable[Path] = (),
        counts: Mapping[str, Any] | None = None,
        *,
        pieces: Iterable[tuple[Path, int, int]] = (),
    ) -> dict[str, Any]:
        """Note that a unit is done. Its files are on the disk.

        Of a file in ``pieces`` only the bytes from a number to another are those of the unit.
        """
        whole = list(files)
        hashes = _core.hash_files(whole, RunOptions())
        facts = {self._name(file): list(each) for file, each in zip(whole, hashes, strict=True)}
        noted = dict(counts or {})
        entry = {
            "stage": stage,
            "unit": unit,
            "files": facts,
            "pieces": {self._name(file): [*ends, hash_of(file, *ends)] for file, *ends in pieces},
            "counts": noted,
        }
        self._write([entry])
        self._done[stage, unit] = entry
        self._compared.add((stage, unit))
        return noted

    def _name(self, file: Path) -> str:
        return os.path.relpath(file, self.folder)

    def forget(self, units: Iterable[tuple[str, str]]) -> None:
        """Take these units, each a stage and a name, as not done from now on."""
        known = [each for each in units if each in self._done]
        self._write([{"stage": stage, "unit": unit, "forgotten": True} for stage, unit in known])
        for each in known:
            del self._done[each]
            self._compared.discard(each)

    def _write(self, entries: Iterable[dict[str, Any]]) -> None:
        self._file.write(b"".join(map(_line, entries)))
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def hash_of(file: Path, start: int, stop: int) -> str:
    """Return a hash of some bytes of a file."""
    hashes = []
    with file.open("rb") as opened:
        opened.seek(start)
        for at in range(start, stop, _BLOCK):
            hashes.append(_core.hash_bytes(opened.read(min(_BLOCK, stop - at))))
    return _core.hash_bytes("".join(hashes).encode())


def _line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry | {_CHECKSUM: _checksum(entry)}).encode() + b"\n"


def _checksum(entry: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(entry).encode())


def _read(place: Path, line: bytes) -> dict[str, Any]:
    """Return the entry of a line."""
    entry = json_object(place, line, {_CHECKSUM: int}, RESTART)
    if entry.pop(_CHECKSUM) != _checksum(entry):
        raise GraphFormatError(f"{shown(place)}: not as it was written. {RESTART}")
    return entry


PLAN = "fastpart-ingest.json"
"""The plan: the schema, the state of all tables, and the settings."""

_ARRAYS = (
    *(FEATURES, RAW, LABELS, STATES, SPLIT_STATES, SPLIT, TIMES, WEIGHTS),
    *(STATISTICS, CATEGORIES, DESCRIPTION),
)

_FILES = "|".join(
    (
        re.escape(NAME),
        r"weights\.f64",
        r"graph/edges(-\d{5})?\.bin(\.json|\.(weights|times)\.npy)?(\.new)?",
        r"graph/ids/[^/]+\.parquet",
        rf"graph/(types|relations)/[^/]+/({'|'.join(map(re.escape, _ARRAYS))})(\.new)?",
        r"types/[^/]+/(run-[^/]+|keys-\d+|rows\.u32)",
        r"records/[^/]+/\d{5}/(order-\d+|(ends|vertices)-\d+)",
        r"kept/[^/]+/\d+",
    )
)
"""What the stages write there."""


class WorkFolder(OwnFolder):
    """A folder that the owner of the output works in, which is one process at a time.

    ``restart``: remove what an earlier run has left there.
    """

    def __init__(self, out: Path, restart: bool) -> None:
        super().__init__(
            out.with_name(f".{out.name}.ingest"), PLAN, _FILES, "choose another name for the output"
        )
        self._journal = self.path / NAME
        if restart:
            self.clear()

    def clear(self) -> None:
        """Remove all files, the journal first and the plan last."""
        self._journal.unlink(missing_ok=True)
        super().clear()

    def begin(self, plan: dict[str, Any]) -> bool:
        """Write the plan, or compare it with that of an earlier run. Return whether there was one."""
        if not self._journal.exists():
            self.clear()  # of a run that was killed before it had one, or while it removed the folder
            _core.write_file(self.marker, json.dumps(plan).encode())
            return False
        now = json.loads(json.dumps(plan))
        if (earlier := self._read(now["format"])) != now:
            raise ParameterError(
                f"{shown(self.path)}: begun by an earlier run, since when {_change(earlier, now)}. {RESTART}, or "
                "undo the change to go on"
            )
        return True

    def _read(self, format: int) -> dict[str, Any]:
        """Return the plan of an earlier run. Only of this format it has the fields that are compared."""
        plan = json_object(self.marker, fields={"format": int}, remedy=RESTART)
        if plan["format"] == format:
            fields = {"schema": dict, "root": str, "settings": dict, "tables": dict}
            plan = json_object(self.marker, fields=fields, remedy=RESTART)
            for name, files in plan["tables"].items():
                if not isinstance(files, list) or not all(
                    isinstance(file, list) and [*map(type, file[:2])] == [str, int] for file in files
                ):
                    raise GraphFormatError(
                        f"{shown(self.marker)}: tables: {name}: no list of files. {RESTART}"
                    )
        return plan

    def release(self, remove: bool) -> None:
        """End the work. The folder stays, unless it is to be removed."""
        if remove:
            self.remove()


def _change(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Return what differs, in words."""
    if before.get("format") != now["format"]:
        return "the format of the work folder changed with the version of fastpart"
    for name in ("schema", "root", "settings"):
        if before[name] != now[name]:
            keys = (
                [key for key in now[name] if before[name].get(key) != now[name][key]]
                if name != "root"
                else []
            )
            return f"the {name} changed" + (f" ({', '.join(keys)})" if keys else "")
    for table, files in now["tables"].items():
        known = {file[0]: file for file in before["tables"].get(table, [])}
        for file in files:
            if file[0] not in known:
                return f"{shown(file[0])} was added"
            if known[file[0]] != file:
                return f"{shown(file[0])} changed ({known[file[0]][1]:,} bytes then, {file[1]:,} now)"
        if gone := known.keys() - {file[0] for file in files}:
            return f"{shown(min(gone))} was removed"
    return "its tables changed"
