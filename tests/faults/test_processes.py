"""Forked and spawned processes, threads, and results that outlive what they came from."""

import gc
import os
import pickle
import textwrap
import threading
import time

import numpy as np
import pytest
from child import run_child, run_python

import fastpart as fp
from soaked import some_of

FORK = """
import os, sys
import numpy as np, fastpart as fp
graph, folder = sys.argv[1:]
labels = np.arange(1 << 18) % 5

def work():
    part = fp.spring(graph, k=4, threads=4)
    evaluation = fp.evaluate(graph, part, labels, {"train": [1, 2, 3]})
    part.save(os.path.join(folder, f"{os.getpid()}.npy"), graph=graph)
    return part.assignment, str(evaluation)

opened = fp.open_graph(graph)
assignment, text = work()
child = os.fork()
if child == 0:
    mine, my_text = work()
    assert np.array_equal(mine, assignment) and my_text == text
    assert np.array_equal(fp.spring(opened, k=4).assignment, assignment)
    print("child")
    sys.stdout.flush()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert np.array_equal(work()[0], assignment)
print("parent")
"""


def test_call_after_fork(graph, folder):
    outcome = run_child(FORK, graph, folder, timeout=60)
    assert (outcome.rc, outcome.out) == (0, "child\nparent\n"), outcome.err
    assert len(os.listdir(folder)) == 2


FORK_AFTER_POLARS = """
import os, sys
import numpy as np
import fastpart as fp

graph = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]])
part = fp.spring(graph, k=2)
out = os.path.join(sys.argv[1], "parts")
part.save(out, graph=graph)
child = os.fork()
if child == 0:
    try:
        part.save(out, graph=graph)
    except fp.FastpartError as error:
        print(error, flush=True)
    part.save(out + ".npy")
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_polars_after_fork_is_refused_instead_of_hanging(folder):
    outcome = run_child(FORK_AFTER_POLARS, folder, timeout=60)
    assert outcome.rc == 0, outcome.err
    assert "metrics.parquet: this process was forked" in outcome.out
    assert "spawn" in outcome.out
    assert sorted(os.listdir(folder)) == ["parts", "parts.npy"]


FORK_DURING = """
import os, sys, threading
import fastpart as fp
graph = sys.argv[1]
begun = threading.Event()
thread = threading.Thread(
    target=fp.spring, args=(graph, 4), kwargs={"passes": 20, "progress": lambda *_: begun.set()}
)
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    os._exit(int(fp.spring(graph, 4).loads.sum() != 1 << 18))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
thread.join()
"""


def test_fork_during_a_call(graph):
    outcome = run_child(FORK_DURING, graph, timeout=60)
    assert outcome.rc == 0, outcome.err


@pytest.mark.parametrize("start", some_of(["spawn", "fork", "forkserver"], ["spawn", "fork"]))
def test_multiprocessing(graph, start):
    code = """
    import multiprocessing, sys
    import numpy as np, fastpart as fp
    if __name__ == "__main__":
        expected = [fp.spring(sys.argv[1], k).assignment for k in (2, 3, 4)]
        with multiprocessing.get_context(sys.argv[2]).Pool(2) as pool:
            parts = pool.starmap(fp.spring, [(sys.argv[1], k) for k in (2, 3, 4)])
        print([bool(np.array_equal(a, b.assignment)) for a, b in zip(expected, parts)])
    """
    outcome = run_child(code, graph, start, timeout=60)
    assert (outcome.rc, outcome.out) == (0, "[True, True, True]\n"), outcome.err


@pytest.mark.torch
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_of_a_data_loader(graph, tmp_path, start):
    code = """
    import sys
    import fastpart as fp
    import torch.utils.data

    class Parts(torch.utils.data.Dataset):
        def __len__(self):
            return 6
        def __getitem__(self, index):
            return fp.spring(sys.argv[1], k=index + 1).assignment[:1000].sum()

    if __name__ == "__main__":
        parts = Parts()
        expected = [int(parts[index]) for index in range(6)]
        loader = torch.utils.data.DataLoader(parts, batch_size=2, num_workers=2, multiprocessing_context=sys.argv[2])
        print([int(value) for batch in loader for value in batch] == expected)
    """
    script = tmp_path / "loader.py"  # which spawned workers import
    script.write_text(textwrap.dedent(code))
    outcome = run_python(script, graph, start, timeout=120)
    assert (outcome.rc, outcome.out) == (0, "True\n"), outcome.err


def test_partition_survives_pickling(graph):
    partition = fp.spring(graph, k=4)
    again = pickle.loads(pickle.dumps(partition))
    np.testing.assert_array_equal(again.assignment, partition.assignment)
    assert (again.k, again.cap, again.checksum) == (partition.k, partition.cap, partition.checksum)


def test_two_threads_partition_while_a_third_ticks(graph):
    passes = 15
    expected = {k: fp.spring(graph, k, passes=passes).assignment for k in (4, 5)}
    found, ticks, stop = {}, [time.monotonic()], threading.Event()

    def tick():
        while not stop.wait(0.005):
            ticks.append(time.monotonic())

    def partition(k):
        found[k] = fp.spring(graph, k, passes=passes).assignment

    ticker = threading.Thread(target=tick)
    workers = [threading.Thread(target=partition, args=(k,)) for k in expected]
    for thread in (ticker, *workers):
        thread.start()
    for thread in workers:
        thread.join()
    stop.set()
    ticker.join()
    for k, assignment in expected.items():
        np.testing.assert_array_equal(found[k], assignment)
    duration, longest = ticks[-1] - ticks[0], max(np.diff(ticks))
    assert len(ticks) > 20
    # With the GIL held there would be no tick during a call.
    assert longest < duration / 4, f"no tick for {longest:.2f} of {duration:.2f} s"


def test_arrays_outlive_partition_and_edges(graph):
    edges = fp.open_graph(graph)
    partition = fp.spring(edges, k=4)
    assignment, degrees, loads = partition.assignment, edges.degrees(), partition.loads
    copies = [array.copy() for array in (assignment, degrees, loads)]
    matrix = fp.evaluate(edges, partition).cut_matrix
    total = matrix.sum()
    del partition, edges
    gc.collect()
    # Other results of the same size, which would come to lie in freed memory.
    others = [fp.spring(graph, k=3) for _ in range(3)]
    for array, copy in zip((assignment, degrees, loads), copies, strict=True):
        np.testing.assert_array_equal(array, copy)
    assert matrix.sum() == total
    assert len(others) == 3


def test_arrays_of_edges_may_be_deleted(graph):
    records = np.fromfile(graph, np.uint32).reshape(-1, 2)
    edges = fp.open_graph(records)
    expected = fp.spring(graph, k=4).assignment
    del records
    gc.collect()
    np.testing.assert_array_equal(fp.spring(edges, k=4).assignment, expected[: edges.num_vertices])


@pytest.mark.parametrize("name", ["assignment", "loads", "degrees"])
def test_results_are_read_only(graph, name):
    edges = fp.open_graph(graph)
    array = edges.degrees() if name == "degrees" else getattr(fp.spring(edges, k=4), name)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


def test_arrays_of_the_core_stay_read_only(graph):
    edges = fp.open_graph(graph)
    for array in (fp.spring(edges, k=4).assignment, edges.degrees()):
        with pytest.raises(ValueError, match="cannot set WRITEABLE flag"):
            array.flags.writeable = True
