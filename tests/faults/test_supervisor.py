"""Processes that are supervised end together, with the cause, and leave nothing."""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from child import SignalAt, run_child
from watched import gone, runs, traces

import fastpart as fp
from fastpart.runtime import launch as session_module
from fastpart.runtime.launch import Session, remove_stale
from fastpart.runtime.watch import Supervisor


@pytest.fixture(autouse=True)
def _temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert traces(os.getpid(), tmp_path) == []


@pytest.fixture(autouse=True, params=["new", "preloaded"])
def _begun(request, monkeypatch):
    """Let processes begin as new interpreters, or as copies of the server."""
    monkeypatch.setitem(Supervisor.start.__kwdefaults__, "preloaded", request.param == "preloaded")


def start(group, name, what, **options):
    group.start(name, "supervised", what, environment={"RUN": group.name}, **options)


def follow(group, *started, told):
    """Start processes, each given by name, what it does, and options, and listen to them."""
    for name, what, options in started:
        start(group, name, what, **options)
    for message in group.messages():
        told(message)


def fail(*started, told=lambda message: None):
    """Follow processes until one fails; return the refusal, and check that all have ended soon, and it itself."""
    heard = []

    def listen(message):
        heard.append(time.monotonic())
        told(message)

    group = Supervisor()
    with pytest.raises(fp.errors.TrainingError) as raised, group:
        follow(group, *started, told=listen)
    assert not heard or time.monotonic() - heard[-1] < 10
    assert not any(runs(child.group) for child in group._children)
    return str(raised.value)


SERVER = ("the server", "sleeps", {"serves": True})


def workers(*whats):
    return [(f"worker {i}", what, {}) for i, what in enumerate(whats)]


def test_work_is_done():
    with Supervisor() as group:
        for name, what, options in (SERVER, *workers("works", "works")):
            start(group, name, what, **options)
        said = [message for message in group.messages() if message[1] == "found"]
        server = group._children[0].process
        assert server.status() is None
        os.kill(server.pid, signal.SIGKILL)  # what serves may end as it likes, once all is done
    assert sorted(said) == [(f"worker {i}", "found", {"answer": 42}) for i in range(2)]


def test_a_failure_is_told_with_the_end_of_stderr():
    text = fail(SERVER, *workers("sleeps", "fails"))
    assert text.startswith("worker 1 ended with exit code 1 before its work was done")
    *lines, error = text.splitlines()
    assert lines[-1] == "  line 9999"
    assert len(lines) < 20
    assert error.startswith("  ValueError: no such thing (in main, ")
    assert "Traceback" not in text


def test_a_death_is_told_with_the_signal():
    assert fail(SERVER, *workers("sleeps", "dies")).startswith(
        "worker 1 was killed by SIGKILL (probably out of memory"
    )


def test_a_process_may_not_leave_before_it_is_done():
    assert fail(SERVER, *workers("leaves early")).startswith(
        "worker 0 ended with exit code 0 before its work was done"
    )


def test_a_server_may_not_end_before_the_work():
    def kill(message):
        name, kind, content = message
        if (name, kind) == ("the server", "pid"):
            os.kill(content, signal.SIGTERM)

    assert fail(SERVER, *workers("sleeps"), told=kill).startswith("the server was killed by SIGTERM")


def test_a_process_that_hangs_while_it_starts_is_named():
    """It cannot be asked yet where it is, and must not die of the question."""
    text = fail(*workers("waits in vain", "hangs while it starts"))
    assert text.startswith("worker 1 hangs: the other processes waited for it until the timeout")


def test_what_processes_print_and_warn_of_is_shown_on_stderr(capfd):
    with Supervisor() as group:
        follow(group, *workers("works aloud", "works aloud"), told=lambda message: None)
    out, err = capfd.readouterr()
    assert out == ""
    lines = sorted(err.splitlines())
    printed = [f"worker {i}: {text}" for i in range(2) for text in ("no end", "one", "two")]
    assert sorted(printed) == [line for line in lines if "beware" not in line]
    assert ["UserWarning: beware (" in line for line in lines].count(True) == 1


REPLACEABLE = {"serves": True, "replaceable": True}


def killer(name):
    def kill(message):
        if message[:2] == (name, "pid"):
            os.kill(message[2], signal.SIGKILL)

    return kill


def test_a_replaceable_process_may_be_killed_as_long_as_another_is_left():
    with Supervisor() as group:
        for name, what, options in [("one", "sleeps", REPLACEABLE), ("other", "sleeps", REPLACEABLE)]:
            start(group, name, what, **options)
        start(group, "worker 0", "works a second")
        kill, said = killer("one"), []
        for message in group.messages():
            kill(message)
            said.append(message)
    assert ("worker 0", "found", {"answer": 42}) in said


def test_the_last_replaceable_process_may_not_be_killed():
    one = ("one", "sleeps", REPLACEABLE)
    assert fail(one, *workers("sleeps"), told=killer("one")).startswith("one was killed by SIGKILL")


