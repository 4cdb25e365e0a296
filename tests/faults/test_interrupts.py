"""Ctrl-C: answered within a second in every long call, with no output left behind, and the next call works."""

import os
import signal

import numpy as np
import pytest
from child import SignalAt, run_child, run_command

from soaked import some_of

# A child that works until it is interrupted, says when it could be (first report of `phase`) and was, and goes on.
CALL = """
import os, pathlib, sys, time
import numpy as np, fastpart as fp
graph, endless, folder = map(pathlib.Path, sys.argv[1:])
ready = False

def progress(phase, done, total):
    global ready
    if not ready and phase == {phase!r}:
        ready = True
        print("ready", flush=True)

def call():
    {call}

before = os.listdir(folder)
try:
    call()
except KeyboardInterrupt:
    caught = time.monotonic()
assert ready, "finished before it could be interrupted"
print("caught", caught)
assert os.listdir(folder) == before, os.listdir(folder)
assert fp.spring(graph, k=4).loads.sum() == 1 << 18
print("works")
"""

CALLS = {
    "open": ("scan", "fp.open_graph(endless, dtype='u32', progress=progress)"),
    "info": ("degrees", "fp.info(fp.open_graph(endless, num_vertices=9, dtype='u32'), progress=progress)"),
    "spring, degrees": (
        "degrees",
        "fp.spring(fp.open_graph(endless, num_vertices=9, dtype='u32', io='read'), k=4, progress=progress)",
    ),
    "spring, clustering": ("clustering", "fp.spring(graph, k=4, passes=10_000, progress=progress)"),
    "spring, sequential": ("clustering", "fp.spring(graph, k=4, passes=10_000, batch=1, progress=progress)"),
    "refennel": ("streaming", "fp.algorithms.refennel(graph, k=4, passes=10_000, progress=progress)"),
    "sigma": ("streaming", "fp.sigma(graph, k=10_000, progress=progress)"),
    "sigma, edges": ("streaming", "fp.sigma(graph, k=20_000, of='edges', progress=progress)"),
    "hdrf": ("streaming", "fp.algorithms.hdrf(graph, k=20_000, out=folder / 'parts.npy', progress=progress)"),
    "two_phase": ("streaming", "fp.algorithms.two_phase(graph, k=20_000, scoring='hdrf', progress=progress)"),
    "dbh": (
        "hashing",
        "short = folder.with_name('short.bin'); short.touch(); os.truncate(short, 8 << 27);"  # degrees come first
        "fp.algorithms.dbh(fp.open_graph(short, num_vertices=9, dtype='u32'), k=4, progress=progress)",
    ),
    "random, edges": (
        "random",
        "fp.algorithms.random(fp.open_graph(endless, num_vertices=9, dtype='u32'), k=4, of='edges', progress=progress)",
    ),
    "evaluate": (
        "cut",
        "fp.evaluate(fp.open_graph(endless, num_vertices=9, dtype='u32'), np.zeros(9, int), progress=progress)",
    ),
    "evaluate, halo": (
        "halo",
        "fp.evaluate(graph, fp.VertexPartition(np.arange(1 << 18), 1 << 18), progress=progress)",
    ),
    "convert": ("convert", "fp.convert(endless, folder / 'c.bin', dtype='u32', progress=progress)"),
    "convert, relabel": (
        "convert",
        "fp.convert(endless, folder / 'c.bin', dtype='u32', relabel=True, progress=progress)",
    ),
    "generate": ("generate", "fp.generate.rmat(folder / 'r.bin', n=1 << 20, m=10**10, progress=progress)"),
    "generate, planted": (
        "generate",
        "fp.generate.planted(folder / 'p.bin', n=1 << 10, m=10**10, features=2, progress=progress)",
    ),
    "save, text": (
        "save",
        "fp.VertexPartition(np.zeros(1 << 26, np.int8), 1).save(folder / 'part.txt', progress=progress)",
    ),
    "save, directory": (
        "cut",
        "fp.VertexPartition(np.zeros(9, int), 1).save(folder / 'part',"
        " graph=fp.open_graph(endless, num_vertices=9, dtype='u32'), progress=progress)",
    ),
    "save, parts": (
        "parts",
        "fp.VertexPartition(np.arange(1 << 18) % 3000, 3000).save(folder / 'part', graph=graph, progress=progress)",
    ),
    "save, parts of records": (
        "parts",
        "fp.EdgePartition(np.arange(2_000_000) % 300, 300).save(folder / 'part', graph=graph, progress=progress)",
    ),
    "save, features": (
        "rows",
        "fp.VertexPartition(np.arange(1 << 18) % 4, 4).save(folder / 'part', graph=graph, progress=progress,"
        " features=np.broadcast_to(np.float32(0), (1 << 18, 100_000)))",
    ),
}


@pytest.mark.timeout(150)
@pytest.mark.parametrize("name", some_of(CALLS, {phase: name for name, (phase, _) in CALLS.items()}.values()))
def test_python(name, graph, endless, folder):
    phase, call = CALLS[name]
    code = CALL.format(phase=phase, call=call)
    outcome = run_child(code, graph, endless, folder, signal_at=SignalAt(signal.SIGINT, "ready"), timeout=120)
    assert outcome.rc == 0, outcome.err
    ready, caught, works = outcome.out.splitlines()
    assert (ready, works) == ("ready", "works")
    seconds = float(caught.split()[1]) - outcome.signalled
    print(f"{name}: KeyboardInterrupt after {seconds:.3f} s")
    assert 0 < seconds < 1


COMMANDS = {
    "generate": "generate rmat new.bin --n 1000000 --m 1e10",
    "convert": "convert {endless} new.bin --dtype u32",
    "info": "info {endless} --dtype u32",
    "partition": "partition {graph} -k 4 --algorithm spring --passes 10000 -o new.npy",
    "partition into a directory": "partition {graph} -k 4 --algorithm spring --passes 10000 -o new",
    "evaluate": "evaluate {graph} parts.npy -k 262144",
    "compare": "compare {graph} -k 4,8 --algorithms spring:passes=10000 -o new.html",
}


@pytest.mark.parametrize(
    "name", some_of(COMMANDS, ["generate", "convert", "partition into a directory", "compare"])
)
def test_command(name, graph, endless, folder):
    if name == "evaluate":
        np.save(folder / "parts.npy", np.arange(1 << 18, dtype=np.int32))
    before = os.listdir(folder)
    arguments = COMMANDS[name].format(graph=graph, endless=endless).split()
    outcome = run_command(*arguments, "-q", signal_at=SignalAt(signal.SIGINT), cwd=folder, timeout=40)
    assert (outcome.rc, outcome.out) == (130, ""), outcome.err
    assert outcome.err == "fastpart: error: interrupted\n"
    assert os.listdir(folder) == before
    seconds = outcome.ended - outcome.signalled
    print(f"{name}: exit after {seconds:.3f} s")
    assert seconds < 1
