"""Bytes over a socket. Here, and only here, processes wait for each other."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import TrainingError

_LEAST_SECONDS = 1e-3
"""A time limit of 0 would be none."""


class ConnectionClosedError(TrainingError):
    """The other side has closed the connection, or is gone."""


class ConnectionSilentError(TrainingError):
    """The other side sent nothing, or read nothing, for too long."""


def read_into(line: socket.socket, view: memoryview, until: float | None = None) -> None:
    """Fill memory with what comes next, until a time of the monotonic clock if there is one."""
    while view:
        if until is not None:
            line.settimeout(max(until - time.monotonic(), _LEAST_SECONDS))
        with _named(line):
            count = line.recv_into(view, 0, socket.MSG_WAITALL)
        if not count:
            raise ConnectionClosedError("the other side has closed the connection")
        view = view[count:]


def write(line: socket.socket, *pieces: bytes | memoryview) -> None:
    """Send bytes."""
    with _named(line):
        for piece in pieces:
            line.sendall(piece)


@contextmanager
def _named(line: socket.socket) -> Iterator[None]:
    try:
        yield
    except BlockingIOError:  # the time limit of sending
        raise ConnectionSilentError("the other side reads nothing") from None
    except TimeoutError:
        raise ConnectionSilentError(f"the other side is silent for {line.gettimeout():g} s") from None
    except OSError as error:
        raise ConnectionClosedError(f"the connection is broken ({error})") from error
