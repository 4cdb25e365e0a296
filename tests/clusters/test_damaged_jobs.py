"""Whatever byte of an unfinished job is damaged: its file is named, or made anew, and the bits stay."""

import random
import re
import shutil

import numpy as np
import pytest
from test_bits import planted
from test_unfinished_jobs import GIVEN, Failing, made

import fastpart as fp
from fastpart.errors import FastpartError

SEED = 11


@pytest.fixture(scope="module")
def graph():
    return fp.open_graph(planted(8000, 60_000))


@pytest.fixture(scope="module")
def expected(graph):
    return fp.multilevel(graph, 4, **GIVEN).assignment


@pytest.fixture(scope="module")
def jobs(graph, tmp_path_factory):
    """Return the folders of jobs that were cut off in each stage, and in the replicas."""
    folders = []
    whole = Failing(2)
    made(graph, whole, tmp_path_factory.mktemp("whole"))
    for engine in [Failing(1, tasks=tasks) for tasks in (3, 6, 9)] + [Failing(2, whole.steps - 5)]:
        folder = tmp_path_factory.mktemp("cut")
        with pytest.raises(OSError, match="the power is off"):
            made(graph, engine, folder)
        folders.append(folder)
    return folders


def files(folder):
    return sorted(file for file in folder.rglob("*") if file.is_file() and file.stat().st_size)


def kind(file):
    return re.sub(r"\d+", "N", file.name)


def damaged(file, rng):
    """Damage a file: flip a byte, cut it, or add to it."""
    content = bytearray(file.read_bytes())
    match rng.randrange(4):
        case 0:
            del content[rng.randrange(len(content)) :]
        case 1:
            content += b"\0"
        case _:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    file.write_bytes(content)


def goes_on(graph, expected, folder, file):
    """Run a job with a damaged file. Return whether the file was named and had to be removed."""
    named = False
    try:
        result = made(graph, Failing(2), folder)
    except (FastpartError, OSError) as error:
        named = True
        text = str(error)
        assert file.name in text or file.parent.name in text, text
        file.unlink()
        if file.name == "checkpoint.txt":  # says itself that the directory must go
            shutil.rmtree(file.parent)
        result = made(graph, Failing(3), folder)
    np.testing.assert_array_equal(result.assignment, expected)
    assert list(folder.iterdir()) == []
    return named


def cells(jobs):
    """Return a file of each kind in each job."""
    return [(job, file) for job in jobs for file in {kind(file): file for file in files(job)}.values()]


def tried(graph, expected, chosen, tmp_path, rng):
    for number, (job, file) in enumerate(chosen):
        folder = tmp_path / str(number)
        shutil.copytree(job, folder)
        copy = folder / file.relative_to(job)
        damaged(copy, rng)
        print(job.name, file.name, goes_on(graph, expected, folder, copy))


def test_a_damaged_file_is_named_or_made_anew(graph, expected, jobs, tmp_path):
    rng = random.Random(SEED)
    tried(graph, expected, rng.sample(cells(jobs), 8), tmp_path, rng)
    assert {kind(file) for _, file in cells(jobs)} >= {
        "job.json",
        "counts.json",
        "counts-N.bin",
        "scattered.json",
        "scattered-N.bin",
        "shards.json",
        "shard-N.bin",
        "pieces.bin",
        "lists-N-N.bin",
        "checkpoint.txt",
        "checkpoint-clusters-N.bin",
        "checkpoint-lists-N.bin",
        "checkpoint-parts-N.bin",
    }


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_damaged_files_of_each_kind_many_times(graph, expected, jobs, tmp_path):
    tried(graph, expected, cells(jobs) * 20, tmp_path, random.Random())
