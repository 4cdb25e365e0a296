"""Small files of every kind that a verb reads, each kind in a folder of its own, the same in every run."""

import gzip
import os
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl

import fastpart as fp
from fastpart.graphs.sidecars import Sidecar
from fastpart.graphs.types import TypedRanges
from fastpart.store.caches import write_caches

N, M, CLASSES = 60, 240, 4
SCHEMAS = Path(__file__).parents[1] / "data" / "schemas"
SPLITS = {"train": range(0, N, 2), "val": range(1, N, 4), "test": range(3, N, 4)}
WITH_TORCH = find_spec("torch") is not None

Build = Callable[[Path], object]


def raw_file(folder: Path) -> Path:
    """Write the graph of most specimens, with features and labels."""
    return fp.generate.planted(folder / "g.bin", n=N, m=M, classes=CLASSES, features=3, seed=1).path


def records() -> np.ndarray:
    """Return the records of specimens without classes."""
    return np.random.default_rng(3).integers(0, N, (M, 2)).astype(np.uint32)


def _split_files(folder: Path) -> None:
    np.savez_compressed(folder / "s.npz", **{name: np.array(ids) for name, ids in SPLITS.items()})
    np.savez(
        folder / "masks.npz", train_masks=np.eye(N, dtype=bool)[:3], val_masks=np.eye(N, dtype=bool)[3:6]
    )


def raw(folder: Path) -> None:
    """A raw file with its sidecar, weights, labels, features and splits."""
    raw_file(folder)
    np.save(folder / "g.bin.weights.npy", np.arange(M, dtype=np.float64) / 4 + 1)
    np.save(folder / "on.npy", np.arange(N) % 5)
    _split_files(folder)


def wide(folder: Path) -> None:
    """Raw u64 pairs without a sidecar, and big-endian ones."""
    records().astype("<u8").tofile(folder / "g.bin")
    records().astype(">u4").tofile(folder / "swapped.bin")


def relabelled(folder: Path) -> None:
    """What a conversion wrote, with the map of its ids and weights."""
    lines = "".join(
        f"{u * 1000 + 7}\t{v * 1000 + 7}\t{w}\n" for w, (u, v) in enumerate(records().tolist(), 1)
    )
    (folder / "g.txt").write_text(lines)
    fp.convert(folder / "g.txt", folder / "g.bin", relabel=True, weights=3)


def arrays(folder: Path) -> None:
    """Records as .npy, in rows and as an edge index."""
    np.save(folder / "g.npy", records())
    np.save(folder / "index.npy", np.ascontiguousarray(records().T.astype(np.int64)))


def text(folder: Path) -> None:
    """Text with and without comments, weights and compression, and the graph of METIS with weights."""
    plain = "# u v\n" + "".join(f"{u} {v}\n" for u, v in records().tolist())
    (folder / "g.txt").write_text(plain)
    (folder / "g.tsv").write_text("".join(f"{u}\t{v}\t{u + v}.5\n" for u, v in records().tolist()))
    (folder / "g.csv").write_text("source,target\n" + "".join(f"{u},{v}\n" for u, v in records().tolist()))
    (folder / "g.txt.gz").write_bytes(gzip.compress(plain.encode(), mtime=0))
    source = folder / "weighted.bin"
    records().tofile(source)
    np.save(f"{source}.weights.npy", np.arange(M) % 7 + 1)
    fp.convert(source, folder / "g.graph", num_vertices=N, dedup=False)
    fp.convert(source, folder / "g.binedgelist", num_vertices=N, weights=False)
    for file in folder.glob("weighted.bin*"):
        file.unlink()


def tables(folder: Path) -> None:
    """Records and rows as Parquet."""
    u, v = records().T
    pl.DataFrame({"source": u, "target": v, "w": (u + v) / 2}).write_parquet(folder / "g.parquet")
    pl.DataFrame({"a": np.arange(N) / 2, "b": np.arange(N)}).write_parquet(folder / "x.parquet")


