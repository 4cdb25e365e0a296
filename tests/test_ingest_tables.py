"""Files of tables: found, told apart, read in batches, and refused by name."""

import bz2
import gzip
import lzma
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpart.core.row_groups import row_groups
from fastpart.errors import EdgeFileChangedError, GraphFormatError
from fastpart.graphs.ingest.schema import Csv, Format
from fastpart.graphs.ingest.tables import BATCH, open_table
from fastpart.graphs.ingest.tables.listing import glob_pattern
from soaked import examples

HOME = Path(__file__).parents[1]


def table(files, root=".", **csv):
    return open_table("vertices.paper", files, Format(csv=Csv(**csv)) if csv else None, str(root))


def frame(reader, *columns, number=0, **span):
    batches = list(reader.batches(number, columns, **span))
    return pl.concat(batches) if batches else None


def ids(reader, columns, kinds, number=0, **span):
    return pl.concat(reader.ids(number, columns, kinds, **span))


def paths(reader):
    return [os.path.relpath(file.path, Path(reader.files[0].path).parent) for file in reader.files]


# Files are found.


@pytest.fixture
def lake(tmp_path):
    for name in ("part-10", "part-2", "sub/part-1", ".hidden", "_SUCCESS"):
        file = tmp_path / "t" / f"{name}.parquet"
        file.parent.mkdir(exist_ok=True, parents=True)
        pl.DataFrame({"id": [name]}).write_parquet(file)
    return tmp_path


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ("t/part-*.parquet", ["part-10.parquet", "part-2.parquet"]),
        ("t", ["part-10.parquet", "part-2.parquet", "sub/part-1.parquet"]),
        ("t/", ["part-10.parquet", "part-2.parquet", "sub/part-1.parquet"]),
        ("t/**/*-[12].parquet", ["part-2.parquet", "sub/part-1.parquet"]),
        (["t/part-2.parquet", "t/part-*.parquet"], ["part-10.parquet", "part-2.parquet"]),
        (Path("t") / "part-2.parquet", ["part-2.parquet"]),
    ],
)
def test_files_are_sorted_by_the_bytes_of_their_paths_and_each_counts_once(lake, files, found):
    assert paths(table(files, lake)) == found


def test_links_within_a_folder_are_followed_once(lake):
    (lake / "t" / "again").symlink_to(lake / "t")
    (lake / "t" / "z.parquet").symlink_to("sub/part-1.parquet")
    found = ["part-10.parquet", "part-2.parquet", "sub/part-1.parquet", "z.parquet"]
    assert paths(table("t", lake)) == found
    (lake / "alias").symlink_to("t")
    (lake / "one").symlink_to("t/part-2.parquet")
    assert paths(table("alias", lake)) == paths(table("alias/", lake)) == found
    assert paths(table("alias/part-*.parquet", lake)) == found[:2]
    assert [file.path for file in table("one", lake).files] == [str(lake / "one")]


@pytest.mark.parametrize("files", ["t", "t/", "t/*", "t/**", "t/**/*.parquet", ["t/part-2.parquet", "t"]])
@pytest.mark.parametrize(("link", "to"), [("z", "more"), ("z.parquet", "more/x.parquet"), ("sub/z", "more")])
def test_links_out_of_a_folder_are_refused(lake, files, link, to):
    (lake / "more").mkdir()
    pl.DataFrame({"id": ["x"]}).write_parquet(lake / "more" / "x.parquet")
    (lake / "t" / link).symlink_to(lake / to)
    with pytest.raises(
        GraphFormatError, match=r"vertices\.paper\.files: .*/t/\S+ leads out of .*/t by a link"
    ):
        table(files, lake)
    (lake / "t" / link).unlink()
    assert len(table(files if isinstance(files, list) else [files, to], lake).files) >= 3


def test_hidden_links_are_no_data(lake):
    (lake / "t" / ".trash").symlink_to("/")
    (lake / "t" / "_SUCCESS2").symlink_to("/dev/zero")
    assert len(table("t", lake).files) == 3


def test_an_absolute_path_and_a_url_of_a_file_ignore_the_root(lake):
    whole = str(lake / "t" / "part-2.parquet")
    assert table(whole, "/elsewhere").files[0].path == whole
    assert table(f"file://{whole}", "/elsewhere").files[0].path == whole


