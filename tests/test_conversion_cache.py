"""Conversions that are kept: found again, written in one step, told, and removed."""

import errno
import json
import os
import pickle
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

import fastpart as fp
from fastpart.cli import main
from fastpart.core.options import RunOptions
from fastpart.core.parameters import sized
from fastpart.graphs import conversion_cache, converted
from fastpart.graphs.conversion_cache import MARKER
from flipped import REPLACEMENTS, bits_of, flipped, replace


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The folder of an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "fastpart" / "conversions"


@pytest.fixture
def source(tmp_path):
    file = tmp_path / "g.csv"
    file.write_text("source,target,w\n0,1,2\n1,2,3\n")
    return file


def entries(home):
    return sorted(path.name for path in home.iterdir()) if home.exists() else []


def is_whole(entry):
    key = json.loads((entry / MARKER).read_bytes())["key"]
    return conversion_cache._valid(entry, key, RunOptions())


def test_a_second_opening_finds_the_conversion(home, source, caplog):
    caplog.set_level("INFO", "fastpart")
    first = fp.open_graph(source)
    (entry,) = entries(home)
    said = [text for text in caplog.messages if "converted once" in text]
    size = sized(sum(path.stat().st_size for path in (home / entry).iterdir()))
    assert said == [
        f"{source}: converted once, to {size} in {home / entry}. `fastpart conversions` lists them, --clear "
        "removes them"
    ]
    state = {path.name: path.stat().st_mtime_ns for path in (home / entry).iterdir()}
    assert set(state) == {"edges.bin", "edges.bin.json", "entry.json"}
    caplog.clear()
    again = fp.open_graph(str(source))
    assert again == first
    assert caplog.messages == [f"{source}: read from its conversion in {home / entry}"]
    assert {path.name: path.stat().st_mtime_ns for path in (home / entry).iterdir()} == state


def test_a_refusal_has_converted_nothing(home, tmp_path, caplog):
    caplog.set_level("INFO", "fastpart")
    (tmp_path / "g.txt").write_text("0 1\n1 x\n")
    with pytest.raises(fp.errors.GraphFormatError):
        fp.open_graph(tmp_path / "g.txt")
    assert not any("converted once" in text for text in caplog.messages)


def test_the_key_is_path_size_time_and_what_changes_the_result(home, source, tmp_path):
    fp.open_graph(source)
    for options in (
        {"weights": "w"},
        {"columns": (2, 1)},
        {"num_vertices": 9},
        {"directedness": "directed"},
        {"max_vertices": 100},
    ):
        before = len(entries(home))
        fp.open_graph(source, **options)
        fp.open_graph(source, **options)
        assert len(entries(home)) == before + 1, options
    count = len(entries(home))
    for options in ({"io": "read"}, {"threads": 1}, {"tmp_dir": tmp_path}, {"memory_limit": "1G"}):
        fp.open_graph(source, **options)
    assert len(entries(home)) == count
    assert fp.open_graph(source).num_edges == 2
    stamp = source.stat()
    source.write_text("source,target,w\n0,1,2\n1,3,3\n")  # as long as before
    os.utime(source, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 1))
    assert fp.open_graph(source).num_vertices == 4
    copy = source.rename(tmp_path / "other.csv")
    assert fp.open_graph(copy).num_vertices == 4
    assert len(entries(home)) == count + 2


@pytest.mark.parametrize("damage", ["edges.bin", "entry.json", "missing", "empty", "foreign"])
def test_a_damaged_entry_is_written_again(home, source, damage):
    expected = fp.open_graph(source).identify()
    (entry,) = entries(home)
    if damage == "missing":
        (home / entry / "edges.bin").unlink()
    elif damage == "empty":
        for path in (home / entry).iterdir():
            path.unlink()
    elif damage == "foreign":
        content = json.loads((home / entry / "entry.json").read_text())
        content["key"]["files"] = []
        (home / entry / "entry.json").write_text(json.dumps(content))
    else:
        (home / entry / damage).write_bytes(b"xyz")
    assert fp.open_graph(source).identify() == expected
    assert entries(home) == [entry]
    assert is_whole(home / entry)


NAMES = "source,target,w\n" + "".join(f"v{a},v{a * 7 % 300},{1 + a % 9}\n" for a in range(300))
NUMBERS = NAMES.replace("v", "")


