"""Training over typed graphs: the same losses for any partition, and what is refused."""

import numpy as np
import pytest

import fastpart as fp
from typed_training import typed_parts

pytestmark = pytest.mark.torch

pytest.importorskip("torch")

FEW = {"epochs": 3, "fanouts": [4, 3], "batch_size": 20, "hidden": 8, "precision": "float64", "lr": 0.02}


def trained(folder, k, workers=1, model="rgcn", **more):
    typed_parts(folder, k)
    return fp.train.sampled(folder / "parts", model=model, workers=workers, **{**FEW, **more})


@pytest.mark.parametrize("model", ["rgcn", "hgt"])
def test_losses_are_the_same_for_any_partition_and_workers(tmp_path, model):
    how = {"model": model, "fanouts": {"cites": [4, 3], "rev_has_topic": [3, 2], "writes": [2, 2]}}
    runs = [
        trained(tmp_path / f"{k}-{workers}", k, workers, **how) for k, workers in ((1, 1), (3, 1), (4, 2))
    ]
    for run in runs[1:]:
        for name in ("loss", "val_accuracy"):
            assert np.allclose(run.history[name], runs[0].history[name], rtol=1e-9, atol=0)
        assert run.summary["test_accuracy"] == runs[0].summary["test_accuracy"]
    assert runs[0].history["rows"].to_list() != []


def test_scores_and_predictions_are_of_the_target(tmp_path):
    stored, _, labels, splits = typed_parts(tmp_path, 2)
    run = fp.train.sampled(tmp_path / "parts", model="heterosage", workers=1, out=tmp_path / "run", **FEW)
    papers = {each.name: each for each in stored.parts[0].types}["paper"]
    classes = run.predict(tmp_path / "parts")
    assert classes.shape == (papers.n,)
    assert np.mean(classes[splits["test"]] == labels[splits["test"]]) == pytest.approx(
        run.summary["test_accuracy"]
    )
    again = fp.train.open(tmp_path / "run").predict(tmp_path / "parts")
    assert np.array_equal(again, classes)
    few = run.predict(tmp_path / "parts", vertices=papers.first + np.array([7, 2]))
    assert np.array_equal(few, classes[[7, 2]])


def test_a_training_goes_on(tmp_path):
    typed_parts(tmp_path, 2)
    whole = fp.train.sampled(tmp_path / "parts", model="rgcn", workers=1, **{**FEW, "epochs": 4})
    fp.train.sampled(
        tmp_path / "parts", model="rgcn", workers=1, out=tmp_path / "run", **{**FEW, "epochs": 2}
    )
    more = fp.train.sampled(
        tmp_path / "parts", model="rgcn", workers=1, out=tmp_path / "run", resume=True, **{**FEW, "epochs": 4}
    )
    assert np.allclose(more.history["loss"], whole.history["loss"], rtol=1e-12)


def test_sampled_scores_and_regression(tmp_path):
    typed_parts(
        tmp_path, 2, labels={"paper": np.random.default_rng(0).standard_normal(240).astype(np.float32)}
    )
    run = fp.train.sampled(tmp_path / "parts", model="rgcn", workers=1, scores="sampled", **FEW)
    assert run.history["val_rmse"].is_finite().all()
    assert run.summary["test_mae"] > 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": "graphsage"}, "has types"),
        ({"target": "venue"}, "target: 'venue' is not one of the types author, field, paper"),
        ({"target": "author"}, "holds no labels, no splits of 'author'"),
        ({"fanouts": {"likes": [1, 1]}}, "fanouts: unknown relation 'likes'"),
        ({"fanouts": {"cites": [1]}}, "fanouts: 1 numbers for 2 layers"),
    ],
)
def test_what_does_not_fit_is_told(tmp_path, given, message):
    typed_parts(tmp_path, 2)
    with pytest.raises(fp.errors.ParameterError, match=message):
        fp.train.sampled(tmp_path / "parts", **{"model": "rgcn", "workers": 1, **FEW, **given})


