"""evaluate(): equal to the definitions, whatever the graph."""

import json
import logging
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
import oracles
from fastpart import _core
from fastpart.core.options import run_options
from strategies import assignments, configs, edge_lists

PATH = np.array([[0, 1], [1, 2], [2, 3]], dtype=np.uint32)
"""A path of four vertices."""


# 31, 9: the measures equal the definitions; parallel and reversed records and loops among them.
@given(edge_lists(12, 50).flatmap(lambda graph: st.tuples(st.just(graph), assignments(graph[0]))))
def test_measures_of_vertex_partitions_equal_the_oracles(drawn):
    (n, edges), (parts, k) = drawn
    evaluation = fp.evaluate(fp.open_graph(edges, num_vertices=n), fp.VertexPartition(parts, k))
    records = edges.tolist()
    matrix = oracles.cut_matrix(records, parts, k)
    summary = evaluation.summary.row(0, named=True)
    assert summary == {
        "of": "vertices",
        "algorithm": "user",
        "k": k,
        "n": n,
        "m": len(edges),
        "loops": sum(u == v for u, v in records),
        "cut_ratio": pytest.approx(oracles.cut_ratio(records, parts)),
        "vertex_balance": pytest.approx(oracles.vertex_balance(n, parts, k)),
        "edge_balance": pytest.approx(oracles.edge_balance(n, records, parts, k)),
        "halo_rf": pytest.approx(oracles.halo_rf(n, records, parts, k)),
        "components": sum(oracles.components(records, parts, k)),
    }
    assert evaluation.parts.to_dict(as_series=False) == {
        "part": list(range(k)),
        "vertices": oracles.loads(parts, k),
        "edges_internal": [matrix[i][i] for i in range(k)],
        "edges_cut": [sum(matrix[i]) - matrix[i][i] for i in range(k)],
        "volume": oracles.volumes(n, records, parts, k),
        "halo": [len(halo) for halo in oracles.halos(records, parts, k)],
        "components": oracles.components(records, parts, k),
        "load": oracles.loads(parts, k),
        "cap": [None] * k,
    }
    assert evaluation.cut_matrix.dtype == np.int64
    assert evaluation.cut_matrix.tolist() == matrix


# 31
@given(edge_lists(12, 50).flatmap(lambda graph: st.tuples(st.just(graph), assignments(len(graph[1])))))
def test_measures_of_edge_partitions_equal_the_oracles(drawn):
    (n, edges), (parts, k) = drawn
    evaluation = fp.evaluate(fp.open_graph(edges, num_vertices=n), fp.EdgePartition(parts, k))
    records = edges.tolist()
    assert evaluation.summary.row(0, named=True) == {
        "of": "edges",
        "algorithm": "user",
        "k": k,
        "n": n,
        "m": len(edges),
        "loops": sum(u == v for u, v in records),
        "rf": pytest.approx(oracles.replication_factor(records, parts, k)),
        "edge_balance": pytest.approx(oracles.record_balance(parts, k)),
        "replica_balance": pytest.approx(oracles.replica_balance(records, parts, k)),
    }
    assert evaluation.parts.to_dict(as_series=False) == {
        "part": list(range(k)),
        "edges": oracles.loads(parts, k),
        "replicas": [len(touched) for touched in oracles.replicas(records, parts, k)],
        "load": oracles.loads(parts, k),
        "cap": [None] * k,
    }
    assert evaluation.cut_matrix is None


@st.composite
def labelled_partitions(draw):
    n = draw(st.integers(0, 30))
    parts, k = draw(assignments(n, max_k=80))
    labels = draw(st.lists(st.integers(-1, 4), min_size=n, max_size=n))
    ids = st.lists(st.integers(0, n - 1), unique=True) if n else st.just([])
    return n, parts, k, labels, {name: draw(ids) for name in ("train", "val", "test")}


