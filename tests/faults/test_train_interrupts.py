"""Ctrl-C while a model is trained: answered within a second or so, and training can go on where it was."""

import signal

import numpy as np
import pytest
from child import SignalAt, run_child

import fastpart as fp

pytest.importorskip("torch")

TRAIN = """
import sys, time
import fastpart as fp
from fastpart.train.models import GraphSAGE

class Mine(GraphSAGE):
    pass

def progress(phase, done, total):
    if done == 2:
        print("ready", flush=True)

parts, output = sys.argv[1:]
given = dict(model=Mine, hidden=8, threads=1, batch_size=50, out=output)
try:
    fp.train.full(parts, epochs=100_000, progress=progress, **given)
except KeyboardInterrupt:
    print("caught", time.monotonic())

def stop(phase, done, total):
    raise RuntimeError(done)

try:
    fp.train.full(parts, epochs=100_000, progress=stop, resume=True, **given)
except RuntimeError as error:
    print("went on to", error)
"""


@pytest.fixture
def parts(tmp_path):
    edges = fp.generate.planted(tmp_path / "g.bin", n=2000, m=20_000, classes=4, features=16)
    beside = {name: tmp_path / f"g.bin.{name}.npy" for name in ("features", "labels")}
    split = dict(np.load(tmp_path / "g.bin.split.npz"))
    fp.algorithms.random(edges, k=2).save(tmp_path / "parts", graph=edges, splits=split, **beside)
    return tmp_path / "parts"


def test_ctrl_c_ends_training_with_a_checkpoint(parts, tmp_path):
    at = SignalAt(signal.SIGINT, "ready")
    outcome = run_child(TRAIN, parts, tmp_path / "out", signal_at=at, timeout=50)
    caught, went_on = outcome.out.splitlines()[1:]
    assert outcome.rc == 0, outcome.err
    assert float(caught.split()[1]) - outcome.signalled < 2
    assert int(went_on.rpartition(" ")[2]) >= 2
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert names == {"best.pt", "checkpoint.pt", "fastpart-run.json", "history.parquet"}
