"""A job that was cut off goes on from its folder, with any number of workers, and ends in the same bits."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from test_bits import planted

import fastpart as fp
from fastpart.errors import GraphFormatError
from fastpart.machines.engine import Threads
from fastpart.machines.partitioning import Place, Shards
from fastpart.partitions.partitioners.builtin import on_machines

GIVEN = {"path": "two_levels", "sample": 0.1, "threads": 1}


class Failing(Threads):
    """An engine whose replica fails in a superstep, and whose tasks fail after some."""

    def __init__(self, workers, superstep=None, tasks=None):
        super().__init__(workers)
        self.superstep, self.left = superstep, tasks
        self.steps = 0

    def submit(self, task, each):
        if self.left is not None:
            done = list(itertools.islice(each, self.left))
            self.left -= len(done)
            super().submit(task, done)
            if len(done) < len(each):
                raise OSError("the power is off")
            return []
        return super().submit(task, each)

    def replicas(self, program):
        def failing(number, count, exchange):
            steps = itertools.count()

            def counted(message):
                step = next(steps)
                if number == count - 1:
                    self.steps = step
                    if step == self.superstep:
                        raise OSError("the power is off")
                return exchange(message)

            return program(number, count, counted)

        return super().replicas(failing)


@pytest.fixture(scope="module")
def graph():
    return fp.open_graph(planted(8000, 60_000))


@pytest.fixture(scope="module")
def expected(graph):
    return fp.multilevel(graph, 4, **GIVEN).assignment


def made(graph, engine, folder):
    return on_machines("multilevel", Place(engine, folder, Shards(3, 5)), graph, 4, **GIVEN)


def test_a_replica_that_fails_in_any_superstep(graph, expected, tmp_path):
    whole = Failing(2)
    np.testing.assert_array_equal(made(graph, whole, tmp_path).assignment, expected)
    most, fresh = whole.steps, []
    for superstep in range(0, most, most // 6):
        with pytest.raises(OSError, match="the power is off"):
            made(graph, Failing(2, superstep), tmp_path)
        again = Failing(3)
        np.testing.assert_array_equal(made(graph, again, tmp_path).assignment, expected)
        assert list(tmp_path.iterdir()) == []
        fresh.append(again.steps)
    assert fresh == sorted(fresh, reverse=True)  # the later it failed, the less was left to do
    assert fresh[-1] < 0.7 * most


def test_two_failures_in_a_row(graph, expected, tmp_path):
    for engine in (Failing(1, tasks=2), Failing(4, tasks=5), Failing(4, 40), Failing(1, 150)):
        with pytest.raises(OSError, match="the power is off"):
            made(graph, engine, tmp_path)
    np.testing.assert_array_equal(made(graph, Threads(2), tmp_path).assignment, expected)


def test_a_damaged_file_is_named_and_made_again_once_it_is_gone(graph, expected, tmp_path):
    with pytest.raises(OSError, match="the power is off"):
        made(graph, Failing(2, 1), tmp_path)
    (piece,) = tmp_path.glob("*/shard-2.bin")
    content = bytearray(piece.read_bytes())
    content[len(content) // 2] ^= 1
    piece.write_bytes(content)
    with pytest.raises(GraphFormatError, match=r"shard-2\.bin: the file is damaged"):
        made(graph, Threads(2), tmp_path)
    piece.unlink()
    np.testing.assert_array_equal(made(graph, Threads(2), tmp_path).assignment, expected)


def test_damaged_lists_of_a_level_are_made_again(graph, expected, tmp_path):
    engine = Failing(2, 10**6)
    made(graph, engine, tmp_path)
    with pytest.raises(OSError, match="the power is off"):
        made(graph, Failing(2, engine.steps - 5), tmp_path)
    (lists,) = tmp_path.glob("*/lists-0-1.bin")
    whole = lists.read_bytes()
    lists.write_bytes(whole[:-1] + b"x")
    with pytest.raises(OSError, match="the power is off"):
        made(graph, Failing(2, 30), tmp_path)
    assert lists.read_bytes() == whole
    np.testing.assert_array_equal(made(graph, Threads(3), tmp_path).assignment, expected)


def test_other_parameters_are_another_job(graph, tmp_path):
    with pytest.raises(OSError, match="the power is off"):
        made(graph, Failing(2, 30), tmp_path)
    other = on_machines("multilevel", Place(Threads(2), tmp_path), graph, 5, **GIVEN)
    np.testing.assert_array_equal(other.assignment, fp.multilevel(graph, 5, **GIVEN).assignment)
    assert len(list(tmp_path.iterdir())) == 1


def test_two_commands_do_not_work_on_one_job(graph, expected, tmp_path):
    class Second(Threads):
        def submit(self, task, each):
            refused = pytest.raises(
                fp.errors.ParameterError, match=r"^shared: \S+job-\S+ is in use\. At work there: "
            )
            with ThreadPoolExecutor(1) as other, refused:
                other.submit(made, graph, Threads(1), tmp_path).result()
            return super().submit(task, each)

    np.testing.assert_array_equal(made(graph, Second(2), tmp_path).assignment, expected)
