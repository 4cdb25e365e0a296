"""Catalogs: every table of a schema opened, checked and given one kind of ids, before a row is read."""

import dataclasses
import logging

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpart.core.options import run_options
from fastpart.errors import CapacityError, GraphFormatError
from fastpart.graphs.ingest import catalog as catalogs
from fastpart.graphs.ingest.catalog import open_catalog
from fastpart.graphs.ingest.documents import read_schema
from soaked import examples

RUN = run_options()


def opened(vertices, relations):
    schema, root = read_schema({"vertices": vertices, "relations": relations})
    return open_catalog(schema, root, RUN)


def simple(ids, ends, **keys):
    """One type, one relation. Each may be a frame, values, or a list of files."""
    a, b = (
        pl.DataFrame({"id": each}) if isinstance(each, pl.Series | list) and not _files(each) else each
        for each in (ids, ends)
    )
    if isinstance(b, pl.DataFrame) and b.columns == ["id"]:
        b = b.rename({"id": "s"}).with_columns(t="s")
    entry = {"files": b, "source": {"v": keys.pop("source", "s")}, "target": {"v": keys.pop("target", "t")}}
    vertices = {} if ids is None else {"files": a, "id": keys.pop("id", "id")}
    return opened({"v": vertices | keys.pop("vertices", {})}, {"r": entry | keys})


def _files(each):
    return isinstance(each, list) and all(isinstance(item, str) and "." in item for item in each)


def series(dtype, values=(1, 2)):
    return pl.Series(values).cast(dtype)


AS_TEXT = {"column": "s", "as": "string"}


@pytest.mark.parametrize(
    ("ids", "ends", "kind", "dtype"),
    [
        (series(pl.Int32), series(pl.Int64), "signed", pl.Int32),
        (series(pl.UInt8), series(pl.UInt8), "signed", pl.UInt8),
        (series(pl.Int32), series(pl.UInt64), "unsigned", pl.Int32),
        (series(pl.UInt64), series(pl.Int8), "unsigned", pl.UInt64),
        (None, series(pl.UInt64), "unsigned", pl.UInt64),
        (None, series(pl.Int16), "signed", pl.Int16),
        (["a"], series(pl.Categorical, ["a"]), "string", pl.String),
        ([b"a"], [b"a"], "binary", pl.Binary),
        (series(pl.Null, [None]), ["a"], "string", pl.String),
        (series(pl.Null, [None]), series(pl.Int8), "signed", pl.Int8),
        (None, series(pl.Null, [None]), "string", pl.String),
        (series(pl.Int128), series(pl.Int64), "signed", pl.Int64),
    ],
)
def test_one_kind_for_all_ids_of_a_type(ids, ends, kind, dtype):
    table = simple(ids, ends).vertices["v"]
    assert (table.kind, table.dtype) == (kind, dtype)
    assert (table.reader is None) == (ids is None)


def test_ids_that_relations_add_widen_the_type():
    ids, ends = series(pl.Int32), series(pl.Int64)
    assert simple(ids, ends, missing="add").vertices["v"].dtype == pl.Int64


def test_as_string_and_as_int_bring_ids_together():
    key = {"column": "id", "as": "string"}
    ends = {"source": AS_TEXT, "target": AS_TEXT | {"column": "t"}}
    table = simple([1, 2], ["1", "2"], id=key).vertices["v"]
    assert (table.kind, table.dtype) == ("string", pl.String)
    table = simple(series(pl.Date), series(pl.Date), id=key, **ends).vertices["v"]
    assert table.kind == "string"
    whole = {name: each | {"as": "int"} for name, each in ends.items()}
    table = simple([1, 2], ["1", "2"], **whole).vertices["v"]
    assert (table.kind, table.dtype) == ("signed", pl.Int64)
    assert simple(None, ["1", "2"], **whole).vertices["v"].dtype == pl.Int64


