"""An ingest that is killed goes on where it was, and its bytes are those of one that was not."""

import json
import os
import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import polars as pl
import pytest
from child import run_child

import fastpart as fp
from fastpart.core.outputs import Owner
from fastpart.graphs.ingest import ingest
from fastpart.graphs.ingest.stages.job import FORMAT
from fastpart.graphs.ingest.stages.work_folder import Journal, WorkFolder
from flipped import bits_of, flipped
from ingest_tables import plain, small
from soaked import soak, some_of

RUN = """
import hashlib, json, os, random, signal, sys, time
from pathlib import Path
import polars  # before the fork, and without its threads
sys.path.insert(0, sys.argv[1])
from ingest_tables import small
from fastpart.graphs.ingest import ingest
from fastpart.graphs.ingest.stages import work_folder
folder, form = Path(sys.argv[2]), sys.argv[3]
sizes = (500, 5000) if form == "files" else (100, 1500)
sys.dont_write_bytecode = True
schema = json.loads((folder / "schema.json").read_text())
plain_add = work_folder.Journal.add

def killed_at(count, torn):
    def add(self, *given, **named):
        add.left -= 1
        if add.left == 0:
            if torn:
                plain_add(self, *given, **named)
                self._file.truncate(self._file.tell() - 7)
            os.kill(os.getpid(), signal.SIGKILL)
        return plain_add(self, *given, **named)
    add.left = count
    work_folder.Journal.add = add

CHANGES = {"os.remove", "os.rename", "os.link", "os.mkdir", "os.rmdir", "os.truncate"}

def killed_at_change(count):
    def change(event, arguments):
        if event in CHANGES or event == "open" and arguments[2] & (os.O_CREAT | os.O_TRUNC):
            change.left -= 1
            if change.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
    change.left = count
    sys.addaudithook(change)

def child(count=0, torn=False, change=0):
    pid = os.fork()
    if pid == 0:
        if count:
            killed_at(count, torn)
        if change:
            killed_at_change(change)
        try:
            with small(*sizes):
                ingest(schema, folder / "graph", threads=2)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return pid

def ended(pid):
    status = os.waitpid(pid, 0)[1]
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

def digest():
    files = sorted(path for path in (folder / "graph").rglob("*") if path.is_file())
    return [(str(file.relative_to(folder)), hashlib.sha256(file.read_bytes()).hexdigest()) for file in files]

def whole():
    return digest() == expected and sorted(os.listdir(folder)) == ["e", "graph", "schema.json", "v"]

def fresh():
    import shutil
    shutil.rmtree(folder / "graph")

assert ended(child()) == 0
expected = digest()
fresh()
kills = 0
if form == "units":  # at each unit in turn, before its line is there and with half of it
    count = 1
    while True:
        status = ended(child(count=2 + kills % 6, torn=kills % 2 == 0))
        if status == 0:
            break
        assert status == signal.SIGKILL, status
        kills += 1
elif form == "files":  # before some changes of files or folders, and once more before it is done
    while True:
        status = ended(child(change=1 + int(sys.argv[4]) * kills))
        if status == 0:
            break
        assert status == signal.SIGKILL, (kills, status)
        kills += 1
        for change in (1 + kills % 19, 0):
            assert not (folder / "graph").exists() or digest() == expected, kills
            status = ended(child(change=change))
            assert status == 0 or change and status == signal.SIGKILL, (kills, status)
        assert whole(), (kills, os.listdir(folder))
        fresh()
else:
    moments = random.Random(int(form))
    begun = time.monotonic()
    assert ended(child()) == 0
    once = time.monotonic() - begun
    fresh()
    while kills < 5:
        pid = child()
        time.sleep(moments.uniform(0, once))
        os.kill(pid, signal.SIGKILL)
        if ended(pid) == signal.SIGKILL:
            kills += 1
        else:
            assert digest() == expected
            fresh()
    assert ended(child()) == 0
assert whole(), os.listdir(folder)
print(kills)
"""


