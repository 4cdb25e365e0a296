"""Traces of the workers, merged into one file."""

from __future__ import annotations

import json
from pathlib import Path

from ....loading import Trace
from ....loading.scheduling.trace import save_events


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
