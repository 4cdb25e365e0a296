"""Tasks in a folder, which processes run one by one, have the results of one machine, also if some are killed."""

import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from test_bits import planted
from test_directory import same

import fastpart as fp
from fastpart.cli import main
from fastpart.core.parsing import with_checksum
from fastpart.machines.job import made, write_checked
from fastpart.machines.parts import write_group
from fastpart.machines.tasks import FUNCTIONS, TaskFiles, _plain, _restored, _text, work

WORKER = """
import sys, time
from fastpart.machines.tasks import work
while True:
    if not any([work(sys.argv[1], task=number) for number in range(int(sys.argv[2]), 3, 2)]):
        time.sleep(0.05)
"""


@pytest.fixture
def graph(tmp_path):
    file = tmp_path / "g.npy"
    np.save(file, planted(3000, 20_000))
    return fp.open_graph(file)


@pytest.fixture
def shared(tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    return folder


class Workers:
    """Processes that run tasks until they are stopped."""

    def __init__(self, shared):
        self.shared, self.running = shared, [self._start(shared, number) for number in range(2)]

    def _start(self, shared, number):
        return subprocess.Popen([sys.executable, "-c", WORKER, shared, str(number)])

    def kill_one(self):
        """Kill a worker that is at work, and start another."""
        while not list(self.shared.glob("*/.parts-*")):
            time.sleep(0.005)
        self.running[0].send_signal(signal.SIGKILL)
        self.running[0].wait()
        self.running[0] = self._start(self.shared, 0)

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        for process in self.running:
            process.kill()
            process.wait()


def test_processes_make_a_partition_and_its_directory_though_one_is_killed(graph, shared, tmp_path):
    engine = TaskFiles(shared, 3)
    with Workers(shared) as workers:
        partition = fp.partition(graph, 6, cluster=engine, shared=shared)
        killer = threading.Thread(target=workers.kill_one, daemon=True)
        killer.start()
        partition.save(tmp_path / "made", cluster=engine, shared=shared)
        killer.join(10)
    expected = fp.multilevel(graph, 6, path="two_levels", sample=partition.parameters["sample"])
    np.testing.assert_array_equal(partition.assignment, expected.assignment)
    partition.save(tmp_path / "expected")
    same(tmp_path / "made", tmp_path / "expected")
    assert list(shared.iterdir()) == []


@pytest.fixture
def in_background():
    """Start a function in a thread, which must have ended with the test: its notes would reach the tests behind it."""
    threads = []

    def start(function):
        threads.append(threading.Thread(target=function, daemon=True))
        threads[-1].start()
        return threads[-1]

    yield start
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)


def tasks_in(shared):
    file, end = shared / "tasks.json", time.monotonic() + 20
    while not (file.exists() and any(shared.glob("results-*"))) and time.monotonic() < end:
        time.sleep(0.01)
    return json.loads(file.read_text())


def test_what_is_missing_is_named(graph, shared, in_background, monkeypatch, caplog, capsys):
    caplog.set_level(logging.INFO, "fastpart")
    monkeypatch.setattr("fastpart.machines.tasks._REMIND", 0.0)
    partition = fp.spring(graph, 4)
    thread = in_background(lambda: partition.evaluate(cluster=TaskFiles(shared), shared=shared))
    assert len(tasks_in(shared)["piles"]) == 3
    assert work(shared, task=1)
    assert not work(shared, task=1)  # it is done
    assert not work(shared, task=3)  # there are 3
    time.sleep(1.2)
    assert "3 tasks wait in" in caplog.text
    assert caplog.messages[-1].endswith("are not done: 0, 2")
    assert work(shared, task=0)
    assert main(["work", str(shared), "--task", "2"]) == 0
    assert "task 2 is done" in capsys.readouterr().out
    thread.join(20)
    assert not thread.is_alive()
    assert not work(shared, task=0)  # nobody waits
    assert list(shared.iterdir()) == []


@pytest.fixture
def interruptible():
    """Let Ctrl-C raise here, also where a shell has started all this in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_ends_the_wait_and_leaves_no_tasks(graph, shared, interruptible):
    partition = fp.spring(graph, 4)

    def interrupt():
        tasks_in(shared)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        fp.evaluate(graph, partition, cluster="tasks", shared=shared)
    thread.join()
    assert not list(shared.glob("tasks.json"))
    assert not list(shared.glob("results-*"))


COMMAND = """
import sys
from fastpart.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_second_command_is_refused_and_what_a_killed_one_left_is_removed(graph, shared, tmp_path, capsys):
    words = ["partition", str(graph.path), "-k", "4", "--cluster", "tasks", "--shared", str(shared), "-q"]
    first = subprocess.Popen([sys.executable, "-c", COMMAND, *words])
    tasks_in(shared)
    assert main([*words, "--seed", "1", "-o", str(tmp_path / "parts")]) == 2
    told = capsys.readouterr().err
    assert f"--shared: {shared}/tasks.json is in use. At work there: process {first.pid} on " in told
    assert sorted(each.name for each in tmp_path.iterdir()) == ["g.npy", "shared"]
    with pytest.raises(fp.errors.ParameterError, match="in use"):
        fp.spring(graph, 4).evaluate(cluster="tasks", shared=shared)
    first.kill()
    first.wait()
    assert list(shared.glob("results-*"))
    with Workers(shared):
        fp.spring(graph, 4).evaluate(cluster=TaskFiles(shared, 3), shared=shared)
    left = {each.name.split("-")[0] for each in shared.iterdir()}
    assert left == {".fastpart", "fastpart"}  # the job of the first command, which goes on if it is repeated
    with Workers(shared):
        fp.partition(graph, 4, cluster=TaskFiles(shared, 3), shared=shared)
    assert list(shared.iterdir()) == []


