"""The command line in a process of its own: what terminals, pipes and locales see."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import fastpart as fp
from soaked import soak
from strategies import raw
from terminals import terminal

EDGES = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3], [5, 5]], dtype=np.uint32)
"""Two triangles joined by one edge, and a loop."""


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    """Run in a folder that holds a graph with its sidecar."""
    monkeypatch.chdir(tmp_path)
    raw(tmp_path / "g.bin", EDGES)
    sidecar = {"fastpart": 1, "dtype": "u32", "n": 6, "m": 8, "directedness": "undirected"}
    (tmp_path / "g.bin.json").write_text(json.dumps(sidecar))


def child(*arguments, **options):
    """Run a command in a process of its own."""
    command = [sys.executable, "-m", "fastpart", *arguments]
    return subprocess.run(command, capture_output=True, timeout=30, check=False, **options)


SPRING = ("partition", "g.bin", "-k", "2", "--algorithm", "spring")


def test_exit_codes_of_the_process():
    done = child(*SPRING, "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["summary"]["algorithm"] == "spring"
    done = child("info", "absent.bin")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"fastpart: error: absent.bin: No such file or directory\n"
    done = child("info", "g.bin", "--io", "map")
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)


# 50
def test_no_progress_bar_without_a_terminal():
    done = child(*SPRING)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\x1b" not in done.stdout
    assert b"\r" not in done.stdout


def on_a_terminal(*arguments):
    """Run a verb whose stderr is a terminal; return exit code, stdout and what the terminal got."""
    return terminal(sys.executable, "-m", "fastpart", *arguments)


# 50
def test_a_progress_bar_on_a_terminal_that_is_wiped_in_the_end():
    code, out, shown = on_a_terminal(*SPRING)
    assert code == 0
    assert b"cut_ratio" in out
    assert b"\x1b" not in out
    assert re.search(rb"\r\w+: +\d+%\|.*\| \d+/\d+ \[", shown)
    assert re.search(rb"\r +\r$", shown)
    assert on_a_terminal(*SPRING, "-q")[2] == b""


# 50
@pytest.mark.parametrize("buffered", [True, False])
def test_stdout_closed_early_is_quiet(buffered):
    environment = os.environ | ({} if buffered else {"PYTHONUNBUFFERED": "1"})
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.run(
        [sys.executable, "-m", "fastpart", *SPRING],
        stdout=writing, stderr=subprocess.PIPE, env=environment, timeout=30, check=False,
    )  # fmt: skip
    os.close(writing)
    assert process.stderr == b""
    assert process.returncode == 1


# 50
@pytest.mark.parametrize("form", [[], soak(["--json"])])
def test_output_into_head(form):
    arguments = " ".join([sys.executable, "-m", "fastpart", *SPRING, *form])
    piped = subprocess.run(
        ["bash", "-c", f"{arguments} | head -1"], capture_output=True, timeout=30, check=False
    )
    assert (piped.returncode, piped.stderr) == (0, b"")
    assert piped.stdout.count(b"\n") == 1


ASCII = {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii:strict"}
UTF_8 = {"PYTHONUTF8": "1", "PYTHONIOENCODING": "utf-8:strict"}


# 4, 50
@pytest.mark.parametrize(
    ("name", "environment"),
    [soak("größe→".encode(), ASCII), (b"\xff\xfe", ASCII), soak(b"\xff\xfe", UTF_8), (b"new\nline", UTF_8)],
)
def test_file_names_of_any_bytes_in_any_locale(name, environment):
    environment = os.environ | environment
    os.rename("g.bin", name + b".bin")
    os.remove("g.bin.json")
    done = child("partition", name + b".bin", "-k", "2", "--algorithm", "spring", "-o", name, env=environment)
    assert (done.returncode, done.stderr.count(b"\n")) == (0, 1)  # one note, on one line
    assert b"\nsaved to " in done.stdout
    done = child("evaluate", name + b".bin", name, "--json", env=environment)
    assert (done.returncode, json.loads(done.stdout)["summary"]["k"]) == (0, 2)
    done = child("info", name, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"2 parts of vertices by spring" in done.stdout
    done = child("partition", name, "-k", "2", env=environment)
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert b"not a regular file (a directory)" in done.stderr
    done = child("info", name + b".absent", env=environment)
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert done.stderr.endswith(b".absent: No such file or directory\n")


# 50: the system's C locale, as cron jobs and containers have it.
def test_a_file_name_that_is_not_ascii_in_the_c_locale():
    environment = os.environ | {"PYTHONUTF8": "0", "LC_ALL": "C"}
    os.rename("g.bin", "größe.bin")
    done = child("convert", "größe.bin", "größe.u32", env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert fp.open_graph("größe.u32").identify() == fp.open_graph(EDGES).identify()


# 50
def test_numbers_do_not_follow_the_locale():
    plain = child("info", "g.bin", env=os.environ | {"LC_ALL": "C"}).stdout
    code = (
        "import locale, sys\n"
        "locale.localeconv = lambda: {'decimal_point': ',', 'thousands_sep': '.', 'grouping': [3]}\n"
        "from fastpart.cli import main\n"
        "sys.exit(main(['info', 'g.bin']))"
    )
    comma = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30, check=True).stdout
    assert comma == plain
