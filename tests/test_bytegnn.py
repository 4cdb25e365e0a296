"""ByteGNN's partitioner: against its rule in plain Python, and what must hold on every graph."""

import json
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.cli import main
from fastpart.measures.compare.entries import peak
from soaked import examples
from strategies import edge_lists, raw

SPLITS = ("train", "val", "test")
THIRDS = (1 / 3, 1 / 3, 1 / 3)


def cap_of(items, k, balance):
    return math.ceil(min(balance, k) * items / k)


def blocks_of(n, edges, centres, hops, directed):
    """Return the block of each vertex: its nearest centre, of several the lowest. None is beyond all."""
    sources = [set() for _ in range(n)]
    for u, v in edges.tolist():
        sources[v].add(u)
        if not directed:
            sources[u].add(v)
    nearest = [(math.inf, None)] * n
    for centre in sorted(centres):
        level, seen = {centre}, {centre}
        for hop in range(hops + 1):
            for v in level:
                nearest[v] = min(nearest[v], (hop, centre), key=lambda known: known[0])
            level = {u for v in level for u in sources[v]} - seen
            seen |= level
    return nearest


@cache
def can_finish(coming, loads, caps):
    """Return whether vertices of these splits (0 is none), in any order, find parts under the caps."""
    if not coming:
        return True
    first, rest = coming[0], coming[1:]
    for part, load in enumerate(loads):
        more = tuple(x + (i in (0, first)) for i, x in enumerate(load))
        if all(map(int.__le__, more, caps)):
            after = tuple(sorted((*loads[:part], more, *loads[part + 1 :])))
            if can_finish(rest, after, caps):
                return True
    return False


def oracle(n, edges, k, split_of, hops, weights, rule, balances, directed):
    """Return the part of each vertex. ``split_of`` is 0 for none, or 1, 2 or 3."""
    nearest = blocks_of(n, edges, np.flatnonzero(split_of).tolist(), hops, directed)
    totals = [n, *((split_of == split).sum() for split in (1, 2, 3))]
    caps = tuple(cap_of(items, k, balances[i > 0]) for i, items in enumerate(totals))
    part_of, loads = [None] * n, [(0, 0, 0, 0)] * k
    near = [[b for a, b in [*edges.tolist(), *edges[:, ::-1].tolist()] if a == v != b] for v in range(n)]

    def after(part, piece):
        counts = [len(piece), *(sum(split_of[v] == split for v in piece) for split in (1, 2, 3))]
        return tuple(int(x + y) for x, y in zip(loads[part], counts, strict=True))

    def fits(part, piece):
        more = after(part, piece)
        coming = [int(split_of[v]) for v in range(n) if part_of[v] is None and v not in piece]
        state = tuple(sorted((*loads[:part], more, *loads[part + 1 :])))
        return all(map(int.__le__, more, caps)) and can_finish(tuple(sorted(coming)), state, caps)

    def key(part, piece):
        crossing = sum(part_of[u] == part for v in piece for u in near[v])
        ce = crossing / loads[part][0] if loads[part][0] else 0.0
        bs = 1.0
        for weight, load, total in zip(weights, loads[part][1:], totals[1:], strict=True):
            bs -= weight * (load / (total / k)) if load else 0
        return (ce + (1 / n if rule == "balanced" else 0)) * bs, bs, -loads[part][0], -part

    def best(piece, fitting):
        open_parts = [part for part in range(k) if fits(part, fitting)]
        return max(open_parts, key=lambda part: key(part, piece), default=None)

    def put(part, piece):
        loads[part] = after(part, piece)
        for v in piece:
            part_of[v] = part

    blocks = {}
    for v, (distance, centre) in enumerate(nearest):
        blocks.setdefault(centre, []).append((distance, v))
    rest = [v for _, v in blocks.pop(None, [])]

    def largest(members):
        return max(sum(split_of[v] == split for _, v in members) for split in (1, 2, 3))

    for _, members in sorted(blocks.items(), key=lambda block: (-largest(block[1]), block[0])):
        piece = [v for _, v in sorted(members)]
        while piece:
            part, taken = best(piece, piece), len(piece)
            if part is None:
                part = best(piece, piece[:1])
                taken = max(size for size in range(1, len(piece)) if fits(part, piece[:size]))
            put(part, piece[:taken])
            piece = piece[taken:]
    for v in rest:
        found = [part_of[u] for u in near[v]]
        open_parts = [part for part in range(k) if loads[part][0] < caps[0]]
        put(min(open_parts, key=lambda p: (-found.count(p) * (caps[0] - loads[p][0]), loads[p][0], p)), [v])
    return part_of


