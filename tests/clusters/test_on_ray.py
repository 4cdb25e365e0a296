"""The engine on Ray, on one machine whose raylets stand for nodes: the results of threads, whatever dies."""

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import numpy as np
import pytest
import test_bits
from emulated import add, cluster
from programs import (
    Killed,
    Raises,
    Sums,
    always_killed,
    double,
    double_killed_once,
    double_stopped_once,
    raises,
    sleeps,
)
from test_directory import same

import fastpart as fp
from fastpart.machines.engine import Threads
from fastpart.machines.partitioning import Place, Shards
from fastpart.machines.starting import engine_of, place_of
from fastpart.partitions.partitioners.builtin import on_machines
from soaked import some_of

ray = pytest.importorskip("ray")

import driver  # noqa: E402

from fastpart.machines import checking, on_ray  # noqa: E402
from fastpart.machines.on_ray import Node, RayEngine  # noqa: E402

NODES = 3


@pytest.fixture(scope="module")
def raylets():
    with cluster(NODES) as made:
        yield made


@pytest.fixture
def whole(raylets):
    """Return the cluster, and give it back the node that a test kills."""
    yield raylets
    for node in [node for node in raylets.worker_nodes if not node.live_processes()]:
        raylets.worker_nodes.discard(node)
    end = time.monotonic() + 60
    while len(on_ray.alive()) >= NODES and time.monotonic() < end:
        time.sleep(0.2)
    for _ in range(NODES - len(on_ray.alive())):
        add(raylets)


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(on_ray, "PING", 0.5)
    monkeypatch.setattr(on_ray, "SILENCE", 6.0)


class Struck(RayEngine):
    """An engine of which a replica gets a signal."""

    def __init__(self, workers, folder, steps, **how):
        super().__init__(workers)
        self.strike = (folder, steps), how

    def replicas(self, program):
        given, how = self.strike
        return super().replicas(Killed(program, *given, **how))


class Noting(RayEngine):
    """An engine that notes which files its tasks make."""

    def __init__(self):
        super().__init__()
        self.made = []

    def submit(self, task, each):
        self.made += driver.names(each)
        return super().submit(task, each)


@pytest.mark.parametrize("workers", some_of([1, 2, 4], always=[4]))
def test_replicas_compute_what_threads_compute(raylets, workers):
    engine = RayEngine(workers)
    assert engine.replicas(Sums(50)) == Threads(workers).replicas(Sums(50))
    assert (engine.workers, engine.losses) == (workers, [])


def test_by_default_each_node_has_a_replica_and_messages_may_be_large(raylets):
    engine = RayEngine()
    assert engine.workers == NODES
    assert engine.replicas(Sums(4, 300_000)) == Threads(NODES).replicas(Sums(4, 300_000))


def test_tasks_give_their_results_in_order_also_if_one_is_killed(raylets, tmp_path):
    assert RayEngine().submit(double, [(x,) for x in range(20)]) == list(range(0, 40, 2))
    given = [(x, tmp_path) for x in range(6)]
    assert RayEngine().submit(double_killed_once, given) == list(range(0, 12, 2))
    assert (tmp_path / "killed").exists()


def test_a_stopped_task_is_named_and_run_again(raylets, tmp_path, hurried, caplog):
    engine = RayEngine()
    given = [(x, tmp_path) for x in range(6)]
    assert engine.submit(double_stopped_once, given) == list(range(0, 12, 2))
    process = (tmp_path / "stopped").read_text()
    assert engine.losses == [f"process {process} on 127.0.0.1: a task, stopped for 6 s"]
    assert f"{engine.losses[0]}. Ray runs the task again" in caplog.text


def test_a_task_that_dies_again_and_again_is_given_up(raylets):
    with pytest.raises(
        fp.errors.ClusterError, match=r"^a task failed 4 times .* run the same command again$"
    ):
        RayEngine().submit(always_killed, [()])


def test_a_killed_replica_changes_nothing_not_even_twice(raylets, tmp_path):
    engine = Struck(2, tmp_path, (20, 40))
    assert engine.replicas(Sums(50)) == Threads(2).replicas(Sums(50))
    assert len(engine.losses) == 2
    assert all(" on 127.0.0." in loss and "lost" in loss for loss in engine.losses)


def test_a_replica_that_dies_again_and_again_is_given_up(raylets, tmp_path, monkeypatch):
    monkeypatch.setattr(on_ray, "RETRIES", 1)
    engine = Struck(2, tmp_path, (1, 2))
    with pytest.raises(fp.errors.ClusterError, match=r"^replicas were lost 2 times \(process \d+ on 127"):
        engine.replicas(Sums(10))


