"""A check lists all that an ingest would refuse, and nothing where it runs."""

import json
import os
from datetime import date

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.cli import main
from fastpart.graphs.ingest import ingest
from ingest_tables import small
from soaked import diagonal, examples

N = 3
"""Planted faults of each kind."""

IDS = [f"u{number}" for number in range(12)]


def people(**columns):
    plain = {
        "id": IDS,
        "age": [float(number) for number in range(12)],
        "country": ["DE", "AT"] * 6,
        "vector": [[0.5, 1.0]] * 12,
        "since": [*range(12)],
        "signup": [date(2020, 1, 1)] * 12,
        "fold": ["train", "val", "test"] * 4,
        "kinds": [[0, 1]] * 12,
    }
    return pl.DataFrame(plain | columns, strict=False)


WHOLE = people()
DAYS = ["2020-01-01"] * 6


def goods(ids=("0", "1", "2", "3", "4", "5"), price=("0.5",) * 6, added=DAYS):
    rows = zip(ids, price, added, strict=True)
    return "id,price,added\n" + "".join(f"{','.join(row)}\n" for row in rows)


def sales(**columns):
    plain = {"user": IDS, "item": [number % 6 for number in range(12)], "weight": [1.0] * 12}
    return pl.DataFrame(plain | columns, strict=False)


def lake(folder, users=None, items=None, bought=None, user=(), relation=()):
    """Write three tables, and return their schema."""
    folder.mkdir(exist_ok=True)
    (WHOLE if users is None else users).write_parquet(folder / "users.parquet")
    (folder / "items.csv").write_text(goods() if items is None else items)
    (sales() if bought is None else bought).write_parquet(folder / "bought.parquet")
    features = ["age", {"column": "country", "as": "onehot"}, "vector", {"column": "signup", "as": "days"}]
    return {
        "root": str(folder),
        "vertices": {
            "user": {"files": "users.parquet", "id": "id", "features": features, "time": "since"}
            | {"label": "kinds", "split": "fold"}
            | dict(user),
            "item": {"files": "items.csv", "id": {"column": "id", "as": "int"}, "features": ["price"]}
            | {"time": "added"},
        },
        "relations": {
            "bought": {"files": "bought.parquet", "source": {"user": "user"}, "target": {"item": "item"}}
            | {"weight": "weight"}
            | dict(relation)
        },
    }


def put(values, wrong, at=(2, 5, 7)):
    """Return values with a wrong one at some places."""
    return [wrong if place in at else value for place, value in enumerate(values)]


