"""Predictions of every vertex in the user's ids, and what loggers are told."""

import numpy as np
import pytest

import fastpart as fp
from edge_partitioned import planted_edges
from fastpart.cli import main
from trainable import planted

torch = pytest.importorskip("torch")

from fastpart.train.data.dataset import open_dataset  # noqa: E402

QUICK = {"hidden": 8, "epochs": 5, "threads": 1}

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("planted"), k=3)


def linear(task, options):
    """Return a network that nobody can take apart."""

    class Linear(torch.nn.Linear):
        def forward(self, graphs, x):
            h = graphs[0].targets(x) + graphs[0].mean(x)
            return super().forward(graphs[1].targets(h))

    return Linear(task.features, task.classes)


def expected(trained, source, layers):
    """Return the outputs of some layers, from the whole graph in memory."""
    local, network = open_dataset(source).whole(), trained.network()
    x = local.features
    with torch.no_grad():
        if not hasattr(network, "layers"):
            return network([local.graph] * 2, x).numpy()
        for index in range(layers):
            x = network.layer(index, local.graph, x)
    return x.numpy()


@pytest.mark.parametrize("model", ["graphsage", "gcn", "gat", linear])
@pytest.mark.parametrize("where", ["memory", "file"])
def test_predictions_are_those_of_the_whole_graph(parts, tmp_path, model, where):
    trained = fp.train.full(parts, model=model, **QUICK)
    out = tmp_path / "x.npy" if where == "file" else None
    logits = trained.predict(parts, what="logits", out=out)
    np.testing.assert_allclose(logits, expected(trained, parts, 2), rtol=1e-4, atol=1e-4)
    if out is not None:
        assert np.array_equal(np.load(out), logits)
        assert [file.name for file in tmp_path.iterdir()] == ["x.npy"]
    classes = trained.predict(parts)
    assert (classes.dtype, classes.shape) == (np.int64, (600,))
    assert (classes == logits.argmax(1)).mean() > 0.99
    if model is not linear:
        found = trained.predict(parts, what="embeddings")
        np.testing.assert_allclose(found, expected(trained, parts, 1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("few", [1, 10**6])
@pytest.mark.parametrize("model", ["graphsage", "gat", linear])
def test_some_vertices_have_the_rows_that_all_have(parts, tmp_path, monkeypatch, model, few):
    monkeypatch.setattr(
        "fastpart.train.inference.inference.FEW", few
    )  # from the vertices that they need, and from all
    trained = fp.train.full(parts, **QUICK, model=model)
    chosen = np.random.default_rng(0).permutation(600)[:5]
    for outputs in ("logits", "classes") if model is linear else ("logits", "classes", "embeddings"):
        given = {"what": outputs, "vertices": chosen}
        whole = trained.predict(parts, what=outputs)
        np.testing.assert_allclose(trained.predict(parts, **given), whole[chosen], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(
            trained.predict(parts, **given, out=tmp_path / "some.npy"), whole[chosen], rtol=1e-4, atol=1e-5
        )
    mask = np.isin(np.arange(600), chosen)
    assert trained.predict(parts, vertices=mask).tolist() == trained.predict(parts)[mask].tolist()
    with pytest.raises(fp.errors.ParameterError, match=r"^vertices: 600 is not between 0 and 599"):
        trained.predict(parts, vertices=[600])
    with pytest.raises(TypeError, match=r"^vertices: expected integer ids or a bool mask of length 600, got"):
        trained.predict(parts, vertices="test")


def test_some_vertices_over_parts_of_edges(tmp_path):
    edges = planted_edges(tmp_path, k=3)
    trained = fp.train.full(edges, **QUICK)
    assert trained.predict(edges, vertices=[9, 2]).tolist() == trained.predict(edges)[[9, 2]].tolist()


def test_parts_do_not_change_predictions(parts, tmp_path):
    trained = fp.train.full(parts, **QUICK)
    logits = trained.predict(parts, what="logits")
    other = planted(tmp_path, k=5, assignment=np.arange(600) % 5)
    np.testing.assert_allclose(trained.predict(other, what="logits"), logits, rtol=1e-4, atol=1e-4)
    (tmp_path / "edges").mkdir()
    edges = planted_edges(tmp_path / "edges", k=3)
    by_edges = fp.train.full(edges, **QUICK)
    np.testing.assert_allclose(
        by_edges.predict(edges, what="logits"), expected(by_edges, edges, 2), rtol=1e-4, atol=1e-4
    )


def test_an_empty_part_changes_nothing(tmp_path):
    parts = planted(tmp_path, k=3, assignment=np.arange(600) % 2 * 2)
    trained = fp.train.full(parts, **QUICK)
    np.testing.assert_allclose(
        trained.predict(parts, what="logits"), expected(trained, parts, 2), rtol=1e-4, atol=1e-4
    )


def test_several_classes_are_zeros_and_ones(tmp_path):
    planted(tmp_path)
    rows = np.eye(4, dtype=np.uint8)[np.load(tmp_path / "g.bin.labels.npy")]
    parts = planted(tmp_path, labels=rows)
    trained = fp.train.full(parts, **{**QUICK, "epochs": 30}, lr=0.05)
    said = trained.predict(parts)
    assert (said.dtype, said.shape) == (np.uint8, (600, 4))
    assert (said == rows).mean() > 0.9


def test_what_cannot_be_predicted_is_refused(parts, tmp_path):
    trained = fp.train.full(parts, **QUICK)
    with pytest.raises(fp.errors.ParameterError, match="what: unknown value 'best'"):
        trained.predict(parts, what="best")
    with pytest.raises(fp.errors.ParameterError, match=r"out: unknown suffix '.csv' of \S+. Use .npy$"):
        trained.predict(parts, out=tmp_path / "x.csv")
    with pytest.raises(
        fp.errors.ParameterError, match="what: 'embeddings' are the outputs of the last hidden"
    ):
        fp.train.full(parts, model=linear, **QUICK).predict(parts, what="embeddings")
    with pytest.raises(fp.errors.ParameterError, match="what: 'embeddings'"):
        fp.train.full(parts, layers=1, **QUICK).predict(parts, what="embeddings")
    other = planted(tmp_path, features=np.zeros((600, 5), np.float32))
    with pytest.raises(fp.errors.ParameterError, match=r"has 5 features, but the model was trained on 8"):
        trained.predict(other)


def test_the_command_line_writes_predictions(parts, tmp_path, capsys):
    out = tmp_path / "said.npy"
    words = ["--hidden", "8", "--epochs", "5", "--threads", "1", "--predictions", str(out)]
    assert main(["train", "full", str(parts), *words]) == 0
    assert capsys.readouterr().out.endswith(f"saved to {out}\n")
    assert np.array_equal(np.load(out), fp.train.full(parts, **QUICK).predict(parts))
    assert main(["train", "full", str(parts), "--predictions", str(tmp_path / "x.txt")]) == 2
    assert "--predictions" in capsys.readouterr().err


@pytest.mark.parametrize("method", ["full", "sdt"])
def test_loggers_get_every_row(parts, method):
    told = []
    trained = getattr(fp.train, method)(parts, on_epoch=told.append, **QUICK)
    assert told == trained.history.rows(named=True)
    with pytest.raises(TypeError, match=r"on_epoch: expected a callable\(row\), got int"):
        getattr(fp.train, method)(parts, on_epoch=3, **QUICK)


def test_probabilities_follow_from_logits(parts, tmp_path):
    trained = fp.train.full(parts, **QUICK)
    logits = torch.from_numpy(trained.predict(parts, what="logits"))
    found = trained.predict(parts, what="probabilities")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, logits.softmax(1), rtol=1e-5)
    rows = np.random.default_rng(0)
    several = planted(tmp_path, k=2, labels=(rows.random((600, 3)) < 0.5).astype(np.uint8))
    by_class = fp.train.full(several, **QUICK)
    logits = torch.from_numpy(by_class.predict(several, what="logits"))
    np.testing.assert_allclose(by_class.predict(several, what="probabilities"), logits.sigmoid(), rtol=1e-5)
    (tmp_path / "numbers").mkdir()
    numbers = planted(tmp_path / "numbers", k=2, labels=rows.random(600, np.float32))
    with pytest.raises(fp.errors.ParameterError, match="what: a regression has no probabilities"):
        fp.train.full(numbers, **QUICK).predict(numbers, what="probabilities")


def test_predicting_with_a_folder_is_that_of_its_model(parts, tmp_path, capsys):
    trained = fp.train.full(parts, out=tmp_path / "run", **QUICK)
    run, out = str(tmp_path / "run"), tmp_path / "classes.npy"
    told = []
    found = fp.train.predict(
        run, parts, what="logits", threads=1, tmp_dir=tmp_path, progress=lambda *said: told.append(said)
    )
    assert np.array_equal(found, trained.predict(parts, what="logits"))
    assert told[-1] == ("predict", 600, 600)
    assert np.array_equal(fp.train.predict(run, parts, vertices=[9, 2]), trained.predict(parts)[[9, 2]])
    assert main(["predict", run, str(parts), "-o", str(out), "--what", "probabilities"]) == 0
    assert np.array_equal(np.load(out), trained.predict(parts, what="probabilities"))
    assert f"saved to {out}" in capsys.readouterr().out
    with pytest.raises(TypeError, match="by position only run, source"):
        fp.train.predict(run, parts, "logits")


def test_a_file_of_predictions_outlives_what_is_refused(parts, tmp_path, capsys):
    fp.train.full(parts, out=tmp_path / "run", **QUICK)
    out, run = tmp_path / "old.npy", str(tmp_path / "run")
    out.write_text("precious")
    other = planted_edges(tmp_path)
    fp.train.full(other, out=tmp_path / "other", layers=1, **QUICK)
    for words in (
        ["predict", str(tmp_path / "none"), str(parts), "-o", str(out)],
        ["predict", run, str(tmp_path / "none"), "-o", str(out)],
        ["predict", str(tmp_path / "other"), str(other), "-o", str(out), "--what", "embeddings"],
        ["predict", run, str(parts), "-o", str(out), "--restore", str(tmp_path)],
        ["predict", run, str(parts), "-o", str(out), "--what", "best"],
        ["predict", run, str(parts), "-o", str(tmp_path / "x.parquet")],
    ):
        assert main(words) in (1, 2), words
    assert out.read_text() == "precious"
    assert "pass --restore for a table with your own ids" in capsys.readouterr().err
    assert main(["predict", run, str(parts), "-o", str(out), "--quiet"]) == 0
    assert len(np.load(out)) == 600