def test_a_stopped_replica_is_named_and_others_go_on(raylets, tmp_path, hurried, caplog):
    engine = Struck(None, tmp_path, (20,), number=signal.SIGSTOP)
    assert engine.replicas(Sums(50)) == Threads(NODES - 1).replicas(Sums(50))
    stopped = int((tmp_path / "20").read_text())
    end = time.monotonic() + 10
    with contextlib.suppress(ProcessLookupError):  # it is killed, too
        while time.monotonic() < end:
            os.kill(stopped, 0)
            time.sleep(0.1)
        pytest.fail(f"process {stopped} is still there")
    assert len(engine.losses) == 1
    assert engine.losses[0].startswith(f"process {stopped} on 127.0.0.1: no answer for 6 s")
    assert engine.losses[0] in caplog.text


ERRORS = [fp.errors.ParameterError("k: no"), fp.errors.CapacityError("full"), KeyboardInterrupt()]


def test_errors_are_raised_as_themselves_and_begin_nothing_again(raylets):
    engine = RayEngine(2)
    works = [(error, lambda error=error: engine.submit(raises, [(error,)])) for error in ERRORS]
    for error, work in [*works, (ERRORS[0], lambda: engine.replicas(Raises(ERRORS[0])))]:
        with pytest.raises(type(error)) as raised:
            work()
        assert type(raised.value) is type(error)
        assert str(raised.value) == str(error)
        assert raised.value.__cause__ is None
        assert "site-packages/ray" not in "".join(traceback.format_exception(raised.value))
    assert engine.losses == []


def planted():
    rng = np.random.default_rng(5)
    own = rng.integers(0, 16, 40_000)
    other = np.where(rng.random(40_000) < 0.8, own, rng.integers(0, 16, 40_000))
    ends = rng.integers(0, 400, (2, 40_000)) * 16
    return np.stack([ends[0] + own, ends[1] + other], axis=1)


@pytest.fixture
def graph(tmp_path):
    """Return a graph in a file, which all processes open."""
    file = tmp_path / "g.npy"
    np.save(file, planted())
    return fp.open_graph(file, num_vertices=6400)


def test_a_partition_has_the_bits_of_one_machine_also_if_a_replica_is_killed(raylets, graph, tmp_path):
    given = {"path": "two_levels", "sample": 0.1}
    shared, marks = tmp_path / "shared", tmp_path / "marks"
    shared.mkdir()
    marks.mkdir()
    engine = Struck(3, marks, (30,))
    made = on_machines("multilevel", Place(engine, shared, Shards(3, 5)), graph, 8, **given)
    np.testing.assert_array_equal(made.assignment, fp.multilevel(graph, 8, **given).assignment)
    assert len(engine.losses) == 1
    assert list(shared.iterdir()) == []


@pytest.mark.parametrize(
    ("stage", "finished"),
    [
        pytest.param("counts", [], marks=pytest.mark.soak),
        pytest.param("scattered", ["counts"], marks=pytest.mark.soak),
        pytest.param("shard", ["counts", "scattered"], marks=pytest.mark.soak),
        ("replicas", ["counts", "scattered", "shard"]),
    ],
)
def test_a_killed_command_goes_on(raylets, graph, tmp_path, stage, finished):
    shared, mark = tmp_path / "shared", tmp_path / "mark"
    shared.mkdir()
    command = [sys.executable, driver.__file__, raylets.address, graph.path, shared, mark, stage]
    assert subprocess.run(command, timeout=60).returncode == -signal.SIGKILL
    engine = Noting()
    made = driver.partition(engine, graph, shared)
    np.testing.assert_array_equal(made.assignment, fp.multilevel(graph, 8, **driver.GIVEN).assignment)
    assert engine.losses == []
    assert not [name for name in engine.made for done in finished if name.startswith(done)]
    assert list(shared.iterdir()) == []


MATRIX = list(
    itertools.product(("planted", "skewed"), (1, 2, 4), (Shards(1, 1), Shards(3, 5), Shards(5, 16)))
)


def same_as_one_machine(cell, folder):
    name, workers, shards = cell
    np.save(folder / "g.npy", {"planted": test_bits.planted, "skewed": test_bits.skewed}[name](6400, 40_000))
    graph = fp.open_graph(folder / "g.npy", num_vertices=6400)
    shared = folder / "shared"
    shared.mkdir()
    made = on_machines("multilevel", Place(RayEngine(workers), shared, shards), graph, 8, **driver.GIVEN)
    np.testing.assert_array_equal(made.assignment, fp.multilevel(graph, 8, **driver.GIVEN).assignment)
    assert list(shared.iterdir()) == []


@pytest.mark.parametrize(("name", "workers", "shards"), some_of(MATRIX, always=MATRIX[16:17]), ids=str)
def test_any_workers_and_shards_give_the_bits_of_one_machine(raylets, name, workers, shards, tmp_path):
    same_as_one_machine((name, workers, shards), tmp_path)


def test_a_stopped_first_replica_keeps_nobody_out(raylets, graph, tmp_path, hurried):
    shared, marks = tmp_path / "shared", tmp_path / "marks"
    shared.mkdir()
    marks.mkdir()
    engine = Struck(
        None, marks, (60,), number=signal.SIGSTOP, replica=0
    )  # it holds the lock of the checkpoints
    made = driver.partition(engine, graph, shared)
    np.testing.assert_array_equal(made.assignment, fp.multilevel(graph, 8, **driver.GIVEN).assignment)
    assert len(engine.losses) == 1


