"""Hostile and damaged partition directories: refused with the file's name, and nothing worse."""

import json
import os
import re
import shutil

import numpy as np
import pytest

import fastpart as fp
from fastpart.partitions.parts import VertexPartData

EDGES = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3], [0, 4], [5, 5]], dtype=np.uint32)
"""Two triangles joined by two edges, and a loop."""

ARRAYS = {
    "vertex": "vertices degree indptr indices edge_ids "
    "halo_parts halo_rows features halo_features labels train edge_features",
    "edge": "vertices degree indptr indices edge_ids root send recv features labels train edge_features",
}


def look(part, name):
    """Ask for what is in one file of a part."""
    found = getattr(part, name)
    return found(1) if name in ("send", "recv") else found


def everything(part):
    """Ask for all that a part has."""
    kind = "vertex" if isinstance(part, VertexPartData) else "edge"
    part.in_edges()
    return [look(part, name) for name in ARRAYS[kind].split()]


@pytest.fixture(params=ARRAYS)
def folder(request, tmp_path):
    """A directory of two parts that holds all that it can."""
    vertex = request.param == "vertex"
    partition = (
        fp.VertexPartition([0, 0, 0, 1, 1, 1], 2)
        if vertex
        else fp.EdgePartition([0, 0, 0, 1, 1, 1, 0, 1, 1], 2)
    )
    partition.save(
        tmp_path / "parts",
        graph=EDGES,
        features=np.eye(6, dtype=np.float32),
        labels=np.arange(6),
        splits={"train": [0, 4]},
        edge_features=np.arange(9.0),
        **({"halo_features": True} if vertex else {}),
    )
    everything(fp.open_partition(tmp_path / "parts").parts[0])
    return tmp_path / "parts"


def names(folder):
    return sorted(path.stem for path in (folder / "part-00000").glob("*.npy"))


def refuse(folder, name, text):
    with pytest.raises(fp.errors.GraphFormatError, match=rf"part-00000/{name}\.npy:? {text}"):
        everything(fp.open_partition(folder).parts[0])
    everything(fp.open_partition(folder).parts[1])


def change(file, **fields):
    content = {
        name: value for name, value in (json.loads(file.read_text()) | fields).items() if value != "absent"
    }
    file.write_text(json.dumps(content))


# 45
def test_arrays_of_another_shape_or_dtype(folder):
    for name in names(folder):
        file = folder / "part-00000" / f"{name}.npy"
        before = file.read_bytes()
        array = np.load(file)
        for bad in (
            array[1:],
            np.concatenate([array, array]),
            array[None],
            array.astype("<u2"),
            array.astype(">i8"),
        ):
            np.save(file, bad)
            refuse(folder, name, rf"expected {array.dtype} of shape .*, got {bad.dtype} of shape|expected ")
        file.write_bytes(before)


# 45
def test_damaged_arrays(folder):
    for name in names(folder):
        file = folder / "part-00000" / f"{name}.npy"
        before = file.read_bytes()
        huge = (
            re.sub(rb"\(\d+", b"(9999999999999", before[:128]).rstrip(b" \n").ljust(127)
            + b"\n"
            + before[128:]
        )
        for bad in (
            b"",
            before[:40],
            before[:-1],
            b"\x80\x04\x95" + bytes(30),
            b"PK\x03\x04" + bytes(30),
            huge,
        ):
            file.write_bytes(bad)
            refuse(folder, name, r"not a \.npy array \(.+\)")
        array = np.array([None] * 3)
        np.save(file, array, allow_pickle=True)
        refuse(folder, name, r"not a \.npy array \(.*Python objects")
        file.unlink()
        refuse(folder, name, "is missing. The partition directory is incomplete")
        os.mkfifo(file)
        with pytest.raises(fp.errors.GraphFormatError, match=rf"{name}\.npy: not a regular file"):
            everything(fp.open_partition(folder).parts[0])
        file.unlink()
        file.write_bytes(before)


# 45
def test_arrays_of_another_content(folder):
    first = folder / "part-00000"
    for name, bad in (("indices", -1), ("indices", 6), ("indptr", -1), ("indptr", 99)):
        array = np.load(first / f"{name}.npy")
        changed = array.copy()
        changed[1] = bad
        np.save(first / f"{name}.npy", changed)
        refuse(folder, name, "expected (local ids, 0|offsets that ascend from 0)")
        np.save(first / f"{name}.npy", array)
    array = np.load(first / "indptr.npy")
    for changed in (array + 1, np.where(array == array[-1], array[-1] - 1, array)):
        np.save(first / "indptr.npy", changed)
        refuse(folder, "indptr", "expected offsets that ascend from 0")


@pytest.mark.parametrize("folder", ["vertex"], indirect=True)
@pytest.mark.parametrize("bad", [-1, 3, 2**31 - 1, -(2**31)])
def test_rows_that_the_owner_does_not_have(folder, bad):
    file = folder / "part-00000" / "halo_rows.npy"
    rows = np.load(file)
    rows[-1] = bad
    np.save(file, rows)
    refuse(folder, "halo_rows", r"expected rows of inner vertices of the owners")


@pytest.mark.parametrize("folder", ["vertex"], indirect=True)
@pytest.mark.parametrize("bad", [-1, 0, 2])
def test_owners_that_are_no_other_parts(folder, bad):
    file = folder / "part-00000" / "halo_parts.npy"
    parts = np.load(file)
    parts[-1] = bad
    np.save(file, parts)
    refuse(folder, "halo_parts", "expected (parts below 2|other parts than part 0)")