# 31
@given(labelled_partitions())
def test_split_balances_and_label_skew_equal_the_oracles(drawn):
    n, parts, k, labels, splits = drawn
    edges = fp.open_graph(np.zeros((0, 2), np.uint32), num_vertices=n)
    evaluation = fp.evaluate(edges, fp.VertexPartition(parts, k), np.array(labels, np.int64), splits)
    summary = evaluation.summary.row(0, named=True)
    for name, ids in splits.items():
        assert summary[f"{name}_balance"] == pytest.approx(oracles.split_balance(ids, parts, k))
        assert evaluation.parts[name].to_list() == [sum(parts[v] == i for v in ids) for i in range(k)]
    skews = oracles.label_skews(labels, parts, k)
    assert evaluation.parts["label_skew"].to_list() == [
        None if skew is None else pytest.approx(skew) for skew in skews
    ]
    assert summary["label_skew"] == pytest.approx(max((s for s in skews if s is not None), default=0.0))


# 30: what a partitioner makes covers the vertices, and its loads are the measured ones.
@pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")
@given(edge_lists(40, 120), configs())
def test_every_vertex_has_one_part_and_loads_and_caps_are_true(graph, config):
    n, edges = graph
    opened = fp.open_graph(edges, num_vertices=n)
    partition = fp.spring(opened, **config)
    assert partition.assignment.dtype == np.int32
    assert partition.assignment.shape == (n,)
    loads = oracles.loads(partition.assignment.tolist(), config["k"])
    assert partition.loads.tolist() == loads
    assert sum(loads) == n
    if config["strict"]:
        assert partition.cap == int(np.ceil(min(config["balance"], config["k"]) * n / config["k"]))
        assert max(loads) <= partition.cap
    else:
        assert partition.cap is None
    parts = fp.evaluate(opened, partition).parts
    assert parts["load"].to_list() == loads
    assert parts["cap"].to_list() == [partition.cap] * config["k"]


