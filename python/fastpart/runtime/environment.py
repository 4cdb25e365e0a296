"""What has started this process as one of several: torchrun, whose ranks train together, or another launcher."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from ..errors import ParameterError

_MPI = {
    "OMPI_COMM_WORLD_SIZE": "Open MPI",
    "PMI_SIZE": "MPI",
    "MV2_COMM_WORLD_SIZE": "MVAPICH",
}
"""Variables of MPI's launchers with the number of processes."""


def under_torchrun() -> bool:
    """Return whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_other_rank() -> bool:
    """Return whether torchrun started this process, but not as rank 0."""
    return under_torchrun() and os.environ.get("RANK", "0") != "0"


def refuse_other_launchers() -> None:
    """Raise an error if this process is one of several that would all start workers of their own.

    torchrun's processes are workers themselves, as long as they have not joined a process group yet.
    """
    if (size := _size_of_group()) > 1 or (under_torchrun() and size):
        raise ParameterError(
            f"workers: this process has joined a torch.distributed process group of {size}, but training makes its "
            "own. Leave out init_process_group under torchrun, whose ranks are the workers, or train in a single "
            "process, after destroy_process_group()"
        )
    if (found := next(_launchers(), None)) is not None:
        launcher, size, variables = found
        raise ParameterError(
            f"workers: this is one of {size} processes of {launcher}, and each of them would start workers of its own. "
            f"Start them with torchrun, whose ranks are the workers, or start a single process, or unset {variables}"
        )


def _launchers() -> Iterator[tuple[str, int, str]]:
    """Yield other launchers of several processes: the name, the number of processes, and its variables."""
    if under_torchrun():
        return
    if (size := _slurm_tasks()) > 1:
        yield "srun (Slurm)", size, "SLURM_STEP_NUM_TASKS and SLURM_PROCID"
    for variable, launcher in _MPI.items():
        if (size := _number(variable)) > 1:
            yield launcher, size, variable
    if "RANK" in os.environ and (size := _number("WORLD_SIZE")) > 1:
        yield "a launcher that sets RANK and WORLD_SIZE, as Kubeflow and Ray do", size, "RANK and WORLD_SIZE"


def _size_of_group() -> int:
    """Return the number of processes of the group that other code has initialised, 0 if there is none."""
    dist = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return 0
    return int(dist.get_world_size())


def _slurm_tasks() -> int:
    """Return the number of tasks that srun started together with this one.

    ``sbatch`` and ``salloc`` set ``SLURM_NTASKS`` in their single shell, too, where ``SLURM_PROCID`` is 0.
    """
    step = _number("SLURM_STEP_NUM_TASKS")
    return step or (_number("SLURM_NTASKS") if _number("SLURM_PROCID") > 0 else 0)


def _number(variable: str) -> int:
    value = os.environ.get(variable, "")
    return int(value) if value.isdecimal() else 0
