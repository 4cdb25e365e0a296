"""Processes that something else than torchrun started together: none of them starts workers of its own."""

import pytest

import fastpart as fp
from trainable import planted

torch = pytest.importorskip("torch")

from fastpart.runtime.environment import is_other_rank, refuse_other_launchers  # noqa: E402

VARIABLES = (
    "RANK",
    "WORLD_SIZE",
    "TORCHELASTIC_RUN_ID",
    "SLURM_NTASKS",
    "SLURM_PROCID",
    "SLURM_STEP_NUM_TASKS",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "MV2_COMM_WORLD_SIZE",
)


@pytest.fixture
def environment(monkeypatch):
    """Return a function that sets variables of launchers, and no others."""

    def set_to(given):
        for name in VARIABLES:
            monkeypatch.delenv(name, raising=False)
        for name, value in given.items():
            monkeypatch.setenv(name, value)

    return set_to


SEVERAL = {
    "srun": {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "4"},
    "an old srun": {"SLURM_PROCID": "3", "SLURM_NTASKS": "4"},
    "Open MPI": {"OMPI_COMM_WORLD_SIZE": "2"},
    "MPI": {"PMI_SIZE": "2", "PMI_RANK": "0"},
    "MVAPICH": {"MV2_COMM_WORLD_SIZE": "2"},
    "Kubeflow": {"RANK": "0", "WORLD_SIZE": "3"},
}


@pytest.mark.parametrize("launcher", SEVERAL)
def test_one_of_several_processes_starts_no_workers(environment, tmp_path, launcher):
    environment(SEVERAL[launcher])
    parts = planted(tmp_path, k=2, n=60, m=200)
    with pytest.raises(
        fp.ParameterError, match=r"^workers: this is one of [234] processes of .*with torchrun, .*unset"
    ):
        fp.train.sampled(parts, epochs=1, threads=1, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


ALONE = {
    "nothing": {},
    "a shell of salloc": {"SLURM_NTASKS": "4"},
    "a script of sbatch": {"SLURM_NTASKS": "4", "SLURM_PROCID": "0"},
    "an interactive step": {"SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"},
    "mpirun with one process": {"OMPI_COMM_WORLD_SIZE": "1", "PMI_SIZE": "1"},
    "one process": {"RANK": "0", "WORLD_SIZE": "1"},
    "no number": {"PMI_SIZE": "many", "RANK": "0", "WORLD_SIZE": ""},
    "torchrun on nodes of srun": {
        "TORCHELASTIC_RUN_ID": "x",
        "RANK": "3",
        "WORLD_SIZE": "4",
        "SLURM_PROCID": "1",
        "SLURM_STEP_NUM_TASKS": "2",
    },
}


@pytest.mark.parametrize("launcher", ALONE)
def test_a_single_process_and_torchrun_go_on(environment, launcher):
    environment(ALONE[launcher])
    refuse_other_launchers()


@pytest.mark.parametrize(("size", "torchrun"), [(2, False), (1, True), (2, True)])
def test_a_process_group_of_the_user_is_refused(environment, monkeypatch, size, torchrun):
    environment({"TORCHELASTIC_RUN_ID": "x", "RANK": "0", "WORLD_SIZE": str(size)} if torchrun else {})
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: size)
    with pytest.raises(
        fp.ParameterError, match=rf"^workers: .* process group of {size}, .*Leave out init_process_group"
    ):
        refuse_other_launchers()


def test_a_process_group_of_one_goes_on(environment, monkeypatch):
    environment({})
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 1)
    refuse_other_launchers()


def test_the_command_line_is_silent_only_in_the_other_ranks_of_torchrun(environment):
    environment({"RANK": "1"})
    assert not is_other_rank()
    environment({"RANK": "1", "TORCHELASTIC_RUN_ID": "x"})
    assert is_other_rank()
    environment({"RANK": "0", "TORCHELASTIC_RUN_ID": "x"})
    assert not is_other_rank()
