"""The processes of a run and their settings."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from .... import _core
from ....core.notes import log
from ....runtime.watch import START_SECONDS, Supervisor
from ...runs.history import History
from .exported import Export
from .local import MACHINE
from .machines import Machines

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
