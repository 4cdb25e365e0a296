"""A folder whose disk is full: the error names a file, what is whole stays, and the same command goes on."""

import errno
import shutil
import subprocess

import numpy as np
import pytest
from child import run_child

import fastpart as fp

RUN = """
import os, shutil, sys
from pathlib import Path
import numpy as np, fastpart as fp
from fastpart.machines.partitioning import Shards
from fastpart.machines.engine import Threads
from fastpart.machines.partitioning import Place
from fastpart.partitions.partitioners.builtin import on_machines

folder, shared = Path(sys.argv[1]), Path(sys.argv[2])
graph = fp.open_graph(folder / "g.npy", num_vertices=20000)
made, finished = [], []

class Noting(Threads):
    def submit(self, task, each):
        made.extend(given[-1].name for *_, given in each)
        return super().submit(task, each)

filler, step = shared / "filler", 320 << 10
room = shutil.disk_usage(shared).free
with filler.open("wb") as file:
    file.write(b"x" * (room - step))
while True:
    try:
        place = Place(Noting(2), shared, Shards(3, 5))
        parts = on_machines("multilevel", place, graph, 4, path="two_levels", sample=0.1, threads=1)
        break
    except OSError as error:
        name = Path(os.fsdecode(error.filename))
        assert shared in name.parents, error
        job = next(shared.glob("fastpart-job-*"), None)
        left = sorted(file.name for file in job.rglob("*") if file.is_file()) if job else []
        assert not any(".tmp-" in file for file in left), left
        again = [file for file in made for stage in finished if file.startswith(stage.rstrip("s"))]
        assert not again, again
        finished = [stage for stage in ("counts", "scattered", "shards") if job and (job / f"{stage}.json").exists()]
        made.clear()
        print(error.errno, name.name, flush=True)
        os.truncate(filler, filler.stat().st_size - step)
np.save(folder / "parts.npy", parts.assignment)
filler.unlink()
assert not list(shared.iterdir())
"""

BESIDE = {"features": "features.npy", "labels": "labels.npy", "splits": "split.npz"}

ON_A_SMALL_DISK = """
import os, sys
mount = 'mount -t tmpfs -o size=10m none "$0" && exec "$@"'
code, folder, small = sys.argv[1:]
os.execvp("unshare", ["unshare", "-rm", "sh", "-c", mount, small, sys.executable, "-c", code, folder, small])
"""


MAPS = """
import os, sys
from pathlib import Path
import numpy as np, fastpart as fp
from fastpart.core.parsing import created

folder, small = Path(sys.argv[1]), Path(sys.argv[2])

def outcome(write):
    try:
        write()
    except OSError as error:
        print(error.errno, Path(os.fsdecode(error.filename)).is_relative_to(small), sorted(os.listdir(small)))

outcome(lambda: created(small / "rows.npy", np.float32, (4_000_000,))[:].fill(1))
(small / "rows.npy").unlink()
outcome(lambda: created(small / "rows.npy", np.float32, (1_000_000,))[:].fill(1))
assert np.load(small / "rows.npy").all()
trained = fp.train.open(folder / "run")
outcome(lambda: trained.predict(folder / "parts", what="embeddings", out=small / "out.npy"))
"""


def small_disk(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mount = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", small]
    if shutil.which("unshare") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("nobody here may mount a small disk")
    return small


@pytest.mark.torch
def test_a_full_disk_is_an_error_before_a_map_is_written(tmp_path):
    pytest.importorskip("torch")
    small = small_disk(tmp_path)
    graph = fp.generate.planted(tmp_path / "g.bin", n=2000, m=8000, classes=2, features=4, seed=1)
    beside = {name: f"{tmp_path}/g.bin.{file}" for name, file in BESIDE.items()}
    parts = fp.algorithms.hash(graph, 2).save(tmp_path / "parts", graph=graph, **beside)
    fp.train.full(parts, epochs=1, hidden=1024, out=tmp_path / "run")
    outcome = run_child(ON_A_SMALL_DISK, MAPS, tmp_path, small, timeout=60)
    assert outcome.rc == 0, outcome.err
    assert outcome.out.splitlines() == [
        f"{errno.ENOSPC} True ['rows.npy']",
        f"{errno.ENOSPC} True ['rows.npy']",
    ]


def test_a_job_goes_on_each_time_there_is_more_space(tmp_path):
    small = small_disk(tmp_path)
    np.save(tmp_path / "g.npy", np.random.default_rng(5).integers(0, 20_000, (100_000, 2)))
    outcome = run_child(ON_A_SMALL_DISK, RUN, tmp_path, small, timeout=60)
    assert outcome.rc == 0, outcome.err
    numbers, names = zip(*map(str.split, outcome.out.splitlines()), strict=True)
    assert set(numbers) == {str(errno.ENOSPC)}
    assert len(set(names)) > 4
    graph = fp.open_graph(tmp_path / "g.npy", num_vertices=20_000)
    expected = fp.multilevel(graph, 4, path="two_levels", sample=0.1, threads=1)
    np.testing.assert_array_equal(np.load(tmp_path / "parts.npy"), expected.assignment)
