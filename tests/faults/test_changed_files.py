"""Edge files that change during a run: an exception (or SIGBUS under a map, as documented), never a result."""

import os
import re
import shutil
import signal

import numpy as np
import pytest
from child import PASSES, run_child

import fastpart as fp
from soaked import soak, some_of

IO = pytest.mark.parametrize("io", ["mmap", "read"])


@pytest.fixture
def victim(graph, tmp_path):
    """A copy of the graph to change, with its sidecar."""
    for path in (graph, graph.with_name("g.bin.json")):
        shutil.copy(path, tmp_path)
    return tmp_path / "g.bin"


class Once:
    """A progress callback that does something in the middle of ``phase``."""

    def __init__(self, phase, action):
        self.phase, self.action, self.done = phase, action, False

    def __call__(self, phase, done, total):
        if not self.done and phase == self.phase and 0 < done < total:
            self.done = True
            self.action()


def shorten(path):
    os.truncate(path, 8 * 1000)


def lengthen(path):
    with path.open("ab") as file:
        file.write(bytes(8))


def overwrite(path):
    with path.open("r+b") as file:
        file.write(np.arange(200_000, dtype="<u4").tobytes())


def ruin(path):
    """Overwrite all with ids outside the graph."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.write(b"\xff" * size)


CHANGES = pytest.mark.parametrize("change", [lengthen, overwrite, ruin])


@IO
@CHANGES
@pytest.mark.parametrize("batch", [1, None])
def test_spring_sees_a_change(victim, io, change, batch):
    edges = fp.open_graph(victim, io=io)
    progress = Once("clustering", lambda: change(victim))
    with pytest.raises(fp.errors.EdgeFileChangedError, match=r"g\.bin: the file changed .*[Rr]un again"):
        fp.spring(edges, k=4, passes=PASSES, batch=batch, progress=progress)
    assert progress.done
    # Nor is it taken for the file that was opened by any later call.
    for call in (
        edges.degrees,
        lambda: fp.evaluate(edges, np.zeros(edges.num_vertices, int)),
        edges.identify,
    ):
        with pytest.raises(fp.errors.EdgeFileChangedError, match="the file changed"):
            call()


@pytest.mark.parametrize("batch", [1, None])
def test_truncation_is_an_exception_when_read(victim, batch):
    edges = fp.open_graph(victim, io="read")
    progress = Once("clustering", lambda: shorten(victim))
    with pytest.raises(
        fp.errors.EdgeFileChangedError, match=r"the file changed .*(its size|it became shorter)"
    ):
        fp.spring(edges, k=4, passes=PASSES, batch=batch, progress=progress)


@pytest.mark.parametrize("suffix", ["part.npy", "parts"])
def test_truncation_under_a_map_writes_nothing(victim, folder, suffix):
    code = """
    import os, sys, fastpart as fp
    path, out, passes = sys.argv[1], sys.argv[2], int(sys.argv[3])
    def progress(phase, done, total):
        if phase == "clustering" and done:
            os.truncate(path, 8000)
    try:
        fp.spring(path, k=4, passes=passes, progress=progress).save(out)
    except fp.errors.EdgeFileChangedError:
        print("refused")
    """
    outcome = run_child(code, str(victim), str(folder / suffix), str(PASSES), may_die_of=[signal.SIGBUS])
    assert outcome.rc == -signal.SIGBUS or (outcome.rc, outcome.out) == (0, "refused\n"), outcome.err
    assert os.listdir(folder) == []


@pytest.mark.parametrize(
    ("vanish", "io"),
    [("replaced", "mmap"), ("deleted", "read"), soak("replaced", "read"), soak("deleted", "mmap")],
)
def test_replaced_or_deleted_files_are_read_to_their_end(victim, tmp_path, vanish, io):
    expected = fp.spring(victim, k=4, passes=20)

    def action():
        if vanish == "deleted":
            victim.unlink()
        else:
            other = tmp_path / "other.bin"
            other.write_bytes(b"\xff" * 800)
            other.replace(victim)

    progress = Once("clustering", action)
    partition = fp.spring(fp.open_graph(victim, io=io), k=4, passes=20, progress=progress)
    assert progress.done
    np.testing.assert_array_equal(partition.assignment, expected.assignment)


PART = fp.VertexPartition(np.zeros(9, int), 1)


def opened(path, io):
    return fp.open_graph(path, dtype="u32", num_vertices=9, io=io)


# Every other pass over the records: its phase, and what makes it.
CALLS = {
    "open": ("scan", lambda path, io, **how: fp.open_graph(path, dtype="u32", io=io, **how)),
    "info": ("degrees", lambda path, io, **how: fp.info(opened(path, io), **how)),
    "evaluate": ("cut", lambda path, io, **how: fp.evaluate(opened(path, io), PART, **how)),
    "save": ("checksum", lambda path, io, **how: PART.save("part.npy", graph=opened(path, io), **how)),
    "save a directory": ("cut", lambda path, io, **how: PART.save("parts", graph=opened(path, io), **how)),
    "convert": ("convert", lambda path, io, **how: fp.convert(path, "new.bin", dtype="u32", **how)),
    "relabel": (
        "convert",
        lambda path, io, **how: fp.convert(path, "new.bin", dtype="u32", relabel=True, **how),
    ),
}


def refusal(name, io, change, path, folder):
    """Change a file in the middle of a pass, and return what is raised; nothing may be written."""
    phase, call = CALLS[name]
    # Sparse, of loops (0, 0); larger ones for machines that have read the first before anybody hears of it.
    for bits in (26, 28, 30):
        path.touch()
        os.truncate(path, 8 << bits)
        progress = Once(phase, lambda: change(path))
        try:
            call(path, io, progress=progress, threads=1)
        except fp.errors.EdgeFileChangedError as error:
            assert progress.done
            assert os.listdir(folder) == []
            return str(error)
        assert not progress.done, "the change went unnoticed"
        shutil.rmtree(folder)
        folder.mkdir()
        os.chdir(folder)
    raise AssertionError("no pass took long enough to change the file meanwhile")


WAYS = [("mmap", overwrite), ("read", lengthen)]


@pytest.mark.parametrize(
    ("name", "io", "change"),
    some_of(
        [(name, *way) for name in CALLS for way in WAYS],
        [(name, *WAYS[number % 2]) for number, name in enumerate(CALLS)],
    ),
)
def test_every_pass_sees_a_change(tmp_path, folder, monkeypatch, name, io, change):
    monkeypatch.chdir(folder)
    assert "zeros.bin: the file changed" in refusal(name, io, change, tmp_path / "zeros.bin", folder)


@pytest.mark.parametrize(
    "name", some_of([name for name in CALLS if CALLS[name][0] != "convert"], ["open", "evaluate"])
)
def test_every_pass_that_reads_sees_a_truncation(tmp_path, folder, monkeypatch, name):
    monkeypatch.chdir(folder)
    text = refusal(name, "read", shorten, tmp_path / "zeros.bin", folder)
    assert re.search(r"zeros\.bin: the file changed .*(its size|it became shorter)", text)


def truncate_within_a_number(path):
    with path.open("r+b") as file:
        start = path.stat().st_size // 2
        file.seek(start)
        line = file.read(100).index(b"\n") + 1
        file.truncate(start + line + 3)


def add_words(path):
    with path.open("ab") as file:
        file.write(b"these are words\n")


@pytest.mark.parametrize(
    "change",
    some_of([shorten, truncate_within_a_number, overwrite, add_words], [truncate_within_a_number, add_words]),
)
def test_conversion_of_text_sees_a_change(tmp_path, folder, change):
    text = tmp_path / "edges.txt"
    text.write_bytes(b"123456 654321\n" * 12_000_000)
    progress = Once("convert", lambda: change(text))
    with pytest.raises(fp.errors.EdgeFileChangedError, match=r"edges\.txt: the file changed"):
        fp.convert(text, folder / "new.bin", relabel=True, threads=1, progress=progress)
    assert progress.done
    assert os.listdir(folder) == []
