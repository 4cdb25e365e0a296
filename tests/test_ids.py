"""What belongs to vertices follows their ids, wherever a graph has them: parts, features, labels, splits, weights."""

import gzip
import json
import re
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.cli import main
from fastpart.core.inputs import labels_of, splits_of
from fastpart.core.options import RunOptions
from fastpart.core.rows import rows_of_vertices
from soaked import examples

N, OLD = 1000, 900


@pytest.fixture(scope="module")
def users():
    """Ids of 6 digits, in random order, and records among 4 planted blocks of them."""
    rng = np.random.default_rng(7)
    ids = np.array([f"{each:06}" for each in rng.choice(10**6, N, replace=False)])
    u = rng.integers(0, N, 12_000)
    same = rng.random(len(u)) < 0.92
    v = np.where(same, 4 * rng.integers(0, N // 4, len(u)) + u % 4, rng.integers(0, N, len(u)))
    return ids, np.stack([u, v], axis=1)


def frame(ids, records):
    return pl.DataFrame({"source": ids[records[:, 0]], "target": ids[records[:, 1]]})


def by_id(partition, graph):
    """Return the part of each id, as plain dicts have it."""
    return dict(fp.store.restore(partition, graph=graph).select("id", "part").rows())


@pytest.fixture(scope="module")
def dense(users):
    """The cut of an update of the same graph with numbers, whose new vertices come last."""
    _, records = users
    old = fp.open_graph(records[(records < OLD).all(axis=1)], num_vertices=OLD)
    updated = fp.update(fp.open_graph(records, num_vertices=N), fp.partition(old, 4))
    return updated.cut_ratio


def schema(table):
    ends = {"source": {"user": "source"}, "target": {"user": "target"}}
    return {"vertices": {"user": {}}, "relations": {"follows": {"files": table, **ends}}}


@pytest.mark.parametrize("door", ["frame", "ingest", "directory", "shell"])
def test_an_update_follows_ids(users, dense, door, tmp_path, capsys):
    ids, records = users
    tables = frame(ids, records[(records < OLD).all(axis=1)]), frame(ids, records)
    if door == "frame":
        graphs = [fp.open_graph(table) for table in tables]
    elif door == "ingest":
        graphs = [fp.ingest(schema(table), tmp_path / f"g{i}") for i, table in enumerate(tables)]
    else:
        graphs = [fp.ingest(schema(tables[0]), tmp_path / "graph")]
    p = fp.partition(graphs[0], 4)
    before = by_id(p, graphs[0])
    if door in ("directory", "shell"):  # the new graph takes the place of the old one
        p.save(tmp_path / "parts")
        graphs.append(fp.ingest(schema(tables[1]), tmp_path / "graph"))
    if door == "shell":
        words = [
            "update",
            str(tmp_path / "graph"),
            str(tmp_path / "parts"),
            "-o",
            str(tmp_path / "new"),
            "-q",
        ]
        assert main(words) == 0
        capsys.readouterr()
        q = fp.open_partition(tmp_path / "new", graphs[1])
    else:
        q = fp.update(graphs[1], tmp_path / "parts" if door == "directory" else p)
    after = by_id(q, graphs[1])
    assert len(after) == N
    moved = sum(after[each] != part for each, part in before.items())
    assert q.parameters["moved"] == moved <= np.ceil(0.05 * OLD)
    assert q.cut_ratio <= 1.05 * dense


def test_vertices_that_are_gone_are_told(users, caplog):
    caplog.set_level("INFO", "fastpart")
    ids, records = users
    old = fp.open_graph(frame(ids, records))
    new = fp.open_graph(frame(ids, records[(records >= 50).all(axis=1)]))
    p = fp.partition(old, 4)
    q = fp.update(new, p, moves=0)
    before, after = by_id(p, old), by_id(q, new)
    assert all(before[each] == part for each, part in after.items())
    gone = N - len(after)
    assert gone >= 50
    assert any(f"{gone} of 1,000 vertices of the partition are gone" in each for each in caplog.messages)


def typed(papers, authors, cites, writes):
    papers, authors = np.array(papers), np.array(authors)
    cites = pl.DataFrame({"a": papers[cites[0]], "b": papers[cites[1]]})
    writes = pl.DataFrame({"a": authors[writes[0]], "b": papers[writes[1]]})
    return {
        "vertices": {
            "paper": {"files": pl.DataFrame({"id": papers}), "id": "id"},
            "author": {"files": pl.DataFrame({"id": authors}), "id": "id"},
        },
        "relations": {
            "cites": {"files": cites, "source": {"paper": "a"}, "target": {"paper": "b"}},
            "writes": {"files": writes, "source": {"author": "a"}, "target": {"paper": "b"}},
        },
    }


def test_each_type_follows_its_ids(tmp_path):
    rng = np.random.default_rng(3)
    papers = [f"p{each}" for each in rng.choice(10**6, 120, replace=False)]
    authors = rng.choice(10**9, 60, replace=False).tolist()
    cites, writes = rng.integers(0, 120, (2, 500)), rng.integers(0, 60, (2, 300))
    old = fp.ingest(typed(papers[:100], authors[:50], cites % 100, writes % 50), tmp_path / "g")
    p = fp.multilevel(old, 3)
    before = {}
    for name in ("paper", "author"):
        of = {each.name: each for each in old.types}[name]
        table = fp.store.restore(p.assignment[of.range.start : of.range.stop], graph=old, of_type=name)
        before |= {(name, each): part for each, part in table.rows()}
    p.save(tmp_path / "parts")
    new = fp.ingest(typed(papers, authors, cites, writes), tmp_path / "g")
    q = fp.update(new, tmp_path / "parts", moves=0, balance=1.5)
    for each in new.types:
        table = fp.store.restore(
            q.assignment[each.range.start : each.range.stop], graph=new, of_type=each.name
        )
        known = [(part, before[each.name, id]) for id, part in table.rows() if (each.name, id) in before]
        assert len(known) == (100 if each.name == "paper" else 50)
        assert all(part == old_part for part, old_part in known)
    with pytest.raises(fp.errors.EdgeFileChangedError, match="its directory was replaced"):
        fp.update(new, p)  # the directory of its graph has other ids now


def test_graphs_that_cannot_be_matched(users, tmp_path):
    ids, records = users
    graph, plain = fp.open_graph(frame(ids, records)), fp.open_graph(records, num_vertices=N)
    p = fp.partition(graph, 2)
    assert fp.update(graph, p).parameters["moved"] == 0
    with pytest.raises(
        fp.errors.ParameterError, match=r"the vertices of the partition have ids\. Open a newer"
    ):
        fp.update(plain, p)
    np.save(tmp_path / "p.npy", p.assignment)
    for start in (p.assignment, tmp_path / "p.npy"):
        with pytest.raises(
            fp.errors.ParameterError, match=r"does not say which ids its rows are of\. Pass a partition dir"
        ):
            fp.update(graph, start)
    others = fp.open_graph(pl.DataFrame({"source": ["x", "y"], "target": ["y", "z"]}))
    with pytest.raises(fp.errors.ParameterError, match="none of its ids is an id of the partition"):
        fp.update(others, p)
    numbers = fp.open_graph(pl.DataFrame({"source": [5, 900], "target": [900, 10**12]}), relabel=True)
    with pytest.raises(fp.errors.ParameterError, match="are Int64, those of the partition String"):
        fp.update(numbers, p)


def test_a_directory_has_ids_only_if_the_graph_has(users, tmp_path):
    ids, records = users
    graph, plain = fp.open_graph(frame(ids, records)), fp.open_graph(records, num_vertices=N)
    for name, each in {"with": graph, "without": plain}.items():
        fp.partition(each, 2).save(tmp_path / name)
        fp.store.verify(tmp_path / name)
    stored = json.loads((tmp_path / "with" / "manifest.json").read_text())
    assert stored["ids"] == ["vertex"]
    assert "ids/vertex.parquet" in stored["files"]
    assert "ids" not in json.loads((tmp_path / "without" / "manifest.json").read_text())
    assert not (tmp_path / "without" / "ids").exists()
    assert (tmp_path / "with" / "ids" / "vertex.parquet").read_bytes() == (
        graph.directory / "ids" / "vertex.parquet"
    ).read_bytes()


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        (["vertex", "other"], "ids: expected the types of the vertices"),
        (["../../vertex"], "leads out of the partition directory"),
        (["absent"], "is missing"),
        ("vertex", "ids: expected a list of names"),
    ],
)
def test_a_damaged_list_of_ids_is_refused(users, tmp_path, ids, text):
    table, records = users
    graph = fp.open_graph(frame(table, records[:50]))
    fp.partition(graph, 2).save(tmp_path / "parts")
    file = tmp_path / "parts" / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"ids": ids}))
    with pytest.raises(fp.errors.GraphFormatError, match=text):
        fp.update(fp.open_graph(frame(table, records[:60])), tmp_path / "parts")


