"""Updates of a partition directory that are killed: the old directory or the new one is there, byte by byte."""

import pytest
from killed import DIGESTS, SEEN, TIMED, assert_kills_hit

from soaked import some_of

# Parts that an update leaves as they are keep their files: the new directory holds links to those of the old one.
HEAD = (
    """
import hashlib, os, random, re, shutil, signal, sys, time
from pathlib import Path
import numpy as np, fastpart as fp
target, base = Path(sys.argv[1]), Path(sys.argv[1]).with_name("base")
n = 3_000
ring = np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1)
graphs = [fp.open_graph(np.vstack([ring, [[v, v + 2], [n, v]]])) for v in (10, n // 2)]

child = os.fork()  # Polars, which writes the measures, hangs in a forked child if its parent has used it
if child == 0:
    fp.VertexPartition(np.arange(n) * 4 // n, 4).save(base, graph=ring)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
updated = [fp.update(graph, base, moves=0, balance=1.1) for graph in graphs]
shutil.rmtree(base)

def save(turn):
    updated[turn % 2].save(target, graph=graphs[turn % 2])
"""
    + DIGESTS
    + SEEN
)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kills", some_of([12, 200], [12]))
def test_killed_at_any_time(kills, folder):
    assert_kills_hit(HEAD + TIMED, kills, folder / "parts", timeout=290)