def test_another_file_of_the_graph_is_refused(graph, shared, in_background):
    def measure():
        with pytest.raises(fp.errors.GraphFormatError, match="expected a JSON object"):
            fp.spring(graph, 4).evaluate(cluster=TaskFiles(shared), shared=shared)

    in_background(measure)
    tasks = tasks_in(shared)
    np.save(graph.path, planted(3000, 20_001))
    with pytest.raises(fp.errors.EdgeFileChangedError, match=r"g\.npy: it is another file here"):
        work(shared, task=0)
    for number in range(len(tasks["piles"])):  # what ends the wait
        write_checked(shared / f"results-{tasks['stage']}" / str(number), b"[]")


STAGE = "0123456789abcdef"


def test_a_task_that_ends_when_nobody_waits_any_more_is_no_error(shared, monkeypatch):
    results = shared / f"results-{STAGE}"
    (shared / "tasks.json").write_bytes(_text(STAGE, [[]]))
    results.mkdir()
    monkeypatch.setattr("fastpart.machines.tasks._plain", lambda done: results.rmdir() or done)
    assert work(shared, task=0)
    assert not results.exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "not JSON"),
        (json.dumps({"stage": STAGE, "piles": [[]]}), "tasks.json: not as it was written. Run the command"),
        ("[]", "expected a JSON object"),
        ("{}", "the field 'stage' is missing"),
        ({"stage": STAGE}, "the field 'piles' is missing"),
        ({"stage": 3, "piles": []}, "the field 'stage' holds an integer, not text"),
        ({"stage": "../elsewhere", "piles": [[]]}, "the field 'stage' holds a name"),
        ({"stage": STAGE, "piles": {}}, "the field 'piles' holds an object, not a list"),
        ({"stage": STAGE, "piles": [7]}, r"the field 'piles\[0\]' holds an integer, not a list"),
        ({"stage": STAGE, "piles": [[[{"a": 1, "b": 2}]]]}, "task 0 is not what fastpart wrote"),
        (
            {"stage": STAGE, "piles": [[[{"function": "machines.job:made"}, 3]]]},
            "missing a required argument",
        ),
        ({"stage": STAGE, "piles": [[["open"]]]}, "task 0 names no function"),
        (
            {"stage": STAGE, "piles": [[[{"graph": [{"source": "https://example.org/g.bin"}, []]}]]]},
            "https://example.org/g.bin is a URL",
        ),
    ],
)
def test_what_is_no_list_of_tasks_is_refused(shared, content, said):
    (shared / "tasks.json").write_bytes(
        content.encode()
        if isinstance(content, str)
        else with_checksum(json.dumps(content).encode()[:-1] + b"\n}\n")
    )
    (shared / f"results-{STAGE}").mkdir()
    with pytest.raises(fp.errors.GraphFormatError, match=said):
        work(shared, task=0)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([], r"results-\w+/0: expected a JSON object"),
        ({"results": 3}, r"results-\w+/0: .* not a list"),
        ({"results": []}, r"results-\w+/0: 0 results of 1 tasks"),
        ({"results": [3]}, r"\.json: what its tasks returned: the field 'results\[0\]' holds an integer"),
        (
            {"results": [["x", {"bytes": "y"}]]},
            r"\.json: what its tasks returned: the field 'results\[0\]\[1\]",
        ),
    ],
)
def test_results_with_a_right_checksum_and_another_content_are_refused(
    graph, shared, content, said, in_background
):
    found = []

    def measure():
        try:
            fp.spring(graph, 4).evaluate(cluster=TaskFiles(shared, 3), shared=shared)
        except fp.errors.GraphFormatError as error:
            found.append(str(error))

    thread = in_background(measure)
    stage = tasks_in(shared)["stage"]
    while not (shared / f"results-{stage}").is_dir():  # the list of the tasks comes first
        time.sleep(0.01)
    for number in range(3):
        write_checked(shared / f"results-{stage}" / str(number), json.dumps(content).encode())
    thread.join(20)
    assert re.search(said, found[0])


def test_only_known_functions_are_written_and_called(graph):
    assert _restored(_plain([made, write_group])) == (made, write_group)
    assert len(FUNCTIONS) == 6
    with pytest.raises(fp.errors.ParameterError, match="tasks_in is no task"):
        _plain(tasks_in)
    for hostile in ({"function": "os:system"}, {"function": "machines.tasks:open_graph"}, {"eval": "1"}):
        with pytest.raises(fp.errors.ParameterError, match="is unknown"):
            _restored(hostile)
    with pytest.raises(fp.errors.ParameterError, match="need a graph that lies in a file"):
        _plain(fp.open_graph(np.array([[0, 1]])))
