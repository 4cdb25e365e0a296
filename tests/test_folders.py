"""A folder of fastpart's is replaced by its own list of files: nobody else's file is ever deleted."""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import fastpart as fp
from fastpart.cli import main
from fastpart.core.folders import OwnFolder, refuse_links, remove_files
from fastpart.machines.engine import Threads
from fastpart.machines.tasks import TaskFiles, _text, work
from fastpart.runtime.launch import remove_stale

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
        lambda: fp.update(np.vstack([EDGES, [[1, 4]]]), parts, balance=1.5).save(
            parts, graph=np.vstack([EDGES, [[1, 4]]])
        ),
    ):
        with pytest.raises(
            fp.errors.ParameterError, match=rf"parts holds what fastpart did not write there: {told}\. Move"
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
        with pytest.raises(
            fp.errors.ParameterError, match=r"did not write there: part-00000/mine\.npy\. Move"
        ):
            save(folder)
        (folder / "part-00000/mine.npy").unlink()
        put(folder, {"cache.json": "{}", "part-00001/cache_ids.npy": ""})
        save(folder, overwrite=True)
        assert fp.store.verify(folder).foreign == ()


def test_folders_of_others_with_the_names_of_parts_stay(parts, tmp_path):
    """A link to a folder is no folder of ours, even under the name of a part."""
    put(tmp_path / "elsewhere", {"part.json": "mine"})
    (parts / "part-00002").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(fp.errors.ParameterError, match=r"did not write there: part-00002\. Move"):
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
        fp.errors.ParameterError,
        match=r"out holds what fastpart did not write there: labels_part_0_of_2_mine",
    ):
        export(parts, out)
    (out / "labels_part_0_of_2_mine").unlink()
    # Exports of earlier versions have no list.
    stored = json.loads((out / marker).read_text())
    (out / marker).write_text(json.dumps({name: value for name, value in stored.items() if name != "files"}))
    put(out, {"README": "mine"})
    with pytest.raises(
        fp.errors.ParameterError, match=r"out holds what fastpart did not write there: README\. Move"
    ):
        export(parts, out)
    (out / "README").unlink()
    export(parts, out)
    assert json.loads((out / marker).read_text())["files"] == listed


# What somebody else has planted where a verb makes its folder.


@dataclass(frozen=True)
class Verb:
    """A command, and the folder that it makes. ``stopped`` is the function after which a kill leaves the folder."""

    words: str
    folder: str
    file: str
    stopped: str | None = None


VERBS = {
    "ingest": Verb(
        "ingest schema.yaml -o out",
        ".out.ingest",
        "graph/edges.bin",
        "fastpart.graphs.ingest.stages.attributes.finish",
    ),
    "restart": Verb(
        "ingest schema.yaml -o out --restart",
        ".out.ingest",
        "journal.jsonl",
        "fastpart.graphs.ingest.stages.attributes.finish",
    ),
    "graph": Verb("ingest schema.yaml -o out", "out", "graph.json"),
    "partial": Verb(
        "partition g.npy -k 2 -q -o out", "out.partial", "assignment.npy", "fastpart.store.saving.write"
    ),
    "overwrite": Verb(
        "partition g.npy -k 2 -q --overwrite -o out",
        "out.partial",
        "manifest.json",
        "fastpart.store.saving.write",
    ),
    "resume": Verb(
        "partition g.npy -k 2 -q --resume -o out",
        "out.partial",
        "assignment.npy",
        "fastpart.store.saving.write",
    ),
    "parts": Verb("partition g.npy -k 2 -q -o out", "out", "part-00000/part.json"),
    "checkpoints": Verb("partition g.npy -k 2 -q --checkpoints out", "out", "checkpoint-parts-0.bin"),
    "compare": Verb(
        "compare g.npy -k 2 -q --algorithms spring -o out.json",
        "out.json.partial",
        "comparison.json",
        "fastpart.measures.compare.comparison.Comparison.save",
    ),
    "convert": Verb("convert g.txt out", "out.staged", "out"),
    "plan": Verb("plan parts --fanouts 2 --batch-size 2 -o out", "out", "plan.json"),
    "export": Verb("export text parts out", "out", "part_meta.json"),
    "generate": Verb("generate typed out --scale 1e-5", "out", "schema.yaml"),
    "job": Verb(
        "partition g.npy -k 2 -q --cluster CLUSTER --shared . -o out",
        "JOB",
        "steps/checkpoint.lock",
        "fastpart._core.partition_replica",
    ),
    "train": Verb("train full parts --epochs 1 --hidden 2 --out out -q", "out", "checkpoint.pt"),
}
PLANTED = ("link", "folder", "dangling", "file", "inside", "pipe", "behind", "list", "lock")
"""In place of the folder, in place of its file (a link and a pipe), in place of the folder of that, in its list, in
place of the lock."""
SCHEMA = """
vertices: {user: {}}
relations: {knows: {files: knows.csv, source: {user: a}, target: {user: b}}}
"""