@pytest.fixture
def tables(tmp_path):
    """Tables with features, labels, times and weights, and records of which some are dropped."""
    rng = np.random.default_rng(0)
    ids = [f"v{id:03}" for id in rng.permutation(300)]
    pairs = [(ids[a], ids[b]) for a, b in rng.integers(0, 300, (900, 2))]
    folder = tmp_path / "tables"
    schema = plain(folder, ids[:250], pairs, missing="drop", weight="w", time="at")
    schema["vertices"]["v"] |= {
        "features": ["x", "y", {"column": "c", "as": "onehot", "fill": "none"}],
        "label": "kind",
        "split": {"by": "random", "train": 0.5},
    }
    vertices = pl.read_parquet(folder / "v" / "000.parquet").with_columns(
        x=pl.Series(rng.random(250)), y=pl.int_range(250, eager=True), kind=pl.Series(rng.integers(0, 5, 250))
    )
    vertices = vertices.with_columns(c=pl.Series([None, "web", "app"])[rng.integers(0, 3, 250)])
    records = pl.read_parquet(folder / "e" / "000.parquet").with_columns(
        w=pl.Series(rng.random(900)), at=pl.int_range(900, eager=True), c=pl.Series(rng.integers(0, 9, 900))
    )
    records = records.with_columns(word=pl.Series(["to", "cc", None])[rng.integers(0, 3, 900)])
    schema["relations"]["e"] |= {
        "features": [{"column": "c", "as": "onehot"}],
        "label": "word",
        "split": {"by": "time", "train": 0.5, "test": 0.25},
    }
    for name, frame, step in (("v", vertices, 70), ("e", records, 130)):
        for number, start in enumerate(range(0, len(frame), step)):
            frame.slice(start, step).write_parquet(folder / name / f"{number:03}.parquet")
    (folder / "schema.json").write_text(json.dumps(schema))
    return folder


@pytest.mark.parametrize("form", [("units",), ("files", 31), soak(("files", 7)), soak(("0",))], ids=str)
def test_the_bytes_are_those_of_an_ingest_that_was_not_killed(tables, form):
    outcome = run_child(RUN, os.path.dirname(os.path.dirname(__file__)), tables, *form, timeout=150)
    assert outcome.rc == 0, outcome.err
    assert int(outcome.out) >= 5


def test_a_journal_that_is_cut_anywhere_keeps_its_whole_lines(tmp_path):
    whole = Journal(tmp_path)
    for unit in ("a", "b"):
        whole.add("sort", unit, (), {"ids": 3})
    whole.close()
    content = (tmp_path / "journal.jsonl").read_bytes()
    first = content.index(b"\n") + 1
    for cut in range(len(content) + 1):
        (tmp_path / "journal.jsonl").write_bytes(content[:cut])
        journal = Journal(tmp_path)
        assert (journal.done("sort", "a") is not None) == (cut >= first)
        assert (journal.done("sort", "b") is not None) == (cut == len(content))
        journal.add("sort", "c")
        journal.close()
        again = Journal(tmp_path)
        assert again.done("sort", "c") == {}
        assert (again.done("sort", "a") is not None) == (cut >= first)
        again.close()


PLAN = {"format": FORMAT, "schema": {}, "root": "", "settings": {}, "tables": {}}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("fastpart-ingest.json", "{", r"ingest\.json: not JSON"),
        ("fastpart-ingest.json", "[]", r"ingest\.json: expected a JSON object"),
        ("fastpart-ingest.json", "{}", r"ingest\.json: the field 'format' is missing"),
        (
            "fastpart-ingest.json",
            PLAN | {"tables": 3},
            r"ingest\.json: the field 'tables' holds an integer, not an object",
        ),
        (
            "fastpart-ingest.json",
            PLAN | {"tables": {"vertices/v": [3]}},
            r"ingest\.json: tables: vertices/v: no list of files",
        ),
        ("journal.jsonl", "3\n", r"journal\.jsonl: line 1: expected a JSON object"),
        ("journal.jsonl", '{"checksum": 0}\n', r"journal\.jsonl: line 1: not as it was written"),
        ("journal.jsonl", None, r"journal\.jsonl: line 2: not (JSON|as it was written)"),
    ],
)
def test_damage_of_the_work_folder_is_named_and_restart_mends_it(tables, name, content, said):
    schema = interrupted(tables, 5)
    file = tables / ".graph.ingest" / name
    if content is None:  # a bit in the middle
        whole = bytearray(file.read_bytes())
        whole[whole.index(b"\n") + 12] ^= 1
        file.write_bytes(whole)
    else:
        file.write_text(content if isinstance(content, str) else json.dumps(content))
    with small(100, 1500):
        with pytest.raises(fp.errors.GraphFormatError, match=rf"{said}.*Pass restart=True to begin anew"):
            ingest(schema, tables / "graph")
        ingest(schema, tables / "graph", restart=True)
    assert not (tables / ".graph.ingest").exists()


