"""Samplers under Ctrl-C and after a fork: answered within a second, no thread left behind, nobody waits for ever."""

import signal

import pytest
from child import SignalAt, run_child

from soaked import some_of

OPEN = """
import os, sys, time
from pathlib import Path
import numpy as np, fastpart as fp
from fastpart import _core

graph, folder = sys.argv[1:]
fp.algorithms.random(graph, k=3, of="vertices").save(folder + "/parts", graph=graph)
topology = _core.Topology(sorted(Path(folder, "parts").glob("part-*")))
rows = np.arange(topology.num_vertices, dtype=np.uint32)

def threads():
    comms = Path("/proc/self/task").glob("*/comm")
    return [comm.read_text().strip() for comm in comms if comm.exists()]  # others end meanwhile
"""

INTERRUPTED = (
    OPEN
    + """
sampler = _core.Sampler(topology, [-1] * 25)
once = np.array([0, len(rows)])
try:
    print("ready", flush=True)
    CALL
except KeyboardInterrupt:
    caught = time.monotonic()
print("caught", caught)
assert "fastpart-sample" not in threads(), threads()
batch = _core.Sampler(topology, [2, 2]).sample(rows[:100])
assert len(batch.n_id) > 100
print("works")
"""
)

CALLS = {
    "sample": "sampler.sample(rows)",
    "batches": "next(sampler.batches(rows, once, ahead=2, threads=2))",
    "batches of the caller": "next(sampler.batches(rows, once, ahead=0))",
    "epoch": "[0 for _ in _core.Sampler(topology, [15, 10]).batches(np.tile(rows, 40), 1024 * np.arange(10241))]",
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", some_of(CALLS, ["sample", "batches"]))
def test_interrupted(name, graph, folder):
    code = INTERRUPTED.replace("CALL", CALLS[name])
    outcome = run_child(code, graph, folder, signal_at=SignalAt(signal.SIGINT, "ready"), timeout=50)
    assert outcome.rc == 0, outcome.err
    ready, caught, works = outcome.out.splitlines()
    assert (ready, works) == ("ready", "works")
    seconds = float(caught.split()[1]) - outcome.signalled
    print(f"{name}: KeyboardInterrupt after {seconds:.3f} s")
    assert 0 < seconds < 1


FORKED = (
    OPEN
    + """
sampler = _core.Sampler(topology, [3, 3], seed=1)
batches = sampler.batches(rows, np.arange(0, 262145, 1024), ahead=3, threads=2)
first = next(batches)
child = os.fork()
if child == 0:
    try:
        next(batches)
    except fp.errors.ParameterError as error:
        print(error)
    again = next(sampler.batches(rows, np.arange(0, 262145, 1024), ahead=3, threads=2))
    assert np.array_equal(again.n_id, first.n_id)
    del batches, first, again
    print("child", flush=True)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert len(list(batches)) == 255
print("parent")
"""
)


def test_forked(graph, folder):
    """The child begins an epoch of its own. The one that was under way stays with the parent."""
    outcome = run_child(FORKED, graph, folder, timeout=40)
    assert outcome.rc == 0, outcome.err
    refused, child, parent = outcome.out.splitlines()
    assert refused.startswith("batches: the batches of an epoch belong to the process that began it")
    assert (child, parent) == ("child", "parent")
