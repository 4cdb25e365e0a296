"""GREM: against an oracle, the caps, temporary files, and the figures of METIS on real graphs."""

import errno
import json
import math
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from grem_oracle import grem as oracle
from soaked import PAIRS, examples, soak
from strategies import edge_lists

pytestmark = [
    pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning"),
    pytest.mark.filterwarnings("ignore:chunk:UserWarning"),
]


@examples(120)
@given(
    edge_lists(max_n=16, max_m=50),
    st.integers(2, 5),
    st.integers(1, 20),
    st.integers(1, 3),
    st.sampled_from(["refined", "frozen", "faithful"]),
    st.sampled_from([1.0, 1.1, 1.5, 1e308]),
    st.integers(0, 2**64 - 1),
)
def test_as_defined_but_for_what_is_done_in_memory(graph, k, chunk, passes, rule, balance, seed):
    n, edges = graph
    options = {"revise": rule != "frozen", "faithful": rule == "faithful", "order": "file"}
    opened = fp.open_graph(edges, num_vertices=n)
    made = fp.grem(opened, k, chunk=chunk, passes=passes, balance=balance, seed=seed, **options)
    assert made.assignment.tolist() == oracle(n, edges, k, chunk, passes, rule, balance, seed)


@examples(60)
@given(
    edge_lists(max_n=40, max_m=120),
    st.integers(1, 24),
    st.one_of(st.integers(1, 60), st.sampled_from([0.01, 0.1, 0.5, 1.0])),
    st.sampled_from([1.0, 1.05, 1.5, 1e308]),
    st.booleans(),
    st.sampled_from(["random", "file"]),
    st.integers(0, 3),
)
def test_caps_hold_and_threads_change_nothing(graph, k, chunk, balance, revise, order, seed):
    n, edges = graph
    opened = fp.open_graph(edges, num_vertices=n)
    options = {"chunk": chunk, "balance": balance, "revise": revise, "order": order, "seed": seed}
    made = fp.grem(opened, k, threads=1, **options)
    assert made.cap == math.ceil(min(balance, k) * n / k)
    assert made.loads.tolist() == np.bincount(made.assignment, minlength=k).tolist()
    assert len(made.assignment) == n
    assert made.loads.max() <= made.cap
    again = fp.grem(opened, k, threads=3, **options)
    assert np.array_equal(made.assignment, again.assignment)


@examples(25)
@given(edge_lists(max_n=40, max_m=120), st.integers(1, 24), st.sampled_from([0.01, 0.1, 1.0, 7]))
def test_faithful_places_every_vertex(graph, k, chunk):
    n, edges = graph
    made = fp.grem(fp.open_graph(edges, num_vertices=n), k, chunk=chunk, faithful=True)
    assert made.cap is None
    assert made.loads.tolist() == np.bincount(made.assignment, minlength=k).tolist()


def test_same_whatever_the_threads_and_the_input(rmat, tmp_path):
    records = np.fromfile(rmat.path, np.uint32).reshape(-1, 2)
    n, expected = rmat.num_vertices, fp.grem(rmat, 7, threads=1)
    for edges, threads in (
        (rmat, 2),
        (fp.open_graph(rmat.path, num_vertices=n, io="read"), 8),
        (fp.open_graph(records, num_vertices=n), 1),
    ):
        made = fp.grem(edges, 7, threads=threads, tmp_dir=tmp_path)
        assert np.array_equal(made.assignment, expected.assignment)
        assert made.checksum == expected.checksum


def test_memory_changes_time_only(rmat):
    few, many = (fp.grem(rmat, 8, chunk=0.02, memory_limit=limit, threads=2) for limit in (25 << 20, "1G"))
    assert np.array_equal(few.assignment, many.assignment)


def test_memory_never_chooses_the_chunk(rmat):
    """What has no room is refused, and the chunk that the refusal names has room."""
    with pytest.raises(
        fp.errors.MemoryBudgetError, match=r"\(chunk=\d+ is the largest that fits\)"
    ) as refusal:
        fp.grem(rmat, 8, chunk=0.5, memory_limit=24 << 20, threads=1)
    chunk = int(re.search(r"chunk=(\d+)", str(refusal.value))[1])
    fitting = fp.grem(rmat, 8, chunk=chunk, memory_limit=24 << 20, threads=1)
    assert np.array_equal(fitting.assignment, fp.grem(rmat, 8, chunk=chunk).assignment)
    with pytest.raises(fp.errors.MemoryBudgetError, match="no chunk is small enough"):
        fp.grem(rmat, 8, memory_limit="1M")


def _graph(shared_data, name):
    meta = json.loads((shared_data / name / "meta.json").read_text())
    return fp.open_graph(shared_data / name / "edges.npy", num_vertices=meta["n"])


def _cut(edges, part):
    return float(fp.evaluate(edges, part).summary["cut_ratio"][0])


@pytest.mark.parametrize(
    ("name", "k", "most"),
    [
        ("amazon-computers", 8, 0.25),
        ("fb100-cornell5", 4, 1.1 * 0.3237),
        soak("fb100-cornell5", 8, 1.1 * 0.4312),
        soak("fb100-cornell5", 32, 1.1 * 0.6279),
        ("ego-facebook", 32, 1.1 * 0.3485),
    ],
)
def test_near_metis_on_real_graphs(shared_data, name, k, most):
    """METIS: k-way, imbalance 1.03, median of 5 seeds."""
    edges = _graph(shared_data, name)
    made = fp.grem(edges, k)
    assert _cut(edges, made) <= most
    assert _cut(edges, fp.grem(edges, k, revise=False)) > 1.01 * _cut(edges, made)


