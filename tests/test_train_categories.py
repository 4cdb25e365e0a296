"""Categories with learned rows: the same losses for any parts, predictions by value, and what a run carries."""

import logging
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import fastpart as fp

torch = pytest.importorskip("torch")

QUICK = {"hidden": 8, "threads": 1, "epochs": 2, "lr": 0.02, "batch_size": 60, "fanouts": [4, 3], "seed": 1}
VALUES = ["red", "green", "blue", "black", None]

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.timeout(180)]


def tables(rng, users=160, items=60, records=600):
    """Return users whose class follows from a category, items of a kind only, and what users buy and whom they know."""
    colour = rng.integers(0, len(VALUES), users)
    return {
        "user": pl.DataFrame(
            {
                "id": [f"u{number:03}" for number in range(users)],
                "colour": pl.Series([VALUES[each] for each in colour], dtype=pl.String),
                "x": rng.random(users),
                "age": rng.random(users),
                "label": colour % 3,
            }
        ),
        "item": pl.DataFrame({"id": np.arange(items), "kind": rng.integers(5, 12, items)}),
        "buys": pl.DataFrame(
            {
                "source": [f"u{number:03}" for number in rng.integers(0, users, records)],
                "target": rng.integers(0, items, records),
            }
        ),
    }


def ingested(folder, frames, types=True):
    """Ingest the tables, without the items where there are to be no types."""
    features = ["x", {"column": "colour", "as": "embedding"}, "age"]
    split = {"by": "random", "train": 0.6, "val": 0.2, "test": 0.2}
    user = {"files": frames["user"], "id": "id", "features": features, "label": "label", "split": split}
    vertices, source = {"user": user}, {"user": "source"}
    buys = {"files": frames["buys"], "source": source, "target": {"item": "target"}}
    if types:
        kind = {"column": "kind", "as": "embedding", "dim": 4}
        vertices["item"] = {"files": frames["item"], "id": "id", "features": [kind]}
    else:
        names = [f"u{number:03}" for number in frames["buys"]["target"]]
        buys = buys | {
            "files": frames["buys"].with_columns(target=pl.Series(names)),
            "target": {"user": "target"},
        }
    fp.ingest({"vertices": vertices, "relations": {"buys": buys}}, folder)
    return fp.open_graph(folder)


def saved(graph, folder, k, **given):
    fp.algorithms.random(graph, k=k).save(folder, **given)
    return folder


def test_exports_say_that_codes_are_numbers_elsewhere(tmp_path, caplog):
    graph = ingested(tmp_path / "graph", tables(np.random.default_rng(3)))
    parts = saved(graph, tmp_path / "parts", 2)
    fp.export.pyg(parts, tmp_path / "pyg")
    [note] = [
        record.getMessage() for record in caplog.records if "codes of categories" in record.getMessage()
    ]
    assert "(kind, colour)" in note
    assert "PyG takes a code for a number" in note


def by_id(trained, parts, graph_folder):
    frame = trained.predict(parts, what="logits", restore=graph_folder)
    return dict(zip(frame["id"], frame["logits"].to_list(), strict=True))


@pytest.mark.parametrize("model", ["heterosage", pytest.param("hgt", marks=pytest.mark.soak)])
def test_losses_over_types_are_the_same_for_any_parts(tmp_path, model):
    graph = ingested(tmp_path / "graph", tables(np.random.default_rng(0)))
    given = {**QUICK, "model": model, "precision": "float64", "dropout": 0.3}
    one, *others = (
        fp.train.sampled(saved(graph, tmp_path / f"parts-{k}", k), workers=min(k, 2), **given)
        for k in (1, 2, 4)
    )
    assert [tuple(one.weights[f"categories.types.{at}.tables.0.weight"].shape) for at in (0, 1)] == [
        (9, 4),
        (6, 3),
    ]
    for other in others:
        np.testing.assert_allclose(one.history["loss"], other.history["loss"], rtol=1e-12)
        for name, weight in one.weights.items():
            torch.testing.assert_close(weight, other.weights[name], rtol=1e-9, atol=1e-11)


