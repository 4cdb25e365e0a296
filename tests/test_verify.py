"""Partition directories list their files: what rotted is named, by ``verify`` all of it, by its size at once."""

import json
import os
import shutil

import numpy as np
import pytest

import fastpart as fp
from fastpart.cli import main
from soaked import soak

EDGES = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3], [0, 4], [5, 5]], dtype=np.uint32)
"""Two triangles joined by two edges, and a loop."""


@pytest.fixture(params=["vertices", "edges"])
def folder(request, tmp_path):
    """A directory of two parts that holds all that it can."""
    of_vertices = request.param == "vertices"
    partition = (
        fp.VertexPartition([0, 0, 0, 1, 1, 1], 2)
        if of_vertices
        else fp.EdgePartition([0, 0, 0, 1, 1, 1, 0, 1, 1], 2)
    )
    more = {"halo_features": True, "edge_splits": {"val": [[1, 5]]}} if of_vertices else {}
    partition.save(
        tmp_path / "parts",
        graph=EDGES,
        features=np.eye(6, dtype=np.float32),
        labels=np.arange(6),
        splits={"train": [0, 4]},
        edge_features=np.arange(9.0),
        **more,
    )
    return tmp_path / "parts"


def below(folder):
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def manifest(folder):
    return json.loads((folder / "manifest.json").read_text())


def flip(file, place):
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)


def refused(folder, text):
    with pytest.raises(fp.errors.GraphFormatError, match=text):
        fp.store.verify(folder)
    with pytest.raises(fp.errors.GraphFormatError, match=text):
        fp.open_partition(folder, verify=True)


def test_an_intact_directory_is_told_with_its_size(folder, capsys):
    files = below(folder)
    size = sum((folder / name).stat().st_size for name in files if name != "manifest.json")
    assert fp.store.verify(folder) == fp.store.Verification(len(files), size, ())
    assert fp.open_partition(folder, verify=True).k == 2
    assert main(["verify", str(folder)]) == 0
    text = f"{folder}: {len(files)} files with {size:,} bytes are as they were written\n"
    assert capsys.readouterr().out == text
    assert main(["verify", str(folder), "--json"]) == 0
    expected = {"source": str(folder), "files": len(files), "bytes": size, "foreign": []}
    assert json.loads(capsys.readouterr().out) == expected


