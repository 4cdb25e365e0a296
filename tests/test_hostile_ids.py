"""Values in the files of a part that are no ids or masks: every reader refuses them before it indexes by them."""

import json

import numpy as np
import pytest

import fastpart as fp
from needed import needing_torch

RING = np.array([[v, (v + 1) % 40] for v in range(40)], dtype=np.uint32)


@pytest.fixture
def vertices(tmp_path):
    """A vertex partition of two parts that can be trained on."""
    fp.VertexPartition(np.arange(40) // 20, 2).save(
        tmp_path / "vertices",
        graph=RING,
        features=np.eye(40, dtype=np.float32),
        labels=np.arange(40) % 3,
        splits={"train": range(0, 40, 2), "val": range(1, 40, 4), "test": range(3, 40, 4)},
        edge_features=np.arange(40.0),
        edge_splits={"val": [[0, 20]], "test": [[3, 30]]},
    )
    return tmp_path / "vertices"


@pytest.fixture
def edges(tmp_path):
    fp.EdgePartition(np.arange(40) // 20, 2).save(tmp_path / "edges", graph=RING)
    return tmp_path / "edges"


def put(folder, name, value, place=-1):
    """Change a value in a file of the first part. Its size stays."""
    file = folder / "part-00000" / f"{name}.npy"
    array = np.load(file)
    array.reshape(-1)[place] = value
    np.save(file, array)


RANGES = [
    ("vertices", [-1, 40, 2**40, -(2**63)], r"ids of vertices, 0\.\.39"),
    ("vertices", [20], "ids that ascend, of the inner vertices and of each hop"),
    ("degree", [-1, 81], r"in-degrees, 0\.\.80"),
    ("indices", [-1, 22, -(2**31)], r"local ids, 0\.\.21"),
    ("edge_ids", [-1, 80, 2**62], r"ids of directed edges, 0\.\.79"),
    ("edge_reverse", [-2, 80], r"ids of directed edges, -1\.\.79"),
    ("halo_parts", [-1, 2], "parts below 2"),
    ("halo_rows", [-1, 20], "rows of inner vertices of the owners"),
    ("edge_train", [-1, 40], "pairs of ids whose targets are inner vertices"),
    ("edge_val", [-1, 40], "pairs of ids whose targets are inner vertices"),
]


@pytest.mark.parametrize(("name", "values", "text"), RANGES)
def test_numbers_out_of_their_range(vertices, name, values, text):
    if name.startswith("edge_val"):
        values = [*values]
    for value in values:
        if name == "edge_val" and not len(fp.open_partition(vertices).parts[0].edge_val):
            pytest.skip("no pair here")
        put(vertices, name, value, place=0 if name == "vertices" and value == 20 else -1)
        with pytest.raises(fp.errors.GraphFormatError, match=rf"part-00000/{name}\.npy: expected {text}"):
            getattr(fp.open_partition(vertices).parts[0], name)


@pytest.mark.parametrize(
    ("name", "values"), [("root", [-1, 2]), ("vertices", [-1, 40]), ("edge_ids", [-1, 80])]
)
def test_numbers_out_of_their_range_in_a_part_of_the_edges(edges, name, values):
    for value in values:
        put(edges, name, value)
        with pytest.raises(fp.errors.GraphFormatError, match=rf"part-00000/{name}\.npy: expected "):
            getattr(fp.open_partition(edges).parts[0], name)


def test_a_mask_of_other_bytes_than_0_and_1(vertices):
    file = vertices / "part-00000" / "train.npy"
    content = bytearray(file.read_bytes())
    content[-1] = 2
    file.write_bytes(content)
    with pytest.raises(fp.errors.GraphFormatError, match=r"part-00000/train\.npy: expected 0 and 1"):
        _ = fp.open_partition(vertices).parts[0].train


def test_directed_records_have_one_edge_each(tmp_path):
    fp.VertexPartition(np.arange(40) // 20, 2).save(
        tmp_path / "parts", graph=fp.open_graph(RING, directedness="directed")
    )
    put(tmp_path / "parts", "edge_ids", 40)
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"edge_ids\.npy: expected ids of directed edges, 0\.\.39"
    ):
        _ = fp.open_partition(tmp_path / "parts").parts[0].edge_ids


BAD = {"vertices": 10**9, "edge_ids": 10**9, "indices": -7}


@pytest.mark.parametrize("name", [*BAD, "negative edge_ids"])
@pytest.mark.parametrize("system", needing_torch(["glt", "pyg", "wholegraph"], "glt", "pyg"))
def test_exports_refuse_them(vertices, tmp_path, system, name):
    name, value = ("edge_ids", -5) if name.startswith("negative") else (name, BAD[name])
    put(vertices, name, value)
    with pytest.raises(fp.errors.GraphFormatError, match=rf"part-00000/{name}\.npy: expected "):
        getattr(fp.export, system)(vertices, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.torch
@pytest.mark.parametrize("name", ["vertices", "indices", "labels"])
def test_training_refuses_them(vertices, name):
    if name == "labels":  # 0 and 1 of a multi-label task
        content = json.loads((vertices / "manifest.json").read_text())
        del content["files"]
        content["labels"] = {"dtype": "uint8", "shape": [2]}
        (vertices / "manifest.json").write_text(json.dumps(content))
        for part in ("part-00000", "part-00001"):
            np.save(vertices / part / "labels.npy", np.full((20, 2), 3, np.uint8))
    else:
        put(vertices, name, BAD[name])
    with pytest.raises(fp.errors.GraphFormatError, match=rf"part-00000/{name}\.npy: expected "):
        fp.train.full(vertices, epochs=1, threads=1)
