"""Processes that torchrun, MPI, Slurm or the user has started together are workers. None starts workers of its own."""

import json
import os

import pytest

import fastpart as fp
from ranks import LAUNCHERS, run_code, run_ranks
from trainable import planted

torch = pytest.importorskip("torch")

from fastpart.runtime.environment import (  # noqa: E402
    GROUP,
    OTHER,
    SRUN,
    TORCHRUN,
    Ranks,
    first_host,
    found,
    is_other_rank,
)
from fastpart.train.jobs import launch  # noqa: E402

QUICK = {"hidden": 8, "threads": 1, "epochs": 2, "batch_size": 100, "fanouts": [4, 3]}


@pytest.fixture
def environment(monkeypatch):
    """Return a function that sets variables of launchers, and no others."""

    def set_to(given):
        for name in os.environ:
            if name.startswith(LAUNCHERS):
                monkeypatch.delenv(name)
        for name, value in given.items():
            monkeypatch.setenv(name, value)

    return set_to


def slurm(rank, tasks=2, **others):
    return {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": f"{tasks}", "SLURM_PROCID": f"{rank}", **others}


def own_variables(rank):
    return {"RANK": f"{rank}", "WORLD_SIZE": "2"}


SEVERAL = {
    "srun": (slurm(3, 4), Ranks(SRUN, 3, 4)),
    "Open MPI": ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, Ranks("Open MPI", 1, 2)),
    "MPI": ({"PMI_RANK": "0", "PMI_SIZE": "2"}, Ranks("MPI", 0, 2)),
    "MVAPICH": ({"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_SIZE": "2"}, Ranks("MVAPICH", 1, 2)),
    "mpirun over srun": ({"PMI_RANK": "2", "PMI_SIZE": "8", **slurm(1)}, Ranks("MPI", 2, 8)),
    "srun with ranks of one's own": ({"RANK": "3", "WORLD_SIZE": "4", **slurm(3, 4)}, Ranks(OTHER, 3, 4)),
    "Ray on nodes of srun": ({"RANK": "0", "WORLD_SIZE": "8", **slurm(1)}, Ranks(OTHER, 0, 8)),
    "Kubeflow": (own_variables(0), Ranks(OTHER, 0, 2)),
    "Ray": ({**own_variables(1), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}, Ranks(OTHER, 1, 2, 0, 1)),
    "torchrun on nodes of srun": (
        {
            "TORCHELASTIC_RUN_ID": "x",
            "RANK": "3",
            "WORLD_SIZE": "4",
            "LOCAL_RANK": "1",
            "LOCAL_WORLD_SIZE": "2",
            **slurm(1),
        },
        Ranks(TORCHRUN, 3, 4, 1, 2),
    ),
}


@pytest.mark.parametrize("launcher", SEVERAL)
def test_one_of_several_processes_is_recognised(environment, launcher):
    variables, ranks = SEVERAL[launcher]
    environment(variables)
    assert found() == ranks
    assert is_other_rank() == (ranks.rank > 0)