FAULTS = {
    # the planted lake, file, column, rows, what the message says, and the lake once it is mended
    "null ids of vertices": (
        {"users": people(id=put(IDS, None)), "relation": {"missing": "drop"}},
        ("users.parquet", "id", ["row 2", "row 5", "row 7"], "the id is null"),
        {},
    ),
    "ids that come twice": (
        {"users": people(id=put(IDS, "u0")), "relation": {"missing": "drop"}},
        ("users.parquet", "id", ["row 2", "row 5", "row 7"], "duplicates: first"),
        {
            "users": people(id=put(IDS, "u0")),
            "user": {"duplicates": "first"},
            "relation": {"missing": "drop"},
        },
    ),
    "ids that are no numbers": (
        {"items": goods(ids=["0", "1", "2", "x", "y", "z"]), "relation": {"missing": "drop"}},
        ("items.csv", "id", ["line 5", "line 6", "line 7"], "is not a whole number"),
        {},
    ),
    "missing numbers": (
        {"users": people(age=put(WHOLE["age"], None))},
        ("users.parquet", "age", ["row 2", "row 5", "row 7"], "{column: age, fill: 0}"),
        {"users": people(age=put(WHOLE["age"], None)), "fill": ("age", {"column": "age", "fill": 0})},
    ),
    "missing categories": (
        {"users": people(country=put(WHOLE["country"], None))},
        (
            "users.parquet",
            "country",
            ["row 2", "row 5", "row 7"],
            "{column: country, as: onehot, fill: unknown}",
        ),
        {
            "users": people(country=put(WHOLE["country"], None)),
            "fill": ("country", {"column": "country", "as": "onehot", "fill": "unknown"}),
        },
    ),
    "missing dates": (
        {"users": people(signup=put(WHOLE["signup"], None))},
        ("users.parquet", "signup", ["row 2", "row 5", "row 7"], "{column: signup, as: days, fill: 0}"),
        {
            "users": people(signup=put(WHOLE["signup"], None)),
            "fill": ("signup", {"column": "signup", "as": "days", "fill": 0}),
        },
    ),
    "lists of other lengths": (
        {"users": people(vector=put([[0.5, 1.0]] * 12, [0.5]))},
        ("users.parquet", "vector", ["row 2", "row 5", "row 7"], "a list of 1, where others hold 2"),
        {},
    ),
    "times": (
        {"items": goods(added=put(DAYS, "soon", (0, 2, 3)))},
        ("items.csv", "added", ["line 2", "line 4", "line 5"], "'soon' is no time"),
        {},
    ),
    "splits": (
        {"users": people(fold=put(WHOLE["fold"], "dev"))},
        ("users.parquet", "fold", ["row 2", "row 5", "row 7"], "'dev' is no split"),
        {},
    ),
    "labels": (
        {"users": people(kinds=put([[0, 1]] * 12, [0, 2]))},
        ("users.parquet", "kinds", ["row 2", "row 5", "row 7"], "other numbers than 0 and 1"),
        {},
    ),
    "text among numbers": (
        {"items": goods(price=["1", "2", "x", "y", "5", "z"])},
        ("items.csv", "price", ["line 4", "line 5", "line 7"], "'x' is no number"),
        {},
    ),
    "null ids of records": (
        {"bought": sales(user=put(IDS, None))},
        ("bought.parquet", "user", ["row 2", "row 5", "row 7"], "an id is null"),
        {"bought": sales(user=put(IDS, None)), "relation": {"nulls": "drop"}},
    ),
    "unknown ids": (
        {"bought": sales(item=put([1] * 12, 77))},
        ("bought.parquet", "item", ["row 2", "row 5", "row 7"], "'item' is 77, which is no id of 'item'"),
        {"bought": sales(item=put([1] * 12, 77)), "relation": {"missing": "drop"}},
    ),
    "weights": (
        {"bought": sales(weight=put([1.0] * 12, -1.0))},
        ("bought.parquet", "weight", ["row 2", "row 5", "row 7"], "the weight -1.0 is not a finite number"),
        {},
    ),
}


def schema_of(folder, fill=None, **tables):
    schema = lake(folder, **tables)
    if fill is not None:
        name, column = fill
        features = schema["vertices"]["user"]["features"]
        names = [each if isinstance(each, str) else each["column"] for each in features]
        features[names.index(name)] = column
    return schema


@pytest.mark.parametrize(("kind", "units"), diagonal(FAULTS, [None, 4]))
def test_faults_of_a_kind_are_all_listed_and_mended(tmp_path, kind, units):
    planted, (file, column, rows, text), mended = FAULTS[kind]
    schema = schema_of(tmp_path / "lake", **planted)
    with pytest.raises(fp.FastpartError):
        ingest(schema, tmp_path / "graph")
    with small(units):
        (found,) = ingest(schema, check=True)
    assert (found.where, found.column) == (str(tmp_path / "lake" / file), column)
    assert (found.count, found.rows) == (N, rows)
    assert text in found.text
    assert rows[0] in found.text or kind == "ids that come twice"
    schema = schema_of(tmp_path / "lake", **mended)
    assert len(ingest(schema, check=True)) == 0
    assert ingest(schema, tmp_path / "graph").num_vertices


