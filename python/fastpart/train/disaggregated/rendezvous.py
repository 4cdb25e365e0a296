"""How the processes of a run find each other: the receiver writes its address to the folder of the run."""

from __future__ import annotations

import hmac
import json
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import _core
from ...errors import TrainingError
from .messages import Damaged, Kind, Link, Message
from .settings import Settings
from .wire import Ended, Silent

HELLO_SECONDS = 10.0
"""Time for a new connection to say who it is."""

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
        raise Damaged(f"the receiver answered with a message of kind {message.kind!r}")
    link.wait_for(None)
    return link, message.content


def greet(line: socket.socket, settings: Settings) -> tuple[Link, Message] | None:
    """Return a new connection and its first message. Close it, and return None, unless it is of the run."""
    link = Link(line)
    link.wait_for(HELLO_SECONDS)
    try:
        message = link.receive()
    except (Damaged, Ended, Silent):
        message = Message({}, (), 0)
    token = message.content.get("token")
    # The time of the comparison tells nothing about the token.
    known = isinstance(token, str) and hmac.compare_digest(token.encode(), settings.token.encode())
    if known and message.kind == Kind.HELLO:
        link.wait_for(None)
        return link, message
    link.close()
    return None
