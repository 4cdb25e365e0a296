"""Bytes over a socket. Here, and only here, processes wait for each other."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import TrainingError


class Ended(TrainingError):
    """The other side has closed the connection, or is gone."""


class Silent(TrainingError):
    """The other side sent nothing, or read nothing, for too long."""


def read_into(line: socket.socket, view: memoryview) -> None:
    """Fill memory with what comes next."""
    while view:
        with _named(line):
            count = line.recv_into(view, 0, socket.MSG_WAITALL)
        if not count:
            raise Ended("the other side has closed the connection")
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
    except TimeoutError:
        raise Silent(f"the other side is silent for {line.gettimeout():g} s") from None
    except OSError as error:
        raise Ended(f"the connection is broken ({error})") from error