# What is given for vertices.

PEOPLE = ["eve", "ann", "dan", "bob"]  # vertices 3, 0, 2, 1
VALUES = [30, 0, 20, 10]
PATH = pl.DataFrame({"source": ["ann", "bob", "dan"], "target": ["bob", "dan", "eve"]})


@pytest.fixture(scope="module")
def graph():
    return fp.open_graph(PATH)


def forms(folder, columns):
    """Return a table as files and as frames of all libraries that are there."""
    rows = pl.DataFrame(columns)
    rows.write_parquet(folder / "t.parquet")
    rows.write_csv(folder / "t.csv")
    rows.write_csv(folder / "t.tsv", separator="\t")
    with gzip.open(folder / "t.csv.gz", "wb") as file:
        rows.write_csv(file)
    found = {
        "parquet": folder / "t.parquet",
        "csv": folder / "t.csv",
        "tsv": folder / "t.tsv",
        "gz": folder / "t.csv.gz",
        "polars": rows,
        "lazy": rows.lazy(),
    }
    pandas = pytest.importorskip("pandas")
    found["pandas"] = pandas.DataFrame(columns)
    found["shuffled"] = pandas.DataFrame(columns).iloc[::-1]
    found["index"] = pandas.DataFrame(columns).set_index(next(iter(columns)))
    if pyarrow := pytest.importorskip("pyarrow"):
        found["arrow"] = pyarrow.table(columns)
    return found