@pytest.mark.parametrize("folder", ["edge"], indirect=True)
@pytest.mark.parametrize("name", ["send", "recv"])
def test_lists_for_peers_of_another_content(folder, name):
    first = folder / "part-00000"
    array = np.load(first / f"{name}_indptr.npy")
    np.save(first / f"{name}_indptr.npy", array + 1)
    refuse(folder, f"{name}_indptr", "expected offsets that ascend from 0")
    np.save(first / f"{name}_indptr.npy", array)
    np.save(first / f"{name}.npy", np.full_like(np.load(first / f"{name}.npy"), 77))
    refuse(folder, name, "expected local ids, 0")


# 45
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"part": 1}, "part: 1, but this is the folder of part 0"),
        ({"part": "absent"}, "lacks 'part'"),
        ({"num_inner": -1}, "num_inner: -1 is not between"),
        ({"num_inner": 2.0}, "num_inner: expected an integer, got float"),
        ({"num_inner": True}, "num_inner: expected an integer, got bool"),
        ({"num_inner": "absent"}, "lacks 'num_inner'"),
        ({"num_edges": 2**70}, "num_edges: .* is not between"),
        ({"num_edges": None}, "num_edges: expected an integer, got NoneType"),
    ],
)
def test_hostile_sizes(folder, fields, text):
    change(folder / "part-00000" / "part.json", **fields)
    with pytest.raises(fp.errors.GraphFormatError, match=rf"part-00000/part\.json: {text}"):
        fp.open_partition(folder).parts[0]


VERTEX_SIZES = [
    {"num_halo": value} for value in (1, [1], [1, 2, 3], [-1, 2], "xy", None, "absent", [2**64, 0])
]
VERTEX_SIZES += [{"num_rows": 1}, {"num_rows": 99}]
EDGE_SIZES = [{"num_roots": 0}, {"num_send": 9}, {"num_roots": "absent"}]


# 45
@pytest.mark.parametrize(
    ("folder", "fields"),
    [("vertex", fields) for fields in VERTEX_SIZES] + [("edge", fields) for fields in EDGE_SIZES],
    indirect=["folder"],
)
def test_hostile_sizes_of_one_kind(folder, fields):
    change(folder / "part-00000" / "part.json", **fields)
    with pytest.raises(fp.errors.GraphFormatError, match=r"part-00000/part\.json: "):
        fp.open_partition(folder).parts[0]


# 45
def test_hostile_text_of_sizes(folder):
    file = folder / "part-00000" / "part.json"
    for text in ("", "{", "[]", "3", "[" * 100_000, "\x00"):
        file.write_text(text)
        with pytest.raises(
            fp.errors.GraphFormatError, match=r"part\.json: (not JSON|expected a JSON object)"
        ):
            fp.open_partition(folder).parts[0]
    file.unlink()
    with pytest.raises(fp.errors.GraphFormatError, match=r"part\.json is missing"):
        fp.open_partition(folder).parts[0]


# 45
@pytest.mark.parametrize(
    "stated",
    [
        3,
        [],
        {},
        {"dtype": "float32"},
        {"dtype": "object", "shape": [6]},
        {"dtype": "O", "shape": [6]},
        {"dtype": ["float32"], "shape": [6]},
        {"dtype": "float32", "shape": 6},
        {"dtype": "float32", "shape": [-6]},
        {"dtype": "float32", "shape": [6.0]},
        {"dtype": "float32", "shape": "6"},
        {"dtype": "float32", "shape": [2**70]},
    ],
)
def test_hostile_descriptions(folder, stated):
    change(folder / "manifest.json", features=stated)
    with pytest.raises(fp.errors.GraphFormatError, match=r"manifest\.json: features: "):
        _ = fp.open_partition(folder).parts[0].features
    change(folder / "manifest.json", features={"dtype": "float64", "shape": [6]})
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"features\.npy: expected float64 of shape .*, got float32 of shape"
    ):
        _ = fp.open_partition(folder).parts[0].features
    change(folder / "manifest.json", splits=3)
    with pytest.raises(fp.errors.GraphFormatError, match=r"manifest\.json: splits: "):
        _ = fp.open_partition(folder).parts[0].train


# 45
def test_links_that_lead_out(folder, tmp_path):
    first = folder / "part-00000"
    shutil.copytree(first, tmp_path / "secret")
    shutil.move(first, tmp_path / "first")
    first.symlink_to(tmp_path / "secret")
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"part-00000/part\.json: leads out of the partition directory"
    ):
        fp.open_partition(folder).parts[0]
    first.unlink()
    shutil.move(tmp_path / "first", first)
    for name in names(folder):
        file = first / f"{name}.npy"
        file.unlink()
        file.symlink_to(tmp_path / "secret" / f"{name}.npy")
        refuse(folder, name, "leads out of the partition directory")
        file.unlink()
        shutil.copy(tmp_path / "secret" / f"{name}.npy", file)
    # The directory itself may be reached by a link, and links within it harm nobody.
    (tmp_path / "alias").symlink_to(folder)
    (first / "degree.npy").rename(first / "moved.npy")
    (first / "degree.npy").symlink_to("moved.npy")
    everything(fp.open_partition(tmp_path / "alias").parts[0])


# 45
def test_names_in_the_manifest_are_not_followed(folder, tmp_path):
    change(folder / "manifest.json", parts=["/etc"], more={"path": "../.."})
    for part in fp.open_partition(folder).parts:
        everything(part)
    change(folder / "manifest.json", splits=["train", "../../secret"])
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"manifest\.json: splits: expected some of train, val, test"
    ):
        fp.open_partition(folder)


def test_a_directory_that_lacks_a_part(folder):
    shutil.rmtree(folder / "part-00001")
    parts = fp.open_partition(folder).parts
    everything(parts[0])
    with pytest.raises(fp.errors.GraphFormatError, match=r"part-00001/part\.json is missing"):
        parts[1]
