"""How the processes of a run find each other: the receiver writes its address to the folder of the run.

Both sides prove that they know the token of the run. Strangers cost no thread, and a few bytes each.
:mod:`multiprocessing.connection` would not do. One silent stranger keeps all others out. Both sides prove alike, so an
impostor can let another process answer for it. What comes is copied.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from .... import _core
from ....core.parsing import json_object
from ....errors import TrainingError
from .messages import ConnectionClosedError, Kind, Link
from .settings import Settings

WAITS_FOR_PEERS = True
"""An error from here may be the fault of another process."""

_START_SECONDS = 120.0
_LOOK_SECONDS = 0.05
_NONCE_BYTES = _PROOF_BYTES = 32

_PROOF_SECONDS = 10.0
"""Time for a new connection to prove that it is of the run."""

_PAUSE_SECONDS = 0.05
"""Time after a connection that could not be accepted."""

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


async def admit(server: socket.socket, token: str, most: int, welcome: Callable[[Link], None]) -> None:
    """Call ``welcome`` with each connection that proves that it knows the token, until the server is shut down.

    The oldest stranger gives way when there are too many. Processes of the run prove at once that they are of it, so
    the oldest is none of theirs.
    """
    loop, strangers = asyncio.get_running_loop(), dict[socket.socket, asyncio.Task[None]]()

    def leave(line: socket.socket, stranger: asyncio.Task[None]) -> None:
        strangers.pop(line, None)
        if stranger.cancelled() or stranger.exception():
            line.close()
        else:
            welcome(Link(line))

    server.setblocking(False)
    while server.fileno() >= 0:
        try:
            line, _ = await loop.sock_accept(server)
        except OSError:  # too many descriptors, a connection that is gone already, or the end
            await asyncio.sleep(_PAUSE_SECONDS)
            continue
        if len(strangers) >= most:
            strangers.pop(next(iter(strangers))).cancel()
        strangers[line] = loop.create_task(_examine(line, token))
        strangers[line].add_done_callback(partial(leave, line))
        await asyncio.sleep(0)  # let the others go on, however many come


async def _examine(line: socket.socket, token: str) -> None:
    """Prove to a new connection that this is the receiver of the run, after it has proved that it is of it."""
    loop, nonce, answer = asyncio.get_running_loop(), secrets.token_bytes(_NONCE_BYTES), b""
    line.setblocking(False)
    async with asyncio.timeout(_PROOF_SECONDS):
        await loop.sock_sendall(line, nonce)
        while (missing := _NONCE_BYTES + _PROOF_BYTES - len(answer)) > 0:
            data = await loop.sock_recv(line, missing)
            if not data:
                raise ConnectionResetError
            answer += data
        nonces = nonce + answer[:_NONCE_BYTES]
        if not hmac.compare_digest(answer[_NONCE_BYTES:], proof_of(token, "process", nonces)):
            raise PermissionError
        await loop.sock_sendall(line, proof_of(token, "receiver", nonces))


def _prove(link: Link, address: str, token: str) -> None:
    """Prove to a receiver that this process is of its run, and let it prove the same."""
    own = secrets.token_bytes(_NONCE_BYTES)
    nonces = link.read(_NONCE_BYTES) + own
    link.write(own + proof_of(token, "process", nonces))
    with suppress(ConnectionClosedError):
        if hmac.compare_digest(link.read(_PROOF_BYTES), proof_of(token, "receiver", nonces)):
            return
    raise TrainingError(f"the receiver at {address} is of another run")


def proof_of(token: str, role: str, nonces: bytes) -> bytes:
    """Return what only processes of the run can tell. It differs by role, so nobody can return a proof it was sent."""
    return hmac.digest(token.encode(), role.encode() + nonces, "sha256")
