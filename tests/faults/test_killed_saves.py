"""Saves that end in their middle: what is left is the old output or the new one, never a mixture."""

import pytest
from child import run_child

# `save(i)` writes content i % 2 over the other one; `stored()` is the content that can be loaded.
HEAD = """
import os, random, re, signal, sys, time
from pathlib import Path
import numpy as np, fastpart as fp
target = Path(sys.argv[1])
leftover = re.compile(r"\\.%s\\.(tmp|old)-[0-9.]+" % re.escape(target.name))
n = 100_000
contents = [fp.VertexPartition((np.arange(n) * factor) % 7, 7) for factor in (1, 3)]
graph = fp.open_graph(np.arange(n).reshape(-1, 2))

def save(turn):
    contents[turn % 2].save(target)

def stored():
    found = fp.open_partition(target, k=7).assignment
    whole = [np.array_equal(found, content.assignment) for content in contents]
    assert whole.count(True) == 1, f"a mixture: {found}"
    return whole.index(True)

def others():
    return [name for name in os.listdir(target.parent) if name != target.name]

moments = random.Random(0)
save(0)
seen = {0: 0, 1: 0}
"""

KILL = """
left = 0
now = stored()
for turn in range(100):
    child = os.fork()
    if child == 0:
        turn = 1 - now
        while True:
            save(turn)
            turn += 1
    time.sleep(moments.uniform(0.001, 0.03))
    os.kill(child, signal.SIGKILL)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    now = stored()
    seen[now] += 1
    assert all(leftover.fullmatch(name) for name in others()), others()
    assert len(others()) <= 1, others()
    left += len(others())
save(0)
assert stored() == 0
assert others() == [], others()
print(seen[0], seen[1], left)
"""

INTERRUPT = """
import threading
interrupted = 0
for turn in range(1, 61):
    timer = threading.Timer(moments.uniform(0.0005, 0.01), os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        while True:
            save(turn)
            save(turn + 1)
    except KeyboardInterrupt:
        interrupted += 1
    timer.join()
    seen[stored()] += 1
    assert others() == [], others()
save(0)
assert stored() == 0
print(seen[0], seen[1], interrupted)
"""


@pytest.mark.parametrize("name", ["part.npy", "part.txt", "parts"])
def test_killed_at_any_time(name, folder):
    outcome = run_child(HEAD + KILL, folder / name, timeout=55)
    assert outcome.rc == 0, outcome.err
    old, new, left = map(int, outcome.out.split())
    assert old + new == 100
    # Otherwise no kill hit a save in its middle.
    assert min(old, new, left) > 0


@pytest.mark.parametrize("name", ["part.npy", "parts"])
def test_interrupted_at_any_time(name, folder):
    outcome = run_child(HEAD + INTERRUPT, folder / name, timeout=55)
    assert outcome.rc == 0, outcome.err
    old, new, interrupted = map(int, outcome.out.split())
    assert interrupted == old + new == 60
    assert min(old, new) > 0