@pytest.mark.parametrize(("text", "options"), [(NUMBERS, {}), (NUMBERS, {"weights": "w"}), (NAMES, {})])
def test_a_flipped_bit_in_an_entry_changes_nothing_in_silence(home, source, caplog, text, options):
    caplog.set_level("INFO", "fastpart")
    source.write_text(text)

    def result():
        graph = fp.open_graph(source, **options)
        found = fp.algorithms.hash(graph, 4)
        fp.evaluate(graph, found)
        weights = None if graph.weights is None else graph.weights.tolist()
        ids = fp.store.restore(found, graph=graph) if text is NAMES else None
        told = found.assignment.tolist(), found.checksum, weights, graph.directedness, graph.identify()
        return told, None if ids is None else ids.to_dicts()

    expected = result()
    (entry,) = entries(home)
    refused = again = 0
    for file, bit in list(bits_of(home / entry, 12)):
        caplog.clear()
        with flipped(file, bit):
            try:
                found = result()
            except fp.errors.GraphFormatError as error:
                assert f"Delete {home / entry} and open the graph again" in str(error), (file.name, bit)  # noqa: PT017
                shutil.rmtree(home / entry)
                found = result()
                refused += 1
            assert found == expected, (file.name, bit)
            again += any("It is made again" in text for text in caplog.messages)
        assert is_whole(home / entry)
    assert refused > 3
    assert again > 20


@pytest.mark.parametrize("how", REPLACEMENTS)
def test_a_source_of_equal_size_and_time_is_another_one(home, source, how):
    assert fp.open_graph(source).num_vertices == 3
    replace(how, source, source.read_bytes().replace(b"1,2,3", b"1,7,3"))
    assert fp.open_graph(source).num_vertices == 8
    assert len(entries(home)) == 2


@pytest.mark.parametrize("how", REPLACEMENTS)
@pytest.mark.parametrize("place", ["head", "middle", "tail"])
def test_a_large_source_is_another_one_wherever_it_differs(home, source, how, place):
    lines = [f"{1000 + number},{1001 + number},1\n" for number in range(20_000)]
    source.write_text("source,target,w\n" + "".join(lines))
    before = fp.open_graph(source).identify()
    changed = {"head": 0, "middle": 10_000, "tail": len(lines) - 1}[place]
    start = len("source,target,w\n") + sum(map(len, lines[:changed]))
    content = bytearray(source.read_bytes())
    content[start + 3] ^= 1
    replace(how, source, bytes(content))
    assert fp.open_graph(source).identify() != before


@pytest.mark.parametrize("how", REPLACEMENTS)
def test_a_pickle_of_a_file_that_was_replaced_is_refused(tmp_path, how):
    np.random.default_rng(0).integers(0, 100, (300, 2), np.uint32).tofile(tmp_path / "g.bin")
    data = pickle.dumps(fp.open_graph(tmp_path / "g.bin"))
    assert pickle.loads(data).num_edges == 300
    content = bytearray((tmp_path / "g.bin").read_bytes())
    content[100] ^= 1
    replace(how, tmp_path / "g.bin", bytes(content))
    with pytest.raises(
        fp.errors.EdgeFileChangedError, match=r"g\.bin: the file changed after the graph was pickled"
    ):
        pickle.loads(data)


def test_a_source_that_changes_meanwhile_is_not_kept(home, source, monkeypatch):
    real = converted._convert

    def changing(named, into, *given):
        real(named, into, *given)
        source.write_text("source,target\n5,6\n")

    monkeypatch.setattr(converted, "_convert", changing)
    with pytest.raises(fp.errors.EdgeFileChangedError, match=r"g\.csv: changed while it was converted"):
        fp.open_graph(source)
    assert entries(home) == []


def test_only_its_owner_reads_the_cache(home, source):
    fp.open_graph(source)
    assert [folder.stat().st_mode & 0o77 for folder in (home, home.parent)] == [0, 0]


def test_a_refused_source_leaves_nothing(home, tmp_path):
    (tmp_path / "bad.txt").write_text("0 1\n1 x\n")
    with pytest.raises(fp.errors.GraphFormatError, match=r"bad\.txt: line 2"):
        fp.open_graph(tmp_path / "bad.txt")
    assert entries(home) == []


