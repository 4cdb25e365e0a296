"""``fp.train.compare``: one row per method and partitioner, from the single trainings."""

import functools
import json
import statistics

import numpy as np
import polars as pl
import pytest

import fastpart as fp
from trainable import planted

pytest.importorskip("torch")

from fastpart.train import comparing
from fastpart.train.comparing import planned
from fastpart.train.registry import of

TRAINING = {"epochs": 4, "hidden": 8, "lr": 0.05}


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Return a graph, and what belongs to its vertices."""
    folder = tmp_path_factory.mktemp("planted")
    planted(folder, k=2)
    labels = np.load(folder / "g.bin.labels.npy")
    order = np.random.default_rng(0).permutation(len(labels))
    splits = {"train": order[:300], "val": order[300:450], "test": order[450:]}
    return folder / "g.bin", {"features": folder / "g.bin.features.npy", "labels": labels, "splits": splits}


@pytest.fixture
def recorded(monkeypatch):
    """Return a list of all trainings: method, manifest, parameters, and what came out; some methods are stand-ins."""
    runs = []

    def recording(name, function):
        @functools.wraps(function)
        def train(source, **options):
            manifest = json.loads((source / "manifest.json").read_bytes())
            made = function(source, **options)
            runs.append((name, manifest, options, made))
            return made

        return train

    full, sdt = fp.train.full, fp.train.sdt

    def full_batches(source, *, hidden=64, lr=0.01, epochs=100, seed=0, threads=None, **_):
        trained = full(source, hidden=hidden, lr=lr, epochs=epochs, seed=seed, threads=threads)
        trained.summary["peak_bytes"] = 1000 + seed
        return trained

    methods = {
        "full": full,
        "sdt": sdt,
        "sampled": full,
        "distdgl": full,
        "distgnn": full_batches,
        "sancus": full_batches,
    }
    recorders = {name: recording(name, function) for name, function in methods.items()}
    for name, recorder in recorders.items():
        monkeypatch.setattr(of(name), "function", recorder)
    monkeypatch.setattr("fastpart.train.comparing.import_dgl", lambda: None)  # its stand-in needs none
    return runs


def compare(given, **options):
    edges, content = given
    return fp.train.compare(edges, 2, **content, **{"threads": 1, **TRAINING, **options})


@pytest.mark.timeout(120)
def test_rows_are_those_of_the_single_runs(given, recorded):
    steps = []
    table = compare(
        given,
        methods=["distdgl", "full"],
        partitioners=["spring", "random"],
        seeds=2,
        progress=lambda *step: steps.append(step),
    )
    assert table.schema == pl.Schema(comparing.COLUMNS)
    kinds = [("distdgl", "spring"), ("distdgl", "random"), ("full", None)]
    assert table.select("method", "partitioner").rows() == kinds
    assert steps == [("training", done, 6) for done in range(1, 7)]
    for row in table.iter_rows(named=True):
        runs = [run for run in recorded if run[0] == row["method"]]
        if row["partitioner"] is not None:
            runs = [run for run in runs if run[1]["algorithm"] == row["partitioner"]]
        assert [options["seed"] for _, _, options, _ in runs] == [0, 1]
        accuracies = [made.summary["test_accuracy"] for *_, made in runs]
        assert row["test_accuracy"] == statistics.fmean(accuracies)
        assert row["spread"] == max(accuracies) - min(accuracies)
        assert row["test_f1"] == statistics.fmean(made.summary["test_f1"] for *_, made in runs)
        for name in ("seconds_per_epoch", "idle_share", "remote_bytes", "worker_bytes"):
            median = statistics.median(made.summary[name] for *_, made in runs)
            assert row[name] == pytest.approx(median, abs=0.5 if name.endswith("bytes") else 0)
        _, manifest, _, _ = runs[0]
        for name in ("cut_ratio", "halo_rf", "label_skew"):
            expected = None if row["partitioner"] is None else manifest["summary"][name]
            assert row[name] == expected
        assert row["replication_factor"] is row["peak_bytes"] is None
        assert row["k"] == (None if row["partitioner"] is None else 2)


@pytest.mark.timeout(120)
def test_sdt_with_its_processes(given):
    (row,) = compare(given, methods=["sdt"], partitioners=["spring"], seeds=1).rows(named=True)
    assert row["spread"] == 0
    assert row["remote_bytes"] > 0
    assert row["worker_bytes"] > 0
    assert row["cut_ratio"] > 0


@pytest.mark.timeout(120)
def test_methods_with_the_same_batches_learn_the_same(given):
    methods = ["sampled", "bytegnn", "armada"]
    rows = compare(given, methods=methods, partitioners=["spring"], seeds=1, epochs=4).rows(named=True)
    assert [row["method"] for row in rows] == methods
    accuracies = [row["test_accuracy"] for row in rows]
    assert accuracies == pytest.approx([accuracies[0]] * 3, abs=0.01)
    assert all(0 < row["idle_share"] < 1 for row in rows)
    assert all(row["worker_bytes"] > 0 for row in rows)
    assert rows[2]["remote_bytes"] > rows[0]["remote_bytes"]  # armada sends all rows


@pytest.mark.timeout(120)
def test_distgnn_with_its_processes_is_as_the_reference(given):
    options = {
        "methods": ["distgnn", "full"],
        "partitioners": ["hdrf"],
        "seeds": 1,
        "batch_size": None,
        "epochs": 8,
    }
    row, reference = compare(given, **options).rows(named=True)
    assert row["test_accuracy"] == pytest.approx(reference["test_accuracy"], abs=0.01)  # the same steps
    assert row["replication_factor"] > 1
    assert row["remote_bytes"] > 0
    assert row["peak_bytes"] >= row["worker_bytes"] > 0
    assert reference["peak_bytes"] is None


@pytest.mark.parametrize(
    ("training", "size"),
    [({}, 1000), ({"batch_size": 50}, 50), ({"batch_size": None}, None)],
)
def test_all_methods_make_as_many_steps(given, recorded, training, size):
    compare(given, methods=["distdgl", "full"], partitioners=["hash"], seeds=1, fanouts=[3, 3], **training)
    sizes = {name: options["batch_size"] for name, _, options, _ in recorded}
    assert sizes == {"distdgl": size, "full": size}
    assert all((options["fanouts"], options["lr"]) == ([3, 3], 0.05) for _, _, options, _ in recorded)


def test_full_alone_trains_once_per_seed(given, recorded):
    table = compare(given, methods=["full"], seeds=2)
    assert table.height == 1
    assert [name for name, *_ in recorded] == ["full", "full"]


def trained_over(runs):
    """Return what trained over which parts, in order, once each."""
    return list(dict.fromkeys((name, made["algorithm"], made["of"]) for name, made, _, _ in runs))


@pytest.mark.timeout(120)
def test_methods_train_over_the_parts_that_they_need(given, recorded):
    table = compare(
        given, methods=["distgnn", "sancus", "full"], partitioners=["sigma", "hdrf", "dbh", "random"], seeds=2
    )
    expected = [
        ("sancus", "sigma", "vertices"),
        ("distgnn", "sigma", "edges"),
        ("distgnn", "hdrf", "edges"),
        ("distgnn", "dbh", "edges"),
        ("sancus", "random", "vertices"),
        ("distgnn", "random", "edges"),
    ]
    assert trained_over(recorded)[:6] == expected
    assert table.select("method", "partitioner").rows() == [each[:2] for each in expected] + [("full", None)]
    for row in table.head(6).iter_rows(named=True):
        measured = next(
            made["summary"]
            for name, made, *_ in recorded
            if (name, made["algorithm"]) == (row["method"], row["partitioner"])
        )
        assert row["replication_factor"] == measured.get("rf")
        assert row["cut_ratio"] == measured.get("cut_ratio")
        assert (row["replication_factor"] is None) == (row["method"] == "sancus")
        assert (row["cut_ratio"] is None) == (row["method"] == "distgnn")
        assert row["peak_bytes"] == 1000


@pytest.mark.parametrize(
    ("methods", "expected"),
    [
        (["distgnn"], [("distgnn", name, "edges") for name in ("sigma", "hdrf", "dbh", "random")]),
        (["sancus"], [("sancus", name, "vertices") for name in ("spring", "sigma", "grem", "random")]),
        (
            ["sdt", "distgnn", "full"],
            [
                ("sdt", "spring", "vertices"),
                ("sdt", "sigma", "vertices"),
                ("distgnn", "sigma", "edges"),
                ("sdt", "grem", "vertices"),
                ("sdt", "random", "vertices"),
                ("distgnn", "random", "edges"),
                ("distgnn", "hdrf", "edges"),
                ("distgnn", "dbh", "edges"),
            ],
        ),
    ],
)
def test_partitioners_that_are_not_named(methods, expected):
    found = [
        (method, each.partitioner, each.of) for each in planned(methods, None) for method in each.methods
    ]
    assert found == expected


def test_partitioners_and_methods_of_vertices_and_edges_pair_up(given, recorded):
    compare(given, methods=["distdgl", "distgnn"], partitioners=["spring", "hdrf"], seeds=1, epochs=1)
    assert trained_over(recorded) == [("distdgl", "spring", "vertices"), ("distgnn", "hdrf", "edges")]


def test_a_partitioner_that_needs_splits_gets_those_of_the_training(given, recorded):
    compare(given, methods=["sdt"], partitioners=["bytegnn"], seeds=1, epochs=1)
    _, manifest, _, _ = recorded[0]
    assert manifest["algorithm"] == "bytegnn"
    assert manifest["parameters"]["splits"] == {name: len(ids) for name, ids in given[1]["splits"].items()}


def test_full_alone_takes_parts_of_either(given, recorded):
    table = compare(given, methods=["full"], partitioners=["hdrf"], seeds=1)
    assert trained_over(recorded) == [("full", "hdrf", "edges")]
    assert table["partitioner"].to_list() == [None]


def test_methods_are_given_what_they_take(given, recorded):
    compare(given, methods=["distgnn", "distdgl"], partitioners=["random"], seeds=1, batch_size=50, layers=1)
    options = {name: options for name, _, options, _ in recorded}
    run = {"threads": 1, "tmp_dir": None, "progress": None, "memory_limit": None}
    assert options["distgnn"] == {"epochs": 4, "hidden": 8, "lr": 0.05, "seed": 0, **run}
    assert options["distdgl"] == {**options["distgnn"], "batch_size": 50, "layers": 1, "baselines": False}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"methods": ["sdt", "gossip"]}, fp.errors.ParameterError, "methods: unknown value 'gossip'"),
        ({"partitioners": ["metis"]}, fp.errors.ParameterError, "partitioners: unknown value 'metis'"),
        (
            {"partitioners": ["hdrf", "spring"]},
            fp.errors.ParameterError,
            r"partitioners: hdrf makes parts of edges, but no method trains over these\. .*\(distgnn\)",
        ),
        (
            {"methods": ["distgnn", "full"], "partitioners": ["spring"]},
            fp.errors.ParameterError,
            "partitioners: spring makes parts of vertices, but .*sampled, bytegnn, armada, distdgl, sdt, sancus",
        ),
        (
            {"methods": ["distgnn", "sdt"], "partitioners": ["spring", "grem"]},
            fp.errors.ParameterError,
            "methods: distgnn trains over parts of edges, but no partitioner makes these. .*sigma, random, dbh",
        ),
        (
            {"methods": ["distgnn", "sdt"], "partitioners": ["dbh"]},
            fp.errors.ParameterError,
            "methods: sdt trains over parts of vertices, but .*spring, sigma, grem",
        ),
        (
            {"methods": ["full"], "partitioners": []},
            fp.errors.ParameterError,
            "partitioners: the list is empty",
        ),
        (
            {"methods": ["distgnn"], "fanouts": [3, 3]},
            fp.errors.ParameterError,
            "fanouts: no method takes this parameter",
        ),
        ({"seeds": 0}, fp.errors.ParameterError, "seeds: 0 is not between 1 and"),
        (
            {"workers": 2},
            TypeError,
            "has no parameter .workers.. Its parameters: graph, k, .*, model, hidden",
        ),
        ({"seed": 3}, TypeError, "has no parameter .seed."),
        ({"epochs": 0}, fp.errors.ParameterError, "epochs: 0"),
        ({"batch_size": 0}, fp.errors.ParameterError, "batch_size: 0 is not between 1 and"),
        ({"labels": np.zeros(3, int)}, fp.errors.ParameterError, "labels: 3 rows for 600 vertices"),
    ],
)
def test_refusals(given, recorded, options, error, message):
    edges, content = given
    with pytest.raises(error, match=message):
        fp.train.compare(edges, 2, **{**content, "threads": 1, **TRAINING, **options})
    assert not recorded


def test_an_exception_in_progress_ends_it(given, recorded):
    def stop(*_):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        compare(given, methods=["full"], seeds=3, progress=stop)
    assert len(recorded) == 1