def test_a_name_with_the_signs_of_a_glob_is_that_file(tmp_path):
    for suffix, text in (("csv", "a\n1\n"), ("ndjson", '{"a": "1"}\n')):
        (tmp_path / f"x[1].{suffix}").write_text(text)
        (tmp_path / f"x1.{suffix}").write_text(text * 2)
        assert frame(table(f"x[1].{suffix}", tmp_path), "a").rows() == [("1",)]


@pytest.mark.parametrize("files", ["t/*.csv", "none.parquet", "empty", "none/"])
def test_nothing_found(lake, files):
    (lake / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"vertices\.paper\.files") as error:
        table(files, lake)
    assert files.rstrip("/") in str(error.value)


@pytest.mark.parametrize("files", [[], 3, [3]])
def test_no_files(files):
    with pytest.raises((GraphFormatError, TypeError), match=r"vertices\.paper\.files"):
        table(files)


@pytest.mark.parametrize(
    ("pattern", "key", "matches"),
    [
        ("a/*.csv", "a/b.csv", True),
        ("a/*.csv", "a/b/c.csv", False),
        ("a/**/*.csv", "a/b/c.csv", True),
        ("a/**/*.csv", "a/c.csv", True),
        ("a/[!b]?.csv", "a/cd.csv", True),
        ("a/[!b]?.csv", "a/bd.csv", False),
        ("a.csv", "aXcsv", False),
        ("a/[ab].csv", "a/b.csv", True),
    ],
)
def test_globs_of_object_stores(pattern, key, matches):
    assert bool(glob_pattern(pattern).match(key)) is matches


# Formats.


ROWS = {"id": ["a", "b", ""], "n": ["1", None, "3"]}
TEXT = 'id,n\na,1\nb,\n"",3\n'


@pytest.mark.parametrize(
    "name", ["t.csv", "t.csv.gz", "t.csv.zst", "t.csv.bz2", "t.csv.xz", "t.tsv", "t.txt", "t.dat", "T.CSV"]
)
def test_text(tmp_path, name):
    file, text = tmp_path / name, TEXT
    if file.suffix in (".tsv", ".txt"):
        text = text.replace(",", "\t")
    if file.suffix == ".zst":
        pl.LazyFrame(ROWS).sink_csv(file, compression="zstd")
    else:
        packer = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}.get(file.suffix, bytes)
        file.write_bytes(packer(text.encode()))
    reader = table(name, tmp_path, quote='"') if name == "t.dat" else table(name, tmp_path)
    assert reader.files[0].rows == 3
    assert set(reader.files[0].dtypes.values()) == {pl.String()}
    assert frame(reader, "n", "id").to_dict(as_series=False) == {"n": ROWS["n"], "id": ROWS["id"]}


def test_unpacked_copies_go_with_their_reader(tmp_path):
    (tmp_path / "t.csv.xz").write_bytes(lzma.compress(TEXT.encode()))
    (tmp_path / "tmp").mkdir()
    reader = open_table("t", "t.csv.xz", None, str(tmp_path), tmp_path / "tmp")
    assert len(frame(reader, "id")) == 3
    assert list((tmp_path / "tmp").iterdir())
    del reader
    assert not list((tmp_path / "tmp").iterdir())


@pytest.mark.parametrize(
    "name", ["t.arrow", "t.feather", "t.ipc", "t.ndjson", "t.jsonl", "t.parquet", "t.pq", "t"]
)
def test_other_formats(tmp_path, name):
    rows = pl.DataFrame({"id": [1, 2, 3], "x": ["a", None, "c"]})
    file = tmp_path / name
    write = {".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc", ".ndjson": "ndjson", ".jsonl": "ndjson"}
    getattr(rows, f"write_{write.get(file.suffix, 'parquet')}")(file)
    reader = table(name, tmp_path)
    assert reader.files[0].rows == 3
    assert reader.files[0].dtypes == dict(rows.schema)
    assert frame(reader, "x", "id").equals(rows.select("x", "id"))
    assert frame(reader, "id", start=1, stop=3).equals(rows.select("id")[1:])


def test_late_types_of_ndjson(tmp_path):
    (tmp_path / "t.ndjson").write_text('{"id": 1}\n' * 2000 + '{"id": "x"}\n')
    reader = table("t.ndjson", tmp_path)
    assert reader.files[0].dtypes == {"id": pl.String()}
    assert frame(reader, "id", start=1999).rows() == [("1",), ("x",)]


