"""`fp.update`: a partition for a graph that has grown, for other bounds or another k, in which most vertices stay."""

import json
import math
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.cli import main
from soaked import examples, some_of

DATA = Path(__file__).parents[2] / "shared" / "data"


def planted(folder, n, m):
    fp.generate.planted(folder / "g.bin", n=n, m=m, classes=12, features=1, seed=1)
    return np.fromfile(folder / "g.bin", dtype=np.uint32).reshape(-1, 2)


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("graph"), 3000, 36_000)


def arriving(edges, n):
    """The graph without the last 5 % of a random order of its edges, and the whole."""
    shuffled = edges[np.random.default_rng(0).permutation(len(edges))]
    early = shuffled[: len(edges) * 95 // 100]
    return fp.open_graph(early), fp.open_graph(shuffled, num_vertices=n)


def changes(start, p):
    """Vertices that moved and parts that changed, counted by the definition."""
    old = dict(zip(p.parameters["old_parts"], range(p.k), strict=True))
    before = np.array([old.get(part, -1) for part in start.assignment.tolist()], dtype=np.int64)
    now = np.asarray(p.assignment)
    differs = np.append(before, np.full(len(p) - len(start), -1)) != now
    changed = {*now[differs].tolist(), *before[differs[: len(start)]].tolist()} - {-1}
    return int(differs[: len(start)].sum()), sorted(changed)


def check(start, p, moves=0.05):
    moved, changed = changes(start, p)
    assert (p.parameters["moved"], p.parameters["changed_parts"]) == (moved, changed)
    assert p.loads.max() <= p.cap
    return moved <= math.ceil(moves * len(start))


@pytest.mark.parametrize("k", [4, 8])
def test_few_vertices_move_where_edges_arrive(edges, k):
    old, new = arriving(edges, 3000)
    start = fp.multilevel(old, k)
    p = fp.update(new, start)
    assert check(start, p)
    assert p.cut_ratio <= 1.04 * fp.multilevel(new, k).cut_ratio
    assert p.algorithm == "update"
    assert p.parameters["origin"] == {"algorithm": "multilevel", "parameters": start.parameters}
    assert p.parameters["old_parts"] == list(range(k))
    for threads in (1, 2, 4):
        assert fp.update(new, start, threads=threads) == p


@pytest.mark.parametrize(
    ("name", "k"),
    some_of(product(["com-dblp", "cit-hep-ph"], [4, 8, 32]), [("cit-hep-ph", 8)]),
)
def test_real_graphs(name, k):
    if not (DATA / name / "edges.npy").exists():
        pytest.skip("the graphs are not here")
    old, new = arriving(np.load(DATA / name / "edges.npy"), {"com-dblp": 317_080, "cit-hep-ph": 34_546}[name])
    start = fp.multilevel(old, k)
    p = fp.update(new, start)
    assert check(start, p)
    assert p.cut_ratio <= 1.04 * fp.multilevel(new, k).cut_ratio


@pytest.mark.parametrize("k", [4, 8])
def test_one_part_more(edges, k):
    _, graph = arriving(edges, 3000)
    start = fp.multilevel(graph, k)
    p = fp.update(graph, start, k=k + 1)
    check(start, p)
    needed = np.maximum(start.loads - p.cap, 0).sum()
    assert p.parameters["moved"] <= 1.2 * needed
    assert p.parameters["old_parts"] == [*range(k), None]
    assert p.loads[k] > 0
    assert p.cut_ratio <= 1.3 * fp.multilevel(graph, k + 1).cut_ratio
    for threads in (1, 2, 4):
        assert fp.update(graph, start, k=k + 1, threads=threads) == p


@pytest.mark.parametrize("k", [4, 8])
def test_one_part_less(edges, k):
    _, graph = arriving(edges, 3000)
    start = fp.multilevel(graph, k)
    p = fp.update(graph, start, k=k - 1)
    check(start, p)
    (gone,) = set(range(k)) - set(p.parameters["old_parts"])
    assert p.parameters["moved"] <= 1.25 * start.loads.min()
    assert p.parameters["old_parts"] == [k - 1 if part == gone else part for part in range(k - 1)]
    assert p.cut_ratio <= 1.3 * fp.multilevel(graph, k - 1).cut_ratio
    assert fp.update(graph, start, k=k - 1, threads=2) == fp.update(graph, start, k=k - 1, threads=1) == p


def test_new_vertices_go_where_their_neighbours_are():
    triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [2, 3]])
    grown = np.vstack([triangles, [[6, 0], [6, 1], [7, 4], [7, 5], [8, 7], [8, 7]]])
    p = fp.update(grown, [0, 0, 0, 1, 1, 1], balance=1.2)
    assert p.assignment.tolist() == [0, 0, 0, 1, 1, 1, 0, 1, 1]
    assert (p.parameters["moved"], p.parameters["changed_parts"]) == (0, [0, 1])
    isolated = fp.open_graph(triangles, num_vertices=40)
    p = fp.update(isolated, [0, 0, 0, 1, 1, 1])
    assert p.parameters["moved"] == 0
    assert p.loads.max() <= p.cap == 21


