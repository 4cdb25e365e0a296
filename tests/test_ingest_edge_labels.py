"""Labels and splits of relations: from shuffled tables into parts and a training, and back to the ids of the tables."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from column_tables import RATES, reader, records_of, simple
from fastpart.cli import main
from ingest_tables import small, write
from soaked import examples

IDS = ["bob", "ann", "é", "eve", "", "zoe"]
WORDS = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}

ROWS = st.lists(
    st.tuples(
        st.sampled_from([*IDS, "nobody"]),
        st.sampled_from(IDS),
        st.none() | st.sampled_from(["spam", "ham", "é"]),
        st.none() | st.sampled_from(sorted(WORDS)),
    ),
    max_size=30,
)
SCHEMA = {"src": pl.String, "dst": pl.String, "kind": pl.String, "fold": pl.String}
ENDS = {"source": {"v": "src"}, "target": {"v": "dst"}}


def schema(folder, **relation):
    relation = {"files": "e/", **ENDS, "label": "kind", "split": "fold", **relation}
    return {
        "root": str(folder),
        "vertices": {"v": {"files": "v/", "id": "id"}},
        "relations": {"e": relation},
    }


def classes_in(file, column):
    return json.loads(file.read_text())[column]["values"]


@examples(10)
@given(
    ROWS,
    st.permutations(IDS),
    st.lists(st.integers(0, 30), max_size=3),
    st.sampled_from([(None, None), (3, 64)]),
    st.integers(1, 3),
)
def test_parts_have_the_labels_and_splits_of_the_tables(tmp_path_factory, rows, ids, cuts, sizes, k):
    folder = tmp_path_factory.mktemp("labels")
    write(folder, "v", pl.DataFrame({"id": ids}))
    write(folder, "e", pl.DataFrame(rows, SCHEMA, orient="row"), cuts)
    with small(*sizes):
        graph = fp.ingest(schema(folder, missing="drop"), folder / "graph")
    records = [row for row in rows if row[0] in IDS]
    known = sorted({kind for _, _, kind, _ in rows} - {None})
    if known:
        assert classes_in(folder / "graph" / "edge_categories.json", "kind") == known
    described = json.loads((folder / "graph" / "graph.json").read_text())["relations"][0]
    assert described["labels"]["missing"] == sum(kind is None for _, _, kind, _ in records)
    fp.VertexPartition(np.arange(len(IDS)) % k, k).save(folder / "parts", graph=graph)
    names, seen = sorted(IDS, key=str.encode), set()
    for part in fp.open_partition(folder / "parts").parts:
        targets = np.repeat(np.arange(len(part.indptr) - 1), np.diff(part.indptr))
        for place, target in enumerate(targets):
            record = int(part.edge_ids[place]) % max(len(records), 1)
            source, end, kind, word = records[record]
            ends = [names[part.vertices[part.indices[place]]], names[part.vertices[target]]]
            assert ends in ([source, end], [end, source])
            code = part.edge_labels[place]
            assert (None if code < 0 else known[code]) == kind
            for name in ("train", "val", "test"):
                mask = getattr(part, f"edge_label_{name}")
                assert (mask is not None and mask[place]) == (WORDS.get(word) == name)
            seen.add(record)
    assert seen == set(range(len(records)))


@pytest.fixture
def shop(tmp_path):
    """Two relations, of which one has labels, and one of those with a table each for two weeks."""
    rates = pl.DataFrame(
        {
            "user": ["u1", "u0", "u2", "u0"],
            "film": [20, 10, 10, 20],
            "stars": [5, None, 1, 3],
            "fold": ["train", "test", None, "train"],
        }
    )
    write(tmp_path, "rates", rates, [1])
    write(tmp_path, "knows", pl.DataFrame({"a": ["u0", "u1"], "b": ["u1", "u2"]}))
    return {
        "root": str(tmp_path),
        "vertices": {"user": {}, "film": {}},
        "relations": {
            "rates": {
                "files": "rates/",
                "source": {"user": "user"},
                "target": {"film": "film"},
                "label": "stars",
                "split": "fold",
            },
            "knows": {"files": "knows/", "source": {"user": "a"}, "target": {"user": "b"}},
        },
    }


def test_a_relation_of_several_has_labels_of_its_own(shop, tmp_path, caplog, capsys):
    graph = fp.ingest(shop, tmp_path / "graph")
    folder = tmp_path / "graph" / "relations" / "rates"
    assert sorted(each.name for each in folder.iterdir()) == ["labels.npy", "split.npz"]
    assert np.load(folder / "labels.npy").tolist() == [5, -1, 1, 3]
    entry = json.loads((tmp_path / "graph" / "graph.json").read_text())["relations"][1]
    assert entry["labels"] == {
        "column": "stars",
        "of": "classes",
        "classes": 6,
        "dtype": "int64",
        "missing": 1,
    }
    assert entry["split"] == {"column": "fold", "train": 2, "test": 1}
    parts = tmp_path / "parts"
    with caplog.at_level("INFO", "fastpart"):
        assert main(["partition", str(tmp_path / "graph"), "-k", "2", "-o", str(parts), "--quiet"]) == 0
    stored = fp.open_partition(parts)
    assert stored.manifest["relations"][1]["edge_label_splits"] == ["train", "test"]
    first = graph.relations[1].first
    for part in stored.parts:
        rows = part.of_relation("rates")
        record = rows.edge_ids % graph.num_edges - first
        assert rows.edge_labels.tolist() == np.array([5, -1, 1, 3])[record].tolist()
        assert rows.edge_label_train.tolist() == np.isin(record, [0, 3]).tolist()
        assert part.of_relation("knows").edge_labels is None
    capsys.readouterr()
    fp.ingest(shop, tmp_path / "graph")  # the same again replaces it
    del shop["relations"]["rates"]["label"]
    with pytest.raises(FileExistsError, match="holds labels of rates, which would be lost"):
        fp.ingest(shop, tmp_path / "graph")
    with pytest.raises(FileExistsError, match="holds labels of edges of rates, which would be lost"):
        fp.VertexPartition([0, 1, 0, 1, 0], 2).save(parts, graph=graph, edge_labels=False)


@pytest.mark.parametrize(
    "values",
    [
        [3, None, 7],
        [True, False, None],
        ["b", None, "a"],
        ["3", None, "7"],
        [0.5, None, 2.0],
        [[1, 0], None, [1, 1]],
        [[0.5, 1], None, [2, 3]],
    ],
)
def test_records_have_the_labels_that_vertices_would_have(tmp_path, values):
    frame = pl.DataFrame({"s": [0, 0, 0], "y": values})
    expected, of_vertices = simple(tmp_path, frame, label="y")
    table = reader(tmp_path, [frame])
    columns = records_of(table, 3, label="y")
    surveys = [columns.survey(0)]
    columns.begin(tmp_path / "out", surveys)
    columns.write(tmp_path / "out", 0, 0, None, 0, 3)
    assert columns.finish(tmp_path / "out", surveys) == {"labels": of_vertices["labels"]}
    for name in ("labels.npy", *(["categories.json"] if values[0] == "b" else [])):
        assert (tmp_path / "out" / name).read_bytes() == (expected / name).read_bytes()
    graph = fp.open_graph(np.array([[0, 1], [1, 2], [2, 0]]))
    fp.spring(graph, k=1).save(tmp_path / "parts", graph=graph, edge_labels=tmp_path / "out" / "labels.npy")
    (part,) = fp.open_partition(tmp_path / "parts").parts
    np.testing.assert_array_equal(part.edge_labels, np.load(expected / "labels.npy")[part.edge_ids % 3])


@pytest.mark.parametrize("split", [{"by": "time", **RATES}, {"by": "random", **RATES}, "fold"])
def test_splits_of_records(tmp_path, split):
    random = np.random.default_rng(0)
    m = 1000
    columns = {
        "s": [0] * m,
        "t": random.integers(0, 40, m),
        "y": random.integers(0, 3, m),
        "x": random.random(m),
    }
    words = random.choice(["train", "val", "test"], m)
    frame = pl.DataFrame(columns | {"fold": words}).with_columns(y=pl.when(pl.col("t") != 7).then("y"))
    entry = {"time": "t", "label": "y", "split": split, "features": [{"column": "x", "standardise": True}]}
    table = reader(tmp_path, [frame[:300], frame[300:]])

    def written(units):
        columns = records_of(table, m, **entry)
        out = tmp_path / f"out-{len(units)}"
        surveys = [columns.survey(0), columns.survey(1)]
        columns.begin(out, surveys)
        for number, first, start, stop in units:
            columns.write(out, number, first, None, start, stop)
        return out, columns.finish(out, surveys)

    out, told = written([(1, 300, 0, 700), (0, 0, 0, 300)])
    again, _ = written([(0, 0, 0, 100), (0, 100, 100, 300), (1, 300, 0, 700)])
    assert {each.name for each in out.iterdir()} == {
        *("columns.json", "features.npy", "feature_statistics.npy", "labels.npy", "split.npz", "times.npy")
    }
    assert all(each.read_bytes() == (again / each.name).read_bytes() for each in out.iterdir())
    ids = dict(np.load(out / "split.npz"))
    times, known = frame["t"].to_numpy(), frame["y"].is_not_null().to_numpy()
    if split == "fold":
        expected = {name: np.flatnonzero(words == name) for name in ("train", "val", "test")}
    elif split["by"] == "random":
        assert sorted(np.concatenate(list(ids.values()))) == list(np.flatnonzero(known))
        assert [len(ids[name]) / known.sum() for name in ("train", "val", "test")] == pytest.approx(
            [0.6, 0.2, 0.2], abs=0.05
        )
        expected = ids
    else:  # the split of the last record of its time, by rank
        ordered = np.sort(times[known])
        ranks = np.searchsorted(ordered, times, side="right")
        place = np.searchsorted(np.ceil(np.array([0.6, 0.8, 1]) * len(ordered)), ranks)
        expected = {
            name: np.flatnonzero(known & (place == index))
            for index, name in enumerate(("train", "val", "test"))
        }
    assert ids.keys() == expected.keys()
    for name, rows in expected.items():
        np.testing.assert_array_equal(ids[name], rows)
        assert told["split"][name] == len(rows)
    x = frame["x"].to_numpy().astype(np.float32)
    train = x[ids["train"]].astype(float)
    np.testing.assert_allclose(
        np.load(out / "features.npy")[:, 0], (x - train.mean()) / train.std(), atol=1e-5
    )


@pytest.mark.parametrize(
    ("columns", "entry", "message"),
    [
        ({}, {"label": "stars"}, r"relations\.e\.label: .*000\.parquet has no column 'stars'"),
        ({}, {"split": "folds"}, r"relations\.e\.split: .* has no column 'folds'.*Did you mean 'fold'\?"),
        ({"kind": [b"a", b"b"]}, {}, r"relations\.e\.label: column 'kind' of .* is Binary. Expected classes"),
        ({"fold": [1, 2]}, {}, r"relations\.e\.split: column 'fold' of .* is Int64. Expected text: train"),
        ({"fold": ["train", "tst"]}, {}, r"row 1, column 'fold': 'tst' is no split. Expected train, val"),
        ({"kind": [[0, 1], [0, 2]]}, {}, r"row 1, column 'kind': the list holds other numbers than 0 and 1"),
        (
            {},
            {"split": {"by": "time", "train": 0.5}},
            r"relations\.e\.split: `by: time` needs the column of the",
        ),
        (
            {},
            {"split": {"by": "random", "train": 0.5, "test": 0.6}},
            r"relations\.e\.split: the shares add up",
        ),
        (
            {},
            {"features": [{"column": "kind", "as": "onehot"}]},
            r"features\[0\]: column 'kind' is the label",
        ),
    ],
)
def test_refusals(tmp_path, columns, entry, message):
    given = {"src": ["a", "b"], "dst": ["b", "a"], "kind": ["x", "y"], "fold": ["train", "test"], **columns}
    write(tmp_path, "v", pl.DataFrame({"id": ["a", "b"]}))
    write(tmp_path, "e", pl.DataFrame(given))
    with pytest.raises(fp.FastpartError, match=message):
        fp.ingest(schema(tmp_path, **entry), tmp_path / "graph")


def test_classes_of_an_earlier_ingest_keep_their_numbers(tmp_path, caplog):
    write(tmp_path, "v", pl.DataFrame({"id": ["a", "b"]}))
    made = []
    for night, kinds in enumerate((["ham", "spam"], ["spam", "egg"])):
        frame = pl.DataFrame({"src": ["a", "b"], "dst": ["b", "b"], "kind": kinds, "fold": ["train", None]})
        write(tmp_path, f"night{night}", frame)
        given = schema(tmp_path, files=f"night{night}/")
        with caplog.at_level("INFO", "fastpart"):
            made.append(fp.ingest(given, tmp_path / f"g{night}", vocabulary=made[0] if made else None))
    assert np.load(tmp_path / "g0" / "edge_labels.npy").tolist() == [0, 1]
    assert np.load(tmp_path / "g1" / "edge_labels.npy").tolist() == [1, 2]
    assert "e: column 'kind': 1 new class behind the 2 of the vocabulary ('egg')" in caplog.text


def test_a_table_of_many_relations_has_labels(tmp_path):
    frame = pl.DataFrame(
        {
            "src": ["a", "b", "a"],
            "dst": ["b", "b", "a"],
            "predicate": ["p", "q", "p"],
            "kind": ["x", "y", "z"],
            "fold": ["test", "train", "train"],
        }
    )
    write(tmp_path, "e", frame)
    entry = {"files": "e/", **ENDS, "label": "kind", "split": "fold", "relation": "predicate"}
    fp.ingest(
        {"root": str(tmp_path), "vertices": {"v": {}}, "relations": {"*": entry}},
        tmp_path / "graph",
    )
    for name, kinds, train in (("p", ["x", "z"], [1]), ("q", ["y"], [0])):
        folder = tmp_path / "graph" / "relations" / name
        assert classes_in(folder / "categories.json", "kind") == kinds
        assert np.load(folder / "labels.npy").tolist() == list(range(len(kinds)))
        assert np.load(folder / "split.npz")["train"].tolist() == train


def test_a_relation_without_a_record_in_train_is_warned_of(tmp_path):
    table = reader(tmp_path, [pl.DataFrame({"s": [0], "fold": ["test"]})])
    columns = records_of(table, 1, split="fold")
    columns.begin(tmp_path / "out", [{}])
    columns.write(tmp_path / "out", 0, 0, None, 0, 1)
    with pytest.warns(fp.errors.GraphWarning, match="cites: no record is in the split train"):
        assert columns.finish(tmp_path / "out", [{}])["split"] == {"column": "fold", "train": 0, "test": 1}


# The way back.


def test_results_of_records_come_back_with_the_ids_of_both_ends(shop, tmp_path, monkeypatch):
    graph = fp.ingest(shop, tmp_path / "graph")
    table = fp.store.restore([3, 1, 4, 1], graph=graph, of_relation="rates")
    expected = [("u1", 20, 3), ("u0", 10, 1), ("u2", 10, 4), ("u0", 20, 1)]
    assert (table.columns, table.rows()) == (["source", "target", "value"], expected)
    assert table.schema["target"] == pl.Int64
    monkeypatch.setattr("fastpart.store.restoring._ROWS", 3)
    out = fp.store.restore([3, 1, 4, 1], tmp_path / "out.parquet", graph=graph, of_relation="rates")
    assert pl.read_parquet(out).equals(table)
    np.save(tmp_path / "knows.npy", np.array([[0.5, 1], [2, 3]], np.float32))
    given = ["--graph", str(tmp_path / "graph"), "--of-relation", "knows", "-o", str(tmp_path / "k.parquet")]
    assert main(["restore", str(tmp_path / "knows.npy"), *given, "--column", "logits", "--quiet"]) == 0
    assert pl.read_parquet(tmp_path / "k.parquet").rows() == [("u0", "u1", [0.5, 1]), ("u1", "u2", [2, 3])]
    for given, message in (
        ({"of_relation": "likes"}, "of_relation: 'likes' is none of the relations knows, rates"),
        ({"of_relation": "rates", "of_type": "user"}, "of_relation: a result is of vertices or of edges"),
        ({"of_relation": "knows"}, "result: 4 rows, but .* has 2 records of 'knows'"),
        ({"of_relation": "rates", "column": "target"}, "column: the table has a column 'target' of its own"),
    ):
        with pytest.raises(fp.errors.ParameterError, match=message):
            fp.store.restore([3, 1, 4, 1], graph=graph, **given)


def test_shards_have_the_same_records(shop, tmp_path, monkeypatch):
    monkeypatch.setattr("fastpart.graphs.graph_directory.UNIT", 2)
    whole = fp.ingest(shop, tmp_path / "whole")
    cut = fp.ingest(shop, tmp_path / "cut", shards=3)
    for name, values in (("rates", [3, 1, 4, 1]), ("knows", [7, 8])):
        tables = [fp.store.restore(values, graph=graph, of_relation=name) for graph in (whole, cut)]
        assert tables[0].equals(tables[1])
    (tmp_path / "cut" / "edges-00002.bin").write_bytes(bytes(8))
    with pytest.raises(fp.errors.GraphFormatError, match=r"a record of rates has a source that is no user"):
        fp.store.restore([3, 1, 4, 1], graph=tmp_path / "cut", of_relation="rates")
    (tmp_path / "cut" / "edges-00002.bin").write_bytes(b"")
    with pytest.raises(fp.errors.GraphFormatError, match=r"rates has 4 records, but there are 2"):
        fp.store.restore([3, 1, 4, 1], graph=tmp_path / "cut", of_relation="rates")


@pytest.mark.torch
@pytest.mark.timeout(300)
def test_from_tables_to_predictions_of_edges(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    random = np.random.default_rng(0)
    n, m = 60, 500
    ids, sides = [f"v{id:02}" for id in random.permutation(n)], random.integers(0, 2, n)
    ends = random.integers(0, n, (m, 2))
    kinds = np.array(["inside", "across"])[(sides[ends[:, 0]] != sides[ends[:, 1]]).astype(int)]
    folds = random.choice(["train", "train", "train", "val", "test"], m)
    write(tmp_path, "v", pl.DataFrame({"id": ids, "x": sides, "z": random.random(n)}))
    frame = pl.DataFrame({"src": [ids[u] for u, _ in ends], "dst": [ids[v] for _, v in ends]})
    frame = frame.with_columns(kind=pl.Series(kinds), fold=pl.Series(folds))
    write(tmp_path, "e", frame, [200])
    given = schema(tmp_path)
    given["vertices"]["v"]["features"] = ["x", "z"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.json").write_text(json.dumps(given))
    assert main(["ingest", "schema.json", "-o", "graph", "--quiet"]) == 0
    assert main(["partition", "graph", "-k", "2", "-o", "parts", "--quiet"]) == 0
    command = "train edges parts --epochs 20 --hidden 16 --dropout 0 --batch-size 100 --workers 1 --threads 1"
    options = "--out run --predictions kinds.parquet --restore graph --quiet"
    assert main([*command.split(), *options.split()]) == 0
    table = pl.read_parquet("kinds.parquet")
    assert table.columns == ["source", "target", "class", "label"]
    assert table.select("source", "target").rows() == frame.select("src", "dst").rows()
    assert table["label"].to_list() == [["across", "inside"][code] for code in table["class"]]
    test = folds == "test"
    accuracy = (table["label"].to_numpy() == kinds)[test].mean()
    trained = fp.train.open("run")
    assert trained.summary["test_accuracy"] == pytest.approx(accuracy)
    assert accuracy > 0.9
    again = trained.predict("parts", restore="graph")
    assert again.equals(table)
    given["relations"]["more"] = given["relations"]["e"]
    several = fp.ingest(given, "several")
    with pytest.raises(
        fp.errors.ParameterError, match="restore: several has several relations, and the model was"
    ):
        trained.predict("parts", restore=several)
    with pytest.raises(fp.errors.ParameterError, match="restore: takes all edges"):
        trained.predict("parts", edges=[1], restore="graph")
