"""The work folder ``.OUT.ingest`` beside the output: what a killed ingest goes on from.

It holds the plan, the journal and the files of the units that are done. The plan is the marker of the folder: it is the
first file and the last. Only a folder with a journal is gone on with, and the journal is removed before anything else.
A kill while the folder is removed then leaves no journal that tells of files that are gone.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from .... import _core
from ....core.folders import OwnFolder
from ....core.parameters import shown
from ....core.parsing import json_object
from ....core.standardising import STATISTICS
from ....errors import GraphFormatError, ParameterError
from ...graph_directory import CATEGORIES
from ..columns import DESCRIPTION, FEATURES, LABELS, RAW, SPLIT, SPLIT_STATES, STATES, TIMES, WEIGHTS
from ..columns.arrays import RESTART
from . import journal

PLAN = "fastpart-ingest.json"
"""The plan: the schema, the state of all tables, and the settings."""

_ARRAYS = (
    *(FEATURES, RAW, LABELS, STATES, SPLIT_STATES, SPLIT, TIMES, WEIGHTS),
    *(STATISTICS, CATEGORIES, DESCRIPTION),
)

_FILES = "|".join(
    (
        re.escape(journal.NAME),
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
        self._journal = self.path / journal.NAME
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
