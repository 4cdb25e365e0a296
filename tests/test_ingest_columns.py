"""Columns of tables as arrays: against an oracle of Polars, for any cut into files and any order of work."""

import json
import tempfile
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from column_tables import RATES, UNKNOWN, content, ingested, reader, records_of, simple, vertices_of
from fastpart.graphs.ingest import columns as module
from fastpart.graphs.ingest.columns import VertexColumns
from fastpart.graphs.ingest.columns.labels import SPLITS, split_by_time
from fastpart.graphs.ingest.columns.rows import LEFT_OUT
from fastpart.graphs.ingest.tables import TableFile, TableReader, open_table
from soaked import examples

ROWS = st.fixed_dictionaries(
    {
        "x": st.one_of(st.none(), st.floats(-9, 9, width=32)),
        "f_10": st.integers(-100, 100),
        "f_2": st.booleans(),
        "emb": st.one_of(st.none(), st.lists(st.integers(0, 9).map(float), min_size=2, max_size=2)),
        "country": st.one_of(st.none(), st.sampled_from(["DE", "AT", "é", ""])),
        "venue": st.one_of(st.none(), st.sampled_from(["KDD", "ICML", "é"])),
        "year": st.one_of(st.none(), st.integers(-3, 3)),
        "split": st.sampled_from([None, "train", "train", "val", "valid", "validation", "test"]),
    }
)
SCHEMA = {
    "x": pl.Float64,
    "f_10": pl.Int16,
    "f_2": pl.Boolean,
    "emb": pl.List(pl.Float32),
    "country": pl.Categorical,
    "venue": pl.String,
    "year": pl.Int32,
    "split": pl.String,
}
ENTRY = {
    "features": [
        {"column": "x", "fill": 2.5},
        {"column": "country", "as": "category", "fill": "??"},
        "f_*",
        {"column": "emb", "fill": -1},
    ],
    "label": "venue",
    "time": "year",
}


def oracle(frame, n):
    """Return features, labels and times of rows with a column of vertices."""
    rows = frame.join(pl.DataFrame({"v": np.arange(n, dtype=np.uint32)}), on="v", how="right").sort("v")
    countries = sorted(
        {*frame["country"].cast(pl.String).drop_nulls(), *["??"] * frame["country"].has_nulls()} | {"??"}
    )
    venues = sorted(set(frame["venue"].drop_nulls()))
    there = rows["v"].is_in(frame["v"].implode()).to_numpy()
    width = 2 if len(frame["emb"].drop_nulls()) else 1  # lists of unknown length are one number
    features = np.zeros((n, 4 + width), np.float32)
    features[:, 0] = rows["x"].fill_null(2.5)
    features[:, 1] = [
        countries.index(each or "??" if each != "" else "") for each in rows["country"].cast(pl.String)
    ]
    features[:, 2] = rows["f_2"].fill_null(False)
    features[:, 3] = rows["f_10"].fill_null(0)
    features[:, 4:] = np.array([each or [-1] * width for each in rows["emb"].to_list()]).reshape(n, width)
    labels = np.array([-1 if each is None else venues.index(each) for each in rows["venue"]], np.int64)
    times = rows["year"].cast(pl.Int64).fill_null(UNKNOWN).to_numpy()
    return features, labels, times, rows, there


@st.composite
def cases(draw):
    rows = draw(st.lists(ROWS, max_size=25))
    n = len(rows) + draw(st.integers(0, 3))
    vertices = np.array(draw(st.permutations(range(n)))[: len(rows)], np.uint32)
    frame = pl.DataFrame(rows, SCHEMA, orient="row").with_columns(v=vertices)
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=2)))
    bounds = list(zip([0, *cuts], [*cuts, len(rows)], strict=True))
    units = [(number, 0, b - a) for number, (a, b) in enumerate(bounds)]
    units = draw(st.permutations(units + draw(st.lists(st.sampled_from(units), max_size=2))))
    return frame, n, bounds, units


