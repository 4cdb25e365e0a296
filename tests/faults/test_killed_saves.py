"""Saves that end in their middle: what is left is the old output or the new one, never a mixture."""

import pytest
from killed import SEEN, assert_interrupts_hit, assert_kills_hit

from soaked import some_of

# `save(i)` writes content i % 2 over the other one; `stored()` is the content that can be loaded.
HEAD = (
    """
import os, random, re, signal, sys, time
from pathlib import Path
import numpy as np, fastpart as fp
target = Path(sys.argv[1])
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

save_apart = save
begun = time.monotonic()
save(0)
once = time.monotonic() - begun
"""
    + SEEN
)

SHORT = """
def pause():
    return moments.uniform(0.001, max(0.03, min(2 * once, 0.3)))
"""

INTERRUPT = """
import threading
interrupted = 0
for turn in range(1, 31):
    pause = moments.uniform(0.0005, max(0.01, min(2 * once, 0.3)))
    timer = threading.Timer(pause, os.kill, (os.getpid(), signal.SIGINT))
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


KILLS = [(name, kills) for kills in (15, 200) for name in ("part.npy", "part.txt", "parts")]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("name", "kills"), some_of(KILLS, KILLS[:3]))
def test_killed_at_any_time(name, kills, folder):
    assert_kills_hit(HEAD + SHORT, kills, folder / name, timeout=110)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", some_of(["part.npy", "parts"], ["part.npy"]))
def test_interrupted_at_any_time(name, folder):
    assert_interrupts_hit(HEAD + INTERRUPT, 30, folder / name, timeout=110)
