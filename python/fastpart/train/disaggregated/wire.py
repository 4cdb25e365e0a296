"""Bytes over a socket. Here, and only here, processes wait for each other."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence

from ...errors import TrainingError

_TIME = struct.Struct("@ll")
"""Seconds and microseconds, as the kernel takes them."""

_LONGEST_SECONDS = 86_400.0
_MOST_PIECES = 1024
"""Pieces of memory that the kernel takes at once."""


class ConnectionClosedError(TrainingError):
    """The other side has closed the connection, or is gone."""


class ConnectionSilentError(TrainingError):
    """The other side sent nothing, or read nothing, for too long."""


def limit(line: socket.socket, option: int, seconds: float | None) -> None:
    """Limit how long one may wait to receive (SO_RCVTIMEO) or send (SO_SNDTIMEO) anything. None: for ever."""
    microseconds = 0 if seconds is None else max(1, int(min(seconds, _LONGEST_SECONDS) * 1e6))
    line.setsockopt(socket.SOL_SOCKET, option, _TIME.pack(*divmod(microseconds, 1_000_000)))


def read_some(line: socket.socket, view: memoryview) -> int:
    """Receive what has come into memory, and return how many bytes that is. Wait for the first one."""
    try:
        count = line.recv_into(view)
    except BlockingIOError:
        raise ConnectionSilentError(
            f"the other side is silent for {_seconds(line, socket.SO_RCVTIMEO):g} s"
        ) from None
    except OSError as error:
        raise ConnectionClosedError(f"the connection is broken ({error})") from error
    if not count:
        raise ConnectionClosedError("the other side has closed the connection")
    return count


def write(line: socket.socket, pieces: Sequence[bytes | memoryview]) -> None:
    """Send bytes from where they lie in memory."""
    views = [memoryview(piece) for piece in pieces]
    try:
        while views:
            count = line.sendmsg(views[:_MOST_PIECES])
            while views and count >= len(views[0]):
                count -= len(views.pop(0))
            if views:
                views[0] = views[0][count:]
    except BlockingIOError:
        seconds = _seconds(line, socket.SO_SNDTIMEO)
        raise ConnectionSilentError(f"the other side reads nothing for {seconds:g} s") from None
    except OSError as error:
        raise ConnectionClosedError(f"the connection is broken ({error})") from error


def _seconds(line: socket.socket, option: int) -> float:
    whole, part = _TIME.unpack(line.getsockopt(socket.SOL_SOCKET, option, _TIME.size))
    return round(float(whole + part / 1e6), 2)  # the kernel rounds up