def test_faults_of_all_kinds_are_listed_at_once(tmp_path):
    tables = {"users": {}, "bought": {}}
    for planted, (file, column, _, _), _ in FAULTS.values():
        name = file.partition(".")[0]
        if name in tables and name in planted:
            tables[name].setdefault(column, planted[name][column].to_list())
    ids = ["0", "1", "2", "x", "y", "z"]
    schema = lake(
        tmp_path / "lake",
        people(**tables["users"]),
        goods(ids, ["1", "2", "x", "y", "5", "z"], put(DAYS, "soon", (0, 2, 3))),
        sales(**tables["bought"]),
    )
    found = ingest(schema, check=True)
    columns = {(each.where.rpartition("/")[2], each.column) for each in found}
    assert columns == {(file, column) for _, (file, column, _, _), _ in FAULTS.values()}
    for _, (file, column, rows, _), _ in FAULTS.values():
        if column not in ("id", "user", "item"):  # the ids of one fault are unknown for another
            (mine,) = (each for each in found if each.where.endswith(file) and each.column == column)
            assert mine.rows == rows


def test_a_table_that_cannot_be_used_hides_no_other_problem(tmp_path):
    schema = lake(tmp_path / "lake", bought=sales(weight=put([1.0] * 12, None)), user={"label": "topic"})
    schema["vertices"]["user"]["features"] += ["bio", {"column": "since", "as": "days", "dim": 3}]
    schema["vertices"]["shop"] = {"files": "shops/*.parquet", "id": "id"}
    schema["relations"]["sells"] = {
        "files": "bought.parquet",
        "source": {"shop": "shp"},
        "target": {"item": "itm"},
    }
    (tmp_path / "lake" / "bad.parquet").write_text("no")
    schema["vertices"]["item"]["files"] = ["items.csv", "bad.parquet"]
    texts = [each.text for each in ingest(schema, check=True)]
    assert len(texts) == 8, texts
    for said in (
        "vertices.user.label: ",
        "users.parquet has no column 'bio'",
        "features[5].dim: it is for `as: embedding`",
        "no file matches the glob",
        "relations.sells.source: ",
        "relations.sells.target: ",
        "bad.parquet: not a Parquet file",
        "the weight is missing",
    ):
        assert sum(said in text for text in texts) == 1, said


def test_ids_of_two_kinds_hide_no_other_problem(tmp_path):
    schema = lake(tmp_path / "lake", people(age=put(WHOLE["age"], None)), bought=sales(user=[*range(12)]))
    one, other = ingest(schema, check=True)
    assert "ids of 'user' differ in type" in one.text
    assert (other.column, other.count) == ("age", N)


def test_dates_as_ids_are_listed_wherever_they_are(tmp_path):
    days = [date(2020, 1, 1 + number) for number in range(12)]
    schema = lake(tmp_path / "lake", people(id=days), bought=sales(user=days))
    found = ingest(schema, check=True)
    assert [each.where.rpartition("/")[2] for each in found] == ["users.parquet", "bought.parquet"]
    schema["vertices"]["user"]["id"] = {"column": "id", "as": "string"}
    schema["relations"]["bought"]["source"] = {"user": {"column": "user", "as": "string"}}
    assert len(ingest(schema, check=True)) == 0


def test_relations_that_a_column_names(tmp_path):
    table = sales(kind=["a", "b"] * 6, weight=put([1.0] * 12, -1.0), user=put(IDS, "zz", (3,)))
    table = table.with_columns(kind=pl.Series(put(table["kind"], None, (4,))))
    schema = lake(tmp_path / "lake", bought=table)
    schema["relations"]["*"] = {**schema["relations"].pop("bought"), "relation": "kind"}
    found = [(each.column, each.rows) for each in ingest(schema, check=True)]
    assert sorted(found) == [
        ("kind", ["row 4"]),
        ("user", ["row 3"]),
        ("weight", ["row 2"]),
        ("weight", ["row 5", "row 7"]),
    ]


