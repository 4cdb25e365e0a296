"""Columns of categories: of 0 and 1, or codes, whose values keep their places from one ingest to the next."""

import json
import logging
import tempfile
from datetime import date, datetime
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from column_tables import ingested, reader, records_of, simple, vertices_of
from fastpart.cli import main
from fastpart.graphs.graph_directory import categories_in, default_dim, embedded_beside
from fastpart.graphs.ingest.columns import features
from fastpart.graphs.ingest.tables import open_table
from soaked import examples

VALUES = {"text": ["AT", "DE", "é", "", "007"], "whole": [-3, 0, 7, 10, 200]}
TYPES = {"text": pl.String, "whole": pl.Int64}


def night(rows, kind, lists, form, fill, earlier):
    """Return the matrix of an oracle of dicts, and the values in the order of their codes."""
    given = [[each] if not lists else [None] if each is None else each for each in rows]
    told = [str(fill if value is None else value) for row in given for value in row]
    if earlier is None:
        values = {*told, *([] if fill is None else [str(fill)])}
        earlier = sorted(values, key=int if kind == "whole" else None)
    codes = {value: code for code, value in enumerate(earlier)}
    matrix = np.zeros((len(rows), len(earlier) + 1 if form == "onehot" else 1), np.float32)
    for row, values in enumerate(given):
        for value in values:
            code = codes.get(str(fill if value is None else value), len(earlier))
            matrix[row, code if form == "onehot" else 0] = 1 if form == "onehot" else code
    return matrix, earlier


@st.composite
def nights(draw):
    kind = draw(st.sampled_from(["text", "whole"]))
    form, lists = draw(
        st.sampled_from([("onehot", False), ("onehot", True), ("code", False), ("embedding", False)])
    )
    fill = draw(st.sampled_from([None, VALUES[kind][0], "unknown" if kind == "text" else 99]))
    value = st.sampled_from(VALUES[kind] if fill is None else [*VALUES[kind], None])
    rows = st.lists(st.lists(value, max_size=3) if lists else value, min_size=1, max_size=12)
    return kind, lists, form, fill, [draw(rows) for _ in range(3)]


@examples(10)
@given(nights(), st.data())
def test_values_keep_their_places_over_nights(case, data):
    kind, lists, form, fill, tables = case
    if not any(each not in (None, []) for each in tables[0]):
        return  # a column without any value has no kind
    dtype = pl.List(TYPES[kind]) if lists else TYPES[kind]
    entry = {"features": [{"column": "x", "as": form, "fill": fill}]}
    vocabulary = values = None
    for rows in tables:
        frame = pl.DataFrame({"x": pl.Series(rows, dtype=dtype)})
        cut = data.draw(st.integers(0, len(rows)))
        with tempfile.TemporaryDirectory() as name:
            table = reader(Path(name), [frame[:cut], frame[cut:]])
            order = np.arange(len(rows), dtype=np.uint32)
            make = partial(vertices_of, table, len(rows) + 1, vocabulary, **entry)
            out, told = ingested(make, Path(name), table, [order[:cut], order[cut:]])
            matrix, values = night(rows, kind, lists, form, fill, values)
            found = np.load(out / "features.npy")
            np.testing.assert_array_equal(found[:-1], matrix)
            filled, _ = night([[] if fill is None else [fill]], kind, True, "onehot", fill, values)
            if form == "onehot":
                np.testing.assert_array_equal(found[-1:], filled)  # a vertex without a row
            vocabulary = categories_in(out / "categories.json")
            assert list(map(str, vocabulary["x"])) == values
            column = told["features"]["columns"][0]
            assert (column["as"], column["width"]) == (form, matrix.shape[1])
            there = json.loads((out / "categories.json").read_text())["x"]
            known = [each if lists and each is not None else [each] for each in rows]
            # The nulls of a row are filled once.
            elements = [sum(value is not None for value in each) + (None in each) for each in known]
            assert sum(there["counts"]) + column.get("unknown", 0) == sum(elements)


