"""Copies of the server differ in nothing from new interpreters, and end with whoever asked for them."""

import json
import os
import resource
import signal
import threading
import time
from pathlib import Path

import pytest
from child import SignalAt, run_child
from watched import command, gone, runs

import fastpart as fp
from fastpart.runtime.launch import Server
from fastpart.runtime.watch import Supervisor


def told(what, count=1, preloaded=True, **environment):
    """Start processes, and return what they report."""
    with Supervisor() as group:
        for i in range(count):
            group.start(f"worker {i}", "supervised", what, environment=environment, preloaded=preloaded)
        return [content for _, kind, content in group.messages() if kind == "found"]


def sleep(then, name="worker 0"):
    """Start a process that sleeps, and call a function with its number."""
    with Supervisor() as group:
        group.start(name, "supervised", "sleeps", environment={"RUN": group.name}, preloaded=True)
        for _, kind, content in group.messages():
            if kind == "pid":
                then(content)


@pytest.fixture
def _shadows(tmp_path, monkeypatch):
    """Be in a folder with modules that nobody may import."""
    for name in ("torch", "json", "random", "supervised"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(99)")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_shadows")
def test_a_copy_is_what_a_new_interpreter_is(monkeypatch, tmp_path):
    copies, (soft, hard) = [], resource.getrlimit(resource.RLIMIT_NOFILE)
    for value in ("1", "2"):  # the server of the first one is there for the second one
        monkeypatch.setenv("FASTPART_TEST", value)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft - int(value), hard))
        (copied,), (new,) = (told("describes itself", preloaded=each, OWN="x") for each in (True, False))
        for name in ("parent", "tmp"):
            del copied[name], new[name]
        assert copied == new
        copies.append(copied)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert [copy["environment"]["FASTPART_TEST"] for copy in copies] == ["1", "2"]
    assert [copy["limits"][0][0] for copy in copies] == [soft - 1, soft - 2]
    assert copies[0]["folder"] == str(tmp_path)


def test_a_copy_needs_no_call_that_pythons_for_an_older_c_library_lack(monkeypatch):
    """Those of conda and uv."""
    for name in ("memfd_create", "pidfd_open"):
        monkeypatch.delattr(os, name, raising=False)
    assert told("works") == [{"answer": 42}]


def test_copies_draw_different_numbers():
    first, second = told("describes itself", count=2)
    assert first["parent"] == second["parent"] == Server._latest._process.pid
    one, other = told("draws", count=2)
    assert one != other


def test_a_copy_has_the_name_of_what_it_does():
    def look(pid):
        assert command(pid).rstrip("\0").split("\0")[-3:] == ["-m", "supervised", "sleeps"]
        raise InterruptedError

    with pytest.raises(InterruptedError):
        sleep(look)


def test_variables_that_libraries_read_once_make_another_server(monkeypatch):
    told("describes itself")
    first = Server._latest
    told("describes itself")
    assert Server._latest is first
    pid = first._process.pid
    monkeypatch.setenv("OMP_PROC_BIND", "close")
    told("describes itself")
    assert Server._latest is not first
    del first
    assert gone(pid, seconds=1)


def test_a_server_that_died_is_replaced_and_its_copies_are_dead():
    pids = []

    def kill(content):
        pids.append(content)
        os.kill(Server._latest._process.pid, signal.SIGKILL)

    with pytest.raises(fp.errors.TrainingError, match=r"^worker 0 was killed by SIGKILL"):
        sleep(kill)
    assert gone(*pids, seconds=1)
    assert len(told("describes itself")) == 1


def test_trainings_in_threads_leave_each_other_alone():
    errors, pids, waits = [], {}, threading.Event()

    def train(name):
        def then(pid):
            pids[name] = pid
            if name == "ends":
                raise InterruptedError
            waits.set()

        try:
            sleep(then, name)
        except (fp.errors.TrainingError, InterruptedError) as error:
            errors.append(str(error))

    stays = threading.Thread(target=train, args=["stays"])
    stays.start()
    assert waits.wait(60)
    ends = threading.Thread(target=train, args=["ends"])  # the server may not end with the thread
    ends.start()
    ends.join()
    assert not runs(pids["ends"])
    time.sleep(0.2)
    assert runs(pids["stays"])
    assert stays.is_alive()
    os.kill(pids["stays"], signal.SIGKILL)
    stays.join()
    assert [error.partition(" (")[0] for error in errors] == ["", "stays was killed by SIGKILL"]


# Starts a worker in a thread that ends at once, and a child that keeps all its files open.
FORKS = """
import os, sys, threading, time
sys.path.insert(0, sys.argv[1])
from fastpart.runtime.launch import Server
from fastpart.runtime.watch import Supervisor
group = Supervisor()
start = lambda: group.start("0", "supervised", "sleeps", environment={"RUN": group.name}, preloaded=True)
thread = threading.Thread(target=start)
thread.start()
thread.join()
pid = next(content for _, kind, content in group.messages() if kind == "pid")
child = os.fork()
if child == 0:
    time.sleep(1000)
print(pid, Server._latest._process.pid, child, flush=True)
print("ready", flush=True)
time.sleep(1000)
"""


def test_a_child_of_the_launcher_keeps_nothing_alive():
    at = SignalAt(signal.SIGKILL, "ready")
    outcome = run_child(FORKS, Path(__file__).parent, signal_at=at, may_die_of=[signal.SIGKILL])
    *pids, _ = map(int, outcome.out.split()[:3])
    assert gone(*pids, seconds=1)


ENDS = """
import os, sys
sys.path.insert(0, sys.argv[1])
from fastpart.runtime.launch import Server
from fastpart.runtime.watch import Supervisor
with Supervisor() as group:
    group.start("0", "supervised", "works", environment={"RUN": group.name}, preloaded=True)
    list(group.messages())
print(Server._latest._process.pid)
"""


def test_the_server_ends_before_the_process_of_the_user():
    outcome = run_child(ENDS, Path(__file__).parent)
    assert (outcome.rc, outcome.err) == (0, "")
    assert not runs(int(outcome.out))


def test_a_launcher_that_gives_up_leaves_no_worker(monkeypatch):
    """The server has not begun with it."""
    monkeypatch.setenv("OMP_PROC_BIND", "spread")  # a new server, which imports for seconds
    start = time.monotonic()

    def give_up():
        with Supervisor() as group:
            group.start("worker", "supervised", "sleeps", environment={"RUN": group.name}, preloaded=True)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        give_up()
    assert time.monotonic() - start < 2
    server = Server._latest._process.pid
    assert json.dumps(told("describes itself"))  # the server has come to it
    assert Path(f"/proc/{server}/task/{server}/children").read_text() == ""