def test_two_processes_at_once(home, source):
    lines = "".join(f"{v},{v + 1},1\n" for v in range(50_000))
    source.write_text("source,target,w\n" + lines)
    code = "import sys, fastpart as fp; print(fp.open_graph(sys.argv[1]).identify()[1])"
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(source)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = {process.communicate(timeout=60)[0].strip() for process in running}
    assert [process.returncode for process in running] == [0, 0, 0]
    assert said == {fp.open_graph(source).identify()[1]}
    assert len(entries(home)) == 1


def test_somebody_else_finishes_first(home, source, monkeypatch):
    real = conversion_cache._core.AtomicDir

    class Slow:
        """A folder whose name is taken before it is ready."""

        def __init__(self, *given):
            self.inner = real(*given)
            self.path = self.inner.path

        def commit(self):
            monkeypatch.setattr(conversion_cache._core, "AtomicDir", real)
            fp.open_graph(source)
            self.inner.commit()

        def discard(self):
            self.inner.discard()

    monkeypatch.setattr(conversion_cache._core, "AtomicDir", Slow)
    assert fp.open_graph(source).num_edges == 2
    assert len(entries(home)) == 1
    assert is_whole(home / entries(home)[0])


def unwritable(tmp_path, monkeypatch, how):
    if how == "a file":
        (tmp_path / "cache").write_text("")
        return

    def refuse(*_):
        if how == "no home":
            raise RuntimeError("no home")
        raise OSError(getattr(errno, how), "refused", str(tmp_path / "cache" / "fastpart"))

    monkeypatch.setattr(conversion_cache, "_write" if how != "no home" else "home", refuse)


@pytest.mark.parametrize(
    "how", ["a file", "no home", "ENOSPC", "EROFS", "EACCES", "EDQUOT", "ENOENT", "EIO", "ESTALE", "ELOOP"]
)
def test_a_cache_that_cannot_be_written(home, source, tmp_path, monkeypatch, caplog, how):
    caplog.set_level("INFO", "fastpart")
    unwritable(tmp_path, monkeypatch, how)
    (tmp_path / "tmp").mkdir()
    graph = fp.open_graph(source, tmp_dir=tmp_path / "tmp", weights="w")
    assert any("The conversion is not kept" in text for text in caplog.messages)
    assert (graph.num_edges, graph.path) == (2, source)
    assert len(list((tmp_path / "tmp").iterdir())) == 1
    assert graph.weights.tolist() == [2, 3]
    copy = pickle.loads(pickle.dumps(graph))
    assert copy == graph
    del graph, copy
    assert list((tmp_path / "tmp").iterdir()) == []


def test_errors_of_the_source_are_no_errors_of_the_cache(home, tmp_path, caplog):
    with pytest.raises(FileNotFoundError, match=r"absent\.csv"):
        fp.open_graph(tmp_path / "absent.csv")
    assert caplog.messages == []


def test_pickles_find_the_conversion_or_write_it_again(home, source):
    graph = fp.open_graph(source)
    data = pickle.dumps(graph)
    assert len(data) < 4000
    assert pickle.loads(data) == graph
    conversion_cache.clear()
    again = pickle.loads(data)
    assert (again, again.path, len(entries(home))) == (graph, source, 1)
    time.sleep(0.01)
    source.write_text("source,target,w\n0,2,2\n1,2,3\n")
    with pytest.raises(fp.errors.EdgeFileChangedError, match=r"g\.csv: changed after the graph was pickled"):
        pickle.loads(data)


def test_the_verb_lists_and_clears(home, source, capsys, tmp_path):
    assert main(["conversions"]) == 0
    assert capsys.readouterr().out == "   0 bytes  in all\n"
    fp.open_graph(source)
    (home / ".0123.tmp-1.1").mkdir()
    (home / "mine").mkdir()
    assert main(["conversions", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    (entry,) = facts["entries"]
    assert (entry["sources"], entry["bytes"], facts["cleared"]) == ([str(source)], facts["bytes"], False)
    assert main(["conversions", "--clear"]) == 0
    listed, total = capsys.readouterr().out.splitlines()
    assert listed.endswith(f"  {source}")
    assert total.endswith("  removed")
    assert entries(home) == ["mine"]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").touch()
    (home / ("0" * 32)).symlink_to(tmp_path / "elsewhere")
    fp.open_graph(source)
    assert main(["conversions", "--clear"]) == 0
    assert entries(home) == ["mine"]
    assert (tmp_path / "elsewhere" / "kept").exists()
    assert fp.open_graph(source).num_edges == 2
