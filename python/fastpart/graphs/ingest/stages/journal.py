"""What of an ingest is done: one line for each unit of work, written when its files are on the disk."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .... import _core
from ....core.notes import log
from ....core.options import RunOptions
from ....core.parameters import regular, shown
from ....core.parsing import json_object
from ....errors import GraphFormatError
from ..columns.arrays import RESTART

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