FORMS = ["parquet", "csv", "tsv", "gz", "polars", "lazy", "pandas", "shuffled", "index", "arrow"]


def saved(graph, folder, **given):
    """Return the rows of a directory, in the order of the vertices."""
    fp.VertexPartition([0] * graph.num_vertices, 1).save(
        folder / "parts", graph=graph, overwrite=True, **given
    )
    return fp.open_partition(folder / "parts").parts[0]


@pytest.mark.parametrize("form", FORMS)
def test_rows_go_by_id(graph, tmp_path, form, recwarn):
    table = forms(tmp_path, {"user": PEOPLE, "x": VALUES, "y": [each / 2 for each in VALUES]})[form]
    part = saved(graph, tmp_path, features=table)
    assert part.features.tolist() == [[0, 0], [10, 5], [20, 10], [30, 15]]
    table = forms(tmp_path, {"user": PEOPLE, "topic": ["b", "a", "c", "a"]})[form]
    assert saved(graph, tmp_path, labels=table).labels.tolist() == [0, 0, 2, 1]
    table = forms(tmp_path, {"user": PEOPLE[:3], "split": ["train", "val", "test"]})[form]
    assert saved(graph, tmp_path, splits=table).train.tolist() == [False, False, False, True]
    table = forms(tmp_path, {"user": PEOPLE, "t": VALUES})[form]
    assert saved(graph, tmp_path, times=table).times.tolist() == [0, 10, 20, 30]
    table = forms(tmp_path, {"user": PEOPLE, "w": VALUES})[form]
    p = fp.multilevel(graph, 2, balance_on=table, balance_on_ratio=2)
    order = np.array([0, 10, 20, 30])
    assert p.weight_loads.tolist() == [int(order[p.assignment == part].sum()) for part in range(2)]
    table = forms(tmp_path, {"user": PEOPLE, "part": [1, 0, 0, 1]})[form]
    for make in (fp.multilevel, fp.partition):
        assert make(graph, 2, fixed=table).assignment.tolist() == [0, 1, 0, 1]
    assert not [each for each in recwarn if "have ids" in str(each.message)]