def rows(folder: Path) -> None:
    """Features, labels and splits for a directory: dense, sparse, multi-label, of records."""
    records().tofile(folder / "g.bin")
    np.save(folder / "x.npy", np.arange(3 * N, dtype=np.float32).reshape(N, 3))
    np.save(folder / "y.npy", np.arange(N) % CLASSES)
    np.save(folder / "many.npy", (np.arange(3 * N).reshape(N, 3) % 2).astype(np.uint8))
    np.save(folder / "e.npy", np.arange(M, dtype=np.float64))
    indptr = np.arange(N + 1, dtype=np.int32)
    sparse = {"indices": (np.arange(N) % 5).astype(np.int32), "indptr": indptr, "format": np.array(b"csr")}
    np.savez(folder / "x.npz", shape=np.array([N, 5]), data=np.ones(N, np.float32), **sparse)
    _split_files(folder)


def assignments(folder: Path) -> None:
    """Partitions in one file, and their graph."""
    graph = raw_file(folder)
    p = fp.spring(graph, 4)
    for name in ("p.npy", "p.txt", "p.parquet"):
        p.save(folder / name)
    fp.sigma(graph, 4, of="edges").save(folder / "e.npy")
    fp.spring(graph, 2).save(folder / "halves.npy")
    fp.algorithms.hdrf(graph, 4).save(folder / "e.parquet")


def saved(folder: Path, p: fp.VertexPartition | fp.EdgePartition, **given: object) -> Path:
    """Save a partition with features, labels and splits, and return its directory."""
    graph = raw_file(folder) if not (folder / "g.bin").exists() else folder / "g.bin"
    rows = {
        "features": folder / "g.bin.features.npy",
        "labels": folder / "g.bin.labels.npy",
        "splits": SPLITS,
    }
    p.save(folder / "parts", graph=graph, **(rows | given))
    for file in folder.glob("g.bin.*.npy"):
        file.unlink()
    return folder / "parts"


def vertices(folder: Path) -> None:
    """A directory of vertices that holds all that it can, caches included."""
    p = fp.multilevel(raw_file(folder), 3, volume_balance=1.3, balance_on=np.arange(N) % 5)
    parts = saved(
        folder, p, edge_features=np.arange(2 * M).reshape(M, 2) / 2, halo_features=True, halo_hops=2
    )
    p = fp.open_partition(parts)
    write_caches(p, [np.unique(part.halo)[:9] for part in p.parts], {"cache": 0.3})