def test_other_methods_name_the_one_that_trains(tmp_path):
    typed_parts(tmp_path, 2)
    with pytest.raises(
        fp.errors.ParameterError, match=r"source: .* holds a graph with types. Train over it with .*sampled"
    ):
        fp.train.sancus(tmp_path / "parts", epochs=1)


@pytest.mark.parametrize(
    ("model", "batch_workers", "compute_workers", "more"),
    [
        ("rgat", 1, 1, {"cache": 0.2}),
        ("rgat", 2, 2, {"cache": "2K", "policy": "lru"}),
        pytest.param("hgt", 2, 1, {}, marks=pytest.mark.soak),
        pytest.param("rgcn", 1, 2, {}, marks=pytest.mark.soak),
    ],
)
def test_batch_workers_send_types(tmp_path, model, batch_workers, compute_workers, more):
    """One batch worker and one compute worker have the losses of sampled bit for bit, with learned rows of authors."""
    of_cites = np.random.default_rng(3).standard_normal((600, 2)).astype(np.float32)
    typed_parts(tmp_path, 3, widths={"paper": 5, "field": 2}, edge_features={"cites": of_cites})
    given = {**FEW, "model": model, "dropout": 0.3, "fanouts": {"cites": [4, 3], "rev_has_topic": [3, 2]}}
    expected = fp.train.sampled(tmp_path / "parts", workers=1, **given)
    processes = {"batch_workers": batch_workers, "compute_workers": compute_workers}
    found = fp.train.armada(tmp_path / "parts", **processes, **given, **more)
    tolerance = 0 if batch_workers == compute_workers == 1 else 1e-12
    for name in ("loss", "val_accuracy"):
        np.testing.assert_allclose(found.history[name], expected.history[name], rtol=tolerance, atol=0)
    assert found.summary["test_accuracy"] == expected.summary["test_accuracy"]
    assert (found.history["cached_rows"] > 0).all() == bool(more)
    fp.train.armada(tmp_path / "parts", out=tmp_path / "run", **processes, **{**given, "epochs": 1}, **more)
    resumed = fp.train.armada(
        tmp_path / "parts", out=tmp_path / "run", resume=True, **processes, **given, **more
    )
    np.testing.assert_allclose(resumed.history["loss"], found.history["loss"], rtol=tolerance, atol=0)


def test_parts_in_memory_have_no_types(tmp_path):
    typed_parts(tmp_path, 2)
    with pytest.raises(fp.errors.ParameterError, match="order: parts in memory are sampled without types"):
        fp.train.armada(tmp_path / "parts", model="rgcn", order="parts", **FEW)


WHOLE = {"dropout": 0.0, "hidden": 8, "precision": "float64", "epochs": 4, "lr": 0.02}


@pytest.mark.parametrize("model", ["rgcn", "rgat", "hgt", "heterosage"])
def test_averaging_over_whole_neighbourhoods_is_training_on_the_whole_graph(tmp_path, model):
    for k in (1, 2):
        typed_parts(tmp_path / f"{k}", k, halo_hops=2, halo_features=k == 2)
    parts = [tmp_path / f"{k}" / "parts" for k in (1, 2)]
    whole = fp.train.sampled(parts[0], model=model, workers=1, fanouts=[-1, -1], **WHOLE)
    one = fp.train.sdt(parts[0], model=model, workers=1, **WHOLE)
    two = fp.train.sdt(parts[1], model=model, workers=2, average="gradients", **WHOLE)
    for run in (one, two):
        for name in ("loss", "val_accuracy"):
            assert np.allclose(run.history[name], whole.history[name], rtol=1e-6, atol=0)
        assert run.summary["test_accuracy"] == whole.summary["test_accuracy"]


