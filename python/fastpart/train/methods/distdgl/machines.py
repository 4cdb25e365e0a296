"""The machines of the parts: all this one, or one machine per part."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from ....core import parameters
from ....core.parameters import StrPath, shown
from ....core.system import address_of
from ....errors import GraphFormatError, ParameterError
from ....runtime.machine_watch import MachineWatch
from ....runtime.watch import START_SECONDS, Supervisor
from .local import LOOPBACK


@dataclass(frozen=True)
class Machines:
    """One machine for each part.

    Attributes
    ----------
    file : pathlib.Path
        DGL's ``ip_config``, with a line ``ADDRESS PORT`` for each.
    here : sequence of int
        The machines whose processes this supervisor starts.
    rendezvous : str
        The init_method of the trainers' process group.
    environment : dict
        Network settings of the processes.
    alone : bool
        Whether this machine stands for all of them.
    """

    file: Path
    here: Sequence[int]
    rendezvous: str
    environment: dict[str, str]
    alone: bool

    @classmethod
    def local(cls, parts: int, group: Supervisor) -> Machines:
        """Use this machine for all parts, over its loopback interface."""
        file = group.folder / "ip_config.txt"
        file.write_text("".join(f"{LOOPBACK} {port}\n" for port in _free_ports(parts)))
        # torch's own rendezvous would listen on all interfaces.
        rendezvous = f"file://{group.folder}/rendezvous"
        return cls(file, range(parts), rendezvous, {"GLOO_SOCKET_IFNAME": "lo"}, alone=True)

    @classmethod
    def listed(cls, ip_config: StrPath, parts: int, group: Supervisor) -> Machines:
        """Use one machine per part, as listed. Machine 0 also takes the two ports above its own."""
        file = parameters.path("ip_config", ip_config)
        lines = _lines(file)
        if len(lines) != parts:
            raise ParameterError(
                f"ip_config: {shown(file)} lists {len(lines)} machines for {parts} parts. List one machine per part"
            )
        addresses = [address for address, _ in lines]
        interfaces = _interfaces()
        here = [machine for machine, address in enumerate(addresses) if address in interfaces]
        if len(here) != 1:
            raise ParameterError(
                f"ip_config: {len(here)} lines of {shown(file)} are addresses of this machine, which are "
                f"{', '.join(interfaces)}. List each machine once, or leave out ip_config to train on this one alone"
            )
        first, port = lines[0]
        environment = {"MASTER_ADDR": first, "MASTER_PORT": str(port + 1)}
        environment["GLOO_SOCKET_IFNAME"] = os.environ.get(
            "GLOO_SOCKET_IFNAME", interfaces[addresses[here[0]]]
        )
        group.watch_machines(MachineWatch(addresses, port + 2, here[0], START_SECONDS))
        return cls(file.absolute(), here, "env://", environment, alone=False)


def _lines(file: Path) -> list[tuple[str, int]]:
    """Return address and port of each machine."""
    lines = []
    for number, line in enumerate(parameters.regular(file).read_text(errors="replace").splitlines(), 1):
        try:
            address, port = line.split()
            lines.append((str(IPv4Address(address)), parameters.integer("port", int(port), 1, 65533)))
        except ValueError:
            raise GraphFormatError(
                f"{shown(file)}, line {number}: expected an IPv4 address and a port, as in 192.168.0.7 30050"
            ) from None
    return lines


def _interfaces() -> dict[str, str]:
    """Return the interface of each address of this machine."""
    interfaces = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            with suppress(OSError):
                interfaces[address_of(name, any_socket)] = name
    return interfaces


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((LOOPBACK, 0))
        return [one.getsockname()[1] for one in sockets]
