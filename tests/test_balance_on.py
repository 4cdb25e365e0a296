"""The second cap: parts that share weights of the vertices, or a mask, evenly, too."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.cli import main
from strategies import edge_lists

EDGES = np.random.default_rng(0).integers(0, 40, (120, 2), dtype=np.uint32)
"""A random graph of 40 vertices."""
MASK = np.arange(40) % 3 == 0


def spring(weights, k=3, edges=EDGES, **options):
    return fp.spring(edges, k, balance_on=weights, **options)


def cap(weights, k, ratio):
    weights = [int(weight) for weight in weights]
    share = math.ceil(min(ratio, k) * sum(weights) / k)
    if max(weights, default=0) <= 1:
        return share
    return max(share, -(-sum(weights) // k) + max(weights))


@pytest.fixture(scope="module")
def cora(datasets, tmp_path_factory):
    return fp.convert(datasets / "cora.txt.gz", tmp_path_factory.mktemp("cora") / "cora.bin")


def mask_of(ids, n):
    mask = np.zeros(n, dtype=bool)
    mask[ids] = True
    return mask


# What both caps promise.


@pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")
@given(
    edge_lists(40, 150),
    st.lists(st.sampled_from([0, 0, 1, 1, 2, 9, 2**32 - 1]), min_size=40, max_size=40),
    st.integers(1, 50),
    st.sampled_from([1.0, 1.05, 2.0, 1e308]),
    st.sampled_from([1.0, 1.05, 2.0, 1e308]),
)
def test_both_caps_are_kept(graph, weights, k, balance, ratio):
    n, edges = graph
    weights = np.array(weights[:n], dtype=np.int64)
    partition = spring(
        weights, k, fp.open_graph(edges, num_vertices=n), balance=balance, balance_on_ratio=ratio
    )
    assert partition.cap == math.ceil(min(balance, k) * n / k)
    assert partition.weight_cap == cap(weights, k, ratio)
    assert partition.loads.tolist() == np.bincount(partition.assignment, minlength=k).tolist()
    weight_loads = [int(weights[partition.assignment == i].sum()) for i in range(k)]
    assert partition.weight_loads.tolist() == weight_loads
    assert max(partition.loads) <= partition.cap
    assert max(weight_loads) <= partition.weight_cap


@pytest.mark.parametrize("k", [2, 4, 8, 32])
@pytest.mark.parametrize(("balance", "ratio"), [(1.05, 1.05), (1.0, 1.0), (1.5, 1.05)])
def test_training_vertices_of_cora(cora, datasets, k, balance, ratio):
    splits = datasets / "cora.split.npz"
    with np.load(splits) as arrays:
        train = mask_of(arrays["train"], cora.num_vertices)
    partition = spring(train, k, cora, balance=balance, balance_on_ratio=ratio)
    totals = fp.evaluate(cora, partition, splits=splits).summary.row(0, named=True)
    assert partition.weight_cap == math.ceil(ratio * 140 / k)
    assert totals["train_balance"] <= partition.weight_cap / (140 / k)
    assert totals["weight_balance"] == totals["train_balance"]
    assert partition.loads.max() <= partition.cap
    # The parts are still made of clusters: dealing the vertices at random gives 2.7 at k = 4, 3.5 at k = 8.
    free = fp.evaluate(cora, fp.spring(cora, k)).summary["halo_rf"][0]
    assert totals["halo_rf"] < 1.1 * free


@pytest.mark.parametrize("name", ["cora", "amazon-computers"])
def test_one_class_is_shared_evenly(name, datasets, tmp_path):
    edges = fp.convert(datasets / f"{name}.txt.gz", tmp_path / "g.bin")
    labels = np.load(datasets / f"{name}.labels.npy")
    largest = labels == np.bincount(labels[labels >= 0]).argmax()
    free, part = fp.spring(edges, 8), spring(largest, 8, edges)
    assert np.bincount(free.assignment[largest], minlength=8).max() > 1.5 * largest.sum() / 8
    assert np.bincount(part.assignment[largest], minlength=8).max() <= math.ceil(1.05 * largest.sum() / 8)
    assert (
        fp.evaluate(edges, part).summary["halo_rf"][0] < 1.25 * fp.evaluate(edges, free).summary["halo_rf"][0]
    )


def test_degrees_as_weights_bound_the_volume(datasets, tmp_path):
    edges = fp.convert(datasets / "amazon-computers.txt.gz", tmp_path / "g.bin")
    degrees = edges.degrees()
    free, part = (
        fp.evaluate(edges, part).summary for part in (fp.spring(edges, 8), spring(degrees, 8, edges))
    )
    assert free["edge_balance"][0] > 1.7
    assert part["edge_balance"][0] <= cap(degrees, 8, 1.05) / (degrees.sum() / 8) < 1.1


def test_threads_do_not_matter(tmp_path):
    path = tmp_path / "g.bin"
    fp.generate.rmat(path, n=30_000, m=2**18 + 5, seed=3)
    edges = fp.open_graph(path, num_vertices=30_000)
    for weights in (np.arange(30_000) % 10 == 0, edges.degrees()):
        one, *rest = (spring(weights, 16, edges, threads=threads) for threads in (1, 2, 3, 8))
        for other in rest:
            assert (one.assignment == other.assignment).all()
            assert (one.weight_loads == other.weight_loads).all()


def test_without_weights_nothing_changes():
    partition = spring(None, balance_on_ratio=2.0)
    assert (partition.assignment == fp.spring(EDGES, 3).assignment).all()
    assert partition.weight_loads is None
    assert partition.weight_cap is None
    assert "weight_balance" not in fp.evaluate(EDGES, partition).summary.columns


@pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")
def test_edge_cases():
    empty = np.zeros((0, 2), np.uint32)
    assert spring([], 2, empty).weight_loads.tolist() == [0, 0]
    assert spring([7], 1, np.array([[0, 0]])).weight_loads.tolist() == [7]
    zeros = spring(np.zeros(40, np.uint8))
    assert (zeros.weight_cap, zeros.weight_loads.tolist()) == (0, [0, 0, 0])
    assert spring(np.ones(40, bool), k=50).weight_cap == 1


def test_a_warning_when_the_caps_left_only_the_last_resort():
    # A path of eight of weight 1 fills a part; seven of weight 2 fill the weight of the other, and one is left.
    edges = np.array([[v, v + 1] for v in (*range(7), *range(8, 14))])
    weights = [1] * 8 + [2] * 8
    opened = fp.open_graph(edges, num_vertices=16)
    with pytest.warns(
        fp.errors.CapacityWarning, match="assigned by weight alone.*Raise balance or balance_on_ratio"
    ) as caught:
        partition = spring(weights, 2, opened, balance=1.0, balance_on_ratio=1.0)
    assert caught[0].filename == __file__
    assert partition.loads.tolist() == [8, 8]
    assert partition.weight_loads.tolist() == [12, 12]


# What weights may be.


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.uint64, ">i4", list])
def test_every_integer_and_bool(dtype):
    weights = MASK.tolist() if dtype is list else MASK.astype(dtype)
    partition = spring(weights)
    assert (partition.assignment == spring(MASK).assignment).all()
    assert partition.weight_cap == cap(MASK, 3, 1.05)
    assert (partition.assignment == spring(np.repeat(MASK, 2)[::2]).assignment).all()


def test_the_array_is_only_read_and_not_kept():
    weights = np.arange(40, dtype=np.uint32)
    weights.flags.writeable = False
    partition = spring(weights)
    assert not partition.weight_loads.flags.writeable
    assert partition.parameters["balance_on"] == "array of 40 weights, sum 780"
    assert partition.parameters["balance_on_ratio"] == 1.05
    json.dumps(partition.parameters)


@pytest.mark.parametrize(
    ("weights", "error", "text"),
    [
        (
            np.ones(39, int),
            fp.errors.ParameterError,
            r"^balance_on: 39 weights for 40 vertices\. .*num_vertices",
        ),
        (np.ones(41, bool), fp.errors.ParameterError, r"^balance_on: 41 weights for 40 vertices"),
        (
            np.arange(40) - 3,
            fp.errors.ParameterError,
            r"^balance_on: vertex 0 has weight -3, outside 0\.\.4294967295$",
        ),
        (np.full(40, -1, np.int8), fp.errors.ParameterError, r"^balance_on: vertex 0 has weight -1"),
        (np.arange(40) + 2**32 - 5, fp.errors.ParameterError, r"^balance_on: vertex 5 has weight 4294967296"),
        (np.ones(40), TypeError, r"^balance_on: expected integers >= 0 or a bool mask, got dtype float64$"),
        (np.full(40, np.nan), TypeError, r"^balance_on: .*, got dtype float64"),
        (np.array([None] * 40), TypeError, r"^balance_on: .*, got dtype object"),
        (
            np.ones((40, 1), int),
            TypeError,
            r"^balance_on: expected one weight per vertex, got shape \(40, 1\)$",
        ),
        (True, TypeError, r"^balance_on: .*, got shape \(\)"),
        ("train.npy", fp.errors.ParameterError, r"^balance_on: 'train.npy' stands for a type .* no types"),
    ],
)
def test_weights_that_cannot_be(weights, error, text):
    with pytest.raises(error, match=text):
        spring(weights)


@pytest.mark.parametrize("ratio", [0.99, 0, -1, float("nan"), float("inf")])
def test_ratio_below_1_or_not_finite(ratio):
    for weights in (MASK, None):
        with pytest.raises(
            fp.errors.ParameterError, match=r"^balance_on_ratio: \S+ is not a ratio of at least 1"
        ):
            spring(weights, balance_on_ratio=ratio)


def test_the_papers_rule_keeps_no_cap():
    with pytest.raises(
        fp.errors.ParameterError, match=r"^balance_on: strict=False .* Leave one of the two out$"
    ):
        spring(MASK, strict=False)


def test_weights_count_in_the_estimate_of_memory():
    n = 2**20
    edges = fp.open_graph(EDGES, num_vertices=n)
    limit = fp.info(edges)["memory"]["spring"] + 2**10
    assert len(fp.spring(edges, 3, memory_limit=limit)) == n
    with pytest.raises(
        fp.errors.MemoryBudgetError, match=r"^spring on 1048576 vertices \(36 bytes each\) needs"
    ):
        spring(np.ones(n, bool), 3, edges, memory_limit=limit)


# Measures and files.


@pytest.mark.parametrize("out", ["parts", "part.parquet"])
def test_loads_and_cap_are_measured_saved_and_read(tmp_path, out):
    partition = spring(MASK)
    evaluation = fp.evaluate(EDGES, partition)
    assert evaluation.parts["weight_load"].to_list() == partition.weight_loads.tolist()
    assert evaluation.parts["weight_cap"].to_list() == [partition.weight_cap] * 3
    assert evaluation.summary["weight_balance"][0] == partition.weight_loads.max() / (MASK.sum() / 3)
    partition.save(tmp_path / out, graph=EDGES)
    loaded = fp.open_partition(tmp_path / out, graph=EDGES)
    assert loaded.weight_cap == partition.weight_cap
    assert loaded.weight_loads.tolist() == partition.weight_loads.tolist()
    assert loaded.parameters == partition.parameters
    assert fp.evaluate(EDGES, loaded).parts.equals(evaluation.parts)
    assert repr(loaded) == repr(partition)
    assert "weight" not in repr(partition)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"loads": [1, 2]}, "caps: weights: loads: expected a list of 3 integers, one per part"),
        ({"loads": 5}, "caps: weights: loads: expected a list of 3 integers"),
        ({"loads": [1, 2, "3"]}, "caps: weights: loads: expected an integer, got str"),
        ({"loads": [1, 2, -3]}, "caps: weights: loads: -3 is not between"),
        ({"loads": [1, 2, 2**63]}, "caps: weights: loads: 9223372036854775808 is not between"),
        ({"cap": -1}, "caps: weights: cap: -1 is not between"),
    ],
)
def test_loads_in_a_manifest_are_not_believed(tmp_path, wrong, text):
    spring(MASK).save(tmp_path / "parts")
    manifest = tmp_path / "parts" / "manifest.json"
    content = json.loads(manifest.read_text())
    assert [bound["of"] for bound in content["caps"]] == ["vertices", "weights"]
    content["caps"][1] |= wrong
    manifest.write_text(json.dumps(content))
    with pytest.raises(fp.errors.GraphFormatError, match=text):
        fp.open_partition(tmp_path / "parts")


# The command line.


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run `fastpart partition` in a folder that holds the graph; return exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    EDGES.tofile("g.bin")
    np.save("w.npy", np.arange(40))
    np.savez("split.npz", train=np.flatnonzero(MASK), val=~MASK, w=np.arange(40))

    def run(*arguments):
        code = main(["partition", "g.bin", "-k", "3", "--algorithm", "spring", "-q", "--json", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.mark.parametrize(
    ("given_as", "weights"),
    [
        ("w.npy", np.arange(40)),
        ("split.npz:w", np.arange(40)),
        ("split.npz:train", MASK),
        ("split.npz:val", ~MASK),
    ],
)
def test_weights_on_the_command_line(run, given_as, weights):
    code, out, err = run("--balance-on", given_as, "--balance-on-ratio", "1.2", "-o", "part.npy")
    assert (code, err) == (0, "")
    partition = spring(weights, balance_on_ratio=1.2)
    assert np.load("part.npy").tolist() == partition.assignment.tolist()
    assert [row["weight_load"] for row in json.loads(out)["parts"]] == partition.weight_loads.tolist()


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (
            ("--balance-on", "split.npz"),
            2,
            "--balance-on: split.npz holds train, val, w. Add one after a colon",
        ),
        (
            ("--balance-on", "split.npz:test"),
            2,
            "--balance-on: split.npz holds train, val, w. Add one",
        ),
        (("--balance-on", "gone.npy"), 1, "gone.npy: No such file"),
        (("--balance-on", "g.bin"), 1, "g.bin: not a .npy or .npz of plain arrays"),
        (("--balance-on", "w.npy", "--balance-on-ratio", "0.5"), 2, "--balance-on-ratio: 0.5 is not a ratio"),
        (("--balance-on-ratio", "1.1"), 2, "--balance-on-ratio: has no effect without --balance-on"),
        (("--balance-on", "w.npy", "--no-strict"), 2, "--balance-on: --no-strict is the paper's rule"),
    ],
)
def test_refusals_of_the_command_line(run, arguments, code, text):
    found, out, err = run(*arguments)
    assert (found, out) == (code, "")
    assert err.startswith(f"fastpart: error: {text}")
    assert len(err.splitlines()) == 1
