"""What may stand in place of a file of a partition directory, and what its JSON may say: refused with its name."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import fastpart as fp

EDGES = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3], [0, 4], [5, 5]], dtype=np.uint32)
"""Two triangles joined by two edges, and a loop."""

SPLITS = {"train": [0, 3], "val": [1, 4], "test": [2, 5]}


@pytest.fixture
def folder(tmp_path):
    """A directory of two parts that holds all that it can."""
    fp.VertexPartition([0, 0, 0, 1, 1, 1], 2).save(
        tmp_path / "parts",
        graph=EDGES,
        features=np.eye(6, dtype=np.float32),
        labels=np.arange(6) % 2,
        splits=SPLITS,
        edge_features=np.arange(9.0),
        edge_labels=np.arange(9) % 2,
        edge_label_splits=SPLITS,
        times=np.arange(6),
        edge_times=np.arange(9),
        halo_features=True,
        edge_splits={"val": [[1, 5]], "test": [[2, 4]]},
    )
    fp.open_partition(tmp_path / "parts").save_cache(0.5, fanouts=[2])
    return tmp_path / "parts"


def below(folder):
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def read(folder, scratch):
    """Read all that fastpart reads of a directory, and rewrite it."""
    from fastpart.store.caches import has_caches, read_cache

    partition = fp.open_partition(folder)
    for part in partition.parts:
        names = [name for name in dir(type(part)) if not name.startswith("_")]
        assert [getattr(part, name) for name in names]
        part.in_edges()
        if has_caches(partition):
            read_cache(partition, part.index)
    fp.export.text(folder, scratch / "text")
    fp.export.wholegraph(folder, scratch / "wholegraph")
    fp.store.upgrade(folder)


PUT = {
    "loop": lambda file: file.symlink_to(file.name),
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "device": lambda file: file.symlink_to("/dev/zero"),
    "dangling": lambda file: file.symlink_to("none"),
}


@pytest.mark.parametrize("kind", PUT)
def test_what_is_no_file_is_refused_by_name_and_never_waited_for(folder, tmp_path, kind):
    for name in below(folder):
        if name == "metrics.parquet":  # nothing reads it
            continue
        shutil.copytree(folder, tmp_path / "copy")
        (tmp_path / "copy" / name).unlink()
        PUT[kind](tmp_path / "copy" / name)
        with pytest.raises(fp.errors.GraphFormatError, match=name.split("/")[-1].split(".")[0]):
            read(tmp_path / "copy", tmp_path)
        if name != "manifest.json":
            with pytest.raises(fp.errors.GraphFormatError, match=name):
                fp.store.verify(tmp_path / "copy")
        shutil.rmtree(tmp_path / "copy")
        shutil.rmtree(tmp_path / "text", ignore_errors=True)


@pytest.mark.parametrize("kind", PUT)
def test_an_update_replaces_what_is_no_file(folder, kind):
    """What stands in place of a listed file is not kept as an unchanged one."""
    p = fp.update(EDGES, folder, moves=0, balance=1.5)
    for name in ("part-00000/indptr.npy", "part-00000/part.json", "metrics.parquet"):
        (folder / name).unlink()
        PUT[kind](folder / name)
        if kind == "folder":
            with pytest.raises(fp.errors.ParameterError, match=rf"did not write there: {name}"):
                p.save(folder, graph=EDGES, overwrite=True)
            (folder / name).rmdir()
        p.save(folder, graph=EDGES, overwrite=True)
        fp.store.verify(folder)


WRONG = [None, True, -1, 1.5, 2**70, "x", [], {}, [-1], {"train": -1}, "absent"]

KEYS = {
    "n m num_directed_edges loops": WRONG,
    "k of halo_hops": WRONG,
    "schema directedness": [value for value in WRONG if value is not True and value != "absent"],
    "features labels edge_features edge_labels halo_features times edge_times": [
        value for value in WRONG if value not in (None, "absent")
    ] + [{"dtype": "float32"}, {"shape": [6]}, {"dtype": "float32", "shape": [-1]}, {"dtype": "O", "shape": []}],
    "splits edge_splits edge_label_splits summary files": [True, -1, 1.5, "x", [-1], {"train": -1}],
    "caps algorithm parameters checksum": [True, -1, 1.5, [-1], 7],
}  # fmt: skip


@pytest.mark.parametrize(
    ("key", "values"), [(key, values) for keys, values in KEYS.items() for key in keys.split()]
)
def test_a_manifest_with_a_value_of_another_kind(folder, tmp_path, key, values):
    stored = json.loads((folder / "manifest.json").read_text())
    for value in values:
        if type(value) is type(stored[key]) and isinstance(value, dict) and key in ("summary", "parameters"):
            continue
        content = {name: each for name, each in (stored | {key: value}).items() if each != "absent"}
        (folder / "manifest.json").write_text(json.dumps(content))
        with pytest.raises(fp.errors.GraphFormatError, match=rf"{key}|another partition") as caught:
            read(folder, tmp_path)
        assert "parts" in str(caught.value)
        shutil.rmtree(tmp_path / "text", ignore_errors=True)
        shutil.rmtree(tmp_path / "wholegraph", ignore_errors=True)


@pytest.mark.parametrize("key", ["part", "num_inner", "num_halo", "num_rows", "num_edges", "edge_splits"])
def test_sizes_of_another_kind(folder, tmp_path, key):
    file = folder / "part-00000" / "part.json"
    stored = json.loads(file.read_text())
    values = [*WRONG, 2**62, [2**62, 0], {"train": 2**62}, {"train": "x"}, {"train": None}]
    for value in values:
        file.write_text(
            json.dumps({name: each for name, each in (stored | {key: value}).items() if each != "absent"})
        )
        with pytest.raises(fp.errors.GraphFormatError, match=r"part-00000/(part\.json|\w+\.npy)"):
            read(folder, tmp_path)
        shutil.rmtree(tmp_path / "text", ignore_errors=True)


def test_threads_that_open_parts_at_once_find_them_intact(folder):
    """The parser of Python, which numpy uses for headers, is not safe with threads in CPython 3.11."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: [p.in_edges() for p in fp.open_partition(folder).parts], range(300)))
    finally:
        sys.setswitchinterval(interval)


def test_no_map_keeps_a_descriptor(folder):
    before = len(os.listdir("/proc/self/fd"))
    parts = list(fp.open_partition(folder).parts)
    arrays = [(part.vertices, part.indptr, part.indices, part.features) for part in parts]
    assert len(os.listdir("/proc/self/fd")) <= before + 2  # of the listing itself
    assert not arrays[0][0].flags.writeable


MANY = """
import resource, sys
import numpy as np, fastpart as fp
from fastpart import _core
n, k = 800, 400
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
ring = np.array([[v, (v + 1) % n] for v in range(n)])
fp.VertexPartition(np.arange(n) // 2, k).save(sys.argv[1], graph=ring, edge_features=np.arange(float(n)))
stored = fp.open_partition(sys.argv[1])
topology = stored._topology
files = [part.folder / "edge_features.npy" for part in stored.parts]
rows = _core.Features(files, topology, starts=topology.edge_starts, direct=False)
sampled = np.repeat(np.arange(n, dtype=np.uint32), 2)
ids = np.concatenate([part.edge_ids for part in stored.parts])
assert (rows.gather(topology.edge_rows_of(sampled, ids, n)) == ids % n).all()
print(len(files))
"""


@pytest.mark.torch
def test_400_parts_with_edge_features_need_no_1024_descriptors(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", MANY, tmp_path / "parts"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "400\n"), done.stderr
