"""Guessed schemas: what a folder of tables seems to hold, as YAML that an ingest takes."""

import json
from datetime import date

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


def test_relations_with_labels(store):
    rates = {"src": ["a", "b"], "dst": ["x", "x"], "label": ["good", "bad"], "fold": ["train", "test"]}
    found, text = guessed(store({"rates.parquet": rates | {"val_mask": [True, False]}}))
    relation = found["relations"]["rates"]
    assert (relation["label"], relation["split"]) == ("label", "fold")
    assert "features" not in relation
    assert "# ? split: one column that holds train, val or test, for val_mask" in text
    few = {"src": ["a", "b", "a"], "dst": ["x", "x", "y"], "kind": ["u", "v", "u"]}
    assert "label:" not in guessed(store({"rates.parquet": few}))[1]


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
    assert "# ? left out: x.parquet: it has one row, and no column that is called an id" in text
    assert "# ? left out: bad.parquet: " in text
    assert "vertices: {}" in text
    assert "# ? no table of records was found" in text


def test_links_are_left_out(store, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    pl.DataFrame({"id": [1, 2]}).write_parquet(other / "x.parquet")
    folder = store({"user.parquet": {"id": [1, 2], "age": [3, 4]}})
    (folder / "again").symlink_to(".")
    (folder / "more").symlink_to(other)
    (folder / "more.parquet").symlink_to(other / "x.parquet")
    text = guess(folder)
    assert list(yaml.safe_load(text)["vertices"]) == ["user"]
    for name in ("again", "more", "more.parquet"):
        assert f"# ? left out: {name}: a link. Name in `files` what it leads to" in text


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
    assert "schema.yaml: no line is in doubt. Next: `fastpart ingest schema.yaml -o graph/`" in (
        capsys.readouterr().out
    )
    assert (folder / "schema.yaml").read_text() == text
    for out in (None, "again.yaml"):
        assert main(["ingest", "--guess", "t", "--json", *(["-o", out] if out else [])]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts == {"out": out, "in_doubt": False, "schema": text}
    assert main(["ingest", "--guess", "t", "-o", "schema.yaml"]) == 2
    assert "-o: schema.yaml exists" in capsys.readouterr().err
    assert main(["ingest", "schema.yaml", "-o", "graph", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["n"], facts["m"], [each["name"] for each in facts["relations"]]) == (2, 2, ["e"])
    assert main(["ingest", "schema.yaml", "-o", "graph", "--restart"]) == 0
    out = capsys.readouterr().out
    assert "graph: n = 2, m = 2, undirected" in out
    assert "2 edges from v to v" in out


COUNTRIES = ["DE", "AT", "CH"]
USERS = {
    "user_id": [f"u{number:02}" for number in range(40)],
    "company_id": [number % 9 for number in range(40)],
    "country": [COUNTRIES[number % 3] for number in range(39)] + [None],
    "plan": ["free", "pro"] * 20,
    "age": [None, *range(39)],
    "score": [0.5, None] * 20,
    "tags": [["a", "b"][: number % 3] for number in range(40)],
    "bio": [f"about {number}" for number in range(40)],
    "signup": [date(2020, 1, 1 + number % 28) for number in range(40)],
    "seen": [date(2021, 1, 1 + number % 28) for number in range(40)],
}
BOUGHT = {
    "user_id": [f"u{number % 40:02}" for number in range(60)],
    "product_id": [number % 7 for number in range(60)],
    "how": ["card", "cash"] * 30,
    "count": [number % 4 for number in range(60)],
}


def test_columns_of_use_are_proposed(store):
    found, text = guessed(store({"users.parquet": USERS, "bought.parquet": BOUGHT}))
    assert found["vertices"]["user"]["features"] == [
        {"column": "country", "as": "onehot", "fill": "unknown"},
        {"column": "plan", "as": "onehot"},
        {"column": "age", "fill": 0},
        {"column": "score", "fill": 0},
        {"column": "tags", "as": "onehot"},
        {"column": "seen", "as": "days", "standardise": True},
    ]
    assert "# not used: company_id (whole numbers), bio (text)" in text
    assert "# ? label: company_id" not in text
    assert "# ? label: country, or plan. Then take it out of the features" in text
    assert "- {column: age, fill: 0}    # ? 1 of 40 rows lack it" in text
    assert found["relations"]["bought"]["features"] == ["count", {"column": "how", "as": "onehot"}] or (
        found["relations"]["bought"]["features"] == [{"column": "how", "as": "onehot"}, "count"]
    )
    assert "# ? or as: onehot, of 4 values" in text


def test_what_a_training_and_an_ingest_would_refuse_is_proposed(store):
    ids = [None, None, *BOUGHT["user_id"][2:]]
    folder = store({"in/users.parquet": USERS, "in/bought.parquet": BOUGHT | {"user_id": ids}})
    found, text = guessed(folder / "in")
    assert found["relations"]["bought"]["nulls"] == "drop"
    assert "# ? 2 of 60 rows lack an id" in text
    assert text.count("# ? split: {by: random, train: 0.8, val: 0.1, test: 0.1}") == 1
    folds = ["train", "val"] * 20
    found, text = guessed(
        store({"on/users.parquet": USERS | {"fold": folds}, "on/bought.parquet": BOUGHT}) / "on"
    )
    assert found["vertices"]["user"]["split"] == "fold"
    assert "nulls" not in text
    assert "# ? split" not in text


@pytest.mark.parametrize("differing", [False, True])
def test_a_table_with_repeated_rows_is_kept(store, capsys, monkeypatch, differing):
    users = pl.DataFrame(USERS)
    again = users[:7].with_columns(plan=pl.lit("other")) if differing else users[:7]
    folder = store({"in/users.parquet": pl.concat([users, again]).to_dict(), "in/bought.parquet": BOUGHT})
    found, text = guessed(folder / "in")
    user = found["vertices"]["user"]
    assert (user["id"], user["duplicates"]) == ("user_id", "first")
    what = "rows have an id that came before" if differing else "rows are equal to an earlier one"
    assert f"# ? 7 of {'the first ' if differing else ''}47 {what}" in text
    assert found["relations"]["bought"]["source"] == {"user": "user_id"}
    monkeypatch.chdir(folder)
    assert main(["ingest", "--guess", "in", "-o", "schema.yaml"]) == 0
    assert "look over the lines with `# ?`" in capsys.readouterr().out
    assert main(["ingest", "schema.yaml", "-o", "graph", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["types"][1]["n"] == 40


def test_a_column_of_classes_is_no_type(store):
    """Repeated values of a single column are no repeated rows of a table of vertices."""
    text = guess(store({"classes.csv": "c\n" + "a\nb\n" * 20, "edges.csv": "src,dst\n1,2\n"}))
    assert "# ? left out: classes.csv: no column is unique" in text


def test_what_is_left_out_is_said_aloud(store, caplog):
    with caplog.at_level("INFO", "fastpart"):
        text = guess(store({"e.parquet": {"src": [1, 2], "dst": [2, 2]}, "bad.parquet": "no"}))
    assert "left out bad.parquet: not a Parquet file" in caplog.text
    assert "# ? left out: bad.parquet: not a Parquet file" in text
    assert "`# ?`" in text.split("\n")[0]


def test_the_raw_folder_of_ogb(store):
    ids = "".join(f"{number},{(7 * number) % 10}\n" for number in range(10))
    tables = {
        "raw/edge.csv": ids,
        "raw/node-feat.csv": "0.5,1.5\n" * 10,
        "raw/node-label.csv": "0\n1\n" * 5,
        "raw/num-node-list.csv": "10\n",
        "raw/num-edge-list.csv": "10\n",
        **{
            f"split/time/{name}.csv": "".join(f"{n}\n" for n in rows)
            for name, rows in (("train", range(6)), ("valid", range(6, 8)), ("test", range(8, 10)))
        },
    }
    found, text = guessed(store(tables))
    assert found["vertices"] == {"node": {}}
    assert found["relations"]["edge"]["source"] == {"node": "column_1"}
    assert "left out: raw/num-node-list.csv: it has one row" in text
    assert "left out: split/time/train.csv: a list of ids, as of a split" in text
    assert "left out: raw/node-feat.csv: no column is unique" in text
    assert "If row i belongs to vertex i, add a column with these numbers" in text


def test_the_raw_folder_of_an_ogb_graph_with_types(store):
    folder = "raw/relations/author___writes___paper"
    tables = {f"{folder}/edge.csv": "0,1\n0,2\n1,2\n", f"{folder}/num-edge-list.csv": "3\n"}
    found, _ = guessed(store(tables | {"raw/num-node-dict.csv": "author,paper\n2,3\n"}))
    assert found["vertices"] == {"author": {}, "paper": {}}
    assert found["relations"]["writes"]["target"] == {"paper": "column_2"}


def test_masks_are_no_features(store):
    masks = {f"{name}_mask": [True, False, False] for name in ("train", "val", "test")}
    found, text = guessed(
        store({"v.parquet": {"id": [1, 2, 3], "x": [0.5, 1.0, 2.0]} | masks, "e.csv": "src,dst\n1,2\n"})
    )
    assert found["vertices"]["v"]["features"] == ["x"]
    assert "# ? split: one column that holds train, val or test, for train_mask, val_mask, test_mask" in text


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