def typed(folder: Path) -> None:
    """A directory of a graph with two types and relations of all kinds, and the graph."""
    half = N // 2
    pairs = records() % half
    pairs[: M // 3, 0] += half  # users that like items
    pairs[M // 3 : 2 * M // 3] += half  # users that know users
    pairs.tofile(folder / "g.bin")
    types = [{"name": "item", "n": half}, {"name": "user", "n": half}]
    relations = [
        {"name": "likes", "source": "user", "target": "item", "m": M // 3, "reverse": True},
        {"name": "knows", "source": "user", "target": "user", "m": M // 3, "reverse": "merged"},
        {"name": "like", "source": "item", "target": "item", "m": M // 3, "reverse": False},
    ]
    ranges = TypedRanges.of(types, relations, N, M, "undirected")
    Sidecar("u32", N, M, "undirected", typed=ranges).write(folder / "g.bin")
    fp.spring(folder / "g.bin", 3).save(
        folder / "parts",
        features={"item": np.arange(4.0 * half).reshape(half, 4) / 3, "user": np.ones((half, 2))},
        feature_dtype="int8",
        labels={"item": np.arange(half) % 3},
        splits={"item": {name: [each // 2 for each in ids][::2] for name, ids in SPLITS.items()}},
        times={"user": np.arange(half)},
        edge_features={"likes": np.arange(M // 3)},
        edge_times={"knows": np.arange(M // 3)},
        halo_features=True,
        halo_hops=2,
    )


def plain(folder: Path) -> None:
    """A directory of vertices with one hop, of a multi-label task."""
    many = (np.arange(3 * N).reshape(N, 3) % 2).astype(np.uint8)
    saved(folder, fp.algorithms.ldg(raw_file(folder), 3), labels=many)


def edges(folder: Path) -> None:
    """A directory of edges."""
    saved(folder, fp.algorithms.hdrf(raw_file(folder), 3), edge_features=np.arange(M, dtype=np.float32))


def links(folder: Path) -> None:
    """A directory with edge splits, and the files of the split."""
    splits = fp.split_edges(raw_file(folder), 0.1, 0.1, out=folder / "train.bin")
    p = fp.spring(splits.graph, 3)
    given = {
        "features": folder / "g.bin.features.npy",
        "labels": folder / "g.bin.labels.npy",
        "splits": SPLITS,
    }
    p.save(folder / "parts", graph=splits.graph, edge_splits=splits, **given)


def bare(folder: Path) -> None:
    """A directory without parts."""
    fp.spring(raw_file(folder), 3).save(folder / "parts")


def schema_of(number: int, of: str) -> Build:
    """Return what copies a directory that an earlier version wrote."""

    def build(folder: Path) -> None:
        shutil.copytree(SCHEMAS / str(number) / of, folder / "parts")
        shutil.copy(SCHEMAS / "g.bin", folder)

    build.__doc__ = f"A directory of {of} of schema {number}."
    return build


def checkpoints(folder: Path) -> None:
    """What a killed multilevel run leaves. The files are caught while the run removes them."""
    graph = fp.generate.rmat(folder / "g.bin", n=1 << 11, m=12_000, seed=3).path
    caught, over = folder / "kept", threading.Event()
    caught.mkdir()

    def watch(work: Path) -> None:
        while not over.is_set():
            for name in os.listdir(work):
                with suppress(OSError):
                    if name == "checkpoint.txt":
                        (caught / name).write_bytes((work / name).read_bytes())
                    elif name.endswith(".bin") and not name.startswith(".") and not (caught / name).exists():
                        os.link(work / name, caught / name)

    for turn in range(20):
        work = folder / "work"
        work.mkdir()
        over.clear()
        watcher = threading.Thread(target=watch, args=(work,))
        watcher.start()
        fp.multilevel(graph, 4, **LEVELS, checkpoints=work)
        over.set()
        watcher.join()
        shutil.rmtree(work)
        if turn and len(list(caught.iterdir())) >= 5:
            break
    assert list(caught.iterdir()), "no checkpoint was caught"


LEVELS = {"path": "two_levels", "sample": 0.3, "threads": 1}


def comparisons(folder: Path) -> None:
    """A saved comparison with refusals, parts and matrices."""
    pairs = records()
    algorithms = ["spring", "random", "hdrf", fp.VertexPartition(np.arange(N) % 2, 2), "bytegnn"]
    fp.compare(pairs, [2], algorithms, fanouts=[2], splits=SPLITS, labels=np.arange(N) % 2).save(
        folder / "c.json"
    )


def trained(folder: Path) -> None:
    """Directories, and the folder of a run over them that may go on."""
    parts = saved(folder, fp.spring(raw_file(folder), 2))
    with suppress(InterruptedError):
        fp.train.full(parts, **MODEL, out=folder / "run", on_epoch=_ends)


def _ends(row: dict[str, object]) -> None:
    if row["epoch"] == 1:
        raise InterruptedError


MODEL = {"hidden": 4, "epochs": 3, "threads": 1, "patience": 3}


def exports(folder: Path) -> None:
    """A directory, and exports of it that may be replaced."""
    parts = saved(folder, fp.spring(raw_file(folder), 2))
    fp.export.text(parts, folder / "text")
    fp.export.wholegraph(parts, folder / "wholegraph")