def test_vertices_of_fixed_tables_that_are_not_named_are_free(graph):
    p = fp.multilevel(graph, 2, fixed=pl.DataFrame({"user": ["dan"], "part": [1]}))
    assert p.assignment[2] == 1


@given(st.permutations(range(12)), st.integers(0, 12))
@examples(10)
def test_any_order_of_rows_gives_the_same_arrays(order, count):
    ids = [f"{each * 7919 % 104729:06}" for each in range(12)]
    graph = fp.open_graph(pl.DataFrame({"source": ids, "target": ids[1:] + ids[:1]}))
    rank = {each: place for place, each in enumerate(sorted(ids))}
    rows = [ids[each] for each in order]
    n, tables = graph.num_vertices, graph._id_tables
    numbers = [rank[each] for each in rows]
    features = rows_of_vertices("features", pl.DataFrame({"u": rows, "x": numbers}), n, tables, RunOptions())
    assert features.read(0, 12)[:, 0].tolist() == list(range(12))
    some = pl.DataFrame({"u": rows[:count], "y": numbers[:count]}, schema={"u": pl.String, "y": pl.Int64})
    expected = [each if each in numbers[:count] else -1 for each in range(12)]
    assert labels_of(some, n, tables).tolist() == expected
    members = splits_of({"train": pl.Series(rows[:count], dtype=pl.String)}, n, None, tables)
    assert members["train"].tolist() == numbers[:count]


def test_large_features_in_another_order_go_through_a_file(graph, tmp_path, monkeypatch):
    monkeypatch.setattr("fastpart.core.rows.CHUNK_BYTES", 8)
    pl.DataFrame({"x": VALUES, "user": PEOPLE}).write_parquet(tmp_path / "t.parquet")
    assert saved(graph, tmp_path, features=tmp_path / "t.parquet").features[:, 0].tolist() == [0, 10, 20, 30]


def test_splits_list_ids(graph):
    pandas = pytest.importorskip("pandas")
    for make in (pl.Series, pandas.Series, np.array, list, lambda ids: pandas.Series(ids, dtype="category")):
        splits = splits_of({"train": make(PEOPLE[:2]), "test": make(["dan"])}, 4, None, graph._id_tables)
        assert {name: ids.tolist() for name, ids in splits.items()} == {"train": [3, 0], "test": [2]}
    mask = pandas.Series([True, False, False, True], index=PEOPLE)
    assert splits_of({"train": mask}, 4, None, graph._id_tables)["train"].tolist() == [1, 3]
    frame = pl.DataFrame({"user": PEOPLE[:2], "x": [1, 2]})
    assert splits_of({"train": frame}, 4, None, graph._id_tables)["train"].tolist() == [3, 0]