def test_what_only_whole_columns_tell(tmp_path):
    schema = lake(tmp_path / "lake", bought=sales(weight=[0.0] * 12))
    (found,) = ingest(schema, check=True)
    assert "all weights are 0" in found.text
    schema = lake(tmp_path / "lake", people(fold=["val"] * 12))
    schema["vertices"]["user"]["features"] = [{"column": "age", "standardise": True}]
    (found,) = ingest(schema, check=True)
    assert "standardise: there are no rows" in found.text


def test_rows_that_the_schema_drops_are_not_checked(tmp_path):
    first = put(IDS, "u0")
    table = people(id=first, age=put(WHOLE["age"], None))
    records = sales(
        user=put(IDS, None, (1,)), item=put([1] * 12, 77, (2,)), weight=put([1.0] * 12, -1.0, (1, 2, 3))
    )
    drops = {"nulls": "drop", "missing": "drop"}
    schema = lake(tmp_path / "lake", table, bought=records, user={"duplicates": "first"}, relation=drops)
    (found,) = ingest(schema, check=True)
    assert (found.column, found.rows) == ("weight", ["row 3"])


def test_values_of_records_that_are_refused_are_checked_too(tmp_path):
    records = sales(
        user=put(IDS, None, (1,)), item=put([1] * 12, 77, (2,)), weight=put([1.0] * 12, -1.0, (1, 2, 3))
    )
    schema = lake(tmp_path / "lake", bought=records, relation={"missing": "drop"})
    found = [(each.column, each.rows) for each in ingest(schema, check=True)]
    assert found == [("user", ["row 1"]), ("weight", ["row 1", "row 3"])]


def test_many_rows_are_counted_and_the_first_ones_listed(tmp_path):
    ids = [f"{number:03}" for number in range(100)]
    columns = {**{name: [WHOLE[name][0]] * 100 for name in WHOLE.columns[1:]}}
    table = pl.DataFrame({"id": ids} | columns | {"fold": ["dev"] * 100})
    (found,) = ingest(lake(tmp_path / "lake", table, bought=sales(user=ids[:12])), check=True)
    assert (found.count, len(found.rows), found.rows[19]) == (100, 20, "row 19")
    assert "(100 rows: row 0, row 1, " in str(found)
    assert str(found).endswith("row 19, ...)")


def test_the_frame(tmp_path):
    schema = lake(tmp_path / "lake", people(age=put(WHOLE["age"], None)))
    found = ingest(schema, check=True)
    (row,) = found.to_frame().to_dicts()
    assert (row["column"], row["count"], row["rows"]) == ("age", N, ["row 2", "row 5", "row 7"])
    assert row["remedy"] == "Say in the schema what stands for it: {column: age, fill: 0}"
    assert ingest(lake(tmp_path / "lake"), check=True).to_frame().height == 0
    assert str(ingest(lake(tmp_path / "lake"), check=True)) == "0 problems"


def test_nothing_is_written(tmp_path):
    schema = lake(tmp_path / "lake", people(age=put(WHOLE["age"], None)))
    (tmp_path / "tmp").mkdir()
    before = sorted(tmp_path.rglob("*"))
    ingest(schema, check=True, tmp_dir=tmp_path / "tmp")
    assert sorted(tmp_path.rglob("*")) == before
    for name, value in (("out", "x"), ("restart", True), ("overwrite", True), ("shards", 2)):
        with pytest.raises(fp.errors.ParameterError, match=f"{name}: a check writes nothing"):
            ingest(schema, check=True, **{name: value})
    with pytest.raises(fp.errors.ParameterError, match="out: name the folder"):
        ingest(schema)


