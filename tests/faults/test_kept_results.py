"""A partition that is found survives whatever comes after it: short memory, a full disk, Ctrl-C, kills."""

import os
import re
import resource
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from child import SignalAt, run_child, run_command

import fastpart as fp
from soaked import soak

N, WIDTH = 20_000, 200


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A graph whose features take 20 times the memory of its partition."""
    folder = tmp_path_factory.mktemp("inputs")
    fp.generate.planted(folder / "g.bin", n=N, m=60_000, classes=4, features=2)
    np.save(folder / "x.npy", np.zeros((N, WIDTH), np.float32))
    return folder


@pytest.fixture(autouse=True)
def in_the_folder(folder, monkeypatch):
    """Let commands of this process find what those of others left."""
    monkeypatch.chdir(folder)


@pytest.fixture
def command(inputs):
    return (
        "partition",
        inputs / "g.bin",
        "-k",
        4,
        "--algorithm",
        "spring",
        "--features",
        inputs / "x.npy",
        "-q",
    )


def content(path):
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def assert_kept(outcome, rc, reason, folder, n=N):
    """Assert that the command failed for this reason, and that its partition is what is left of it."""
    assert outcome.rc == rc, outcome.err
    assert re.search(reason, outcome.err), outcome.err
    assert "The result is kept in parts.partial. To go on from there, add --resume" in outcome.err
    assert len(outcome.err.splitlines()) == 1
    assert os.listdir(folder) == ["parts.partial"]
    assert len(fp.open_partition(folder / "parts.partial")) == n


def test_memory_that_suffices_to_partition_but_not_to_gather_rows(folder, tmp_path, run):
    np.save(tmp_path / "g.npy", np.arange(8, dtype=np.uint32).reshape(-1, 2))
    np.lib.format.open_memmap(
        tmp_path / "x.npy", "w+", np.float32, (8, 2 << 20)
    )  # 8 MB a row, and none on the disk
    command = (
        "partition",
        tmp_path / "g.npy",
        "-k",
        2,
        "-q",
        "--features",
        tmp_path / "x.npy",
    )
    outcome = run_command(*command, "--memory-limit", "14M", "--threads", 1, "-o", "parts", cwd=folder)
    assert_kept(outcome, 1, r"gathering rows needs .* Raise --memory-limit", folder, 8)
    assert run(*command, "-o", "parts", "--resume")[0] == 0
    assert os.listdir(folder) == ["parts"]
    assert run(*command, "-o", "whole")[0] == 0
    assert content(folder / "parts") == content(folder / "whole")


def test_a_disk_that_has_room_for_the_partition_only(command, folder, run):
    outcome = run_command(*command, "-o", "parts", cwd=folder, ulimit={resource.RLIMIT_FSIZE: 1 << 20})
    assert_kept(outcome, 1, "File too large", folder)
    assert run(*command, "-o", "parts/", "--resume")[0] == 0
    assert os.listdir(folder) == ["parts"]


# Runs a command. When parts are written (`.parts.tmp-*` has appeared) it prints a line, and writing takes for ever.
SLOW = """
import sys, threading, time
from pathlib import Path
import fastpart.core.rows
from fastpart.cli import main

def chunks(self):
    print("writing parts", flush=True)
    while True:
        time.sleep(0.01)
        yield self[0:0]

fastpart.core.rows.Rows.chunks = chunks
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("sign", "rc"), [(signal.SIGINT, 130), soak(signal.SIGTERM, -15), (signal.SIGKILL, -9)]
)
def test_a_signal_while_parts_are_written(sign, rc, command, folder, run):
    how = {"signal_at": SignalAt(sign, "writing parts"), "cwd": folder, "may_die_of": [sign]}
    outcome = run_child(SLOW, *command, "-o", "parts", **how)
    if sign == signal.SIGINT:
        assert_kept(outcome, rc, "^fastpart: error: interrupted. The result is kept", folder)
    assert outcome.rc == rc
    assert len(fp.open_partition(folder / "parts.partial")) == N
    assert run(*command, "-o", "parts", "--resume")[0] == 0
    assert os.listdir(folder) == ["parts"]