def test_without_moves_the_old_vertices_stay(edges):
    old, new = arriving(edges, 3000)
    start = fp.algorithms.hash(old, 8)
    p = fp.update(new, start, moves=0, balance=1.3)
    assert p.assignment[: len(start)].tolist() == start.assignment.tolist()
    assert fp.update(new, start, moves=0.5, balance=1.3).cut_ratio < p.cut_ratio
    assert fp.update(new, start, moves=1, balance=1.3).cut_ratio < 0.8 * p.cut_ratio


def test_caps_come_before_the_budget(edges, caplog):
    graph = fp.open_graph(edges, num_vertices=3000)
    start = fp.multilevel(graph, 6, balance=1.3, volume_balance=1.4)
    lopsided = fp.VertexPartition(np.where(start.assignment == 1, 0, start.assignment), 6)
    with caplog.at_level("INFO", logger="fastpart"):
        p = fp.update(graph, lopsided, moves=0.01, balance=1.05)
    assert not check(lopsided, p, 0.01)
    assert "moves=0.01" in caplog.text
    bounded = fp.update(graph, start, volume_balance=1.1, balance_on=np.arange(3000) % 7 == 0, moves=0.02)
    assert bounded.volume_loads.max() <= bounded.volume_cap
    assert bounded.weight_loads.max() <= bounded.weight_cap
    assert fp.update(graph, start).parameters["balance"] == 1.3
    assert fp.update(graph, start, min_balance=0.95).loads.min() >= 475


def test_machines_and_weights(edges):
    old, new = arriving(edges, 3000)
    start = fp.multilevel(old, 4, machines=[2, 2], effort="quick")
    assert fp.update(new, start).parameters["machines"] == [2, 2]
    assert fp.update(new, start, k=5).parameters["machines"] is None
    path = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    weighted = fp.open_graph(path, weights=[900, 1, 900, 1])
    assert fp.update(weighted, [0, 1, 1, 0], balance=1.0, moves=1).evaluate().weighted_cut == 2


edge = st.tuples(st.integers(0, 19), st.integers(0, 19))


@examples(26)
@given(st.lists(edge, max_size=60), st.integers(1, 8), st.integers(1, 8), st.floats(0, 1), st.data())
def test_any_partition_of_any_graph(records, old_k, k, moves, data):
    graph = fp.open_graph(np.array(records, dtype=np.uint32).reshape(-1, 2), num_vertices=20)
    parts = data.draw(st.lists(st.integers(0, old_k - 1), max_size=20))
    start = fp.VertexPartition(parts, old_k)
    p = fp.update(graph, start, k=k, moves=moves, balance=1.2)
    assert (p.k, len(p)) == (k, 20)
    within = check(start, p, moves)
    fits = np.bincount(start.assignment, minlength=1).max(initial=0) <= p.cap
    if old_k == k and fits:
        assert within
    assert fp.update(graph, start, k=k, moves=moves, balance=1.2, threads=2) == p


def test_an_empty_part_is_filled_with_new_vertices():
    edges = np.array([[v, v + 1] for v in range(1, 18)] + [[0, 1]])
    p = fp.update(fp.open_graph(edges, num_vertices=20), fp.VertexPartition([0], 2), moves=0, balance=1.2)
    assert (p.assignment[0], p.parameters["moved"]) == (0, 0)