def stop(*_, **__):
    raise OSError(5, "stopped")


def run(words, monkeypatch):
    """Run a command. Return its exit code. Tasks of a cluster run here."""
    monkeypatch.setattr("fastpart.machines.starting.engine_of", lambda *_: Threads(1))
    return main(words.replace("CLUSTER", "auto").split())


@pytest.fixture
def home(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    monkeypatch.setattr("fastpart.graphs.ingest.stages.job._WORTHLESS", -1)
    np.save("g.npy", EDGES)
    Path("g.txt").write_text("0 1\n1 2\n2 3\n3 0\n")
    Path("knows.csv").write_text("a,b\n1,2\n2,3\n")
    Path("schema.yaml").write_text(SCHEMA)
    save(
        Path("parts"),
        features=np.eye(6, dtype=np.float32),
        labels=np.arange(6) % 2,
        splits={"train": [0, 3], "val": [1, 4], "test": [2, 5]},
    )
    return home


def job_of(home, verb, monkeypatch):
    """Return the name of the folder of a job, which a run leaves that is stopped."""
    with monkeypatch.context() as patch:
        patch.setattr(verb.stopped, stop)
        assert run(verb.words, monkeypatch) == 1
    (job,) = home.glob("fastpart-job-*")
    return job.name


@pytest.mark.parametrize(
    ("name", "planted"),
    [
        pytest.param(name, planted, marks=[pytest.mark.torch] * (name == "train"))
        for name, verb in VERBS.items()
        for planted in PLANTED
        if planted != "behind" or "/" in verb.file
    ],
)
def test_what_is_planted_stays_as_it_is(home, tmp_path, monkeypatch, capsys, name, planted):
    verb = VERBS[name]
    mine = tmp_path / "mine"
    put(mine, {verb.file: "years", "notes.txt": "of", "part-00000/part.json": "work"})
    before = content(mine)
    if name == "job":
        job = job_of(home, verb, monkeypatch)
        shutil.rmtree(job)
        verb = Verb(verb.words, job, verb.file, verb.stopped)
    folder = home / verb.folder
    if planted in ("inside", "pipe", "behind", "list"):
        if verb.stopped is not None:
            with monkeypatch.context() as patch:
                patch.setattr(verb.stopped, stop)
                run(verb.words.replace(" --resume", ""), monkeypatch)
            assert folder.is_dir()
        elif name not in ("convert", "checkpoints"):
            assert run(verb.words, monkeypatch) == 0
            assert folder.is_dir()
        file = folder / verb.file
        file.parent.mkdir(parents=True, exist_ok=True)
        if planted == "inside":
            file.unlink(missing_ok=True)
            file.symlink_to(mine / verb.file)
        elif planted == "pipe":
            file.unlink(missing_ok=True)
            os.mkfifo(file)
        elif planted == "behind":
            top = folder / verb.file.split("/")[0]
            shutil.rmtree(top)
            top.symlink_to((mine / verb.file).parent)
        else:
            for marker in folder.glob("*.json"):  # which lists what is not below the folder
                try:
                    lies = json.loads(marker.read_text())
                except ValueError:
                    continue
                files = ["../../mine/notes.txt", str(mine / "notes.txt")]
                if isinstance(lies, dict):
                    lies["files"] = (
                        {file: {} for file in files} if isinstance(lies.get("files"), dict) else files
                    )
                    marker.write_text(json.dumps(lies))
    elif planted == "link":
        folder.symlink_to(mine)
    elif planted == "dangling":
        folder.symlink_to(tmp_path / "absent")
    elif planted == "file":
        folder.write_text("mine")
    elif planted == "folder":
        shutil.copytree(mine, folder)
    else:
        for each in {"out", "out.json", folder.name}:
            (home / f".{each}.lock").symlink_to(mine / "notes.txt")
    capsys.readouterr()
    rc = run(verb.words, monkeypatch)
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("fastpart: error")]
    assert content(mine) == before
    assert not (tmp_path / "absent").exists()
    if planted == "folder":
        assert content(folder) == before
    elif planted == "file":
        assert folder.read_text() == "mine"
    assert (rc, len(told)) in ((0, 0), (1, 1), (2, 1))
    assert rc == 0 or folder.name in told[0] or verb.file in told[0] or "files" in told[0], told


