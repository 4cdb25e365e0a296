"""The command of a job on an emulated cluster. It is killed by a task of a stage, or by a replica."""

import os
import sys
from pathlib import Path

import numpy as np
import ray
from emulated import connect
from programs import Killed, killing
from ray._private import services

import fastpart as fp
from fastpart.machines.on_ray import RayEngine
from fastpart.machines.partitioning import Place, Shards
from fastpart.partitions.partitioners.builtin import on_machines

GIVEN = {"path": "two_levels", "sample": 0.1, "threads": 1}


class Dying(RayEngine):
    """An engine whose tasks or replicas kill this process."""

    def __init__(self, stage, mark):
        super().__init__()
        self.stage, self.mark = stage, mark

    def submit(self, task, each):
        if each and names(each)[0].startswith(self.stage):
            each = [(os.getpid(), self.mark, task, *given) for given in each]
            task = killing
        return super().submit(task, each)

    def replicas(self, program):
        return super().replicas(Killed(program, self.mark.parent, (60,), process=os.getpid()))


def names(each):
    """Return the names of the files that tasks make."""
    return [given[-1][-1].name for given in each]


def partition(engine, graph, shared):
    return on_machines("multilevel", Place(engine, shared, Shards(3, 5)), graph, 8, **GIVEN)


if __name__ == "__main__":
    address, file, shared, mark, stage = sys.argv[1:]
    services.resolve_ip_for_localhost = lambda host: host
    connect(address)
    made = partition(Dying(stage, Path(mark)), fp.open_graph(file, num_vertices=6400), Path(shared))
    np.save(mark, made.assignment)
    ray.shutdown()
