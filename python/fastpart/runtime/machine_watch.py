"""A connection between the supervisors of several machines. When one of them fails, all do.

Neither torch nor DGL notices when a machine dies while others wait for its answer.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ..errors import TrainingError

_HELLO, _DONE = b"fastpart %d\n", b"done\n"

_POLL_SECONDS = 0.2

_HELLO_SECONDS = 1.0
"""Time for a new connection to say which machine it is."""

_SILENCE = {"TCP_KEEPIDLE": 3, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": 7000}
"""A machine that has lost its power or its network counts as dead after 7 seconds."""


class MachineWatch:
    """The connections of this machine: from machine 0 to all others, or from another machine to machine 0.

    Raises
    ------
    TrainingError
        A machine did not connect in time.
    """

    def __init__(self, addresses: Sequence[str], port: int, here: int, seconds: float) -> None:
        self._addresses, self._done = addresses, False
        self.lines: dict[socket.socket, int] = {}
        self._heard: dict[socket.socket, bytes] = {}
        deadline = time.monotonic() + seconds
        try:
            if here == 0:
                self._gather(port, deadline)
            else:
                self._join(port, here, deadline)
        except BaseException:
            self.close()
            raise

    def _gather(self, port: int, deadline: float) -> None:
        with socket.create_server((self._addresses[0], port)) as server:
            server.settimeout(_POLL_SECONDS)
            while len(self.lines) < len(self._addresses) - 1:
                with suppress(TimeoutError):
                    line, _ = server.accept()
                    self._greet(line)
                if time.monotonic() > deadline:
                    missing = sorted(set(range(1, len(self._addresses))) - set(self.lines.values()))
                    raise TrainingError(f"{self._names(missing)} did not start. Run the same command there")

    def _greet(self, line: socket.socket) -> None:
        """Accept a connection if it comes from one of our machines."""
        with suppress(OSError, ValueError, IndexError):
            answer = _line_of(line)
            machine = int(answer.split()[1])
            if (
                answer == _HELLO % machine
                and 0 < machine < len(self._addresses)
                and machine not in self.lines.values()
            ):
                self._keep(line, machine)
                return
        line.close()

    def _join(self, port: int, here: int, deadline: float) -> None:
        while True:
            try:
                line = socket.create_connection((self._addresses[0], port), timeout=_POLL_SECONDS)
                line.sendall(_HELLO % here)
                return self._keep(line, 0)
            except OSError as error:
                if time.monotonic() > deadline:
                    raise TrainingError(
                        f"{self._names([0])} does not answer on port {port} ({error.strerror or error}). Run the same "
                        "command there, and open this port"
                    ) from None
                time.sleep(_POLL_SECONDS)

    def _keep(self, line: socket.socket, machine: int) -> None:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _SILENCE.items():
            line.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        line.setblocking(False)
        self.lines[line] = machine

    def _names(self, machines: Sequence[int]) -> str:
        return ", ".join(f"machine {machine} ({self._addresses[machine]})" for machine in machines)

    def read(self, line: socket.socket) -> list[Any] | None:
        """Read from a connection. The other machine is done, or it has failed.

        Return None if it is done, and an empty list if the word is not complete yet.
        """
        try:
            data = line.recv(64)
        except OSError:
            data = b""
        heard = self._heard[line] = self._heard.get(line, b"") + data
        if heard == _DONE:
            return None
        if not data or not _DONE.startswith(heard):
            raise TrainingError(
                f"{self._names([self.lines[line]])} failed or went silent, so the processes here were stopped. See "
                "there for the cause"
            )
        return []

    def done(self) -> None:
        """Tell the other machines that this machine is done."""
        for line in self.lines:
            with suppress(OSError):
                line.sendall(_DONE)

    def close(self) -> None:
        """Close all connections."""
        for line in self.lines:
            line.close()
        self.lines.clear()


def _line_of(line: socket.socket) -> bytes:
    """Return the first line of a connection, however it was split, or what has come of it in time."""
    answer, until = b"", time.monotonic() + _HELLO_SECONDS
    while not answer.endswith(b"\n") and len(answer) < 64 and (left := until - time.monotonic()) > 0:
        line.settimeout(left)
        if not (data := line.recv(64 - len(answer))):
            break
        answer += data
    return answer