SHAPES = {
    "hub with half the edges": lambda n: (
        [[0, v] for v in range(1, n)] + [[v, (v * 7 + 1) % n] for v in range(1, n)]
    ),
    "star": lambda n: [[0, v] for v in range(1, n)],
    "clique": lambda n: [[u, v] for u in range(n // 20) for v in range(u)],
    "path": lambda n: [[v, v + 1] for v in range(n - 1)],
    "bipartite": lambda n: [[u, n // 2 + v] for u in range(n // 20) for v in range(n // 20)],
    "components": lambda n: [[2 * v, 2 * v + 1] for v in range(n // 2)],
}


# 16, 17
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", ["as made", "backwards", "random", "by target"])
@pytest.mark.parametrize("k", [2, 7, 32])
def test_the_bound_holds_on_any_shape_in_any_order(shape, order, k):
    n = 2000
    edges = np.array(SHAPES[shape](n), np.uint32)
    if order == "backwards":
        edges = edges[::-1]
    elif order == "random":
        edges = np.random.default_rng(0).permutation(edges)
    elif order == "by target":
        edges = edges[np.lexsort(edges.T)]
    opened = fp.open_graph(edges, num_vertices=n)
    for balance in (1.0, 1.05):
        partition = fp.spring(opened, k=k, balance=balance)
        assert partition.loads.tolist() == np.bincount(partition.assignment, minlength=k).tolist()
        assert partition.loads.max() <= partition.cap == np.ceil(balance * n / k)


# 16
def test_100_000_components_stay_whole():
    pairs = np.arange(200_000, dtype=np.uint32).reshape(-1, 2)
    summary = fp.evaluate(pairs, fp.spring(pairs, k=8)).summary.row(0, named=True)
    assert summary["vertex_balance"] <= 1.05
    assert summary["cut_ratio"] < 1e-3


# 5
def test_empty_graph_has_cut_0_and_factors_1():
    empty = np.zeros((0, 2), np.uint32)
    summary = fp.evaluate(empty, fp.VertexPartition([], 3), [], {"train": []}).summary.row(0, named=True)
    expected = {"n": 0, "m": 0, "loops": 0, "cut_ratio": 0.0, "label_skew": 0.0}
    expected |= dict.fromkeys(("vertex_balance", "edge_balance", "halo_rf", "train_balance"), 1.0)
    assert {name: summary[name] for name in expected} == expected
    summary = fp.evaluate(empty, fp.EdgePartition([], 3)).summary.row(0, named=True)
    assert [summary[name] for name in ("rf", "edge_balance", "replica_balance")] == [1.0, 1.0, 1.0]


# 8
def test_loops_are_counted_and_never_cut():
    loops = np.array([[v, v] for v in range(6)] * 2, np.uint32)
    evaluation = fp.evaluate(loops, [0, 0, 1, 1, 2, 2])
    summary = evaluation.summary.row(0, named=True)
    assert (summary["m"], summary["loops"], summary["cut_ratio"], summary["halo_rf"]) == (12, 12, 0.0, 1.0)
    assert summary["edge_balance"] == 1.0
    assert evaluation.parts["volume"].sum() == evaluation.parts["edges_internal"].sum() == 0
    # Replicas count them: a loop is a record like any other in an edge partition.
    edge = fp.evaluate(loops, fp.EdgePartition([0] * 6 + [1] * 6, 2)).summary.row(0, named=True)
    assert (edge["loops"], edge["rf"]) == (12, 2.0)


def test_halos_of_many_parts_are_counted_in_several_passes():
    star = np.array([[0, v] for v in range(1, 200)], np.uint32)
    evaluation = fp.evaluate(star, np.arange(200))
    assert evaluation.parts["halo"].to_list() == [199] + [1] * 199
    assert evaluation.summary["halo_rf"][0] == (200 + 2 * 199) / 200


def test_cut_matrix_of_more_than_4096_parts_is_a_sparse_frame():
    edges = np.array([[0, 1], [1, 0], [1, 2], [2, 3], [3, 3]], np.uint32)
    matrix = fp.evaluate(edges, fp.VertexPartition([0, 4096, 7, 7], 4097)).cut_matrix
    assert isinstance(matrix, pl.DataFrame)
    assert matrix.columns == ["part", "other", "records"]
    assert sorted(matrix.rows()) == [(0, 4096, 2), (7, 7, 1), (7, 4096, 1)]
    dense = fp.evaluate(edges, fp.VertexPartition([0, 4095, 7, 7], 4096)).cut_matrix
    assert dense.shape == (4096, 4096)
    assert (dense[0, 4095], dense[4095, 0], dense[7, 7], dense.sum()) == (2, 2, 1, 7)


def test_columns_and_their_order():
    vertex = fp.evaluate(PATH, [0, 0, 1, 1], [0, 1, 0, 1], {"train": [0], "val": [1], "test": [2]})
    assert " ".join(vertex.parts.columns) == (
        "part vertices edges_internal edges_cut volume halo components load cap train val test label_skew"
    )
    assert " ".join(vertex.summary.columns) == (
        "of algorithm k n m loops cut_ratio vertex_balance edge_balance halo_rf components "
        "train_balance val_balance test_balance label_skew"
    )
    edge = fp.evaluate(PATH, fp.EdgePartition([0, 0, 1], 2))
    assert " ".join(edge.parts.columns) == "part edges replicas load cap"
    assert " ".join(edge.summary.columns) == "of algorithm k n m loops rf edge_balance replica_balance"


def test_json_holds_the_same_names_and_null_for_the_undefined():
    partition = fp.spring(PATH, k=2)
    evaluation = fp.evaluate(PATH, fp.VertexPartition([0, 0, 0, 0], 2), [0, 1, 0, 1])
    content = json.loads(evaluation.to_json())
    assert content["summary"] == evaluation.summary.row(0, named=True)
    assert content["parts"] == evaluation.parts.rows(named=True)
    assert [row["label_skew"] for row in content["parts"]] == [0.0, None]
    assert json.loads(fp.evaluate(PATH, partition).to_json())["parts"][0]["cap"] == partition.cap


def test_text_shows_totals_and_shortens_many_parts():
    few = str(fp.evaluate(PATH, [0, 0, 1, 1]))
    assert "cut_ratio" in few
    assert "0.3333" in few
    assert len(few.splitlines()) == 2 + 1 + 3
    many = str(fp.evaluate(PATH, fp.VertexPartition([0, 1, 2, 3], 100))).splitlines()
    assert "... 60 more parts ..." in many
    assert len(many) == 2 + 1 + 1 + 41


@pytest.mark.parametrize("part", [[0, 0, 1, 1], (0, 0, 1, 1), np.array([0, 0, 1, 1], np.uint8)])
def test_a_plain_array_is_a_vertex_partition(part):
    assert fp.evaluate(PATH, part).summary.row(0, named=True)["k"] == 2


@pytest.mark.parametrize(
    ("part", "error", "text"),
    [
        ([0, -1, 0, 0], fp.errors.ParameterError, "vertex 1 has part -1"),
        ([0.0, 1.0, 0.0, 0.0], TypeError, "float64"),
        ([[0, 0, 1, 1]], TypeError, "shape"),
        (["a", "b", "c", "d"], TypeError, "integers"),
        ([0, 2**40, 0, 0], fp.errors.ParameterError, "k: "),
    ],
)
def test_arrays_that_are_no_partition_are_refused(part, error, text):
    with pytest.raises(error, match=text):
        fp.evaluate(PATH, part)


# 46
def test_partition_of_another_graph_is_refused():
    partition = fp.spring(PATH, k=2)
    with pytest.raises(fp.errors.GraphFormatError, match=r"another graph: its n is 4, the graph's is 6"):
        fp.evaluate(fp.open_graph(PATH, num_vertices=6), partition)
    with pytest.raises(fp.errors.GraphFormatError, match=r"another graph: its m is 3, the graph's is 2"):
        fp.evaluate(fp.open_graph(PATH[:2], num_vertices=4), partition)
    with pytest.raises(fp.errors.GraphFormatError, match="another graph: its checksum is"):
        fp.evaluate(PATH[:, ::-1], partition)
    with pytest.raises(fp.errors.GraphFormatError, match=r"it has 3 vertices, the graph has 4$"):
        fp.evaluate(PATH, [0, 0, 1])
    with pytest.raises(fp.errors.GraphFormatError, match="it has 4 records, the graph has 3"):
        fp.evaluate(PATH, fp.EdgePartition([0, 0, 1, 1], 2))


# Labels and splits.


def skew(labels):
    return fp.evaluate(PATH, [0, 0, 1, 1], labels).summary["label_skew"][0]


@pytest.mark.parametrize(
    "labels",
    [
        [5, 5, 9, 9],
        np.array([5, 5, 9, 9], np.uint8),
        np.array([5, 5, 9, 9], ">i8"),
        np.array([[5], [5], [9], [9]]),
        np.array([5.0, 5.0, 9.0, 9.0], np.float32),
        np.array([False, False, True, True]),
    ],
)
def test_labels_in_every_form(labels):
    assert skew(labels) == 0.5


def test_labels_from_a_file(tmp_path):
    np.save(tmp_path / "y.npy", np.array([5, 5, 9, 9]))
    assert skew(tmp_path / "y.npy") == skew(str(tmp_path / "y.npy")) == 0.5


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32, ">i2"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_skew_of_several_labels_counts_each_occurrence(dtype, order):
    # Of part 0: two of class 0, one of class 1; of part 1: one each of class 1 and 2.
    labels = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0], [0, 1, 1]]).astype(dtype, order=order)
    parts = fp.evaluate(PATH, [0, 0, 1, 1], labels).parts["label_skew"].to_list()
    overall = np.array([2, 2, 1]) / 5
    expected = [
        np.abs(np.array(counts) - overall).sum() / 2 for counts in ([2 / 3, 1 / 3, 0], [0, 1 / 2, 1 / 2])
    ]
    assert parts == pytest.approx(expected)


@pytest.mark.parametrize("unlabelled", [[5, -1, 9, 9], [5.0, np.nan, 9.0, 9.0]])
def test_unlabelled_vertices_do_not_count(unlabelled):
    # Part 0 has only 5s, 1/3 of the graph; part 1 only 9s.
    assert skew(unlabelled) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("labels", "error", "text"),
    [
        ([0, 1, 0], fp.errors.ParameterError, r"labels: 3 rows for 4 vertices\. Give one row"),
        ([0, 1, 0.5, np.inf], fp.errors.ParameterError, "labels: the target of vertex 3 is infinite"),
        ([0, 1, np.inf, 1], fp.errors.ParameterError, "labels: "),
        (
            np.full((4, 2), 2),
            fp.errors.ParameterError,
            r"labels: expected 0 and 1 in an array of shape \(4, 2\)",
        ),
        (
            np.array([[0, np.nan]] * 4),
            fp.errors.ParameterError,
            r"labels: expected 0 and 1 in an array of shape \(4, 2\)",
        ),
        (np.zeros((3, 2), bool), fp.errors.ParameterError, r"labels: 3 rows for 4 vertices"),
        (np.zeros((4, 0), bool), fp.errors.ParameterError, r"labels: shape \(4, 0\)"),
        (np.zeros((4, 2, 2)), fp.errors.ParameterError, r"labels: shape \(4, 2, 2\)"),
        (np.zeros((4, 2), "m8[s]"), TypeError, "labels: .* got dtype timedelta64"),
        (np.array([0, 1, None, 1]), TypeError, "labels: .* got dtype object"),
        (np.array([0, 1, 2, 2**64 - 1], np.uint64), fp.errors.ParameterError, "labels: "),
    ],
)
def test_labels_that_are_refused(labels, error, text):
    with pytest.raises(error, match=text):
        skew(labels)


def test_label_files_that_are_refused(tmp_path):
    np.savez(tmp_path / "y.npz", y=np.zeros(4, np.int64))
    with pytest.raises(fp.errors.ParameterError, match="labels: the file is an archive"):
        skew(tmp_path / "y.npz")
    np.save(tmp_path / "object.npy", np.array([0, 1, None, 1]), allow_pickle=True)
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"object\.npy: not a \.npy or \.npz of plain arrays"
    ):
        skew(tmp_path / "object.npy")
    with pytest.raises(FileNotFoundError, match="absent"):
        skew(tmp_path / "absent.npy")


def balances(splits, **options):
    summary = fp.evaluate(PATH, [0, 0, 1, 1], splits=splits, **options).summary.row(0, named=True)
    return {
        name.removesuffix("_balance"): summary[name]
        for name in summary
        if name[:-8] in ("train", "val", "test")
    }


MASKS = {name: np.array([row, [1, 1, 1, 1]], bool) for name, row in
         {"train_masks": [1, 1, 0, 1], "val_masks": [0, 0, 1, 0]}.items()}  # fmt: skip


@pytest.mark.parametrize(
    "splits",
    [
        {"train": [0, 1, 3], "val": [2]},
        {"train": [0, 1, 3], "valid": [2]},
        {"train": [0, 1, 3], "validation": [2]},
        {"train": np.array([3, 1, 0], np.uint32), "val": np.array([2], ">i2")},
        {"train": np.array([True, True, False, True]), "val": [False, False, True, False]},
    ],
)
def test_splits_in_every_form(splits, tmp_path):
    assert balances(splits) == pytest.approx({"train": 4 / 3, "val": 2.0})
    np.savez(tmp_path / "split.npz", **splits)
    assert balances(tmp_path / "split.npz") == pytest.approx({"train": 4 / 3, "val": 2.0})


def test_row_of_the_masks_by_its_number():
    assert balances(MASKS, split=0) == pytest.approx({"train": 4 / 3, "val": 2.0})
    assert balances(MASKS, split=1) == {"train": 1.0, "val": 1.0}
    # A plain name wins over masks.
    assert balances(MASKS | {"train": [0]}, split=0)["train"] == 2.0


def test_other_keys_of_a_split_are_ignored_with_a_note(caplog):
    with caplog.at_level(logging.INFO, "fastpart"):
        assert balances({"train": [0, 3], "seed": 7}) == {"train": 1.0}
    assert "splits: ignored seed" in caplog.messages


@pytest.mark.parametrize(
    ("splits", "options", "error", "text"),
    [
        ([0, 1], {}, TypeError, "splits: expected a mapping"),
        ({"fold": [0]}, {}, fp.errors.ParameterError, r"none of train, val, test in \['fold'\]$"),
        (MASKS, {}, fp.errors.ParameterError, "Choose a row of the masks with split="),
        (MASKS, {"split": 2}, fp.errors.ParameterError, r"split: 2, but train_masks has shape \(2, 4\)"),
        (MASKS, {"split": -1}, fp.errors.ParameterError, "split: -1"),
        (MASKS, {"split": 1.0}, TypeError, "split: expected an integer, got float"),
        ({"train_masks": [True] * 4}, {"split": 0}, fp.errors.ParameterError, r"train_masks has shape \(4,\)"),
        ({"train": [0], "tset": [1]}, {}, fp.errors.ParameterError, "'tset'. Name them train, val .or valid"),
        ({"train": [0], "val_mask": [1]}, {}, fp.errors.ParameterError, "unknown name 'val_mask'"),
        ({"val": [0], "train_masks": [[True] * 4]}, {}, fp.errors.ParameterError, "Choose a row of the masks"),
        ({"val": [0], "valid": [1]}, {}, fp.errors.ParameterError, "val and valid name the same split"),
        ({"train": [0, 4]}, {}, fp.errors.ParameterError, r"train holds the id 4, outside 0\.\.3"),
        ({"train": [-1]}, {}, fp.errors.ParameterError, "train holds the id -1"),
        ({"val": [1, 2, 1]}, {}, fp.errors.ParameterError, "val: 1 occurs more than once"),
        ({"val": [0, 1, 1, 0]}, {}, fp.errors.ParameterError, r"val: holds only 0 and 1.* Pass .astype\(bool\) of it"),
        ({"test": [True] * 3}, {}, fp.errors.ParameterError, "test: 3 rows for 4 vertices"),
        ({"train": [[0, 1]]}, {}, fp.errors.ParameterError, r"train: .* got shape \(1, 2\)"),
        ({"train": [0.0, 1.0]}, {}, TypeError, "train: .* got dtype float64"),
    ],
)  # fmt: skip
def test_splits_that_are_refused(splits, options, error, text):
    with pytest.raises(error, match=text):
        balances(splits, **options)


def test_splits_with_common_vertices_are_told():
    with pytest.warns(
        fp.errors.GraphWarning, match="^splits: train and test share 2 vertices, the first of them 1. "
    ) as told:
        balances({"train": [0, 1, 3], "test": [3, 1], "val": [2]})
    assert len(told) == 1
    with pytest.warns(fp.errors.GraphWarning, match="^splits: val and test share vertex 2. "):
        balances({"val": [2], "test": [False, False, True, False]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        balances({"train": [0], "val": [1], "test": []})


def test_labels_and_splits_have_no_place_in_edge_partitions():
    with pytest.raises(
        fp.errors.ParameterError, match="labels, splits: an edge partition has no measures of them"
    ):
        fp.evaluate(PATH, fp.EdgePartition([0, 0, 1], 2), labels=[0, 1, 0, 1])


def test_the_number_of_threads_changes_no_measure():
    random = np.random.default_rng(0)
    edges = random.integers(0, 3000, (20_000, 2))
    part = random.integers(0, 70, 3000)
    first = fp.evaluate(fp.open_graph(edges, num_vertices=3000), part, threads=1)
    third = fp.evaluate(fp.open_graph(edges, num_vertices=3000), part, threads=3)
    assert first.to_json() == third.to_json()
    assert (first.cut_matrix == third.cut_matrix).all()


@pytest.mark.parametrize("read_only", [False, True], ids=["array", "read-only view"])
def test_parts_that_change_during_a_count_do_not_change_it(read_only):
    n = 1 << 12
    graph = fp.open_graph(np.random.default_rng(0).integers(0, n, (1 << 22, 2), dtype=np.uint32))
    parts = np.arange(n, dtype=np.int32) % 2
    given = parts[:]
    given.flags.writeable = not read_only
    expected = _core.cut_counts(graph._source, parts.copy(), 2, run_options())
    changes = []

    def change(*_progress):
        parts[:] = 1
        changes.append(None)

    counts = _core.cut_counts(graph._source, given, 2, run_options(threads=1, progress=change))
    assert changes
    assert [*counts.cut, *counts.internal] == [*expected.cut, *expected.internal]