ALONE = {
    "nothing": {},
    "a shell of salloc": {"SLURM_NTASKS": "4"},
    "a script of sbatch": {"SLURM_NTASKS": "4", "SLURM_PROCID": "0"},
    "its step": {"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "0", "SLURM_STEP_ID": "4294967291"},
    "an interactive step": {"SLURM_NTASKS": "4", **slurm(0, 1)},
    "mpirun with one process": {"OMPI_COMM_WORLD_SIZE": "1", "PMI_SIZE": "1", "PMI_RANK": "0"},
    "one process": {"RANK": "0", "WORLD_SIZE": "1"},
    "a rank only": {"RANK": "1"},
    "no number": {"PMI_SIZE": "many", "PMI_RANK": "0", "RANK": "0", "WORLD_SIZE": ""},
}


@pytest.mark.parametrize("launcher", ALONE)
def test_a_single_process_is_alone(environment, launcher):
    environment(ALONE[launcher])
    assert found() is None
    assert not is_other_rank()


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        (
            {**own_variables(0), **slurm(1)},
            r"RANK: .* process 0 of 2, but srun \(Slurm\) says .* process 1 of 2\. Unset RANK and WORLD_SIZE",
        ),
        (
            {**own_variables(0), "PMI_RANK": "1", "PMI_SIZE": "2"},
            r"RANK: .* process 0 of 2, but MPI says .* process 1 of 2\. Unset",
        ),
        (own_variables(2), r"RANK: it is 2, but a launcher .* has 2 processes, whose ranks begin with 0"),
        (slurm(4, 4), r"SLURM_PROCID: it is 4, but srun \(Slurm\) has 4 processes"),
    ],
)
def test_variables_that_contradict_each_other_are_refused(environment, variables, text):
    environment(variables)
    with pytest.raises(fp.errors.ParameterError, match=f"^{text}"):
        found()


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("n1", "n1"),
        ("n[01-04,7]", "n01"),
        ("n[7,01-04],m2", "n7"),
        ("m,n[1-2]", "m"),
        ("rack[2-3]n[08-09]-ib,x", "rack2n08-ib"),
        ("", ""),
    ],
)
def test_first_machine_of_a_list_of_slurm(nodes, first):
    assert first_host(nodes) == first


def test_slurm_says_where_ranks_meet(environment):
    job = slurm(0) | {"SLURM_STEP_NODELIST": "n[3-4]", "SLURM_JOB_ID": "77"}
    places = []
    for given in ({}, {"SLURM_STEP_ID": "1"}, {"SLURM_JOB_ID": "78"}):
        environment(job | given)
        places.append(found().address())
    assert {place["MASTER_ADDR"] for place in places} == {"n3"}
    ports = {int(place["MASTER_PORT"]) for place in places}
    assert len(ports) == 3
    assert ports <= set(range(15000, 20000))
    environment(job | {"SLURM_STEP_NUM_NODES": "1"})
    assert found().address() == {**places[0], "MASTER_ADDR": "127.0.0.1"}
    environment(job | {"MASTER_PORT": "29500"})
    assert found().address() == {"MASTER_ADDR": "n3", "MASTER_PORT": "29500"}


@pytest.mark.parametrize("size", [1, 2])
def test_a_process_group_is_recognised_if_it_has_several_processes(environment, monkeypatch, size):
    environment({"TORCHELASTIC_RUN_ID": "x", "RANK": "0", "WORLD_SIZE": f"{size}"} if size == 2 else {})
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: size)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: size - 1)
    assert found() == (Ranks(GROUP, 1, 2) if size == 2 else None)


@pytest.mark.parametrize(
    ("device", "backends", "needed"),
    [
        ("cpu", "cpu:gloo,cuda:nccl", "gloo"),
        ("cuda", "cpu:gloo,cuda:gloo", "cpu:gloo,cuda:nccl"),
        ("cuda", "cuda:nccl", "cpu:gloo,cuda:nccl"),
    ],
)
def test_a_process_group_with_another_backend_is_refused(monkeypatch, device, backends, needed):
    monkeypatch.setattr(torch.distributed, "get_backend_config", lambda: backends)
    with pytest.raises(
        fp.errors.ParameterError, match=f"^device: '{device}' needs .* init_process_group.'{needed}'"
    ):
        launch._refuse_backend(device)


def test_what_is_asked_of_ranks(environment, tmp_path):
    parts = planted(tmp_path, k=2, n=60, m=200)
    environment(slurm(0))
    leave_out = r"^under srun \(Slurm\), leave out workers= .* and pass out="
    for given in ({"out": tmp_path / "out", "workers": 2}, {}):
        with pytest.raises(fp.errors.ParameterError, match=leave_out):
            fp.train.sampled(parts, epochs=1, threads=1, **given)
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    mpi = {"PMI_RANK": "0", "PMI_SIZE": "2"}
    for started, missing in ((mpi, ["MASTER_ADDR", "MASTER_PORT"]), (mpi, ["MASTER_PORT"]), (slurm(0), [])):
        there = {name: address[name] for name in address if name not in missing} if missing else {}
        environment(started | there)
        named = " and ".join(missing or address)
        with pytest.raises(
            fp.errors.ParameterError, match=rf"^{named}: .* 2 processes of (MPI|srun .*), .* rank 0\. Set"
        ):
            fp.train.sampled(parts, epochs=1, threads=1, out=tmp_path / "out")
    environment(slurm(0))
    with pytest.raises(
        fp.errors.ParameterError, match=r"^workers: .* of 2 processes of srun .* distdgl in a single"
    ):
        fp.train.distdgl(parts, epochs=1, threads=1)
    assert not (tmp_path / "out").exists()


