"""Folders of trainings of strangers: what the list says is refused by name, or changes nothing."""

import json

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


def test_every_value_of_an_export_to_dgl_is_checked(tmp_path):
    from fastpart.train.methods.distdgl.exported import Export

    config = tmp_path / "graph.json"
    files = {key: f"part{{}}/{key}.dgl" for key in ("node_feats", "edge_feats", "part_graph")}
    content = {
        "graph_name": "graph",
        "num_parts": 2,
        "node_map": {"_N": [[0, 3], [3, 6]]},
        "edge_map": {"_N:_E:_N": [[0, 4], [4, 9]]},
        **{f"part-{part}": {key: name.format(part) for key, name in files.items()} for part in range(2)},
        "fastpart": "0.1.0",
    }
    config.write_text(json.dumps(content))
    check_all(config, lambda: Export._read(config, {}).parts, ("fastpart",))
    (tmp_path / "part1").symlink_to("/etc")
    with pytest.raises(fp.errors.GraphFormatError, match=r"part1/node_feats\.dgl: leads out of the export"):
        Export._read(config, {})