def test_series_of_text_are_classes(graph):
    pandas = pytest.importorskip("pandas")
    topics = ["b", "a", "c", "a"]
    with pytest.warns(fp.errors.GraphWarning, match=r"labels: the vertices of the graph have ids"):
        assert labels_of(pl.Series(topics), 4, graph._id_tables).tolist() == [1, 0, 2, 0]
    for series in (pandas.Series(topics), pandas.Series(topics, dtype="category"), np.array(topics), topics):
        assert labels_of(series, 4).tolist() == [1, 0, 2, 0]
    assert labels_of(pandas.Series(topics, index=PEOPLE), 4, graph._id_tables).tolist() == [0, 0, 2, 1]
    assert labels_of(pandas.Series([7, 5], index=[3, 1]), 4).tolist() == [-1, 5, -1, 7]


@pytest.mark.parametrize(
    ("given", "n"),
    [
        ({"features": np.ones((4, 1))}, 1),
        ({"labels": [0, 1, 0, 1]}, 1),
        ({"times": np.arange(4)}, 1),
        ({"splits": {"train": [0], "val": [1]}}, 2),
        ({"features": pl.DataFrame({"x": VALUES})}, 1),
    ],
)
def test_rows_without_ids_are_taken_in_order_with_a_note(graph, tmp_path, given, n):
    with pytest.warns(
        fp.errors.GraphWarning, match=r'fp\.store\.restore\(p, graph=graph\)\["id"\] lists the ids'
    ) as warned:
        saved(graph, tmp_path, **given)
    assert len([each for each in warned if "have ids" in str(each.message)]) == n


def test_numbers_that_are_their_own_ids_need_no_note(tmp_path, recwarn):
    graph = fp.open_graph(np.array([[0, 1], [1, 2]]), relabel=True)
    saved(graph, tmp_path, labels=[0, 1, 0])
    assert not [each for each in recwarn if "have ids" in str(each.message)]


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        (
            "features",
            {"user": PEOPLE[:3], "x": VALUES[:3]},
            "features: the frame: the vertex 'bob' has no row",
        ),
        ("features", {"user": PEOPLE[:2], "x": [1, 2]}, "the vertices 'bob' and 1 others have no row"),
        (
            "features",
            {"user": [*PEOPLE, "zoe"], "x": [*VALUES, 1]},
            "user, row 4: no vertex has the id 'zoe'",
        ),
        (
            "features",
            {"user": [*PEOPLE, "ann"], "x": [*VALUES, 1]},
            "rows 1 and 4 are of the same vertex, ann",
        ),
        ("features", {"user": [*PEOPLE[:3], None], "x": VALUES}, "row 3: the vertex is missing"),
        ("features", {"user": PEOPLE, "x": [1, None, 2, 3]}, "column x is null in row 1"),
        ("features", {"user": PEOPLE, "x": ["a"] * 4}, "has no column of numbers"),
        (
            "features",
            {"user": PEOPLE, "friend": PEOPLE, "x": VALUES},
            "user and friend hold ids. Name the one",
        ),
        ("labels", {"user": ["ann", "zoe"], "y": [1, 2]}, "row 1: no vertex has the id 'zoe'"),
        (
            "labels",
            {"user": ["yan", "zoe"], "y": [1, 2]},
            "'yan', and none of the others is one. Give a table",
        ),
        ("times", {"user": PEOPLE[:3], "t": VALUES[:3]}, "times: the frame: the vertex 'bob' has no row"),
        ("splits", {"user": ["ann"], "split": ["tset"]}, "column split holds 'tset'"),
    ],
)
def test_what_cannot_be_matched(graph, tmp_path, name, given, text):
    with pytest.raises(fp.FastpartError, match=re.escape(text)):
        saved(graph, tmp_path, **{name: pl.DataFrame(given)})


@pytest.mark.parametrize("given", [{"features": np.zeros((5, 2))}, {"labels": np.zeros(5, int)}])
def test_a_row_too_many_is_no_isolated_vertex(graph, tmp_path, given):
    with (
        pytest.warns(fp.errors.GraphWarning, match="have ids"),
        pytest.raises(fp.errors.ParameterError, match="5 rows for 4 vertices") as error,
    ):
        saved(graph, tmp_path, **given)
    assert "num_vertices" not in str(error.value)


