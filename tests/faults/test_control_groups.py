"""Files larger than the memory of a control group, without a memory limit: nothing is killed, all is done."""

import os
import subprocess
import sys

import numpy as np
import pytest
from control_groups import control_group

import fastpart as fp

MB = 1 << 20


def run_in(group, *arguments):
    """Run the command line in a group, and return its output."""
    command = [sys.executable, "-m", "fastpart", *map(str, arguments), "-q"]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, preexec_fn=group.enter, timeout=150
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
    assert group.kills() == 0
    return done.stdout


def planted(folder, n, m, features):
    """Return the edges of a graph with features, labels and splits of few vertices."""
    edges = fp.generate.planted(folder / "g.bin", n=n, m=m, classes=8, features=features)
    ids = np.random.default_rng(0).permutation(n)[:3000]
    np.savez(folder / "splits.npz", train=ids[:1000], val=ids[1000:2000], test=ids[2000:])
    return edges.path if hasattr(edges, "path") else folder / "g.bin"


def saved(folder):
    """Return the options that save all of a graph."""
    files = {"features": "g.bin.features.npy", "labels": "g.bin.labels.npy", "splits": "splits.npz"}
    return [text for name, file in files.items() for text in (f"--{name}", folder / file)]


def test_a_partition_of_files_larger_than_the_group(tmp_path):
    edges = planted(tmp_path, n=120_000, m=6_000_000, features=256)
    limit = 160 * MB
    assert edges.stat().st_size + (tmp_path / "g.bin.features.npy").stat().st_size > limit
    with control_group(limit) as group:
        run_in(
            group,
            "partition",
            edges,
            "-k",
            4,
            "--algorithm",
            "spring",
            "-o",
            tmp_path / "p",
            *saved(tmp_path),
        )
    p = fp.open_partition(tmp_path / "p")
    features = np.load(tmp_path / "g.bin.features.npy", mmap_mode="r")
    part = p.parts[3]
    assert np.array_equal(part.features[::1000], features[part.inner[::1000]])


@pytest.mark.torch
def test_a_training_in_a_group_that_holds_little_more_than_torch(tmp_path):
    edges = planted(tmp_path, n=75_000, m=500_000, features=512)
    fp.spring(edges, k=4).save(
        tmp_path / "p", graph=edges, features=tmp_path / "g.bin.features.npy",
        labels=tmp_path / "g.bin.labels.npy", splits=tmp_path / "splits.npz",
    )  # fmt: skip
    with control_group(1100 * MB) as group:
        run_in(
            group, "train", "sampled", tmp_path / "p", "--workers", 1, "--epochs", 2, "--batch-size", 200,
            "--predictions", tmp_path / "said.npy",
        )  # fmt: skip
    assert np.load(tmp_path / "said.npy", mmap_mode="r").shape == (75_000,)


READING = """
import sys
from pathlib import Path
import numpy as np
from fastpart import _core

def read():
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["read_bytes"])

folder = Path(sys.argv[1])
topology = _core.Topology([folder])
features = _core.Features([folder / "features.npy"], topology)
rows = np.random.default_rng(0).permutation(topology.num_vertices)[:100].astype(np.uint32)
before = read()
found = features.gather(rows)
print(read() - before, int((found[:, 0] != rows).sum()))
"""


def test_rows_of_files_larger_than_the_group_are_read_one_by_one(tmp_path):
    n = 200_000
    features = np.zeros((n, 256), np.float32)
    features[:, 0] = np.arange(n)
    fp.VertexPartition(np.zeros(n, np.int64), k=1).save(
        tmp_path / "p", graph=np.array([[0, n - 1]]), features=features
    )
    folder = tmp_path / "p" / "part-00000"
    with open(folder / "features.npy", "rb") as stream:
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    try:
        os.close(os.open(folder / "features.npy", os.O_RDONLY | os.O_DIRECT))
    except OSError:
        pytest.skip("the file system refuses direct reads")
    with control_group(150 * MB) as group:
        done = subprocess.run(
            [sys.executable, "-c", READING, folder],
            capture_output=True, text=True, preexec_fn=group.enter, timeout=100,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    read, wrong = map(int, done.stdout.split())
    assert wrong == 0
    assert 0 < read <= 100 * 2 * 4096
