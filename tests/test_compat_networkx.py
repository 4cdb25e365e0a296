"""`fastpart.compat.networkx`: parts by the names of nodes, and what networkx dispatches to it."""

import os
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

import fastpart as fp
from fastpart.compat.networkx import partition_nodes

nx = pytest.importorskip("networkx")

RING = nx.relabel_nodes(nx.connected_caveman_graph(6, 8), lambda node: ("node", str(node)))


def test_parts_hold_the_nodes():
    parts = partition_nodes(RING, 6, seed=3)
    assert nx.community.is_partition(RING, parts)
    assert nx.cut_size(RING, parts[0]) == 2
    assert sorted(map(len, parts)) == [8] * 6
    p = fp.partition(RING, 6, seed=3)
    by_name = dict(zip(RING, p.assignment.tolist(), strict=True))
    assert all({by_name[node] for node in part} == {number} for number, part in enumerate(parts))


@pytest.mark.parametrize(
    "graph",
    [
        nx.Graph(), nx.empty_graph("abc"), nx.Graph([("a", "a")]), nx.DiGraph([(1, 2), (2, 1)]),
        nx.MultiGraph([("x", "y"), ("x", "y"), ((), 0.5)]), nx.Graph([(3, 2), (2, 0), (0, 1)]),
        nx.Graph([(np.int64(1), np.int64(0))]), nx.subgraph(RING, list(RING)[5:20]),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")
def test_any_graph(graph):
    parts = partition_nodes(graph, 3)
    assert len(parts) == 3
    assert set().union(*parts) == set(graph)
    assert sum(map(len, parts)) == len(graph)


def test_weights_are_those_of_the_attribute():
    graph = nx.Graph()
    for i in range(12):
        graph.add_edge(f"n{i}", f"n{(i + 1) % 12}", weight=1 + 99 * (i % 6 != 1), w=1 + 99 * (i % 6 != 3))
    for weight in ("weight", "w"):
        a, _ = partition_nodes(graph, 2, weight=weight, balance=1.0)
        assert nx.cut_size(graph, a, weight=weight) == 2
    opened = fp.open_graph(graph, weights="weight")
    assert opened.weights.tolist() == [graph.edges[edge]["weight"] for edge in graph.edges]
    assert partition_nodes(graph, 2, weight=None) == partition_nodes(graph, 2, weight="absent")


DISPATCHED = """
import random
import networkx as nx

nx.config.warnings_to_ignore.add("cache")  # that an edge may have changed behind its back, and we read the graph itself

def halves(graph, **given):
    return nx.community.kernighan_lin_bisection(graph, backend="fastpart", **given)

ring = nx.relabel_nodes(nx.connected_caveman_graph(6, 8), lambda node: ("node", str(node)))
for graph in (ring, nx.karate_club_graph(), nx.path_graph("abcde"), nx.grid_2d_graph(9, 9), nx.Graph()):
    left, right = halves(graph, seed=1)
    assert nx.community.is_partition(graph, [left, right])
    assert abs(len(left) - len(right)) == len(graph) % 2
    if graph:
        theirs = nx.community.kernighan_lin_bisection(graph, seed=1)[0]
        assert nx.cut_size(graph, left, weight="weight") <= nx.cut_size(graph, theirs, weight="weight")
    assert halves(graph, seed=1) == (left, right)
assert halves(ring, seed=random.Random(5)) == halves(ring, seed=random.Random(5))
for given in ({"partition": (set(list(ring)[:24]), set(list(ring)[24:]))}, {"weight": lambda u, v, edge: 1}):
    try:
        halves(ring, **given)
    except NotImplementedError as error:
        print(error.__cause__)
try:
    halves(nx.DiGraph([(0, 1)]))
except nx.NetworkXNotImplemented as error:
    print(error)
ring.add_edge(("node", "0"), "new")
assert "new" in set().union(*halves(ring))
nx.config.backend_priority = ["fastpart"]
assert nx.community.kernighan_lin_bisection(ring, seed=1) == halves(ring, seed=1)
assert nx.community.kernighan_lin_bisection(ring, weight=lambda u, v, edge: 1)  # by networkx
assert len(nx.community.louvain_communities(ring, seed=1)) > 1
"""


def test_networkx_dispatches_bisections_to_the_installed_package(tmp_path):
    pyproject = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    ((name, value),) = pyproject["project"]["entry-points"]["networkx.backends"].items()
    if name not in entry_points(group="networkx.backends").names:  # what is installed may be older
        installed = tmp_path / "announced-1.0.dist-info"
        installed.mkdir()
        (installed / "METADATA").write_text("Name: announced\nVersion: 1.0\n")
        (installed / "entry_points.txt").write_text(f"[networkx.backends]\n{name} = {value}\n")
    home = str(Path(fp.__file__).parents[1])
    path = os.pathsep.join([str(tmp_path), home])
    command = [sys.executable, "-W", "error", "-c", DISPATCHED]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    partition, weight, directed = done.stdout.splitlines()
    assert "fastpart.refine improves a partition" in partition
    assert "a function is not taken" in weight
    assert directed == "not implemented for directed type"