def test_small_and_odd_graphs():
    nothing = fp.open_graph(np.empty((0, 2), np.uint32), num_vertices=0)
    assert len(fp.update(nothing, [], k=3)) == 0
    one = fp.update(np.array([[0, 0]]), [0], k=1)
    assert (one.assignment.tolist(), one.parameters["moved"]) == ([0], 0)
    assert fp.update(np.array([[0, 1], [1, 2]]), [0, 1, 2], k=1).assignment.tolist() == [0, 0, 0]
    fresh = fp.update(np.array([[0, 1], [1, 2], [3, 4], [4, 5], [5, 3], [2, 0]]), [], k=2)
    assert fresh.loads.tolist() == [3, 3]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"moves": 1.5}, fp.errors.ParameterError, "moves: 1.5 is not a share from 0 to 1"),
        ({"moves": float("nan")}, fp.errors.ParameterError, "moves"),
        ({"balance": 0.9}, fp.errors.ParameterError, "balance: 0.9 is not a ratio"),
        ({"k": 0}, fp.errors.ParameterError, "k: 0"),
        ({"machines": [1, 2]}, fp.errors.ParameterError, "machines"),
        ({"balance_on": [1]}, fp.errors.ParameterError, "balance_on: 1 weights for 4 vertices"),
        ({"memory_limit": 100}, fp.errors.MemoryBudgetError, "update on 4 vertices, 2 parts"),
    ],
)
def test_refusals(arguments, error, text):
    with pytest.raises(error, match=re.escape(text)):
        fp.update(np.array([[0, 1], [1, 2], [2, 3]]), [0, 1, 1], **arguments)


def test_refusals_of_partitions(edges):
    graph = fp.open_graph(edges, num_vertices=3000)
    with pytest.raises(
        fp.errors.ParameterError, match=r"graph: it has 3 vertices, the partition has 4.*num_vertices=4"
    ):
        fp.update(np.array([[0, 1], [1, 2]]), [0, 1, 1, 0])
    with pytest.raises(fp.errors.ParameterError, match="parts of edges"):
        fp.update(graph, fp.algorithms.dbh(graph, 4))
    with pytest.raises(fp.errors.ParameterError, match='objective="halo"'):
        fp.update(graph, fp.multilevel(graph, 4, objective="halo", effort="quick"))
    with pytest.raises(fp.errors.ParameterError, match="balance_on: the partition balances weights"):
        fp.update(graph, fp.spring(graph, 4, balance_on=np.ones(3000, int)))
    with pytest.raises(
        TypeError, match=r"update\(\) takes the graph first, as in update\(graph, partition\)"
    ):
        fp.update(fp.algorithms.hash(graph, 4), graph)


def test_the_adjacency_may_lie_in_a_file(tmp_path):
    """88 bytes per vertex are enough where the adjacency takes 400."""
    planted(tmp_path, 4000, 200_000)
    start = np.arange(4000) % 8
    expected = fp.update(tmp_path / "g.bin", start)
    limited = fp.update(tmp_path / "g.bin", start, memory_limit=1_450_000, tmp_dir=tmp_path)
    assert limited == expected


