"""Trainings that are killed at random moments, again and again: they go on to the same losses."""

import pytest
from child import run_child

from trainable import planted

pytest.importorskip("torch")

KILLED = """
import json, os, random, signal, sys, time
import fastpart as fp
import fastpart.train.history as history
import fastpart.train.centralized
history.SAVE_SECONDS = 0  # every epoch
parts, out = sys.argv[1:]
given = dict(hidden=8, threads=1, epochs=60, batch_size=100, fanouts=[3, 3])
moments = random.Random(1)

def apart(work):
    # Polars, which writes the history, hangs in a forked child if its parent has used it.
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return child

def train():
    fp.train.full(parts, out=out, resume=True, **given)

def tell():
    trained = fp.train.open(out)
    anew = fp.train.full(parts, **given)
    same = trained.history["loss"].to_list() == anew.history["loss"].to_list()
    print(len(trained.history), same, sorted(os.listdir(out)), flush=True)

begun = time.monotonic()
child = apart(lambda: fp.train.full(parts, **{**given, "epochs": 12}))
os.waitpid(child, 0)
most = 2 * (time.monotonic() - begun)
killed = 0
while killed < 10:
    child = apart(train)
    time.sleep(moments.uniform(0, most))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) in (-signal.SIGKILL, 0), status
    killed += status != 0
    if status == 0:
        most /= 2
print(killed)
for work in (train, tell):
    assert os.waitpid(apart(work), 0)[1] == 0
"""


@pytest.mark.timeout(300)
def test_ten_kills_change_no_loss(tmp_path):
    outcome = run_child(KILLED, planted(tmp_path, k=2), tmp_path / "run", timeout=290)
    assert outcome.rc == 0, outcome.err
    files = ["best.pt", "checkpoint.pt", "fastpart-run.json", "history.parquet"]
    assert outcome.out.splitlines() == ["10", f"60 True {files}"]
