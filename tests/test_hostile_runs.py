"""Folders of trainings of strangers: what the list says is refused by name, or changes nothing."""

import numpy as np
import pytest

import fastpart as fp
from json_damage import check_all

pytestmark = pytest.mark.torch

MARKER = "fastpart-run.json"

TOLD = ("data", "summary", "how", "arguments", "per_worker", "xxh3")
"""Entries of the list that are told, or compared where a training goes on."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    ring = np.array([[i, (i + 1) % 12] for i in range(12)])
    labels = np.arange(12) // 6
    given = {"features": np.eye(2, dtype=np.float32)[labels], "labels": labels}
    splits = {"train": [0, 3, 6, 9], "val": [1, 7], "test": [2, 8]}
    fp.VertexPartition(labels, k=2).save(folder / "parts", graph=ring, splits=splits, **given)
    fp.train.full(folder / "parts", epochs=2, hidden=4, out=folder / "run", threads=1)
    return folder / "run"


def test_every_value_is_checked(run):
    def read():
        trained = fp.train.open(run)
        return {name: rows.numpy().tobytes() for name, rows in trained.weights.items()}

    check_all(run / MARKER, read, TOLD)
