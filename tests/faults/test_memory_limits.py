"""Too little memory: refused with the number, before anything is allocated; never an abort."""

import os
import re

import pytest
from child import run_child

from soaked import some_of

# Prints the refusal of `call`, for which no memory may have been touched.
LIMITED = """
import re, sys
import numpy as np, fastpart as fp, fastpart.store
graph = np.array([[0, 1], [1, 2]], np.uint32)
edges = fp.open_graph(graph, num_vertices=300_000_000)
many = fp.VertexPartition([0, 1, 2], 1 << 20)

def resident():
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read())[1]) * 1024

before = resident()
try:
    eval(sys.argv[1])
except fp.errors.MemoryBudgetError as error:
    assert isinstance(error, MemoryError)
    print(error)
assert resident() - before < 16 << 20
"""

CALLS = {
    "fp.spring(edges, k=4, memory_limit='1G')": ("spring on 300000000 vertices", "9.6 GB", "1.1 GB"),
    "fp.spring(edges, k=4, memory_limit=10**9)": ("spring on 300000000 vertices", "9.6 GB", "1.0 GB"),
    "edges.degrees(memory_limit='1G', threads=2)": ("degrees", "1.8 GB", "1.1 GB"),
    "fp.info(edges, memory_limit='1G', threads=2)": ("degrees", "1.8 GB", "1.1 GB"),
    "fp.evaluate(graph, many, memory_limit='1M', threads=1)": ("the cut counts", "33.6 MB", "1.0 MB"),
    "fp.evaluate(graph, [0, 1, 1], [0, 1, 1], memory_limit=1)": ("", "", "1 bytes"),
    "fp.convert(sys.argv[2], sys.argv[3], relabel=True, memory_limit='1M')": ("convert", "", "1.0 MB"),
}


@pytest.mark.parametrize("call", some_of(CALLS, [*CALLS][::2]))
def test_memory_limit_below_need(call, folder, tmp_path):
    (tmp_path / "edges.txt").write_bytes(b"1 2\n")
    outcome = run_child(LIMITED, call, tmp_path / "edges.txt", folder / "c.bin")
    assert outcome.rc == 0, outcome.err
    what, needed, budget = map(re.escape, CALLS[call])
    size = r"\d+(\.\d)? ([kMG]B|bytes)"
    assert re.search(
        rf"{what}.* needs {needed or size} of memory, but the budget is {budget}\. Raise memory_limit",
        outcome.out,
    )
    assert os.listdir(folder) == []


# The refusal of `call` by a process that may take `headroom` MB more; or what came of it.
SHORT = """
import re, resource, sys
import numpy as np, fastpart as fp, fastpart.store
path, folder, headroom, call = sys.argv[1:]
edges = fp.open_graph(np.array([[0, 1], [1, 2]], np.uint32), num_vertices=20_000_000)
part = fp.VertexPartition(np.arange(1 << 18) % 4, 4)
with open("/proc/self/status") as status:
    used = int(re.search(r"VmSize:\\s+(\\d+) kB", status.read())[1]) * 1024
resource.setrlimit(resource.RLIMIT_AS, (used + (int(headroom) << 20),) * 2)
try:
    eval(call)
except (fp.errors.MemoryBudgetError, fp.errors.CapacityError) as error:
    print(type(error).__name__, error)
else:
    print("complete")
"""

SHORT_CALLS = {
    "fp.spring(edges, k=4)": (
        (1, "a run: the operating system refused"),
        (64, "648.4 MB"),
        (512, "648.4 MB"),
        (1500, None),
    ),
    "fp.spring(path, k=4)": ((1, "mapping the file"), (1500, None)),
    "fp.spring(fp.open_graph(path, io='read'), k=4)": (
        (1, "a run: the operating system refused"),
        (24, "spring"),
        (1500, None),
    ),
    "fp.evaluate(path, part)": ((1, "mapping the file"), (1500, None)),
    "fp.convert(path, folder + '/c.bin', relabel=True)": (
        (1, "a run: the operating system refused"),
        (24, "mapping the file"),
        (1500, None),
    ),
    "part.save(folder + '/part.npy')": ((1, "a run: the operating system refused"), (1500, None)),
}


