"""`sizes=`, `fixed=` and `connected=` of the multilevel partitioner, of `refine`, `update` and `partition`."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
import oracles
from fastpart.cli import main
from soaked import examples
from strategies import edge_lists

RANDOM = np.random.default_rng(3)
N, K = 900, 4
GRID = np.array(
    [[v, v + 1] for v in range(N) if v % 30 < 29] + [[v, v + 30] for v in range(N - 30)], dtype=np.uint32
)
"""A grid of 30 by 30."""
SIZES = [2, 1, 1, 3]
PATHS = [{}, {"path": "one_level"}, {"path": "two_levels", "sample": 0.1}]
MASKS = [RANDOM.random(N) < 0.3, RANDOM.random(N) < 0.2]
BOUNDS = [{}, {"volume_balance": 1.1}, {"balance_on": MASKS[0]}, {"volume_balance": 1.2, "balance_on": MASKS}]


def caps_of(balance, items, sizes):
    """The cap of each part, by the definition."""
    if len(set(sizes)) == 1:
        return [math.ceil(min(balance, len(sizes)) * items / len(sizes))] * len(sizes)
    return [min(items, math.ceil(balance * items * size / sum(sizes))) for size in sizes]


def loads_of(p, weights):
    return np.bincount(p.assignment, weights, minlength=p.k).astype(int)


def fixed_of(n, k, share, seed=0):
    """A part for a share of the vertices, few enough for every part."""
    random = np.random.default_rng(seed)
    return np.where(random.random(n) < share, random.integers(0, k, n), -1)


def check_within(p):
    """Loads are counted anew and lie within the caps of the result."""
    assert p.loads.tolist() == loads_of(p, None).tolist()
    assert (p.loads <= p.cap).all()
    for _, loads, cap in p._weights():
        assert (loads <= cap).all()
    if p.volume_loads is not None:
        assert (p.volume_loads <= p.volume_cap).all()


# Sizes.


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("path", PATHS)
def test_each_part_keeps_its_own_cap(path, bounds):
    p = fp.multilevel(GRID, K, sizes=SIZES, balance=1.05, min_balance=0.9, **path, **bounds)
    assert p.cap.dtype == np.int64
    assert p.cap.tolist() == caps_of(1.05, N, SIZES)
    check_within(p)
    assert (p.loads >= [int(0.9 * N * size / 7) for size in SIZES]).all()
    if "volume_balance" in bounds:
        degrees = np.bincount(GRID.ravel(), minlength=N) + 1
        assert p.volume_loads.tolist() == loads_of(p, degrees).tolist()
        assert p.volume_cap.tolist() == caps_of(bounds["volume_balance"], degrees.sum(), SIZES)
    if "balance_on" in bounds:
        several = isinstance(bounds["balance_on"], list)
        masks = bounds["balance_on"] if several else [bounds["balance_on"]]
        expected = [caps_of(1.05, int(mask.sum()), SIZES) for mask in masks]
        assert p.weight_cap.tolist() == (expected if several else expected[0])
        assert p.weight_loads.shape == p.weight_cap.shape
    assert p.cut_ratio < 0.2


@pytest.mark.parametrize(
    "options", [{}, {"path": "two_levels"}, {"balance_on": MASKS, "volume_balance": 1.1}]
)
def test_equal_sizes_are_none(options):
    free, equal = (fp.multilevel(GRID, K, sizes=sizes, **options) for sizes in (None, [0.1] * K))
    assert free == equal
    assert free.cap == equal.cap
    assert isinstance(equal.cap, int)
    assert free.evaluate() == equal.evaluate()


@pytest.mark.parametrize("k", [1, 2, 7, 40, 300])
def test_many_sizes(k):
    sizes = RANDOM.integers(1, 6, k).astype(float)
    p = fp.multilevel(GRID, k, sizes=sizes, effort="quick", threads=2)
    assert np.broadcast_to(p.cap, k).tolist() == caps_of(1.03, N, sizes)
    check_within(p)
    assert p == fp.multilevel(GRID, k, sizes=sizes.tolist(), effort="quick", threads=1)


@pytest.mark.parametrize("objective", ["cut", "halo"])
def test_sizes_with_machines(objective):
    p = fp.multilevel(GRID, K, sizes=SIZES, machines=[1, 3], objective=objective, effort="quick")
    check_within(p)
    check_within(fp.multilevel(GRID, K, sizes=SIZES, machines=[2, 2], objective=objective))


def test_balances_are_relative_to_the_shares():
    p = fp.multilevel(GRID, K, sizes=SIZES, volume_balance=1.1, balance_on=MASKS[0])
    shares = np.array(SIZES) / sum(SIZES)
    e = p.evaluate(splits={"train": np.flatnonzero(MASKS[1])})
    assert e.vertex_balance == pytest.approx((p.loads / shares).max() / N)
    assert e.vertex_balance < 1.04
    assert e.edge_balance == pytest.approx(
        (loads_of(p, np.bincount(GRID.ravel())) / shares).max() / GRID.size
    )
    assert e.volume_balance == pytest.approx((p.volume_loads / shares).max() / p.volume_loads.sum())
    assert e.weight_balance == pytest.approx((p.weight_loads / shares).max() / MASKS[0].sum())
    assert e.train_balance == pytest.approx((loads_of(p, MASKS[1]) / shares).max() / MASKS[1].sum())
    for name, cap in (("cap", p.cap), ("volume_cap", p.volume_cap), ("weight_cap", p.weight_cap)):
        assert e.parts[name].to_list() == cap.tolist()
    json.loads(e.to_json())
    p.plot()
    e.plot()


@pytest.mark.parametrize("bounds", BOUNDS)
def test_a_saved_partition_remembers_its_sizes(tmp_path, bounds):
    saved = fp.multilevel(GRID, K, sizes=SIZES, **bounds)
    saved.save(tmp_path / "parts", graph=GRID)
    loaded = fp.open_partition(tmp_path / "parts", graph=GRID)
    assert loaded.parameters == saved.parameters
    for name in ("cap", "weight_cap", "volume_cap"):
        ours, theirs = getattr(saved, name), getattr(loaded, name)
        assert type(ours) is type(theirs)
        np.testing.assert_array_equal(ours, theirs)
    assert fp.evaluate(GRID, loaded) == fp.evaluate(GRID, saved)
    again = {name: bounds[name] for name in bounds if name == "balance_on"}
    refined = fp.refine(loaded.graph, loaded, **again)
    assert refined.parameters["sizes"] == SIZES
    assert refined.cap.tolist() == saved.cap.tolist()
    check_within(refined)
    assert refined.cut_ratio <= saved.cut_ratio
    updated = fp.update(GRID, loaded, **again)
    assert updated.cap.tolist() == saved.cap.tolist()
    check_within(updated)
    assert isinstance(fp.update(GRID, loaded, k=5, **again).cap, int)
    other = fp.update(GRID, loaded, k=5, sizes=[1, 1, 1, 1, 2], **again)
    assert other.cap.tolist() == caps_of(1.03, N, [1, 1, 1, 1, 2])
    check_within(other)


@pytest.mark.parametrize(
    ("cap", "text"),
    [([1, 2], "list of 4"), ([1, 2, 3, "4"], "expected an integer"), ([1, 2, 3, -1], "not between")],
)
def test_caps_of_a_manifest_are_not_believed(tmp_path, cap, text):
    fp.multilevel(GRID, K, sizes=SIZES).save(tmp_path / "parts", graph=GRID)
    manifest = tmp_path / "parts" / "manifest.json"
    content = json.loads(manifest.read_text())
    content["caps"][0]["cap"] = cap
    manifest.write_text(json.dumps(content))
    with pytest.raises(fp.errors.GraphFormatError, match=text):
        fp.open_partition(tmp_path / "parts")


@pytest.mark.parametrize(
    ("sizes", "error", "text"),
    [
        ([1, 2], fp.errors.ParameterError, r"^sizes: 2 shares for 4 parts"),
        ([1, 0, 1, 1], fp.errors.ParameterError, r"^sizes: part 1 has the share 0"),
        ([1, 1, 1, -2], fp.errors.ParameterError, r"^sizes: part 3 has the share -2"),
        ([1, 1, float("nan"), 1], fp.errors.ParameterError, r"^sizes: part 2 has the share NaN"),
        ([1, 1, float("inf"), 1], fp.errors.ParameterError, r"^sizes: part 2 has the share inf"),
        ([1e308] * 3 + [1.7e308], fp.errors.ParameterError, r"^sizes: the sum of the shares is infinite"),
        (3, TypeError, r"^sizes: expected a list of numbers"),
        ("2,1,1,1", TypeError, r"^sizes: expected a list of numbers"),
        ([1, 1, 1, "a"], TypeError, r"^sizes: expected a number"),
    ],
)
def test_sizes_that_cannot_be(sizes, error, text):
    with pytest.raises(error, match=text):
        fp.multilevel(GRID, K, sizes=sizes)


def test_a_least_number_that_shares_do_not_have():
    with pytest.raises(
        fp.errors.CapacityError, match=r"^min_balance: .* 5 vertices together, but there are 4"
    ):
        fp.multilevel([[0, 1], [1, 2], [2, 3]], 3, sizes=[100, 1, 1], min_balance=1.0)
    p = fp.multilevel(GRID, 3, sizes=[100, 1, 1], min_balance=1.0, balance=1.0)
    assert (p.loads >= [int(N * size / 102) for size in (100, 1, 1)]).all()


# Equal parts.


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("k", [2, 7, 16])
def test_equal_parts(path, k):
    p = fp.multilevel(GRID, k, balance=1.0, min_balance=1.0, **path)
    assert p.loads.max() - p.loads.min() <= 1
    both = fp.multilevel(GRID, k, balance=1.0, min_balance=1.0, volume_balance=1.1, **path)
    assert both.loads.max() - both.loads.min() <= 1
    check_within(both)
    sizes = 1 + np.arange(k) % 3
    p = fp.multilevel(GRID, k, balance=1.0, min_balance=1.0, sizes=sizes, **path)
    exact = N * sizes / sizes.sum()
    assert (p.loads >= np.floor(exact)).all()
    assert (p.loads <= np.ceil(exact)).all()
    assert fp.refine(GRID, p).loads.tolist() == pytest.approx(exact, abs=1)


# Fixed vertices.


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("path", PATHS)
def test_fixed_vertices_are_where_they_must_be(path, bounds):
    fixed = fixed_of(N, K, 0.05)
    p = fp.multilevel(GRID, K, fixed=fixed, **path, **bounds)
    assert (p.assignment == fixed)[fixed >= 0].all()
    check_within(p)
    assert p.cap == math.ceil(1.03 * N / K)
    assert p.parameters["fixed"] == f"array of {N} parts, {np.count_nonzero(fixed >= 0)} vertices fixed"


@st.composite
def problems(draw):
    n, edges = draw(edge_lists(40, 120))
    k = draw(st.integers(1, 9))
    labels = st.integers(-1, k - 1)
    fixed = draw(st.lists(labels, min_size=n, max_size=n))
    options = {"balance": draw(st.sampled_from([1.0, 1.2, 3.0])), "seed": draw(st.integers(0, 3))}
    if draw(st.booleans()):
        options["sizes"] = draw(st.lists(st.sampled_from([1, 2, 5.5]), min_size=k, max_size=k))
    if draw(st.booleans()):
        options["volume_balance"] = 1.1
    if draw(st.booleans()):
        options["balance_on"] = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), np.uint32)
    options |= draw(st.sampled_from([{}, {"effort": "quick"}, {"objective": "halo"}, *PATHS[1:]]))
    options["connected"] = draw(st.booleans())
    return n, edges, k, np.array(fixed, np.int64), options


@pytest.mark.filterwarnings("ignore:connected", "ignore::fastpart.errors.CapacityWarning")
@examples(37)
@given(problems(), st.integers(1, 3))
def test_fixed_vertices_and_caps_of_any_graph(problem, threads):
    n, edges, k, fixed, options = problem
    graph = fp.open_graph(edges, num_vertices=n)
    sizes = options.get("sizes", [1] * k)
    counts = np.bincount(fixed[fixed >= 0], minlength=k)
    caps = caps_of(options["balance"], n, sizes)
    if (counts > caps).any():
        part = int(np.flatnonzero(counts > caps)[0])
        text = f"^fixed: {counts[part]} vertices are fixed to part {part}, .* {caps[part]}"
        with pytest.raises(fp.errors.CapacityError, match=text):
            fp.multilevel(graph, k, fixed=fixed, **options)
        return
    p = fp.multilevel(graph, k, fixed=fixed, threads=threads, **options)
    assert (p.assignment == fixed)[fixed >= 0].all()
    assert np.broadcast_to(p.cap, k).tolist() == caps
    check_within(p)
    assert p == fp.multilevel(graph, k, fixed=fixed, threads=1, **options)
    known = {name: options[name] for name in ("balance_on", "volume_balance", "sizes") if name in options}
    known |= {"fixed": fixed, "threads": threads}
    for after in (fp.refine(graph, p, **known), fp.update(graph, p.assignment, k=k, balance=3.0, **known)):
        assert (after.assignment == fixed)[fixed >= 0].all()
        check_within(after)


@pytest.mark.parametrize("options", [{}, *PATHS[1:], {"objective": "halo"}, *BOUNDS[1:]])
def test_no_fixed_vertex_is_none_at_all(options):
    assert fp.multilevel(GRID, K, fixed=np.full(N, -1), **options) == fp.multilevel(GRID, K, **options)
    start = fp.algorithms.hash(GRID, K)
    some = {name: options[name] for name in options if name not in ("path", "sample")}
    assert fp.refine(start.graph, start, fixed=np.full(N, -1), **some) == fp.refine(
        start.graph, start, **some
    )


def test_a_start_is_moved_to_where_it_is_fixed():
    start = fp.algorithms.hash(GRID, K)
    fixed = fixed_of(N, K, 0.1, seed=5)
    for p in (fp.refine(start.graph, start, fixed=fixed), fp.update(GRID, start, fixed=fixed, moves=0.0)):
        assert (p.assignment == fixed)[fixed >= 0].all()
        check_within(p)
    needed = np.count_nonzero((fixed >= 0) & (fixed != start.assignment))
    assert fp.update(GRID, start, fixed=fixed, moves=0.0).parameters["moved"] >= needed
    p = fp.multilevel(GRID, K, fixed=fixed)
    with pytest.raises(
        fp.errors.ParameterError, match=r"^fixed: the partition has fixed vertices, which it does not keep"
    ):
        fp.refine(p.graph, p)
    free = fp.refine(GRID, fp.VertexPartition(p.assignment, K))
    assert free.cut_ratio < p.cut_ratio


@pytest.mark.parametrize("machines", [[2, 2], [1, 3]])
@pytest.mark.parametrize("objective", ["cut", "halo"])
def test_fixed_vertices_on_machines(machines, objective):
    fixed = fixed_of(N, K, 0.05)
    p = fp.multilevel(GRID, K, fixed=fixed, machines=machines, objective=objective, sizes=SIZES)
    assert (p.assignment == fixed)[fixed >= 0].all()
    check_within(p)


def test_all_vertices_may_be_fixed():
    fixed = np.arange(N) % K
    assert fp.multilevel(GRID, K, fixed=fixed).assignment.tolist() == fixed.tolist()
    assert fp.multilevel(GRID, K, fixed=fixed, path="two_levels").assignment.tolist() == fixed.tolist()


@pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")
def test_a_bound_that_fixed_vertices_break_is_raised():
    fixed = np.where(np.arange(N) < 150, 0, -1)
    heavy = (np.arange(N) < 150).astype(np.uint32)
    with pytest.warns(
        fp.errors.CapacityWarning, match=r"^balance_on: .* 40 \(sum of weights\).* raised to 150"
    ):
        p = fp.multilevel(GRID, K, fixed=fixed, balance_on=heavy)
    assert (p.assignment[:150] == 0).all()
    assert p.weight_loads.tolist() == [150, 0, 0, 0]
    with pytest.raises(fp.errors.CapacityError, match="balance_on"):
        fp.multilevel(GRID, K, fixed=fixed, balance_on=heavy, on_infeasible="error")


@pytest.mark.parametrize(
    ("fixed", "error", "text"),
    [
        (
            np.zeros(N, int),
            fp.errors.CapacityError,
            r"^fixed: 900 vertices are fixed to part 0, .* 232.* balance",
        ),
        (np.full(N - 1, -1), fp.errors.ParameterError, r"^fixed: 899 parts for 900 vertices"),
        (np.full(N, 4), fp.errors.ParameterError, r"^fixed: vertex 0 has part 4, outside 0\.\.3"),
        (np.full(N, -2), fp.errors.ParameterError, r"^fixed: vertex 0 has part -2"),
        (np.full(N, 0.5), TypeError, r"^fixed: expected integers, got dtype float64"),
        (np.full((N, 1), -1), TypeError, r"^fixed: expected one part per vertex.*shape \(900, 1\)"),
        (0, TypeError, r"^fixed: expected one part per vertex"),
    ],
)
def test_parts_that_vertices_cannot_be_fixed_to(fixed, error, text):
    with pytest.raises(error, match=text):
        fp.multilevel(GRID, K, fixed=fixed)


def test_a_least_number_that_fixed_vertices_leave_to_nobody():
    fixed = np.where(np.arange(N) < 890, np.arange(N) % 2, -1)
    with pytest.raises(fp.errors.CapacityError, match=r"^min_balance: .* fixed"):
        fp.multilevel(GRID, K, fixed=fixed, balance=2.0, min_balance=0.5)


# Connected parts.


def blobs(count, size, seed=0):
    """A path of dense blobs, and parts in which single vertices of each lie elsewhere."""
    random = np.random.default_rng(seed)
    edges = [
        [size * b + u, size * b + v] for b in range(count) for u in range(size) for v in range(u) if u - v < 5
    ]
    edges += [[size * b + size - 1, size * b + size] for b in range(count - 1)]
    parts = np.repeat(np.arange(count) % 4, size)
    strays = random.choice(count * size, count * size // 10, replace=False)
    return np.array(edges), parts, strays


def test_fragments_of_planted_blobs_are_moved():
    edges, parts, strays = blobs(8, 25)
    parts[strays] = (parts[strays] + 1) % 4
    start = fp.VertexPartition(parts, 4)
    before = fp.evaluate(edges, start)
    assert before.components > 16
    with pytest.warns(
        UserWarning, match=r"^connected: fragments that stay apart from the rest of their part: \d+"
    ):
        tight = fp.refine(edges, start, balance=1.0, rounds=0, connected=True)
    assert tight.loads.max() <= tight.cap
    p = fp.refine(edges, start, balance=2.0, rounds=0, connected=True)
    assert fp.evaluate(edges, p).parts["components"].to_list() == [1, 1, 1, 1]
    assert p.cut_ratio < before.cut_ratio
    assert p.parameters["connected"] is True


@pytest.mark.filterwarnings("ignore:connected", "ignore::fastpart.errors.CapacityWarning")
@examples(37)
@given(
    edge_lists(40, 90), st.integers(1, 6), st.sampled_from([1.0, 1.5, 6.0]), st.randoms(use_true_random=False)
)
def test_connecting_never_makes_more_components(graph, k, balance, random):
    n, edges = graph
    parts = [random.randrange(k) for _ in range(n)]
    opened = fp.open_graph(edges, num_vertices=n)
    # What the start becomes without moves of fragments.
    plain = fp.refine(opened, fp.VertexPartition(parts, k), balance=balance, rounds=0)
    p = fp.refine(opened, fp.VertexPartition(parts, k), balance=balance, rounds=0, connected=True)
    before, after = (sum(oracles.components(edges.tolist(), each.assignment, k)) for each in (plain, p))
    assert after <= before
    check_within(p)
    assert p.cut_ratio <= plain.cut_ratio


@pytest.mark.filterwarnings("ignore:connected")
def test_connected_parts_with_bounds_and_sizes():
    edges, _, _ = blobs(12, 30)
    weights = RANDOM.integers(0, 4, 360).astype(np.uint32)
    p = fp.multilevel(edges, 3, sizes=[3, 2, 1], connected=True, balance_on=weights, volume_balance=1.1)
    check_within(p)


def test_warnings_name_what_keeps_fragments():
    apart = [[0, 1], [2, 3], [4, 5], [6, 7]]
    with pytest.warns(
        UserWarning, match=r"^connected: fragments .*: 2\. They are connected components of the graph"
    ):
        p = fp.multilevel(apart, 2, connected=True)
    assert fp.evaluate(apart, p).components == 4
    # A path whose ends are fixed to the part in the middle of which they are not.
    path = [[v, v + 1] for v in range(8)]
    fixed = [0, -1, -1, -1, 1, -1, -1, -1, 0]
    with pytest.warns(UserWarning, match=r"^connected: fragments .*: 1\. The bounds, or fixed vertices"):
        p = fp.multilevel(path, 2, fixed=fixed, connected=True)
    assert p.assignment[[0, 4, 8]].tolist() == [0, 1, 0]


# Everywhere.


@pytest.mark.filterwarnings("ignore:connected")
def test_partition_passes_them_on(tmp_path):
    fixed = fixed_of(N, K, 0.05)
    p = fp.partition(GRID, K, sizes=SIZES, fixed=fixed, connected=True, balance=1.3)
    assert p == fp.multilevel(GRID, K, sizes=SIZES, fixed=fixed, connected=True, balance=1.3)
    np.save(tmp_path / "fixed.npy", fixed)
    fast = fp.partition(GRID, K, fixed=tmp_path / "fixed.npy", effort="fast")
    assert (fast.assignment == fixed)[fixed >= 0].all()
    for name, value in (("sizes", SIZES), ("fixed", fixed), ("connected", True)):
        with pytest.raises(fp.errors.ParameterError, match=rf'^{name}: needs of="vertices"'):
            fp.partition(GRID, K, of="edges", **{name: value})


@pytest.mark.filterwarnings("ignore:connected")
def test_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    GRID.tofile("g.bin")
    fixed = fixed_of(N, K, 0.05)
    np.save("fixed.npy", fixed)
    options = [
        "-k",
        "4",
        "--sizes",
        "2,1,1,3",
        "--fixed",
        "fixed.npy",
        "--connected",
        "--balance",
        "1.3",
        "--quiet",
    ]
    expected = fp.multilevel(GRID, K, sizes=SIZES, fixed=fixed, connected=True, balance=1.3)
    for algorithm in ([], ["--algorithm", "multilevel"]):
        assert main(["partition", "g.bin", *options, *algorithm, "--out", "part.npy"]) == 0
        assert np.load("part.npy").tolist() == expected.assignment.tolist()
    assert main(["partition", "g.bin", *options, "--of", "edges"]) == 2


def test_checkpoints_are_of_their_sizes_and_fixed_vertices(tmp_path):
    graph = fp.generate.rmat(tmp_path / "g.bin", n=1 << 14, m=300_000)
    fixed = fixed_of(1 << 14, K, 0.05)
    options = {"path": "two_levels", "sample": 0.2, "checkpoints": tmp_path / "steps"}

    class Stop(Exception):
        pass

    def stop(step, done, total):
        if (tmp_path / "steps" / "checkpoint-lists-0.bin").exists():
            raise Stop

    with pytest.raises(Stop):
        fp.multilevel(graph, K, sizes=SIZES, fixed=fixed, progress=stop, **options)
    with pytest.raises(fp.errors.ParameterError, match=r"checkpoints: .*sizes="):
        fp.multilevel(graph, K, fixed=fixed, **options)
    with pytest.raises(fp.errors.ParameterError, match=r"checkpoints: .*fixed="):
        fp.multilevel(graph, K, sizes=SIZES, **options)
    p = fp.multilevel(graph, K, sizes=SIZES, fixed=fixed, **options)
    assert p == fp.multilevel(graph, K, sizes=SIZES, fixed=fixed, path="two_levels", sample=0.2)


def test_fixed_vertices_stay_on_a_graph_without_a_table_of_gains(tmp_path):
    rows = 520  # more than 2**20 gains of four parts, whose boundaries are short
    graph = fp.generate.grid(tmp_path / "g.bin", rows=rows, columns=rows)
    # The first rows are dealt like a checkerboard, which local search would tidy up.
    fixed = np.full(rows * rows, -1, np.int32)
    fixed[: 4 * rows] = np.arange(4 * rows) % K
    p = fp.multilevel(graph, K, fixed=fixed, threads=1)
    assert (p.assignment[: 4 * rows] == fixed[: 4 * rows]).all()
    assert p.loads.max() <= p.cap
    assert p == fp.multilevel(graph, K, fixed=fixed, threads=2)
