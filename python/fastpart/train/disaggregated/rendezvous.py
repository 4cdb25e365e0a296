"""How the processes of a run find each other: the receiver writes its address to the folder of the run."""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ... import _core
from ...core.parsing import json_object
from ...errors import TrainingError
from .messages import Kind, Link
from .settings import Settings
from .wire import ConnectionClosedError

_START_SECONDS = 120.0
_LOOK_SECONDS = 0.05
NONCE_BYTES = PROOF_BYTES = 32

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
    where = json_object(folder / ADDRESS, None, {"address": str, "port": int})
    return where["address"], where["port"]


def connect(address: Address, settings: Settings, who: Mapping[str, Any]) -> tuple[Link, dict[str, Any]]:
    """Connect to a receiver, and return its answer."""
    try:
        link = Link(socket.create_connection(address, timeout=_START_SECONDS))
    except OSError as error:
        raise TrainingError(f"the receiver at {address[0]} does not answer ({error})") from error
    try:
        link.limit(_START_SECONDS, _START_SECONDS)
        _prove(link, address[0], settings.token)
        link.send({"kind": Kind.HELLO, **who})
        welcome = link.receive()
        link.limit(None, None)
        return link, welcome.content
    except BaseException:
        link.close()
        raise


def _prove(link: Link, address: str, token: str) -> None:
    """Prove to a receiver that this process is of its run, and let it prove the same."""
    own = secrets.token_bytes(NONCE_BYTES)
    nonces = link.read(NONCE_BYTES) + own
    link.write(own + proof_of(token, "process", nonces))
    with suppress(ConnectionClosedError):
        if hmac.compare_digest(link.read(PROOF_BYTES), proof_of(token, "receiver", nonces)):
            return
    raise TrainingError(f"the receiver at {address} is of another run")


def proof_of(token: str, role: str, nonces: bytes) -> bytes:
    """Return what only processes of the run can tell. It differs by role, so nobody can return a proof it was sent."""
    return hmac.digest(token.encode(), role.encode() + nonces, "sha256")
