"""labels= and splits= from CSV and Parquet."""

import gzip

import numpy as np
import polars as pl
import pytest

import fastpart as fp
from fastpart.cli import main
from fastpart.core.inputs import labels_of, splits_of

RING = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
PARTS = [0, 0, 1, 1]


def table(folder, content, name="t.csv"):
    file = folder / name
    if isinstance(content, dict):
        pl.DataFrame(content).write_parquet(file)
    else:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("label\n5\n6\n\n7\n", "t.csv"),
        ("5\n6\n\n7\n", "t.csv"),
        ("vertex,label\n3,7\n0,5\n1,6\n", "t.csv"),
        ("label;node\n7;3\n5;0\n6;1\n", "t.csv"),
        ("x\ty\tid\na\t7\t3\nb\t5\t0\nc\t6\t1\n", "t.tsv"),
        ("0,5\n1,6\n3,7\n", "t.csv"),
        ("vertex,label,split\n3,7,train\n0,5,\n1,6,test\n2,,val\n", "t.csv"),
        (gzip.compress(b"vertex,label\n3,7\n0,5\n1,6\n", mtime=0), "t.csv.gz"),
        ({"label": [5, 6, None, 7]}, "t.parquet"),
        ({"vertex": [3, 1, 0], "y": [7, 6, 5], "x": [0.5, 0.5, 0.5]}, "t.parquet"),
        ({"vertex": ["3", "1", "0"], "y": [7.0, 6.0, 5.0]}, "t.parquet"),
    ],
)
def test_labels(tmp_path, content, name):
    if isinstance(content, str) and content.startswith(("label\n", "5")):
        content = content.replace("\n\n", '\n""\n')
    labels = labels_of(table(tmp_path, content, name), 4)
    assert (labels.dtype, labels.tolist()) == (np.int64, [5, 6, -1, 7])


def test_targets_of_a_regression(tmp_path):
    labels = labels_of(table(tmp_path, "vertex,y\n1,0.5\n0,2\n"), 3)
    np.testing.assert_array_equal(labels, np.array([2, 0.5, np.nan], np.float32))


def test_words_are_numbered_in_their_order_and_this_is_told(tmp_path, caplog):
    caplog.set_level("INFO", "fastpart")
    labels = labels_of(table(tmp_path, "vertex,class\n0,theory\n1,agents\n3,theory\n"), 4)
    assert labels.tolist() == [1, 0, -1, 1]
    assert "labels: the 2 values of column class are numbered in their order" in caplog.messages


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ('split\ntrain\nvalid\n""\ntest\n', "t.csv"),
        ("vertex,split\n1,val\n0,train\n3,TEST\n", "t.csv"),
        ("vertex,label,split\n1,0,validation\n0,1,train\n3,5,test\n2,4,\n", "t.csv"),
        ({"split": ["train", "val", None, "test"]}, "t.parquet"),
        ({"id": [1, 3, 0], "set": ["val", "test", "train"]}, "t.parquet"),
    ],
)
def test_splits(tmp_path, content, name):
    splits = splits_of(table(tmp_path, content, name), 4)
    assert {name: ids.tolist() for name, ids in splits.items()} == {"train": [0], "val": [1], "test": [3]}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("label\n1\n2\n", "2 rows for 4 vertices, and no column that says which"),
        (
            "a,b,c\n0,1,2\n",
            "has the columns a, b, c. Name the one of the vertices 'vertex' and the other one 'label'",
        ),
        ("vertex,label\n4,1\n", r"column vertex, row 0: 4 is outside 0\.\.3"),
        ("vertex,label\n-1,1\n", "row 0: -1 is outside"),
        ("vertex,label\n0,1\n2,1\n0,2\n", "rows 0 and 2 are of the same vertex, 0"),
        ("vertex,label\n0,1\n,2\n", "row 1: the vertex is missing"),
        ("vertex,label\nalice,1\n", r"expected vertices 0\.\.3, got 'alice'"),
        ("vertex,vertex\n0,1\n", "two columns have one name"),
        (b"vertex,label\n0,\xff\n", r"t\.csv: not a table"),
        ("", r"t\.csv: not a table"),
    ],
)
def test_tables_that_hold_no_labels(tmp_path, content, text):
    with pytest.raises(fp.FastpartError, match=text):
        labels_of(table(tmp_path, content), 4)


def test_tables_that_hold_no_splits(tmp_path):
    with pytest.raises(fp.errors.ParameterError, match=r"t\.csv: column split holds 'tset'\. Expected train"):
        splits_of(table(tmp_path, "vertex,split\n0,tset\n"), 4)
    with pytest.raises(fp.errors.ParameterError, match="names no vertex"):
        splits_of(table(tmp_path, 'split\n""\n""\n'), 2)
    with pytest.raises(FileNotFoundError, match=r"absent\.csv"):
        splits_of(tmp_path / "absent.csv", 4)
    with pytest.raises(fp.errors.GraphFormatError, match=r"t\.parquet: not a table"):
        labels_of(table(tmp_path, b"PAR1", "t.parquet"), 4)


def test_everywhere_that_takes_them(tmp_path, monkeypatch, capsys):
    labels = np.array([5, 6, -1, 7])
    splits = {"train": [0], "val": [1], "test": [3]}
    file = table(tmp_path, "vertex,label,split\n3,7,test\n0,5,train\n1,6,val\n")
    from_table = fp.evaluate(RING, PARTS, labels=file, splits=file)
    from_arrays = fp.evaluate(RING, PARTS, labels=labels, splits=splits)
    assert from_table.summary.equals(from_arrays.summary)
    partition = fp.VertexPartition(PARTS, 2)
    partition.save(tmp_path / "parts", graph=RING, labels=file, splits=file)
    stored = fp.open_partition(tmp_path / "parts")
    assert np.concatenate([part.labels for part in stored.parts]).tolist() == labels.tolist()
    assert fp.algorithms.bytegnn(RING, 2, splits=file) == fp.algorithms.bytegnn(RING, 2, splits=splits)
    compared = fp.compare(RING, 2, ["spring"], labels=file, splits=file, peers=False)
    assert compared.summary["error"].null_count() == 1
    monkeypatch.chdir(tmp_path)
    np.save("g.npy", RING)
    words = ["partition", "g.npy", "-k", "2", "--labels", "t.csv", "--splits", "t.csv", "-o", "out/", "-q"]
    assert main(words) == 0
    capsys.readouterr()


def test_the_ids_of_the_user(tmp_path):
    edges = table(tmp_path, "source,target\nann,bob\nbob,eve\neve,dan\n", "edges.csv")
    graph = fp.open_graph(edges)
    file = table(tmp_path, "id,label,split\neve,2,train\nann,0,test\ndan,1,train\n")
    assert fp.evaluate(graph, [0, 0, 1, 1], labels=file, splits=file).summary is not None
    order = ["ann", "bob", "dan", "eve"]
    labels = labels_of(file, 4, graph._id_tables)
    assert dict(zip(order, labels.tolist(), strict=True)) == {"ann": 0, "bob": -1, "dan": 1, "eve": 2}
    with pytest.raises(fp.errors.ParameterError, match="row 0: no vertex has the id 'zoe'"):
        labels_of(table(tmp_path, "id,label\nzoe,2\n", "z.csv"), 4, graph._id_tables)