def named(split_of):
    """Return splits as users give them."""
    return {name: np.flatnonzero(split_of == split) for split, name in enumerate(SPLITS, 1)}


@st.composite
def cases(draw, max_n=10, max_m=25):
    """Return n, edges, and the one split of each vertex, some of which are for training."""
    n, edges = draw(edge_lists(max_n, max_m))
    assume(n)
    split_of = np.array(draw(st.lists(st.sampled_from([0, 0, 0, 1, 1, 2, 3]), min_size=n, max_size=n)))
    split_of[draw(st.integers(0, n - 1))] = 1
    return n, edges, split_of


@pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")
@examples(80)
@given(
    case=cases(),
    k=st.integers(1, 4),
    hops=st.integers(0, 3),
    weights=st.sampled_from([THIRDS, (1, 0, 0), (0.5, 0.3, 0.2), (0, 0, 0)]),
    rule=st.sampled_from(["balanced", "paper"]),
    balances=st.sampled_from([(1, 1), (1.03, 1.05), (1.5, 1), (1, 2), (2, 2)]),
    directedness=st.sampled_from(["undirected", "directed"]),
)
def test_it_is_the_rule(case, k, hops, weights, rule, balances, directedness):
    n, edges, split_of = case
    graph = fp.open_graph(edges, num_vertices=n, directedness=directedness)
    p = fp.algorithms.bytegnn(
        graph, k, splits=named(split_of), hops=hops, weights=weights, rule=rule,
        balance=balances[0], split_balance=balances[1],
    )  # fmt: skip
    directed = directedness == "directed"
    assert p.assignment.tolist() == oracle(n, edges, k, split_of, hops, weights, rule, balances, directed)


@pytest.mark.parametrize("seed", range(60))
def test_large_blocks_are_split_as_the_rule_says(seed):
    dice = np.random.default_rng(seed)
    n = int(dice.integers(7, 10))
    edges = dice.integers(0, n, (16, 2), np.uint32)
    split_of = np.zeros(n, int)
    split_of[dice.choice(n, 2 + seed % 2, replace=False)] = 1
    given = {"hops": 2, "weights": (0.1, 0, 0), "rule": "balanced"}
    p = fp.algorithms.bytegnn(
        fp.open_graph(edges, num_vertices=n), 3, splits=named(split_of), balance=1, split_balance=1, **given
    )
    assert p.assignment.tolist() == oracle(n, edges, 3, split_of, *given.values(), (1, 1), False)


@examples(50)
@given(
    case=cases(30, 60),
    k=st.integers(2, 4),
    hops=st.integers(0, 2),
    weights=st.sampled_from([THIRDS, (1, 0, 0), (0.9, 0.9, 0.9)]),
    rule=st.sampled_from(["balanced", "paper"]),
)
@pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")
def test_scores_alone_decide_where_no_cap_binds(case, k, hops, weights, rule):
    n, edges, split_of = case
    graph = fp.open_graph(edges, num_vertices=n)
    given = {"hops": hops, "weights": weights, "rule": rule}
    p = fp.algorithms.bytegnn(graph, k, splits=named(split_of), balance=1e308, split_balance=1e308, **given)
    assert p.assignment.tolist() == oracle(n, edges, k, split_of, hops, weights, rule, (1e308, 1e308), False)


@pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")
@given(
    case=cases(60, 200), k=st.integers(1, 9), hops=st.integers(0, 3),
    balances=st.sampled_from([(1, 1), (1.03, 1.05), (1, 1.5)]),
    rule=st.sampled_from(["balanced", "paper"]),
)  # fmt: skip
def test_caps_are_kept_exactly(case, k, hops, balances, rule):
    n, edges, split_of = case
    p = fp.algorithms.bytegnn(
        fp.open_graph(edges, num_vertices=n), k, splits=named(split_of), hops=hops, rule=rule,
        balance=balances[0], split_balance=balances[1], on_infeasible="error",
    )  # fmt: skip
    assert p.loads.tolist() == np.bincount(p.assignment, minlength=k).tolist()
    assert p.loads.max() <= p.cap == cap_of(n, k, balances[0])
    for split in (1, 2, 3):
        loads = np.bincount(p.assignment[split_of == split], minlength=k)
        assert p.weight_loads[split - 1].tolist() == loads.tolist()
        assert loads.max() <= p.weight_cap[split - 1] == cap_of((split_of == split).sum(), k, balances[1])


@pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")
@given(graph=edge_lists(12, 30), k=st.integers(1, 5), data=st.data())
def test_overlapping_splits_raise_only_the_caps_on_splits(graph, k, data):
    n, edges = graph
    assume(n)
    ids = st.sets(st.integers(0, n - 1)).map(sorted)
    splits = {"train": data.draw(ids) or [0], "val": data.draw(ids), "test": data.draw(ids)}
    p = fp.algorithms.bytegnn(
        fp.open_graph(edges, num_vertices=n), k, splits=splits, balance=1, split_balance=1
    )
    assert p.loads.max() <= p.cap == math.ceil(n / k)
    for index, name in enumerate(SPLITS):
        loads = np.bincount(p.assignment[splits[name]], minlength=k)
        assert p.weight_loads[index].tolist() == loads.tolist()
        assert p.weight_cap[index] == max(loads.max(), math.ceil(len(splits[name]) / k))


def test_what_no_caps_can_hold_is_said():
    splits = {"train": [0, 1], "val": [1, 2], "test": [0, 2]}  # any two vertices share one
    edges = np.array([[0, 1], [2, 3]])
    given = {"k": 2, "splits": splits, "split_balance": 1}
    with pytest.warns(
        fp.errors.CapacityWarning, match="split_balance: the parts cannot be kept within 1 .* vertices"
    ):
        p = fp.algorithms.bytegnn(edges, **given)
    assert sorted(p.weight_cap.tolist()) == [1, 1, 2]
    with pytest.raises(fp.errors.CapacityError, match="split_balance"):
        fp.algorithms.bytegnn(edges, **given, on_infeasible="error")


@pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")
def test_caps_are_raised_by_one_at_a_time():
    splits = {"train": [0, 1, 3, 4], "val": [1, 4], "test": [0, 2, 3, 5, 6, 7]}
    p = fp.algorithms.bytegnn(
        np.array([[5, 6], [7, 4]]), 2, splits=splits, hops=0, balance=1.5, split_balance=1
    )
    assert p.weight_cap.tolist() == [2, 2, 4]  # where raised by three, 6 test vertices are in one part


@given(case=cases(40, 120), k=st.integers(1, 5), directed=st.booleans())
@pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")
def test_threads_and_kinds_of_input_change_nothing(tmp_path_factory, case, k, directed):
    n, edges, split_of = case
    kind = {"num_vertices": n, "directedness": "directed" if directed else "undirected"}
    path = raw(tmp_path_factory.mktemp("g") / "g.bin", edges)
    opened = [
        fp.open_graph(edges, **kind),
        fp.open_graph(path, dtype="u32", io="mmap", **kind),
        fp.open_graph(path, dtype="u32", io="read", **kind),
    ]
    if not directed:
        both = np.concatenate([edges, edges[:, ::-1]])
        opened.append(fp.open_graph(both, num_vertices=n, directedness="symmetric"))
    given = {"k": k, "splits": named(split_of)}
    one, *others = [fp.algorithms.bytegnn(g, **given, threads=t) for g in opened for t in (1, 2, 3)]
    assert all(np.array_equal(one.assignment, other.assignment) for other in others)


def test_threads_change_nothing_on_a_graph_of_many_blocks_of_records(tmp_path):
    graph = fp.generate.planted(tmp_path / "g.bin", n=30_000, m=400_000, seed=1)
    splits = {"train": np.arange(0, 30_000, 50), "test": np.arange(7, 30_000, 90)}
    one, two = (fp.algorithms.bytegnn(graph, 8, splits=splits, threads=threads) for threads in (1, 2))
    assert one == two == fp.algorithms.bytegnn(graph, 8, splits=splits, memory_limit="1.2M", tmp_dir=tmp_path)


def test_files_ids_and_masks_are_the_same_splits(tmp_path):
    ring = np.array([[v, (v + 1) % 30] for v in range(30)])
    ids = {"train": [3, 20], "val": [9]}
    masks = {name: np.isin(np.arange(30), some) for name, some in ids.items()}
    rows = {f"{name}_masks": np.stack([~mask, mask]) for name, mask in masks.items()}
    np.savez(tmp_path / "s.npz", **masks)
    np.savez(tmp_path / "rows.npz", **rows)
    p = fp.algorithms.bytegnn(ring, 3, splits=ids)
    assert (
        p
        == fp.algorithms.bytegnn(ring, 3, splits=masks)
        == fp.algorithms.bytegnn(ring, 3, splits=tmp_path / "s.npz")
    )
    assert p == fp.algorithms.bytegnn(ring, 3, splits=tmp_path / "rows.npz", split=1)
    assert p != fp.algorithms.bytegnn(ring, 3, splits=tmp_path / "rows.npz", split=0)
    assert p.parameters["splits"] == {"train": 2, "val": 1}


