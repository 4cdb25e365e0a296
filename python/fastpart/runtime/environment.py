"""The launcher of this process, if it is one of several: torchrun, MPI, Slurm, or code that made a process group."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
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

_ADDRESS = ("MASTER_ADDR", "MASTER_PORT")

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

    def refuse_missing_address(self) -> None:
        """Raise an error if the variable with the address of rank 0 is missing."""
        if missing := [name for name in _ADDRESS if not os.environ.get(name)]:
            raise ParameterError(
                f"{' and '.join(missing)}: not set, but this is one of {self.size} processes of {self.launcher}, which "
                "meet at rank 0. Set MASTER_ADDR to the address of its machine, and MASTER_PORT to a free port there, "
                "as 29500, in all of them"
            )

    @contextmanager
    def variables(self) -> Iterator[None]:
        """Set the variables of torchrun, by which the rest of the code finds its place."""
        own = {"RANK": self.rank, "WORLD_SIZE": self.size}
        own |= {"LOCAL_RANK": self.local_rank or 0, "LOCAL_WORLD_SIZE": self.local_size or 1}
        before = {name: os.environ.get(name) for name in own}
        os.environ.update({name: str(value) for name, value in own.items()})
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def found() -> Ranks | None:
    """Return the place of this process among several, which are workers themselves. None if it is alone."""
    return _of_group() or _of_variables() or _of_mpi() or _of_slurm()


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
    launcher = TORCHRUN if torchrun else "a launcher that sets RANK and WORLD_SIZE"
    return Ranks(launcher, _number("RANK"), size, *(map(_number, local) if known else ()))


def _of_mpi() -> Ranks | None:
    for launcher, (rank, size) in _MPI.items():
        if _number(size) > 1 and rank in os.environ:
            return Ranks(launcher, _number(rank), _number(size))
    return None


def _of_slurm() -> Ranks | None:
    """Return the place in a step of srun. ``sbatch``, ``salloc`` and notebooks there have a single process.

    mpirun starts a step of one task per machine, too, so its variables come first.
    """
    size, is_step = _number("SLURM_STEP_NUM_TASKS"), "SLURM_STEP_ID" in os.environ
    if size < 2 or not is_step or _number("SLURM_STEP_ID") >= _NO_STEP:
        return None
    return Ranks("srun (Slurm)", _number("SLURM_PROCID"), size)


def _number(variable: str) -> int:
    value = os.environ.get(variable, "")
    return int(value) if value.isdecimal() else 0