def test_a_linear_model_learns_classes_of_categories(tmp_path):
    """The codes of 20 categories in the order of the alphabet say little to it, their columns all."""
    rng = np.random.default_rng(0)
    of, classes = rng.integers(0, 20, 3000), rng.integers(0, 2, 20)
    frame = pl.DataFrame({"c": [f"c{each:02}" for each in of]})
    right = {}
    for form in ("code", "onehot"):
        out, _ = simple(tmp_path, frame, features=[{"column": "c", "as": form}])
        x = np.load(out / "features.npy")
        x = np.column_stack([x, np.ones(len(x))])
        said = x @ np.linalg.lstsq(x, classes[of] * 2.0 - 1, rcond=None)[0] > 0
        right[form] = (said == classes[of]).mean()
    assert right["onehot"] == 1
    assert right["code"] < 0.8


FORMATS = {
    "frame": lambda frame, folder: frame,
    "parquet": lambda frame, folder: frame.write_parquet(folder / "v.parquet"),
    "categorical": lambda frame, folder: frame.cast({"c": pl.Categorical}).write_parquet(
        folder / "v.parquet"
    ),
    "enum": lambda frame, folder: frame.cast({"c": pl.Enum(["web", "app"])}).write_parquet(
        folder / "v.parquet"
    ),
    "csv": lambda frame, folder: frame.write_csv(folder / "v.csv"),
    "csv.gz": lambda frame, folder: frame.write_csv(folder / "v.csv.gz", compression="gzip"),
    "ndjson": lambda frame, folder: frame.write_ndjson(folder / "v.ndjson"),
    "arrow": lambda frame, folder: frame.write_ipc(folder / "v.arrow"),
}
USERS = pl.DataFrame({"id": ["a", "b", "c"], "c": ["web", "app", None], "y": ["no", "yes", "no"]})
BUYS = pl.DataFrame({"s": ["a", "c", "b"], "t": ["x", "y", "x"], "how": ["card", "cash", "card"]})


def shop(folder, users=USERS, buys=BUYS, fill="none"):
    """Return the schema of a graph with two types, with categories of vertices and of edges."""
    folder.mkdir(exist_ok=True)
    feature = {"column": "c", "as": "onehot", "fill": fill}
    return {
        "root": str(folder),
        "vertices": {"user": {"files": users, "id": "id", "features": [feature], "label": "y"}, "item": {}},
        "relations": {
            "buys": {
                "files": buys,
                "source": {"user": "s"},
                "target": {"item": "t"},
                "features": [{"column": "how", "as": "code"}],
            },
            "knows": {
                "files": pl.DataFrame({"s": ["a"], "t": ["b"]}),
                "source": {"user": "s"},
                "target": {"user": "t"},
            },
        },
    }


@pytest.mark.parametrize("format", FORMATS)
def test_formats(tmp_path, format, monkeypatch):
    (tmp_path / "in").mkdir()
    frame = FORMATS[format](USERS, tmp_path / "in")
    files = frame if frame is not None else "v.*"
    fp.ingest(shop(tmp_path / "in", files), tmp_path / "graph")
    expected = [[0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0]]  # app, none, web, unknown
    assert np.load(tmp_path / "graph/types/user/features.npy").tolist() == expected
    later = USERS.with_columns(c=pl.Series(["ftp", None, "web"]), y=pl.Series(["maybe", "yes", "no"]))
    frame = FORMATS[format if format != "enum" else "parquet"](later, tmp_path / "in")
    files = frame if frame is not None else "v.*"
    fp.ingest(shop(tmp_path / "in", files), tmp_path / "next", vocabulary=tmp_path / "graph")
    found = np.load(tmp_path / "next/types/user/features.npy")
    assert found.tolist() == [[0, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]]
    assert np.load(tmp_path / "next/types/user/labels.npy").tolist() == [2, 1, 0]