def test_a_list_of_tasks_of_somebody_else_stays(home, tmp_path):
    mine = tmp_path / "mine"
    put(mine, {"tasks.json": _text("0123456789abcdef", [[]]).decode(), "0": "years"})
    before = content(mine)
    file = home / "tasks.json"

    def refused(match):
        for call in (
            lambda: fp.partition("g.npy", 2, cluster=TaskFiles(home, 1), shared=home),
            lambda: work(home, task=0),
        ):
            with pytest.raises((OSError, fp.errors.GraphFormatError), match=match):
                call()

    file.symlink_to(mine / "tasks.json")
    refused("is a link, and fastpart makes none there")
    file.unlink()
    for text in ("[]", "mine", '{"stage": 3}', '{"stage": "0123456789abcdef", "piles": [[]]}'):
        file.write_text(text)
        refused("no list of tasks of fastpart|expected a JSON object|not JSON|field|not as it was written")
        assert file.read_text() == text
    shutil.copy(mine / "tasks.json", file)
    results = home / "results-0123456789abcdef"
    results.symlink_to(mine)
    with pytest.raises(FileExistsError, match="is a link, and fastpart makes none there"):
        work(home, task=0)
    TaskFiles(home)._remove(results)
    results.unlink()
    put(results, MINE)  # of somebody else, under a name that the list of a killed command tells
    shutil.copy(mine / "tasks.json", file)
    with TaskFiles(home).alone():
        pass
    assert content(results) == {name: text.encode() for name, text in MINE.items()}
    assert content(mine) == before


@pytest.mark.parametrize("name", ["manifest.json", "cache.json", "part-00000", "part-00000/cache_ids.npy"])
def test_what_is_written_in_place_is_not_written_through_links(home, tmp_path, name):
    partition = fp.open_partition("parts")
    partition.save_cache(fanouts=[2], cache=0.5)
    mine = tmp_path / "mine" / "it"
    mine.parent.mkdir()
    shutil.move(home / "parts" / name, mine)
    (home / "parts" / name).symlink_to(mine)
    before = mine.read_bytes() if mine.is_file() else content(mine)
    with pytest.raises(
        (FileExistsError, fp.errors.GraphFormatError), match=r"is a link, and fastpart|leads out of"
    ):
        partition.save_cache(fanouts=[2], cache=0.25)
    assert before == (mine.read_bytes() if mine.is_file() else content(mine))


