"""Guessed schemas: what a folder of tables seems to hold, as YAML that an ingest takes."""

import json

import polars as pl
import pytest
import yaml

from fastpart.cli import main
from fastpart.core.options import run_options
from fastpart.graphs.ingest.catalog import open_catalog
from fastpart.graphs.ingest.documents import read_schema
from fastpart.graphs.ingest.guess import guess, plain


@pytest.fixture
def store(tmp_path):
    """Write tables, as frames or text, below a folder."""

    def store(tables):
        for name, content in tables.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str):
                file.write_text(content)
            else:
                pl.DataFrame(content).write_parquet(file)
        return tmp_path

    return store


def guessed(folder):
    """Return the guessed schema as YAML and its text. It must open."""
    text = guess(folder)
    schema, root = read_schema(yaml.safe_load(text))
    open_catalog(schema, root, run_options())
    return yaml.safe_load(text), text


PAPERS = {
    "paper_id": [10, 11, 12],
    "emb": [[0.5, 1.0]] * 3,
    "h_index": [0.5, 1.5, 2.0],
    "year": [2001, 2002, 2003],
    "label": [0, 1, 0],
    "split": ["train", "val", "test"],
    "title": ["a", "b", "a"],
}
AUTHORS = {"author_id": ["x", "y"], "name": ["n", "m"], "born_at": [1, 2]}
WRITES = {"author_id": ["x", "x", "y"], "paper_id": [10, 11, 10], "weight": [1.0, 2.0, 3.0]}
CITES = {"citing": [10, 11, 10], "cited": [12, 12, 99]}


def test_a_lake(store):
    found, text = guessed(
        store(
            {
                "papers/part-0.parquet": PAPERS,
                "papers/part-1.parquet": PAPERS | {"paper_id": [13, 14, 15]},
                "authors.parquet": AUTHORS,
                "writes/a.parquet": WRITES,
                "cites-0.parquet": CITES,
                "cites-1.parquet": CITES,
                "_tmp.parquet": CITES,
                "README.md": "no table",
            }
        )
    )
    paper = found["vertices"]["paper"]
    assert paper == {
        "files": "papers/",
        "id": "paper_id",
        "label": "label",
        "split": "split",
        "time": "year",
        "features": ["emb", "h_index"],
    }
    assert found["vertices"]["author"] == {"files": "authors.parquet", "id": "author_id", "time": "born_at"}
    assert found["relations"] == {
        "writes": {
            "files": "writes/",
            "source": {"author": "author_id"},
            "target": {"paper": "paper_id"},
            "weight": "weight",
        },
        "cites": {
            "files": "cites*.parquet",
            "source": {"paper": "citing"},
            "target": {"paper": "cited"},
            "missing": "drop",
        },
    }
    assert "# not used: title (text)" in text
    assert "# ? or add, since some ids are in no table" in text
    assert "# 50% of the sampled ids are there" in text
    assert "# unique in 3 rows" in text


def test_headers_of_neo4j(store):
    found, text = guessed(
        store(
            {
                "movies.csv": "movieId:ID(Movie),title,year:int,:LABEL\ntt1,The,1999,Movie\ntt2,A,2003,Movie\n",
                "people.csv": "personId:ID(Person),name\nkeanu,K\n",
                "roles.csv": ":START_ID(Person),role,:END_ID(Movie),:TYPE\nkeanu,Neo,tt1,ACTED\nkeanu,N,tt2,MADE\n",
            }
        )
    )
    assert found["vertices"]["Movie"]["id"] == "movieId:ID(Movie)"
    assert found["relations"]["*"] == {
        "files": "roles.csv",
        "relation": ":TYPE",
        "source": {"Person": ":START_ID(Person)"},
        "target": {"Movie": ":END_ID(Movie)"},
    }
    assert "by the headers of neo4j-admin" in text


@pytest.mark.parametrize(
    "pair",
    [
        ("src", "dst"),
        ("src_id", "dst_id"),
        ("Source", "Target"),
        ("from", "to"),
        ("~from", "~to"),
        ("head", "tail"),
        ("u", "v"),
        ("sourceId", "targetId"),
        ("user_id", "item_id"),
    ],
)
def test_names_of_ends(store, pair):
    found, _ = guessed(store({"edges.parquet": {name: [5, 5, 7] for name in pair}}))
    relation = found["relations"]["edges"]
    assert [*relation["source"].values(), *relation["target"].values()] == list(pair)
    types = ["user", "item"] if pair[0] == "user_id" else ["node", "node"]
    assert [*relation["source"], *relation["target"]] == types
    assert found["vertices"] == {name: {} for name in types}


def test_ids_decide_between_types(store):
    found, text = guessed(
        store(
            {
                "a.parquet": {"id": [1, 2, 3]},
                "b.parquet": {"id": [11, 12, 13]},
                "c.parquet": {"id": ["1", "2", "3"]},
                "e.parquet": {"src": [11, 12], "dst": [3, 2]},
            }
        )
    )
    relation = found["relations"]["e"]
    assert relation["source"] == {"b": "src"}
    assert list(relation["target"]) == ["a"] or "# ? " in text


