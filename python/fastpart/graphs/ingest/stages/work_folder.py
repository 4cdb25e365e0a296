"""The work folder ``.OUT.ingest`` beside the output: what a killed ingest goes on from.

It holds the plan, the journal and the files of the units that are done. Only a folder with a plan is gone on with. So
the plan is written into an empty folder, and it is removed before anything else. A kill while the folder is removed
then leaves no journal that tells of files that are gone.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path
from typing import Any

from .... import _core
from ....core.parameters import shown
from ....core.parsing import json_object
from ....errors import GraphFormatError, ParameterError
from ..columns.arrays import RESTART


class WorkFolder:
    """A folder that the owner of the output works in, which is one process at a time.

    ``restart``: remove what an earlier run has left there.
    """

    def __init__(self, out: Path, restart: bool) -> None:
        self.path = out.with_name(f".{out.name}.ingest")
        self._plan = self.path / "plan.json"
        self.path.mkdir(exist_ok=True)
        if restart:
            self._clear()

    def _clear(self, ignore_errors: bool = False) -> None:
        """Remove all files, and the plan first."""
        self._plan.unlink(missing_ok=True)
        for each in self.path.iterdir():
            if each.is_dir():
                shutil.rmtree(each, ignore_errors=ignore_errors)
            else:
                each.unlink()

    def begin(self, plan: dict[str, Any]) -> bool:
        """Write the plan, or compare it with that of an earlier run. Return whether there was one."""
        if not self._plan.exists():
            self._clear()  # of a run that was killed before it had one, or while it removed the folder
            _core.write_file(self._plan, json.dumps(plan).encode())
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
        plan = json_object(self._plan, fields={"format": int}, remedy=RESTART)
        if plan["format"] == format:
            fields = {"schema": dict, "root": str, "settings": dict, "tables": dict}
            plan = json_object(self._plan, fields=fields, remedy=RESTART)
            for name, files in plan["tables"].items():
                if not isinstance(files, list) or not all(
                    isinstance(file, list) and [*map(type, file[:2])] == [str, int] for file in files
                ):
                    raise GraphFormatError(
                        f"{shown(self._plan)}: tables: {name}: no list of files. {RESTART}"
                    )
        return plan

    def release(self, remove: bool) -> None:
        """End the work. The folder stays, unless it is to be removed."""
        if remove:
            with contextlib.suppress(OSError):
                self._clear(ignore_errors=True)
                self.path.rmdir()


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