def test_text_without_a_header(tmp_path):
    (tmp_path / "t.csv").write_text("a;NA\nb;2\n")
    reader = table("t.csv", tmp_path, header=False, separator=";", nulls=["NA"])
    assert frame(reader, "column_2", "column_1").rows() == [(None, "a"), ("2", "b")]


def test_leading_zeros_and_blanks_stay(tmp_path):
    (tmp_path / "t.csv").write_text("id\n007\n7\n 7 \n18446744073709551615\n")
    assert frame(table("t.csv", tmp_path), "id")["id"].to_list() == [
        "007",
        "7",
        " 7 ",
        "18446744073709551615",
    ]


def test_columns_that_the_path_tells(tmp_path):
    for day in ("1", "2", "__HIVE_DEFAULT_PARTITION__", "a%20b"):
        folder = tmp_path / f"day={day}"
        folder.mkdir()
        pl.DataFrame({"id": [day]}).write_parquet(folder / "x.parquet")
    reader = table("day=*", tmp_path)
    found = {frame(reader, "id", "day", number=number).row(0) for number in range(4)}
    assert found == {("1", 1), ("2", 2), ("__HIVE_DEFAULT_PARTITION__", None), ("a%20b", "a b")}
    assert frame(reader, "id").columns == ["id"]


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "arrow"])
def test_data_frames(kind):
    rows = pl.DataFrame({"id": ["a", "b", "c"], "n": [1, 2, 3]})
    source = {
        "polars": lambda: rows,
        "lazy": lambda: rows.lazy().filter(pl.col("n") > 0),
        "pandas": rows.to_pandas,
        "arrow": rows.to_arrow,
    }[kind]()
    reader = table(source)
    assert reader.files[0].rows == 3
    assert frame(reader, "n", "id", start=1).rows() == [(2, "b"), (3, "c")]
    assert reader.place(0, 2) == "vertices.paper (data frame): row 2"


def test_marks_of_data_frames_tell_them_apart():
    marks = [
        table(pl.DataFrame(rows)).files[0].mark
        for rows in ({"a": [1, 2]}, {"a": [2, 1]}, {"b": [1, 2]}, {"a": [1, 2]})
    ]
    assert len(set(marks)) == 3
    assert marks[0] == marks[3]


# Batches.


def test_batches_are_bounded_and_ordered(tmp_path):
    n = 2 * BATCH + 17
    pl.DataFrame({"id": range(n), "x": pl.repeat("x", n, eager=True)}).write_parquet(
        tmp_path / "t.parquet", row_group_size=100_000
    )
    reader = table("t.parquet", tmp_path)
    assert reader.divisible(0)
    batches = list(reader.batches(0, ["x", "id"], 3, n - 1))
    assert all(batch.columns == ["x", "id"] and len(batch) <= BATCH for batch in batches)
    assert pl.concat(batches)["id"].equals(pl.Series("id", range(3, n - 1)))


@examples(10)
@given(
    rows=st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.text(max_size=3)), max_size=20),
    group=st.integers(1, 9),
    cuts=st.lists(st.integers(0, 20), max_size=3),
    suffix=st.sampled_from(["parquet", "arrow", "csv", "ndjson"]),
)
def test_units_of_a_file_are_its_rows(tmp_path_factory, rows, group, cuts, suffix):
    held = pl.DataFrame(rows, schema={"n": pl.Int64, "s": pl.String}, orient="row")
    if suffix == "ndjson" and not rows:
        return
    folder = tmp_path_factory.mktemp("t")
    if suffix == "parquet":
        held.write_parquet(folder / "t.parquet", row_group_size=group)
    elif suffix == "csv":
        held.write_csv(folder / "t.csv", quote_style="non_numeric")
    else:
        getattr(held, {"arrow": "write_ipc", "ndjson": "write_ndjson"}[suffix])(folder / f"t.{suffix}")
    reader = table(f"t.{suffix}", folder)
    assert reader.files[0].rows == len(rows)
    edges = sorted({0, len(rows), *(min(cut, len(rows)) for cut in cuts)})
    units = [frame(reader, "s", "n", start=a, stop=b) for a, b in pairwise(edges)]
    found = pl.concat([unit for unit in units if unit is not None]).rows() if rows else []
    assert [(int(n), s) for s, n in found] == rows


