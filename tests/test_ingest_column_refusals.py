"""Columns that cannot be used are refused by name, with the row; odd ones that can be are taken."""

import json
import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial

import numpy as np
import polars as pl
import pytest

import fastpart as fp
from column_tables import UNKNOWN, ingested, reader, simple, vertices_of
from fastpart.graphs.ingest.tables import open_table


@pytest.mark.parametrize(
    ("values", "entry", "message"),
    [
        ([1.0, None], {"features": ["x"]}, r"0.parquet: row 1, column 'x': the value is missing.*fill: 0"),
        ([1.0, np.nan], {"features": ["x"]}, r"row 1, column 'x': the value is missing"),
        ([1.0, 1e300], {"features": ["x"]}, r"row 1, column 'x': 1e\+300 is too large for float32"),
        ([[1.0], [1.0, 2.0]], {"features": ["x"]}, r"row 1, column 'x': a list of 2, where others hold 1"),
        ([[1.0], [None]], {"features": ["x"]}, r"row 1, column 'x': the value is missing"),
        (pl.Series([[], []], dtype=pl.List(pl.Int64)), {"features": ["x"]}, r"column 'x' holds empty lists"),
        (
            ["a", None],
            {"features": [{"column": "x", "as": "category"}]},
            r"row 1, column 'x': the value is missing",
        ),
        (
            [1, None],
            {"features": [{"column": "x", "as": "category", "fill": "a"}]},
            r"fill: 'a' is none of its kind",
        ),
        (
            ["a"],
            {"label": "x", "features": [{"column": "x", "as": "onehot"}]},
            r"features\[0\]: column 'x' is the label",
        ),
        (
            [["a"], None],
            {"features": [{"column": "x", "as": "onehot"}]},
            r"row 1, column 'x': the value is missing.*\{column: x, as: onehot, fill: unknown\}",
        ),
        (
            [["a"], ["a", None]],
            {"features": [{"column": "x", "as": "onehot"}]},
            r"row 1, column 'x': the value is",
        ),
        ([["a"]], {"features": [{"column": "x", "as": "code"}]}, r"is List\(String\). Expected categories"),
        ([1.5], {"features": [{"column": "x", "as": "onehot"}]}, r"is Float64. Expected categories"),
        ([5], {"features": [{"column": "x", "as": "days"}]}, r"is Int64. Expected dates.*leave `as` out"),
        ([date(2020, 1, 1)], {"features": ["x"]}, r"is Date. Expected numbers.*`\{column: x, as: days\}`"),
        (
            [date(2020, 1, 1), None],
            {"features": [{"column": "x", "as": "days"}]},
            r"row 1, column 'x': the value is missing.*\{column: x, as: days, fill: 0\}",
        ),
        ([1], {"label": "y"}, r"0.parquet: no column 'y'. It has x"),
        ([[0, 2]], {"label": "x"}, r"row 0, column 'x': the list holds other numbers than 0 and 1"),
        ([[0, None]], {"label": "x"}, r"row 0, column 'x': an element of the list is missing"),
        ([date(2020, 1, 1)], {"label": "x"}, r"column 'x' is Date. A label is"),
        (
            pl.Series([2**63], dtype=pl.UInt64),
            {"label": "x"},
            r"row 0, column 'x': 9223372036854775808 is no class",
        ),
        ([1.5], {"time": "x"}, r"row 0, column 'x': 1.5 is no time"),
        (["2020-01-01", "soon"], {"time": "x"}, r"row 1, column 'x': 'soon' is no time"),
        ([[1]], {"time": "x"}, r"column 'x' is List\(Int64\). Times are"),
        (["train", "dev"], {"split": "x"}, r"row 1, column 'x': 'dev' is no split. Expected train, val"),
        ([1], {"split": "x"}, r"column 'x' is Int64. A split is text"),
        ([1], {"split": {"by": "time", "train": 0.5}}, r"paper: split: by time needs time"),
        ([1], {"split": {"by": "random", "train": 0.9, "test": 0.2}}, r"more than 1 together"),
        (
            [1.0],
            {"features": [{"column": "x", "standardise": True}], "split": {"by": "random", "train": 0}},
            r"paper: standardise: there are no rows, or none in the split train",
        ),
    ],
)
def test_refusals(tmp_path, values, entry, message):
    with pytest.raises(fp.FastpartError, match=message):
        simple(tmp_path, pl.DataFrame({"x": values}), **entry)


