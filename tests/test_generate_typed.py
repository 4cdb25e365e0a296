"""Generated tables in the shape of ogbn-mag."""

import json

import msgspec
import numpy as np
import polars as pl
import pytest
import yaml

import fastpart as fp
from fastpart.cli import main
from fastpart.generate import tables, typed
from fastpart.graphs.ingest.catalog import VertexTable
from fastpart.graphs.ingest.catalog.requirements import features_of
from fastpart.graphs.ingest.columns import VertexColumns
from fastpart.graphs.ingest.schema import Schema
from fastpart.graphs.ingest.tables import open_table

SCALE = 0.002


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return typed(tmp_path_factory.mktemp("typed") / "mag", scale=SCALE, features=16).parent


@pytest.fixture(scope="module")
def frames(folder):
    return {name: pl.read_parquet(folder / name) for name in tables.TYPES | tables.RELATIONS}


def test_tables_have_the_shape_of_ogbn_mag(folder, frames):
    for name, n in (tables.TYPES | tables.RELATIONS).items():
        assert len(frames[name]) == round(n * SCALE)
        assert len(list((folder / name).glob("*.parquet"))) > 1
    told = json.loads((folder / "tables.json").read_text())
    assert told["types"] == {name: len(frames[name]) for name in tables.TYPES}
    assert told["relations"] == {name: len(frames[name]) for name in tables.RELATIONS}
    assert sorted(told["files"]) == sorted(
        str(each.relative_to(folder))
        for each in folder.rglob("*")
        if each.is_file() and each.name != "tables.json"
    )


def test_ids_are_text_and_distinct_and_ends_are_declared(frames):
    ids = {name: frames[name][f"{name}_id"] for name in tables.TYPES}
    for each in ids.values():
        assert each.dtype == pl.String
        assert each.n_unique() == len(each)
        assert not each.is_sorted()
    ends = {"citing": "paper", "cited": "paper"} | {f"{name}_id": name for name in tables.TYPES}
    for name in tables.RELATIONS:
        for end in frames[name].columns:
            assert frames[name][end].is_in(ids[ends[end]].implode()).all()


def test_venues_follow_the_relations_and_the_features(frames):
    paper = frames["paper"]
    venue = dict(zip(paper["paper_id"], paper["venue"], strict=True))
    year = dict(zip(paper["paper_id"], paper["year"], strict=True))
    cites = frames["cites"]
    same = [venue[u] == venue[v] for u, v in cites.iter_rows()]
    assert 0.75 < np.mean(same) < 0.9
    assert all(year[u] >= year[v] for u, v in cites.iter_rows())
    assert not (cites["citing"] == cites["cited"]).any()
    degrees = cites["cited"].value_counts()["count"]
    assert degrees.max() > 10 * degrees.median()
    emb = np.array(paper["emb"].to_list())
    assert paper["emb"].dtype == pl.List(pl.Float32)
    names = sorted(set(venue.values()))
    means = np.stack([emb[(paper["venue"] == name).to_numpy()].mean(axis=0) for name in names])
    nearest = np.argmin(((emb[:, None] - means[None]) ** 2).sum(axis=2), axis=1)
    right = np.mean([names[found] == name for found, name in zip(nearest, paper["venue"], strict=True)])
    assert 3 / len(names) < right < 0.95
    assert 0.9 < (emb - means[[names.index(name) for name in paper["venue"]]]).std() < 1.1


def test_the_same_seed_gives_the_same_bytes(folder, tmp_path):
    def content(root):
        return {str(each.relative_to(root)): each.read_bytes() for each in root.rglob("*") if each.is_file()}

    again = typed(tmp_path / "again", scale=SCALE, features=16, threads=1).parent
    assert content(again) == content(folder)
    other = typed(tmp_path / "other", scale=SCALE, features=16, seed=1).parent
    same = [name for name, each in content(other).items() if each == content(folder)[name]]
    assert same == ["schema.yaml"] or sorted(same) == ["schema.yaml", "tables.json"]


def test_rows_do_not_depend_on_how_they_are_cut(monkeypatch, tmp_path, frames):
    monkeypatch.setattr(tables, "_FILE_BYTES", 1 << 14)
    monkeypatch.setattr(tables, "_ROWS", 7)
    folder = typed(tmp_path / "cut", scale=SCALE, features=16).parent
    assert len(list((folder / "paper").glob("*"))) > 10
    for name, frame in frames.items():
        assert pl.read_parquet(folder / name).equals(frame)


