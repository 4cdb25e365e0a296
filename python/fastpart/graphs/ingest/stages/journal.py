"""What of an ingest is done: one line for each unit of work, written when its files are on the disk."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ....core.parameters import regular, shown
from ....core.parsing import json_object
from ....errors import GraphFormatError
from ..columns.arrays import RESTART

NAME = "journal.jsonl"

_CHECKSUM = "checksum"


class Journal:
    """The units that are done, in a file of JSON lines in the work folder.

    A unit may be done again at any time with the same result. So a kill costs at most the units at work. A last line
    that is cut off is ignored. Other damage is refused, which the checksum of each line finds. A unit whose results are
    lost is forgotten in the file as well, before they are made again. Otherwise a kill in between would leave lines
    about results that are there, but not filled.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._done: dict[tuple[str, str], dict[str, Any]] = {}
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
        if entry is None or (files and not all(map(self._whole, entry["files"].items()))):
            return None
        counts: dict[str, Any] = entry["counts"]
        return counts

    def _whole(self, named: tuple[str, int]) -> bool:
        try:
            return (self.folder / named[0]).stat().st_size == named[1]
        except FileNotFoundError:
            return False

    def add(
        self, stage: str, unit: str, files: Iterable[Path] = (), counts: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Note that a unit is done. Its files are on the disk."""
        sizes = {os.path.relpath(file, self.folder): file.stat().st_size for file in files}
        noted = dict(counts or {})
        entry = {"stage": stage, "unit": unit, "files": sizes, "counts": noted}
        self._write([entry])
        self._done[stage, unit] = entry
        return noted

    def forget(self, units: Iterable[tuple[str, str]]) -> None:
        """Take these units, each a stage and a name, as not done from now on."""
        known = [each for each in units if each in self._done]
        self._write([{"stage": stage, "unit": unit, "forgotten": True} for stage, unit in known])
        for each in known:
            del self._done[each]

    def _write(self, entries: Iterable[dict[str, Any]]) -> None:
        self._file.write(b"".join(map(_line, entries)))
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


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
