"""The work folder ``.OUT.ingest`` beside the output: what a killed ingest goes on from.

It holds the plan, the journal and the files of the units that are done. Only a folder with a plan is gone on with. So
the plan is written into an empty folder, and it is removed before anything else. A kill while the folder is removed
then leaves no journal that tells of files that are gone. The lock is removed last.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from .... import _core
from ....core.parameters import shown
from ....core.parsing import json_object
from ....core.system import try_lock
from ....errors import GraphFormatError, ParameterError
from ..columns.arrays import RESTART


class WorkFolder:
    """A folder that one process at a time works in. Its lock ends with the process.

    ``restart``: remove what an earlier run has left there.
    """

    def __init__(self, out: Path, restart: bool) -> None:
        self.path = out.with_name(f".{out.name}.ingest")
        self._plan = self.path / "plan.json"
        self._lock_file = self.path / "lock"
        self._lock = self._locked()
        while not self._is_there():  # its owner before removed the folder between the two calls
            os.close(self._lock)
            self._lock = self._locked()
        if restart:
            self._clear()

    def _locked(self) -> int:
        self.path.mkdir(exist_ok=True)
        lock = os.open(self._lock_file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if try_lock(lock):
                return lock
        except OSError as error:
            os.close(lock)
            raise OSError(error.errno, error.strerror, str(self.path)) from None
        os.close(lock)
        raise ParameterError(
            f"out: another ingest is at work in {shown(self.path)}. Wait until it is done, or choose another name"
        )

    def _is_there(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._lock), self._lock_file.stat())
        except FileNotFoundError:
            return False

    def _clear(self, ignore_errors: bool = False) -> None:
        """Remove all but the lock, and the plan first."""
        self._plan.unlink(missing_ok=True)
        for each in self.path.iterdir():
            if each.is_dir():
                shutil.rmtree(each, ignore_errors=ignore_errors)
            elif each != self._lock_file:
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
                self._lock_file.unlink()  # until then nobody else begins here
                self.path.rmdir()
        os.close(self._lock)


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