def test_two_nights_of_a_graph_with_types(tmp_path, caplog, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = fp.ingest(shop(tmp_path / "in"), "graph")
    users = pl.DataFrame({"id": ["a", "b", "d"], "c": ["ftp", "app", "ssh"], "y": ["maybe", "yes", None]})
    buys = pl.DataFrame({"s": ["a", "d"], "t": ["x", "x"], "how": ["cash", "bill"]})
    with caplog.at_level(logging.INFO, "fastpart"):
        fp.ingest(shop(tmp_path / "in", users, buys), "next", vocabulary=first)
    assert (
        "user: column 'c': 2 of its values are not in the vocabulary ('ftp', 'ssh'), and count as unknown"
        in (caplog.text)
    )
    assert "user: column 'y': 1 new class behind the 2 of the vocabulary ('maybe')" in caplog.text
    assert "buys: column 'how': 1 of its values are not in the vocabulary ('bill')" in caplog.text
    assert np.load("next/types/user/features.npy").tolist() == [[0, 0, 0, 1], [1, 0, 0, 0], [0, 0, 0, 1]]
    assert np.load("next/types/user/labels.npy").tolist() == [2, 1, -1]
    assert np.load("next/relations/buys/features.npy").tolist() == [[1], [2]]
    # The same by the command, in the place of the earlier graph.
    users.write_parquet("in/users.parquet")
    schema = shop(tmp_path / "in", "users.parquet", str(tmp_path / "in/buys.parquet"))
    buys.write_parquet("in/buys.parquet")
    schema["relations"]["knows"]["files"].write_parquet("in/knows.parquet")
    schema["relations"]["knows"]["files"] = "knows.parquet"
    Path("schema.json").write_text(json.dumps(schema))
    assert main(["ingest", "schema.json", "-o", "graph", "--vocabulary", "graph"]) == 0
    for file in ("types/user/features.npy", "types/user/labels.npy", "types/user/categories.json"):
        assert Path("graph", file).read_bytes() == Path("next", file).read_bytes()
    facts = fp.info("graph")
    assert [(each["name"], each["width"]) for each in facts["features"]] == [("user", 4), ("buys", 1)]
    assert "user             4  float32  c 4 (onehot)" in str(facts)


def test_a_graph_with_one_type_and_one_relation_keeps_both_vocabularies(tmp_path):
    schema = shop(tmp_path / "in")
    del schema["relations"]["buys"]
    schema["relations"]["knows"] |= {
        "files": pl.DataFrame({"s": ["a"], "t": ["b"], "how": ["card"]}),
        "features": [{"column": "how", "as": "onehot"}],
    }
    del schema["vertices"]["item"]
    fp.ingest(schema, tmp_path / "graph")
    assert categories_in(tmp_path / "graph/categories.json") == {
        "c": ["app", "none", "web"],
        "y": ["no", "yes"],
    }
    assert categories_in(tmp_path / "graph/edge_categories.json") == {"how": ["card"]}
    schema["relations"]["knows"]["files"] = pl.DataFrame({"s": ["a"], "t": ["b"], "how": ["bill"]})
    fp.ingest(schema, tmp_path / "next", vocabulary=tmp_path / "graph")
    assert np.load(tmp_path / "next/edge_features.npy").tolist() == [[0, 1]]


def test_what_the_vocabulary_lacks_is_said(tmp_path, caplog):
    schema = shop(tmp_path / "in")
    schema["vertices"]["user"] |= {"features": [], "label": None}
    earlier = fp.ingest(schema, tmp_path / "graph")
    with caplog.at_level(logging.INFO, "fastpart"):
        fp.ingest(shop(tmp_path / "in"), tmp_path / "next", vocabulary=earlier)
    assert "user: column 'c' is not in the vocabulary. Its values are numbered anew" in caplog.text
    assert "user: column 'y' is not in the vocabulary. Its values are numbered anew" in caplog.text


def test_a_fill_value_that_fills_nothing_is_not_said(tmp_path, caplog):
    frame, feature = pl.DataFrame({"c": ["a"]}), {"column": "c", "as": "onehot", "fill": "unknown"}
    with caplog.at_level(logging.INFO, "fastpart"):
        _, told = simple(tmp_path, frame, vocabulary={"c": ["a"]}, features=[feature])
    assert told["features"]["columns"][0]["unknown"] == 0
    assert not caplog.text


def test_vocabularies_that_are_refused(tmp_path):
    schema = shop(tmp_path / "in")
    with pytest.raises(fp.errors.ParameterError, match=r"vocabulary: .*in is no graph directory"):
        fp.ingest(schema, tmp_path / "graph", vocabulary=tmp_path / "in")
    with pytest.raises(fp.errors.ParameterError, match="vocabulary: it was opened from numbers"):
        fp.ingest(schema, tmp_path / "graph", vocabulary=fp.open_graph(np.array([[0, 1]])))
    earlier = fp.ingest(schema, tmp_path / "earlier")
    numbers = USERS.with_columns(y=pl.Series([0, 1, 0]))
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"names for the classes of column 'y', which now holds Int64"
    ):
        fp.ingest(shop(tmp_path / "in", numbers), tmp_path / "graph", vocabulary=earlier)
    file = tmp_path / "earlier/types/user/categories.json"
    for content, said in (
        ("[", "not JSON"),
        ("[]", "expected a JSON object"),
        ('{"c": {"values": [1.5]}}', r"the field 'c\.values\[0\]' holds a number, not an integer or text"),
        ('{"c": 3}', "the field 'c' holds an integer, not an object"),
        ('{"c": {"values": ["1", 1]}}', "'c': a value is there twice"),
    ):
        file.write_text(content)
        with pytest.raises(fp.errors.GraphFormatError, match=f"categories.json: {said}"):
            fp.ingest(schema, tmp_path / "graph", vocabulary=earlier)
    assert not (tmp_path / "graph").exists()