@pytest.mark.parametrize(
    ("ids", "ends", "said"),
    [
        ([1], ["a"], r"ids of 'v' differ in type: column 'id' of vertices\.v \(data frame\) \(vertices\.v\.id\) is "
         r"Int64, but column 's' of relations\.r.* is String\. Say `as: string` at vertices\.v\.id, or, .*`as: int` at "
         r"relations\.r\.source: `\{column: s, as: int\}`"),
        (["a"], [b"a"], "is String, but .* is Binary. Say `as: string` at each"),
        ([1.5], [1], r"vertices\.v\.id: column 'id' .* is Float64\. Such numbers are not exact"),
        ([1], [1.5], r"relations\.r\.source: .*Float64"),
        ([1], series(pl.Date), r"relations\.r\.source: .*is Date\. Ids are .*`\{v: \{column: s, as: string\}\}`"),
        (series(pl.Date), [1], r"is Date\. Ids are .*`\{id: \{column: id, as: string\}\}`"),
        ([True], [True], "is Boolean.*as: string"),
        (series(pl.Date), series(pl.Date), "is Date.*as: string"),
        (series(pl.Datetime), [1], "is Datetime.*as: string"),
        (series(pl.Decimal(9, 2)), [1], r"is Decimal.*as: string"),
        ([[1]], [1], r"is List\(Int64\), which is no id\. Name a column"),
        ([{"a": 1}], [1], "which is no id"),
    ],
)  # fmt: skip
def test_ids_refused(ids, ends, said):
    with pytest.raises(GraphFormatError, match=said):
        simple(ids, ends)


def test_floats_are_never_ids():
    with pytest.raises(GraphFormatError, match="not exact"):
        simple([1.5], ["a"], id={"column": "id", "as": "string"})


def test_files_of_one_table_may_differ_in_the_width_of_integers_only(tmp_path):
    for name, ids in (("a", series(pl.Int32)), ("b", series(pl.Int64)), ("c", pl.Series(["x", "y"]))):
        pl.DataFrame({"z": ids, "id": ids, "s": ids, "t": ids}).write_parquet(tmp_path / f"{name}.parquet")
    table = simple(str(tmp_path / "[ab].parquet"), [1]).vertices["v"]
    assert (table.kind, table.dtype) == ("signed", pl.Int64)
    with pytest.raises(
        GraphFormatError,
        match=r"column 'id' of \S*b\.parquet .*Int64, but .*'id' of \S*c\.parquet .*String|a\.parquet .*c\.parquet",
    ):
        simple(str(tmp_path / "*.parquet"), [1])
    with pytest.raises(
        GraphFormatError, match=r"relations\.r\.target\) is Int64, but|relations\.r\.source.*c\.parquet"
    ):
        simple(None, str(tmp_path / "*.parquet"))


def test_extra_columns_and_their_order_do_not_matter(tmp_path):
    pl.DataFrame({"id": ["x"]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"z": [1], "id": ["y"]}).write_parquet(tmp_path / "b.parquet")
    table = simple(str(tmp_path / "*.parquet"), ["x"]).vertices["v"]
    assert [batch["id"].to_list() for n in (0, 1) for batch in table.reader.batches(n, ["id"])] == [
        ["x"],
        ["y"],
    ]


def test_text_ids_are_text(tmp_path):
    (tmp_path / "t.csv").write_text("id\n007\n7\n")
    with pytest.raises(GraphFormatError, match="as: int"):
        simple(str(tmp_path / "t.csv"), [7])
    assert (
        simple(str(tmp_path / "t.csv"), [7], id={"column": "id", "as": "int"}).vertices["v"].kind == "signed"
    )


# Columns that are missing.


def test_missing_columns_are_named_with_those_of_the_file(tmp_path):
    pl.DataFrame({"id": [1], "name": [2]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"other": [1], "name": [2]}).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(
        GraphFormatError,
        match=r"vertices\.v\.id: \S*b\.parquet has no column 'id'\. Its columns are 'other', 'name'",
    ):
        simple(str(tmp_path / "*.parquet"), [1])
    with pytest.raises(GraphFormatError, match=r"has no column 'nam'.*Did you mean 'name'\?"):
        simple(str(tmp_path / "a.parquet"), [1], id="nam")


