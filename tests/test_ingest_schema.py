"""Schemas: read from each format, and refused with the entry that is wrong."""

import json

import polars as pl
import pytest
import yaml

from fastpart.errors import ParameterError
from fastpart.graphs.ingest.documents import read_schema
from fastpart.graphs.ingest.schema import Column, Key, Rates, Relation, Schema, Vertices

MAG = """\
fastpart: 1
root: lake
vertices:
  paper:
    files: papers/*.parquet
    id: paper_id
    features: [emb, "f_*", {column: country, as: category}, {column: age, fill: 0, standardise: true}]
    label: venue
    time: year
    split: {by: time, train: 0.8, val: 0.1, test: 0.1}
  author: {files: authors/, id: {column: author_id, as: string}}
  institution: {files: institutions.csv, id: ror, format: {csv: {separator: ";"}}}
  field: {}
relations:
  writes:     {files: writes/*.parquet, source: {author: author_id}, target: {paper: paper_id}}
  cites:      {files: cites/*.parquet, source: {paper: citing}, target: {paper: cited}, time: year, missing: drop}
  has_topic:  {files: [topics/a, topics/b], source: {paper: p}, target: {field: f}, weight: score, missing: add}
  affiliated: {files: affil/*.parquet, source: {author: author_id}, target: {institution: ror}, features: [since]}
"""