def test_an_error_of_a_replaceable_process_ends_all():
    both = [("one", "fails", REPLACEABLE), ("other", "sleeps", REPLACEABLE)]
    assert fail(*both, *workers("sleeps")).startswith("one ended with exit code 1")


def test_what_is_not_ready_in_time_is_named():
    slow = ("slow one", "never ready", {"ready_within": 0.5})
    assert fail(*workers("sleeps"), slow).startswith("slow one: not ready after 0.5 s")


def test_the_stubborn_and_the_orphans_end_too():
    pids, end = [], []

    def told(message):
        if message[1] in ("pid", "child"):
            pids.append(message[2])
        if len(pids) == 3:
            end.append(time.monotonic())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), Supervisor() as group:
        follow(group, *workers("is stubborn", "has children"), told=told)
    assert time.monotonic() - end[0] < 10
    assert gone(*pids, seconds=1)


def test_orphans_that_nobody_reaps_do_not_delay_the_end():
    orphans, end = [], []

    def told(message):
        if message[1] == "child":
            orphans.append(message[2])
            end.append(time.monotonic())
            raise ZeroDivisionError

    adopt_orphans, prctl = 36, ctypes.CDLL(None).prctl
    prctl(adopt_orphans, 1, 0, 0, 0)
    try:
        with pytest.raises(ZeroDivisionError), Supervisor() as group:
            follow(group, *workers("has children"), told=told)
        assert time.monotonic() - end[0] < 1
        os.waitpid(orphans[0], 0)
    finally:
        prctl(adopt_orphans, 0, 0, 0, 0)


# Prints what its children are, then waits for ever.
SUPERVISES = """
import os, sys, tempfile
sys.path.insert(0, sys.argv[1])
tempfile.tempdir = sys.argv[2]
from fastpart.runtime.launch import Server
from fastpart.runtime.watch import Supervisor
preloaded = sys.argv[3] == "True"
def supervise():
    pids = []
    with Supervisor() as group:
        for i, what in enumerate(["sleeps", "is stubborn"]):
            group.start(str(i), "supervised", what, environment={"RUN": group.name}, preloaded=preloaded)
        if preloaded:
            pids.append(Server._latest._process.pid)
        for _, kind, content in group.messages():
            if kind == "pid":
                pids.append(content)
            if len(pids) == 2 + preloaded:
                print(os.getpid(), *pids, flush=True)
                print("ready", flush=True)
                pids = []
try:
    supervise()
except KeyboardInterrupt:
    print("interrupted")
"""


def supervise(tmp_path, number, may_die_of=()):
    tests, preloaded = Path(__file__).parent, Supervisor.start.__kwdefaults__["preloaded"]
    outcome = run_child(
        SUPERVISES, tests, tmp_path, preloaded, signal_at=SignalAt(number, "ready"), may_die_of=may_die_of
    )
    me, *pids = map(int, outcome.out.splitlines()[0].split())
    assert len(pids) == 2 + preloaded
    assert gone(*pids, seconds=1)
    return outcome, me


def test_ctrl_c_ends_everything(tmp_path):
    outcome, me = supervise(tmp_path, signal.SIGINT)
    assert (outcome.rc, outcome.out.splitlines()[-1]) == (0, "interrupted"), outcome.err
    assert outcome.ended - outcome.signalled < 10
    assert traces(me, tmp_path) == []


def test_a_killed_supervisor_takes_all_along_and_the_next_cleans_up(tmp_path):
    _, me = supervise(tmp_path, signal.SIGKILL, [signal.SIGKILL])
    assert traces(me, tmp_path) != []
    with Supervisor():
        assert traces(me, tmp_path) == []


def test_runs_that_live_are_left_alone(tmp_path):
    with (
        Session() as mine,
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other,
    ):
        (session_module.SHARED_MEMORY / f"{mine.name}-data").write_text("x")
        dead = f"fastpart-{other.pid}-00c0ffee-data"
        (session_module.SHARED_MEMORY / dead).write_text("x")
        assert remove_stale() == []
        assert other.stdin is not None
        other.stdin.close()
        other.wait()
        assert remove_stale() == [dead.removesuffix("-data")]
        assert len(traces(os.getpid(), tmp_path)) == 3


@pytest.mark.parametrize("place", ["shared memory", "folder"])
def test_runs_of_other_containers_are_left_alone(place):
    """Their processes are not to be seen, nor one of the two places, but they hold a lock in the other one."""
    with Session() as mine:
        unseen = mine.name.replace(str(os.getpid()), str(2**22 + 1))
        seen = session_module._lock_of(mine.name) if place == "shared memory" else mine.folder
        renamed = Path(str(seen).replace(mine.name, unseen))
        seen.rename(renamed)
        try:
            assert remove_stale() == []
        finally:
            renamed.rename(seen)