@examples(10)
@given(cases(), st.sampled_from(["split", "random", "time", None]))
def test_any_cut_and_order_gives_the_bytes_of_the_oracle(case, split):
    frame, n, bounds, units = case
    split = split if split in (None, "split") else {"by": split, **RATES}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = reader(folder, [frame])
        out, told = ingested(
            lambda: vertices_of(whole, n, split=split, **ENTRY), folder, whole, [frame["v"].to_numpy()]
        )
        cut = reader(folder, [frame[a:b] for a, b in bounds])
        again, _ = ingested(
            lambda: vertices_of(cut, n, split=split, **ENTRY),
            folder,
            cut,
            [frame["v"].to_numpy()[a:b] for a, b in bounds],
            units,
        )
        assert content(again) == content(out)
        features, labels, times, rows, there = oracle(frame, n)
        np.testing.assert_array_equal(np.load(out / "features.npy"), features)
        np.testing.assert_array_equal(np.load(out / "labels.npy"), labels)
        np.testing.assert_array_equal(np.load(out / "times.npy"), times)
        assert told["without_row"] == n - len(frame)
        assert told["labels"]["missing"] == int((labels == -1).sum())
        assert told["times"] == {"column": "year", "unit": "number", "missing": int((times == UNKNOWN).sum())}
        codes = json.loads((out / "categories.json").read_text())
        counts = dict(frame["venue"].drop_nulls().value_counts().iter_rows())
        assert codes["venue"] == {"values": sorted(counts), "counts": [counts[v] for v in sorted(counts)]}
        if split is None:
            assert not (out / "split.npz").exists()
            return
        ids = {**{key: [] for key in SPLITS}, **np.load(out / "split.npz")}
        if split == "split":
            for name, words in {
                "train": ["train"],
                "val": ["val", "valid", "validation"],
                "test": ["test"],
            }.items():
                assert list(ids[name]) == list(rows.filter(pl.col("split").is_in(words))["v"])
        elif split["by"] == "time":
            joined = np.concatenate([ids["train"], ids["val"], ids["test"]]).astype(int)
            assert sorted(joined) == list(np.flatnonzero((labels >= 0) & (times != UNKNOWN)))
        else:
            assert set(np.concatenate(list(ids.values()))) == set(np.flatnonzero(there & (labels >= 0)))


@examples(20)
@given(
    st.lists(st.one_of(st.none(), st.integers(-(2**63) + 1, 2**63 - 1), st.integers(0, 5)), max_size=60),
    st.tuples(*[st.integers(0, 10)] * 3).filter(lambda shares: sum(shares) <= 10),
)
def test_a_split_by_time_never_looks_ahead(values, shares):
    times = np.array([UNKNOWN if each is None else each for each in values], np.int64)
    states = np.ones(len(times), np.uint8)
    bounds = np.round(np.cumsum(shares) / 10, 9).tolist()
    split_by_time(states, times, lambda rows: np.ones(rows.stop - rows.start, bool), bounds)
    train, val, test, none = (times[states == state] for state in (2, 3, 4, 1))
    known = np.sort(times[times != UNKNOWN])
    later = [part for part in (train, val, test, none[none != UNKNOWN]) if len(part)]
    for before, after in pairwise(later):
        assert before.max() < after.min()
    assert sum(map(len, later)) == len(known)
    # The oracle: the split of the last of its time, by rank.
    ranks = np.searchsorted(known, known, side="right")
    expected = np.searchsorted(np.ceil(np.round(np.array(bounds) * len(known), 6)), ranks, side="left")
    assert [len(part) for part in (train, val, test)] == np.bincount(expected, minlength=4)[:3].tolist()


def test_rows_that_are_left_out_are_not_looked_at(tmp_path):
    frame = pl.DataFrame({"x": [1.0, None, 3.0], "split": ["train", "nonsense", "val"]})
    table = reader(tmp_path, [frame])
    vertices = [np.array([1, LEFT_OUT, 0], np.uint32)]
    out, _ = ingested(lambda: vertices_of(table, 2, features=["x"], split="split"), tmp_path, table, vertices)
    assert np.load(out / "features.npy").tolist() == [[3], [1]]
    assert sorted(each.name for each in out.iterdir()) == ["columns.json", "features.npy", "split.npz"]


@pytest.mark.parametrize("split", ["split", None])
def test_standardised_columns_have_mean_0_and_deviation_1_over_training_vertices(tmp_path, split):
    frame = pl.DataFrame(
        {"x": [1.0, 3.0, 5.0, 100.0], "y": [7, 8, 9, 10], "split": ["train", "train", "train", "test"]}
    )
    features = [{"column": "x", "standardise": True}, "y"]
    out, told = simple(tmp_path, frame, 5, features=features, split=split)
    found, chosen = np.load(out / "features.npy"), slice(0, 3 if split else 4)
    x = np.array(frame["x"])
    np.testing.assert_allclose(found[:4, 0], (x - x[chosen].mean()) / x[chosen].std(), rtol=1e-6)
    assert found[:, 1].tolist() == [7, 8, 9, 10, 0]
    assert found[4, 0] == 0  # without a row: the mean
    mean, deviation = np.load(out / "feature_statistics.npy")
    assert (mean[1], deviation[1]) == (0, 1)
    assert mean[0] == pytest.approx(x[chosen].mean())
    assert told["features"]["columns"][0] == {"column": "x", "first": 0, "width": 1, "standardised": True}


