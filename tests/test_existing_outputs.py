"""Outputs that exist: what is replaced, what is refused, and who is at work there."""

import errno
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest

import fastpart as fp
from fastpart.cli import main
from fastpart.core import outputs
from fastpart.core.outputs import Owner, entrusted, owning

EDGES = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [2, 3]])
DATA = {
    "features": np.eye(6, dtype=np.float32),
    "labels": np.arange(6) % 2,
    "splits": {"train": [0, 1, 3], "val": [4], "test": [5]},
    "times": np.arange(6),
    "edge_features": np.ones((7, 2), np.float32),
    "edge_labels": np.arange(7) % 3,
    "edge_label_splits": {"train": [0, 1, 3], "val": [4], "test": [5]},
    "edge_times": np.arange(7),
}
WORDS = {
    "features": "features",
    "labels": "labels",
    "splits": "splits",
    "times": "times",
    "edge_features": "features of edges",
    "edge_labels": "labels of edges",
    "edge_label_splits": "splits of labelled edges",
    "edge_times": "times of edges",
}


@pytest.fixture
def partition():
    return fp.multilevel(fp.open_graph(EDGES), 2)


def content(folder):
    return {each.relative_to(folder): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def assert_refused(folder, save, *lost):
    before = content(folder)
    with pytest.raises(FileExistsError) as refused:
        save(progress=lambda *_: pytest.fail("work was begun"))
    told = refused.value.strerror
    assert told.startswith(f"holds {', '.join(lost)}, which would be lost")
    assert "overwrite=True" in told
    assert content(folder) == before


def test_a_directory_is_replaced_by_one_with_the_same_data(partition, tmp_path):
    partition.save(tmp_path / "parts", **DATA)
    partition.save(tmp_path / "parts", **DATA)


@pytest.mark.parametrize("missing", DATA)
def test_a_directory_that_holds_more_is_refused(partition, tmp_path, missing):
    folder = tmp_path / "parts"
    partition.save(folder, **DATA)
    less = {name: rows for name, rows in DATA.items() if name != missing}
    assert_refused(folder, lambda **how: partition.save(folder, **less, **how), WORDS[missing])
    partition.save(folder, **less, overwrite=True)
    assert "xxh3" in (folder / "manifest.json").read_text()
    assert not list(folder.rglob(f"{missing}.npy"))


def test_all_that_would_be_lost_is_named(partition, tmp_path):
    folder = tmp_path / "parts"
    partition.save(folder, **DATA, halo_features=True)
    lost = ["features", "features of the halo", *list(WORDS.values())[1:]]
    assert_refused(folder, lambda **how: partition.save(folder, **how), *lost)
    assert_refused(folder, lambda **how: partition.save(folder, **DATA, **how), "features of the halo")
    bare = fp.VertexPartition(partition.assignment, 2)
    assert_refused(folder, lambda **how: bare.save(folder, **how), "parts with their edges", *lost)
    bare.save(folder, overwrite=True)
    bare.save(folder)
    partition.save(folder)


# One owner at a time.

OWN = """
from fastpart.core.outputs import Owner
owner = Owner(target)
"""
LOCK = """
import fcntl, os
lock = open(target.with_name(f".{target.name}.lock"), "w")  # without fastpart, which takes longer to import
fcntl.flock(lock, fcntl.LOCK_EX)
print(f"fastpart: process {os.getpid()} on HOST, since 2026-01-01 00:00:00", file=lock, flush=True)
"""
HOLD = """
import sys
from pathlib import Path
target = Path(sys.argv[1])
%s
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held(target, how=LOCK):
    """Another process that owns an output."""
    command = [sys.executable, "-c", HOLD % how, target]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        yield other
        other.kill()


TEXT = "0 1\n1 2\n2 3\n3 0\n"


@pytest.fixture
def parts(partition, tmp_path):
    partition.save(tmp_path / "parts", **DATA)
    return tmp_path / "parts"


CALLS = {
    "save": lambda out, parts: fp.open_partition(parts).save(out),
    "convert": lambda out, parts: fp.convert(parts.with_name("edges.npy"), out),
    "rmat": lambda out, parts: fp.generate.rmat(out, n=10, m=20),
    "typed": lambda out, parts: fp.generate.typed(out, scale=1e-5),
    "order": lambda out, parts: fp.order(EDGES, out=out),
    "split_edges": lambda out, parts: fp.split_edges(EDGES, out=out, val=0.2, test=0.2),
    "ingest": lambda out, parts: fp.ingest(SCHEMA, out),
    "plan": lambda out, parts: fp.open_partition(parts).plan(1, fanouts=[2], pack=out),
    "export": lambda out, parts: fp.export.text(parts, out),
    "hdrf": lambda out, parts: fp.algorithms.hdrf(EDGES, 2, out=f"{out}.npy"),
    "partition": lambda out, parts: fp.partition(EDGES, 2, of="edges", out=f"{out}.npy"),
    "checkpoints": lambda out, parts: fp.partition(EDGES, 2, checkpoints=out),
}
SCHEMA = {
    "vertices": {"user": {}},
    "relations": {
        "knows": {
            "files": pl.DataFrame({"a": ["x", "y"], "b": ["y", "z"]}),
            "source": {"user": "a"},
            "target": {"user": "b"},
        }
    },
}


@pytest.mark.parametrize("call", CALLS)
def test_an_output_has_one_owner(parts, tmp_path, call):
    out, edges = tmp_path / "out", tmp_path / "edges.npy"
    np.save(edges, EDGES)
    target = tmp_path / "out.npy" if call in ("hdrf", "partition") else out
    with held(target) as other:
        since = rf"At work there: process {other.pid} on \S+, since \d+-\d+-\d+ \d+:\d+:\d+\. Wait"
        with pytest.raises(
            fp.errors.ParameterError, match=rf"^(out|pack|checkpoints): \S+ is in use\. {since}"
        ):
            CALLS[call](out, parts)
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        f".{target.name}.lock",
        "edges.npy",
        "parts",
    ]  # of a kill
    CALLS[call](out, parts)
    assert not list(tmp_path.glob(".*"))


VERBS = {
    "generate rmat OUT --n 10 --m 20": "out",
    "convert g.txt OUT": "out",
    "order g.txt -o OUT": "out",
    "split-edges g.txt OUT": "out",
    "partition g.txt -k 2 -o OUT": "out.npy",
    "refine g.txt parts -o OUT": "out.npy",
    "update g.txt parts -o OUT": "out.npy",
    "edges-of g.txt parts -o OUT": "out.npy",
    "evaluate g.txt parts -o OUT": "out.json",
    "cluster g.txt -o OUT": "out.npy",
    "compare g.txt -k 2 -o OUT": "out.json",
    "report g.txt parts -o OUT": "out.html",
    "export text parts OUT": "out",
    "plan parts --fanouts 2 -o OUT": "out",
    "restore parts --graph graph -o OUT": "out.parquet",
    "ingest schema.yaml -o OUT": "out",
}


@pytest.mark.parametrize("words", VERBS)
def test_a_verb_refuses_an_output_in_use_before_it_reads_anything(tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    with held(tmp_path / VERBS[words]) as other:
        assert main(words.replace("OUT", VERBS[words]).split()) == 2
    told = capsys.readouterr().err
    assert re.search(rf"{VERBS[words]} is in use\. At work there: process {other.pid} ", told), told
    assert told.count("\n") == 1
    assert os.listdir(tmp_path) == [f".{VERBS[words]}.lock"]


def test_what_is_written_in_place_is_not_in_use(parts, monkeypatch):
    stored = fp.open_partition(parts)
    with held(parts):
        for call in (lambda: fp.store.upgrade(parts), lambda: stored.save_cache(fanouts=[2], cache=0.5)):
            with pytest.raises(fp.errors.ParameterError, match=r"parts is in use\. At work there: "):
                call()


def test_calls_of_one_thread_may_be_nested_and_another_thread_is_refused(tmp_path):
    refused = []

    def other():
        try:
            Owner(tmp_path / "out")
        except fp.errors.ParameterError as error:
            refused.append(str(error))

    (tmp_path / "link").symlink_to("out")
    with Owner(tmp_path / "out"), owning(out=tmp_path / "link"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert os.listdir(tmp_path) != ["link"]
    assert re.search(rf"process {os.getpid()} ", *refused)
    assert os.listdir(tmp_path) == ["link"]


def test_a_process_works_for_the_owner(tmp_path):
    with held(tmp_path / "out"):
        with entrusted(tmp_path / "out"), Owner(tmp_path / "out"):
            pass
        with pytest.raises(fp.errors.ParameterError, match="in use"):
            Owner(tmp_path / "out")
        assert (tmp_path / ".out.lock").exists()


def test_an_owner_that_is_killed_is_no_obstacle(tmp_path):
    with held(tmp_path / "out", OWN) as other:
        with pytest.raises(fp.errors.ParameterError, match=f"in use. At work there: process {other.pid} "):
            Owner(tmp_path / "out")
        other.kill()
        other.wait()
        assert (tmp_path / ".out.lock").exists()
        with Owner(tmp_path / "out"):
            assert f"process {os.getpid()} " in (tmp_path / ".out.lock").read_text()
    assert not any(tmp_path.iterdir())


def test_a_forked_process_does_not_keep_the_lock(tmp_path):
    owner = Owner(tmp_path / "out")
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    try:
        owner.release()
        with Owner(tmp_path / "out"):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_lock_that_its_owner_removes_meanwhile_is_taken_anew(tmp_path, monkeypatch):
    lock = tmp_path / ".out.lock"
    lock.write_text("fastpart: another process")
    found, attempts = outputs.try_lock, []

    def released(file):
        attempts.append(file)
        if len(attempts) == 1:
            lock.unlink()
        return found(file)

    monkeypatch.setattr(outputs, "try_lock", released)
    with Owner(tmp_path / "out"):
        assert len(attempts) == 2
        assert f"process {os.getpid()} " in lock.read_text()
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("kind", ["file", "folder", "link", "pipe"])
def test_a_file_of_the_name_of_a_lock_is_left_alone(tmp_path, caplog, kind, exists):
    lock, out = tmp_path / ".out.lock", tmp_path / "out"
    if exists:
        out.mkdir()
    (tmp_path / "mine").write_text("mine")
    {
        "file": lambda: lock.write_text("mine"),
        "folder": lock.mkdir,
        "link": lambda: lock.symlink_to("mine"),
        "pipe": lambda: os.mkfifo(lock),
    }[kind]()
    with Owner(out):
        pass
    assert "out cannot be locked" in caplog.text
    assert os.path.lexists(lock)
    assert (tmp_path / "mine").read_text() == "mine"
    assert kind != "file" or lock.read_text() == "mine"


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EROFS])
def test_a_file_system_without_locks_gets_a_note(tmp_path, caplog, monkeypatch, number):
    def refused(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(outputs, "try_lock", refused)
    (tmp_path / "out").mkdir()
    with Owner(tmp_path / "out"), Owner(tmp_path / "out"):
        pass
    assert "no other command writes there" in caplog.text


# Whole commands.

AT_WORK = """
import sys, time
from fastpart.cli import main, partitioning

def never(*_):
    print("at work", flush=True)
    time.sleep(600)

partitioning._timed = never
sys.exit(main(sys.argv[1:]))
"""


@contextmanager
def at_work(code, *words):
    """A command that is at work until the end of the block, and is killed then."""
    command = [sys.executable, "-c", code, *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout.readline() == "at work\n"
        try:
            yield first
        finally:
            first.kill()


def test_the_second_of_two_partitions_of_one_output_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("g.npy", EDGES)
    words = ["partition", "g.npy", "-k", "2", "-q", "-o", "parts"]
    with at_work(AT_WORK, *words) as first:
        for more in ([], ["--resume"], ["--overwrite"]):
            assert main([*words, *more]) == 2
            told = capsys.readouterr().err
            assert told.startswith(
                f"fastpart: error: --out: parts is in use. At work there: process {first.pid} on "
            )
        assert sorted(os.listdir()) == [".parts.lock", "g.npy"]
    assert main(words) == 0
    assert sorted(os.listdir()) == ["g.npy", "parts"]


def test_the_shell_is_told_of_its_option(partition, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("g.npy", EDGES)
    np.save("x.npy", DATA["features"])
    words = ["partition", "g.npy", "-k", "2", "-q", "-o", "parts"]
    assert main([*words, "--features", "x.npy"]) == 0
    before = content(tmp_path / "parts")
    assert main(words) == 1
    told = capsys.readouterr().err
    assert told == (
        "fastpart: error: parts: holds features, which would be lost. Give the new one the same, choose another name, "
        "or pass --overwrite\n"
    )
    assert content(tmp_path / "parts") == before
    remedy = re.search(r"--\w+", told)[0]
    assert main([*words, remedy]) == 0
    assert "overwrite" not in (tmp_path / "parts" / "run.toml").read_text()
    assert main(words) == 0


def test_an_edge_partition_is_guarded_too(tmp_path):
    partition = fp.algorithms.hdrf(fp.open_graph(EDGES), 2)
    data = {name: DATA[name] for name in ("features", "labels", "splits", "edge_features")}
    partition.save(tmp_path / "parts", **data)
    assert_refused(
        tmp_path / "parts", lambda **how: partition.save(tmp_path / "parts", **how), *map(WORDS.get, data)
    )
    partition.save(tmp_path / "parts", **data)


def test_splits_of_edges_are_guarded_too(tmp_path):
    splits = fp.split_edges(
        np.array([[v, (v + d) % 30] for v in range(30) for d in (1, 2)]), val=0.1, test=0.1
    )
    partition = fp.multilevel(splits.graph, 2)
    partition.save(tmp_path / "parts", edge_splits=splits)
    assert_refused(
        tmp_path / "parts", lambda **how: partition.save(tmp_path / "parts", **how), "splits of edges"
    )


def test_a_graph_directory_that_holds_more_is_refused(tmp_path):
    users = pl.DataFrame({"id": ["x", "y", "z"], "age": [1.0, 2.0, 3.0], "topic": ["a", "b", "a"]})
    more = {"user": {"files": users, "id": "id", "features": ["age"], "label": "topic"}}
    fp.ingest(SCHEMA | {"vertices": more}, tmp_path / "graph")
    fp.ingest(SCHEMA | {"vertices": more}, tmp_path / "graph")
    before = content(tmp_path / "graph")
    with pytest.raises(FileExistsError, match="holds features of user, labels of user, which would be lost"):
        fp.ingest(SCHEMA, tmp_path / "graph")
    assert content(tmp_path / "graph") == before
    assert os.listdir(tmp_path) == ["graph"]
    fp.ingest(SCHEMA, tmp_path / "graph", overwrite=True)
    assert not (tmp_path / "graph" / "features.npy").exists()


@pytest.mark.torch
@pytest.mark.parametrize("name", ["pyg", "glt", "wholegraph"])
def test_an_export_that_holds_more_is_refused(parts, partition, tmp_path, name):
    export, out = getattr(fp.export, name), tmp_path / "out"
    export(parts, out)
    export(parts, out)
    partition.save(tmp_path / "less")
    before = content(out)
    with pytest.raises(FileExistsError, match=r"holds features, .*features of edges.*, which would be lost"):
        export(tmp_path / "less", out)
    assert content(out) == before
    export(tmp_path / "less", out, overwrite=True)


TRAINING = """
import sys, time
import fastpart as fp

def never(row):
    print("at work", flush=True)
    time.sleep(600)

fp.train.full(sys.argv[1], out=sys.argv[2], epochs=2, hidden=2, on_epoch=never)
"""


@pytest.mark.torch
def test_the_second_of_two_trainings_in_one_folder_is_refused(parts, tmp_path, capsys):
    run = tmp_path / "run"
    with at_work(TRAINING, parts, run) as first:
        before = set(os.listdir(run))
        for more in ({}, {"resume": True}, {"overwrite": True}):
            with pytest.raises(
                fp.errors.ParameterError, match=rf"run is in use\. At work there: process {first.pid} "
            ):
                fp.train.full(parts, out=run, epochs=1, hidden=2, **more)
        assert set(os.listdir(run)) == before
    fp.train.full(parts, out=run, epochs=1, hidden=2, overwrite=True)
    assert not (tmp_path / ".run.lock").exists()
    out = tmp_path / "rows.npy"
    with held(out), pytest.raises(fp.errors.ParameterError, match="in use"):
        fp.train.open(run).predict(parts, out=out)