def test_a_wrong_separator_is_guessed(tmp_path):
    (tmp_path / "t.csv").write_text("id;n\n1;2\n")
    with pytest.raises(
        GraphFormatError, match=r"Its only column is 'id;n'.*`format: \{csv: \{separator: \";\"\}\}`"
    ):
        simple(str(tmp_path / "t.csv"), [1])


TABLE = pl.DataFrame(
    {
        "id": [1, 2],
        "x": [0.5, 1.5],
        "f_1": [1, 2],
        "f_2": [True, False],
        "f_id": [1, 2],
        "list": [[1.0], [2.0]],
        "array": pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.Int8, 2)),
        "names": [["a"], ["b"]],
        "text": ["train", "val"],
        "bytes": [b"a", b"b"],
        "date": series(pl.Date),
        "stamp": series(pl.Datetime),
        "duration": series(pl.Duration),
        "null": series(pl.Null, [None, None]),
    }
)


@pytest.mark.parametrize(
    "keys",
    [
        {"label": "text"},
        {"label": "f_1"},
        {"label": "x"},
        {"label": "list"},
        {"time": "date"},
        {"time": "stamp"},
        {"time": "f_1"},
        {"split": "text"},
        {"split": {"by": "time", "train": 0.5, "test": 0.5}, "time": "date"},
        {"features": ["x", "list", "array", "null"]},
        {"features": [{"column": "text", "as": "category"}]},
    ],
)
def test_columns_of_use(keys):
    table = simple(TABLE, [1], vertices=keys).vertices["v"]
    assert len(table.features) == len(keys.get("features", []))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"label": "date"}, r"vertices\.v\.label: column 'date' .* is Date\. Expected classes"),
        ({"label": "bytes"}, "label: .*is Binary"),
        ({"time": "x"}, r"vertices\.v\.time: .* is Float64\. Expected whole numbers, dates or time stamps"),
        ({"time": "duration"}, "time: .*is Duration"),
        ({"split": "f_1"}, r"vertices\.v\.split: .*is Int64\. Expected text: train, val or test"),
        ({"features": ["text"]}, r"features\[0\]: .*is String.*`\{column: text, as: onehot\}`"),
        ({"features": ["x", "names"]}, r"features\[1\]: .*List\(String\)"),
        ({"features": ["date"]}, "is Date"),
        ({"features": [{"column": "x", "as": "category"}]}, "is Float64. Expected categories"),
        ({"features": ["g_*"]}, r"no column of .* matches 'g_\*'\. Its columns are 'id'"),
        ({"features": ["f_1", "f_1"]}, r"features\[1\]: the column 'f_1' is there twice"),
        ({"features": [{"column": "x", "fill": "a"}]}, "fill: 'a' is no number"),
        (
            {"features": [{"column": "text", "as": "category", "standardise": True}]},
            "categories have no mean",
        ),
        ({"features": ["none"]}, "has no column 'none'"),
        ({"label": "none"}, r"vertices\.v\.label: .*no column 'none'"),
    ],
)
def test_columns_of_no_use(keys, said):
    with pytest.raises(GraphFormatError, match=said):
        simple(TABLE, [1], vertices=keys)


def test_globs_of_features_leave_out_columns_of_another_use():
    table = simple(TABLE.rename({"id": "f_x"}), [1], id="f_x", vertices={"features": ["f_*"], "label": "f_1"})
    assert [column.column for column in table.vertices["v"].features] == ["f_2", "f_id"]


def test_lists_of_several_widths(tmp_path):
    for width in (2, 3):
        pl.DataFrame(
            {"id": [width], "a": pl.Series([[0] * width], dtype=pl.Array(pl.Int8, width))}
        ).write_parquet(tmp_path / f"{width}.parquet")
    with pytest.raises(GraphFormatError, match=r"column 'a' has lists of \['2', '3'\] numbers"):
        simple(str(tmp_path), [1], vertices={"features": ["a"]})


def test_records():
    frame = pl.DataFrame({"s": [1], "t": [2], "w": ["a"], "d": [b"x"]})
    with pytest.raises(
        GraphFormatError, match=r"relations\.r\.weight: column 'w' .* is String\. Expected numbers"
    ):
        simple(None, frame, weight="w")
    with pytest.raises(GraphFormatError, match="source and target are the same column, 's'"):
        simple(None, frame, target="s")
    with pytest.raises(GraphFormatError, match=r"relations\.r\.target: .* has no column 'u'"):
        simple(None, frame, target="u")
    with pytest.raises(GraphFormatError, match=r"relations\.r\.time: .*Binary"):
        simple(None, frame, time="d")