def interrupted(folder, stop, **options):
    """Run an ingest that ends after some units, or before that of a stage and name, as if it had been killed."""
    schema = json.loads((folder / "schema.json").read_text())
    with small(100, 1500), pytest.MonkeyPatch.context() as patch:
        from fastpart.graphs.ingest.stages import job, work_folder

        patch.setattr(job, "_WORTHLESS", -1)
        add, left = work_folder.Journal.add, [stop]

        def stopping(*args, **named):
            if isinstance(stop, int):
                left[0] -= 1
            if not left[0] or args[1:3] == stop:
                raise KeyboardInterrupt
            return add(*args, **named)

        patch.setattr(work_folder.Journal, "add", stopping)
        with pytest.raises(KeyboardInterrupt):
            ingest(schema, folder / "graph", **options)
    assert (folder / ".graph.ingest").is_dir()
    return schema


def test_a_changed_input_is_named(tables):
    schema = interrupted(tables, 5)
    changed = pl.read_parquet(tables / "e" / "001.parquet").reverse()
    changed.write_parquet(tables / "e" / "001.parquet")
    with (
        small(100, 1500),
        pytest.raises(fp.errors.ParameterError, match=r"e/001\.parquet changed \([\d,]+ bytes then"),
    ):
        ingest(schema, tables / "graph")
    (tables / "e" / "009.parquet").write_bytes((tables / "e" / "001.parquet").read_bytes())
    with small(100, 1500), pytest.raises(fp.errors.ParameterError, match=r"restart"):
        ingest(schema, tables / "graph")
    with small(100, 1500):
        ingest(schema, tables / "graph", restart=True)
    assert not (tables / ".graph.ingest").exists()


def test_a_changed_schema_is_named(tables):
    schema = interrupted(tables, 5)
    schema["relations"]["e"]["weight"] = None
    with (
        small(100, 1500),
        pytest.raises(fp.errors.ParameterError, match=r"since when the schema changed \(relations\)"),
    ):
        ingest(schema, tables / "graph")


def test_a_changed_vocabulary_is_named(tables):
    schema = interrupted(tables, 5)
    with small(100, 1500):
        earlier = ingest(schema, tables / "earlier")
        with pytest.raises(fp.errors.ParameterError, match=r"since when the settings changed \(vocabulary\)"):
            ingest(schema, tables / "graph", vocabulary=earlier)


@pytest.mark.parametrize("stop", [3, soak(("attributes", "types/v/00001")), soak(("columns", "relations/e"))])
def test_an_ingest_with_a_vocabulary_goes_on(tables, stop):
    schema = json.loads((tables / "schema.json").read_text())
    with small(100, 1500):
        earlier = ingest(schema, tables / "earlier")
    file = tables / "earlier" / "edge_categories.json"
    file.write_text(json.dumps({"c": {"values": [8, 3, 0], "counts": [0, 0, 0]}}))
    interrupted(tables, stop, vocabulary=earlier)
    with small(100, 1500):
        ingest(schema, tables / "graph", vocabulary=earlier)
        ingest(schema, tables / "again", vocabulary=earlier)
    for name in (
        "features.npy",
        "edge_features.npy",
        "categories.json",
        "edge_categories.json",
        "graph.json",
    ):
        assert (tables / "graph" / name).read_bytes() == (tables / "again" / name).read_bytes(), name
    assert np.load(tables / "graph" / "edge_features.npy").sum(axis=0)[-1] > 0
    assert np.load(tables / "graph" / "edge_features.npy").shape[1] == 4


def test_files_of_the_work_folder_that_are_lost_are_made_again(tables):
    schema = interrupted(tables, 12)
    for file in [*(tables / ".graph.ingest").rglob("run-*"), *(tables / ".graph.ingest").rglob("vertices-*")][
        :2
    ]:
        file.unlink()
    with small(100, 1500):
        ingest(schema, tables / "graph")
        ingest(schema, tables / "again")
    for name in ("edges.bin", "features.npy", "edges.bin.weights.npy"):
        assert (tables / "graph" / name).read_bytes() == (tables / "again" / name).read_bytes()


@pytest.mark.parametrize(
    ("lost", "stop"),
    [
        ("vertices-000", ("records", "e/00005")),
        ("edges.bin", ("columns", "relations/e")),
        soak("states.npy", ("attributes", "types/v/00001")),
        soak("labels.npy", ("columns", "relations/e")),
        ("weights.npy", ("attributes", "relations/e/00002")),
    ],
)
def test_what_is_lost_is_made_again_and_a_kill_meanwhile_leaves_no_hole(tables, lost, stop):
    schema = interrupted(tables, stop)
    file, *_ = sorted((tables / ".graph.ingest").rglob(lost))
    file.unlink()
    interrupted(tables, 2)
    with small(100, 1500):
        ingest(schema, tables / "graph")
        ingest(schema, tables / "again")
    for name in ("edges.bin", "features.npy", "labels.npy", "split.npz", "edges.bin.weights.npy"):
        assert (tables / "graph" / name).read_bytes() == (tables / "again" / name).read_bytes(), name


