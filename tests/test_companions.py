"""Files beside raw edges: those that fastpart wrote belong to the edges and go with them. All others are the user's."""

import json
import logging
import shutil

import numpy as np
import pytest

import fastpart as fp
from fastpart import _core
from fastpart.core.options import RunOptions

TEXT = "7 70\n70 9\n9 7\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "b.txt").write_text("0 1\n1 2\n")
    (tmp_path / "weighted.txt").write_text("0 1 2.5\n1 2 3\n")
    return tmp_path


def beside(folder):
    return sorted(path.name.removeprefix("g.bin.") for path in folder.glob("g.bin.*"))


def planted(folder):
    return fp.generate.planted(folder / "g.bin", n=60, m=300, classes=3, features=2)


WRITERS = {
    "convert": lambda folder: fp.convert(folder / "b.txt", folder / "g.bin"),
    "relabel": lambda folder: fp.convert(folder / "a.txt", folder / "g.bin", relabel=True),
    "weights": lambda folder: fp.convert(folder / "weighted.txt", folder / "g.bin", weights=3),
    "order": lambda folder: fp.order(np.array([[0, 1], [1, 2]]), out=folder / "g.bin"),
    "split": lambda folder: fp.split_edges(np.array([[0, 1], [1, 2]]), out=folder / "g.bin"),
    "planted": planted,
    "rmat": lambda folder: fp.generate.rmat(folder / "g.bin", n=20, m=30),
}
LISTED = {
    "convert": [],
    "relabel": ["ids.npy"],
    "weights": ["weights.npy"],
    "order": ["ids.npy"],
    "split": ["splits.npz"],
    "planted": ["features.npy", "labels.npy", "split.npz"],
    "rmat": [],
}


@pytest.mark.parametrize("name", WRITERS)
def test_the_sidecar_lists_what_comes_with_the_edges(folder, name):
    WRITERS[name](folder)
    sidecar = json.loads((folder / "g.bin.json").read_text())
    files = [folder / f"g.bin.{suffix}" for suffix in LISTED[name]]
    hashes = _core.hash_files(files, RunOptions())
    expected = {
        suffix: {"size": size, "xxh3": xxh3}
        for suffix, (size, xxh3) in zip(LISTED[name], hashes, strict=True)
    }
    assert sidecar.get("companions", {}) == expected
    assert beside(folder) == sorted(["json", *LISTED[name]])


@pytest.mark.parametrize("first", WRITERS)
@pytest.mark.parametrize("second", WRITERS)
def test_whoever_replaces_the_edges_removes_what_belonged_to_them(folder, first, second):
    WRITERS[first](folder)
    WRITERS[second](folder)
    assert beside(folder) == sorted(["json", *LISTED[second]])
    fp.open_graph(folder / "g.bin")


@pytest.mark.parametrize(
    ("name", "suffix"),
    [(name, suffix) for name in WRITERS for suffix in ("json", "weights.npy", *LISTED[name])],
)
def test_a_file_of_the_user_is_never_replaced(folder, name, suffix):
    mine = folder / f"g.bin.{suffix}"
    mine.write_bytes(b'{"mine": 1}')
    before = {path.name for path in folder.iterdir()}
    with pytest.raises(
        fp.errors.ParameterError, match=rf"out: .*g\.bin\.{suffix} would be replaced, but .* not list it"
    ):
        WRITERS[name](folder)
    assert {path.name for path in folder.iterdir()} == before
    assert mine.read_bytes() == b'{"mine": 1}'


def test_a_file_that_nobody_writes_stays(folder, caplog):
    (folder / "g.bin.labels.npy").write_bytes(b"mine")
    (folder / "g.bin.ids.npy").write_bytes(b"mine")
    with caplog.at_level(logging.INFO, "fastpart"):
        WRITERS["convert"](folder)
    assert beside(folder) == ["ids.npy", "json", "labels.npy"]
    assert "g.bin.ids.npy does not belong to the new file" in caplog.text