def test_columns_of_text_are_no_features_and_this_is_told(graph, tmp_path):
    frame = pl.DataFrame({"user": PEOPLE, "x": VALUES, "city": PEOPLE})
    with pytest.warns(fp.errors.GraphWarning, match="ignored the columns city, which hold no numbers"):
        part = saved(graph, tmp_path, features=frame.rename({"user": "id"}))
    assert part.features.shape[1] == 1


def test_weights_need_a_row_for_each_vertex(graph):
    with pytest.raises(fp.errors.ParameterError, match=r"balance_on: the frame: the vertex 'bob' has no row"):
        fp.multilevel(graph, 2, balance_on=pl.DataFrame({"user": PEOPLE[:3], "w": [1, 2, 3]}))


def test_data_of_types_goes_by_the_ids_of_the_type(tmp_path):
    cites, writes = np.array([[0, 1], [1, 2]]), np.array([[0, 1], [0, 2]])
    graph = fp.ingest(typed(["p9", "p5", "p7"], [40, 20], cites, writes), tmp_path / "g")
    features = {"paper": pl.DataFrame({"id": ["p9", "p7", "p5"], "x": [9, 7, 5]})}
    features["author"] = pl.DataFrame({"who": [40, 20], "x": [4.0, 2.0]})
    part = saved(graph, tmp_path, features=features, splits={"paper": {"train": pl.Series(["p9"])}})
    assert part.of_type("paper").features[:, 0].tolist() == [5, 7, 9]
    assert part.of_type("author").features[:, 0].tolist() == [2, 4]
    assert part.of_type("paper").train.tolist() == [False, False, True]
    evaluation = fp.evaluate(graph, [0] * 5, splits={"paper": {"train": pl.Series(["p9"])}})
    assert evaluation.parts["train"].to_list() == [1]


