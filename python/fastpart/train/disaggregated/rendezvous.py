"""How the processes of a run find each other: the receiver writes its address to the folder of the run."""

from __future__ import annotations

import hmac
import json
import secrets
import selectors
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ... import _core
from ...errors import TrainingError
from .messages import Kind, Link
from .settings import Settings
from .wire import ConnectionClosedError

PROOF_SECONDS = 10.0
"""Time for a new connection to prove that it is of the run."""

_LOOK_SECONDS = 0.5
"""Time between two looks for strangers that had their time."""

_PAUSE_SECONDS = 0.05
"""Time after a connection that could not be accepted."""

_START_SECONDS = 120.0
_NONCE_BYTES = _PROOF_BYTES = 32

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
        time.sleep(_PAUSE_SECONDS)
    where = json.loads((folder / ADDRESS).read_text())
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
    own = secrets.token_bytes(_NONCE_BYTES)
    nonces = link.read(_NONCE_BYTES) + own
    link.write(own + _proof(token, "process", nonces))
    with suppress(ConnectionClosedError):
        if hmac.compare_digest(link.read(_PROOF_BYTES), _proof(token, "receiver", nonces)):
            return
    raise TrainingError(f"the receiver at {address} is of another run")


def _proof(token: str, role: str, nonces: bytes) -> bytes:
    """Return what only processes of the run can tell. It differs by role, so nobody can return a proof it was sent."""
    return hmac.digest(token.encode(), role.encode() + nonces, "sha256")


class Stranger:
    """A connection that has not proved yet that it is of the run."""

    def __init__(self, line: socket.socket, token: str) -> None:
        self.line, self.deadline = line, time.monotonic() + PROOF_SECONDS
        self._token, self._nonce, self._answer = token, secrets.token_bytes(_NONCE_BYTES), b""
        line.setblocking(False)
        line.send(self._nonce)

    def has_proved(self) -> bool:
        """Read what has come, and return whether it is the proof. Raise OSError if it is another one."""
        data = self.line.recv(_NONCE_BYTES + _PROOF_BYTES - len(self._answer))
        self._answer += data
        if data and len(self._answer) < _NONCE_BYTES + _PROOF_BYTES:
            return False
        nonces = self._nonce + self._answer[:_NONCE_BYTES]
        if not hmac.compare_digest(self._answer[_NONCE_BYTES:], _proof(self._token, "process", nonces)):
            raise PermissionError
        self.line.send(_proof(self._token, "receiver", nonces))
        return True


class Door:
    """Lets processes of the run in. Strangers cost no thread, and a few bytes each.

    The oldest stranger gives way when there are too many. Processes of the run prove at once that they are of it, so
    the oldest is none of theirs.

    Parameters
    ----------
    server : socket
        Where they come to.
    token : str
        The secret of the run.
    most : int
        How many strangers there may be.
    """

    def __init__(self, server: socket.socket, token: str, most: int) -> None:
        self._server, self._token, self._most = server, token, most
        self._strangers: dict[socket.socket, Stranger] = {}
        self._selector = selectors.DefaultSelector()
        server.setblocking(False)
        self._selector.register(server, selectors.EVENT_READ)

    def admitted(self) -> Iterator[Link]:
        """Yield connections of the run, until the server is closed."""
        while self._server.fileno() >= 0:
            for key, _ in self._selector.select(_LOOK_SECONDS):
                try:
                    if key.data is None:
                        self._accept()
                    elif key.fileobj in self._strangers and key.data.has_proved():
                        yield Link(self._taken(key.data))
                except OSError:
                    if key.data is None:
                        time.sleep(_PAUSE_SECONDS)
                    else:
                        self._close(key.data)
            while self._strangers and self._oldest.deadline < time.monotonic():
                self._close(self._oldest)
        while self._strangers:
            self._close(self._oldest)
        self._selector.close()

    @property
    def _oldest(self) -> Stranger:
        return next(iter(self._strangers.values()))

    def _accept(self) -> None:
        """Accept a connection. Raise OSError if there are too many descriptors, or it is gone already."""
        line, _ = self._server.accept()
        self._strangers[line] = stranger = Stranger(line, self._token)
        self._selector.register(line, selectors.EVENT_READ, stranger)
        if len(self._strangers) > self._most:
            self._close(self._oldest)

    def _close(self, stranger: Stranger) -> None:
        self._taken(stranger).close()

    def _taken(self, stranger: Stranger) -> socket.socket:
        del self._strangers[stranger.line]
        self._selector.unregister(stranger.line)
        return stranger.line