@pytest.mark.parametrize("model", ["rgcn", "rgat", "hgt", "heterosage"])
def test_full_over_types_is_one_batch_with_all_neighbours(tmp_path, model):
    of_cites = np.random.default_rng(3).standard_normal((600, 2)).astype(np.float32)
    typed_parts(tmp_path, 3, edge_features={"cites": of_cites}, halo_hops=2)
    sampled = fp.train.sampled(tmp_path / "parts", model=model, workers=1, fanouts=[-1, -1], **WHOLE)
    full = fp.train.full(tmp_path / "parts", model=model, out=tmp_path / "run", **WHOLE)
    for name in ("loss", "val_accuracy"):
        np.testing.assert_allclose(full.history[name], sampled.history[name], rtol=1e-6, atol=0)
    assert full.summary["test_accuracy"] == sampled.summary["test_accuracy"]
    again = fp.train.open(tmp_path / "run").predict(tmp_path / "parts", what="logits")
    np.testing.assert_allclose(
        again, sampled.predict(tmp_path / "parts", what="logits"), rtol=1e-4, atol=1e-5
    )


def test_full_over_types_does_not_depend_on_parts_and_goes_on(tmp_path):
    for k in (1, 4):
        typed_parts(tmp_path / f"{k}", k)
    given = {**WHOLE, "model": "rgcn", "dropout": 0.3, "target": "paper"}
    one, four = (fp.train.full(tmp_path / f"{k}" / "parts", **given) for k in (1, 4))
    np.testing.assert_allclose(one.history["loss"], four.history["loss"], rtol=1e-9, atol=0)
    fp.train.full(tmp_path / "4" / "parts", out=tmp_path / "run", **{**given, "epochs": 2})
    more = fp.train.full(tmp_path / "4" / "parts", out=tmp_path / "run", resume=True, **given)
    assert more.history["loss"].to_list() == four.history["loss"].to_list()


@pytest.mark.parametrize(
    ("widths", "given", "message"),
    [
        (None, {"batch_size": 10}, "batch_size: batches of a graph in memory are sampled without types"),
        (None, {"model": "graphsage"}, "model: the graph has types"),
        (None, {"target": "author"}, "holds no labels, no splits of 'author'"),
        (
            {"field": 2, "paper": 5},
            {},
            "source: author have no features, and learned rows are kept by the workers",
        ),
    ],
)
def test_full_refuses_by_name_what_it_does_not_do_over_types(tmp_path, widths, given, message):
    typed_parts(tmp_path, 2, widths=widths)
    with pytest.raises(fp.errors.ParameterError, match=message):
        fp.train.full(tmp_path / "parts", **{"model": "rgcn", "epochs": 1, **given})


def test_averages_of_copies_over_types(tmp_path):
    """Copies begin with the same weights, so the first loss is that of the whole graph. Halos may be incomplete."""
    for k, hops in ((1, 1), (3, 2), (4, 1)):
        typed_parts(tmp_path / f"{k}", k, halo_hops=hops)
    one, three, four = (fp.train.sdt(tmp_path / f"{k}" / "parts", model="rgcn", **WHOLE) for k in (1, 3, 4))
    assert three.history["loss"][0] == pytest.approx(one.history["loss"][0], rel=1e-6)
    assert three.history["loss"][3] != pytest.approx(one.history["loss"][3], rel=1e-6)
    assert four.history["loss"][3] < four.history["loss"][0]
    again = fp.train.sdt(tmp_path / "4" / "parts", model="rgcn", workers=1, **WHOLE)
    assert np.allclose(again.history["loss"], four.history["loss"], rtol=1e-6)
    assert len(one.predict(tmp_path / "4" / "parts")) == 240


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"parts": 3}, "parts: a graph with types is not partitioned again"),
        ({"parts": "auto", "memory_per_worker": "1G"}, "parts: a graph with types is not partitioned again"),
        ({"batch_size": 10}, "batch_size: batches of a part are sampled without types"),
        ({"model": "graphsage"}, "model: the graph has types"),
        ({"target": "author"}, "holds no labels, no splits of 'author'"),
    ],
)
def test_averaging_refuses_by_name_what_it_does_not_do_over_types(tmp_path, given, message):
    typed_parts(tmp_path, 2)
    with pytest.raises(fp.errors.ParameterError, match=message):
        fp.train.sdt(tmp_path / "parts", **{"model": "rgcn", "epochs": 1, **given})