@pytest.mark.parametrize("rows", [1, 3, 20, 1000])
def test_row_groups_are_counted(tmp_path, rows):
    file = tmp_path / "t.parquet"
    wide = {f"c{number}": range(100) for number in range(20)}
    pl.DataFrame(wide | {"s": [["x"]] * 100, "b": [True] * 100}).write_parquet(file, row_group_size=rows)
    assert row_groups(str(file)).groups == -(-100 // rows)
    from_arrow = tmp_path / "u.parquet"
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pl.DataFrame(wide).to_arrow(), from_arrow, row_group_size=rows)
    assert row_groups(str(from_arrow)).groups == parquet.ParquetFile(from_arrow).metadata.num_row_groups


@pytest.mark.parametrize("content", [b"", b"PAR1", b"\xff\xff\xff\x7fPAR1", b"\xff" * 40 + b"\x28\0\0\0PAR1"])
def test_row_groups_of_what_is_no_parquet(tmp_path, content):
    (tmp_path / "t").write_bytes(content)
    assert row_groups(str(tmp_path / "t")) is None


def test_a_file_of_one_huge_row_group_is_read_as_a_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("fastpart.graphs.ingest.tables.tablefiles.LARGEST_GROUP", 100)
    pl.DataFrame({"id": range(200)}).write_parquet(tmp_path / "t.parquet", row_group_size=100)
    assert table("t.parquet", tmp_path).divisible(0)
    pl.DataFrame({"id": range(202)}).write_parquet(tmp_path / "t.parquet")
    assert not table("t.parquet", tmp_path).divisible(0)


def test_a_reader_left_early_does_not_hang(tmp_path):
    pl.DataFrame({"id": range(BATCH * 3)}).write_parquet(tmp_path / "t.parquet")
    next(table("t.parquet", tmp_path).batches(0, ["id"]))


# Ids.


@pytest.mark.parametrize(
    ("values", "dtype", "kind", "found"),
    [
        ([1, None], pl.Int32, "signed", [1, None]),
        ([1, 200], pl.UInt8, "unsigned", [1, 200]),
        ([1, 2], pl.Int64, "unsigned", [1, 2]),
        (["007", "-7", "+7"], pl.String, "signed", [7, -7, 7]),
        (["18446744073709551615"], pl.String, "unsigned", [2**64 - 1]),
        ([1, None, -3], pl.Int16, "string", ["1", None, "-3"]),
        (["a", "b"], pl.Categorical, "string", ["a", "b"]),
        (["a", "b"], pl.Enum(["b", "a"]), "string", ["a", "b"]),
        ([b"a", b"\xff"], pl.Binary, "binary", [b"a", b"\xff"]),
        ([b"a", b"b"], pl.Binary, "string", ["a", "b"]),
        ([19000], pl.Date, "string", ["2022-01-08"]),
    ],
)
def test_ids(tmp_path, values, dtype, kind, found):
    pl.DataFrame({"id": pl.Series(values).cast(dtype)}).write_parquet(tmp_path / "t.parquet")
    read = ids(table("t.parquet", tmp_path), ["id"], [kind])["id"]
    assert read.to_list() == found
    wanted = {"signed": pl.Int64, "unsigned": pl.UInt64, "string": pl.String, "binary": pl.Binary}
    assert read.dtype == wanted[kind]