@pytest.mark.parametrize(
    ("rule", "parts"), [("paper", [0] * 18 + [1] * 18), ("balanced", [0] * 15 + [1] * 18 + [0] * 3)]
)
def test_rules(rule, parts):
    """A path of 12 blocks with centres 1, 4, 7, ... The score of a part is 0 when it has 6 of them.

    As published, the first part takes each block until then, since no other part has an edge to it. Otherwise an empty
    part comes before one that is nearly full.
    """
    path = np.array([[v, v + 1] for v in range(35)])
    splits = {"train": np.arange(1, 36, 3)}
    given = {"hops": 1, "balance": 2.0, "split_balance": 2.0, "weights": (1, 0, 0)}
    assert fp.algorithms.bytegnn(path, 2, splits=splits, rule=rule, **given).assignment.tolist() == parts


def test_as_published_the_first_part_takes_all_that_is_connected_up_to_its_cap():
    path = np.array([[v, v + 1] for v in range(35)])
    given = {
        "splits": {"train": np.arange(1, 36, 3)},
        "hops": 1,
        "split_balance": 4.0,
        "weights": (0.1, 0, 0),
    }
    for balance, first in ((2.0, 18), (3.0, 27), (4.0, 36)):
        p = fp.algorithms.bytegnn(path, 4, rule="paper", balance=balance, **given)
        assert p.assignment.tolist() == [0] * first + [1] * (36 - first)


def test_a_block_that_fits_nowhere_is_split_in_breadth_first_order():
    """A star with centre 9, and what hangs on its leaves: 9, then 0 to 8, then the second level."""
    star = np.array([[9, v] for v in range(9)] + [[v, 10 + v] for v in range(9)])
    p = fp.algorithms.bytegnn(star, 2, splits={"train": [9]}, balance=1.2)
    assert p.cap == 12
    assert np.flatnonzero(p.assignment == 0).tolist() == [*range(10), 10, 11]
    assert np.flatnonzero(p.assignment == 1).tolist() == list(range(12, 19))


def test_what_no_block_reaches_is_streamed():
    """Two paths. On the first is a centre. The other follows its neighbours, as LDG has it."""
    paths = np.array([[v, v + 1] for v in [*range(9), *range(10, 19)]])
    p = fp.algorithms.bytegnn(paths, 2, splits={"train": [0]}, balance=1.0)
    assert p.assignment[:10].tolist() == [0] * 3 + [0] * 7
    assert p.assignment[10:].tolist() == [1] * 10


def test_the_stream_knows_how_full_the_parts_are():
    """Part 0 has 3 of 4 vertices before. Two edges of 4 to it count 1 each, the one to part 1 counts 3."""
    edges = np.array([[0, 1], [1, 2], [4, 0], [4, 1], [4, 3], [5, 6]])
    graph = fp.open_graph(edges, num_vertices=8)
    given = {"splits": {"train": range(4)}, "hops": 0, "weights": (0, 0, 0), "split_balance": 2}
    assert fp.algorithms.bytegnn(graph, 2, **given, balance=1.0).assignment[:5].tolist() == [0, 0, 0, 1, 1]


def test_blocks_grow_against_the_direction_of_edges():
    """Training at 2 draws 0 and 1. What 2 points at is not drawn."""
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [5, 6], [6, 7], [7, 8], [8, 9]])
    directed = fp.open_graph(edges, num_vertices=10, directedness="directed")
    splits = {"train": [2, 9]}
    p = fp.algorithms.bytegnn(directed, 2, splits=splits, balance=1.0)
    assert set(p.assignment[:3]) == {p.assignment[2]}
    assert set(p.assignment[7:]) == {p.assignment[9]}
    nearest = blocks_of(10, edges, [2, 9], 2, directed=True)
    assert [centre for _, centre in nearest] == [2, 2, 2, None, None, None, None, 9, 9, 9]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({}, "splits: .* Pass splits= with train"),
        ({"splits": {"val": [1]}}, "splits: there are no training vertices"),
        ({"splits": {"train": []}}, "splits: there are no training vertices"),
        ({"splits": {"train": [4]}}, "splits: train holds the id 4, outside 0..3"),
        ({"splits": {"train": [True, False]}}, "splits: train: 2 rows for 4 vertices"),
        ({"splits": {"train_masks": np.ones((2, 4))}}, "Choose a row of the masks with split="),
        ({"splits": {"train": [1]}, "weights": (1, 2, 3)}, "weights: .* Use three numbers from 0 to 1"),
        ({"splits": {"train": [1]}, "weights": (0.5, 0.5)}, "weights: .* Use three numbers"),
        ({"splits": {"train": [1]}, "weights": (math.nan, 0, 0)}, "weights: .* Use three numbers"),
        ({"splits": {"train": [1]}, "split_balance": 0.9}, "split_balance: 0.9 is not a ratio"),
        ({"splits": {"train": [1]}, "hops": 256}, "hops: 256 is not between 0 and 255"),
        ({"splits": {"train": [1]}, "rule": "papers"}, "Did you mean 'paper'"),
    ],
)
def test_refusals(given, error):
    with pytest.raises(fp.errors.ParameterError, match=error):
        fp.algorithms.bytegnn(np.array([[0, 1], [2, 3]]), 2, **given)