@pytest.mark.parametrize(
    ("call", "headroom", "refusal"),
    some_of(
        [(call, *case) for call, cases in SHORT_CALLS.items() for case in cases],
        [(call, *cases[len(cases) // 2 - 1]) for call, cases in SHORT_CALLS.items()]
        + [("fp.spring(path, k=4)", 1500, None)],
    ),
)
def test_address_space_below_need(graph, folder, call, headroom, refusal):
    outcome = run_child(SHORT, graph, folder, headroom, call)
    assert outcome.rc == 0, outcome.err
    if refusal is None:
        assert outcome.out == "complete\n"
    else:
        assert re.search(refusal, outcome.out), outcome.out
        assert re.search("Raise (memory_limit|the limit)|Use fewer", outcome.out)
        assert os.listdir(folder) == []


# Forks for each address limit and prints how the call ended there, until it has succeeded twice.
SWEEP = """
import os, re, resource, sys
import numpy as np, fastpart as fp, fastpart.store
call, random = sys.argv[1], np.random.default_rng(1)
n = (1 << 15) + 5
around = [np.stack([np.full(n // 2, hub), random.choice(n, n // 2, replace=False)], 1) for hub in range(2)]
edges = np.concatenate([random.integers(0, n, (60_000, 2)), *around]).astype(np.uint32)
graph = fp.open_graph(edges[edges[:, 0] != edges[:, 1]], num_vertices=n)
start = fp.algorithms.hash(graph, k=4, threads=1)
limit, ended = 1, []
while ended.count("complete") < 2 and limit < 400:
    pid = os.fork()
    if pid == 0:
        with open("/proc/self/status") as status:
            used = int(re.search(r"VmSize:\\s+(\\d+) kB", status.read())[1]) * 1024
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (used + (limit << 20),) * 2)
        try:
            eval(call)
        except MemoryError:
            os._exit(4)
        except fp.errors.CapacityError as error:
            os._exit(5 if "cannot start" in str(error) else 6)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    names = {0: "complete", 4: "MemoryError", 5: "no threads"}
    what = os.WIFSIGNALED(status) and f"signal {os.WTERMSIG(status)}" or names.get(os.WEXITSTATUS(status), "failed")
    ended.append(what)
    limit += 6
print(*ended, sep=", ")
"""

SWEEP_CALLS = [
    "fp.algorithms.hdrf(graph, k=4, threads=2, memory_limit=10**10)",
    "fp.algorithms.two_phase(graph, k=4, threads=2, memory_limit=10**10)",
    "fp.sigma(graph, k=4, threads=2, memory_limit=10**10)",
    "fp.grem(graph, k=4, chunk=1.0, threads=2, refine=True, memory_limit=10**10)",
    "fp.multilevel(graph, k=4, threads=2, memory_limit=10**10)",
    "fp.multilevel(graph, k=4, threads=12)",
    "fp.multilevel(graph, k=1000, threads=2, path='two_levels', effort='fast', memory_limit=10**10)",
    "fp.refine(graph, start, threads=2, rounds=1, objective='halo', memory_limit=10**10)",
    "fp.update(graph, start, threads=2, memory_limit=10**10)",
]


@pytest.mark.parametrize("call", some_of(SWEEP_CALLS, SWEEP_CALLS[1::2]))
def test_no_address_limit_ends_the_interpreter(call):
    outcome = run_child(SWEEP, call, timeout=240)
    assert outcome.rc == 0, outcome.err
    ended = set(outcome.out.strip().split(", "))
    assert "complete" in ended, outcome.out
    assert ended <= {"complete", "MemoryError", "no threads"}, outcome.out
