"""A folder of fastpart's is replaced by its own list of files: nobody else's file is ever deleted."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import fastpart as fp
from fastpart.cli import main

EDGES = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3]], dtype=np.uint32)
DATA = Path(__file__).parent / "data" / "schemas"
MINE = {"notes.txt": "years", "run/best.pt": "of", "part-00000/thoughts.md": "work"}


def save(folder, **more):
    fp.VertexPartition([0, 0, 0, 1, 1, 1], 2).save(folder, graph=EDGES, **more)
    return folder


def put(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def content(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture
def parts(tmp_path):
    return save(tmp_path / "parts")


@pytest.mark.parametrize("name", MINE)
def test_saving_over_what_fastpart_did_not_write_names_it_and_touches_nothing(parts, name):
    put(parts, {name: MINE[name]})
    before = content(parts)
    told = name.split("/")[0] if name.startswith("run") else name
    for call in (
        lambda: save(parts),
        lambda: fp.VertexPartition([0] * 6, 1).save(parts),
        lambda: fp.update(parts, np.vstack([EDGES, [[1, 4]]]), balance=1.5).save(
            parts, graph=np.vstack([EDGES, [[1, 4]]])
        ),
    ):
        with pytest.raises(
            fp.ParameterError, match=rf"parts holds what fastpart did not write there: {told}\. Move"
        ):
            call()
    assert content(parts) == before


def test_the_command_refuses_before_any_work(parts, tmp_path, capsys, monkeypatch):
    np.save(tmp_path / "g.npy", EDGES)
    put(parts, MINE)
    before = content(parts)

    def never(*_, **__):
        raise AssertionError("work")

    monkeypatch.setattr("fastpart._core.partition", never)
    for words in (["partition", "g.npy", "-k", "2", "-o"], ["update", "g.npy", "parts", "-o"]):
        given = [str(tmp_path / word) if word in ("g.npy", "parts") else word for word in words]
        assert main([*given, str(parts)]) == 2
        assert "notes.txt, part-00000/thoughts.md, run. Move it, or name a new" in capsys.readouterr().err
    assert content(parts) == before


@pytest.mark.parametrize(
    "manifest",
    ['{"manifest_version": 3, "name": "extension", "version": "1"}', "[]", "3", "{", '"fastpart"', ""],
)
def test_a_manifest_of_others_makes_no_partition_directory(tmp_path, manifest):
    put(tmp_path / "extension", {"manifest.json": manifest, ".git/HEAD": "ref", "assignment.npy": "homework"})
    before = content(tmp_path / "extension")
    with pytest.raises(
        FileExistsError, match=r"is not a partition directory \(no manifest\.json of fastpart in it\)"
    ):
        save(tmp_path / "extension")
    assert content(tmp_path / "extension") == before


def test_a_list_that_is_none_owns_nothing(parts):
    stored = json.loads((parts / "manifest.json").read_text())
    for files in (None, 3, [3], "part-00000"):
        (parts / "manifest.json").write_text(json.dumps(stored | {"files": files}))
        with pytest.raises(FileExistsError, match="is not a partition directory"):
            save(parts)


@pytest.mark.parametrize("schema", ["1", "2", "3"])
def test_directories_without_a_list_own_the_names_of_their_time(tmp_path, schema):
    for of in ("vertices", "edges"):
        folder = Path(shutil.copytree(DATA / schema / of, tmp_path / of))
        put(folder, {"part-00000/mine.npy": "mine"})
        with pytest.raises(fp.ParameterError, match=r"did not write there: part-00000/mine\.npy\. Move"):
            save(folder)
        (folder / "part-00000/mine.npy").unlink()
        put(folder, {"cache.json": "{}", "part-00001/cache_ids.npy": ""})
        save(folder, overwrite=True)
        assert fp.store.verify(folder).foreign == ()


def test_folders_of_others_with_the_names_of_parts_stay(parts, tmp_path):
    """A link to a folder is no folder of ours, even under the name of a part."""
    put(tmp_path / "elsewhere", {"part.json": "mine"})
    (parts / "part-00002").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(fp.ParameterError, match=r"did not write there: part-00002\. Move"):
        save(parts)
    assert content(tmp_path / "elsewhere") == {"part.json": b"mine"}


@pytest.mark.parametrize("system", ["text", "wholegraph"])
def test_an_export_lists_its_files_and_replaces_no_others(parts, tmp_path, system):
    export, out = getattr(fp.export, system), tmp_path / "out"
    marker = {"text": "part_meta.json", "wholegraph": "partition_book.json"}[system]
    export(parts, out)
    listed = json.loads((out / marker).read_text())["files"]
    assert sorted([marker, *listed]) == sorted(file.name for file in out.iterdir())
    put(out, {"labels_part_0_of_2_mine": "mine"})
    with pytest.raises(
        fp.ParameterError, match=r"out holds what fastpart did not write there: labels_part_0_of_2_mine"
    ):
        export(parts, out)
    (out / "labels_part_0_of_2_mine").unlink()
    # Exports of earlier versions have no list.
    stored = json.loads((out / marker).read_text())
    (out / marker).write_text(json.dumps({name: value for name, value in stored.items() if name != "files"}))
    put(out, {"README": "mine"})
    with pytest.raises(
        fp.ParameterError, match=r"out holds what fastpart did not write there: README\. Move"
    ):
        export(parts, out)
    (out / "README").unlink()
    export(parts, out)
    assert json.loads((out / marker).read_text())["files"] == listed