@pytest.mark.parametrize(
    ("dtype", "fill", "stored"),
    [
        (pl.Int8, 3, "int8"),
        (pl.Int8, 0.5, "float32"),
        ("Float16", 0.5, "float16"),
        ("Float16", 1e6, "float32"),
        (pl.UInt8, 0, "float32"),
        (pl.Decimal(9, 2), 0, "float32"),
    ],
)
def test_small_types_stay(tmp_path, dtype, fill, stored):
    if isinstance(dtype, str):
        dtype = getattr(pl, dtype, None) or pytest.skip(f"this Polars has no {dtype}")
    frame = pl.DataFrame(
        {"x": pl.Series([1, None], dtype=dtype), "a": pl.Series([[1], [2]], dtype=pl.Array(dtype, 1))}
    )
    out, told = simple(tmp_path, frame, features=[{"column": "x", "fill": fill}, "a"])
    found = np.load(out / "features.npy")
    assert (found.dtype.name, found.tolist()) == (stored, [[1, 1], [fill, 2]])
    assert told["features"]["columns"][0]["filled"] == 1


@pytest.mark.parametrize(
    ("values", "of", "stored"),
    [
        ([3, None, 7], {"of": "classes", "classes": 8, "missing": 1}, [3, -1, 7]),
        ([True, False, None], {"of": "classes", "classes": 2, "missing": 1}, [1, 0, -1]),
        (["b", None, "a"], {"of": "classes", "classes": 2, "missing": 1}, [1, -1, 0]),
        (["3", None, "7"], {"of": "classes", "classes": 8, "missing": 1}, [3, -1, 7]),
        (["007", "7", None], {"of": "classes", "classes": 2, "missing": 1}, [0, 1, -1]),
        (["0.5", None, "1"], {"of": "targets", "width": 1, "missing": 1}, [0.5, np.nan, 1]),
        ([0.5, None, 2.0], {"of": "targets", "width": 1, "missing": 1}, [0.5, np.nan, 2]),
        (
            [[1, 0], None, [1, 1]],
            {"of": "several classes", "classes": 2, "missing": 0},
            [[1, 0], [0, 0], [1, 1]],
        ),
        (
            [[0.5, 1], None, [2, 3]],
            {"of": "targets", "width": 2, "missing": 1},
            [[0.5, 1], [np.nan] * 2, [2, 3]],
        ),
    ],
)
def test_labels(tmp_path, values, of, stored):
    out, told = simple(tmp_path, pl.DataFrame({"y": values}), label="y")
    labels = np.load(out / "labels.npy")
    np.testing.assert_array_equal(labels, stored)
    assert told["labels"].items() >= of.items()
    assert told["labels"]["dtype"] == labels.dtype.name
    fp.spring(np.array([[0, 1], [1, 2]]), k=1).save(tmp_path / "parts", labels=out / "labels.npy")


def test_labels_of_text_in_one_file_and_of_numbers_in_another_are_names(tmp_path):
    table = reader(tmp_path, [pl.DataFrame({"y": ["1", "10"]}), pl.DataFrame({"y": ["b", None]})])
    parts = [np.array([0, 1], np.uint32), np.array([2, 3], np.uint32)]
    out, _ = ingested(lambda: vertices_of(table, 4, label="y"), tmp_path, table, parts)
    assert np.load(out / "labels.npy").tolist() == [0, 1, 2, -1]