@pytest.mark.parametrize(
    ("values", "kind", "said"),
    [
        ([3, 4, -5], "unsigned", "row 2: column 'id': -5 is negative.*`as: string`"),
        (["3", "x"], "signed", "row 1: column 'id': 'x' is not a whole number.*`as: int`"),
        (["3", "1.0"], "unsigned", r"row 1: column 'id': '1\.0' is not a whole number"),
        (["9223372036854775808"], "signed", r"row 0: .*is outside -2\^63 to 2\^63 - 1.*`as: string`"),
        (["18446744073709551616"], "unsigned", r"row 0: .*is outside 0 to 2\^64 - 1"),
        ([b"a", b"\xff"], "string", "row 1: .*the bytes ff are not UTF-8"),
    ],
)
def test_ids_refused(tmp_path, values, kind, said):
    pl.DataFrame({"a": values, "id": values}).write_parquet(tmp_path / "t.parquet")
    reader = table("t.parquet", tmp_path)
    with pytest.raises(GraphFormatError, match=rf"t\.parquet: {said}"):
        list(reader.ids(0, ["id"], [kind]))


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress], ids=["csv", "gz", "bz2"])
@pytest.mark.parametrize("broken", [1, 3])
def test_a_quote_that_does_not_close_is_refused_with_its_line(tmp_path, pack, broken):
    rows = ["id,name", '1,"one"', '2,"two, ""2"""', "3,three"]
    suffix = {bytes: ".csv", gzip.compress: ".csv.gz", bz2.compress: ".csv.bz2"}[pack]
    (tmp_path / f"whole{suffix}").write_bytes(pack("\n".join(rows).encode()))
    assert frame(table(f"whole{suffix}", tmp_path), "name")["name"].to_list() == ["one", 'two, "2"', "three"]
    rows[broken] = rows[broken].split(",")[0] + ',"open'
    (tmp_path / f"open{suffix}").write_bytes(pack("\n".join(rows).encode()))
    with pytest.raises(
        GraphFormatError, match=rf"open\.csv.*: .*after line {broken}: a quote that does not close"
    ):
        frame(table(f"open{suffix}", tmp_path), "name")


def test_ids_of_text_are_refused_with_their_line(tmp_path):
    (tmp_path / "t.csv").write_text('\nid,x\n1,"two\nlines"\n\n2,\ny,\n')
    reader = table("t.csv", tmp_path)
    with pytest.raises(GraphFormatError, match=r"t\.csv: line 7: column 'id': 'y' is not a whole number"):
        list(reader.ids(0, ["id"], ["signed"]))
    with pytest.raises(GraphFormatError, match=r"t\.csv: line 7: "):
        list(reader.ids(0, ["id"], ["signed"], 3))
    assert reader.place(0, 0).endswith("t.csv: line 3")


# Files that are no tables.

DAMAGE = {
    "empty.parquet": (lambda good: b"", "not a Parquet file: .*12 bytes"),
    "cut.parquet": (lambda good: good[:-20], "not a Parquet file: .*PAR1"),
    "page.parquet": (lambda good: good[:20] + b"\xff" * 400 + good[420:], "not a Parquet file: "),
    "text.parquet": (lambda good: b"id,n\n1,2\n" * 9, "not a Parquet file: "),
    "empty.csv": (lambda good: b"", "not a text table in UTF-8: .*empty"),
    "latin.csv": (
        lambda good: b"id\n" + b"a\n" * 1000 + b"\xe9t\xe9\nb\n",
        "not .* UTF-8: line 1002 is not UTF-8",
    ),
    "wide.csv": (lambda good: b"id,n\n1,2\n1,2,3\n", "line 3 has 3 columns, the first line has 2"),
    "quote.csv": (lambda good: b'id,n\na,1\n"b,2\n', "after line 2: a quote"),
    "inner.csv": (lambda good: b'id,n\na,1\n"b"c,2\n', "after line 2: a quote"),
    "twice.csv": (lambda good: b"id,n,id\n1,2,3\n", "two columns are called 'id'"),
    "cut.csv.gz": (lambda good: gzip.compress(b"id\n" + b"a\n" * 99)[:-9], "cut off"),
    "cut.csv.xz": (lambda good: lzma.compress(b"id\n" + b"a\n" * 99)[:-9], r"not a \.xz file, or cut off"),
    "no.csv.bz2": (lambda good: b"id\na\n", r"not a \.bz2 file, or cut off"),
    "t.arrow": (lambda good: b"ARROW1\0\0" + good, "not an Arrow IPC file: "),
    "t.ndjson": (lambda good: b'{"a": 1}\n{"a": 2\n', "not NDJSON: "),
    "t.dat": (lambda good: b"id\n1\n", r"the suffix '\.dat' names no format\. If it is text"),
    "README": (lambda good: b"Read me", "it has no suffix that names its format"),
    "t.parquet.gz": (lambda good: gzip.compress(good), "only text may be compressed as a whole"),
}


