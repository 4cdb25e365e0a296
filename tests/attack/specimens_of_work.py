"""Specimens of what lies between two commands: graph directories, work folders, plans, conversions, tasks."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
from specimens import SPLITS, M, N, raw_file, records, saved

import fastpart as fp
from fastpart.graphs.ingest.stages import job
from fastpart.machines.tasks import TaskFiles
from fastpart.store.caches import write_caches

HALF = N // 2
BATCHES = {"fanouts": [2, 2], "batch_size": 8, "seed": 3, "vertices": "train"}


def schema(folder: Path) -> Path:
    """Write tables of two types and two relations with all kinds of columns, and return their schema."""
    names = np.array([f"u{i:03}" for i in range(HALF)])
    items = np.arange(HALF) * 7 + 3
    (folder / "tables").mkdir()
    users = {"name": names, "age": np.arange(HALF) / 2, "kind": names[np.arange(HALF) % 3]}
    users |= {"split": np.array(["train", "val", "test"])[np.arange(HALF) % 3], "class": np.arange(HALF) % 4}
    pl.DataFrame(users).write_csv(folder / "tables" / "users.csv")
    pl.DataFrame({"id": items, "price": np.arange(HALF, dtype=np.float32)}).write_parquet(
        folder / "tables" / "items.parquet"
    )
    u, v = (records() % HALF).T
    likes = {"who": names[u], "what": items[v], "when": np.arange(M), "weight": np.arange(M) % 5 + 1}
    pl.DataFrame(likes).write_csv(folder / "tables" / "likes.csv")
    pl.DataFrame({"a": names[v], "b": names[u]}).write_parquet(folder / "tables" / "knows.parquet")
    (folder / "schema.yaml").write_text(
        "root: tables\n"
        "vertices:\n"
        "  item: {files: items.parquet, id: id, features: [price]}\n"
        "  user: {files: users.csv, id: name, features: [age, {column: kind, as: onehot}], label: class,"
        " split: split}\n"
        "relations:\n"
        "  knows: {files: knows.parquet, source: {user: a}, target: {user: b}}\n"
        "  likes: {files: likes.csv, source: {user: who}, target: {item: {column: what, as: int}}, time: when,"
        " weight: weight}\n"
    )
    return folder / "schema.yaml"


def ingested(folder: Path) -> None:
    """Tables, the graph directory of them, and a partition directory with its ids."""
    fp.ingest(schema(folder), folder / "graph")
    p = fp.spring(folder / "graph", 2)
    p.save(folder / "parts", graph=folder / "graph")
    np.save(folder / "y.npy", np.arange(N) / 3)


def interrupted(folder: Path) -> None:
    """Tables whose ingest was killed. See :func:`interrupted_here`."""
    schema(folder)


def interrupted_here(folder: Path) -> None:
    """Leave a work folder as a kill after most of the units does: a copy that is made meanwhile."""
    file, work, kept = folder / "schema.yaml", folder / ".graph.ingest", folder / "kept"
    done: list[str] = []

    def keep(stage: str, *told: object) -> None:
        done.append(stage)
        if done.count("attributes") == 2 and not kept.exists():
            shutil.copytree(work, kept)

    job.ROWS, rows = 50, job.ROWS
    try:
        fp.ingest(file, folder / "graph", progress=keep)
    finally:
        job.ROWS = rows
    shutil.rmtree(folder / "graph")
    kept.rename(work)


def planned(folder: Path) -> None:
    """A directory, cached rows, and a packed plan of its batches."""
    parts = saved(folder, fp.spring(raw_file(folder), 2))
    p = fp.open_partition(parts)
    write_caches(p, [np.unique(part.halo)[:9] for part in p.parts], {"cache": 0.3})
    p.plan(2, **BATCHES, pack=folder / "packed")


def conversions(folder: Path) -> None:
    """Text whose conversion is kept in the folder ``cache``. See :func:`converted_here`."""
    (folder / "g.csv").write_text("source,target\n" + "".join(f"{u},{v}\n" for u, v in records().tolist()))


def converted_here(folder: Path) -> None:
    """Keep the conversion of the copy of a specimen: it belongs to this very file."""
    with cache_in(folder):
        fp.open_graph(folder / "g.csv")


class cache_in:
    """Keep conversions in the folder ``cache`` until the end of a block."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._before = folder / "cache", os.environ.get("XDG_CACHE_HOME")

    def __enter__(self) -> None:
        os.environ["XDG_CACHE_HOME"] = str(self._folder)

    def __exit__(self, *raised: object) -> None:
        if self._before is None:
            del os.environ["XDG_CACHE_HOME"]
        else:
            os.environ["XDG_CACHE_HOME"] = self._before


def tasks(folder: Path) -> None:
    """A graph whose measures wait for tasks in a folder, one of which is done. See :func:`tasks_here`."""
    np.save(folder / "g.npy", records())


def tasks_here(folder: Path) -> None:
    """Leave the tasks of a command that was killed while it waited."""
    (folder / "shared").mkdir()
    p = fp.VertexPartition(np.arange(N, dtype=np.uint32) % 2, 2)

    class Left(Exception):
        pass

    class Caught(TaskFiles):
        def _remove(self, results: Path) -> None:  # as if it had been killed
            raise Left

    from fastpart.machines import tasks as engine

    def wait(results: Path, count: int) -> None:
        engine.work(folder / "shared", task=0)
        raise Left

    before, engine._wait = engine._wait, wait
    try:
        with suppress(Left):
            left = Caught(folder / "shared", 2)
            fp.evaluate(folder / "g.npy", p, cluster=left, shared=folder / "shared")
    finally:
        engine._wait = before
    assert (folder / "shared" / "tasks.json").exists()


def configured(folder: Path) -> None:
    """A graph, and the options of a command over it in TOML."""
    raw_file(folder)
    np.savez(folder / "s.npz", **{name: np.array(ids) for name, ids in SPLITS.items()})
    (folder / "options.toml").write_text(
        'k = 3\nalgorithm = "spring"\nseed = 4\nlabels = "g.bin.labels.npy"\nsplits = "s.npz"\n'
        "[partition]\nbalance = 1.1\n"
    )
