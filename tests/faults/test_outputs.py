"""Outputs that cannot be written: refused before any work, or given up without a trace."""

import errno
import os
import re
import resource
import shutil
import subprocess

import numpy as np
import pytest
from child import PASSES, run_child

import fastpart as fp

PART = fp.VertexPartition(np.arange(9) % 3, 3)
OTHER = fp.VertexPartition(np.arange(9) // 3, 3)


def never(phase, done, total):
    raise AssertionError(f"work was begun: {phase}")


# Calls with an output, on a graph that takes seconds to read.
CALLS = {
    "part.npy": lambda out, edges: PART.save(out, graph=edges, progress=never),
    "part.txt": lambda out, edges: PART.save(out, graph=edges, progress=never),
    "part.parquet": lambda out, edges: PART.save(out, graph=edges, progress=never),
    "parts": lambda out, edges: PART.save(out, graph=edges, progress=never),
    "converted.bin": lambda out, edges: fp.convert(edges.path, out, dtype="u32", progress=never),
    "rmat.bin": lambda out, edges: fp.generate.rmat(out, n=1000, m=10**9, progress=never),
    "planted.bin": lambda out, edges: fp.generate.planted(out, n=1000, m=10**9, progress=never),
}
NAMES = pytest.mark.parametrize("name", CALLS)


@pytest.fixture
def edges(endless):
    return fp.open_graph(endless, dtype="u32", num_vertices=9)


@NAMES
def test_missing_folder_is_refused_before_any_work(name, edges, folder):
    with pytest.raises(FileNotFoundError, match=r"/missing'$"):
        CALLS[name](folder / "missing" / name, edges)
    (folder / "a file").touch()
    with pytest.raises(OSError, match=r"[Nn]ot a directory|does not exist.*/a file'$"):
        CALLS[name](folder / "a file" / name, edges)
    assert os.listdir(folder) == ["a file"]


@NAMES
def test_output_of_another_kind_is_refused_before_any_work(name, edges, folder):
    if name == "parts":
        (folder / name).write_text("mine")
        expected, text = FileExistsError, "not a partition directory"
    else:
        (folder / name).mkdir()
        expected, text = (IsADirectoryError, fp.errors.ParameterError), "[Ii]s a directory"
    with pytest.raises(expected, match=text):
        CALLS[name](folder / name, edges)
    assert os.listdir(folder) == [name]


def test_foreign_directory_is_refused_before_any_work(edges, folder):
    (folder / "parts").mkdir()
    (folder / "parts" / "thesis.tex").write_text("mine")
    with pytest.raises(FileExistsError, match=r"no manifest\.json of fastpart in it"):
        CALLS["parts"](folder / "parts", edges)
    assert os.listdir(folder / "parts") == ["thesis.tex"]


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
def test_output_that_is_the_input_is_refused_before_any_work(folder, link):
    path = folder / "edges.npy"
    np.save(path, np.zeros((1 << 24, 2), np.uint32))
    before = path.read_bytes()
    out = path
    if link is not None:
        out = folder / "other.npy"
        link(path, out)
    edges = fp.open_graph(path, num_vertices=9)
    with pytest.raises(fp.errors.ParameterError, match=r"out: .*npy.* is the input"):
        PART.save(out, graph=edges, progress=never)
    with pytest.raises(fp.errors.ParameterError, match=r"out: .*npy.* is the input"):
        fp.convert(path, out, progress=never)
    assert path.read_bytes() == before
    assert len(os.listdir(folder)) == 1 + (link is not None)


def test_output_that_is_mapped_is_replaced_beside_it(folder):
    path = folder / "edges.npy"
    records = np.array([[0, 1], [1, 2], [3, 4]], np.uint32)
    np.save(path, records)
    edges = fp.open_graph(path)
    before = fp.spring(edges, k=2)
    PART.save(path)  # nothing says that it is also the input
    np.testing.assert_array_equal(fp.open_partition(path, k=3).assignment, PART.assignment)
    np.testing.assert_array_equal(fp.spring(edges, k=2).assignment, before.assignment)


AS_NOBODY = """
import os, sys, fastpart as fp, fastpart.store, numpy as np
graph, folder = sys.argv[1:]
os.chdir(folder)
edges = fp.open_graph(graph)
if os.geteuid() == 0:  # whom no permission bits bind
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)

def never(phase, done, total):
    raise AssertionError(f"work was begun: {phase}")

for call in (
    lambda: fp.VertexPartition(np.zeros(1 << 18, int), 1).save("out/part.npy", graph=edges, progress=never),
    lambda: fp.VertexPartition(np.zeros(1 << 18, int), 1).save("out/parts", graph=edges, progress=never),
    lambda: fp.generate.rmat("out/r.bin", n=1000, m=10**9, progress=never),
    lambda: fp.generate.planted("out/p.bin", n=1000, m=10**9, progress=never),
    lambda: fp.convert("edges.txt", "out/c.bin", progress=never),
):
    try:
        call()
    except PermissionError as error:
        print(os.path.relpath(error.filename))
"""


def test_read_only_folder_is_refused_before_any_work(graph, tmp_path):
    shutil.copy(graph, tmp_path)
    shutil.copy(graph.with_name("g.bin.json"), tmp_path)
    (tmp_path / "edges.txt").write_bytes(b"1 2\n" * 1_000_000)
    (tmp_path / "out").mkdir()
    (tmp_path / "out").chmod(0o555)
    for path in (tmp_path, *tmp_path.glob("*.*")):
        path.chmod(0o755)
    outcome = run_child(AS_NOBODY, tmp_path / "g.bin", tmp_path)
    assert outcome.rc == 0, outcome.err
    assert [line.split("/")[0] for line in outcome.out.splitlines()] == ["out"] * 5
    assert os.listdir(tmp_path / "out") == []


@pytest.mark.parametrize(
    ("out", "rc", "text"),
    [
        ("missing/part.npy", 1, "missing: .*does not exist"),
        ("part.csv", 2, r"unknown suffix '\.csv'.*Use \.npy, \.txt, \.parquet"),
        (".", 1, "is not a partition directory|exists"),
        ("g.bin", 2, "unknown suffix"),
    ],
)
def test_command_refuses_outputs_before_any_work(graph, folder, run, monkeypatch, out, rc, text):
    monkeypatch.chdir(folder)
    (folder / "thesis.tex").touch()
    arguments = ("partition", graph, "-k", 4, "--algorithm", "spring", "--passes", PASSES, "-q", "-o", out)
    code, said, err = run(*arguments)
    assert (code, said) == (rc, "")
    assert len(err.splitlines()) == 1
    assert re.search(text, err), err
    assert os.listdir(folder) == ["thesis.tex"]


def test_devices_are_no_outputs(folder):
    (folder / "part.npy").symlink_to("/dev/full")
    with pytest.raises(fp.errors.ParameterError, match=r"is a device, pipe or socket\. Name a regular file"):
        PART.save(folder / "part.npy")
    assert os.listdir(folder) == ["part.npy"]


# Everything that is written is too large for what is left, and the old output is in its place.
FULL = """
import os, sys, numpy as np, fastpart as fp
os.chdir(sys.argv[1])
text = os.path.join(sys.argv[2], "edges.txt")
small = fp.VertexPartition([0, 1, 1], 7)
large = fp.VertexPartition(np.random.default_rng(0).integers(0, 7, 4_000_000), 7)
saves = {name: lambda name=name: large.save(name) for name in ("part.npy", "part.txt", "part.parquet", "parts")}
writes = {
    "rmat.bin": lambda: fp.generate.rmat("rmat.bin", n=1000, m=1_000_000),
    "planted.bin": lambda: fp.generate.planted("planted.bin", n=1000, m=1_000_000),
    "features.bin": lambda: fp.generate.planted("features.bin", n=100_000, m=10, features=8),
    "converted.bin": lambda: fp.convert(text, "converted.bin"),
    "shuffled.bin": lambda: fp.convert(text, "shuffled.bin", shuffle=True),
    "deduped.bin": lambda: fp.convert(text, "deduped.bin", dedup=True),
}
formats = {
    name: lambda name=name: fp.convert(text, name, shuffle=True)
    for name in ("g.graph", "g.txt", "g.parquet", "g.binedgelist")
}
for name in saves:
    small.save(name)
for name in writes:
    fp.generate.rmat(name, n=9, m=2)
for name in formats:
    open(name, "w").close()
before = sorted(os.listdir("."))
for name, write in (saves | writes | formats).items():
    try:
        write()
    except OSError as error:
        print(error.errno, name in os.fspath(error.filename))
    assert sorted(os.listdir(".")) == before, os.listdir(".")
for name in saves:
    assert fp.open_partition(name, k=7).assignment.tolist() == [0, 1, 1]
for name in writes:
    assert (fp.open_graph(name).num_vertices, fp.open_graph(name).num_edges) == (9, 2)
    fp.open_graph(name).identify()
assert not any(os.path.getsize(name) for name in formats)
print("intact")
"""

ON_A_SMALL_DISK = """
import os, sys
mount = 'mount -t tmpfs -o size=1m none "$0" && exec "$@"'
code, folder, elsewhere = sys.argv[1:]
os.execvp("unshare", ["unshare", "-rm", "sh", "-c", mount, folder, sys.executable, "-c", code, folder, elsewhere])
"""


@pytest.fixture
def text(tmp_path):
    (tmp_path / "edges.txt").write_bytes(b"1 2\n" * 1_000_000)
    return tmp_path


def check(outcome, number):
    assert outcome.rc == 0, outcome.err
    *lines, last = outcome.out.splitlines()
    assert lines == [f"{number} True"] * 14
    assert last == "intact"


def test_file_that_may_not_grow(folder, text):
    outcome = run_child(FULL, folder, text, ulimit={resource.RLIMIT_FSIZE: 1 << 20})
    check(outcome, errno.EFBIG)


def test_full_disk(folder, text):
    mount = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", folder]
    if shutil.which("unshare") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("nobody here may mount a small disk")
    outcome = run_child(ON_A_SMALL_DISK, FULL, folder, text)
    check(outcome, errno.ENOSPC)
    assert os.listdir(folder) == []


def test_interrupted_replacement_says_how_to_restore_the_old_directory(folder):
    PART.save(folder / "parts")
    (folder / "parts").rename(folder / ".parts.old-123.0")
    with pytest.raises(
        FileNotFoundError, match=r"left only \.parts\.old-123\.0\. To restore it, rename it to parts"
    ):
        fp.open_partition(folder / "parts")
    # The next writer does not take it for rubbish.
    OTHER.save(folder / "parts")
    assert sorted(os.listdir(folder)) == [".parts.old-123.0", "parts"]
    (folder / ".parts.old-123.0").rename(folder / "restored")
    np.testing.assert_array_equal(fp.open_partition(folder / "restored").assignment, PART.assignment)


LAZY = """
import os, sys, numpy as np, polars as pl, fastpart as fp
frame = pl.LazyFrame({"u": np.arange(1_000_000), "v": np.arange(1_000_000)})
try:
    fp.open_graph(frame, tmp_dir=sys.argv[1])
except OSError as error:
    print(error.errno, error.filename == sys.argv[1])
"""


def test_a_streamed_frame_that_finds_no_room(folder):
    outcome = run_child(LAZY, folder, ulimit={resource.RLIMIT_FSIZE: 1 << 20})
    assert (outcome.rc, outcome.out) == (0, f"{errno.EFBIG} True\n"), outcome.err
    assert os.listdir(folder) == []