# Somebody else's folder appears under the name of the output while the command is at work.
APPEARS = """
import sys
from pathlib import Path
from fastpart.cli import main, partitioning
real = partitioning.measure

def meanwhile(*given, **more):
    Path("parts").mkdir()
    Path("parts/thesis.tex").write_text("mine")
    return real(*given, **more)

partitioning.measure = meanwhile
sys.exit(main(sys.argv[1:]))
"""


def test_an_output_that_has_appeared_meanwhile(command, folder, run):
    outcome = run_child(APPEARS, *command, "-o", "parts", cwd=folder)
    assert outcome.rc != 0
    assert "parts: exists and is not a partition directory" in outcome.err
    assert "The result is kept in parts.partial" in outcome.err
    assert content(folder / "parts") == {"thesis.tex": b"mine"}
    assert run(*command, "-o", "other", "--resume")[0] == 0  # nothing of that name is kept
    shutil.rmtree(folder / "parts")
    assert run(*command, "-o", "parts", "--resume")[0] == 0
    assert content(folder / "parts") == content(folder / "other")


# Kills commands at any time, and then lets one finish.
KILLS = """
import os, random, re, signal, sys, time
from fastpart.cli import main
turns, *given = sys.argv[1:]
turns, command = int(turns), [*given, "-o", "parts", "--resume"]
moments, seen = random.Random(0), {}
began = time.monotonic()
if os.fork() == 0:
    os._exit(main([*given, "-o", "whole"]))
assert os.wait()[1] == 0
once = time.monotonic() - began
for turn in range(turns):
    child = os.fork()
    if child == 0:
        os._exit(main(command))
    time.sleep((turn + moments.random()) / turns * 1.2 * once)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    names = set(os.listdir()) - {"whole"}
    left = {name for name in names if not re.fullmatch(r"\\.parts(\\.partial)?\\.((tmp|old)-[0-9.]+|lock)", name)}
    seen[" ".join(sorted(left))] = turn
    if "parts" in left:
        assert sorted(os.listdir("parts")) == sorted(os.listdir("whole"))
        os.rename("parts", f"../done-{turn}")
if os.fork() == 0:
    os._exit(main(command))
assert os.wait()[1] == 0
print(sorted(seen))
"""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("turns", [8, soak(25)])
def test_killed_at_any_time(command, folder, tmp_path, turns):
    outcome = run_child(KILLS, turns, *command, cwd=folder, timeout=110)
    assert outcome.rc == 0, outcome.err
    assert sorted(os.listdir(folder)) == ["parts", "whole"]
    for done in [folder / "parts", *tmp_path.glob("done-*")]:
        assert content(done) == content(folder / "whole")
    assert "'parts.partial'" in outcome.out, "no kill hit a command after it had found its partition"


# Comparisons.

COMPARE = """
import sys
from fastpart.cli import main
from fastpart.measures.compare import running
real = running._run

def slow(entry, *given):
    if entry.label == "random":
        print("one is done", flush=True)
        while True:
            pass
    return real(entry, *given)

running._run = slow
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(("sign", "rc"), [(signal.SIGINT, 130), soak(signal.SIGKILL, -9)])
def test_a_comparison_that_is_interrupted_keeps_its_rows(sign, rc, inputs, folder, run):
    command = ("compare", inputs / "g.bin", "-k", 4, "--algorithms", "spring,random", "-q", "-o", "c.html")
    how = {"signal_at": SignalAt(sign, "one is done"), "cwd": folder, "may_die_of": [sign]}
    outcome = run_child(COMPARE, *command, **how)
    assert outcome.rc == rc
    kept = Path("c.html.partial") / "comparison.json"
    if sign == signal.SIGINT:
        assert (
            f"interrupted. The result is kept in c.html.partial. `fastpart report {kept} -o OUT`"
            in outcome.err
        )
    assert set(os.listdir(folder)) - {".c.html.lock"} == {"c.html.partial"}
    assert fp.open_comparison(folder / kept).summary["algorithm"].to_list() == ["spring"]
    assert run("report", kept, "-o", "c.html")[0] == 0
