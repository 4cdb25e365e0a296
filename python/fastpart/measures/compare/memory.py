"""The memory that a call needs beyond what its process already had."""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ...core.processes import anonymous_bytes

PERIOD = 0.001
"""Seconds between two looks."""


class Peak:
    """The largest growth so far, in bytes."""

    def __init__(self) -> None:
        self.base = anonymous_bytes()
        self.growth = 0

    def look(self) -> None:
        """Sample the memory in use."""
        self.growth = max(self.growth, anonymous_bytes() - self.base)


@contextmanager
def peak() -> Iterator[Peak]:
    """Watch the anonymous memory of this process while the block runs.

    A thread samples it every millisecond. It needs the GIL, which long calls of the core release. Memory that was freed
    earlier but not returned to the system would hide growth, so it is returned first.
    """
    gc.collect()
    with suppress(AttributeError, OSError):  # a C library without it
        ctypes.CDLL(None).malloc_trim(0)
    seen, over = Peak(), threading.Event()

    def watch() -> None:
        while not over.wait(PERIOD):
            seen.look()

    thread = threading.Thread(target=watch, name="memory", daemon=True)
    thread.start()
    try:
        yield seen
        seen.look()
    finally:
        over.set()
        thread.join()
