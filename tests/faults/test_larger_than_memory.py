"""From a graph to predictions, with features that the memory of a control group does not hold."""

import json
import subprocess
import sys

import numpy as np
import pytest
from control_groups import control_group

import fastpart as fp

pytest.importorskip("torch")

N, M, WIDTH, LIMIT = 167_772, 1_342_177, 512, 1400 << 20
BATCHES = ["--fanouts", "10,10", "--batch-size", "200", "--workers", "1"]

pytestmark = pytest.mark.timeout(600)


def test_features_larger_than_memory_are_planned_trained_on_and_predicted(tmp_path):
    def run(*words):
        command = [sys.executable, "-m", "fastpart", *map(str, words), "--threads", "2"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, preexec_fn=group.enter)
        assert done.returncode == 0, done.stderr
        return done.stdout

    order = np.random.default_rng(0).permutation(N)
    np.savez(tmp_path / "s.npz", train=order[:3000], val=order[3000:4000], test=order[4000:5000])
    with control_group(LIMIT) as group:
        run("generate", "planted", "g.bin", "--n", N, "--m", M, "--classes", 16, "--features", WIDTH)
        files = ["--features", "g.bin.features.npy", "--labels", "g.bin.labels.npy", "--splits", "s.npz"]
        run("partition", "g.bin", "-k", 4, "-o", "parts", *files)
        costs = json.loads(run("info", "parts", "--train", *BATCHES, "--json"))
        assert costs["left"] < costs["stored"]["bytes"]
        plan = json.loads(run("plan", "parts", "--epochs", 2, *BATCHES, "-o", "packed", "--json"))
        train = ["train", "sampled", "parts", "--epochs", 3, "--hidden", 16, *BATCHES, "--plan", "packed"]
        run(*train, "-o", "run", "--predictions", "classes.npy")
        assert group.kills() == 0
    trained = fp.train.open(tmp_path / "run")
    assert trained.history["rows"][:2].sum() == plan["workers"][0]["rows"]
    assert (trained.history["read_bytes"] <= 1.01 * 4 * WIDTH * trained.history["rows"]).all()
    in_memory = trained.predict(tmp_path / "parts")
    np.testing.assert_array_equal(np.load(tmp_path / "classes.npy"), in_memory)
    assert trained.summary["test_accuracy"] > 2 / 16
