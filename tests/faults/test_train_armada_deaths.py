"""A batch worker that dies is survived, with the same results. Any other death ends all, and nothing is left."""

import os
import signal
import time

import numpy as np
import pytest
from watched import named, traces

import fastpart as fp
from soaked import some_of
from trainable import planted

pytest.importorskip("torch")

pytestmark = [pytest.mark.timeout(180), pytest.mark.usefixtures("nothing_left")]

SECONDS = 10
GIVEN = {
    "hidden": 8,
    "threads": 1,
    "batch_workers": 2,
    "compute_workers": 2,
    "batch_size": 20,
    "fanouts": [4, 3],
    "epochs": 100_000,
}


@pytest.fixture
def parts(tmp_path):
    return planted(tmp_path, k=4)


def killing(text, number=signal.SIGKILL, which=0, at=3):
    """Return a progress that kills a process, and when it has."""
    times = []

    def progress(_, done, __):
        if done == at:
            os.kill(named(text, which), number)
            times.append(time.monotonic())

    return progress, times


LOSSES = [(order, how) for order in ("global", "parts") for how in ("killed", "hangs")]


@pytest.mark.parametrize(("order", "how"), some_of(LOSSES, [("global", "hangs"), ("parts", "killed")]))
def test_a_batch_worker_that_is_lost_is_survived(parts, order, how):
    number, given = {"killed": (signal.SIGKILL, {}), "hangs": (signal.SIGSTOP, {"timeout": 10})}[how]
    tolerance = {"global": 1e-5, "parts": 0}[order]
    rest = {**GIVEN, "epochs": 6, "order": order, "cache": 0.1}
    progress, times = killing("batch_worker", number, which=1)
    found = fp.train.armada(parts, progress=progress, **rest, **given)
    assert times
    whole = fp.train.armada(parts, **rest)
    np.testing.assert_allclose(found.history["loss"], whole.history["loss"], rtol=tolerance)
    assert found.history["epoch"].to_list() == list(range(6))


@pytest.mark.parametrize(
    ("text", "name"), [("armada\0receiver", "receiver"), ("jobs.process", r"worker [01]")]
)
def test_another_death_ends_all(parts, text, name):
    progress, times = killing(text)
    with pytest.raises(fp.errors.TrainingError, match=rf"{name} was killed by SIGKILL"):
        fp.train.armada(parts, progress=progress, **GIVEN)
    assert time.monotonic() - times[0] < SECONDS


def test_the_death_of_all_batch_workers_ends_all(parts):
    progress, times = killing("batch_worker")
    with pytest.raises(fp.errors.TrainingError, match="batch worker 0 was killed by SIGKILL"):
        fp.train.armada(parts, progress=progress, **{**GIVEN, "batch_workers": 1})
    assert time.monotonic() - times[0] < SECONDS


def test_an_error_of_a_batch_worker_ends_all(parts):
    file = parts / "part-00001" / "features.npy"
    np.save(file, np.load(file)[:-1])
    with pytest.raises((fp.errors.GraphFormatError, fp.errors.TrainingError), match=r"features.npy"):
        fp.train.armada(parts, **GIVEN)


@pytest.mark.parametrize(
    ("text", "batch_workers"), [("batch_worker", 1), ("armada\0receiver", 2)], ids=["last", "receiver"]
)
def test_a_process_that_hangs_is_named(parts, text, batch_workers):
    progress, times = killing(text, signal.SIGSTOP)
    name = "batch worker 0" if text == "batch_worker" else "receiver"
    with pytest.raises(fp.errors.TrainingError, match=f"{name} hangs.*stopped, as by SIGSTOP"):
        fp.train.armada(parts, progress=progress, timeout=4, **{**GIVEN, "batch_workers": batch_workers})
    assert time.monotonic() - times[0] < SECONDS + 2


def test_what_lies_in_shared_memory_is_bounded(parts):
    """While compute workers sleep, batch workers wait."""
    seen = []

    def progress(_, done, __):
        if done in (1, 2):
            time.sleep(0.5)
            seen.append([name for name in traces(os.getpid(), parts.parent / "tmp") if "-batch-" in name])

    fp.train.armada(parts, progress=progress, ahead=2, **{**GIVEN, "epochs": 3})
    assert all(len(files) <= 2 * 2 for files in seen)