def test_many_values_are_refused_with_a_remedy_that_works(tmp_path):
    frame = pl.DataFrame({"c": [f"{each}" for each in range(1025)]})
    with pytest.raises(
        fp.errors.CapacityError,
        match=r"column 'c': 1,025 values are too many for `as: onehot`, which takes 1,024.*0.00421 GB.*"
        r"`\{column: c, as: embedding\}`",
    ):
        simple(tmp_path, frame, features=[{"column": "c", "as": "onehot"}])
    out, _ = simple(tmp_path, frame, features=[{"column": "c", "as": "embedding"}])
    assert len(np.unique(np.load(out / "features.npy"))) == 1025
    out, _ = simple(tmp_path, frame[:1024], features=[{"column": "c", "as": "onehot"}])
    assert np.load(out / "features.npy").sum() == 1024
    # With a vocabulary the width is known, however many values there are.
    out, told = simple(
        tmp_path, frame, vocabulary={"c": ["0", "7"]}, features=[{"column": "c", "as": "onehot"}]
    )
    assert np.load(out / "features.npy").sum(axis=0).tolist() == [1, 1, 1023]
    assert told["features"]["columns"][0]["unknown"] == 1023


def test_unknown_and_missing_values_have_codes_of_their_own(tmp_path, caplog):
    frame = pl.DataFrame({"c": ["b", None, "a", "x", None]})
    given = [{"column": "c", "as": "embedding", "dim": 5}]
    with caplog.at_level(logging.INFO, "fastpart"):
        out, told = simple(tmp_path, frame, n=6, vocabulary={"c": ["b", "a"]}, features=given)
    assert np.load(out / "features.npy")[:, 0].tolist() == [0, 3, 1, 2, 3, 3]  # the last vertex has no row
    assert "2 rows without a value. Missing values have a learned row of their own" in caplog.text
    assert "1 of its values are not in the vocabulary ('x'), and count as unknown" in caplog.text
    (column,) = told["features"]["columns"]
    assert (column["missing"], column["unknown"]) == (2, 1)
    (known,) = embedded_beside(out / "features.npy").values()
    assert (known.place, known.dim, known.values) == (0, 5, ["b", "a"])
    assert [default_dim(each) for each in (1, 7, 1000, 2**17)] == [2, 5, 77, 100]


