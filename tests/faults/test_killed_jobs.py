"""The command of a job is killed at any moment. Run again, it ends in the same bytes and repeats no finished stage."""

import json

import numpy as np
import pytest
from child import run_child

import fastpart as fp

STAGES = ("counts", "scattered", "shards")

RUN = """
import itertools, json, os, signal, sys, time
from pathlib import Path
import numpy as np, fastpart as fp
from fastpart.machines.partitioning import Shards
from fastpart.machines.engine import Threads
from fastpart.machines.partitioning import Place
from fastpart.partitions.partitioners.builtin import on_machines

folder, kills = Path(sys.argv[1]), json.loads(sys.argv[2])
shared = folder / "shared"

class Dying(Threads):
    left_tasks = left_steps = None
    def submit(self, task, each):
        def counted(*given):
            if self.left_tasks is not None:
                if self.left_tasks == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                self.left_tasks -= 1
            with open(folder / "made", "a") as log:
                log.write(given[-1][-1].name + "\\n")
            return task(*given)
        return super().submit(counted, each)
    def replicas(self, program):
        def dying(number, count, exchange):
            steps = itertools.count()
            def counted(message):
                if number == 0 and next(steps) == self.left_steps:
                    os.kill(os.getpid(), signal.SIGKILL)
                return exchange(message)
            return program(number, count, counted)
        return super().replicas(dying)

def work(engine):
    place = Place(engine, shared, Shards(3, 5))
    graph = fp.open_graph(folder / "g.npy", num_vertices=8000)
    made = on_machines("multilevel", place, graph, 4, path="two_levels", sample=0.1, threads=1)
    np.save(folder / "parts.npy", made.assignment)

def run(kill):
    '''Run a job in a process of its own, and kill it. Return whether it was.'''
    pid = os.fork()
    if pid == 0:
        engine = Dying(2)
        engine.left_tasks, engine.left_steps = kill.get("task"), kill.get("step")
        try:
            work(engine)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if "share" in kill:
        time.sleep(kill["share"] * took)
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status) or status == 0, status
    return os.WIFSIGNALED(status)

def made():
    log = folder / "made"
    names = log.read_text().split() if log.exists() else []
    log.unlink(missing_ok=True)
    return names

begun = time.monotonic()
run({})
took = time.monotonic() - begun
expected = (folder / "parts.npy").read_bytes()
assert made() and not list(shared.iterdir())
for kill in kills:
    killed = [run(each) for each in kill]
    made()
    done = [name for job in shared.iterdir() for name in STAGES if (job / f"{name}.json").exists()]
    whole = any((job / "pieces.bin").exists() for job in shared.iterdir())
    (folder / "parts.npy").unlink(missing_ok=True)
    run({})
    assert (folder / "parts.npy").read_bytes() == expected, kill
    assert not list(shared.iterdir()), kill
    print(json.dumps([kill, killed, done, whole, made()]))
"""
RUN = RUN.replace("STAGES", repr(STAGES))


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "g.npy", np.random.default_rng(5).integers(0, 8000, (60_000, 2)))
    (tmp_path / "shared").mkdir()
    return tmp_path


def outcomes(folder, kills, timeout):
    """Return for each kill whether it hit, the stages that were finished, and the files that were made after it."""
    outcome = run_child(RUN, folder, json.dumps(kills), timeout=timeout)
    assert outcome.rc == 0, outcome.err
    rows = [json.loads(line) for line in outcome.out.splitlines()]
    assert len(rows) == len(kills)
    for kill, _, done, whole, made in rows:
        of_finished = [name for name in made for stage in done if name.startswith(stage.removesuffix("s"))]
        assert of_finished == [], kill
        assert not (whole and made), kill
    graph = fp.open_graph(folder / "g.npy", num_vertices=8000)
    expected = fp.multilevel(graph, 4, path="two_levels", sample=0.1, threads=1)
    np.testing.assert_array_equal(np.load(folder / "parts.npy"), expected.assignment)
    return rows


def test_a_kill_in_each_stage_and_twice_in_one(folder):
    kills = [
        [{"task": 0}],
        [{"task": 2}],
        [{"task": 2}, {"task": 1}],
        [{"task": 6}],
        [{"step": 20}],
        [{"step": 60}, {"step": 60}],
    ]
    rows = outcomes(folder, kills, 60)
    assert [row[2] for row in rows[:4]] == [[], ["counts"], ["counts"], ["counts", "scattered"]]
    assert [row[3] for row in rows] == [False] * 4 + [True] * 2
    assert all(all(row[1]) for row in rows)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_thirty_kills_at_any_time(folder):
    rng = np.random.default_rng()
    rows = outcomes(folder, [[{"share": share}] for share in rng.random(30)], 600)
    print(sum(row[1][0] for row in rows), "of 30 were killed")
