"""Edges whose replacement is killed at every step: the old files or the new ones, or a refusal, never a mixture."""

import pytest
from child import run_child

from soaked import some_of

CODE = """
import os, pathlib, signal, sys
import numpy as np, fastpart as fp
from fastpart import _core

folder, name = pathlib.Path(sys.argv[1]), sys.argv[2]
(folder / "a.txt").write_text("7 70\\n70 9\\n9 7\\n")
(folder / "b.txt").write_text("0 1 2.5\\n1 2 3\\n2 3 4\\n")
out = folder / "g.bin"
ring = np.array([[v, (v + 1) % 9] for v in range(9)])

def relabel():
    fp.convert(folder / "a.txt", out, relabel=True)

def weights():
    fp.convert(folder / "b.txt", out, weights=3)

def planted():
    fp.generate.planted(out, n=40, m=200, features=2)

def order():
    fp.order(ring, out=out)

def split():
    fp.split_edges(ring, val=0.2, out=out)

old, new = {"relabel": (weights, relabel), "weights": (relabel, weights), "planted": (order, planted),
            "order": (planted, order), "split": (relabel, split)}[name]

def content():
    return {path.name: path.read_bytes() for path in folder.glob("g.bin*")}

def dying_at(step):
    # Every change of a name counts, before it and after it.
    left = [step]
    def counted(change):
        def call(*arguments, **named):
            for after in (False, True):
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                if not after:
                    result = change(*arguments, **named)
            return result
        return call
    os.replace, pathlib.Path.unlink = counted(os.replace), counted(pathlib.Path.unlink)
    _core.write_file = counted(_core.write_file)
    new()
    os._exit(0)

states = []
for write in (new, old):
    write()
    states.append(content())
refused = kept = replaced = step = 0
while True:
    step += 1
    child = os.fork()
    if child == 0:
        dying_at(step)
    if os.waitpid(child, 0)[1] == 0:
        break
    found = content()
    try:
        fp.open_graph(out)
    except fp.errors.GraphFormatError as error:
        assert "it was being replaced" in str(error), error
        refused += 1
    else:
        assert found in states, (step, sorted(found))
        kept, replaced = kept + (found == states[1]), replaced + (found == states[0])
    new()
    assert content() == states[0], step
    assert sorted(path.name for path in folder.iterdir()) == sorted(["a.txt", "b.txt", *states[0]])
    old()
    assert content() == states[1], step
print(refused, kept, replaced)
"""


@pytest.mark.parametrize(
    "name", some_of(["relabel", "weights", "planted", "order", "split"], ["relabel", "planted", "split"])
)
def test_a_kill_at_any_step_leaves_no_mixture(tmp_path, name):
    outcome = run_child(CODE, tmp_path, name, timeout=120)
    assert outcome.rc == 0, outcome.err
    refused, kept, replaced = map(int, outcome.out.split())
    assert refused > 2
    assert kept
    assert replaced