def test_partition_takes_the_address_of_a_cluster(raylets, graph, tmp_path):
    made = fp.partition(graph, 8, cluster=raylets.address, shared=tmp_path)
    assert made.parameters["chosen"]["because"] == f"{NODES} workers of a cluster make it"
    expected = fp.multilevel(graph, 8, path="two_levels", sample=made.parameters["sample"])
    np.testing.assert_array_equal(made.assignment, expected.assignment)
    assert fp.info(graph, 8, cluster="auto")["cluster"]["machines"] == NODES


def test_a_directory_and_its_measures_are_those_of_one_machine(raylets, graph, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    partition = fp.spring(graph, 8)
    partition.save(tmp_path / "expected", halo_hops=2)
    partition.save(tmp_path / "made", halo_hops=2, cluster=raylets.address, shared=shared)
    same(tmp_path / "made", tmp_path / "expected")
    assert list(shared.iterdir()) == []


def test_a_cluster_is_never_started_and_only_a_running_one_is_taken(raylets, tmp_path, monkeypatch):
    assert isinstance(engine_of("auto", tmp_path), RayEngine)
    with pytest.raises(fp.errors.ParameterError, match="this process is connected to 127"):
        checking.connect("127.0.0.1:1")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(fp.errors.ParameterError, match=r"cluster: nobody answers at 127\.0\.0\.9:1 "):
        checking.connect("127.0.0.9:1")
    for address in ("here", "local", "ray://127.0.0.2:1"):
        monkeypatch.setenv("RAY_ADDRESS", address)
        with pytest.raises(fp.errors.ParameterError, match='neither "auto" nor HOST:PORT'):
            checking.connect("auto")
    monkeypatch.delenv("RAY_ADDRESS")
    assert checking._resolved("auto") == raylets.address
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    with pytest.raises(fp.errors.ParameterError, match="no cluster of Ray was started on this machine"):
        checking.connect("auto")


def test_a_folder_that_a_node_does_not_see_is_refused(raylets, tmp_path, monkeypatch):
    monkeypatch.setattr(checking, "_LAG", 0.2)
    monkeypatch.chdir(tmp_path)
    Path("own").mkdir()
    with pytest.raises(
        fp.errors.ParameterError, match=r"own is not shared with 127\.0\.0\.1 \(it does not see"
    ):
        place_of("auto", "/proc/self/cwd/own")  # each process has its own
    assert list(Path("own").iterdir()) == []


def test_a_cluster_without_a_free_processor_is_refused(raylets, tmp_path, monkeypatch):
    monkeypatch.setattr(checking, "FREE", 3.0)
    end = tmp_path / "end"
    busy = [ray.remote(num_cpus=1)(sleeps).remote(end) for _ in range(NODES)]
    try:
        with pytest.raises(fp.errors.ParameterError, match="none of its 3 processors was free for 3 s"):
            place_of("auto", tmp_path)
    finally:
        end.touch()
        ray.get(busy)


@pytest.mark.parametrize(
    ("address", "changes", "said"),
    [
        ("10.0.0.3", {"token": False}, "whoever reaches 10.0.0.3 can run programs there"),
        ("127.0.0.2", {"token": False}, "RAY_AUTH_MODE=token"),
        ("10.0.0.3", {"fastpart": "0.0.1"}, "10.0.0.3 has fastpart 0.0.1 on Python"),
        ("10.0.0.3", {"python": "3.99"}, "on Python 3.99, this machine"),
        (
            "10.0.0.3",
            {"trouble": "it cannot write there: full"},
            r"shared: /s is not shared with 10.0.0.3 \(it cannot",
        ),
    ],
)
def test_unfit_nodes_are_refused_by_name(address, changes, said):
    node = Node("n", address, 1)
    fit = dict(zip(("fastpart", "python"), checking._versions(), strict=True)) | {
        "token": True,
        "trouble": "",
    }
    checking.refuse(node, checking.Answer(**fit), Path("/s"))
    checking.refuse(Node("n", "127.0.0.1", 1), checking.Answer(**fit | {"token": False}), Path("/s"))
    with pytest.raises(fp.errors.ParameterError, match=said):
        checking.refuse(node, checking.Answer(**fit | changes), Path("/s"))


def test_a_killed_node_changes_nothing(whole, tmp_path):
    own = ray.get_runtime_context().get_node_id()  # with it, Ray would end this process
    away = next(number for number, node in enumerate(on_ray.alive()) if node.key != own)
    engine = Struck(None, tmp_path, (20,), node=True, replica=away)
    assert engine.replicas(Sums(50)) == Threads(NODES - 1).replicas(Sums(50))
    assert engine.workers == NODES - 1
    assert 1 <= len(engine.losses) <= 2
