"""``partition --dry-run`` refuses what a run refuses, names what a run takes, and writes nothing."""

import json
import os
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest

import fastpart as fp
from fastpart.cli import main
from fastpart.partitions.partitioners import builtin
from fastpart.partitions.partitioners.common import WouldRun


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with folders for temporary files and for conversions."""
    for name in ("work", "tmp", "cache"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path


def files(folder):
    """Return all files and folders, with the times of their content."""
    return {
        each: each.stat().st_mtime_ns for each in sorted(Path(folder).rglob("*")) if each.is_file()
    }, sorted(Path(folder).rglob("*"))


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A graph that the core partitions for longer than until it first looks whether it is to stop."""
    file = tmp_path_factory.mktemp("large") / "g.bin"
    fp.generate.rmat(file, n=1 << 16, m=600_000)
    return file


def said(capsys, *words):
    """Run a command, and return its exit code, what it printed as JSON, and its error."""
    code = main([*map(str, words), "--json"])
    out, err = capsys.readouterr()
    error = [line for line in err.splitlines() if line.startswith("fastpart: error: ")]
    return code, json.loads(out) if out else None, error


@pytest.mark.filterwarnings("ignore")  # a run warns of less effort
@pytest.mark.parametrize(
    ("words", "limits"),
    [
        ((), (1.5, 4, 5, 8, 40)),
        (("--effort", "fast"), (2, 5, 40)),
        (("--algorithm", "multilevel"), (4, 4.8, 5.1, 5.4)),
        (("--algorithm", "sigma"), (2, 2.4, 2.7, 3)),
        (("--algorithm", "hep"), (6, 7.3, 7.6)),
        (("--of", "edges"), (2, 5, 7.3, 9)),
    ],
    ids=["default", "fast", "multilevel", "sigma", "hep", "edges"],
)
def test_it_refuses_what_a_run_refuses_and_names_what_a_run_takes(here, capsys, large, words, limits):
    """The limits, in MB, lie on both sides of what algorithms need, and between their first check and their last."""
    refusals = set()
    for limit in limits:
        command = ("partition", large, "-k", 8, *words, "--memory-limit", int(limit * 1e6))
        ran, measured, error = said(capsys, *command)
        rehearsed, facts, same = said(capsys, *command, "--dry-run")
        assert rehearsed == ran, limit
        assert same == error
        refusals.add(ran)
        if ran == 0:
            algorithm = measured["summary"]["algorithm"] if "summary" in measured else measured["algorithm"]
            assert algorithm in [name.partition(":")[0] for name in facts["algorithms"]], limit
            assert facts["memory_limit"] == int(limit * 1e6)
    assert 0 in refusals
    assert 1 in refusals or "fast" in words


def test_the_work_is_stopped(here, capsys, large, monkeypatch):
    """What is not stopped would be a run whose result is thrown away."""
    outcomes, run = [], builtin._core.partition

    def observed(*args, **given):
        try:
            run(*args, **given)
        except WouldRun:
            outcomes.append("stopped")
            raise
        outcomes.append("done")

    monkeypatch.setattr(builtin._core, "partition", observed)
    code, facts, _ = said(capsys, "partition", large, "-k", 64, "--algorithm", "multilevel", "--dry-run")
    assert (code, facts["algorithms"], outcomes) == (0, ["multilevel"], ["stopped"])


@pytest.mark.parametrize("out", [(), ("-o", "parts"), ("-o", "p.npy"), ("-o", "e.npy", "--of", "edges")])
@pytest.mark.parametrize("name", ["g.txt", "g.npy"])
def test_nothing_is_written(here, capsys, name, out):
    edges = np.random.default_rng(0).integers(0, 500, (3000, 2))
    np.savetxt("g.txt", edges, fmt="%d")
    np.save("g.npy", edges)
    before = files(here)
    code, facts, _ = said(capsys, "partition", name, "-k", 4, *out, "--checkpoints", "c", "--dry-run")
    assert code == 0
    assert files(here) == before
    assert (facts["n"], facts["m"], facts["k"]) == (500, 3000, 4)
    assert ("conversion" in facts["disks"]) == (name == "g.txt")
    assert facts["disks"].get("output", {}).get("folder") == (out[1] if out else None)


def test_no_checkpoint_is_written(here, capsys, large):
    words = ("--algorithm", "multilevel", "--path", "two_levels", "--checkpoints", "c")
    assert said(capsys, "partition", large, "-k", 8, *words, "--dry-run")[0] == 0
    assert os.listdir() == []


def test_the_conversion_is_as_large_as_that_of_a_run(here, capsys):
    Path("g.txt").write_text("".join(f"{v} {v + 1}\n" for v in range(2000)))
    command = ("partition", "g.txt", "-k", 2)
    conversion = said(capsys, *command, "--dry-run")[1]["disks"]["conversion"]
    assert said(capsys, *command)[0] == 0
    (entry,) = fp.doctor()["conversions"]["entries"]
    marker = next(Path(conversion["folder"]).rglob("entry.json"))
    assert conversion["bytes"] == entry["bytes"] - marker.stat().st_size > 16_000
    assert "conversion" not in said(capsys, *command, "--dry-run")[1]["disks"]


def test_the_text(here, capsys):
    np.save("g.npy", np.array([[0, 1], [1, 2], [2, 0], [3, 4]]))
    assert main(["partition", "g.npy", "-k", "2", "--dry-run", "--memory-limit", "1G"]) == 0
    lines = dict(re.findall(r"^(\S.*?)  +(.*)$", capsys.readouterr().out, re.MULTILINE))
    assert lines["graph"] == "5 vertices, 4 edges, undirected"
    assert lines["parts"] == "2 of the vertices"
    assert lines["would run"] == 'multilevel: it is what effort="default" takes'
    assert "with path memory" in lines["memory"]
    assert lines["memory limit"] == "1.1 GB"
    assert "free" in lines["temporary files"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--cluster", "auto", "--shared", "."), "--dry-run: shows a run on this machine"),
        (("-o", "p.npy", "--resume"), "--dry-run: does not go with --resume"),
        (("-o", "g.npy"), "--out: g.npy is the input"),
        (("--balance", "0.5"), "--balance: "),
        (("--labels", "absent.npy", "-o", "p"), "absent.npy"),
    ],
)
def test_wrong_command_lines_are_refused_as_ever(here, capsys, words, text):
    np.save("g.npy", np.array([[0, 1], [1, 2], [2, 0], [3, 4]]))
    code, facts, error = said(capsys, "partition", "g.npy", "-k", 2, *words, "--dry-run")
    assert code in (1, 2)
    assert facts is None
    assert text in error[0]
    assert os.listdir() == ["g.npy"]
