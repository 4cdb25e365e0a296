"""Items that a thread makes ahead of their use."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Generic, TypeVar

T = TypeVar("T")

_PATIENCE = 2.0
"""Seconds that :meth:`Ahead.close` waits for the thread. It may wait for a process that is gone."""


@contextmanager
def ended(items: Iterator[T]) -> Generator[Iterator[T]]:
    """Close an iterator after its use, as far as it can be closed and no thread is reading from it."""
    try:
        yield items
    finally:
        if not getattr(items, "gi_running", False):
            getattr(items, "close", _nothing)()


def _nothing() -> None:
    """Do nothing."""


class Ahead(Generic[T]):
    """The items of an iterator. A thread makes the next one while the last one is in use.

    Parameters
    ----------
    items : iterator
        The items. An error of the iterator is raised in the place of an item.
    leave : callable
        Called by the thread if it ends early.
    """

    def __init__(self, items: Iterator[T], leave: Callable[[], None]) -> None:
        self._items, self._leave = items, leave
        self._ready: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(1)
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="fastpart-fetch", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        error: BaseException | None = None
        try:
            with ended(self._items) as items:
                for item in items:
                    if self._closed:
                        break
                    self._ready.put((item, None))
        except BaseException as raised:
            error = raised
        try:
            self._leave()
        except BaseException as raised:
            error = error or raised
        if not self._closed:
            self._ready.put((None, error or StopIteration()))
        error = None  # it refers to this frame, which would keep all that it read from

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        item, error = self._ready.get()
        if error is not None:
            raise error
        return item  # type: ignore[return-value]  # there is no error

    def close(self) -> None:
        """End the thread."""
        self._closed = True
        for _ in range(int(_PATIENCE * 100)):
            with suppress(queue.Empty):
                self._ready.get_nowait()
            self._thread.join(0.01)
            if not self._thread.is_alive():
                return