def test_categories_are_matched_by_value_where_their_codes_differ(tmp_path, caplog):
    frames = tables(np.random.default_rng(1))
    graph = ingested(tmp_path / "graph", frames)
    parts = saved(graph, tmp_path / "parts", 2)
    fp.train.sampled(parts, model="heterosage", workers=2, out=tmp_path / "run", **QUICK)
    straight = fp.train.sampled(parts, model="heterosage", workers=1, **{**QUICK, "epochs": 4})
    trained = fp.train.open(tmp_path / "run").resume(epochs=4)
    np.testing.assert_allclose(trained.history["loss"], straight.history["loss"], rtol=1e-4)

    opened = fp.train.open(tmp_path / "run")
    known = by_id(opened, parts, tmp_path / "graph")
    # New values sort first, so all codes differ. Users of new values have no edges.
    new = pl.DataFrame({"id": ["a0", "a1"], "colour": ["amber", "azure"], "x": [0.5, 0.5], "age": [0.5, 0.5]})
    new = new.with_columns(label=pl.lit(None, pl.Int64))
    frames["user"] = pl.concat([new, frames["user"].sample(fraction=1, shuffle=True, seed=3)])
    frames["item"] = frames["item"].with_columns(pl.col("kind").cast(pl.String))  # 5 sorts behind 10 and 11
    again = saved(ingested(tmp_path / "again", frames), tmp_path / "parts again", 3)
    with caplog.at_level(logging.INFO, "fastpart"):
        found = by_id(opened, again, tmp_path / "again")
    assert (
        "column 'colour' of 'user': 2 vertices have a value that the model was not trained on ('amber', 'azure')"
        in (caplog.text)
    )
    assert "'kind'" not in caplog.text
    assert found.pop("a0") == found.pop("a1")  # both are unknown
    assert known.keys() == found.keys()
    for name, logits in known.items():
        np.testing.assert_allclose(found[name], logits, rtol=1e-5, atol=1e-6)


def test_rows_stand_behind_the_other_features(tmp_path):
    """A network with tables is one without, whose features have their rows."""
    graph = ingested(tmp_path / "graph", tables(np.random.default_rng(2)), types=False)
    parts = saved(graph, tmp_path / "parts", 2, standardise=True)
    trained = fp.train.full(parts, **{**QUICK, "batch_size": None, "fanouts": None})
    table = trained.weights["categories.types.0.tables.0.weight"].numpy()
    stored, n = fp.open_partition(parts), graph.num_vertices
    rows = np.empty((n, 3), np.float32)
    for part in stored.parts:
        rows[part.inner] = part.features
    codes = rows[:, 1].astype(int)
    assert set(codes) == {0, 1, 2, 3, 5}  # standardising leaves them, and 5 is a missing value
    assert not table[4].any()
    assert table[5].any()
    features = np.hstack([rows[:, [0, 2]], table[codes]])
    plain, bare = tmp_path / "plain", tmp_path / "bare"
    labels = np.arange(n) % 3
    given = {"graph": graph, "labels": labels, "splits": {"train": np.arange(n)}}
    stored.save(plain, features=features, **given)
    stored.save(bare, features=rows, **given)
    with pytest.raises(
        fp.errors.ParameterError, match=r"has the columns of categories none, but .* \{'colour': 1\}"
    ):
        trained.predict(bare)
    weights = {name: each for name, each in trained.weights.items() if not name.startswith("categories")}
    expected = replace(trained, task=trained.task.embedded, weights=weights).predict(plain, what="logits")
    np.testing.assert_allclose(trained.predict(parts, what="logits"), expected, rtol=1e-4, atol=1e-5)


class Mean(torch.nn.Module):
    """A module of a user, over the edges of a batch."""

    def __init__(self, task, options):
        super().__init__()
        self.linear = torch.nn.Linear(task.features, task.classes)

    def forward(self, x, edge_index):
        return self.linear(x)


def test_modules_of_users_get_rows_and_other_methods_refuse_codes(tmp_path):
    graph = ingested(tmp_path / "graph", tables(np.random.default_rng(3)), types=False)
    parts = saved(graph, tmp_path / "parts", 2)
    trained = fp.train.sampled(parts, model=Mean, workers=1, **{**QUICK, "epochs": 20, "lr": 0.1})
    assert trained.summary["test_accuracy"] > 0.9
    with pytest.raises(
        fp.errors.ParameterError, match=r"codes of categories \('colour'\). sancus exchanges the sums"
    ):
        fp.train.sancus(parts, epochs=1)
    with pytest.raises(fp.errors.ParameterError, match=r'"int8" does not hold the codes of column .colour.'):
        fp.open_partition(parts).save(tmp_path / "coded", graph=graph, feature_dtype="int8")