def as_toml(value):
    """Write nested mappings as inline tables."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {as_toml(each)}" for key, each in value.items()) + "}"
    return "[" + ", ".join(map(as_toml, value)) + "]" if isinstance(value, list) else json.dumps(value)


def written(folder, text, suffix=".yaml"):
    file = folder / f"schema{suffix}"
    content = yaml.safe_load(text)
    if suffix == ".json":
        text = json.dumps(content)
    elif suffix == ".toml":
        text = "\n".join(f"{key} = {as_toml(value)}" for key, value in content.items())
    file.write_text(text)
    return file


@pytest.mark.parametrize("suffix", [".yaml", ".yml", ".json", ".toml", "dict"])
def test_all_formats_say_the_same(tmp_path, suffix):
    if suffix == "dict":
        schema, root = read_schema(yaml.safe_load(MAG))
        assert root == "lake"
    else:
        schema, root = read_schema(written(tmp_path, MAG, suffix))
        assert root == str(tmp_path / "lake")
    assert list(schema.vertices) == ["author", "field", "institution", "paper"]
    assert list(schema.relations) == ["affiliated", "cites", "has_topic", "writes"]
    paper = schema.vertices["paper"]
    assert paper.split == Rates(by="time", train=0.8, val=0.1, test=0.1)
    assert paper.features == [
        "emb",
        "f_*",
        Column(column="country", as_="category"),
        Column(column="age", fill=0, standardise=True),
    ]
    assert schema.vertices["author"].id == Key(column="author_id", as_="string")
    assert schema.vertices["institution"].format.csv.separator == ";"
    assert schema.relations["has_topic"].files == ["topics/a", "topics/b"]
    assert schema.relations["cites"].missing == "drop"
    assert read_schema(schema)[0] is schema


@pytest.mark.parametrize(
    ("root", "found"),
    [(None, "{folder}"), ("a/b", "{folder}/a/b"), ("/a", "/a"), ("s3://lake/mag/", "s3://lake/mag/")],
)
def test_root(tmp_path, root, found):
    content = yaml.safe_load(MAG) | {"root": root}
    assert read_schema(written(tmp_path, yaml.safe_dump(content)))[1] == found.format(folder=tmp_path)


def test_frames_are_files():
    frame = pl.DataFrame({"a": [1], "b": [2]})
    schema, root = read_schema(
        {
            "vertices": {"v": {}},
            "relations": {"r": {"files": frame, "source": {"v": "a"}, "target": {"v": "b"}}},
        }
    )
    assert schema.relations["r"].files is frame
    assert root == "."


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "missing: drop",
            "missing: skip",
            r"relations\.cites\.missing: unknown value 'skip'\. Valid values are error, drop, add$",
        ),
        (
            "missing: drop",
            "reverse: both",
            r"relations\.cites\.reverse: unknown value 'both'\. Valid values are true, false, merged$",
        ),
        (
            "as: category",
            "as: word",
            r"vertices\.paper\.features\[2\]\.as: unknown value 'word'.*onehot, embedding, code, days, category$",
        ),
        ("id: paper_id", "ids: paper_id", r"vertices\.paper: unknown key 'ids'.*Did you mean 'id'\?"),
        (
            "separator:",
            "seperator:",
            r"vertices\.institution\.format\.csv: unknown key.*Did you mean 'separator'",
        ),
        ("as: category", "is: category", r"vertices\.paper\.features\[2\]: unknown key 'is'"),
        (
            "source: {paper: citing}",
            "source: {paper: 3}",
            r"relations\.cites\.source.*expected.*text.*Quote it",
        ),
        ("source: {paper: citing}", "source: {no: x}", "source: False is no text. Quote it"),
        (
            "source: {paper: citing}",
            "source: {}",
            r"relations\.cites\.source: expected one type and its column",
        ),
        (
            "source: {paper: citing}",
            "source: {papr: citing}",
            r"no type 'papr'\. Did you mean 'paper'\? If .*add `papr: {}`",
        ),
        ("source: {paper: citing}, ", "", r"relations\.cites: `source` is missing"),
        ("fastpart: 1", "fastpart: 2", "fastpart: 2 is newer"),
        ("fastpart: 1", "fastpart: one", "fastpart: 'one' is no version"),
        ("root: lake", "rot: lake", "unknown key 'rot'.*Did you mean 'root'"),
        ("  cites: ", "  no: ", "relations: a name is written as `no`.*Quote it"),
        ("  cites: ", "  7: ", "relations: a name is written as `7`.*Quote it"),
        ("  cites: ", '  "a/b": ', "relations: 'a/b' is no name"),
        ("  cites: ", "  .git: ", "relations: '.git' is no name"),
        ("  cites: ", "  writes: ", "yaml: line 16: 'writes' is already a key in line 15"),
        ("train: 0.8", "train: 8", r"vertices\.paper\.split\.train: expected a number <= 1"),
        ("train: 0.8", "train: 0.9", r"vertices\.paper\.split: the shares add up to 1\.1"),
        ("    time: year\n", "", r"vertices\.paper\.split: `by: time` needs the column of the time"),
        ("label: venue", "label: no", r"vertices\.paper\.label: expected text, got true or false\. Quote it"),
        ("files: authors/, ", "", r"vertices\.author\.id: it needs a table"),
        ("id: ror, ", "", r"vertices\.institution\.id: name the column"),
        ('separator: ";"', 'separator: "::"', "separator: expected one ASCII character"),
        ("weight: score", "weight: score, reverse: merged", r"has_topic\.reverse: only edges between"),
        ("weight: score", "weight: score, relation: p", r"has_topic\.relation: .*Only the relation `\*`"),
        (
            "  field: {}",
            "  field: {}\n  other: {}",
            r"vertices\.other: it has no files, and no relation names it",
        ),
        ("files: writes/*.parquet, ", "", r"relations\.writes\.files: name the files"),
        ("vertices:", "vertices: [", "line 4: not YAML|not YAML"),
    ],
)
def test_refused_with_the_entry(tmp_path, old, new, said):
    assert old in MAG
    file = tmp_path / "schema.yaml"
    file.write_text(MAG.replace(old, new, 1))
    with pytest.raises(ParameterError, match=said) as error:
        read_schema(file)
    assert str(error.value).startswith(f"{file}: ")
    assert "msgspec" not in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("s.yaml", b"- 1", "expected the keys `vertices` and `relations`, got a list"),
        ("s.yaml", b"", "got nothing"),
        ("s.yaml", b"vertices: {}", "relations: there are none"),
        ("s.yaml", b"vertices: []", "vertices: expected a mapping of names to entries, got a list"),
        ("s.yaml", b"relations: {a: 3}", r"relations\.a: expected a mapping, got a whole number"),
        ("s.yaml", b"\xff", "line 1 is not UTF-8"),
        ("s.yaml", b"a: !!python/object:x {}", "not YAML"),
        ("s.json", b"{", "not JSON: .*line 1"),
        ("s.toml", b"a = \nb = 3", "not TOML: .*line 1"),
        ("s.txt", b"", r"does not end with one of \.yaml"),
    ],
)
def test_documents_refused(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ParameterError, match=said):
        read_schema(tmp_path / name)


def test_what_is_no_schema(tmp_path):
    with pytest.raises(TypeError, match="schema: expected a path or a dict, got int"):
        read_schema(3)
    with pytest.raises(FileNotFoundError):
        read_schema(tmp_path / "none.yaml")
    with pytest.raises(ParameterError, match="there are none"):
        read_schema(Schema(vertices={"a": Vertices()}, relations={}))
    relation = Relation(files="x", source={"a": "s"}, target={"b": "t"})
    with pytest.raises(ParameterError, match="no type 'b'"):
        read_schema(Schema(vertices={"a": Vertices()}, relations={"r": relation}))


# Configurations of GraphStorm.

GCONSTRUCT = {
    "version": "gconstruct-v0.1",
    "nodes": [
        {
            "node_type": "paper",
            "format": {"name": "parquet"},
            "files": "paper.parquet",
            "node_id_col": "node_id",
            "features": [
                {"feature_col": "embedding"},
                {"feature_col": ["country"], "transform": {"name": "to_categorical"}},
                {"feature_col": "age", "transform": {"name": "standard"}},
            ],
            "labels": [{"label_col": "venue", "task_type": "classification", "split_pct": [0.8, 0.1, 0.1]}],
        }
    ],
    "edges": [
        {
            "relation": ["paper", "citing", "paper"],
            "format": {"name": "csv", "separator": "\t"},
            "files": ["a.csv", "b.csv"],
            "source_id_col": "s",
            "dest_id_col": "d",
            "labels": [
                {"label_col": "intent", "task_type": "classification", "split_pct": [0.5, 0.25, 0.25]},
                {"task_type": "link_prediction", "split_pct": [0.8, 0.1, 0.1]},
            ],
        },
        {"relation": ["author", "of", "paper"], "files": "x/", "source_id_col": "s", "dest_id_col": "d"},
        {"relation": ["editor", "of", "paper"], "files": "y/", "source_id_col": "s", "dest_id_col": "d"},
    ],
}

GSPROCESSING = {
    "version": "gsprocessing-v1.0",
    "graph": {
        "nodes": [
            {
                "data": {"format": "csv", "files": ["m.csv"], "separator": ","},
                "type": "movie",
                "column": "~id",
                "features": [
                    {"column": "genre", "transformation": {"name": "categorical"}},
                    {
                        "column": "x",
                        "transformation": {"name": "numerical", "kwargs": {"normalizer": "standard"}},
                    },
                ],
                "labels": [
                    {"column": "hit", "type": "classification", "split_rate": {"train": 0.7, "test": 0.3}}
                ],
            }
        ],
        "edges": [
            {
                "data": {"format": "parquet", "files": ["e/"]},
                "source": {"column": "~from", "type": "user"},
                "relation": {"type": "rated"},
                "dest": {"column": "~to", "type": "movie"},
                "labels": [{"column": "", "type": "link_prediction", "split_rate": {"train": 1}}],
            }
        ],
    },
}


def test_gconstruct(tmp_path):
    (tmp_path / "gs.json").write_text(json.dumps(GCONSTRUCT))
    schema, root = read_schema(tmp_path / "gs.json")
    assert root == str(tmp_path)
    assert list(schema.vertices) == ["author", "editor", "paper"]
    assert list(schema.relations) == ["author-of-paper", "citing", "editor-of-paper"]
    paper = schema.vertices["paper"]
    assert (paper.id, paper.label) == ("node_id", "venue")
    assert paper.split == Rates(by="random", train=0.8, val=0.1, test=0.1)
    assert [each.as_ for each in paper.features] == ["number", "onehot", "number"]
    assert [each.standardise for each in paper.features] == [False, False, True]
    citing = schema.relations["citing"]
    assert (citing.files, citing.source, citing.target) == (
        ["a.csv", "b.csv"],
        {"paper": "s"},
        {"paper": "d"},
    )
    assert citing.format.csv.separator == "\t"
    assert (citing.label, citing.split) == (
        "intent",
        Rates(by="random", train=0.5, val=0.25, test=0.25),
    )


def test_gsprocessing():
    schema, _ = read_schema(GSPROCESSING)
    assert schema.vertices["movie"].split == Rates(by="random", train=0.7, val=0, test=0.3)
    assert [(each.column, each.as_, each.standardise) for each in schema.vertices["movie"].features] == [
        ("genre", "onehot", False),
        ("x", "number", True),
    ]
    assert schema.relations["rated"].source == {"user": "~from"}
    assert schema.relations["rated"].files == ["e/"]
    assert (schema.relations["rated"].label, schema.relations["rated"].split) == (None, None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c["nodes"][0].pop("node_id_col"), r"nodes\[0\]: 'node_id_col' or 'column' is missing"),
        (lambda c: c["edges"][0].update(relation="x"), r"edges\[0\]\.relation: expected \[source"),
        (lambda c: c["edges"][0].update(format={"name": "hdf5"}), "the format 'hdf5' is not read"),
        (
            lambda c: c["nodes"][0]["features"][0].update(transform={"name": "bert_hf"}),
            "the transformation 'bert_hf' of 'embedding' is not known",
        ),
        (lambda c: c["nodes"][0]["labels"].append({}), "only one label"),
        (lambda c: c["edges"][0]["labels"].append({}), r"edges\[0\]\.labels: only one label"),
        (lambda c: c["nodes"].append(c["nodes"][0]), "the type 'paper' has two entries"),
        (lambda c: c["nodes"][0]["labels"][0].update(custom_split_filenames={}), "splits by files"),
    ],
)
def test_graphstorm_refused(change, said):
    content = json.loads(json.dumps(GCONSTRUCT))
    change(content)
    with pytest.raises(ParameterError, match=said):
        read_schema(content)