def test_the_shell_matches_files(graph, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PATH.write_csv("edges.csv")
    pl.DataFrame({"user": PEOPLE, "x": VALUES}).write_csv("x.csv")
    pl.DataFrame({"user": PEOPLE, "w": [1, 1, 1, 3]}).write_csv("w.csv")
    pl.DataFrame({"user": ["dan", "bob"], "part": [0, 1]}).write_csv("fixed.csv")
    pl.DataFrame({"user": PEOPLE, "topic": ["b", "a", "c", "a"]}).write_csv("y.csv")
    pl.DataFrame({"user": PEOPLE[:2], "split": ["train", "val"]}).write_csv("split.csv")
    words = "partition edges.csv -k 2 -o parts --algorithm multilevel --balance-on w.csv --fixed fixed.csv -q"
    data = "--features x.csv --labels y.csv --splits split.csv"
    assert main([*words.split(), *data.split()]) == 0
    p = fp.open_partition("parts")
    assert p.assignment[[1, 2]].tolist() == [1, 0]
    assert int(p.weight_loads.sum()) == 6
    for part in p.parts:
        assert part.features[:, 0].tolist() == (10 * part.inner).tolist()
    np.save("x.npy", np.ones((4, 1)))
    warnings.simplefilter("always", fp.errors.GraphWarning)  # -q above has turned it off
    assert (
        main(["partition", "edges.csv", "-k", "2", "-o", "parts", "--features", "x.npy", "--overwrite"]) == 0
    )
    told = capsys.readouterr().err
    assert "`fastpart restore` lists the ids in this order" in " ".join(told.split())
    assert "fp." not in told


# Partitions are taken as objects, paths, arrays and tables.


def test_partitions_are_paths_wherever_they_are_objects(tmp_path):
    square = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    parts = np.array([0, 0, 1, 1])
    np.save(tmp_path / "p.npy", parts)
    np.save(tmp_path / "e.npy", np.array([0, 0, 1, 1], np.uint8))
    file, array = tmp_path / "p.npy", fp.VertexPartition(parts, 2)
    assert fp.evaluate(square, file).summary.equals(fp.evaluate(square, array).summary)
    assert fp.algorithms.expected_cut(square, file, 1.0) == fp.algorithms.expected_cut(square, parts, 1.0)
    assert fp.home_parts(square, tmp_path / "e.npy") == fp.home_parts(
        square, fp.EdgePartition([0, 0, 1, 1], 2)
    )
    for function in (fp.refine, fp.update, fp.edges_of):
        assert function(square, file) == function(square, array)
    splits = {"train": [0]}
    assert fp.predict_traffic(file, [2], graph=square, splits=splits).rows == (
        fp.predict_traffic(parts, [2], graph=square, splits=splits).rows
    )


def test_an_empty_last_part_counts_if_k_says_so(caplog):
    caplog.set_level("INFO", "fastpart")
    square = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    assert fp.evaluate(square, [0, 0, 1, 1]).summary["k"].item() == 2
    assert "k: 2, the largest part + 1" in caplog.messages[-1]
    said = fp.evaluate(square, [0, 0, 1, 1], k=3).summary
    assert (said["k"].item(), said["vertex_balance"].item()) == (3, 1.5)
    with pytest.raises(fp.errors.ParameterError, match="k: 3, but the partition has 2 parts"):
        fp.evaluate(square, fp.VertexPartition([0, 0, 1, 1], 2), k=3)


def test_parts_in_a_table_go_by_id(graph, tmp_path):
    table = pl.DataFrame({"user": PEOPLE, "part": [1, 0, 1, 0]})
    table.write_csv(tmp_path / "p.csv")
    expected = fp.evaluate(graph, fp.VertexPartition([0, 0, 1, 1], 2)).parts
    for each in (table, tmp_path / "p.csv"):
        assert fp.evaluate(graph, each).parts.equals(expected)
    assert fp.edges_of(graph, table) == fp.edges_of(graph, fp.VertexPartition([0, 0, 1, 1], 2))
    with pytest.warns(fp.errors.GraphWarning, match=r"partition: the vertices of the graph have ids"):
        fp.evaluate(graph, [0, 0, 1, 1])


def test_a_remedy_is_named_only_where_it_helps():
    square = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    for make in (
        lambda rows: fp.evaluate(square, [0, 0, 1, 1], labels=np.zeros(rows, int)),
        lambda rows: fp.evaluate(square, np.zeros(rows, int)),
    ):
        with pytest.raises(fp.FastpartError) as short:
            make(3)
        with pytest.raises(fp.FastpartError, match=r"open the graph with num_vertices=5"):
            make(5)
        assert "num_vertices" not in str(short.value)


@pytest.mark.torch
def test_an_open_partition_is_trained_on(graph, tmp_path):
    p = fp.VertexPartition([0, 0, 1, 1], 2)
    with pytest.raises(fp.errors.ParameterError, match=r"source: the partition does not know its graph"):
        fp.train.full(p)
    labels = pl.DataFrame({"user": PEOPLE, "topic": ["b", "a", "b", "a"]})
    features = pl.DataFrame({"user": PEOPLE, "x": [1.0, 0, 1, 0]})
    splits = {"train": pl.Series(["ann", "eve"]), "val": pl.Series(["bob"]), "test": pl.Series(["dan"])}
    p.save(tmp_path / "parts", graph=graph, features=features, labels=labels, splits=splits)
    stored = fp.open_partition(tmp_path / "parts")
    for method in (fp.train.full, fp.train.sampled):
        trained, again = (method(each, epochs=1) for each in (stored, tmp_path / "parts"))
        assert trained.summary["test_accuracy"] == again.summary["test_accuracy"]
        assert trained.predict(stored).shape == (4,)
