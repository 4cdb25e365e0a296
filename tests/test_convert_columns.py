"""convert(): which columns of text hold the ids, and what is no edge list at all."""

import gzip
import random

import numpy as np
import pytest

import fastpart as fp
from fastpart.cli import main


def converted(folder, text, name="g.csv", **options):
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    fp.convert(folder / name, folder / "out.bin", **options)
    return np.fromfile(folder / "out.bin", "<u4").reshape(-1, 2).tolist()


@pytest.mark.parametrize(
    "text",
    [
        "source,target\n5,7\n7,9\n",
        "id,source,target\n0,5,7\n1,7,9\n",
        "id;From;To\n0;5;7\n1;7;9\n",
        "target,source\n7,5\n9,7\n",
        "dst\tname\tsrc\n7\t\t5\n9\tx y\t7\n",
        '"id","src","dst"\n"a,1",5,7\n"b",7,9\n',
        "# a comment\n\n  v u w\n 7 5 0.5\r\n9  7\t0.25\n",
        "\ufeffweight,u,v\n0.5,5,7\n0.25,7,9",
        "id , source , target\n0 , 5 , 7\n\n# between\n1,7,9\n",
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_header_names_the_columns(tmp_path, text, packed):
    text = text.encode()
    assert converted(tmp_path, gzip.compress(text) if packed else text) == [[5, 7], [7, 9]]


def test_columns_are_the_same_for_any_cut_and_threads(tmp_path):
    rng = random.Random(0)
    records = [(rng.randrange(2000), rng.randrange(2000)) for _ in range(150_000)]
    text = "time,target,source\n" + "".join(f"{i * 7},{v},{u}\n" for i, (u, v) in enumerate(records))
    for threads in (1, 2):
        assert converted(tmp_path, text, threads=threads) == [list(record) for record in records]


def test_weights_stand_in_a_column_beside_named_ids(tmp_path):
    text = "id,source,target,weight\n0,5,7,2\n1,7,9,3.5\n"
    assert converted(tmp_path, text, weights=4) == [[5, 7], [7, 9]]
    graph = fp.open_graph(tmp_path / "out.bin")
    assert (graph.weights / graph.weight_scale).tolist() == [2, 3.5]
    with pytest.raises(fp.errors.GraphFormatError, match='weights: column 3 is "target", which holds ids'):
        converted(tmp_path, text, weights=3)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "id,a,b\n0,5,7\n",
            r"line 1, column 1: which columns .* the columns are id, a, b\. Name two of them: columns=",
        ),
        ("# c\n\nuser item rating\n0 5 7\n", "line 3, column 1: .* the columns are user, item, rating"),
        ("0,5,7\n1,7,9\n", "line 1, column 1: which columns hold the ids.* there is no header.*weights=3"),
        ("% c\n5 7 1 1300000000\n", "line 2, column 1: which columns"),
        ("source,target\n0,5,7\n", "the header names 2 columns, but the next line has 3"),
        ("id,source,target\n0,5,7\n1,7\n", "line 3, column 4: 2 columns, but the first line has 3"),
        ("id,source,target\n0,5,7\n1,7,9,3\n", "line 3, .*: 4 columns, but the first line has 3"),
        ("id,source,target\n0,5,x\n", 'line 2, column 5: "x" is no id'),
        ("id,source,target\n0,,7\n", "line 2, column 3: an empty field"),
        ("id,source,target\n0,-5,7\n", 'line 2, column 3: "-5" is negative'),
        ("id,source,target\n0,4294967295,7\n", "line 2, column 3: the id 4294967295 exceeds"),
        ("id,source,target\n\0,5,7\n", "line 2, column 1: a NUL byte"),
        ("id,source,target\nid,source,target\n", 'line 2, column 4: "source" is no id'),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_columns_that_may_be_others_are_refused(tmp_path, text, error, packed):
    text = text.encode()
    with pytest.raises(fp.errors.GraphFormatError, match=error):
        converted(tmp_path, gzip.compress(text) if packed else text)
    assert [path.name for path in tmp_path.iterdir()] == ["g.csv"]


def test_the_caller_says_what_the_third_column_is(tmp_path, monkeypatch, capsys):
    assert converted(tmp_path, "5 7 1\n7 9 2\n", weights=False) == [[5, 7], [7, 9]]
    assert converted(tmp_path, "5 7 1\n7 9 2\n", weights=3) == [[5, 7], [7, 9]]
    assert converted(tmp_path, "node1,node2,x\n5,7,1\n7,9,2\n", weights=3) == [[5, 7], [7, 9]]
    monkeypatch.chdir(tmp_path)
    assert main(["convert", "g.csv", "c.bin", "-q"]) == 1
    assert "--columns 1,2" in capsys.readouterr().err
    assert main(["convert", "g.csv", "c.bin", "--weights", "no", "-q"]) == 0


@pytest.mark.parametrize(
    "text",
    [
        "a list of five words\n5 7\n",
        "node1,node2\n5,7\n",
        "5 7 0.25\n",
        "5 7 friend\n",
        "5,7,2024-01-01\n",
        "5 7 \n",
    ],
)
def test_two_columns_of_ids_need_no_names(tmp_path, text):
    assert converted(tmp_path, text) == [[5, 7]]


LINES = b"".join(b"%d %d\n" % (v, v + 1) for v in range(900))
LZ4 = bytes.fromhex("04224d18") + bytes(60)


@pytest.mark.parametrize("name", ["g", "g.txt", "g.csv", "g.xz", "g.bin", "g.txt.xz"])
@pytest.mark.parametrize(
    ("content", "seen", "remedy"),
    [
        (LZ4, "an lz4 file", "lz4 -d"),
        (b"PK\x03\x04" + bytes(60), "a zip or .npz file", "Unpack it"),
        (b"SQLite format 3\0" + bytes(64), "an SQLite database", "Export"),
        (b"ARROW1\0\0" + bytes(64), "an Arrow file", "Parquet"),
    ],
)
def test_other_formats_are_refused_by_name(tmp_path, name, content, seen, remedy):
    with pytest.raises(fp.errors.GraphFormatError, match=rf"{name}: this is {seen}.*{remedy}"):
        converted(tmp_path, content, name)
    if name == "g.bin":
        with pytest.raises(fp.errors.GraphFormatError, match=f"this is {seen}"):
            fp.open_graph(tmp_path / name)


@pytest.mark.parametrize("name", ["g", "g.txt", "g.bin"])
def test_random_bytes_are_refused(tmp_path, name):
    with pytest.raises(fp.errors.GraphFormatError):
        converted(tmp_path, random.Random(1).randbytes(8000), name)


def test_times_are_no_ids(tmp_path):
    text = "5 1700000000\n7 1700000100\n"
    with pytest.raises(
        fp.errors.GraphFormatError,
        match=r"n?implies 1700000101 vertices .* For 2 records .*implausible.*relabel",
    ):
        converted(tmp_path, text)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.csv"]
    assert converted(tmp_path, text, relabel=True) == [[0, 1], [2, 3]]
    assert fp.open_graph(tmp_path / "out.bin").num_vertices == 4
    assert converted(tmp_path, text, num_vertices=1_700_000_101) == [[5, 1_700_000_000], [7, 1_700_000_100]]


def test_raw_records_of_an_implausible_n_are_refused_too(tmp_path):
    np.array([[5, 1_700_000_000]], "<u4").tofile(tmp_path / "g.raw")
    with pytest.raises(fp.errors.GraphFormatError, match="implies 1700000001 vertices"):
        fp.convert(tmp_path / "g.raw", tmp_path / "out.bin")
