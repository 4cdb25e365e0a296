"""How the processes of a run find each other: the receiver writes its address to the folder of the run."""

from __future__ import annotations

import hmac
import json
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ... import _core
from ...errors import TrainingError
from .messages import Kind, Link, Message, MessageError
from .settings import Settings
from .wire import ConnectionClosedError, ConnectionSilentError

HELLO_SECONDS = 10.0
"""Time for a new connection to say who it is."""

_MOST_HELLO = 1 << 12
"""Longest JSON of a connection that has not identified itself."""

_START_SECONDS = 120.0
_LOOK_SECONDS = 0.05

ADDRESS = "receiver.json"

Address = tuple[str, int]


def listen(folder: Path, address: str) -> socket.socket:
    """Listen on a free port, and write where."""
    server = socket.create_server((address, 0))
    where = {"address": address, "port": server.getsockname()[1]}
    _core.write_file(folder / ADDRESS, json.dumps(where).encode())
    return server


def address_of(folder: Path) -> Address:
    """Return where the receiver listens whose settings are in a folder. Wait until it does."""
    deadline = time.monotonic() + _START_SECONDS
    while not (folder / ADDRESS).exists():
        if time.monotonic() > deadline:
            raise TrainingError(f"the receiver did not start within {_START_SECONDS:g} s")
        time.sleep(_LOOK_SECONDS)
    where = json.loads((folder / ADDRESS).read_text())
    return where["address"], where["port"]


def connect(address: Address, settings: Settings, who: Mapping[str, int]) -> tuple[Link, dict[str, Any]]:
    """Connect to a receiver, and return its answer."""
    try:
        link = Link(socket.create_connection(address, timeout=_START_SECONDS))
    except OSError as error:
        raise TrainingError(f"the receiver at {address[0]} does not answer ({error})") from error
    link.send({"kind": Kind.HELLO, "token": settings.token, **who})
    message = link.receive()
    if message.kind != Kind.WELCOME:
        raise MessageError(f"the receiver answered with a message of kind {message.kind!r}")
    link.wait_for(None)
    return link, message.content


class Strangers:
    """Connections that have not identified themselves yet. The oldest one gives way when there are too many.

    Processes of the run identify themselves at once. So the oldest connection is none of theirs.
    """

    def __init__(self, most: int) -> None:
        self._most, self._lines, self._lock = most, list[socket.socket](), threading.Lock()

    def admit(self, line: socket.socket) -> None:
        """Add a connection."""
        with self._lock:
            self._lines.append(line)
            if len(self._lines) > self._most:
                with suppress(OSError):
                    self._lines.pop(0).shutdown(socket.SHUT_RDWR)  # its thread notices, and closes it

    def leave(self, line: socket.socket) -> None:
        """Remove a connection that is known or closed."""
        with self._lock:
            if line in self._lines:
                self._lines.remove(line)


def greet(line: socket.socket, settings: Settings) -> tuple[Link, Message] | None:
    """Return a new connection and its first message. Close it, and return None, unless it is of the run."""
    link = Link(line)
    link.hurry(HELLO_SECONDS)
    try:
        message = link.receive(most_text=_MOST_HELLO)
    except (MessageError, ConnectionClosedError, ConnectionSilentError):
        message = Message({}, (), 0)
    token = message.content.get("token")
    # The time of the comparison tells nothing about the token.
    known = isinstance(token, str) and hmac.compare_digest(token.encode(), settings.token.encode())
    if known and message.kind == Kind.HELLO:
        link.wait_for(None)
        link.limit_sending(settings.timeout)
        return link, message
    link.close()
    return None
