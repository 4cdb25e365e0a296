"""Peers: the graph they get, the limits they run in, and the real ones where they are installed."""

import importlib.util
import json
import os
import sys
import time
from itertools import product
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.core.options import run_options
from fastpart.measures.compare.peers import PEERS, Bench, Peer, child
from fastpart.measures.compare.peers.bench import PeerError, run_limited
from fastpart.measures.compare.peers.registry import KaMinParPreset, MtKaHyParPreset
from soaked import examples, some_of
from strategies import edge_lists

GRAPH = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3], [3, 0], [5, 5]], dtype=np.uint32)
"""Two triangles joined by two records, and a loop."""

# What a child of a fake peer can rely on: its task, and the graph.
TASK = (
    "import json, os, sys, time; import numpy as np; task = json.loads(sys.argv[1]); folder = task['folder'];"
    "indptr = np.load(folder + '/graph.npz')['arr_0'];"
)
ANSWER = (
    "np.save(folder + '/part.npy', np.arange(len(indptr) - 1) % task['k']);"
    "open(folder + '/result.json', 'w').write(json.dumps({'seconds': 0.5, 'memory': 600}))"
)


def fake(monkeypatch, code):
    """Let a peer be a Python program."""
    monkeypatch.setitem(PEERS, "fake", Peer("fake", "numpy", command=(sys.executable, "-c", TASK + code)))


def children():
    """Return the processes that this one started and that still exist."""
    with open(f"/proc/self/task/{os.getpid()}/children") as listed:
        return listed.read().split()


@examples(15)
@given(edge_lists())
def test_the_simple_graph_against_a_count_by_hand(graph):
    n, records = graph
    expected = [{} for _ in range(n)]
    for u, v in records.tolist():
        if u != v:
            expected[u][v] = expected[u].get(v, 0) + 1
            expected[v][u] = expected[v].get(u, 0) + 1
    indptr, indices, weights = child.simple_graph(records, n)
    assert [indptr[0], indptr[-1], len(indptr)] == [0, len(indices), n + 1]
    for v in range(n):
        mine = slice(indptr[v], indptr[v + 1])
        assert indices[mine].tolist() == sorted(expected[v])
        assert dict(zip(indices[mine].tolist(), weights[mine].tolist(), strict=True)) == expected[v]


def test_the_simple_graph_of_large_ids():
    n = 2**32 - 1
    pairs = np.array([[n - 1, n - 2], [n - 2, n - 1]], np.uint32)
    ends = np.sort(pairs.astype(np.uint64), axis=1)
    assert int(ends[0, 0]) * n + int(ends[0, 1]) < 2**64  # so that the keys of pairs cannot wrap
    _, indices, weights = child.simple_graph(np.array([[2, 1]], np.uint32), 3)
    assert (indices.tolist(), weights.tolist()) == ([2, 1], [1, 1])


def test_a_peer_gets_the_task_and_its_answer_is_measured(monkeypatch, tmp_path):
    fake(monkeypatch, f"assert (task['seed'], task['threads'], task['given']) == (5, 1, {{}}), task;{ANSWER}")
    done = fp.compare(GRAPH, [2, 3], ["fake"], seed=5, threads=1, tmp_dir=tmp_path)
    for row, k in zip(done.summary.rows(named=True), (2, 3), strict=True):
        assert row["error"] is None
        assert (row["algorithm"], row["of"], row["k"], row["seconds"]) == ("fake", "vertices", k, 0.5)
        assert row["bytes_per_vertex"] == 100
        assert row["cut_ratio"] == fp.evaluate(GRAPH, np.arange(6) % k).summary["cut_ratio"][0]
    assert os.listdir(tmp_path) == []


BAD = {
    "crash": ("os.kill(os.getpid(), 11)", "fake crashed: SIGSEGV"),
    "exit": ("sys.exit(3)", "fake failed: exit code 3"),
    "complaint": ("print('much', file=sys.stderr); sys.exit('no luck')", "fake failed: no luck"),
    "exception": ("raise LookupError('mine')", "fake failed: LookupError: mine"),
    "no answer": ("pass", "fake left no result"),
    "half an answer": (f"{ANSWER}; open(folder + '/result.json', 'w').write('{{')", "fake left no result"),
    "no memory": (f"{ANSWER}; open(folder + '/result.json', 'w').write('{{\"seconds\": 1}}')", "fake left no result"),
    "too few parts": (f"{ANSWER}; np.save(folder + '/part.npy', [0])", "it has 1 vertices, the graph has 6"),
    "foreign parts": (f"{ANSWER}; np.save(folder + '/part.npy', [9] * 6)", "vertex 0 has part 9, outside 0..1"),
    "pickles": (f"{ANSWER}; np.save(folder + '/part.npy', [{{}}] * 6, allow_pickle=True)", "fake left no result"),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", some_of(BAD, ["crash", "complaint", "exception", "no answer", "foreign parts", "pickles"])
)
def test_a_bad_peer_costs_its_row_only(monkeypatch, tmp_path, name):
    code, reason = BAD[name]
    fake(monkeypatch, code)
    done = fp.compare(GRAPH, 2, ["fake", "spring"], tmp_dir=tmp_path)
    first, second = done.summary["error"]
    assert reason in first
    assert second is None
    trace = done.outcomes[0].traceback
    assert ("Traceback" in trace) if name == "exception" else trace is None
    assert os.listdir(tmp_path) == []
    assert children() == []