def test_a_conversion_takes_no_place_of_somebody_else(home, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    caplog.set_level("INFO", "fastpart")
    put(tmp_path / "mine", MINE)
    fp.open_graph("g.txt")
    (entry,) = (tmp_path / "cache" / "fastpart" / "conversions").iterdir()
    shutil.rmtree(entry)
    entry.symlink_to(tmp_path / "mine")
    assert fp.open_graph("g.txt").num_edges == 4
    assert "the cache cannot be written" in caplog.text
    os.mkfifo(entry.with_name(f".{entry.name}.tmp-1"))
    assert main(["conversions", "--clear"]) == 0
    assert not entry.is_symlink()
    assert content(tmp_path / "mine") == {name: text.encode() for name, text in MINE.items()}


@pytest.mark.parametrize("suffix", ["json", "weights.npy", "run.toml"])
def test_what_lies_beside_a_file_is_not_written_through_links(home, tmp_path, suffix):
    mine = tmp_path / "mine"
    mine.mkdir()
    for folder in (mine, home):
        (folder / "w.csv").write_text("a,b,w\n0,1,2\n1,2,3\n")
        convert = [
            "convert",
            str(folder / "w.csv"),
            str(folder / "out"),
            "--columns",
            "a,b",
            "--weights",
            "w",
        ]
        assert main(convert) == 0
        words = ["partition", "g.npy", "-k", "2", "-q", "-o", str(folder / "out.npy")]
        assert main(words) == 0
    before, file = content(mine), ("out.npy." if suffix == "run.toml" else "out.") + suffix
    (home / file).unlink()
    (home / file).symlink_to(mine / file)
    assert main([*words, "--seed", "1"]) == 0
    assert main(convert) == 2 * (suffix == "json")
    assert content(mine) == before


def test_a_pipe_among_temporary_files_holds_nobody_up(tmp_path):
    os.mkfifo(tmp_path / "fastpart-999999999-00000000-x")
    assert remove_stale(tmp_path) == ["fastpart-999999999-00000000"]
    assert not any(tmp_path.iterdir())


# The folder in which fastpart works.


def work_folder(tmp_path):
    return OwnFolder(tmp_path / "work", "fastpart-work.json", r"part-\d+/x|y", "name another")


def test_an_own_folder_is_cleared_of_its_own_files(tmp_path, caplog):
    folder = work_folder(tmp_path)
    work_folder(tmp_path)  # it is empty
    put(folder.path, {".fastpart-work.json.tmp-7.1": ""})  # a kill before it has a marker
    work_folder(tmp_path)
    put(folder.path, {"fastpart-work.json": "{}", "y": "", "part-1/x": "", ".y.tmp-1.2": "", ".nfs01a": ""})
    put(folder.path, {".part-2.tmp-7.1/x": ""})
    work_folder(tmp_path).clear()
    assert os.listdir(folder.path) == []
    put(folder.path, {"fastpart-work.json": "{}", "y": ""})
    put(folder.path, {"part-1/notes": "mine"})
    (tmp_path / "mine").mkdir()
    (folder.path / "part-2").symlink_to(tmp_path / "mine")
    with pytest.raises(
        FileExistsError, match=r"did not write there: part-1/notes, part-2\. Move it away, or name"
    ):
        work_folder(tmp_path)
    folder.remove()
    assert content(folder.path) == {"part-1/notes": b"mine"}
    assert "work is no longer needed, but cannot be removed" in caplog.text
    with pytest.raises(FileExistsError, match=r"\(no fastpart-work\.json of fastpart in it\)"):
        work_folder(tmp_path)


def test_files_are_removed_by_their_names(tmp_path):
    put(tmp_path / "work", {"1": "", "22": "", ".3.tmp-1.1": "", "a": "mine"})
    (tmp_path / "link").symlink_to("work")
    remove_files(tmp_path / "link", r"\d+")
    assert len(os.listdir(tmp_path / "work")) == 4
    remove_files(tmp_path / "work", r"\d+")
    assert os.listdir(tmp_path / "work") == ["a"]
    remove_files(tmp_path / "absent", "")


def test_links_on_the_way_are_refused(tmp_path):
    put(tmp_path / "real", {"a/b": ""})
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "c").symlink_to("a")
    refuse_links(tmp_path / "link", ["a/b", "absent/d"])
    for name in ("c", "c/b"):
        with pytest.raises(FileExistsError, match=r"link/c"):
            refuse_links(tmp_path / "link", [name])