def test_the_verb(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    schema = lake(tmp_path / "lake", people(age=put(WHOLE["age"], None)))
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    assert main(["ingest", "schema.json", "--check"]) == 1
    out, error = capsys.readouterr()
    assert "users.parquet: row 2, column 'age': the value is missing" in out
    assert "(3 rows: row 2, row 5, row 7)" in out
    assert "schema.json: 1 problem" in error
    assert main(["ingest", "schema.json", "--check", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["problems"][0]["count"] == N
    lake(tmp_path / "lake")
    assert main(["ingest", "schema.json", "--check"]) == 0
    assert capsys.readouterr().out == "0 problems\n"
    assert sorted(os.listdir(tmp_path)) == ["lake", "schema.json"]


@st.composite
def lakes(draw):
    rows = draw(st.integers(0, 5))
    many = draw(st.integers(0, 5))

    def column(size, right, *wrong):
        of = st.sampled_from(right if draw(st.integers(0, 5)) else [*right, *wrong])
        return draw(st.lists(of, min_size=size, max_size=size))

    ids = (
        column(rows, ["a", "b", "c", "d"], None) if draw(st.booleans()) else ["a", "b", "c", "d", "e"][:rows]
    )
    table = pl.DataFrame(
        {
            "id": ids,
            "age": column(rows, [1.0, 2.0], None),
            "kind": column(rows, ["x", "y"], None),
            "vector": column(rows, [[1.0, 2.0]], [1.0], None, [None, 1.0]),
            "fold": column(rows, ["train", "val", None], "dev"),
            "since": column(rows, [1.0, 2.0, None], 1.5),
            "label": column(rows, [0, 1, None]),
        },
        {
            "id": pl.String,
            "age": pl.Float64,
            "kind": pl.String,
            "vector": pl.List(pl.Float64),
            "fold": pl.String,
            "since": pl.Float64,
            "label": pl.Int64,
        },
    )
    records = pl.DataFrame(
        {
            "s": column(many, ["a", "b"], "zz", None),
            "t": column(many, ["1", "2"], "x", None, "9"),
            "w": column(many, [1.0, 2.0, 0.0], None, -1.0),
        },
        {"s": pl.String, "t": pl.String, "w": pl.Float64},
    )
    features = draw(
        st.sampled_from(
            [
                [],
                ["age"],
                ["age", {"column": "kind", "as": "onehot"}, "vector"],
                [{"column": "age", "fill": 0, "standardise": True}, {"column": "kind", "as": "embedding"}],
                ["age", "nope"],
            ]
        )
    )
    user = {"id": "id", "features": features, "duplicates": draw(st.sampled_from(["error", "first"]))}
    for use, name in (("split", "fold"), ("time", "since"), ("label", "label")):
        if draw(st.booleans()):
            user[use] = name
    if "time" in user and draw(st.booleans()):
        user["split"] = {"by": "time", "train": 0.5}
    relation = {
        "source": {"user": "s"},
        "target": {"item": draw(st.sampled_from(["t", {"column": "t", "as": "int"}]))},
        "missing": draw(st.sampled_from(["error", "drop", "add"])),
        "nulls": draw(st.sampled_from(["error", "drop"])),
    }
    if draw(st.booleans()):
        relation["weight"] = "w"
    text = goods(["1", "2"], column(2, ["1", "2"], "", "x"), column(2, ["2020-01-01"], "", "5", "soon"))
    key = {"column": "id", "as": "int"} if isinstance(relation["target"]["item"], dict) else "id"
    more = {
        name: value for name, value in {"features": ["price"], "time": "added"}.items() if draw(st.booleans())
    }
    item = draw(st.sampled_from([{}, {"files": "items.csv", "id": key} | more]))
    schema = {
        "vertices": {"user": {"files": table, **user}, "item": item},
        "relations": {"bought": {"files": records, **relation}},
    }
    return schema, text


@examples(60)
@given(lakes())
def test_a_check_has_no_problem_if_and_only_if_the_ingest_runs(tmp_path_factory, tables):
    schema, text = tables
    folder = tmp_path_factory.mktemp("check")
    (folder / "items.csv").write_text(text)
    schema["root"], out = str(folder), folder / "graph"
    try:
        ingest(schema, out)
        refusal = ""
    except fp.FastpartError as error:
        refusal = str(error)
    found = ingest(schema, check=True)
    assert bool(found) == bool(refusal), (refusal, str(found))