def test_what_hangs_is_killed_with_its_children(tmp_path):
    listed = tmp_path / "pids"
    with pytest.raises(PeerError, match=r"it took longer than 3 s\. Raise time_limit"):
        run_limited(
            "it", ["sh", "-c", f"sleep 1000 & echo $! $$ > {listed}; wait"], seconds=3, memory=1 << 40
        )
    pids = listed.read_text().split()
    assert len(pids) == 2
    for pid in pids:
        # Whoever is not ours is reaped by init, or stays as a zombie where there is none.
        deadline = time.monotonic() + 10
        while runs(pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not runs(pid)


def runs(pid):
    """Say whether a process exists and has not ended."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_a_peer_that_eats_memory_is_killed(monkeypatch):
    fake(monkeypatch, "hoard = [np.ones(1 << 20) for _ in range(40)]; time.sleep(1000)")
    done = fp.compare(GRAPH, 2, ["fake"], memory_limit="200M")
    assert done.summary["error"][0] == "fake took more than 209.7 MB of memory. Raise memory_limit"
    assert children() == []


def test_a_graph_that_cannot_be_made_is_tried_once(monkeypatch):
    fake(monkeypatch, ANSWER)
    with Bench(run_options(memory_limit=1), 600.0, 1.03) as bench:
        for _ in range(2):
            with pytest.raises(fp.errors.MemoryBudgetError, match="the graph for peers took more than"):
                bench.run(PEERS["fake"], "fake", fp.open_graph(GRAPH), 2, {})
            monkeypatch.setattr("fastpart.measures.compare.peers.bench.run_limited", None)


def test_a_package_that_is_missing_is_named(monkeypatch):
    for name in list(PEERS):
        monkeypatch.delitem(PEERS, name)
    monkeypatch.setitem(PEERS, "fake", Peer("fake", "no_such_package.inside"))
    done = fp.compare(GRAPH, 2, ["fake"])
    assert (
        done.summary["error"][0] == "no_such_package.inside is not installed: pip install 'fastpart[peers]'"
    )
    assert "fake" not in fp.compare(GRAPH, 2).summary["algorithm"]


def test_installed_peers_join_the_default_list_or_any(monkeypatch):
    for name in list(PEERS):
        monkeypatch.delitem(PEERS, name)
    fake(monkeypatch, ANSWER)
    for algorithms, peers, joined in [(None, None, True), (None, False, False), (["spring"], None, False),
                                      (["spring"], True, True), (["fake"], True, True)]:  # fmt: skip
        names = fp.compare(GRAPH, 2, algorithms, peers=peers).summary["algorithm"].to_list()
        assert names.count("fake") == joined


def test_a_command_that_is_not_there():
    with pytest.raises(FileNotFoundError):
        run_limited("it", ["/no/such/program"], seconds=1, memory=1 << 40)
    with pytest.raises(PeerError, match="it failed: exit code 1"):
        run_limited("it", ["false"], seconds=9, memory=1 << 40)


@examples(10)
@given(edge_lists(), st.data())
def test_parhip_files_hold_the_graph(tmp_path_factory, graph, data):
    n, records = graph
    made = child.simple_graph(records, n)
    file = tmp_path_factory.mktemp("parhip") / "g.parhip"
    child.write_parhip(made, file)
    words = np.fromfile(file, np.uint64)
    version, vertices, entries = words[:3].tolist()
    assert (version, vertices, entries) == (2, n, len(made[1]))
    begins = words[3 : 4 + n] // np.uint64(8)
    rows = [words[begins[v] : begins[v + 1]].tolist() for v in range(n)]
    assert rows == [made[1][made[0][v] : made[0][v + 1]].tolist() for v in range(n)]
    assert words[4 + n + entries :].tolist() == made[2].tolist()


# The real ones.


REAL = {
    "metis": "pymetis",
    "metis:constraints=2": "pymetis",
    "kaminpar": "kaminpar",
    "kaminpar:preset=strong": "kaminpar",
    "kaminpar:preset=terapart": "kaminpar",
    "mtkahypar": "mtkahypar",
    "mtkahypar:preset=deterministic": "mtkahypar",
    "mtkahypar:preset=quality": "mtkahypar",
    "heistream": "chszlablib",
    "buffcut": "chszlablib",
}
PRESETS = [name for name in REAL if name.startswith("mtkahypar")]


@pytest.mark.parametrize(("name", "module"), some_of(REAL.items(), [("kaminpar", "kaminpar")]))
def test_real_peers_on_a_real_graph(datasets, tmp_path, name, module):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"needs {module}")
    edges = fp.convert(datasets / "amazon-computers.txt.gz", tmp_path / "g.bin", num_vertices=13752)
    (row,) = fp.compare(edges, 8, [name], threads=1).summary.rows(named=True)
    assert row["error"] is None
    assert row["cut_ratio"] < {"metis:constraints=2": 0.40, "heistream": 0.45, "buffcut": 0.45}.get(
        name, 0.26
    )
    assert row["vertex_balance"] <= 1.04
    assert row["edge_balance"] <= 1.11 or "2" not in name
    assert row["seconds"] > 0
    assert row["bytes_per_vertex"] > 100  # it holds the graph


@pytest.mark.parametrize("heavy", some_of([[[0, 1], [2, 3]], [[1, 2], [3, 0]]], [[[0, 1], [2, 3]]]), ids=str)
def test_real_peers_see_parallel_records_as_weight(heavy):
    """A square whose two heavy edges must not be cut, whichever way it is drawn."""
    names = [name for name, peer in PEERS.items() if peer.installed() and peer.module != "chszlablib"]
    if not names:
        pytest.skip("needs the extra peers")
    blocks = np.array(heavy * 50 + [[0, 1], [1, 2], [2, 3], [3, 0]], np.uint32)
    many = np.concatenate([blocks + 4 * i for i in range(20)])
    ring = np.array([[4 * i, (4 * i + 4) % 80] for i in range(20)], np.uint32)
    done = fp.compare(np.concatenate([many, ring]), 2, names)
    for row in done.summary.rows(named=True):
        assert row["error"] is None
        assert row["cut_ratio"] < 0.02, row


ODD_SHAPES = {
    "nothing": (0, []),
    "a loop": (1, [[0, 0]]),
    "no edges": (7, []),
    "loops, parallel records, isolated vertices": (5, [[0, 0], [0, 1], [1, 0], [1, 0], [4, 4]]),
    "fewer vertices than parts": (4, [[0, 1], [1, 2], [2, 3]]),
    "a star": (501, [[0, leaf] for leaf in range(1, 501)]),
}
ALWAYS = [(PRESETS[0], "nothing"), (PRESETS[1], "a star")]
ALL_PRESETS = [
    *(("mtkahypar", preset) for preset in get_args(MtKaHyParPreset)),
    *(("kaminpar", preset) for preset in get_args(KaMinParPreset)),
]


@pytest.mark.parametrize(("name", "shape"), some_of(product(PRESETS, ODD_SHAPES), ALWAYS))
def test_mtkahypar_on_graphs_of_odd_shape(name, shape):
    pytest.importorskip("mtkahypar")
    check_odd_shape({name: 0}, shape)


@pytest.mark.parametrize("shape", some_of(ODD_SHAPES, ["fewer vertices than parts"]))
def test_streams_on_graphs_of_odd_shape(shape):
    pytest.importorskip("chszlablib")
    exact = {"heistream": 0, "buffcut": 0}
    check_odd_shape(exact | {"heistream:batch=2:passes=2": 1, "buffcut:buffer=2:batch=1:passes=2": 1}, shape)


def check_odd_shape(over, shape):
    """Assert that the peers partition a graph, each with so many vertices above the bound at most."""
    n, records = ODD_SHAPES[shape]
    graph = fp.open_graph(np.array(records, np.uint32).reshape(-1, 2), num_vertices=n)
    for row in fp.compare(graph, [1, 9], list(over)).summary.rows(named=True):
        assert row["error"] is None
        most = np.ceil(1.03 * n / row["k"]) + over[row["algorithm"]]
        assert round(row["vertex_balance"] * n / row["k"]) <= most


@pytest.mark.parametrize(("peer", "preset"), some_of(ALL_PRESETS, [("kaminpar", "eco")]))
def test_every_preset_is_one_of_the_package(peer, preset):
    pytest.importorskip(peer)
    ring = np.array([[i, (i + 1) % 400] for i in range(400)], np.uint32)
    (row,) = fp.compare(ring, 4, [f"{peer}:preset={preset}"], threads=1).summary.rows(named=True)
    assert row["error"] is None
    assert row["cut_ratio"] <= 8 / 400


@examples(10)
@given(edge_lists(), st.integers(1, 40), st.integers(0, 2**64 - 1))
def test_mtkahypar_partitions_any_graph(graph, k, seed):
    pytest.importorskip("mtkahypar")
    n, records = graph
    parts, seconds = child.mtkahypar(child.simple_graph(records, n), k, 1.03, seed, threads=1)
    assert (len(parts), parts.dtype) == (n, np.int64)
    assert seconds > 0
    loads = np.bincount(parts, minlength=k)
    assert len(loads) == k
    assert loads.max() <= np.ceil(1.03 * np.ceil(n / k))


@pytest.mark.parametrize("name", some_of(REAL, ["metis", "mtkahypar"]))
def test_real_peers_take_the_bound(datasets, tmp_path, name):
    """A wide bound is used, and none is exceeded."""
    pytest.importorskip(REAL[name])
    edges = fp.convert(datasets / "cora.txt.gz", tmp_path / "g.bin", num_vertices=2708)
    rows = {}
    for balance in (1.0, 1.2):
        (row,) = fp.compare(edges, 4, [name], threads=1, balance=balance).summary.rows(named=True)
        assert row["error"] is None
        most, bound = round(row["vertex_balance"] * 677), np.ceil(balance * 677)
        assert row["above_bound"] == (most > bound)
        assert row["seconds"] > 0
        assert row["bytes_per_vertex"] > 100  # it holds the graph
        assert most <= bound + 2  # METIS has no bound of exactly the mean
        rows[balance] = most
    assert rows[1.2] > rows[1.0]


@pytest.fixture
def measures(datasets, tmp_path):
    """Return what Mt-KaHyPar makes of a graph, in numbers."""
    pytest.importorskip("mtkahypar")
    graph = fp.convert(datasets / "cora.txt.gz", tmp_path / "cora.bin", num_vertices=2708)

    def measures(names, seed, threads):
        done = fp.compare(graph, 8, names, seed=seed, threads=threads)
        return done.summary.select("cut_ratio", "halo_rf", "edge_balance").rows()

    return measures


def test_mtkahypar_takes_seed_and_preset(measures):
    first, second = measures(["mtkahypar", "mtkahypar:preset=deterministic"], 2**31 + 1, 1)
    assert len({first, second, *measures(["mtkahypar"], 2, 1)}) == 3


@pytest.mark.soak
def test_mtkahypar_takes_threads_and_any_seed(measures):
    deterministic = ["mtkahypar:preset=deterministic"]
    assert measures(deterministic, 2**63, 1) == measures(deterministic, 2**63, 2)
    seeds = {*measures(["mtkahypar"], 2**31 + 1, 1), *measures(["mtkahypar"], 2, 1)}
    assert len(seeds | set(measures(PRESETS, 1, 1))) == 4  # 2^31 + 1 counts as 1


def test_mtkahypar_refuses_weights_whose_sum_would_wrap():
    pytest.importorskip("mtkahypar")
    indptr, indices = np.array([0, 1, 2]), np.array([1, 0])
    child.mtkahypar((indptr, indices, np.array([2**30 - 1] * 2)), 2, 1.03, 0, 1)
    with pytest.raises(RuntimeError, match="fewer than 2\\^30 records"):
        child.mtkahypar((indptr, indices, np.array([2**30] * 2)), 2, 1.03, 0, 1)


def test_an_unknown_number_of_constraints_is_refused():
    pytest.importorskip("pymetis")
    done = fp.compare(GRAPH, 2, ["metis:constraints=3"])
    assert done.summary["error"][0].endswith("constraints is 1 or 2, not 3")
    assert json.loads(done.to_json())["rows"][0]["error"] is not None


@pytest.mark.skipif(not PEERS["metis"].installed(), reason="needs METIS")
def test_modules_of_the_current_directory_are_not_those_of_a_peer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("random", "numpy", "torch", "json", "pymetis"):
        (tmp_path / f"{name}.py").write_text(f"open('{name} was imported', 'w')")
    (row,) = fp.compare(GRAPH, 2, ["metis"]).summary.rows(named=True)
    assert row["error"] is None
    assert not list(tmp_path.glob("* was imported"))