STAMP = datetime(2024, 1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize(
    ("values", "unit", "stored"),
    [
        ([5, None], "number", 5),
        ([5.0, float("nan")], "number", 5),
        (["5", None], "number", 5),
        ([date(1970, 1, 3), None], "days since 1970-01-01", 2),
        (["1970-01-03", None], "days since 1970-01-01", 2),
        (
            [STAMP, None],
            "microseconds since 1970-01-01",
            int(STAMP.replace(tzinfo=UTC).timestamp()) * 10**6 + 6,
        ),
        (["1970-01-01T00:00:02Z", None], "microseconds since 1970-01-01", 2_000_000),
        (["1970-01-01 00:00:02.5", None], "microseconds since 1970-01-01", 2_500_000),
    ],
)
def test_times(tmp_path, values, unit, stored):
    out, told = simple(tmp_path, pl.DataFrame({"t": values}), time="t")
    assert np.load(out / "times.npy").tolist() == [stored, UNKNOWN]
    assert told["times"] == {"column": "t", "unit": unit, "missing": 1}


def test_globs_are_sorted_naturally_and_leave_out_columns_with_another_meaning(tmp_path):
    frame = pl.DataFrame({"f_10": [1.0], "f_2": [2.0], "f_label": [3], "f_1": [4.0]})
    out, told = simple(tmp_path, frame, features=["f_1", "f_*"], label="f_label")
    assert [each["column"] for each in told["features"]["columns"]] == ["f_1", "f_2", "f_10"]
    assert np.load(out / "features.npy").tolist() == [[4, 2, 1]]


def test_records(tmp_path):
    frame = pl.DataFrame(
        {"s": [0, 0, 0, 0], "w": [0.5, 1.0, None, 2.0], "since": [4, 5, 6, 7], "t": [9, 8, 7, 6]}
    )
    table = reader(tmp_path, [frame, frame])

    def make():
        return records_of(table, 6, features=["since"], time="t", weight="w")

    surveys = [make().survey(number) for number in range(2)]
    assert surveys == [{}, {}]
    kept = np.array([True, False, False, True])
    out = tmp_path / "out"
    for number, first in [(1, 2), (0, 0), (1, 2)]:
        columns = make()
        columns.begin(out, surveys)
        columns.write(out, number, first, kept[:3], 0, 3)
        columns.write(out, number, first + 1, None, 3, 4)
    told = columns.finish(out, surveys)
    assert np.load(out / "weights.npy").tolist() == [0.5, 2, 0.5, 2, 0, 0]
    assert np.load(out / "times.npy").tolist() == [9, 6, 9, 6, 0, 0]
    assert np.load(out / "features.npy")[:, 0].tolist() == [4, 7, 4, 7, 0, 0]
    assert told["weights"] == {"column": "w"}
    again = make()
    again.begin(tmp_path / "other", surveys)
    with pytest.raises(fp.errors.GraphFormatError, match=r"row 2, column 'w': the weight is missing"):
        again.write(tmp_path / "other", 0, 0, None, 0, 4)


def test_a_table_without_columns_costs_nothing(tmp_path):
    table = TableReader([TableFile("nowhere.parquet", 0, "", 7, {"id": pl.Int64})])
    columns = vertices_of(table, 7)
    assert (columns.wanted, columns.survey(0), columns.finish(tmp_path, [{}])) == (False, {}, {})
    columns.begin(tmp_path / "none", [{}])
    columns.write(tmp_path / "none", 0, np.zeros(7, np.uint32), 0, 7)
    assert not (tmp_path / "none").exists()
    assert not vertices_of(None, 7).wanted


@pytest.mark.parametrize("step", ["_standardise", "_close", "_finished"])
def test_a_kill_while_columns_are_finished(tmp_path, monkeypatch, step):
    frame = pl.DataFrame({"x": [1.0, 3.0, None, 4.0], "y": ["a", "b", None, "b"], "t": [1, 2, 3, 4]})
    entry = {"features": [{"column": "x", "fill": 0, "standardise": True}], "label": "y", "time": "t"}
    entry["split"] = {"by": "time", "train": 0.6, "test": 0.4}
    expected, told = simple(tmp_path, frame, 5, **entry)
    table = open_table("vertices.paper", [tmp_path / "0.parquet"])
    columns, out = vertices_of(table, 5, **entry), tmp_path / "out"
    surveys = [columns.survey(0)]
    columns.begin(out, surveys)
    columns.write(out, 0, np.arange(4, dtype=np.uint32), 0, 4)

    def killed(*arguments):
        if step == "_finished" and not (out / "columns.json").exists():
            return
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module if step == "_finished" else VertexColumns, step, killed)
        with pytest.raises(KeyboardInterrupt):
            columns.finish(out, surveys)
    again = vertices_of(table, 5, **entry)
    again.begin(out, surveys)
    assert again.finish(out, surveys) == told
    assert content(out) == content(expected)
