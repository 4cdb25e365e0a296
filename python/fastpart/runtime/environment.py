"""The launcher of this process, if it is one of several: torchrun, MPI, Slurm, or code that made a process group."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from ..errors import ParameterError

GROUP = "an initialised process group"
TORCHRUN = "torchrun"

_MPI = {
    "Open MPI": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    "MVAPICH": ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    "MPI": ("PMI_RANK", "PMI_SIZE"),
}
"""Variables of MPI's launchers: the rank, and the number of processes."""

OTHER = "a launcher that sets RANK and WORLD_SIZE"

SRUN = "srun (Slurm)"

_ADDRESS = ("MASTER_ADDR", "MASTER_PORT")

_PORTS = range(15000, 20000)
"""Where ranks of Slurm meet, by the number of the job. The system gives none of them to connections by itself."""

_NO_STEP = 0xFFFFFFF0
"""Slurm numbers its batch scripts and interactive shells from here on. They are no steps of several tasks."""


@dataclass(frozen=True)
class Ranks:
    """The place of this process among those that were started together.

    Attributes
    ----------
    launcher : str
        The launcher, as errors name it.
    rank, size : int
        The number of this process, and how many there are.
    local_rank, local_size : int, optional
        The same numbers among the processes of its machine. None: the launcher does not say.
    """

    launcher: str
    rank: int
    size: int
    local_rank: int | None = None
    local_size: int | None = None

    @property
    def in_group(self) -> bool:
        """Return whether the processes have joined a process group already, which is not ours."""
        return self.launcher == GROUP

    def address(self) -> dict[str, str]:
        """Return the variables of torchrun with address and port of rank 0.

        Those of the environment come first. Slurm names the machine of its first task, and the number of the job
        decides about the port.

        Raises
        ------
        ParameterError
            One of them is not known.
        """
        known = {name: text for name in _ADDRESS if (text := os.environ.get(name))}
        if self.launcher == SRUN:
            known = _address_of_slurm() | known
        if missing := [name for name in _ADDRESS if name not in known]:
            raise ParameterError(
                f"{' and '.join(missing)}: not set, but this is one of {self.size} processes of {self.launcher}, which "
                "meet at rank 0. Set MASTER_ADDR to the address of its machine, and MASTER_PORT to a free port there, "
                "as 29500, in all of them"
            )
        return known

    def place(self) -> dict[str, str]:
        """Return the variables of torchrun by which the rest of the code finds its place."""
        own = {"RANK": self.rank, "WORLD_SIZE": self.size}
        own |= {"LOCAL_RANK": self.local_rank or 0, "LOCAL_WORLD_SIZE": self.local_size or 1}
        return {name: str(value) for name, value in own.items()}


@contextmanager
def variables(given: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment until the end of the block."""
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def found() -> Ranks | None:
    """Return the place of this process among several, which are workers themselves. None if it is alone.

    Raises
    ------
    ParameterError
        Two launchers, or two variables of one, contradict each other.
    """
    if (group := _of_group()) is not None:
        return group
    started = _of_mpi() or _of_slurm()
    if (named := _of_variables()) is None:
        return started
    if named.launcher == OTHER and started is not None:
        _refuse_contradiction(named, started)
    return named


def is_other_rank() -> bool:
    """Return whether this process is one of several, but not rank 0."""
    ranks = found()
    return ranks is not None and ranks.rank != 0


def refuse_several(method: str) -> None:
    """Raise an error if each of several processes would start workers of its own."""
    if (ranks := found()) is not None and ranks.size > 1:
        raise ParameterError(
            f"workers: this is one of {ranks.size} processes of {ranks.launcher}, and each of them would start workers "
            f"of its own. Call {method} in a single process"
        )


def _of_group() -> Ranks | None:
    """Return the place in the group that other code has initialised, if it has several processes."""
    dist = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized() or dist.get_world_size() < 2:
        return None
    return Ranks(GROUP, dist.get_rank(), dist.get_world_size())


def _of_variables() -> Ranks | None:
    """Return the place by the variables of torchrun, which Kubeflow and Ray set, too."""
    torchrun, size = "TORCHELASTIC_RUN_ID" in os.environ, _number("WORLD_SIZE")
    if not torchrun and ("RANK" not in os.environ or size < 2):
        return None
    local = ("LOCAL_RANK", "LOCAL_WORLD_SIZE")
    known = all(name in os.environ for name in local)
    here = tuple(map(_number, local)) if known else ()
    return _placed(TORCHRUN if torchrun else OTHER, "RANK", size, *here)


def _of_mpi() -> Ranks | None:
    for launcher, (rank, size) in _MPI.items():
        if _number(size) > 1 and rank in os.environ:
            return _placed(launcher, rank, _number(size))
    return None


def _of_slurm() -> Ranks | None:
    """Return the place in a step of srun. ``sbatch``, ``salloc`` and notebooks there have a single process.

    mpirun starts a step of one task per machine, too, so its variables come first.
    """
    size, is_step = _number("SLURM_STEP_NUM_TASKS"), "SLURM_STEP_ID" in os.environ
    if size < 2 or not is_step or _number("SLURM_STEP_ID") >= _NO_STEP:
        return None
    return _placed(SRUN, "SLURM_PROCID", size)


def _placed(launcher: str, variable: str, size: int, *here: int) -> Ranks:
    """Return the place of the rank that a variable has."""
    if (rank := _number(variable)) >= size:
        raise ParameterError(
            f"{variable}: it is {rank}, but {launcher} has {size} processes, whose ranks begin with 0. Give each "
            "process a rank of its own below their number"
        )
    return Ranks(launcher, rank, size, *here)


def _refuse_contradiction(named: Ranks, started: Ranks) -> None:
    """Refuse variables that all processes of another launcher have got alike, as by ``export`` in a job's script.

    A launcher may start others, as torchrun on each machine of a step. Then their numbers of processes differ, or each
    has set its own rank.
    """
    if named.size == started.size and named.rank != started.rank:
        raise ParameterError(
            f"RANK: it says that this is process {named.rank} of {named.size}, but {started.launcher} says that it is "
            f"process {started.rank} of {started.size}. Unset RANK and WORLD_SIZE, and {started.launcher} decides"
        )


def _address_of_slurm() -> dict[str, str]:
    """Return where the tasks of a step meet: on the machine of the first one, at a port by the number of the job."""
    first = first_host(os.environ.get("SLURM_STEP_NODELIST") or os.environ.get("SLURM_JOB_NODELIST") or "")
    if _number("SLURM_STEP_NUM_NODES") == 1:
        first = "127.0.0.1"
    port = _PORTS[(_number("SLURM_JOB_ID") * 31 + _number("SLURM_STEP_ID")) % len(_PORTS)]
    return {"MASTER_ADDR": first, "MASTER_PORT": str(port)} if first else {}


def first_host(nodes: str) -> str:
    """Return the first machine of a list as Slurm writes it: ``n[01-04,7]x[2-3],m5`` has n01x2 first."""
    head = re.match(r"(?:[^,\[]|\[[^\]]*\])*", nodes)
    assert head is not None  # it matches an empty text, too
    return re.sub(r"\[([^],-]*)[^]]*\]", r"\1", head[0])


def _number(variable: str) -> int:
    value = os.environ.get(variable, "")
    return int(value) if value.isdecimal() else 0