@pytest.mark.parametrize(
    ("one", "other", "entry", "message"),
    [
        ([1], ["a"], {"label": "x"}, r"column 'x' is Int64 in .*0.parquet and String in .*1.parquet"),
        ([[1.0]], [[1.0, 2.0]], {"features": ["x"]}, r"the lists hold 1 numbers in .*, 2 numbers in"),
        (["1"], ["1970-01-01"], {"time": "x"}, r"written as days since 1970-01-01 and number"),
        ([date(2020, 1, 1)], [1], {"time": "x"}, r"is Date in .* and Int64 in"),
    ],
)
def test_files_that_do_not_go_together(tmp_path, one, other, entry, message):
    table = reader(tmp_path, [pl.DataFrame({"x": one}), pl.DataFrame({"x": other})])
    parts = [np.array([0], np.uint32), np.array([1], np.uint32)]
    with pytest.raises(fp.errors.GraphFormatError, match=message):
        ingested(lambda: vertices_of(table, 2, **entry), tmp_path, table, parts)


def test_a_file_that_changed_after_the_survey(tmp_path):
    frame = pl.DataFrame({"x": ["a", "b"]})
    table = reader(tmp_path, [frame])
    columns = vertices_of(table, 2, label="x")
    surveys = [columns.survey(0)]
    columns = vertices_of(reader(tmp_path, [pl.DataFrame({"x": ["a", "c"]})]), 2, label="x")
    columns.begin(tmp_path / "out", surveys)
    with pytest.raises(fp.errors.GraphFormatError, match=r"row 1, column 'x': 'c' is new. The file changed"):
        columns.write(tmp_path / "out", 0, np.arange(2, dtype=np.uint32), 0, 2)


def test_text_files(tmp_path):
    (tmp_path / "a.csv").write_text("id,x,y,t\n1,0.5,ICML,2020-01-02\n2,,KDD,\n")
    (tmp_path / "b.csv").write_text("id,x,y,t\n3,oops,,2020-01-02\n")
    entry = {"features": [{"column": "x", "fill": 7}], "label": "y", "time": "t"}
    table = open_table("vertices.paper", [tmp_path / "a.csv"])
    parts = [np.array([0, 1], np.uint32)]
    out, told = ingested(lambda: vertices_of(table, 2, **entry), tmp_path, table, parts)
    assert np.load(out / "features.npy").tolist() == [[0.5], [7]]
    assert np.load(out / "labels.npy").tolist() == [0, 1]
    assert np.load(out / "times.npy").tolist() == [18263, UNKNOWN]
    assert told["features"]["columns"][0]["filled"] == 1
    both = open_table("vertices.paper", [tmp_path / "a.csv", tmp_path / "b.csv"])
    with pytest.raises(fp.errors.GraphFormatError, match=r"b.csv: line 2, column 'x': 'oops' is no number"):
        ingested(lambda: vertices_of(both, 3, **entry), tmp_path, both, [*parts, np.array([2], np.uint32)])


