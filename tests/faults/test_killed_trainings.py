"""Trainings that are killed and resumed: the folder is whole after each kill, and the losses are those of one run."""

import pytest
from killed import numbers

from soaked import some_of

pytest.importorskip("torch")

CODE = """
import json, os, random, re, shutil, signal, sys, time
from pathlib import Path
import numpy as np, torch, fastpart as fp
from fastpart.report import comparisons as trainings
from fastpart.train.runs import history
folder = Path(sys.argv[1])
parts, killed, whole = folder / "parts", folder / "killed", folder / "whole"
torch.set_num_threads(1)
history.SAVE_SECONDS = 0  # a checkpoint after every epoch
KEPT = {history.CHECKPOINT, history.BEST, history.TABLE}
moments = random.Random(0)

def apart(call):
    # Polars and torch's threads must not be used before a fork.
    child = os.fork()
    if child == 0:
        try:
            call()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child

def done(child):
    assert os.waitpid(child, 0)[1] == 0

def save():
    n = 400
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1)
    labels = np.arange(n) // 100
    splits = {name: np.arange(i, n, 3) for i, name in enumerate(("train", "val", "test"))}
    features = np.eye(4, dtype=np.float32)[labels]
    fp.VertexPartition(labels % 2, 2).save(parts, graph=ring, features=features, labels=labels, splits=splits)

def train(out):
    return fp.train.full(parts, out=out, resume=True, epochs=20, hidden=8, batch_size=50, fanouts=[3, 3], threads=1)

def losses(out):
    content = torch.load(out / history.CHECKPOINT, weights_only=True)
    rows = json.loads(content["rows"])
    assert [row["epoch"] for row in rows] == list(range(len(rows)))
    return [row["loss"] for row in rows]

def look():
    '''What a kill leaves is whole: every file is of this epoch or of the one before.'''
    import polars as pl
    there = {path.name for path in killed.iterdir()} & KEPT
    if history.CHECKPOINT in there:
        rows = len(losses(killed))
        assert rows
        if history.TABLE in there:
            assert len(pl.read_parquet(killed / history.TABLE)) in (rows, rows - 1)
    if history.BEST in there:
        torch.load(killed / history.BEST, weights_only=True)

done(apart(save))
began = time.monotonic()
done(apart(lambda: train(whole)))
seconds = time.monotonic() - began
kills = 0
while kills < int(sys.argv[2]):
    child = apart(lambda: train(killed))
    time.sleep(moments.uniform(0, seconds / 3))
    os.kill(child, signal.SIGKILL)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
        shutil.rmtree(killed)  # it had ended
        continue
    kills += 1
    if killed.is_dir():
        done(apart(look))
done(apart(lambda: train(killed)))
assert losses(killed) == losses(whole)
assert sorted(os.listdir(killed)) == sorted(os.listdir(whole)), os.listdir(killed)
print(kills)
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kills", some_of([3, 10], always=[3]))
def test_kills_change_nothing(tmp_path, kills):
    assert numbers(CODE, tmp_path, kills, timeout=280) == [kills]
