"""Training that does not look ahead: the same losses for any partition, and scores from temporal samples."""

import numpy as np
import pytest

import fastpart as fp
from temporal import NO_TIME, save, timed_graph
from typed_training import typed_parts

pytest.importorskip("torch")

N = 300
HOW = {"fanouts": [4, 3], "batch_size": 40, "hidden": 8, "epochs": 2, "dropout": 0.3, "precision": "float64"}


def rows(label=None):
    """Return records, and rows to save."""
    records, _, edge_times = timed_graph(N)
    rng = np.random.default_rng(1)
    features = rng.normal(size=(N, 6)).astype(np.float32)
    order, times = rng.permutation(N), rng.integers(10, 60, N)
    splits = {"train": order[:150], "val": order[150:220], "test": order[220:]}
    labels = features[:, :3].argmax(1) if label is None else label
    return records, {
        "times": times,
        "edge_times": edge_times,
        "features": features,
        "labels": labels,
        "splits": splits,
    }


@pytest.mark.parametrize(("temporal", "scores"), [("uniform", "exact"), ("last", "sampled")])
def test_losses_and_scores_are_the_same_for_any_partition(tmp_path, temporal, scores):
    found = []
    for k, workers in [(1, 1), (2, 2), (4, 1)]:
        records, given = rows()
        save(tmp_path / f"{k}", N, records, k, **given)
        trained = fp.train.sampled(
            tmp_path / f"{k}", workers=workers, temporal=temporal, scores=scores, **HOW
        )
        numbers = trained.history.select("loss", "val_accuracy").to_numpy()
        found.append([*numbers.ravel(), trained.summary["val_accuracy"], trained.summary["test_accuracy"]])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-9)


def test_scores_do_not_look_ahead(tmp_path):
    """Only later neighbours carry the label of a vertex: who looks ahead is right, who does not has to guess."""
    rng = np.random.default_rng(0)
    seeds, n = 200, 400
    labels = np.concatenate([rng.integers(0, 2, seeds), np.zeros(seeds, int)])
    features = np.zeros((n, 2), np.float32)
    features[np.arange(seeds, n), labels[:seeds]] = 1
    records = np.stack([np.arange(seeds, n), np.arange(seeds)], axis=1).astype(np.uint32)
    splits = {"train": np.arange(100), "val": np.arange(100, 150), "test": np.arange(150, 200)}
    given = {"features": features, "labels": labels, "splits": splits, "times": np.full(n, 5)}
    for name, edge_times in {"later": np.full(seeds, 5), "earlier": np.full(seeds, 4)}.items():
        graph = fp.open_graph(records, num_vertices=n, directedness="directed")
        times = given["times"] if name == "later" else np.where(np.arange(n) < seeds, 5, NO_TIME)
        fp.algorithms.random(graph, k=2, of="vertices").save(
            tmp_path / name, graph=graph, edge_times=edge_times, **given | {"times": times}
        )
    how = {"fanouts": [5], "layers": 1, "hidden": 4, "epochs": 12, "lr": 0.3, "dropout": 0, "workers": 1}
    for scores in ("exact", "sampled"):
        told = {
            name: fp.train.sampled(tmp_path / name, temporal="uniform", scores=scores, **how).summary
            for name in ("later", "earlier")
        }
        assert told["earlier"]["test_accuracy"] == told["earlier"]["val_accuracy"] == 1
        assert told["later"]["test_accuracy"] < 0.75
    assert fp.train.sampled(tmp_path / "later", **how).summary["test_accuracy"] == 1


def test_a_plan_leaves_the_losses_alone(tmp_path):
    records, given = rows()
    stored = save(tmp_path / "parts", N, records, 2, **given)
    plan = stored.plan(2, fanouts=[4, 3], batch_size=40, temporal="last", pack=tmp_path / "plan")
    losses = [
        fp.train.sampled(tmp_path / "parts", workers=1, temporal="last", plan=each, **HOW).history["loss"]
        for each in (None, plan)
    ]
    assert losses[0].to_list() == losses[1].to_list()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"temporal": "first"}, "temporal: .*uniform.*last"),
        ({"temporal": "last", "sampling": "labor"}, "says how neighbours are sampled"),
        ({"temporal": "last", "model": "gcn"}, "in-degrees of the whole graph"),
        ({"temporal": "last", "model": "graphsage-gcn"}, "in-degrees of the whole graph"),
        ({"temporal": "last", "model": "clustergcn"}, "sampled graphs, which have no times"),
    ],
)
def test_refusals(tmp_path, given, text):
    records, all_rows = rows()
    save(tmp_path / "parts", N, records, 2, **all_rows)
    with pytest.raises(fp.errors.ParameterError, match=text):
        fp.train.sampled(tmp_path / "parts", workers=1, epochs=1, **given)


def test_vertices_without_a_time_are_refused(tmp_path):
    records, given = rows()
    given["times"][given["splits"]["test"][:3]] = NO_TIME
    save(tmp_path / "parts", N, records, 2, **given)
    with pytest.raises(fp.errors.ParameterError, match="3 of 80 seeds have no time"):
        fp.train.sampled(tmp_path / "parts", workers=1, epochs=1, temporal="uniform")
    del given["times"]
    save(tmp_path / "edges", N, records, 2, **given)
    with pytest.raises(fp.errors.ParameterError, match="150 of 150 seeds have no time"):
        fp.train.sampled(tmp_path / "edges", workers=1, epochs=1, temporal="uniform")


@pytest.mark.parametrize("model", ["gat", "gatv2", "ngnn"])
def test_models_without_degrees_train(tmp_path, model):
    records, given = rows()
    save(tmp_path / "parts", N, records, 2, **given)
    trained = fp.train.sampled(
        tmp_path / "parts", workers=1, epochs=1, model=model, temporal="last", hidden=8
    )
    assert np.isfinite(trained.history["loss"].to_numpy()).all()


def test_typed_losses_are_the_same_for_any_partition(tmp_path):
    found = []
    for k, workers in [(1, 1), (3, 1), (4, 2)]:
        folder, rng = tmp_path / f"{k}", np.random.default_rng(0)
        (folder / "sizes").mkdir(parents=True)
        graph = typed_parts(folder / "sizes", k)[0].parts[0]
        sizes = {each.name: each.n for each in graph.types}
        records = {each.name: each.relation.m for each in graph.edge_types}
        times = {
            "paper": rng.integers(20, 60, sizes["paper"]),
            "author": rng.integers(0, 60, sizes["author"]),
        }
        edge_times = {"cites": rng.integers(0, 60, records["cites"])}
        typed_parts(folder, k, times=times, edge_times=edge_times)
        how = {"model": "rgcn", "workers": workers, "temporal": "last", "scores": "exact", **HOW}
        trained = fp.train.sampled(folder / "parts", **how | {"fanouts": [3, 2], "batch_size": 20})
        numbers = trained.history.select("loss", "val_accuracy").to_numpy()
        found.append([*numbers.ravel(), trained.summary["test_accuracy"]])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-9)