def test_text_tables_may_hold_numbers_and_times(tmp_path):
    (tmp_path / "t.csv").write_text("id,x,y\n1,2,3\n")
    keys = {"features": ["x", {"column": "y", "standardise": True}], "time": "y"}
    assert len(simple(str(tmp_path / "t.csv"), ["1"], vertices=keys).vertices["v"].features) == 2


def test_too_many_vertices(monkeypatch):
    monkeypatch.setattr(catalogs, "LARGEST", 3)
    frame = pl.DataFrame({"id": [1, 2]})
    relation = {"files": pl.DataFrame({"s": [1], "t": [1]}), "source": {"a": "s"}, "target": {"b": "t"}}
    entries = {"a": {"files": frame, "id": "id"}, "b": {"files": frame, "id": "id"}}
    with pytest.raises(CapacityError, match=r"vertices\.b: 2 rows, and 4 in all types"):
        opened(entries, {"r": relation})
    entries["b"]["duplicates"] = "first"
    assert len(opened(entries, {"r": relation}).vertices) == 2


def test_types_and_relations_are_sorted():
    frame = pl.DataFrame({"s": [1], "t": [1]})
    relation = {"files": frame, "source": {"b": "s"}, "target": {"a": "t"}}
    found = opened({"b": {}, "a": {}}, {"z": relation, "y": relation})
    assert list(found.vertices) == ["a", "b"]
    assert list(found.relations) == ["y", "z"]
    assert (found.relations["y"].source, found.relations["y"].target) == ("b", "a")
    assert found.relations["y"].columns == ("s", "t")


# Triples.


def triples(frame, nulls="error", **others):
    star = {"files": frame, "relation": "p", "source": {"e": "h"}, "target": {"e": "t"}, "nulls": nulls}
    return opened({"e": {}}, {"*": star} | others)


def rows_of(table):
    batches = [
        batch for n in range(len(table.reader.files)) for batch in table.reader.batches(n, table.columns)
    ]
    return [row for batch in batches for row in batch.rows()]


@examples(10)
@given(
    in_memory=st.sampled_from([1, 4, 1 << 21]),
    cut=st.integers(0, 9),
    rows=st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from(["a", "b/c", "b c", ".d", "é"]), st.integers(0, 9)),
        min_size=1,
    ),
)
def test_each_name_is_a_relation(tmp_path_factory, in_memory, cut, rows):
    frame = pl.DataFrame(rows, schema=["h", "p", "t"], orient="row")
    folder = tmp_path_factory.mktemp("t")
    cut = min(cut, len(rows))
    frame[:cut].write_parquet(folder / "a.parquet")
    frame[cut:].write_parquet(folder / "b.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fastpart.graphs.ingest.catalog.triples._ROWS", in_memory)
        found = triples(str(folder))
    assert list(found.relations) == sorted(found.relations)
    assert {table.value for table in found.relations.values()} == {p for _, p, _ in rows}
    for name, table in found.relations.items():
        assert table.name == name
        expected = [(h, t) for h, p, t in rows if p == table.value]
        assert rows_of(table) == expected
        assert table.reader.rows == len(expected)
        half = len(expected) // 2
        ids = pl.concat(table.reader.ids(0, table.columns, ["signed", "string"], half))
        assert ids.rows() == [(h, str(t)) for h, t in expected[half:]]
        where = [number for number, (_, p, _) in enumerate(rows) if p == table.value][half]
        file, row = ("a", where) if where < cut else ("b", where - cut)
        assert table.reader.place(0, half) == f"{folder / file}.parquet: row {row}"


