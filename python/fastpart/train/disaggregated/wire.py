"""Bytes over a socket. Here, and only here, processes wait for each other."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...errors import TrainingError

_TIME = struct.Struct("@ll")
"""Seconds and microseconds, as the kernel takes them."""

_LONGEST_SECONDS = 86_400.0


class ConnectionClosedError(TrainingError):
    """The other side has closed the connection, or is gone."""


class ConnectionSilentError(TrainingError):
    """The other side sent nothing, or read nothing, for too long."""


def limit(line: socket.socket, option: int, seconds: float | None) -> None:
    """Limit how long one may wait to receive (SO_RCVTIMEO) or send (SO_SNDTIMEO) anything. None: for ever."""
    microseconds = 0 if seconds is None else max(1, int(min(seconds, _LONGEST_SECONDS) * 1e6))
    line.setsockopt(socket.SOL_SOCKET, option, _TIME.pack(*divmod(microseconds, 1_000_000)))


def read_into(line: socket.socket, views: Sequence[memoryview]) -> Iterator[int]:
    """Fill memory with what comes next. Yield the length of each piece as it comes."""
    for view in views:
        while view:
            with _named(line, socket.SO_RCVTIMEO, "is silent"):
                count = line.recv_into(view)
            if not count:
                raise ConnectionClosedError("the other side has closed the connection")
            yield count
            view = view[count:]


def write(line: socket.socket, views: Sequence[bytes | memoryview]) -> None:
    """Send bytes from where they lie in memory."""
    *before, last = [view for view in views if view]
    with _named(line, socket.SO_SNDTIMEO, "reads nothing"):
        for view in before:
            line.sendall(view, socket.MSG_MORE)  # small ones share a packet
        line.sendall(last)


@contextmanager
def _named(line: socket.socket, option: int, what: str) -> Iterator[None]:
    try:
        yield
    except BlockingIOError:
        whole, part = _TIME.unpack(line.getsockopt(socket.SOL_SOCKET, option, _TIME.size))
        seconds = round(whole + part / 1e6, 2)  # the kernel rounds up
        raise ConnectionSilentError(f"the other side {what} for {seconds:g} s") from None
    except OSError as error:
        raise ConnectionClosedError(f"the connection is broken ({error})") from error