def everything(reader):
    return list(reader.batches(0, list(reader.files[0].dtypes)))


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_files_are_named(tmp_path, name):
    damage, said = DAMAGE[name]
    pl.DataFrame({"id": [f"x{number % 777}" for number in range(9999)]}).write_parquet(
        tmp_path / "good.parquet", compression="uncompressed"
    )
    (tmp_path / name).write_bytes(damage((tmp_path / "good.parquet").read_bytes()))
    with pytest.raises(GraphFormatError, match=said) as error:
        everything(table(name, tmp_path))
    assert str(tmp_path / name) in str(error.value)
    assert "olars" not in str(error.value)
    assert "\n" not in str(error.value)


def test_the_stream_format_of_arrow_is_refused_with_the_remedy(tmp_path):
    pl.DataFrame({"a": [1]}).write_ipc_stream(tmp_path / "t.arrow")
    with pytest.raises(GraphFormatError, match="stream format"):
        table("t.arrow", tmp_path)


def test_empty_tables_are_fine(tmp_path):
    pl.DataFrame(schema={"id": pl.String}).write_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("id\n")
    reader = table(["t.parquet", "t.csv"], tmp_path)
    for number in range(2):
        assert reader.files[number].rows == 0
        assert sum(map(len, reader.batches(number, ["id"]))) == 0


def test_a_file_replaced_in_between(tmp_path):
    file = tmp_path / "t.parquet"
    pl.DataFrame({"id": [1, 2]}).write_parquet(file)
    reader = table(file)
    pl.DataFrame({"id": [1, 3]}).write_parquet(file)
    os.utime(file, ns=(1, 1))
    with pytest.raises(EdgeFileChangedError, match=r"t\.parquet changed while it was read"):
        list(reader.batches(0, ["id"]))
    file.unlink()
    with pytest.raises(EdgeFileChangedError):
        list(reader.batches(0, ["id"]))


@pytest.mark.parametrize(
    ("module", "extra", "files"),
    [("deltalake", "delta", "d"), ("pyiceberg", "iceberg", "i"), ("obstore", "cloud", "s3://x/y")],
)
def test_missing_extras_are_named(tmp_path, module, extra, files):
    (tmp_path / "d" / "_delta_log").mkdir(parents=True)
    (tmp_path / "i" / "metadata").mkdir(parents=True)
    (tmp_path / "i" / "metadata" / "v1.metadata.json").write_text("{}")
    code = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from fastpart.graphs.ingest.tables import open_table\n"
        "import fastpart\n"
        f"try: open_table('vertices.paper', {files!r}, root={str(tmp_path)!r})\n"
        "except fastpart.errors.ParameterError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"pip install 'fastpart[{extra}]'" in done.stdout, done.stderr


def test_import_of_the_package_does_not_import_this():
    code = "import fastpart, sys; print([m for m in ('yaml', 'obstore', 'polars') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Tables of snapshots.


def test_delta(tmp_path):
    deltalake = pytest.importorskip("deltalake")
    pl.DataFrame({"id": ["a", "b"]}).write_delta(tmp_path / "d")
    reader = table("d", tmp_path)
    assert (reader.files[0].mark, reader.files[0].rows) == ("version 0", 2)
    pl.DataFrame({"id": ["c"]}).write_delta(tmp_path / "d", mode="append")
    assert sorted(frame(reader, "id")["id"]) == ["a", "b"], "the version is the one that was opened"
    assert table("d/", tmp_path).files[0].mark == "version 1"
    assert table("d", tmp_path).files[0].bytes > 0
    assert deltalake.DeltaTable(tmp_path / "d").version() == 1
    (tmp_path / "d" / "_delta_log" / "00000000000000000000.json").write_text("{")
    with pytest.raises(GraphFormatError, match="not a Delta table"):
        table("d", tmp_path)


def test_iceberg(tmp_path):
    catalogs = pytest.importorskip("pyiceberg.catalog.sql")
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("sqlalchemy")
    catalog = catalogs.SqlCatalog("c", uri="sqlite:///:memory:", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("n")
    rows = pyarrow.table({"id": pyarrow.array([3, 4], pyarrow.int64())})
    made = catalog.create_table("n.t", schema=rows.schema)
    made.append(rows)
    folder = made.location().removeprefix("file://")
    reader = table(folder)
    assert reader.files[0].rows == 2
    assert reader.files[0].mark.startswith("snapshot ")
    made.append(rows)
    assert frame(reader, "id")["id"].to_list() == [3, 4]
    assert table(folder).files[0].rows == 4