def test_names_of_relations_become_folders(caplog):
    caplog.set_level(logging.INFO, "fastpart")
    values = ["/film/genre", "film_genre", "film genre", "x" * 70, "x" * 71, "...", "7"]
    frame = pl.DataFrame({"h": [1] * 7, "p": values, "t": [2] * 7})
    names = {table.value: name for name, table in triples(frame).relations.items()}
    assert names["film_genre"] == "film_genre"
    assert names["7"] == "7"
    assert {names["/film/genre"], names["film genre"]} == {"_film_genre", "film_genre-2"}
    assert names["..."] == "_"
    assert len({*names.values()}) == 7
    assert all(len(name) <= 64 for name in names.values())
    assert "'film genre' is film_genre-2" in caplog.text
    shuffled = triples(frame.reverse()).relations
    assert {table.value: name for name, table in shuffled.items()} == names


def test_triples_of_several_files(tmp_path):
    for name, values in (("a", ["x", "y"]), ("b", ["y"])):
        pl.DataFrame({"h": [f"{name}{v}" for v in values], "p": values, "t": values}).write_parquet(
            tmp_path / f"{name}.parquet"
        )
    found = triples(str(tmp_path)).relations
    assert rows_of(found["x"]) == [("ax", "x")]
    assert rows_of(found["y"]) == [("ay", "y"), ("by", "y")]
    assert found["y"].reader.place(0, 1) == f"{tmp_path / 'b.parquet'}: row 0"
    before = found["x"].reader.files[0].mark
    (tmp_path / "b.parquet").touch()
    assert triples(str(tmp_path)).relations["x"].reader.files[0].mark != before
    (tmp_path / "c.csv").write_text("h,p,t\nq,y,y\n1,,y\n")
    with pytest.raises(GraphFormatError, match=r"c\.csv: line 3: column 'p' names no relation.*nulls: drop"):
        triples(str(tmp_path))
    assert rows_of(triples(str(tmp_path), "drop").relations["y"])[-1] == ("q", "y")


def test_types_of_triples_meet(tmp_path):
    for name, dtype in (("a", pl.Int32), ("b", pl.Int64), ("c", pl.String)):
        ids = series(dtype)
        pl.DataFrame({"h": ids, "p": ["x", "y"], "t": ids}).write_parquet(tmp_path / f"{name}.parquet")
    assert rows_of(triples(str(tmp_path / "[ab].parquet")).relations["x"]) == [(1, 1), (1, 1)]
    with pytest.raises(GraphFormatError, match=r"'h' is Int32 in \S*a\.parquet, but String in \S*c\.parquet"):
        triples(str(tmp_path / "[ac].parquet"))


def test_triples_refused(monkeypatch):
    frame = pl.DataFrame({"h": [1, 2], "p": ["a", "b"], "t": [2, 2]})
    other = {"files": frame, "source": {"e": "h"}, "target": {"e": "t"}}
    with pytest.raises(GraphFormatError, match="its relation 'b' is called 'b', as another entry is"):
        triples(frame, b=other)
    with pytest.raises(GraphFormatError, match="has no value"):
        triples(frame.clear())
    with pytest.raises(GraphFormatError, match=r"relations\.\*\.relation: .*Float64"):
        triples(frame.with_columns(p=0.5))
    monkeypatch.setattr("fastpart.graphs.ingest.catalog.triples.MOST", 1)
    with pytest.raises(CapacityError, match="column 'p' has 2 values"):
        triples(frame)


def test_tables_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        simple(None, [1]).root = "x"


def test_copies_of_triples_hold_what_is_of_use_and_go_with_the_catalog(tmp_path):
    frame = pl.DataFrame(
        {"h": [1, 2, 3], "p": ["a", "b", "a"], "t": [2, 2, 2], "w": [0.5, 1.5, 2.5], "x": [b"x"] * 3}
    )
    star = {"files": frame, "relation": "p", "source": {"e": "h"}, "target": {"e": "t"}, "weight": "w"}
    schema, root = read_schema({"vertices": {"e": {}}, "relations": {"*": star}})
    found = open_catalog(schema, root, run_options(tmp_dir=tmp_path))
    (folder,) = tmp_path.iterdir()
    assert len(list(folder.iterdir())) == 1
    assert pl.concat(found.relations["a"].reader.batches(0, ["w"], 1))["w"].to_list() == [2.5]
    del found
    assert not list(tmp_path.iterdir())
