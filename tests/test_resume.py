"""What a command has found outlives its failure: it is kept beside the output, and `--resume` goes on from there."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import fastpart as fp
from fastpart.cli import partitioning
from fastpart.measures.compare.comparison import Comparison
from soaked import some_of

VERBS = {
    "partition": ("partition", "g.bin", "-k", 4),
    "edges": ("partition", "g.bin", "-k", 4, "--algorithm", "hdrf"),
    "two weights": (
        "partition", "g.bin", "-k", 4, "--algorithm", "multilevel", "--balance-on", "w.npy,v.npy", "--volume-balance", 2
    ),
    "refine": ("refine", "g.bin", "old"),
    "update": ("update", "g.bin", "old"),
    "edges-of": ("edges-of", "g.bin", "old"),
}  # fmt: skip
DIRECTORY = ("--features", "g.bin.features.npy", "--labels", "g.bin.labels.npy")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    graph = fp.generate.planted(folder / "g.bin", n=300, m=2000, classes=4, features=8)
    np.save(folder / "w.npy", np.arange(300))
    np.save(folder / "v.npy", np.arange(300) % 7)
    fp.spring(graph, 4).save(folder / "old")
    return folder


@pytest.fixture(autouse=True)
def in_a_folder(inputs, tmp_path, monkeypatch, restored):
    """Run in a folder that holds a graph and a partition."""
    shutil.copytree(inputs, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def failing(run, monkeypatch):
    """Run a command that fails once its partition is found."""

    def failing(*arguments, error=None):
        def fail(*_, **__):
            raise error or MemoryError("short of memory")

        with monkeypatch.context() as patch:
            patch.setattr(partitioning, "measure", fail)
            return run(*arguments)

    return failing


@pytest.fixture
def never(monkeypatch):
    """Forbid the partitioners."""

    def forbid():
        def began(*_, **__):
            raise AssertionError("partitioned again")

        monkeypatch.setattr(partitioning, "_timed", began)

    return forbid


def content(folder):
    """Return the bytes of all files in a folder, or of a file."""
    path = Path(folder)
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


@pytest.mark.parametrize("verb", VERBS)
def test_a_failure_keeps_the_partition_and_resume_writes_the_same(verb, run, failing, never):
    command = (*VERBS[verb], "-q", *DIRECTORY, "-o")
    assert run(*command, "whole")[0] == 0
    code, out, err = failing(*command, "parts/")
    assert (code, out) == (1, "")
    assert "short of memory. The result is kept in parts.partial. To go on from there, add --resume" in err
    name = VERBS[verb][0]
    assert err.endswith(f": fastpart {name} g.bin ... --resume -o parts/\n")
    assert sorted(os.listdir("parts.partial")) == ["assignment.npy", "manifest.json"]
    assert not Path("parts").exists()
    kept, whole = fp.open_partition("parts.partial", "g.bin", verify=True), fp.open_partition("whole")
    assert kept == whole
    never()
    assert run(*command, "parts/", "--resume")[0] == 0
    assert content("parts") == content("whole")
    assert not Path("parts.partial").exists()


@pytest.mark.parametrize("out", ["part.txt", "part.parquet", "part.npy"])
def test_every_form_of_output_is_resumed(out, run, failing, never):
    command = (*VERBS["partition"], "-q", "-o")
    assert run(*command, f"whole-{out}")[0] == 0
    assert failing(*command, out)[0] == 1
    assert not Path(out).exists()
    never()
    code, printed, _ = run(*VERBS["partition"], "-o", out, "--resume")
    assert code == 0
    assert f"multilevel: resumed from {out}.partial\n" in printed
    assert content(out) == content(f"whole-{out}")
    assert not Path(f"{out}.partial").exists()


def test_records_that_went_to_their_file_are_complete(run, failing):
    code, _, err = failing("partition", "g.bin", "-k", 4, "--of", "edges", "-o", "edges.npy")
    assert code == 1
    assert err.endswith("The partition is complete in edges.npy. `fastpart evaluate` measures it\n")
    assert len(np.load("edges.npy")) == 2000
    assert not Path("edges.npy.partial").exists()


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (OSError(28, "full", "x"), 1), (KeyError(), 1)]
)
def test_the_exit_code_stays_that_of_the_failure(error, code, failing):
    found, _, err = failing(*VERBS["partition"], "-o", "parts", error=error)
    assert found == code
    assert "The result is kept in parts.partial." in err
    assert len(err.splitlines()) == 1


def test_what_comes_after_the_partition_may_change(run, failing):
    assert failing(*VERBS["partition"], *DIRECTORY, "-o", "parts")[0] == 1
    assert run(*VERBS["partition"], "-o", "parts", "--resume", "--halo-hops", 2, "--threads", 1, "-q")[0] == 0
    assert "features" not in fp.open_partition("parts").manifest


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (("-k", 5), r"-k was 4 and is 5"),
        (("--seed", 1), r"--seed was 0 and is 1"),
        (("--effort", "fast"), r"--effort was 'default' and is 'fast'"),
        (("--algorithm", "spring"), r"--algorithm was 'partition' and is 'spring'"),
        (("--num-vertices", 301), r"the graph's n was 300 and is 301"),
    ],
)
def test_resume_refuses_other_options(change, text, run, failing):
    assert failing(*VERBS["partition"], "-o", "parts")[0] == 1
    before = content("parts.partial")
    if change[0] == "--num-vertices":
        Path("g.bin.json").unlink()
    code, _, err = run(*VERBS["partition"], *change, "-q", "-o", "parts", "--resume")
    assert code == 2
    assert text in err
    assert "Give the same options, or --overwrite instead of --resume to begin anew" in err
    assert content("parts.partial") == before
    assert not Path("parts").exists()


def test_resume_refuses_another_graph_and_other_weights(run, failing):
    command = (*VERBS["two weights"], "-o", "parts")
    assert failing(*command)[0] == 1
    records = np.fromfile("g.bin", np.uint32)
    records[:2] = records[1], records[0]
    records.tofile("g.bin")
    code, _, err = run(*command, "--resume")
    assert code == 2
    assert "the graph's checksum was" in err
    assert "balance-on was" not in err
    np.save("w.npy", np.ones(300, int))
    assert "--balance-on was" in run(*command, "--resume")[2]


def test_a_kept_partition_is_not_lost_by_a_new_command(run, failing):
    assert failing(*VERBS["partition"], "-o", "parts")[0] == 1
    before = content("parts.partial")
    code, _, err = run("partition", "g.bin", "-k", 3, "-o", "parts")
    assert code == 1
    assert (
        "parts.partial: holds the partition of an unfinished command (multilevel, k=4). Add --resume" in err
    )
    assert content("parts.partial") == before
    assert run("partition", "g.bin", "-k", 3, "-q", "-o", "parts", "--overwrite")[0] == 0
    assert fp.open_partition("parts").k == 3
    assert not Path("parts.partial").exists()


@pytest.mark.parametrize("resume", [(), ("--resume",)])
@pytest.mark.parametrize("kind", ["file", "folder", "partition", "link"])
def test_what_is_a_users_is_not_touched(kind, resume, run):
    if kind == "file":
        Path("parts.partial").write_text("mine")
    elif kind == "folder":
        Path("parts.partial").mkdir()
        Path("parts.partial/thesis.tex").write_text("mine")
    elif kind == "link":
        Path("parts.partial").symlink_to("nowhere")
    else:
        fp.open_partition("old").save("parts.partial/")
    before = content("parts.partial")
    code, out, err = run(*VERBS["partition"], *resume, "-o", "parts")
    assert (code, out) == (1, "")
    assert "parts.partial: exists and is not a result that fastpart has kept. Rename it, or choose" in err
    assert content("parts.partial") == before
    assert not Path("parts").exists()


def test_a_file_that_somebody_put_beside_the_partition_stays(run, failing):
    assert failing(*VERBS["partition"], "-o", "parts")[0] == 1
    Path("parts.partial/notes.txt").write_text("mine")
    assert run(*VERBS["partition"], "-o", "parts", "--resume")[0] == 0
    assert content("parts.partial") == {"notes.txt": b"mine"}


def test_resume_without_a_kept_partition_starts_anew_but_replaces_nothing(run):
    assert run(*VERBS["partition"], "-o", "parts", "--resume")[0] == 0
    before = content("parts")
    code, _, err = run(*VERBS["partition"], "-o", "parts", "--resume")
    assert code == 1
    assert "parts: exists, and there is no parts.partial to go on from. Leave out --resume" in err
    assert content("parts") == before
    for option, does in {"--resume": "goes on to", "--overwrite": "replaces"}.items():
        code, _, err = run(*VERBS["partition"], option)
        assert (code, err) == (2, f"fastpart: error: {option}: {does} an output. Name it with -o\n")


def test_an_update_in_place_is_resumed(run, failing):
    shutil.copytree("old", "copy")
    command = ("update", "g.bin", "old", "-q", "-o", "old")
    assert failing(*command)[0] == 1
    assert content("old") == content("copy")
    assert run(*command, "--resume")[0] == 0
    resumed = content("old")
    shutil.rmtree("old")
    shutil.move("copy", "old")
    assert run(*command)[0] == 0
    assert content("old") == resumed


def test_a_damaged_kept_partition_is_refused(run, failing):
    assert failing(*VERBS["partition"], "-o", "parts")[0] == 1
    Path("parts.partial/assignment.npy").write_bytes(b"")
    code, _, err = run(*VERBS["partition"], "-o", "parts", "--resume")
    assert code == 1
    assert "parts.partial" in err


def test_what_a_kill_during_the_removal_leaves_is_no_result(run, failing):
    assert failing(*VERBS["partition"], "-o", "parts")[0] == 1
    Path("parts.partial/assignment.npy").unlink()
    assert run(*VERBS["partition"], "-o", "parts")[0] == 0
    assert not Path("parts.partial").exists()


def test_a_folder_that_cannot_be_kept_is_a_note(run, monkeypatch):
    real = partitioning._timed

    def meanwhile(*arguments):
        Path("parts.partial").write_text("mine")
        return real(*arguments)

    monkeypatch.setattr(partitioning, "_timed", meanwhile)
    code, _, err = run(*VERBS["partition"], "-q", "-o", "parts")
    assert code == 0
    assert "note: parts.partial cannot be written: " in err
    assert Path("parts.partial").read_text() == "mine"
    assert len(fp.open_partition("parts", "g.bin")) == 300


# Comparisons.

COMPARE = ("compare", "g.bin", "-k", 4, "--algorithms", "spring,random", "-o")


@pytest.mark.parametrize("out", some_of(["c.json", "c.parquet", "c.html", "c.svg"], ["c.json", "c.html"]))
def test_a_comparison_that_cannot_be_written_keeps_its_rows(out, run, monkeypatch):
    def fail(self, target):
        raise OSError(28, "No space left on device", str(target))

    with monkeypatch.context() as patch:
        patch.setattr(Comparison, "save", fail)
        code, _, err = run(*COMPARE, out)
    assert code == 1
    kept = f"{out}.partial/comparison.json"
    assert (
        f"No space left on device. The result is kept in {out}.partial. `fastpart report {kept} -o OUT`"
        in err
    )
    assert fp.open_comparison(kept).summary["algorithm"].to_list() == ["spring", "random"]
    assert run("report", kept, "-o", "again.html")[0] == 0
    code, _, err = run(*COMPARE, out)
    assert code == 1
    assert f"{out}.partial: holds the rows of an unfinished comparison" in err
    shutil.rmtree(f"{out}.partial")
    assert run(*COMPARE, out)[0] == 0
    assert Path(out).exists()
    assert not Path(f"{out}.partial").exists()


def test_an_interrupted_comparison_keeps_the_rows_so_far():
    kept = []

    def stop(graph, k):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fp.compare("g.bin", 4, ["spring", stop, "random"], on_outcome=kept.append)
    assert [len(each.outcomes) for each in kept] == [1]
    fp.compare("g.bin", 4, ["spring", "random"], on_outcome=kept.append)
    assert [each.summary["algorithm"].to_list() for each in kept[1:]] == [["spring"], ["spring", "random"]]


def test_a_users_folder_beside_a_comparison_is_not_touched(run):
    Path("c.html.partial").mkdir()
    Path("c.html.partial/comparison.json").write_text(json.dumps({"mine": 1}))
    code, _, err = run(*COMPARE, "c.html")
    assert code == 1
    assert "c.html.partial: exists and is not a result that fastpart has kept" in err
    assert content("c.html.partial") == {"comparison.json": b'{"mine": 1}'}
