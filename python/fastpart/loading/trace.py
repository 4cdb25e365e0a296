"""The tasks of all threads over time, in the format of Chrome's trace viewer."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .. import _core

_WITHIN = 1000
"""Nanoseconds from an arrow's end to the end of its span, so that viewers join them."""

Event = dict[str, Any]
"""An event of the format."""


class Trace:
    """Events of the threads of a process. ``chrome://tracing`` and Perfetto show the file.

    Parameters
    ----------
    process : int
        Number of the process.
    name : str
        Its name in the viewer.
    """

    def __init__(self, process: int = 0, name: str = "fastpart") -> None:
        self._process, self._name = process, name
        self._events: list[tuple[str, str, int, int, int, dict[str, Any]]] = []
        self._threads: dict[int, str] = {}

    @staticmethod
    def now() -> int:
        """Return the time in nanoseconds, equal in all processes of a machine."""
        return time.monotonic_ns()

    def span(self, name: str, start: int, **details: Any) -> None:
        """Note that this thread did something from ``start`` until now."""
        self._add("X", name, start, self.now() - start, details)

    def instant(self, name: str, **details: Any) -> None:
        """Note that something happened now."""
        self._add("i", name, self.now(), 0, {"s": "t", **details})

    def link(self, name: str, key: str, at: int, *, ends: bool) -> None:
        """Note one end of an arrow from where something was made to where it is used, in spans that end at ``at``."""
        self._add("f" if ends else "s", name, at - _WITHIN, 0, {"id": f"{self._process}.{key}"})

    def _add(self, kind: str, name: str, start: int, nanoseconds: int, details: dict[str, Any]) -> None:
        thread = threading.get_native_id()
        if thread not in self._threads:
            self._threads[thread] = threading.current_thread().name
        self._events.append((kind, name, start, nanoseconds, thread, details))

    def events(self) -> list[Event]:
        """Return the events, with times in microseconds."""
        names = [("process_name", 0, self._name)]
        names += [("thread_name", thread, name) for thread, name in self._threads.items()]
        found: list[Event] = [
            {"ph": "M", "name": kind, "pid": self._process, "tid": thread, "args": {"name": name}}
            for kind, thread, name in names
        ]
        for kind, name, start, nanoseconds, thread, details in list(self._events):
            event: Event = {
                "ph": kind,
                "name": name,
                "ts": start / 1000,
                "pid": self._process,
                "tid": thread,
                "cat": "batch",
            }
            if kind == "X":
                event |= {"dur": nanoseconds / 1000, "args": details}
            elif kind == "i":
                event |= {"s": details.pop("s", "t"), "args": details}
            else:
                event |= {**details, "bp": "e"}
            found.append(event)
        return found

    def save(self, target: str | Path) -> None:
        """Write the events to a file."""
        save_events(self.events(), target)


def save_events(events: Iterable[Event], target: str | Path) -> None:
    """Write events of one or several processes to a file, with times from the first one on."""
    events = list(events)
    first = min((event["ts"] for event in events if "ts" in event), default=0.0)
    shifted = [{**event, "ts": event["ts"] - first} if "ts" in event else event for event in events]
    _core.write_file(target, json.dumps({"traceEvents": shifted}).encode())


def save_part(trace: Trace, folder: Path, worker: int) -> None:
    """Write the events of a worker to a folder that all workers see."""
    save_events(trace.events(), _file(folder, worker))


def merge(folder: Path, workers: int, target: Path) -> None:
    """Write the events of all workers to one file, and remove theirs."""
    files = [_file(folder, worker) for worker in range(workers)]
    events = [event for file in files for event in json.loads(file.read_text())["traceEvents"]]
    save_events(events, target)
    for file in files:
        file.unlink()


def _file(folder: Path, worker: int) -> Path:
    return folder / f"trace-{worker}.json"
