"""A batch worker or compute worker, as the receiver sees it."""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from ...errors import TrainingError
from .messages import Link, framed
from .wire import ConnectionClosedError, ConnectionSilentError


class Peer:
    """A process of the run. What it is sent waits in a queue, so that nobody waits for one that reads nothing.

    Parameters
    ----------
    name : str
        Its name in errors.
    link : Link
        The connection to it.
    failed : callable
        Called with the error if it reads nothing for too long.
    pid : int, optional
        Its process, if that may be killed: if it is on this machine, and hangs.

    Attributes
    ----------
    silent_seconds : float
        For how long it has sent nothing although it has work.
    """

    def __init__(
        self, name: str, link: Link, failed: Callable[[TrainingError], None], pid: int | None = None
    ) -> None:
        self.name, self.link, self.pid = name, link, pid
        self._failed, self._queue = failed, queue.SimpleQueue[bytes | None]()
        self._heard, self.silent_seconds = 0, 0.0
        self._sender = threading.Thread(target=self._send, daemon=True)
        self._sender.start()

    def post(self, content: Mapping[str, Any]) -> None:
        """Send a message soon, as it is now."""
        self._queue.put(framed(content))

    def leave(self, seconds: float = 0) -> None:
        """Send no more, and wait so long for what is under way."""
        self._queue.put(None)
        self._sender.join(seconds)

    def _send(self) -> None:
        try:
            while (message := self._queue.get()) is not None:
                self.link.write(message)
        except ConnectionSilentError as error:
            self._failed(TrainingError(f"{self.name} hangs: {error}"))
        except ConnectionClosedError:  # who receives from it notices, too
            pass

    def look(self, seconds: float, has_work: bool) -> None:
        """Note whether it has sent anything since the last look, some seconds ago.

        Looks are counted, because a clock also runs while this process is stopped.
        """
        silent = has_work and self._heard == self.link.received
        self.silent_seconds = self.silent_seconds + seconds if silent else 0.0
        self._heard = self.link.received

    def kill(self) -> None:
        """Kill the process, once."""
        assert self.pid is not None
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.pid = None