def test_the_command_line(edges, tmp_path, capsys):
    old, _ = arriving(edges, 3000)
    np.save(tmp_path / "new.npy", edges)
    grown = fp.open_graph(tmp_path / "new.npy")
    start, out = tmp_path / "parts", tmp_path / "updated"
    fp.spring(old, 8).save(start, graph=old)
    assert main(["update", str(tmp_path / "new.npy"), str(start), "-k", "9", "-o", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["k"] == 9
    assert fp.open_partition(out) == fp.update(grown, start, k=9)
    assert main(["update", str(tmp_path / "new.npy"), str(start), "-o", str(start), "-q"]) == 0
    assert fp.open_partition(start, grown).algorithm == "update"
    for arguments, text in [
        (["--moves", "2"], "moves: 2"),
        (["--move", "1"], "unknown option '--move'"),
        (["-k", "0"], "k: 0"),
    ]:
        assert main(["update", str(tmp_path / "new.npy"), str(start), *arguments]) == 2
        assert text in capsys.readouterr().err


@pytest.fixture
def ring(tmp_path):
    """A directory with 4 parts of a ring of 400 vertices, and the records of the ring."""
    records = np.stack([np.arange(400), (np.arange(400) + 1) % 400], axis=1)
    start = fp.VertexPartition(np.arange(400) // 100, 4)
    start.save(tmp_path / "parts", graph=records, features=np.eye(400, 8))
    return tmp_path / "parts", records


def files(folder):
    return {
        file.relative_to(folder).as_posix(): (file.stat().st_ino, file.read_bytes())
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def test_a_directory_keeps_the_parts_that_do_not_change(ring, tmp_path):
    parts, records = ring
    before = files(parts)
    grown = np.vstack([records, [[110, 120], [130, 140], [400, 150]]])
    p = fp.update(grown, parts, moves=0, balance=1.1)
    features = np.vstack([np.eye(400, 8), np.ones((1, 8))])
    p.save(parts, graph=grown, features=features)
    stored, after = fp.open_partition(parts, grown), files(parts)
    assert stored == p
    assert stored.manifest["changed_parts"] == p.parameters["changed_parts"] == [1]
    for name, (inode, content) in after.items():
        if name.startswith("part-") and not name.startswith("part-00001") and "edge_ids" not in name:
            assert (inode, content) == before[name]
    p.save(tmp_path / "anew", graph=grown, features=features)
    anew = files(tmp_path / "anew")
    assert fp.open_partition(tmp_path / "anew").manifest["changed_parts"] == [0, 1, 2, 3]
    assert {name: content for name, (_, content) in anew.items() if name != "manifest.json"} == {
        name: content for name, (_, content) in after.items() if name != "manifest.json"
    }


def test_parts_that_change_only_at_their_border_are_written_anew(ring):
    parts, records = ring
    grown = np.vstack([records, [[50, 350]]])
    p = fp.update(grown, parts, moves=0)
    assert p.parameters["changed_parts"] == []
    p.save(parts, graph=grown, features=np.eye(400, 8))
    assert fp.open_partition(parts).manifest["changed_parts"] == [0, 3]
    p.save(parts, graph=grown, features=np.ones((400, 8)))
    assert fp.open_partition(parts).manifest["changed_parts"] == [0, 1, 2, 3]


@pytest.mark.parametrize("schema", [2, 3])
def test_rows_that_shift_in_another_part_do_not_count(ring, schema):
    """Vertices of parts 2 and 3 change places. The rows behind them shift, and part 1 sees no more than that."""
    parts, records = ring
    records = np.vstack([records, [[190, 299]]])
    fp.VertexPartition(np.arange(400) // 100, 4).save(parts, graph=records, features=np.eye(400, 8))
    if schema == 2:
        (parts / "manifest.json").write_text(
            json.dumps(fp.open_partition(parts).manifest | {"schema": schema})
        )
        for file in parts.glob("*/halo_rows.npy"):
            file.unlink()
    p = fp.update(records, parts, moves=0)
    p.assignment = p.assignment.copy()
    p.assignment[[250, 350]] = 3, 2
    p.save(parts, graph=records, features=np.eye(400, 8))
    stored = fp.open_partition(parts)
    assert stored.manifest["changed_parts"] == [2, 3]
    halo = stored.parts[1].halo.tolist()
    assert stored.parts[1].halo_rows[halo.index(299)] == 98


def test_a_part_that_takes_the_number_of_another(ring):
    parts, records = ring
    p = fp.update(records, parts, k=3)
    p.save(parts, graph=records, features=np.eye(400, 8))
    stored = fp.open_partition(parts, records)
    assert (stored, len(stored.parts)) == (p, 3)
    assert set(p.parameters["changed_parts"]) <= set(stored.manifest["changed_parts"])


def test_a_graph_that_claims_billions_of_vertices_is_refused_before_they_are_allocated():
    graph = fp.open_graph(np.array([[0, 1], [1, 2], [2, 3]]), num_vertices=2**32 - 2)
    with pytest.raises(
        fp.errors.MemoryBudgetError, match=r"update: the parts of 4,294,967,294 vertices need 17,179\.9 MB"
    ):
        fp.update(graph, [0, 0, 1, 1], k=2, memory_limit="1G")
