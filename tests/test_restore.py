"""Results come home with the users' own ids."""

import os

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.cli import main
from ingest_tables import plain, write
from soaked import examples


@pytest.fixture
def graph(tmp_path):
    return fp.ingest(plain(tmp_path, ["c", "a", "b"], [("a", "b"), ("b", "c")]), tmp_path / "graph")


@pytest.fixture
def graph_of_one(tmp_path):
    (tmp_path / "one").mkdir()
    fp.ingest(plain(tmp_path / "one", ["c", "a", "b"], [("a", "b")]), tmp_path / "one" / "graph")
    return tmp_path / "one" / "graph"


@pytest.fixture
def typed(tmp_path):
    write(tmp_path, "v", pl.DataFrame({"id": ["x", "y"], "kind": ["red", "blue"]}))
    write(tmp_path, "w", pl.DataFrame({"id": [20, 10, 30]}))
    write(tmp_path, "e", pl.DataFrame({"src": ["x", "y"], "dst": [10, 30]}))
    schema = {
        "root": str(tmp_path),
        "vertices": {"v": {"files": "v/", "id": "id", "label": "kind"}, "w": {"files": "w/", "id": "id"}},
        "relations": {"e": {"files": "e/", "source": {"v": "src"}, "target": {"w": "dst"}}},
    }
    fp.ingest(schema, tmp_path / "graph")
    return tmp_path / "graph"


def test_a_partition_comes_back_with_ids(graph, tmp_path):
    partition = fp.VertexPartition([1, 0, 1], 2)
    expected = pl.DataFrame({"id": ["a", "b", "c"], "part": [1, 0, 1]}, schema_overrides={"part": pl.Int32})
    assert fp.store.restore(partition, graph=tmp_path / "graph").equals(expected)
    assert fp.store.restore(partition, graph=graph).equals(expected)
    for saved in ("part.parquet", "parts"):
        partition.save(tmp_path / saved)
        out = fp.store.restore(tmp_path / saved, tmp_path / "back.parquet", graph=tmp_path / "graph")
        assert pl.read_parquet(out).equals(expected)
    fp.store.restore(partition, tmp_path / "back.csv", graph=graph, column="cluster")
    assert (tmp_path / "back.csv").read_text() == "id,cluster\na,1\nb,0\nc,1\n"


def tables(folder, ids):
    folder.mkdir()
    ids = [f"{id:05}" for id in ids]
    schema = plain(folder, ids, list(zip(ids[1:], ids[:-1], strict=True)))
    return fp.ingest(schema, folder / "graph")


@pytest.mark.parametrize("other", [3, 59_999])
def test_a_partition_is_not_given_the_ids_of_another_graph(tmp_path, monkeypatch, other):
    monkeypatch.setattr("fastpart.store.restoring._ROWS", 50_000)
    ids = range(60_000)
    graph = tables(tmp_path / "monday", ids)
    again = tables(tmp_path / "again", [*ids[1:], 0])
    tuesday = tables(tmp_path / "tuesday", [60_000 if id == other else id for id in ids])
    partition = fp.algorithms.hash(graph, 2)
    partition.save(tmp_path / "parts")
    for result in (partition, tmp_path / "parts"):
        with pytest.raises(
            fp.errors.ParameterError, match=r"result: its vertices have other ids than .*tuesday"
        ):
            fp.store.restore(result, graph=tuesday)
        assert fp.store.restore(result, graph=again).equals(fp.store.restore(result, graph=graph))


@pytest.mark.parametrize("out", [None, "back.parquet", "back.csv"])
def test_names_of_other_columns_are_refused(typed, graph_of_one, tmp_path, out):
    values, target = [0, 1, 1, 0, 1], None if out is None else tmp_path / out
    for column in ("id", "type", "label"):
        with pytest.raises(
            fp.errors.ParameterError, match=f"column: the table has a column '{column}' of its own"
        ):
            fp.store.restore(values, target, graph=typed, column=column)
    with pytest.raises(fp.errors.ParameterError, match="a column 'id' of its own"):
        fp.store.restore([7, 8, 9], target, graph=graph_of_one, column="id")
    assert target is None or not target.exists()
    for column in ("", 3):
        with pytest.raises(TypeError, match="column: expected a name"):
            fp.store.restore([7, 8, 9], target, graph=graph_of_one, column=column)
    found = fp.store.restore([7, 8, 9], graph=graph_of_one, column="type")  # no other column is called so
    assert found.columns == ["id", "type"]


