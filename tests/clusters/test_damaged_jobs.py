"""Whatever byte of an unfinished job is damaged: its file is named, or made anew, and the bits stay."""

import json
import random
import re
import shutil

import numpy as np
import pytest
from test_bits import planted
from test_unfinished_jobs import GIVEN, Failing, made

import fastpart as fp
from fastpart.core.options import RunOptions
from fastpart.errors import FastpartError
from fastpart.machines.job import Job, read_checked, write_checked
from fastpart.machines.partitioning import Place, Shards, adjacency
from fastpart.machines.parts import WrittenParts
from json_damage import check_all

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


class Off:
    """An engine that makes nothing."""

    def submit(self, task, each):
        raise OSError("pieces.bin names a file that is not there, and is made anew")


def with_checksum(content, scratch):
    """Return a table of a job as fastpart writes it, with a right checksum."""
    write_checked(scratch, json.dumps(content).encode())
    return scratch.read_bytes()


def without_checksum(content):
    return json.loads(content[32:])


def test_tables_with_a_right_checksum_and_another_content(graph, jobs, tmp_path):
    """Names lead nowhere, and numbers are those of the pieces. Only a loop or the checksum of the graph may differ."""
    shutil.copytree(jobs[-1], tmp_path / "job")
    (folder,) = (tmp_path / "job").iterdir()
    job = object.__new__(Job)
    job.folder = job.path = folder
    run = RunOptions(threads=1)

    def read():
        pieces = adjacency(Off(), job, graph, Shards(3, 5), run)
        return pieces.identity[:2], pieces.rows

    table = folder / "pieces.bin"
    before = table.read_bytes()
    content = without_checksum(before)
    assert sorted(content) == ["identity", "pieces"]
    check_all(table, read, (2, 3), lambda each: with_checksum(each, tmp_path / "scratch"), without_checksum)


def test_lists_of_groups_lead_nowhere(graph, tmp_path):
    """Files that a list of a group of parts names are taken from its folder, to the output."""
    partition = fp.algorithms.hash(graph, 4)
    engine = Failing(2)
    shared, into = tmp_path / "shared", tmp_path / "into"
    for folder in (shared, into):
        folder.mkdir()
    written = WrittenParts(Place(engine, shared, Shards(3, 5)), graph, partition.assignment, 4, 1)
    run = RunOptions(threads=1)

    def write():
        shutil.rmtree(into)
        into.mkdir()
        return [len(each) for each in written.write(into, run)]

    write()
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for file in shared.rglob("files.bin"):
        content = json.loads(read_checked(file))
        for name in ("../../../victim", str(victim)):  # with the right size
            size = {name: [victim.stat().st_size, "0"]}
            write_checked(file, json.dumps(content | {"files": content["files"] | size}).encode())
            write()  # the group is made anew
            assert without_checksum(file.read_bytes()) == content
            assert victim.read_text() == "mine"
        write_checked(file, json.dumps(content | {"sizes": content["sizes"][1:]}).encode())
        with pytest.raises(fp.errors.GraphFormatError, match="lists of 3 parts, expected 4"):
            write()
        write_checked(file, json.dumps(content).encode())
    table = next(shared.rglob("groups.bin"))
    check_all(
        table,
        write,
        ("files",),
        lambda each: with_checksum(each, tmp_path / "scratch"),
        without_checksum,
    )
    written.close()