def test_the_schema_is_valid_and_splits_like_ogbn_mag(folder, frames, tmp_path):
    schema = msgspec.convert(yaml.safe_load((folder / "schema.yaml").read_text()), Schema)
    assert set(schema.vertices) == set(tables.TYPES)
    assert set(schema.relations) == set(tables.RELATIONS)
    entry, n = schema.vertices["paper"], len(frames["paper"])
    reader = open_table("vertices.paper", entry.files, root=str(folder))
    features = features_of("vertices.paper", entry, reader, ["paper_id"])
    columns = VertexColumns(VertexTable("paper", entry, reader, "paper_id", "string", pl.String, features), n)
    surveys = [columns.survey(number) for number in range(len(reader.files))]
    columns.begin(tmp_path, surveys)
    first = 0
    for number, file in enumerate(reader.files):
        columns.write(tmp_path, number, np.arange(first, first + file.rows, dtype=np.uint32), 0, file.rows)
        first += file.rows
    told = columns.finish(tmp_path, surveys)
    assert told["features"]["width"] == 16
    years, splits = frames["paper"]["year"].to_numpy(), np.load(tmp_path / "split.npz")
    for name, valid in {"train": years <= 2017, "val": years == 2018, "test": years == 2019}.items():
        assert list(splits[name]) == list(np.flatnonzero(valid))
    venues = sorted(set(frames["paper"]["venue"]))
    assert np.load(tmp_path / "labels.npy").tolist() == [
        venues.index(each) for each in frames["paper"]["venue"]
    ]


def test_the_smallest_tables_and_no_features(tmp_path):
    folder = typed(tmp_path / "small", scale=1e-9, features=0).parent
    assert len(pl.read_parquet(folder / "paper")) == 1
    assert pl.read_parquet(folder / "paper").columns == ["paper_id", "venue", "year"]
    assert "emb" not in (folder / "schema.yaml").read_text()


def test_a_folder_of_others_is_refused_and_an_own_one_replaced(tmp_path):
    typed(tmp_path / "mag", scale=1e-4, features=1)
    with pytest.raises(FileExistsError, match=r"holds the column emb, which would be lost"):
        typed(tmp_path / "mag", scale=1e-4, features=0)
    typed(tmp_path / "mag", scale=1e-4, features=0, overwrite=True)
    (tmp_path / "mag" / "notes.txt").write_text("mine")
    with pytest.raises(fp.errors.ParameterError, match=r"notes\.txt"):
        typed(tmp_path / "mag", scale=1e-4)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="not a folder of generated tables"):
        typed(tmp_path / "other")
    for wrong in ({"scale": 0}, {"scale": 1e9}, {"features": -1}, {"seed": -1}):
        with pytest.raises(fp.errors.ParameterError, match=next(iter(wrong))):
            typed(tmp_path / "wrong", **wrong)


def test_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["generate", "typed", "mag/", "--scale", "1e-4", "--features", "2"]) == 0
    out = capsys.readouterr().out
    assert "types: author 113, field 6, institution 1, paper 74\n" in out
    assert "fastpart ingest mag/schema.yaml -o graph/" in out
    assert main(["generate", "typed", "mag", "--scale", "1e-4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["relations"]["affiliated"] == 104


def test_two_commands_make_a_graph(folder, frames, tmp_path):
    assert main(["ingest", str(folder / "schema.yaml"), "-o", str(tmp_path / "graph"), "-q"]) == 0
    graph = fp.open_graph(tmp_path / "graph" / "edges.bin")
    graph.identify()
    assert [each.name for each in graph.types] == sorted(tables.TYPES)
    assert [(each.name, each.source, each.target) for each in graph.relations] == [
        ("affiliated", "author", "institution"),
        ("cites", "paper", "paper"),
        ("has_topic", "paper", "field"),
        ("writes", "author", "paper"),
    ]
    numbers = {}
    for each in graph.types:
        ids = pl.read_parquet(tmp_path / "graph" / "ids" / f"{each.name}.parquet")
        assert ids["id"].to_list() == sorted(frames[each.name][f"{each.name}_id"])
        assert ids["vertex"].to_list() == list(each.range)
        numbers[each.name] = dict(ids.iter_rows())
    records = np.fromfile(tmp_path / "graph" / "edges.bin", np.uint32).reshape(-1, 2)
    for each in graph.relations:
        source, target = (
            ("citing", "cited") if each.name == "cites" else (f"{each.source}_id", f"{each.target}_id")
        )
        rows = zip(frames[each.name][source], frames[each.name][target], strict=True)
        expected = [[numbers[each.source][u], numbers[each.target][v]] for u, v in rows]
        assert records[each.range.start : each.range.stop].tolist() == expected
    papers = frames["paper"].sort("paper_id")
    columns = tmp_path / "graph" / "types" / "paper"
    np.testing.assert_array_equal(
        np.load(columns / "features.npy"), np.array(papers["emb"].to_list(), np.float32)
    )
    np.testing.assert_array_equal(np.load(columns / "times.npy"), papers["year"])
    venues = json.loads((columns / "categories.json").read_text())["venue"]["values"]
    assert [venues[code] for code in np.load(columns / "labels.npy")] == papers["venue"].to_list()
    assert np.load(columns / "split.npz")["val"].tolist() == np.flatnonzero(papers["year"] == 2018).tolist()
