"""Progress callbacks that raise, dawdle, or start work of their own."""

import itertools
import json
import time

import numpy as np
import pytest
from child import PASSES

import fastpart as fp
from fastpart.partitions.partitioners import PARTITIONERS
from needed import needed


class CustomError(Exception):
    pass


@pytest.mark.parametrize("error", [CustomError, KeyboardInterrupt, SystemExit, MemoryError])
@pytest.mark.parametrize("phase", ["degrees", "clustering"])
def test_what_it_raises_cancels_the_run(graph, endless, error, phase):
    edges = (
        fp.open_graph(endless, dtype="u32", num_vertices=9) if phase == "degrees" else fp.open_graph(graph)
    )
    raised = []

    def progress(now, done, total):
        if now == phase:
            raised.append(time.monotonic())
            raise error("stop")

    with pytest.raises(error, match="stop"):
        fp.spring(edges, k=4, passes=PASSES, progress=progress)
    assert len(raised) == 1
    assert time.monotonic() - raised[0] < 1
    assert fp.spring(graph, k=4).loads.sum() == 1 << 18


def test_what_it_raises_leaves_no_output(endless, folder):
    def progress(phase, done, total):
        raise CustomError

    for call in (
        lambda: fp.generate.rmat(folder / "g.bin", n=1000, m=10**9, progress=progress),
        lambda: fp.generate.planted(folder / "p.bin", n=1000, m=10**9, features=2, progress=progress),
        lambda: fp.convert(endless, folder / "c.bin", dtype="u32", progress=progress),
    ):
        with pytest.raises(CustomError):
            call()
    assert list(folder.iterdir()) == []


OVERWRITE = {
    "rmat": lambda out, progress: fp.generate.rmat(out, n=2000, m=5000, seed=2, progress=progress),
    "planted": lambda out, progress: fp.generate.planted(out, n=2000, m=5000, seed=2, progress=progress),
    "convert": lambda out, progress: fp.convert(out.with_name("new.npy"), out, progress=progress),
}


# As Ctrl-C does that comes while the last bytes go to the disk.
@pytest.mark.parametrize(
    "name",
    [
        "rmat",
        "planted",
        "convert",
    ],
)
def test_what_it_raises_in_the_end_leaves_files_that_belong_together(folder, name):
    out = folder / "g.bin"
    fp.generate.rmat(out, n=1000, m=5000, seed=1)
    np.save(folder / "new.npy", np.random.default_rng(0).integers(0, 2000, (5000, 2), dtype=np.uint32))

    def progress(phase, done, total):
        if done == total:
            raise CustomError

    with pytest.raises(CustomError):
        OVERWRITE[name](out, progress)
    sidecar = json.loads((folder / "g.bin.json").read_text())
    assert fp.open_graph(out, num_vertices=sidecar["n"]).identify()[1] == sidecar["checksum"]


def test_it_is_told_the_truth_in_the_end(graph):
    calls = []
    fp.spring(graph, k=4, progress=lambda *call: calls.append(call))
    assert all(isinstance(phase, str) and 0 <= done <= total for phase, done, total in calls)
    phase, done, total = calls[-1]
    assert phase == "assignment"
    assert done == total >= 1 << 18


def test_it_may_be_slow(graph):
    expected = fp.spring(graph, k=4, passes=10)
    partition = fp.spring(graph, k=4, passes=10, progress=lambda *_: time.sleep(0.15))
    np.testing.assert_array_equal(partition.assignment, expected.assignment)


def test_it_may_partition(graph):
    small = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]])
    inner = []

    def progress(phase, done, total):
        if len(inner) < 4:
            inner.append(fp.spring(small, k=2, progress=lambda *_: fp.evaluate(small, [0, 0, 0, 1, 1, 1])))

    expected = fp.spring(graph, k=4, passes=10)
    partition = fp.spring(graph, k=4, passes=10, progress=progress)
    assert inner
    assert all(made.assignment.tolist() == [0, 0, 0, 1, 1, 1] for made in inner)
    np.testing.assert_array_equal(partition.assignment, expected.assignment)


@pytest.mark.filterwarnings("ignore:chunk:UserWarning")
@pytest.mark.parametrize("name", PARTITIONERS)
def test_progress_is_real(name):
    """Every report has a total and keeps to it, and a step never goes back."""
    rng = np.random.default_rng(0)
    edges, seen = rng.integers(0, 50_000, (400_000, 2), dtype=np.uint32), []
    given = needed(name, 50_000)
    getattr(fp.algorithms, name)(edges, 8, progress=lambda *report: seen.append(report), **given)
    reports = [report for report in seen if report[0] != "start"]
    assert reports
    assert all(0 <= done <= total and total > 0 for _, done, total in reports)
    for (phase, done, total), after in itertools.pairwise(reports):
        assert (phase, total) != (after[0], after[2]) or done <= after[1]