@pytest.mark.parametrize("other", [[1, 2], [[1, 0], [0, 1]], ["a", "b"], [date(2020, 1, 1), None]])
def test_a_file_in_which_all_values_are_missing(tmp_path, other):
    table = reader(tmp_path, [pl.DataFrame({"x": [None, None]}), pl.DataFrame({"x": other})])
    parts = [np.array([0, 1], np.uint32), np.array([2, 3], np.uint32)]
    uses = {
        "label": not isinstance(other[0], date) and other != ["a", "b"],
        "time": isinstance(other[0], int | date),
        "features": not isinstance(other[0], date),
    }
    feature = {"column": "x", "fill": 7} | ({"as": "code"} if other == ["a", "b"] else {})
    entry = {"label": "x", "time": "x", "features": [feature]}
    entry = {name: value for name, value in entry.items() if uses[name]}
    out, told = ingested(lambda: vertices_of(table, 4, **entry), tmp_path, table, parts)
    if uses["features"]:
        assert told["features"]["columns"][0]["filled"] == 2
        assert np.load(out / "features.npy")[1:3, 0].tolist() == ([0, 1] if other == ["a", "b"] else [7, 1])
    if uses["label"]:
        assert told["labels"]["missing"] == (
            0 if isinstance(other[0], list) and told["labels"]["of"] != "targets" else 2
        )
    if uses["time"]:
        assert np.load(out / "times.npy")[1] == UNKNOWN


WHOLE = [pl.Int8, pl.UInt8, pl.Int64, pl.UInt64, pl.Int128]


@pytest.mark.parametrize("dtype", WHOLE)
def test_categories_of_whole_numbers_are_sorted_by_value(tmp_path, dtype):
    largest = 2**100 if dtype == pl.Int128 else 100
    frame = pl.DataFrame({"x": pl.Series([9, None, largest, 10, 9], dtype=dtype)})
    out, _ = simple(tmp_path, frame, features=[{"column": "x", "as": "category", "fill": 11}])
    assert np.load(out / "features.npy")[:, 0].tolist() == [0, 2, 3, 1, 0]
    assert json.loads((out / "categories.json").read_text())["x"] == {
        "values": [9, 10, 11, largest],
        "counts": [2, 1, 1, 1],
    }


ODD = {
    "Int128": [1, None],
    "UInt64": [2**63, 1],
    "Decimal": [Decimal("1.5"), None],
    "Duration": [timedelta(1), None],
    "Time": [time(1), None],
    "Binary": [b"a", None],
    "Struct": [{"a": 1}, None],
    "lists of lists": [[[1]], None],
    "lists of bools": [[True], None],
    "lists of text": [["a"], None],
    "lists of nulls": [[None], [1]],
    "empty lists": [[], [1.0]],
    "matrices": pl.Series([[[1, 2]], None], dtype=pl.Array(pl.Int8, (1, 2))),
    "empty arrays": pl.Series([[], []], dtype=pl.Array(pl.Int8, 0)),
    "Enum": pl.Series(["a", None], dtype=pl.Enum(["b", "a"])),
    "nanoseconds": pl.Series([datetime(2020, 1, 1), None], dtype=pl.Datetime("ns")),
    "zones": pl.Series([datetime(2020, 1, 1), None]).dt.replace_time_zone("Europe/Berlin"),
    "infinite": [float("inf"), None],
    "empty text": ["", "x"],
    "numbers as text": ["1e3", "nan"],
    "nothing": [None, None],
}


@pytest.mark.parametrize("kind", ODD)
def test_columns_of_any_type_are_taken_or_refused_by_name(tmp_path, kind):
    dtype = {"dtype": pl.Int128} if kind == "Int128" else {"dtype": pl.UInt64} if kind == "UInt64" else {}
    table = reader(tmp_path, [pl.DataFrame({"x": pl.Series(ODD[kind], **dtype)})])
    for entry in (
        {"features": [{"column": "x", "fill": 1}]},
        {"features": [{"column": "x", "as": "code", "fill": 1}]},
        {"features": [{"column": "x", "as": "onehot", "fill": 1}]},
        {"features": [{"column": "x", "as": "days", "fill": 1}]},
        {"features": [{"column": "x", "fill": 3, "standardise": True}]},
        {"label": "x"},
        {"time": "x", "split": {"by": "time", "train": 0.5}},
        {"split": "x"},
    ):
        refusal = ""
        try:
            ingested(partial(vertices_of, table, 3, **entry), tmp_path, table, [np.array([0, 1], np.uint32)])
        except fp.FastpartError as error:
            refusal = str(error)
        assert not re.search("polars|arrow|msgspec|numpy", refusal, re.IGNORECASE)