@PAIRS
def test_caps_on_every_real_graph(real_graphs, pairs):
    for (name, edges), k in pairs(real_graphs.items(), (3, 32)):
        made = fp.grem(edges, k)
        assert made.loads.max() <= made.cap == math.ceil(edges.num_vertices / k), name


def test_thin_chunks_are_warned_of(rmat):
    with pytest.warns(UserWarning, match=r"mean degree of 30\..* Use chunk=0\.13 or more"):
        fp.grem(rmat, 2, chunk=0.01)


def test_nothing_is_left_of_temporary_files(rmat, tmp_path):
    seen = []
    fp.grem(rmat, 4, tmp_dir=tmp_path, progress=lambda *_: seen.append(os.listdir(tmp_path)))
    assert seen
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_ends_early_leaves_nothing(tmp_path, sign):
    script = (
        "import sys, fastpart as fp\n"
        "e = fp.generate.rmat(sys.argv[1] + '/g.bin', n=1 << 18, m=3_000_000, seed=1)\n"
        "print('ready', flush=True)\n"
        "fp.grem(e, 64, passes=100, tmp_dir=sys.argv[1] + '/tmp')\n"
    )
    folder = tmp_path / "tmp"
    folder.mkdir()
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        process.send_signal(sign)
        _, errors = process.communicate(timeout=120)
    assert process.returncode != 0
    assert ("KeyboardInterrupt" in errors) == (sign == signal.SIGINT)
    assert os.listdir(folder) == []


def test_a_full_disk_is_an_error(tmp_path):
    """A limit on the size of files stands in for it."""
    script = (
        "import resource, signal, sys, fastpart as fp\n"
        "e = fp.generate.rmat(sys.argv[1] + '/g.bin', n=1 << 14, m=500_000, seed=1)\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "try:\n    fp.grem(e, 4, tmp_dir=sys.argv[1] + '/tmp')\n"
        "except OSError as error:\n    print(error.errno)\n"
    )
    (tmp_path / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{errno.EFBIG}\n"
    assert os.listdir(tmp_path / "tmp") == []


def test_little_memory_is_refused_before_anything_happens(rmat):
    with pytest.raises(fp.errors.MemoryBudgetError, match="grem on 65536 vertices"):
        fp.grem(rmat, 4, memory_limit="2M")


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"chunk": 0.0}, fp.errors.ParameterError, "chunk: 0.0"),
        ({"chunk": 1.5}, fp.errors.ParameterError, "chunk: 1.5"),
        ({"chunk": float("nan")}, fp.errors.ParameterError, "chunk: nan"),
        ({"chunk": 0}, fp.errors.ParameterError, "chunk: 0"),
        ({"chunk": "0.1"}, TypeError, "chunk"),
        ({"passes": 0}, fp.errors.ParameterError, "passes: 0"),
        ({"balance": 0.9}, fp.errors.ParameterError, "balance: 0.9"),
        ({"order": "sorted"}, fp.errors.ParameterError, "order: unknown value 'sorted'"),
        ({"faithful": True, "revise": False}, fp.errors.ParameterError, "faithful"),
        ({"tmp_dir": "no/such/folder"}, fp.errors.ParameterError, "tmp_dir"),
    ],
)
def test_refusals(options, error, match):
    with pytest.raises(error, match=match):
        fp.grem(np.array([[0, 1]]), 2, **options)


def _wrong(k, k0, draws):
    """Probability that fewer than half of the draws are among the k0 of k."""
    return sum(
        math.comb(k0, x) * math.comb(k - k0, draws - x) / math.comb(k, draws)
        for x in range(draws + 1)
        if 2 * x < draws
    )


@given(edge_lists(max_n=10), st.sampled_from([0.05, 0.3, 0.5, 1.0]), st.booleans(), st.data())
def test_expected_cut_is_equation_1(graph, chunk, revise, data):
    n, edges = graph
    side = data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    plain, expected = [edge for edge in edges.tolist() if edge[0] != edge[1]], 0.0
    for v in range(n):
        sides = [side[a + b - v] for a, b in plain if v in (a, b)]
        k, k0 = len(sides), max(sides.count(0), sides.count(1))
        draws = min(1.0, chunk * (2 if revise else 1)) * k
        low, part = int(draws), draws - int(draws)
        wrong = (1 - part) * _wrong(k, k0, low) + (part * _wrong(k, k0, low + 1) if part else 0)
        expected += (k - k0) * (1 - wrong) + k0 * wrong
    found = fp.algorithms.expected_cut(fp.open_graph(edges, num_vertices=n), side, chunk, revise=revise)
    assert found == pytest.approx(expected / max(1, 2 * len(plain)))


def test_expected_cut_refuses_what_is_no_bisection():
    with pytest.raises(fp.errors.ParameterError, match="one part, 0 or 1, for each of the 2 vertices"):
        fp.algorithms.expected_cut(np.array([[0, 1]]), [0, 2], 0.1)
    with pytest.raises(fp.errors.ParameterError, match="chunk: 0 is not a share"):
        fp.algorithms.expected_cut(np.array([[0, 1]]), [0, 1], 0)
