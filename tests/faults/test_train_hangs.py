"""A worker that hangs, whatever the method: all end soon after the timeout, it is named, and nothing is left."""

import os
import signal
import time

import numpy as np
import pytest
from watched import named

import fastpart as fp
from soaked import some_of
from trainable import planted

pytest.importorskip("torch")

pytestmark = pytest.mark.timeout(180)

GIVEN = {"hidden": 8, "threads": 1, "epochs": 100_000, "timeout": 3}

METHODS = {
    "sampled": {"workers": 2, "batch_size": 100, "fanouts": [4, 3]},
    "sampled alone": {"workers": 1, "batch_size": 100, "fanouts": [4, 3]},
    "sdt": {"workers": 2},
    "sdt by gradients": {"workers": 2, "average": "gradients"},
    "distgnn": {},
    "distgnn late": {"delay": 5},
    "sancus": {},
    "sancus late": {"max_age": 2, "rows": "boundary"},
}


@pytest.fixture(scope="module")
def parts_of(tmp_path_factory):
    """Return the parts of each method."""
    folder = tmp_path_factory.mktemp("parts")
    vertices = planted(folder, k=2)
    random = np.random.default_rng(0)
    edges = random.integers(0, 300, (1500, 2)).astype(np.uint32)
    features, labels = random.standard_normal((300, 8), np.float32), random.integers(0, 3, 300)
    splits = {"train": np.arange(150), "val": np.arange(150, 225), "test": np.arange(225, 300)}
    fp.algorithms.hdrf(edges, k=2).save(
        folder / "e", graph=edges, features=features, labels=labels, splits=splits
    )
    return lambda method: folder / "e" if method == "distgnn" else vertices


def train(case, parts_of, **given):
    method = case.split()[0]
    return getattr(fp.train, method)(parts_of(method), **{**GIVEN, **METHODS[case], **given})


# A stopped worker is noticed as a sleeping one is, which is tried below with the exchange of each method.
@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("case", some_of(["sampled", "sampled alone", "distgnn late"], ["sampled alone"]))
def test_a_worker_that_is_stopped_is_named(case, parts_of):
    stopped = []

    def progress(_, done, __):
        if done == 7:
            stopped.append(METHODS[case].get("workers", 2) - 1)
            os.kill(named("jobs.process", stopped[0]), signal.SIGSTOP)
            stopped.append(time.monotonic())

    with pytest.raises(fp.errors.TrainingError) as caught:
        train(case, parts_of, progress=progress)
    rank, at = stopped
    assert f"worker {rank} hangs: the other processes waited for it" in str(caught.value)
    assert "It is stopped, as by SIGSTOP" in str(caught.value)
    assert time.monotonic() - at < 15


SLEEPER = """
import os, time
from fastpart.train.models import GraphSAGE
class Mine(GraphSAGE):
    calls = 0
    def forward(self, graphs, x):
        type(self).calls += self.training
        if os.environ.get("RANK") == "1" and self.calls == 8:
            time.sleep(1000)
        return super().forward(graphs, x)
"""


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    "case",
    some_of(
        [case for case in METHODS if case != "sampled alone"], ["sampled", "sdt", "distgnn late", "sancus"]
    ),
)
def test_a_worker_that_sleeps_is_named_with_the_place(case, parts_of, mine):
    start = time.monotonic()
    with pytest.raises(fp.errors.TrainingError, match=r"worker 1 hangs: (.|\n)*mine.py.* in forward"):
        train(case, parts_of, model=mine(SLEEPER))
    assert time.monotonic() - start < 60
