"""Graph directories of strangers: names lead nowhere else, numbers are those of the files, and errors name the file."""

import json
import os
import shutil
from contextlib import nullcontext

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.graphs.graph_directory import GraphDirectory
from ingest_tables import plain, write
from json_damage import VALUES, check_all, check_version, is_refused, places, replaced
from soaked import examples

SKIP = (
    "version",
    "schema",
    "declared",
    "ids",
    "files",
    "nulls",
    "missing",
    "repeated",
    "without_row",
    "split",
)
"""Entries of graph.json that tell how the graph came about, and are not read."""

TOLD = (
    "column",
    "dtype",
    "first",
    "categories",
    "as",
    "of",
    "classes",
    "checksum",
    "width",
    "scale",
    "counts",
    "values",
)
"""Entries whose values are told, and cannot be compared with anything."""  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A directory of two types and two relations with all that it can have."""
    folder = tmp_path_factory.mktemp("made")
    papers = {"id": ["a", "b", "c"], "x": [1.0, 2, 3], "c": ["u", "v", "u"], "y": ["p", "q", "p"]}
    write(folder, "v", pl.DataFrame(papers | {"s": ["train", "val", "test"], "t": [1, 2, 3]}))
    write(folder, "w", pl.DataFrame({"id": [20, 10, 30]}))
    write(
        folder,
        "e",
        pl.DataFrame({"f": ["a", "b", "c"], "t": ["b", "c", "a"], "w": [1.0, 2, 3], "time": [1, 2, 3]}),
    )
    write(folder, "r", pl.DataFrame({"f": [10, 20], "t": ["b", "c"], "x": [1.0, 2]}))
    features = ["x", {"column": "c", "as": "onehot"}]
    paper = {"files": "v/", "id": "id", "features": features, "label": "y", "split": "s", "time": "t"}
    cites = {"files": "e/", "source": {"paper": "f"}, "target": {"paper": "t"}, "weight": "w", "time": "time"}
    writes = {"files": "r/", "source": {"author": "f"}, "target": {"paper": "t"}, "features": ["x"]}
    schema = {
        "root": str(folder),
        "vertices": {"paper": paper, "author": {"files": "w/", "id": "id"}},
        "relations": {"cites": cites, "writes": writes},
    }
    fp.ingest(schema, folder / "graph")
    return folder / "graph"


@pytest.fixture
def folder(made, tmp_path):
    shutil.copytree(made, tmp_path / "graph")
    return tmp_path / "graph"


def facts(folder):
    """Open a directory, and return what decides a result."""
    graph, directory = fp.open_graph(folder), GraphDirectory.of(folder)
    assert all(each["name"] for each in directory.features)
    table = fp.store.restore(np.arange(3), graph=folder, of_type="paper")
    return (
        graph.types, graph.relations, graph.num_vertices, graph.num_edges, graph.directedness, graph.identify(),
        list(directory.types.items()), list(directory.relations), directory.shards,
        [list(each) for each in directory.vocabularies()], table["id"].to_list(),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["graph.json", "edges.bin.json", "types/paper/categories.json"])
def test_every_value_is_checked(folder, name):
    check_all(folder / name, lambda: facts(folder), (*SKIP, *TOLD))


@pytest.mark.parametrize("name", ["graph.json", "edges.bin.json"])
def test_newer_versions_are_refused(folder, name):
    check_version(folder / name, lambda: facts(folder), "fastpart", 1)


@examples(25)
@given(st.data())
def test_whatever_replaces_a_value_is_refused_or_changes_nothing(made, data):
    name = data.draw(st.sampled_from(["graph.json", "edges.bin.json"]))
    whole = (made / name).read_bytes()
    content = json.loads(whole)
    place = data.draw(st.sampled_from([each for each in places(content) if not {*each} & {*SKIP, *TOLD}]))
    intact = facts(made)
    try:
        (made / name).write_text(json.dumps(replaced(content, place, data.draw(VALUES))))
        is_refused(made / name, lambda: facts(made), intact)
    finally:
        (made / name).write_bytes(whole)


VERBS = {
    "open": fp.open_graph,
    "restore": lambda folder: fp.store.restore(np.arange(6), folder.parent / "out", graph=folder),
    "restore one": lambda folder: fp.store.restore(
        np.arange(3), folder.parent / "o.csv", graph=folder, of_type="paper"
    ),
    "vocabulary": lambda folder: fp.ingest(
        plain(folder.parent / "new", ["a"], [("a", "a")]), folder.parent / "two", vocabulary=folder
    ),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", ["../../evil", "/tmp/evil", "..", "paper\n", "", "a/b"])
def test_names_of_types_lead_nowhere(folder, verb, name):
    """Row 122: the name of a type was a path, to write to and to read ids from."""
    victim = folder.parent.parent / "evil.parquet"
    for file in ("graph.json", "edges.bin.json"):
        content = json.loads((folder / file).read_text())
        for entry in (*content["types"], *content["relations"]):
            for key in ("name", "source", "target"):
                if entry.get(key) == "author":
                    entry[key] = name
        (folder / file).write_text(json.dumps(content))
    victim.write_text("mine")
    with pytest.raises(fp.errors.GraphFormatError, match=r"graph\.json"):
        VERBS[verb](folder)
    assert victim.read_text() == "mine"
    victim.unlink()


def saved(folder):
    fp.VertexPartition([0, 0, 0, 1, 1, 1], 2).save(folder.parent / "parts", graph=fp.open_graph(folder))


READERS = {
    "ids/paper.parquet": VERBS["restore"],
    "ids": VERBS["restore"],
    "edges.bin": fp.open_graph,
    "edges.bin.json": fp.open_graph,
    "edges.bin.weights.npy": fp.open_graph,
    "graph.json": fp.open_graph,
    "types/paper/features.npy": saved,
    "types/paper": saved,
    "relations/writes/features.npy": saved,
    "edges.bin.times.npy": saved,
    "types/paper/categories.json": lambda folder: GraphDirectory.of(folder).vocabularies(),
}


@pytest.mark.parametrize("name", READERS)
def test_links_that_lead_out_are_refused(folder, name):
    outside = folder.parent / "outside"
    shutil.move(folder / name, outside)
    (folder / name).symlink_to(outside)
    with pytest.raises(fp.errors.GraphFormatError, match=rf"{name}.*: leads out of the graph directory"):
        READERS[name](folder)
    (folder / name).unlink()
    shutil.move(outside, folder / name)
    os.rename(folder, folder.parent / "moved")
    folder.symlink_to("moved")  # the directory itself may be reached by a link
    READERS[name](folder)


def test_a_file_of_another_size_is_refused(folder):
    (folder / "edges.bin").write_bytes((folder / "edges.bin").read_bytes() * 2)
    (folder / "edges.bin.weights.npy").unlink()
    for file in (folder, folder / "edges.bin"):
        with (
            pytest.warns(fp.errors.GraphWarning) if file.name == "edges.bin" else nullcontext(),
            pytest.raises(
                fp.errors.GraphFormatError, match=r"edges\.bin has 80 bytes, but edges\.bin\.json says 5 "
            ),
        ):
            fp.open_graph(file)


def test_a_directory_without_sidecar_is_refused(folder):
    (folder / "edges.bin.json").unlink()
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"incomplete graph directory, without edges\.bin\.json"
    ):
        fp.open_graph(folder)


def test_graph_json_of_another_program_is_not_ours(tmp_path):
    (tmp_path / "graph.json").write_text('{"nodes": 3}')
    np.array([[0, 1]], np.uint32).tofile(tmp_path / "edges.bin")
    assert fp.open_graph(tmp_path / "edges.bin").directory is None