def test_what_the_user_changed_is_the_users(folder, caplog):
    planted(folder)
    labels, features = folder / "g.bin.labels.npy", folder / "g.bin.features.npy"
    labels.write_bytes(labels.read_bytes() + b"\0")  # another size
    content = bytearray(features.read_bytes())
    content[-1] ^= 1
    features.write_bytes(content)  # the same size
    with pytest.raises(fp.errors.ParameterError, match="would be replaced"):
        planted(folder)
    with caplog.at_level(logging.INFO, "fastpart"):
        WRITERS["convert"](folder)
    assert beside(folder) == ["features.npy", "json", "labels.npy"]
    left = {each.getMessage() for each in caplog.records}
    assert len([text for text in left if "is left: it changed after fastpart wrote it" in text]) == 2


def test_formats_without_a_sidecar_have_no_foreign_sidecar(folder):
    (folder / "g.txt.json").write_text('{"mine": 1}')
    (folder / "g.txt.weights.npy").write_bytes(b"mine")
    fp.convert(folder / "b.txt", folder / "g.txt")
    assert (folder / "g.txt.json").read_text() == '{"mine": 1}'
    assert (folder / "g.txt.weights.npy").read_bytes() == b"mine"


def test_weights_of_records_that_were_replaced_are_refused(folder):
    WRITERS["weights"](folder)
    np.array([[0, 1], [1, 2], [2, 0]], "<u4").tofile(folder / "g.bin")
    np.save(folder / "three.npy", np.array([1, 2, 3]))
    for use in (fp.open_graph, lambda file: fp.convert(file, folder / "out.bin")):
        with pytest.raises(
            fp.errors.GraphFormatError, match=r"g\.bin\.weights\.npy: belongs to the records that .*json"
        ):
            use(folder / "g.bin")
    assert fp.open_graph(folder / "g.bin", weights=False).num_edges == 3
    shutil.copy(folder / "three.npy", folder / "g.bin.weights.npy")  # those of the user
    assert fp.open_graph(folder / "g.bin").weights.tolist() == [1, 2, 3]


def test_a_conversion_does_not_take_other_weights_in_the_old_scale(folder):
    WRITERS["weights"](folder)
    np.save(folder / "g.bin.weights.npy", np.array([7, 8], np.uint32))
    with pytest.raises(fp.errors.GraphFormatError, match="other weights than the sidecar"):
        fp.convert(folder / "g.bin", folder / "out.bin")
    assert not (folder / "out.bin").exists()


def test_a_sidecar_of_an_earlier_version_has_no_list(folder):
    WRITERS["relabel"](folder)
    sidecar = json.loads((folder / "g.bin.json").read_text())
    del sidecar["companions"]
    (folder / "g.bin.json").write_text(json.dumps(sidecar))
    assert fp.open_graph(folder / "g.bin").num_vertices == 3
    with pytest.raises(fp.errors.ParameterError, match=r"g\.bin\.ids\.npy would be replaced"):
        WRITERS["relabel"](folder)
    WRITERS["convert"](folder)


@pytest.mark.parametrize(
    "companions",
    [[], {"../x": {"size": 1, "xxh3": "0"}}, {"": {"size": 1, "xxh3": "0"}}, {"json": {"size": 1, "xxh3": "0"}},
     {"x": 1}, {"x": {"size": -1, "xxh3": "0"}}, {"x": {"size": 1}}],
)  # fmt: skip
def test_lists_that_cannot_be_are_refused(folder, companions):
    WRITERS["relabel"](folder)
    sidecar = json.loads((folder / "g.bin.json").read_text()) | {"companions": companions}
    (folder / "g.bin.json").write_text(json.dumps(sidecar))
    with pytest.raises(fp.errors.GraphFormatError, match=r"g\.bin\.json: .*companions.*Delete it"):
        fp.open_graph(folder / "g.bin")
    with pytest.raises(fp.errors.ParameterError, match=r"g\.bin\.json would be replaced"):
        WRITERS["convert"](folder)


def test_an_interrupted_replacement_is_told_and_gone_on_from(folder):
    WRITERS["relabel"](folder)
    companions = json.loads((folder / "g.bin.json").read_text())["companions"]
    (folder / "g.bin.json").write_text(json.dumps({"fastpart": 1, "replacing": [companions, {}]}))
    for use in (fp.open_graph, lambda file: fp.convert(file, folder / "out.bin")):
        with pytest.raises(
            fp.errors.GraphFormatError, match=r"g\.bin: it was being replaced .* Write it again"
        ):
            use(folder / "g.bin")
    WRITERS["relabel"](folder)
    assert fp.open_graph(folder / "g.bin").num_vertices == 3
