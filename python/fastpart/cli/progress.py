"""A progress bar on stderr, only where somebody looks."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

WIDTH = 30

_COUNTED = 100_000
"""From so many units on their pace says more than their number."""


@contextmanager
def progress_bar(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Give what every long function takes; draw the progress if stderr is a terminal, and wipe it in the end."""
    running = {"threads": options.threads, "memory_limit": options.memory_limit, "progress": None}
    if options.quiet or not sys.stderr.isatty():
        yield running
        return
    try:
        yield running | {"progress": _Bar()}
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


class _Bar:
    def __init__(self) -> None:
        self.phase = ""
        self.begun = 0.0

    def __call__(self, phase: str, done: int, total: int) -> None:
        now = time.monotonic()
        if phase != self.phase:
            self.phase, self.begun = phase, now
        share = done / total if total else 1.0
        bar = ("#" * int(share * WIDTH)).ljust(WIDTH, ".")
        counted = total >= _COUNTED and now > self.begun + 0.2
        pace = f"{done / (now - self.begun) / 1e6:7.1f} M/s" if counted else f"{done} of {total}"
        sys.stderr.write(f"\r\x1b[K{phase:12} [{bar}] {share:4.0%} {pace}")
        sys.stderr.flush()