def test_two_types_that_fit_are_marked(store):
    _, text = guessed(
        store(
            {"a.parquet": {"id": [0, 1]}, "b.parquet": {"id": [0, 1]}, "e.parquet": {"src": [0], "dst": [1]}}
        )
    )
    assert "# ? or b" in text or "or b" in text


def test_text_that_is_numbers_meets_numbers(store):
    found, _ = guessed(
        store(
            {"v.parquet": {"id": [1, 2]}, "e.csv": "src;dst\n1;2\n", "f.tsv": "u\tv\n2\t1\n", "g.txt.gz": ""}
        )
    )
    assert found["relations"]["e"] == {
        "files": "e.csv",
        "format": {"csv": {"separator": ";"}},
        "source": {"v": {"column": "src", "as": "int"}},
        "target": {"v": {"column": "dst", "as": "int"}},
    }
    assert found["relations"]["f"]["source"] == {"v": {"column": "u", "as": "int"}}


def test_names_of_ogb(store):
    found, text = guessed(
        store(
            {
                "relations/author___writes___paper/edge.csv": "0,1\n0,2\n1,2\n",
                "relations/x/edge.csv": "0,1\n1,0\n",
            }
        )
    )
    assert found["relations"]["writes"] == {
        "files": "relations/author___writes___paper/",
        "format": {"csv": {"header": False}},
        "source": {"author": "column_1"},
        "target": {"paper": "column_2"},
    }
    assert "it has no header" in text


def test_leading_zeros_are_text(store):
    found, _ = guessed(store({"v.csv": "id,x\n007,1\n7,2\n", "e.csv": "src,dst\n007,7\n"}))
    assert found["vertices"]["v"]["id"] == "id"
    assert found["relations"]["e"]["source"] == {"v": "src"}


def test_triples(store):
    found, _ = guessed(store({"t.parquet": {"head": [1, 2], "relation": ["a", "b"], "tail": [2, 2]}}))
    assert found["relations"]["*"]["relation"] == "relation"


def test_many_columns_of_features_are_a_glob(store):
    columns = {f"f_{number}": [0.5, 1.0] for number in range(20)}
    found, _ = guessed(store({"v.parquet": {"id": [1, 2]} | columns, "e.parquet": {"src": [1], "dst": [2]}}))
    assert found["vertices"]["v"]["features"] == ["f_*"]


def test_what_is_left_out_is_said(store):
    text = guess(store({"x.parquet": {"a": [0.5]}, "bad.parquet": "no", "y.parquet": {"a": ["q", "q"]}}))
    assert "# left out: x.parquet: no column is unique" in text
    assert "# left out: bad.parquet: " in text
    assert "vertices: {}" in text
    assert "# ? no table of records was found" in text


def test_names_that_need_quotes(store):
    found, _ = guessed(
        store({"a b: c.parquet": {"my id": [1, 2], "no": [1, 1]}, "on.parquet": {"src": [1], "dst": [2]}})
    )
    assert list(found["vertices"]) == ["a_b_c"]
    assert list(found["relations"]) == ["on"]


def test_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        guess(tmp_path / "none")


@pytest.mark.parametrize(
    ("name", "found"),
    [("papers", "paper"), ("classes", "classe"), ("bus", "bus"), ("cities", "city"), ("class", "class")],
)
def test_singular(name, found):
    assert plain(name) == found


def test_the_verb(store, capsys, monkeypatch):
    folder = store({"t/v.parquet": {"id": ["a", "b"]}, "t/e.parquet": {"src": ["a", "b"], "dst": ["b", "b"]}})
    monkeypatch.chdir(folder)
    assert main(["ingest", "--guess", "t"]) == 0
    text = capsys.readouterr().out
    assert text == guess("t")
    assert main(["ingest", "--guess", "t", "-o", "schema.yaml"]) == 0
    assert "schema.yaml: look over" in capsys.readouterr().out
    assert (folder / "schema.yaml").read_text() == text
    assert main(["ingest", "--guess", "t", "-o", "schema.yaml"]) == 2
    assert "-o: schema.yaml exists" in capsys.readouterr().err
    assert main(["ingest", "schema.yaml", "-o", "graph", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["n"], facts["m"], [each["name"] for each in facts["relations"]]) == (2, 2, ["e"])
    assert main(["ingest", "schema.yaml", "-o", "graph", "--restart"]) == 0
    out = capsys.readouterr().out
    assert "graph: n = 2, m = 2, undirected" in out
    assert "2 edges from v to v" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["x.yaml"], "-o: name the folder"),
        (["t", "--guess", "--restart"], "--restart: leave it out, or --guess"),
        (["none.yaml", "-o", "g"], "none.yaml: No such file|none.yaml: no such file"),
    ],
)
def test_the_verb_refuses(store, capsys, monkeypatch, words, said):
    monkeypatch.chdir(store({"t/v.parquet": {"id": [1]}}))
    assert main(["ingest", *words]) != 0
    assert any(each in capsys.readouterr().err for each in said.split("|"))