# Joins a group if it is asked to, trains twice, and says what it has found.
RANK = """
import json, os, sys
import fastpart as fp
parts, out, given, joins = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), sys.argv[4]
before = dict(os.environ)
if joins:
    import torch.distributed as dist
    dist.init_process_group(joins, init_method=f"file://{out}-met", rank=int(os.environ.pop("R")), world_size=2)
trained = [fp.train.sampled(parts, out=f"{out}{i}", timeout=60, **given) for i in range(2)]
print("RESULT", json.dumps([each.history["loss"].to_list() for each in trained]))
if joins:
    assert dist.is_initialized()
    dist.destroy_process_group()
for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
    assert os.environ.get(name) == before.get(name)
"""


def alone_on_a_machine(rank):
    """Return the variables of a step of Slurm on one machine, without those that say where ranks meet."""
    return slurm(rank) | {
        "SLURM_STEP_NUM_NODES": "1",
        "SLURM_JOB_ID": f"{os.getpid()}",
        "MASTER_ADDR": "",
        "MASTER_PORT": "",
    }


STARTED = {
    "srun": (slurm, ""),
    "srun on one machine": (alone_on_a_machine, ""),
    "Open MPI": (lambda rank: {"OMPI_COMM_WORLD_RANK": f"{rank}", "OMPI_COMM_WORLD_SIZE": "2"}, ""),
    "a group": (lambda rank: {"R": f"{rank}"}, "gloo"),
}


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("planted"), k=2)


@pytest.fixture(scope="module")
def expected(parts):
    return fp.train.sampled(parts, workers=2, **QUICK).history["loss"].to_list()


@pytest.mark.parametrize("launcher", STARTED)
def test_ranks_train_together(parts, expected, tmp_path, launcher):
    variables, joins = STARTED[launcher]
    ranks = run_code(RANK, parts, tmp_path / "out", json.dumps(QUICK), joins, variables=variables)
    assert [rank.code for rank in ranks] == [0, 0], ranks
    losses = [json.loads(rank.out.partition("RESULT ")[2]) for rank in ranks]
    assert losses == [[expected, expected]] * 2


LATE = """
import json, os, sys, time
import fastpart as fp
import torch.distributed as dist
destroy = dist.destroy_process_group

def late():
    destroy()
    time.sleep(1)  # the other rank is at the next training already

if os.environ["SLURM_PROCID"] == "0":
    dist.destroy_process_group = late
for i in range(2):
    trained = fp.train.sampled(sys.argv[1], out=f"{sys.argv[2]}{i}", timeout=30, **json.loads(sys.argv[3]))
    print(trained.history["loss"].to_list())
"""


def test_a_rank_may_come_to_the_next_training_before_rank_0_has_left_the_last(parts, expected, tmp_path):
    ranks = run_code(LATE, parts, tmp_path / "out", json.dumps(QUICK), variables=slurm)
    assert [rank.code for rank in ranks] == [0, 0], ranks
    assert [rank.out for rank in ranks] == [f"{expected}\n" * 2] * 2


def test_the_command_line_prints_in_rank_0_only(parts, tmp_path):
    words = ("sampled", parts, "-o", tmp_path / "out", "--epochs", "1", "--threads", "1", "--hidden", "8")
    first, second = run_ranks("fastpart", "train", *words, "-q", variables=slurm)
    assert (first.code, second.code) == (0, 0), first.errors + second.errors
    assert "test_accuracy" in first.out
    assert second.out == ""