def test_a_flipped_bit_of_any_file_is_named(folder):
    for name in below(folder):
        before = (folder / name).read_bytes()
        for place in (0, len(before) // 2, -1):
            flip(folder / name, place)
            if name == "manifest.json":
                with pytest.raises(fp.errors.GraphFormatError, match="manifest"):
                    fp.store.verify(folder)
            else:
                refused(folder, rf"1 of \d+ files are damaged: {name} \(differs\)")
            (folder / name).write_bytes(before)
    fp.store.verify(folder)


@pytest.mark.parametrize("step", [61, soak(7)])
def test_every_changed_byte_of_the_manifest_is_noticed(folder, step):
    file = folder / "manifest.json"
    before = file.read_bytes()
    for place in range(0, len(before), step):
        for other in (before[place] ^ 1, ord(" "), ord("0")):
            content = bytearray(before)
            content[place] = other
            if content != before:
                file.write_bytes(content)
                with pytest.raises(fp.errors.GraphFormatError, match="manifest"):
                    fp.store.verify(folder)


def test_all_damaged_files_are_named_at_once(folder, capsys):
    first = folder / "part-00000"
    flip(first / "features.npy", -1)
    (first / "labels.npy").unlink()
    (folder / "part-00001" / "train.npy").write_bytes(b"")
    flip(folder / "metrics.parquet", 40)
    text = (
        r"4 of \d+ files are damaged: metrics\.parquet \(differs\), part-00000/features\.npy \(differs\), "
        r"part-00000/labels\.npy \(missing\), part-00001/train\.npy \(0 bytes instead of 13[12]\)\. Copy them or save"
    )
    refused(folder, text)
    assert main(["verify", str(folder)]) == 1
    assert "part-00000/labels.npy (missing)" in capsys.readouterr().err


def test_what_is_no_regular_file_is_named_and_never_waited_for(folder, tmp_path):
    file = folder / "part-00001" / "labels.npy"
    whole = shutil.copy(file, tmp_path / "labels.npy")
    for put, text in (
        (lambda: os.mkfifo(file), "not a regular file"),
        (file.mkdir, "not a regular file"),
        (lambda: file.symlink_to("labels.npy"), "Too many levels of symbolic links"),
        (lambda: file.symlink_to("/dev/zero"), "leads out of the partition directory"),
        (lambda: file.symlink_to(whole), "leads out of the partition directory"),
    ):
        if file.is_dir() and not file.is_symlink():
            file.rmdir()
        else:
            file.unlink()
        put()
        refused(folder, rf"part-00001/labels\.npy \({text}\)")


def test_foreign_files_are_only_mentioned(folder, capsys):
    (folder / "run").mkdir()
    (folder / "run" / "best.pt").write_text("mine")
    (folder / "notes").write_text("mine")
    assert fp.store.verify(folder).foreign == ("notes", "run/best.pt")
    assert main(["verify", str(folder)]) == 0
    assert "note: run/best.pt was not written by fastpart, and not compared" in capsys.readouterr().err


def test_what_cannot_be_verified_is_refused(tmp_path):
    fp.VertexPartition([0, 1], 2).save(tmp_path / "part.npy")
    with pytest.raises(fp.errors.ParameterError, match=r"part\.npy is a file\. Only partition directories"):
        fp.open_partition(tmp_path / "part.npy", verify=True)
    with pytest.raises(FileNotFoundError, match="absent"):
        fp.store.verify(tmp_path / "absent")
    with pytest.raises(fp.errors.GraphFormatError, match="is not a partition directory"):
        fp.store.verify(tmp_path)
    with pytest.raises(TypeError, match="verify"):
        fp.open_partition(tmp_path / "part.npy", verify="yes")


@pytest.mark.parametrize(
    ("files", "text"),
    [
        (3, "the field 'files' holds an integer, not an object"),
        ({"assignment.npy": 3}, r"the field 'files\[\.\.\.\]' holds an integer, not an object"),
        ({"assignment.npy": {"size": -1, "xxh3": ""}}, "size': expected an integer >= 0"),
        ({"../secret": {"size": 1, "xxh3": ""}}, "the field 'files' holds a name that"),
        ({"/etc/passwd": {"size": 1, "xxh3": ""}}, "the field 'files' holds a name that"),
    ],
)
def test_a_hostile_list_is_refused(tmp_path, files, text):
    fp.VertexPartition([0, 1], 2).save(tmp_path / "parts")
    content = manifest(tmp_path / "parts") | {"files": files}
    (tmp_path / "parts" / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(fp.errors.GraphFormatError, match=rf"manifest\.json: .*{text}"):
        fp.open_partition(tmp_path / "parts")
    with pytest.raises(fp.errors.GraphFormatError, match=rf"manifest\.json: .*{text}"):
        fp.store.verify(tmp_path / "parts")


@pytest.mark.parametrize("name", ["assignment.npy", "part-00000/part.json", "part-00001/labels.npy"])
def test_another_size_is_noticed_without_verify(folder, name):
    with (folder / name).open("ab") as opened:
        opened.write(b" ")
    with pytest.raises(fp.errors.GraphFormatError, match=rf"{name}: \d+ bytes, but manifest\.json says \d+"):
        _ = [part.labels for part in fp.open_partition(folder).parts]


def test_every_writer_keeps_the_list(tmp_path):
    target = tmp_path / "parts"
    ring = np.array([[v, (v + 1) % 60] for v in range(60)])
    splits = {"train": range(0, 60, 2)}
    fp.VertexPartition(np.arange(60) // 15, 4).save(target, graph=ring, splits=splits, features=np.eye(60))
    fp.open_partition(target).save_cache(0.4, fanouts=[2])
    assert {"cache.json", "part-00003/cache_ids.npy"} <= set(manifest(target)["files"])
    assert fp.store.verify(target).foreign == ()
    fp.open_partition(target).save_cache(0.1, fanouts=[2])
    assert fp.store.verify(target).files == len(below(target))
    grown = np.vstack([ring, [[3, 60]]])
    fp.update(grown, target, balance=1.1).save(target, graph=grown, overwrite=True)
    assert "cache.json" not in manifest(target)["files"]
    assert fp.store.verify(target).files == len(below(target))


def test_the_list_is_no_part_of_what_a_directory_is(tmp_path):
    """A cache of a directory whose files are listed later is still its cache."""
    from fastpart.store.caches import has_caches, identity

    target = tmp_path / "parts"
    ring = np.array([[v, (v + 1) % 6] for v in range(6)])
    fp.VertexPartition([0, 0, 0, 1, 1, 1], 2).save(target, graph=ring, splits={"train": [0, 4]})
    listed = manifest(target)
    bare = {name: value for name, value in listed.items() if name not in ("files", "manifest_xxh3")}
    assert identity(bare) == identity(listed)
    (target / "manifest.json").write_text(json.dumps(bare))
    fp.open_partition(target).save_cache(0.4, fanouts=[2])
    assert "files" not in manifest(target)
    fp.store.upgrade(target)
    assert has_caches(fp.open_partition(target))
    assert {"cache.json", "part-00000/cache_ids.npy"} <= set(manifest(target)["files"])
