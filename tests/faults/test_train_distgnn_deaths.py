"""Whatever becomes of a process of full-batch training: all end within ten seconds with the cause, nothing is left."""

import os
import signal
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from child import SignalAt, run_child
from watched import gone, named, traces

import fastpart as fp

pytest.importorskip("torch")

pytestmark = pytest.mark.timeout(180)

SECONDS = 10

GIVEN = {"hidden": 8, "threads": 1, "epochs": 100_000}


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    random = np.random.default_rng(0)
    edges = random.integers(0, 300, (1500, 2)).astype(np.uint32)
    features, labels = random.standard_normal((300, 8), np.float32), random.integers(0, 3, 300)
    splits = {"train": np.arange(150), "val": np.arange(150, 225), "test": np.arange(225, 300)}
    folder = tmp_path_factory.mktemp("parts") / "parts"
    fp.algorithms.hdrf(edges, k=2).save(folder, graph=edges, features=features, labels=labels, splits=splits)
    return folder


def killing(number, at=3):
    """Return a ``progress`` that signals a worker, and when it did so."""
    times = []

    def progress(_, done, __):
        if done == at:
            os.kill(named("jobs.process", 1), number)
            times.append(time.monotonic())

    return progress, times


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("given", [{"delay": 0}, {"delay": 5}, {"exchange": "never"}])
def test_a_death_ends_all(parts, given):
    progress, times = killing(signal.SIGKILL)
    with pytest.raises(
        fp.errors.TrainingError, match=r"^worker 1 was killed by SIGKILL \(probably out of memory"
    ):
        fp.train.distgnn(parts, **GIVEN, **given, progress=progress)
    assert time.monotonic() - times[0] < SECONDS


FAILING = """
import os, time
from fastpart.train.models import GraphSAGE

class Mine(GraphSAGE):
    calls = 0

    def forward(self, graphs, x):
        type(self).calls += 1
        if os.environ.get("RANK") == "1" and self.calls == 6:
            raise LookupError("no such thing")
        return super().forward(graphs, x)
"""


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("busy", [False, True])
def test_the_model_of_one_process_fails(parts, tmp_path, busy):
    """Others fail, too, as they wait for it in vain; whoever listens late still hears the cause."""
    file = tmp_path / "mine.py"
    file.write_text(FAILING)

    def progress(_, done, __):
        if busy and done == 2:
            time.sleep(2)

    with pytest.raises(fp.errors.TrainingError) as caught:
        fp.train.distgnn(parts, **GIVEN, model=f"{file}:Mine", progress=progress)
    text = str(caught.value)
    assert text.startswith("worker 1 ended with exit code 1 before its work was done. The other processes")
    assert f"LookupError: no such thing (in forward, {file}, line 11)" in text


@pytest.fixture
def at_start(tmp_path, monkeypatch):
    """Return a function that lets worker 1 execute some code before all else."""
    from fastpart.train.jobs import driver

    def let(code):
        (tmp_path / "site").mkdir()
        guarded = f"import os, runpy\nif os.environ.get('RANK') == '1':\n    {code}\n"
        guarded += f"runpy.run_module({driver.PROCESS!r}, run_name='__main__', alter_sys=True)\n"
        (tmp_path / "site" / "late.py").write_text(guarded)
        monkeypatch.syspath_prepend(tmp_path / "site")
        monkeypatch.setattr(driver, "PROCESS", "late")

    return let


@pytest.mark.usefixtures("nothing_left")
def test_a_worker_that_ends_before_it_starts(parts, at_start):
    at_start("os._exit(3)")
    with pytest.raises(
        fp.errors.TrainingError, match=r"^worker 1 ended with exit code 3 before its work was done"
    ):
        fp.train.distgnn(parts, **GIVEN)


@pytest.mark.usefixtures("nothing_left")
def test_a_worker_that_never_starts(parts, at_start, monkeypatch):
    from fastpart.runtime.watch import Supervisor

    monkeypatch.setitem(Supervisor.start.__kwdefaults__, "ready_within", 3.0)
    at_start("import time; time.sleep(1000)")
    begin = time.monotonic()
    with pytest.raises(fp.errors.TrainingError, match=r"^worker 0, worker 1: not ready after 3 s"):
        fp.train.distgnn(parts, **GIVEN)
    assert time.monotonic() - begin < 3 + SECONDS


TRAIN = """
import os, sys, tempfile
tempfile.tempdir = sys.argv[2]
sys.path.insert(0, sys.argv[5])
import fastpart as fp
from watched import descendants
def progress(phase, done, total):
    if done == 3:
        print(os.getpid(), *descendants(os.getpid()), flush=True)
        print("ready", flush=True)
given = dict(hidden=8, threads=1, delay=int(sys.argv[4]), out=sys.argv[3])
try:
    fp.train.distgnn(sys.argv[1], epochs=100_000, progress=progress, **given)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize(("number", "delay"), [(signal.SIGINT, 5), (signal.SIGKILL, 0)])
def test_the_end_of_the_process_of_the_user(parts, tmp_path, number, delay):
    from fastpart.runtime.launch import remove_stale

    out, tmp = tmp_path / "out", tmp_path / "tmp"
    tmp.mkdir()
    at = SignalAt(number, "ready")
    given = (parts, tmp, out, delay, Path(__file__).parent)
    outcome = run_child(TRAIN, *given, signal_at=at, may_die_of=[signal.SIGKILL], timeout=120)
    me, *below = map(int, outcome.out.splitlines()[0].split())
    assert len(below) == 3  # the server and two workers
    assert outcome.ended - outcome.signalled < SECONDS
    assert gone(*below, seconds=1)
    if number == signal.SIGINT:
        assert (outcome.rc, outcome.out.split()[-1]) == (0, "interrupted"), outcome.err
        assert {"best.pt", "checkpoint.pt", "history.parquet"} <= set(os.listdir(out))
    else:
        before, tempfile.tempdir = tempfile.tempdir, str(tmp)
        try:
            assert len(remove_stale()) == 1
        finally:
            tempfile.tempdir = before
    assert traces(me, tmp) == []
