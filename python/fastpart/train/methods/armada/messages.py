"""Messages over a socket: JSON and arrays, with their lengths. Nothing in them is executed.

Here, and only here, processes wait for each other.
"""

from __future__ import annotations

import json
import math
import select
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from ....errors import TrainingError

WAITS_FOR_PEERS = True
"""An error from here may be the fault of another process."""

WAITS_FOR_PEERS = True
"""An error from here may be the fault of another process."""

Array = npt.NDArray[Any]
Spec = tuple[np.dtype[Any], tuple[int, ...]]
"""Type and shape of an array."""

_HEADER = struct.Struct("<4sIQ")
"""Version, length of the JSON, and length of the arrays."""

_VERSION = b"fpa2"

_MOST_TEXT = 1 << 20
"""Longest JSON."""


_TIME = struct.Struct("@ll")
"""Seconds and microseconds, as the kernel takes them."""

_LONGEST_SECONDS = 86_400.0


class ConnectionClosedError(TrainingError):
    """The other side has closed the connection, or is gone."""


class ConnectionSilentError(TrainingError):
    """The other side sent nothing, or read nothing, for too long."""


class MessageError(TrainingError):
    """Bytes that are no message."""


class Kind(StrEnum):
    """Kinds of messages."""

    HELLO = "hello"
    """A process says who it is."""
    WELCOME = "welcome"
    """The receiver knows it."""
    EPOCH = "epoch"
    """An epoch begins, or a compute worker wants it to."""
    SLICES = "slices"
    """A batch worker has to continue seed slices of another one."""
    LIMIT = "limit"
    """The first step that must not be made yet."""
    BATCH = "batch"
    """A group of batches."""
    STEP = "step"
    """All batches of a step are there."""
    USED = "used"
    """A compute worker has copied its batches of a step."""
    END = "end"
    """There are no more epochs."""


@dataclass(frozen=True)
class Message:
    """A message: its JSON, types and shapes of the arrays that follow, and the length of all."""

    content: dict[str, Any]
    specs: list[Spec]
    num_bytes: int

    @property
    def kind(self) -> str:
        """The kind of the message."""
        return str(self.content.get("kind"))


class Link:
    """One end of a connection. One thread sends, and one receives.

    Attributes
    ----------
    received : int
        Bytes that have come.
    """

    def __init__(self, line: socket.socket) -> None:
        self._line, self.received = line, 0
        line.settimeout(None)
        if line.family != socket.AF_UNIX:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def limit(self, receiving: float | None, sending: float | None) -> None:
        """Raise :class:`ConnectionSilentError` when the other side is silent, or reads nothing, for so long."""
        _limit(self._line, socket.SO_RCVTIMEO, receiving)
        _limit(self._line, socket.SO_SNDTIMEO, sending)

    def send(self, content: Mapping[str, Any], arrays: Sequence[Array] = ()) -> int:
        """Send a message, and return its length."""
        arrays = [np.ascontiguousarray(array) for array in arrays]
        return self.write(framed(content, arrays), *map(_bytes_of, arrays))

    def write(self, *pieces: bytes | memoryview) -> int:
        """Send bytes, and return their number."""
        write(self._line, pieces)
        return sum(map(len, pieces))

    def has_input(self) -> bool:
        """Return whether :meth:`receive` has something to read now."""
        return bool(select.select([self._line], [], [], 0)[0])

    def receive(self, most: int = 0) -> Message:
        """Return the next message. Its arrays have at most so many bytes, and are to be read with :meth:`fill`.

        Raises
        ------
        MessageError
            The bytes are no message.
        ConnectionClosedError, ConnectionSilentError
            There is none.
        """
        version, length, size = _HEADER.unpack(self.read(_HEADER.size))
        if version != _VERSION:
            raise MessageError("a message is not of this version of fastpart. Use the same one everywhere")
        if length > _MOST_TEXT or size > most:
            raise MessageError(f"a message of {length + size:,} bytes is longer than allowed")
        content, specs = _parsed(self.read(length))
        if sum(_num_bytes(spec) for spec in specs) != size:
            raise MessageError("the arrays of a message are not as long as it says")
        return Message(content, specs, _HEADER.size + length + size)

    def fill(self, arrays: Sequence[Array]) -> None:
        """Receive the arrays of a message into memory."""
        self._read_into([_bytes_of(array) for array in arrays])

    def read(self, count: int) -> bytes:
        """Return the next bytes."""
        data = bytearray(count)
        self._read_into([memoryview(data)])
        return bytes(data)

    def _read_into(self, views: Sequence[memoryview]) -> None:
        for count in _read_into(self._line, views):
            self.received += count

    def end(self) -> None:
        """End the connection. What waits for it, ends."""
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection, after the last use of it."""
        self.end()
        self._line.close()


def framed(content: Mapping[str, Any], arrays: Sequence[Array] = ()) -> bytes:
    """Return what comes before the bytes of the arrays."""
    described = [[array.dtype.str, array.shape] for array in arrays]
    text = json.dumps({**content, "arrays": described}).encode()
    return _HEADER.pack(_VERSION, len(text), sum(array.nbytes for array in arrays)) + text


def _parsed(text: bytes) -> tuple[dict[str, Any], list[Spec]]:
    try:
        content = json.loads(text)
        specs = [(np.dtype(str(dtype)), tuple(shape)) for dtype, shape in content.pop("arrays")]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, SyntaxError):
        raise MessageError("the header of a message is no list of arrays") from None
    for dtype, shape in specs:
        # dtype("O") would hold pointers.
        if dtype.kind not in "biuf" or not all(type(length) is int and length >= 0 for length in shape):
            raise MessageError(f"a message has an array of type {dtype} and shape {shape}")
    return content, specs


def _bytes_of(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _num_bytes(spec: Spec) -> int:
    return spec[0].itemsize * math.prod(spec[1])


def _limit(line: socket.socket, option: int, seconds: float | None) -> None:
    """Limit how long one may wait to receive (SO_RCVTIMEO) or send (SO_SNDTIMEO) anything. None: for ever."""
    microseconds = 0 if seconds is None else max(1, int(min(seconds, _LONGEST_SECONDS) * 1e6))
    line.setsockopt(socket.SOL_SOCKET, option, _TIME.pack(*divmod(microseconds, 1_000_000)))


def _read_into(line: socket.socket, views: Sequence[memoryview]) -> Iterator[int]:
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
