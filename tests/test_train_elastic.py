"""A training whose number of ranks changes: killed with four, killed again with three, and ended by five."""

import json

import numpy as np
import pytest

import fastpart as fp
from random_typed import random_typed_graph
from ranks import of_torchrun, run_code
from soaked import some_of
from trainable import planted
from typed_training import typed_parts

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.timeout(300)

PARTS = 6
EXACT = {"precision": "float64", "threads": 1, "epochs": 5}
SMALL = {**EXACT, "hidden": 8, "fanouts": [4, 3]}

# A rank that may kill itself in the middle of a step, after its gradients have gone out.
RANK = """
import json, os, signal, sys
import fastpart as fp
import fastpart.train.runs.history
from fastpart.train.learning.learner import Learner
method, parts, out, given, dying, last = sys.argv[1:4] + [json.loads(word) for word in sys.argv[4:]]
fp.train.runs.history.SAVE_SECONDS = -1
real, made = Learner.step, [0]
def step(self, loss):
    made[0] += 1
    if os.environ["RANK"] == str(dying) and made[0] == last:
        os.kill(os.getpid(), signal.SIGKILL)
    real(self, loss)
Learner.step = step
class Steps:
    def on_step(self, row):
        print("STEP", json.dumps(row), flush=True)
trained = getattr(fp.train, method)(parts, out=out, resume=True, timeout=60, callbacks=[Steps()], **given)
"""


def of_links(folder):
    fp.generate.planted(folder / "g.bin", n=400, m=2400, classes=4, features=5, seed=1)
    splits = fp.split_edges(folder / "g.bin", seed=2, out=folder / "train.bin")
    p = fp.spring(splits.graph, k=PARTS)
    p.save(folder / "parts", graph=splits.graph, edge_splits=splits, features=folder / "g.bin.features.npy")
    return folder / "parts"


def of_facts(folder):
    splits = fp.split_edges(random_typed_graph(folder / "graph", 3), 0.1, 0.1)
    p = fp.VertexPartition(np.arange(splits.graph.num_vertices) * 7 % 11 % PARTS, PARTS)
    p.save(folder / "parts", graph=splits.graph, edge_splits=splits)
    return folder / "parts"


def of_types(folder):
    typed_parts(folder, k=PARTS, widths={"author": 3})  # rows of fields and papers are learned
    return folder / "parts"


# The method, its directory, its parameters, and the steps in which a rank dies: in the second epoch that it trains.
TRAININGS = {
    "sampled": ("sampled", lambda folder: planted(folder, k=PARTS), {**SMALL, "batch_size": 75}, (7, 7)),
    "learned rows": (
        "sampled",
        of_types,
        {**SMALL, "model": "rgcn", "fanouts": [3, 3], "batch_size": 15},
        (7, 7),
    ),
    "sdt": ("sdt", lambda folder: planted(folder, k=PARTS), {**SMALL, "batch_size": 20 * PARTS}, (9, 9)),
    "links": ("links", of_links, {**SMALL, "batch_size": 600, "embeddings": 4}, (5, 5)),
    "embeddings": ("embeddings", of_facts, {**EXACT, "width": 8, "batch_size": 50}, (8, 8)),
}


def steps_of(text):
    """Return the losses that a rank has printed, by epoch and step."""
    rows = [json.loads(line[5:]) for line in text.splitlines() if line.startswith("STEP ")]
    return {(row["epoch"], row["step"]): row["loss"] for row in rows}


class Steps:
    """The losses of all steps."""

    def __init__(self):
        self.rows = {}

    def on_step(self, row):
        self.rows[row["epoch"], row["step"]] = row["loss"]


@pytest.mark.parametrize("training", some_of(TRAININGS, always=["learned rows", "sdt"]))
def test_the_number_of_ranks_changes_no_loss(tmp_path, training):
    method, make, given, (first, second) = TRAININGS[training]
    parts, out, expected = make(tmp_path), tmp_path / "out", Steps()
    alone = getattr(fp.train, method)(parts, out=tmp_path / "alone", workers=1, callbacks=[expected], **given)
    steps, epochs = {}, []
    for size, dying, last in ((4, 0, first), (3, 2, second), (5, None, 0)):
        words = method, parts, out, *map(json.dumps, (given, dying, last))
        ranks = run_code(RANK, *words, size=size, variables=lambda rank, size=size: of_torchrun(rank, size))
        codes = [rank.code for rank in ranks]
        if dying is None:
            assert codes == [0] * size, ranks
        else:
            assert codes[dying] == -9, ranks
            assert 0 not in codes
        steps |= steps_of(ranks[0].out)
        so_far = fp.train.open(out)
        epochs.append(len(so_far.history))
        if dying is not None and training == "learned rows":
            with pytest.raises(
                fp.errors.ParameterError, match="has not ended, and writes the learned rows of 'f"
            ):
                so_far.predict(parts)
    assert 0 < epochs[0] < epochs[1] < epochs[2] == given["epochs"]
    assert steps.keys() == expected.rows.keys()
    np.testing.assert_allclose([steps[key] for key in expected.rows], list(expected.rows.values()), rtol=1e-9)
    trained = fp.train.open(out)
    np.testing.assert_allclose(trained.history["loss"], alone.history["loss"], rtol=1e-9)
    for name, weights in alone.weights.items():
        torch.testing.assert_close(trained.weights[name], weights, rtol=1e-6, atol=1e-9)


def test_what_depends_on_the_number_of_workers_is_refused(tmp_path):
    parts = planted(tmp_path, k=3)
    quick = {"epochs": 1, "threads": 1, "hidden": 4, "batch_size": 100}
    dependent = {
        "sdt": {"average": "gradients", "batch_size": 50},
        "sampled": {"model": "clustergcn"},
    }
    for method, given in dependent.items():
        train = getattr(fp.train, method)
        train(parts, out=tmp_path / method, workers=2, **{**quick, **given})
        text = r"was trained by 2 workers, not 1\. Their number decides about its batches"
        with pytest.raises(fp.errors.ParameterError, match=text):
            train(parts, out=tmp_path / method, workers=1, resume=True, **{**quick, **given})
