"""``fp.train.compare``: one row per method and partitioner, from the single trainings."""

import json
import statistics

import numpy as np
import polars as pl
import pytest

import fastpart as fp
from trainable import planted

pytest.importorskip("torch")
pytest.importorskip("dgl")

from fastpart.train import comparing

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
    """Return a list of all trainings: the method, what it was given, and what it made; distdgl is stood in for."""
    runs = []

    def recording(name, function):
        def train(src, **options):
            manifest = json.loads((src / "manifest.json").read_bytes())
            made = function(src, **options)
            runs.append((name, manifest, options, made))
            return made

        return train

    def stand_in(src, **options):
        return fp.train.full(src, **options)

    methods = {"full": fp.train.full, "sdt": fp.train.sdt, "distdgl": stand_in}
    monkeypatch.setattr(comparing, "METHODS", {name: recording(name, f) for name, f in methods.items()})
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
        accuracies = [made.totals["test_accuracy"] for *_, made in runs]
        assert row["test_accuracy"] == statistics.fmean(accuracies)
        assert row["spread"] == max(accuracies) - min(accuracies)
        assert row["test_f1"] == statistics.fmean(made.totals["test_f1"] for *_, made in runs)
        for name in ("seconds_per_epoch", "remote_bytes", "worker_bytes"):
            median = statistics.median(made.totals[name] for *_, made in runs)
            assert row[name] == pytest.approx(median, abs=0.5 if name.endswith("bytes") else 0)
        _, manifest, _, _ = runs[0]
        for name in ("cut_ratio", "halo_rf", "label_skew"):
            expected = None if row["partitioner"] is None else manifest["metrics"][name]
            assert row[name] == expected
        assert row["k"] == (None if row["partitioner"] is None else 2)


@pytest.mark.timeout(120)
def test_sdt_with_its_processes(given):
    (row,) = compare(given, methods=["sdt"], partitioners=["spring"], seeds=1).rows(named=True)
    assert row["spread"] == 0
    assert row["remote_bytes"] > 0
    assert row["worker_bytes"] > 0
    assert row["cut_ratio"] > 0


@pytest.mark.parametrize(
    ("training", "of_a_part", "of_all"),
    [({}, 1000, 2000), ({"batch_size": 50}, 50, 100), ({"batch_size": None}, None, None)],
)
def test_all_methods_make_as_many_steps(given, recorded, training, of_a_part, of_all):
    compare(given, methods=["distdgl", "full"], partitioners=["hash"], seeds=1, fanouts=[3, 3], **training)
    sizes = {name: options["batch_size"] for name, _, options, _ in recorded}
    assert sizes == {"distdgl": of_a_part, "full": of_all}
    assert all((options["fanouts"], options["lr"]) == ([3, 3], 0.05) for _, _, options, _ in recorded)


def test_full_alone_trains_once_per_seed(given, recorded):
    table = compare(given, methods=["full"], seeds=2)
    assert table.height == 1
    assert [name for name, *_ in recorded] == ["full", "full"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"methods": ["sdt", "gossip"]}, fp.ParameterError, "methods: unknown value 'gossip'"),
        ({"partitioners": ["metis"]}, fp.ParameterError, "partitioners: unknown value 'metis'"),
        ({"partitioners": ["hdrf"]}, fp.ParameterError, "partitioners: hdrf makes parts of edges"),
        ({"seeds": 0}, fp.ParameterError, "seeds: 0 is not between 1 and"),
        ({"workers": 2}, fp.ParameterError, "workers: not a parameter that all methods take"),
        ({"seed": 3}, fp.ParameterError, "seed: not a parameter that all methods take"),
        ({"epochs": 0}, fp.ParameterError, "epochs: 0"),
        ({"batch_size": 0}, fp.ParameterError, "batch_size: 0 is not between 1 and"),
        ({"labels": np.zeros(3, int)}, fp.ParameterError, "labels: 3 rows for 600 vertices"),
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
