"""``distdgl``: start servers and trainers for a partition directory, on this machine or on one for each part."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from pathlib import Path

from .... import _core
from ....core import parameters
from ....core.notes import log
from ....core.outputs import owning
from ....core.parameters import StrPath, shown
from ....core.system import address_of
from ....errors import GraphFormatError, ParameterError
from ....partitions.partition import PartitionSource, directory_of
from ....runtime.environment import refuse_several
from ....runtime.machine_watch import MachineWatch
from ....runtime.watch import START_SECONDS, Supervisor
from ...data.dataset import Dataset
from ...jobs.driver import follow
from ...jobs.launch import output_of
from ...jobs.warnings import Undefined, remedy_of, warn_of_scales, watched
from ...learning.trainable import refuse_not_importable
from ...memory import left_by
from ...method_options import DistDGLOptions
from ...models import NEIGHBOUR, sampling_of
from ...plugged import import_dgl
from ...registry import Method
from ...runs.baselines import baselines_of
from ...runs.beginning import begin
from ...runs.history import History
from ...runs.identity import must_agree
from ...runs.trained import TrainedModel
from .exported import Export
from .local import LOOPBACK, MACHINE


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


_LOADED_PER_SECOND = 20 << 20
"""Bytes per second that a server reads from a slow disk."""


@dataclass(frozen=True)
class Plan:
    """The processes of a run."""

    graph: Export
    machines: Machines
    trainers_per_part: int
    samplers: int
    threads: int | None

    def start(self, group: Supervisor, history: History, resume: bool) -> None:
        """Start the servers and the trainers of this machine."""
        here = len(self.machines.here)
        log.info("starting %d servers and %d trainers of DGL", here, here * self.trainers_per_part)
        settings = group.folder / "run.json"
        settings.write_text(self._settings(history, resume))
        common = self._environment()
        seconds = START_SECONDS + max(map(self.graph.size, self.machines.here)) / _LOADED_PER_SECOND
        for part in self.machines.here:
            group.start(
                f"the server of part {part}",
                "fastpart.train.methods.distdgl.server",
                environment=common | self._of(part) | {"DGL_ROLE": "server", "DGL_SERVER_ID": str(part)},
                ready_within=seconds,
                serves=True,
            )
        first = self.machines.here[0] * self.trainers_per_part
        for part in self.machines.here:
            for index in range(self.trainers_per_part):
                rank = part * self.trainers_per_part + index
                own = {"DGL_ROLE": "client", "RANK": str(rank), "LOCAL_RANK": str(rank - first)}
                group.start(
                    f"trainer {rank} (of part {part})",
                    "fastpart.train.methods.distdgl.worker",
                    str(settings),
                    environment=common | self._of(part) | own,
                    ready_within=seconds,
                )

    def _of(self, part: int) -> dict[str, str]:
        return {MACHINE: str(part)} if self.machines.alone else {}

    @property
    def _trainers(self) -> int:
        return self.graph.parts * self.trainers_per_part

    @property
    def _threads_each(self) -> int:
        busy = len(self.machines.here) * self.trainers_per_part
        return max(1, (self.threads or _core.default_threads()) // busy)

    def _environment(self) -> dict[str, str]:
        return {
            "DGL_DIST_MODE": "distributed",
            "DGL_CONF_PATH": str(self.graph.config),
            "DGL_IP_CONFIG": str(self.machines.file),
            "DGL_NUM_SERVER": "1",
            "DGL_NUM_SAMPLER": str(self.samplers),
            "DGL_NUM_CLIENT": str(self._trainers * (1 + self.samplers)),
            "DGL_GROUP_ID": "0",
            "DGL_GRAPH_FORMAT": "csc",
            "WORLD_SIZE": str(self._trainers),
            "OMP_NUM_THREADS": str(self._threads_each),
            **self.machines.environment,
        }

    def _settings(self, history: History, resume: bool) -> str:
        return json.dumps(
            {
                "graph_name": self.graph.name,
                "options": history.options.sent(),
                "rendezvous": self.machines.rendezvous,
                "threads": self._threads_each,
                "trainers": self._trainers,
                "out": os.path.abspath(history.folder.path),
                "resume": resume,
            }
        )


class Driver:
    """Starts the processes, and follows them. DGL loads, samples and exchanges, so little is as in other methods."""

    def __init__(self, method: Method, source: PartitionSource, options: DistDGLOptions) -> None:
        if sampling_of(options.model) != NEIGHBOUR:
            raise ParameterError(
                f"model: {options.model!r} needs sampled graphs, but distdgl samples neighbours only. Train it "
                "with sdt or full, or use graphsage, which has the same layers"
            )
        self._source, self._options = source, options

    def train(self) -> TrainedModel:
        """Train, and return the result."""
        options, run, resume = self._options, self._options.run, self._options.resume
        refuse_not_importable(options.model)
        if self._options.ip_config is None:
            refuse_several("distdgl")
        import_dgl()
        out = None if options.out is None else parameters.path("out", options.out)
        with owning(out=out), Supervisor(run.tmp_dir) as group:
            folder = output_of(group.folder, options)
            graph = Export.of(self._source, group.folder, run)
            machines = self._machines(graph, group)
            graph.refuse_small_memory(machines.here)
            left_by(graph.needs(machines.here, options.trainers_per_part, options.samplers, options), run)
            path = directory_of(self._source)
            dataset = Dataset(path) if path.is_dir() else None  # else an earlier export
            if dataset is not None:
                warn_of_scales(dataset)
            begin(folder, resume, options, must_agree("distdgl", options, {}, graph.identity), path, None)
            with folder.kept():
                history = History("distdgl", options, folder, resume)
                plan = Plan(graph, machines, options.trainers_per_part, options.samplers, run.threads)
                plan.start(group, history, resume)
                undefined = Undefined(dataset, options.model)
                report = watched(undefined.watched(options.report), None, remedy_of(dataset))
                start = time.perf_counter()
                trained = follow(group, history, report)
                undefined.end(trained.summary)
                if dataset is None or not options.baselines:  # an earlier export tells of no vertices here
                    return trained
                seconds = time.perf_counter() - start
                found = baselines_of(dataset, options, trained.summary, group.folder, seconds)
                folder.update(summary={**trained.summary, "baselines": found})
                return replace(trained, summary={**trained.summary, "baselines": found})

    def _machines(self, graph: Export, group: Supervisor) -> Machines:
        if self._options.ip_config is None:
            return Machines.local(graph.parts, group)
        graph.refuse_empty_parts()
        return Machines.listed(self._options.ip_config, graph.parts, group)