STOPS = [
    ("number", "v"),
    ("spill", "e/00004"),
    ("resolve", "e/00000/0"),
    ("records", "e/00005"),
    ("attributes", "types/v/00001"),
    ("columns", "types/v"),
    ("attributes", "relations/e/00003"),
    ("columns", "relations/e"),
    "the end",
]


@pytest.mark.parametrize(
    ("missing", "stop"),
    some_of(
        product(("drop", "add"), STOPS),
        [("drop", STOPS[3]), ("add", "the end")],
    ),
)
def test_a_flipped_bit_in_the_work_folder_changes_nothing_in_silence(tables, missing, stop):
    if missing == "add":  # then records are looked up at once
        if stop[0] in ("spill", "resolve"):
            return
        schema = json.loads((tables / "schema.json").read_text())
        schema["relations"]["e"]["missing"] = missing
        schema["vertices"]["v"]["features"][0] = {"column": "x", "fill": 0.5}
        (tables / "schema.json").write_text(json.dumps(schema))
    work, kept = tables / ".graph.ingest", tables / "kept"
    schema = json.loads((tables / "schema.json").read_text())
    with small(100, 1500):
        ingest(schema, tables / "whole")
    expected = contents(tables / "whole")
    if stop == "the end":
        from fastpart.graphs.ingest.stages import attributes

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(attributes, "_place", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            interrupted(tables, -1)
    else:
        interrupted(tables, stop)
    shutil.copytree(work, kept)
    again = refused = 0
    bits = list(bits_of(work, 2, seed=str(stop)))
    for file, bit in random.Random(0).sample(bits, min(len(bits), 7)):
        with flipped(file, bit), small(100, 1500):
            try:
                ingest(schema, tables / "graph", threads=1)
            except (fp.errors.GraphFormatError, fp.errors.ParameterError) as error:
                assert ".graph.ingest" in str(error), error  # noqa: PT017
                refused += 1
            else:
                assert contents(tables / "graph") == expected, (file.relative_to(work), bit)
                shutil.rmtree(tables / "graph")
                again += 1
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(kept, work)
    assert refused + again == min(len(bits), 7)
    assert again > 0


def contents(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("shards", [None, 2])
def test_a_graph_with_its_name_is_not_written_to_by_a_run_that_goes_on(tables, monkeypatch, shards):
    schema = json.loads((tables / "schema.json").read_text())
    with (
        small(100, 1500),
        monkeypatch.context() as patch,
    ):  # as if killed when the graph had just got its name
        patch.setattr(WorkFolder, "release", lambda work, remove: None)
        ingest(schema, tables / "graph", shards=shards)
    files = [file for file in (tables / "graph").rglob("*") if file.is_file()]
    (tables / "links").mkdir()
    for file in files:
        os.utime(file, (0, 0))
        os.link(file, tables / "links" / file.name)
    with small(100, 1500):
        ingest(schema, tables / "graph", shards=shards)
    assert not (tables / ".graph.ingest").exists()
    for file in files:
        link = tables / "links" / file.name
        assert (link.stat().st_mtime, link.read_bytes()) == (0, file.read_bytes()), file


def test_two_at_once_are_refused(tables):
    interrupted(tables, 5)
    schema = json.loads((tables / "schema.json").read_text())
    refused = pytest.raises(
        fp.errors.ParameterError, match=r"out: \S+graph is in use\. At work there: process"
    )
    with Owner(tables / "graph"), ThreadPoolExecutor(1) as other, refused:
        other.submit(ingest, schema, tables / "graph", restart=True).result()
    assert (tables / ".graph.ingest" / "fastpart-ingest.json").exists()


FULL = """
import json, os, resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from ingest_tables import small
from fastpart.graphs.ingest import ingest
folder = Path(sys.argv[2])
schema = json.loads((folder / "schema.json").read_text())
refused = 0
for most in (100, 1_000, 2_000, 3_000, 5_000, 7_000, 100_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    try:
        with small(100, 1500):
            ingest(schema, folder / "graph")
    except OSError as error:
        assert error.filename, error
        refused += 1
        assert not (folder / "graph").exists()
print(refused)
"""


def test_a_full_disk_names_a_file_and_leaves_nothing_half(tables):
    outcome = run_child(FULL, os.path.dirname(os.path.dirname(__file__)), tables, timeout=100)
    assert outcome.rc == 0, outcome.err
    assert int(outcome.out) >= 4
    assert (tables / "graph" / "graph.json").exists()