def test_a_column_of_a_folder_may_be_called_type(typed, tmp_path):
    back = fp.store.restore([0.0, 1, 1, 0, 1], tmp_path / "back", graph=typed, column="type")
    assert pl.read_parquet(back / "v.parquet").columns == ["id", "type"]
    with pytest.raises(fp.errors.ParameterError, match="a column 'id' of its own"):
        fp.store.restore([0.0, 1, 1, 0, 1], tmp_path / "other", graph=typed, column="id")


@examples(10)
@given(st.lists(st.tuples(st.text(max_size=3), st.integers(-5, 5)), min_size=1, unique_by=lambda row: row[0]))
def test_rows_are_those_of_a_join(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("restore")
    ids = [id for id, _ in rows]
    fp.ingest(plain(folder, ids, [(ids[0], ids[0])]), folder / "graph")
    by_id = dict(rows)
    ordered = sorted(by_id, key=str.encode)
    values = np.array([by_id[id] for id in ordered])
    restored = fp.store.restore(values, graph=folder / "graph")
    assert restored.rows() == [(id, by_id[id]) for id in ordered]


def test_rows_of_numbers_are_arrays(graph, tmp_path):
    embeddings = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.save(tmp_path / "embeddings.npy", embeddings)
    out = fp.store.restore(
        tmp_path / "embeddings.npy", tmp_path / "back.parquet", graph=graph, column="embedding"
    )
    table = pl.read_parquet(out)
    assert table.schema["embedding"] == pl.Array(pl.Float32, 2)
    assert np.array_equal(table["embedding"].to_numpy(), embeddings)
    with pytest.raises(fp.errors.ParameterError, match=r"a CSV holds no rows of numbers\. Use \.parquet"):
        fp.store.restore(embeddings, tmp_path / "back.csv", graph=graph)


def test_types_get_a_file_each(typed, tmp_path):
    out = fp.store.restore(np.array([1, 0, 5, 6, -1]), tmp_path / "back", graph=typed)
    assert sorted(os.listdir(out)) == ["restored.json", "v.parquet", "w.parquet"]
    assert pl.read_parquet(out / "v.parquet").rows() == [("x", 1, "red"), ("y", 0, "blue")]
    assert pl.read_parquet(out / "w.parquet").rows() == [(10, 5), (20, 6), (30, -1)]
    with pytest.raises(
        fp.errors.ParameterError, match=r"Int64 and String, which no column can hold\. Choose a folder"
    ):
        fp.store.restore(np.arange(5), tmp_path / "back.parquet", graph=typed)
    (out / "mine.txt").write_text("mine")
    with pytest.raises(fp.errors.ParameterError, match=r"mine\.txt"):
        fp.store.restore(np.arange(5), out, graph=typed)


def test_results_of_another_graph_are_refused(graph, tmp_path):
    with pytest.raises(fp.errors.ParameterError, match=r"4 rows, but .* has 3 vertices"):
        fp.store.restore(np.arange(4), graph=graph)
    with pytest.raises(fp.errors.ParameterError, match="has no ids"):
        fp.store.restore(np.arange(3), graph=fp.open_graph(np.array([[0, 1], [1, 2]])))
    with pytest.raises(fp.errors.ParameterError, match=r"is no graph directory: it has no graph\.json"):
        fp.store.restore(np.arange(3), graph=tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        fp.store.restore(np.arange(3), graph=tmp_path / "nowhere")
    with pytest.raises(fp.errors.ParameterError, match="a partition of the edges"):
        fp.store.restore(fp.EdgePartition([0, 1], 2), graph=graph)
    with pytest.raises(fp.errors.ParameterError, match="expected one number or one row"):
        fp.store.restore(np.array(["a", "b", "c"]), graph=graph)


def test_damaged_ids_name_the_file(graph, tmp_path):
    file = tmp_path / "graph" / "ids" / "v.parquet"
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(fp.errors.GraphFormatError, match=r"v\.parquet: not a Parquet file of ids"):
        fp.store.restore(np.arange(3), tmp_path / "back.parquet", graph=tmp_path / "graph")
    assert not (tmp_path / "back.parquet").exists()
    file.unlink()
    with pytest.raises(FileNotFoundError, match=r"v\.parquet"):
        fp.store.restore(np.arange(3), graph=tmp_path / "graph")


def test_a_partition_is_saved_with_ids(graph, tmp_path):
    partition = fp.VertexPartition([1, 0, 1], 2)
    partition.save(tmp_path / "part.parquet", restore=tmp_path / "graph")
    table = pl.read_parquet(tmp_path / "part.parquet")
    assert table.equals(fp.store.restore(partition, graph=graph))
    with pytest.raises(fp.errors.ParameterError, match=r"restore: needs a \.parquet"):
        partition.save(tmp_path / "parts", restore=graph)
    assert (
        main(
            [
                "partition",
                str(tmp_path / "graph"),
                "-k",
                "2",
                "-o",
                str(tmp_path / "p.parquet"),
                "--restore",
                str(tmp_path / "graph"),
            ]
        )
        == 0
    )
    assert pl.read_parquet(tmp_path / "p.parquet")["id"].to_list() == ["a", "b", "c"]


def test_the_command(graph, tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.arange(3))
    words = ["restore", str(tmp_path / "x.npy"), "--graph", str(tmp_path / "graph")]
    assert main([*words, "-o", str(tmp_path / "x.csv"), "--column", "x"]) == 0
    assert capsys.readouterr().out == f"saved to {tmp_path / 'x.csv'}\n"
    assert (tmp_path / "x.csv").read_text() == "id,x\na,0\nb,1\nc,2\n"
    assert main([*words, "-o", str(tmp_path / "x.xlsx")]) == 2
    assert "use .parquet or .csv. A folder is for several types" in capsys.readouterr().err


@pytest.mark.torch
def test_predictions_come_back_with_ids_and_labels(tmp_path, capsys):
    rng = np.random.default_rng(0)
    ids = [f"p{id:02}" for id in range(40)]
    write(
        tmp_path,
        "v",
        pl.DataFrame({"id": ids, "x": rng.random(40), "y": rng.random(40), "kind": ["red", "blue"] * 20}),
    )
    write(tmp_path, "e", pl.DataFrame({"src": rng.choice(ids, 100), "dst": rng.choice(ids, 100)}))
    schema = {
        "root": str(tmp_path),
        "vertices": {
            "v": {
                "files": "v/",
                "id": "id",
                "features": ["x", "y"],
                "label": "kind",
                "split": {"by": "random", "train": 0.5, "val": 0.2, "test": 0.3},
            },
        },
        "relations": {"e": {"files": "e/", "source": {"v": "src"}, "target": {"v": "dst"}}},
    }
    graph = fp.ingest(schema, tmp_path / "graph")
    fp.algorithms.hash(graph, k=2).save(tmp_path / "parts", graph=graph)
    words = ["train", "full", str(tmp_path / "parts"), "--epochs", "2"]
    back = ["--predictions", str(tmp_path / "p.parquet"), "--restore", str(tmp_path / "graph")]
    assert main([*words, *back]) == 0, capsys.readouterr().err
    table = pl.read_parquet(tmp_path / "p.parquet")
    assert table.columns == ["id", "class", "label"]
    assert table["id"].to_list() == ids
    assert set(table["label"]) <= {"red", "blue"}
    assert table.select((pl.col("class") == 0) == (pl.col("label") == "blue")).to_series().all()
    kept = [*words, "--out", str(tmp_path / "run")]
    assert main(kept) == 0
    shares = ["predict", str(tmp_path / "run"), str(tmp_path / "parts"), "--restore", str(tmp_path / "graph")]
    assert main([*shares, "-o", str(tmp_path / "shares.csv"), "--what", "probabilities"]) == 0
    found = pl.read_csv(tmp_path / "shares.csv")
    assert found.columns == ["id", "probability_blue", "probability_red"]
    assert found["id"].to_list() == ids
    red = (found["probability_red"] > found["probability_blue"]).to_list()
    assert red == (table["label"] == "red").to_list()
    assert main([*words, "--predictions", str(tmp_path / "p.parquet")]) == 2
    assert main([*words, "--restore", str(tmp_path / "graph")]) == 2


@pytest.mark.torch
def test_predictions_are_tables_with_ids(tmp_path):
    ids = [f"p{id:02}" for id in range(40)]
    schema = plain(tmp_path, ids, [(id, ids[-1 - at]) for at, id in enumerate(ids)])
    fp.ingest(schema, tmp_path / "graph")
    (tmp_path / "out").mkdir()
    rows = np.random.default_rng(0).random((40, 2)).astype(np.float32)
    splits = {"train": range(20), "val": range(20, 30), "test": range(30, 40)}
    fp.algorithms.hash(tmp_path / "graph", k=2).save(
        tmp_path / "parts", features=rows, labels=np.arange(40) % 3, splits=splits
    )
    trained = fp.train.full(tmp_path / "parts", epochs=2, hidden=4)
    graph = tmp_path / "graph"
    for outputs, column in {"classes": "class", "logits": "logits", "embeddings": "embedding"}.items():
        seen = []
        plain_rows = trained.predict(
            tmp_path / "parts",
            what=outputs,
            threads=1,
            tmp_dir=tmp_path,
            progress=lambda *told, seen=seen: seen.append(told),
        )
        assert seen[-1] == ("predict", 40, 40)
        table = trained.predict(tmp_path / "parts", what=outputs, restore=graph)
        assert table.columns == ["id", column]
        assert table["id"].to_list() == ids
        np.testing.assert_allclose(np.array(table[column].to_list()), plain_rows, rtol=1e-5)
        out = tmp_path / "out" / f"{outputs}.parquet"
        assert trained.predict(tmp_path / "parts", what=outputs, out=out, restore=graph) == out
        assert pl.read_parquet(out).equals(table)
    assert len(os.listdir(tmp_path / "out")) == 3
    table = trained.predict(tmp_path / "parts", what="probabilities", restore=graph)
    assert table.columns == ["id", "probability_0", "probability_1", "probability_2"]
    probabilities = trained.predict(tmp_path / "parts", what="probabilities")
    np.testing.assert_allclose(table.drop("id").to_numpy(), probabilities, rtol=1e-5)
    assert not list(tmp_path.glob("fastpart-*"))
    with pytest.raises(fp.errors.ParameterError, match=r"restore: takes all vertices\. Leave out vertices="):
        trained.predict(tmp_path / "parts", vertices=[1], restore=graph)
    with pytest.raises(TypeError, match="by position only source"):
        trained.predict(tmp_path / "parts", "logits")


@pytest.mark.torch
def test_predictions_of_a_regression_are_called_so(tmp_path):
    ids = [f"p{id:02}" for id in range(12)]
    fp.ingest(plain(tmp_path, ids, [(ids[0], id) for id in ids[1:]]), tmp_path / "graph")
    fp.algorithms.hash(tmp_path / "graph", k=2).save(
        tmp_path / "parts",
        features=np.eye(12, dtype=np.float32),
        labels=np.linspace(0, 1, 12),
        splits={"train": range(6), "val": range(6, 9), "test": range(9, 12)},
    )
    trained = fp.train.full(tmp_path / "parts", epochs=1, hidden=4)
    assert trained.predict(tmp_path / "parts", restore=tmp_path / "graph").columns == ["id", "prediction"]


def test_clusters_come_back_with_ids(typed):
    clusters = fp.cluster(typed)  # without labels, since a cluster is no class
    back = fp.store.restore(clusters, typed.with_name("back"), graph=typed)
    assert pl.read_parquet(back / "v.parquet").columns == ["id", "cluster"]


def test_a_folder_of_tables_is_replaced_by_the_same_columns(typed, tmp_path):
    back = tmp_path / "back"
    fp.store.restore(np.arange(5), back, graph=typed)
    fp.store.restore(np.arange(5) + 1, back, graph=typed)
    with pytest.raises(FileExistsError, match=r"holds the column value, which would be lost.*overwrite=True"):
        fp.store.restore(np.arange(5), back, graph=typed, column="class")
    fp.store.restore(np.arange(5), back, graph=typed, column="class", overwrite=True)
    assert "class" in pl.read_parquet(back / "v.parquet").columns


def test_a_result_of_one_type_comes_back(typed, tmp_path):
    of_w = fp.store.restore(np.array([5, 6, 7]), graph=typed, of_type="w")
    assert of_w.rows() == [(10, 5), (20, 6), (30, 7)]
    of_v = fp.store.restore(
        np.array([1, 0]), tmp_path / "v.parquet", graph=typed, of_type="v", column="class"
    )
    known = pl.read_parquet(of_v)
    assert known.columns == ["id", "class", "label"]
    assert known.rows() == [("x", 1, "red"), ("y", 0, "blue")]
    for values, name, message in (
        ([1, 2], "w", "2 rows, but .* has 3 vertices of 'w'"),
        ([1, 2], "u", "of_type: 'u' is none of the types v, w"),
    ):
        with pytest.raises(fp.errors.ParameterError, match=message):
            fp.store.restore(np.array(values), graph=typed, of_type=name)


def test_each_number_of_a_row_may_have_a_column(typed, tmp_path):
    rows = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    given = {"graph": typed, "of_type": "v"}
    table = fp.store.restore(rows, column=["low", "high"], **given)
    assert table.rows() == [("x", 1.0, 2.0), ("y", 3.0, 4.0)]
    out = fp.store.restore(rows, tmp_path / "v.csv", column=["low", "high"], **given)
    assert pl.read_csv(out).columns == ["id", "low", "high"]
    assert fp.store.restore([0, 1], column=["class"], **given).columns == ["id", "class", "label"]
    for names, message in (
        (["low", "low"], "column: expected 2 names that differ"),
        (["a", "b", "c"], "column: expected 2 names that differ"),
        (["id", "high"], "column: the table has a column 'id' of its own"),
    ):
        with pytest.raises(fp.errors.ParameterError, match=message):
            fp.store.restore(rows, column=names, **given)
