"""Messages over a socket: JSON and arrays, with their lengths and checksums. Nothing in them is executed."""

from __future__ import annotations

import json
import math
import select
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import TrainingError
from .wire import read_into, write

Array = npt.NDArray[Any]
Spec = tuple[np.dtype[Any], tuple[int, ...]]
"""Type and shape of an array."""

Destination = Callable[[Mapping[str, Any], Sequence[Spec]], Sequence[Array]]
"""Returns arrays to receive into, given the content of a message and their types and shapes."""

_MAGIC, _VERSION = b"fpar", 1

_PREFIX = struct.Struct("<4sHHIQI")
"""Magic, version, zero, length of the JSON, length of the arrays, checksum of the arrays."""

_CHECKSUM = struct.Struct("<I")
"""Checksum of the prefix and the JSON."""

MOST_TEXT = 1 << 20
"""Longest JSON."""

_LONGEST_SECONDS = 86_400.0
"""Longest time limit that is passed to the kernel."""


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
    """A message: its JSON, its arrays, and its length."""

    content: dict[str, Any]
    arrays: Sequence[Array]
    num_bytes: int

    @property
    def kind(self) -> str:
        """The kind of the message."""
        return str(self.content.get("kind"))


class Link:
    """One end of a connection. Several threads may send, and one receives."""

    def __init__(self, line: socket.socket) -> None:
        self._line, self._sending = line, threading.Lock()
        self._until: float | None = None
        if line.family != socket.AF_UNIX:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def wait_for(self, seconds: float | None) -> None:
        """Raise :class:`.wire.ConnectionSilentError` when the other side is silent for so long."""
        self._until = None
        self._line.settimeout(seconds)

    def hurry(self, seconds: float) -> None:
        """Raise :class:`.wire.ConnectionSilentError` unless all comes within so many seconds from now."""
        self._until = time.monotonic() + seconds

    def limit_sending(self, seconds: float) -> None:
        """Raise :class:`.wire.ConnectionSilentError` when the other side reads nothing for so long."""
        whole, part = divmod(min(seconds, _LONGEST_SECONDS), 1)
        limit = struct.pack("@ll", int(whole), max(int(part * 1e6), int(not whole)))
        self._line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)

    def send(self, content: Mapping[str, Any], arrays: Sequence[Array] = ()) -> int:
        """Send a message, and return its length."""
        arrays = [np.ascontiguousarray(array) for array in arrays]
        head = framed(content, arrays)
        bodies = [_bytes_of(array) for array in arrays if array.nbytes]
        with self._sending:
            write(self._line, head, *bodies)
        return len(head) + sum(len(body) for body in bodies)

    def has_input(self) -> bool:
        """Return whether :meth:`receive` has something to read now."""
        return bool(select.select([self._line], [], [], 0)[0])

    def receive(
        self, most: int = 0, destination: Destination | None = None, most_text: int = MOST_TEXT
    ) -> Message:
        """Return the next message, whose arrays and JSON have at most so many bytes.

        Raises
        ------
        MessageError
            The bytes are no message, or a checksum is wrong.
        ConnectionClosedError, ConnectionSilentError
            There is none.
        """
        prefix = self._read(_PREFIX.size)
        magic, version, zero, length, size, checksum = _PREFIX.unpack(prefix)
        if magic != _MAGIC or zero:
            raise MessageError("a message does not begin like one of fastpart")
        if version != _VERSION:
            raise MessageError(
                f"a message of version {version}, not {_VERSION}. Use the same fastpart everywhere"
            )
        if length > most_text or size > most:
            raise MessageError(f"a message of {length + size:,} bytes is longer than allowed")
        (expected,) = _CHECKSUM.unpack(self._read(_CHECKSUM.size))
        text = self._read(length)
        if zlib.crc32(text, zlib.crc32(prefix)) != expected:
            raise MessageError("the checksum of a message is wrong")
        content, specs = _parsed(text)
        if sum(_num_bytes(spec) for spec in specs) != size:
            raise MessageError("the arrays of a message are not as long as it says")
        arrays = (
            [np.empty(shape, dtype) for dtype, shape in specs]
            if destination is None
            else destination(content, specs)
        )
        found = 0
        for array in arrays:
            if array.nbytes:
                body = _bytes_of(array)
                read_into(self._line, body, self._until)
                found = zlib.crc32(body, found)
        if found != checksum:
            raise MessageError("the checksum of a message is wrong")
        return Message(content, arrays, len(prefix) + _CHECKSUM.size + length + size)

    def _read(self, count: int) -> bytes:
        data = bytearray(count)
        read_into(self._line, memoryview(data), self._until)
        return bytes(data)

    def close(self) -> None:
        """Close the connection. What waits for it, ends."""
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)
        self._line.close()


def framed(content: Mapping[str, Any], arrays: Sequence[Array]) -> bytes:
    """Return what comes before the bytes of the arrays."""
    described = [[array.dtype.str, list(array.shape)] for array in arrays]
    text = json.dumps({**content, "arrays": described}).encode()
    size = checksum = 0
    for array in arrays:
        if array.nbytes:
            checksum = zlib.crc32(_bytes_of(array), checksum)
            size += array.nbytes
    prefix = _PREFIX.pack(_MAGIC, _VERSION, 0, len(text), size, checksum)
    return prefix + _CHECKSUM.pack(zlib.crc32(text, zlib.crc32(prefix))) + text


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