def test_averaging_needs_features_of_all_types(tmp_path):
    typed_parts(tmp_path, 2, widths={"field": 2, "paper": 5})
    with pytest.raises(fp.errors.ParameterError, match=r"source: author have no features, .* learned rows"):
        fp.train.sdt(tmp_path / "parts", model="rgcn", epochs=1)


def test_a_graph_without_types_has_no_target(tmp_path):
    ring = np.array([[v, (v + 1) % 6] for v in range(6)])
    fp.VertexPartition([0, 0, 0, 1, 1, 1], 2).save(
        tmp_path / "parts",
        graph=ring,
        features=np.eye(6, dtype=np.float32),
        labels=[0, 1] * 3,
        splits={"train": [0, 1]},
    )
    for given, message in (
        ({"target": "paper"}, "target: .* holds a graph without types"),
        ({"fanouts": {"cites": [1, 1]}}, "fanouts: the graph has no relations by name"),
        ({"model": "rgcn"}, "has no types"),
    ):
        with pytest.raises(fp.errors.ParameterError, match=message):
            fp.train.sampled(tmp_path / "parts", epochs=1, **given)


def test_types_without_features_learn_rows(tmp_path):
    runs = []
    for k, workers in ((1, 1), (3, 2)):
        folder = tmp_path / str(k)
        typed_parts(folder, k, widths={"field": 2})
        how = {"model": "rgcn", "workers": workers, "out": folder / "run", **FEW}
        runs.append(fp.train.sampled(folder / "parts", **how))
    first, second = runs
    assert np.allclose(first.history["loss"], second.history["loss"], rtol=1e-9, atol=0)
    assert np.allclose(first.history["val_accuracy"], second.history["val_accuracy"])
    assert set(second.learned) == {"author", "paper"}
    assert np.allclose(second.learned["paper"], first.learned["paper"], rtol=1e-7)
    again = fp.train.open(tmp_path / "3" / "run")
    classes = again.predict(tmp_path / "1" / "parts")
    assert np.array_equal(classes, second.predict(tmp_path / "3" / "parts"))
    more = fp.train.sampled(
        tmp_path / "3" / "parts",
        resume=True,
        **{**FEW, "model": "rgcn", "out": tmp_path / "3" / "run", "epochs": 4},
    )
    assert more.history["epoch"].to_list() == [0, 1, 2, 3]
    typed_parts(tmp_path / "larger", 2, widths={"field": 2}, scale=5)
    with pytest.raises(
        fp.errors.ParameterError, match="has 200 vertices of 'author', but the model has learned 160 rows"
    ):
        again.predict(tmp_path / "larger" / "parts")


def test_a_comparison_shows_halo_and_traffic_of_each_type(tmp_path):
    _, features, labels, splits = typed_parts(tmp_path, 2)
    graph = fp.open_graph(tmp_path / "g.bin")
    given = {"features": features, "labels": {"paper": labels}, "splits": {"paper": splits}}
    how = {"fanouts": {"cites": [4, 3], "writes": [2, 2]}, "model": "rgcn", "epochs": 1, "batch_size": 20}
    table = fp.train.compare(
        graph, 2, **given, methods=["sampled"], partitioners=["random", "multilevel"], seeds=1, **how
    )
    assert len(table) == 2
    for name, row in zip(("random", "multilevel"), table.rows(named=True), strict=True):
        p = getattr(fp.algorithms, name)(graph, 2)
        types = p.evaluate().types
        assert [row[f"halo_rf_{each}"] for each in types["type"]] == types["halo_rf"].to_list()
        p.save(tmp_path / name, graph=graph, **given)
        traffic = fp.predict_traffic(tmp_path / name, how["fanouts"], 20, cache=0).types
        assert [row[f"remote_rows_{each}"] for each in types["type"]] == [
            round(rows, 1) for rows in traffic["remote_rows"]
        ]
    with pytest.raises(fp.errors.ParameterError, match="labels: there are none"):
        fp.train.compare(graph, 2, features=features, splits={"paper": splits})
    with pytest.raises(fp.errors.ParameterError, match="targets of a regression"):
        fp.train.compare(graph, 2, **given | {"labels": {"paper": labels + 0.5}})
