"""Lets processes of the run in. Strangers cost no thread, and a few bytes each."""

from __future__ import annotations

import asyncio
import hmac
import secrets
import socket
from collections.abc import Callable
from functools import partial

from .messages import Link
from .rendezvous import NONCE_BYTES, PROOF_BYTES, proof_of

_PROOF_SECONDS = 10.0
"""Time for a new connection to prove that it is of the run."""

_PAUSE_SECONDS = 0.05
"""Time after a connection that could not be accepted."""


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
        strangers[line] = loop.create_task(_exchange(line, token))
        strangers[line].add_done_callback(partial(leave, line))
        await asyncio.sleep(0)  # let the others go on, however many come


async def _exchange(line: socket.socket, token: str) -> None:
    """Prove to a new connection that this is the receiver of the run, after it has proved that it is of it."""
    loop, nonce, answer = asyncio.get_running_loop(), secrets.token_bytes(NONCE_BYTES), b""
    line.setblocking(False)
    async with asyncio.timeout(_PROOF_SECONDS):
        await loop.sock_sendall(line, nonce)
        while len(answer) < NONCE_BYTES + PROOF_BYTES:
            data = await loop.sock_recv(line, NONCE_BYTES + PROOF_BYTES - len(answer))
            if not data:
                raise ConnectionResetError
            answer += data
        nonces = nonce + answer[:NONCE_BYTES]
        if not hmac.compare_digest(answer[NONCE_BYTES:], proof_of(token, "process", nonces)):
            raise PermissionError
        await loop.sock_sendall(line, proof_of(token, "receiver", nonces))
