"""Whatever becomes of a worker on mini-batches: all end within ten seconds with the cause, and nothing is left."""

import os
import signal
import tempfile
import time

import numpy as np
import pytest
from watched import named, runs, traces, tree

import fastpart as fp
from trainable import planted

pytest.importorskip("torch")

pytestmark = pytest.mark.timeout(180)

SECONDS = 10
GIVEN = {"hidden": 8, "threads": 1, "workers": 2, "batch_size": 100, "fanouts": [4, 3], "epochs": 100_000}


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """Return parts, and assert that neither processes nor files outlive the training."""
    (tmp_path / "tmp").mkdir()
    parts = planted(tmp_path, k=2)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    before = set(tree(os.getpid()))
    yield parts
    assert not [pid for pid in set(tree(os.getpid())) - before if runs(pid)]
    assert traces(os.getpid(), tmp_path / "tmp") == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_death_ends_all(parts, number):
    times = []

    def progress(_, done, __):
        if done == 3:
            os.kill(named("jobs.process", 1), number)
            times.append(time.monotonic())

    with pytest.raises(fp.errors.TrainingError, match=rf"worker [01] was killed by {number.name}"):
        fp.train.sampled(parts, progress=progress, **GIVEN)
    assert time.monotonic() - times[0] < SECONDS


def test_a_worker_that_is_slow_is_waited_for(parts):
    def progress(_, done, __):
        if done == 2:
            pid = named("jobs.process", 1)
            os.kill(pid, signal.SIGSTOP)
            time.sleep(1.5)
            os.kill(pid, signal.SIGCONT)

    trained = fp.train.sampled(parts, progress=progress, **{**GIVEN, "epochs": 4})
    assert (
        trained.history["loss"].to_list()
        == fp.train.sampled(parts, **{**GIVEN, "epochs": 4}).history["loss"].to_list()
    )


def test_a_part_that_is_cut_off_is_named(parts):
    file = parts / "part-00001" / "indices.npy"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(
        (fp.errors.GraphFormatError, fp.errors.TrainingError), match=r"part-00001/indices.npy"
    ):
        fp.train.sampled(parts, **GIVEN)


def test_features_of_the_wrong_length_are_named(parts):
    file = parts / "part-00001" / "features.npy"
    np.save(file, np.load(file)[:-1])
    with pytest.raises((fp.errors.GraphFormatError, fp.errors.TrainingError), match=r"features.npy"):
        fp.train.sampled(parts, **GIVEN)