@pytest.mark.parametrize(
    ("make", "entry", "said"),
    [
        (vertices_of, {"as": "onehot", "dim": 4}, r"features\[0\].dim: it is for `as: embedding`"),
        (records_of, {"as": "embedding"}, r"`as: embedding` is for vertices.*`as: onehot`"),
    ],
)
def test_learned_rows_that_cannot_be_are_refused(tmp_path, make, entry, said):
    table = reader(tmp_path, [pl.DataFrame({"c": ["a"], "s": [0], "t": [0]})])
    with pytest.raises(fp.FastpartError, match=said):
        make(table, 1, features=[{"column": "c", **entry}])


def test_many_learned_rows_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(features, "MOST_EMBEDDED", 2)
    with pytest.raises(
        fp.errors.CapacityError, match=r"3 values are too many for `as: embedding`.*Make them a type"
    ):
        simple(tmp_path, pl.DataFrame({"c": ["a", "b", "c"]}), features=[{"column": "c", "as": "embedding"}])


def test_codes_of_no_category_are_refused_when_saved(tmp_path):
    out, _ = simple(tmp_path, pl.DataFrame({"c": ["a", "b"]}), features=[{"column": "c", "as": "embedding"}])
    np.save(out / "features.npy", np.array([[0], [4]], np.float32))
    partition = fp.VertexPartition([0, 1], k=2)
    with pytest.raises(
        fp.errors.ParameterError, match=r"features: row 1 holds 4\.0 in column .c., which is the code of no"
    ):
        partition.save(tmp_path / "parts", graph=[[0, 1]], features=out / "features.npy")


def test_category_is_an_earlier_name_of_code(tmp_path, caplog):
    frame = pl.DataFrame({"c": ["b", "a", "b"]})
    with caplog.at_level(logging.INFO, "fastpart"):
        out, told = simple(tmp_path, frame, features=[{"column": "c", "as": "category"}])
    assert np.load(out / "features.npy").tolist() == [[1], [0], [1]]
    assert told["features"]["columns"][0]["as"] == "code"
    assert "`as: category` is now called `as: code`" in caplog.text
    assert "`as: onehot`" in caplog.text


@pytest.mark.parametrize(
    ("values", "days"),
    [
        ([date(1970, 1, 3), None], [2, -1]),
        ([date(1969, 12, 31), date(2020, 1, 1)], [-1, 18262]),
        ([datetime(1970, 1, 2, 12), None], [1.5, -1]),
        (["1970-01-03", None], [2, -1]),
        (["1970-01-01 06:00:00", "1970-01-02T00:00:00Z"], [0.25, 1]),
    ],
)
def test_dates_are_days(tmp_path, values, days):
    frame = pl.DataFrame({"t": values})
    if isinstance(values[0], str):
        file = tmp_path / "in.csv"
        frame.write_csv(file)
        table = open_table("vertices.paper", [file])
    else:
        table = reader(tmp_path, [frame])
    entry = {"features": [{"column": "t", "as": "days", "fill": -1}]}
    out, told = ingested(
        lambda: vertices_of(table, 2, **entry), tmp_path, table, [np.arange(2, dtype=np.uint32)]
    )
    assert np.load(out / "features.npy")[:, 0].tolist() == days
    assert told["features"]["columns"][0]["as"] == "days"


def test_days_are_standardised(tmp_path):
    frame = pl.DataFrame({"t": [date(2020, 1, 1), date(2020, 1, 3)]})
    out, _ = simple(tmp_path, frame, features=[{"column": "t", "as": "days", "standardise": True}])
    assert np.load(out / "features.npy").tolist() == [[-1], [1]]
