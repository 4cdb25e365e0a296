"""Whatever dies of a training with DGL's engine, all ends within ten seconds with the cause, and nothing is left."""

import os
import signal
import socket
import tempfile
import time

import pytest
from child import SignalAt, run_child
from watched import gone, named, runs, sessions_of, traces, tree

import fastpart as fp

pytest.importorskip("torch")
pytest.importorskip("dgl")

pytestmark = pytest.mark.timeout(180)

SECONDS = 10


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    from distributed import planted

    return planted(tmp_path_factory.mktemp("parts") / "parts", 2)


VICTIMS = {
    "trainer": ("distdgl.worker", r"trainer [01] \(of part [01]\) was killed by SIGKILL"),
    "server": ("distdgl.server", r"the server of part [01] was killed by SIGKILL"),
    "sampler": (
        "spawn_main",
        r"trainer [01] \(of part [01]\) ended with exit code 1 .*\s+one of its samplers was killed by SIGKILL",
    ),
}


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_death_ends_all(parts, tmp_path, monkeypatch, victim):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    command, expected = VICTIMS[victim]
    alive, killed = [], []

    def progress(phase, done, total):
        if phase == "epoch" and done == 3:
            alive.extend(tree(os.getpid()))
            os.kill(named(command), signal.SIGKILL)
            killed.append(time.monotonic())

    with pytest.raises(fp.errors.TrainingError, match=f"(?s)^{expected}"):
        fp.train.distdgl(parts, epochs=100_000, samplers=int(victim == "sampler"), progress=progress)
    assert time.monotonic() - killed[0] < SECONDS
    assert len(alive) >= 4
    assert not any(map(runs, alive))
    assert traces(os.getpid(), tmp_path) == []


def test_a_taken_port(parts, tmp_path, monkeypatch):
    from fastpart.train.methods.distdgl import driver

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as other:
        free, taken = driver._free_ports(1), other.getsockname()[1]
        monkeypatch.setattr(driver, "_free_ports", lambda count: [*free, taken])
        with pytest.raises(
            fp.errors.TrainingError, match=f"^the server of part 1 ended .*\n.*127.0.0.1:{taken}"
        ):
            fp.train.distdgl(parts)
    assert traces(os.getpid(), tmp_path) == []


TRAIN = """
import os, sys, tempfile
tempfile.tempdir = sys.argv[2]
import fastpart as fp
def progress(phase, done, total):
    if phase == "epoch" and done == 3:
        print(os.getpid(), flush=True)
        print("ready", flush=True)
def main():
    try:
        fp.train.distdgl(sys.argv[1], epochs=100_000, samplers=1, progress=progress)
    except KeyboardInterrupt:
        print("interrupted")
import warnings
warnings.simplefilter("ignore")
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_end_of_the_process_of_the_user(parts, tmp_path, number):
    before = set(tree(os.getpid()))
    outcome = run_child(
        TRAIN, parts, tmp_path, signal_at=SignalAt(number, "ready"), may_die_of=[signal.SIGKILL], timeout=120
    )
    me = int(outcome.out.split()[0])
    assert outcome.ended - outcome.signalled < SECONDS
    assert not [pid for pid in sessions_of(tmp_path) if not gone(pid, seconds=SECONDS)]
    assert before >= set(tree(os.getpid()))
    if number == signal.SIGINT:
        assert (outcome.rc, outcome.out.split()[-1]) == (0, "interrupted"), outcome.err
    else:
        from fastpart.runtime.launch import remove_stale

        monkey = tempfile.tempdir
        tempfile.tempdir = str(tmp_path)
        try:
            assert len(remove_stale()) == 1
        finally:
            tempfile.tempdir = monkey
    assert traces(me, tmp_path) == []