@pytest.mark.parametrize("wrong", [{"weights": 0.5}, {"weights": "abc"}, {"splits": [1, 2]}])
def test_types(wrong):
    with pytest.raises(TypeError, match=next(iter(wrong))):
        fp.algorithms.bytegnn(np.array([[0, 1], [2, 3]]), 2, **({"splits": {"train": [0]}} | wrong))


def test_memory_is_requested_and_enough():
    n = 1 << 20
    graph = fp.open_graph(np.random.default_rng(0).integers(0, n, (n, 2), np.uint32), num_vertices=n)
    splits = {"train": np.arange(0, n, 9), "test": np.arange(1, n, 9)}
    with pytest.raises(fp.errors.MemoryBudgetError, match=rf"blocks of {n} vertices \(25 bytes each\)"):
        fp.algorithms.bytegnn(graph, 4, splits=splits, memory_limit="24M")
    needed = fp.info(graph, k=4)["memory"]
    assert 25 * n <= needed["bytegnn"] <= 25.1 * n
    with peak() as taken:
        fp.algorithms.bytegnn(graph, 4, splits=splits, threads=1)
    assert taken.growth <= needed["adjacency"] + needed["bytegnn"] + 4 * n  # the splits as Python has them


def test_a_directory_keeps_its_caps(tmp_path):
    ring = np.array([[v, (v + 1) % 30] for v in range(30)])
    p = fp.algorithms.bytegnn(ring, 3, splits={"train": [3, 20], "val": [9]})
    p.save(tmp_path / "parts", graph=ring)
    stored = fp.open_partition(tmp_path / "parts")
    assert stored == p
    assert stored.weight_cap.tolist() == p.weight_cap.tolist() == [1, 1, 0]
    assert stored.weight_loads.tolist() == p.weight_loads.tolist()
    assert stored.parameters["splits"] == {"train": 2, "val": 1}


def test_compare_gives_it_the_splits():
    ring = np.array([[v, (v + 1) % 30] for v in range(30)])
    splits = {"train": [3, 20], "val": [9]}
    done = fp.compare(
        ring, 2, ["bytegnn", "bytegnn:rule=paper:hops=1", "hash"], splits=splits, fanouts=[2, 2]
    )
    table = done.summary
    assert table["error"].null_count() == 3
    expected = fp.predict_traffic(
        fp.algorithms.bytegnn(ring, 2, splits=splits), [2, 2], graph=ring, splits=splits, cache=0
    )
    assert table["remote_rows"][0] == round(expected.remote_rows)
    names = fp.compare(ring, 2, peers=False, splits=splits).summary["algorithm"].to_list()
    assert "bytegnn" in names
    assert "bytegnn" not in fp.compare(ring, 2, peers=False).summary["algorithm"].to_list()
    assert "Pass splits=" in fp.compare(ring, 2, ["bytegnn"]).summary["error"][0]


def test_the_command_line(tmp_path, capsys):
    ring = np.array([[v, (v + 1) % 30] for v in range(30)], dtype=np.uint32)
    file = raw(tmp_path / "g.bin", ring)
    np.savez(tmp_path / "s.npz", train=[3, 20], val=[9])
    words = ["partition", str(file), "-k", "2", "--algorithm", "bytegnn", "--splits", str(tmp_path / "s.npz")]
    assert (
        main([*words, "--weights", "0.5,0.3,0.2", "--rule", "paper", "-o", str(tmp_path / "parts"), "--json"])
        == 0
    )
    assert json.loads(capsys.readouterr().out)
    p = fp.open_partition(tmp_path / "parts")
    assert p.parameters["weights"] == [0.5, 0.3, 0.2]
    assert p == fp.algorithms.bytegnn(
        ring, 2, splits=tmp_path / "s.npz", weights=(0.5, 0.3, 0.2), rule="paper"
    )
    assert main(words[:6]) == 2
    assert "Pass --splits with train" in capsys.readouterr().err
