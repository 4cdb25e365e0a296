"""What takes typed graphs and their directories, and what refuses them by name with a remedy."""

import json

import numpy as np
import pytest

import fastpart as fp
from fastpart.cli import main
from typed_graphs import Typed, authors


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A directory with features, labels and splits of two types."""
    return authors().saved(
        tmp_path_factory.mktemp("typed"),
        features={"paper": np.eye(4, dtype=np.float32), "author": np.ones((3, 2), np.float32)},
        labels={"paper": [0, 1, 0, 1]},
        splits={"paper": {"train": [0, 1], "test": [2]}, "author": {"train": [2]}},
    )


REFUSED = {
    "glt": lambda p, out: fp.export.glt(p.folder, out / "glt"),
}


def graph_of(stored):
    return fp.open_graph(stored.folder.parent / "g.bin")


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name(stored, tmp_path, name):
    with pytest.raises(fp.errors.ParameterError, match="types"):
        REFUSED[name](stored, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.torch
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda p, out: fp.train.full(p.folder, out=out / "run"),
            r"source: .* have no features, and learned rows are kept by the workers of a partition",
        ),
        (
            lambda p, out: fp.train.sampled(p.folder, out=out / "run", workers=1),
            "model: the graph has types, and graphsage is not for such graphs",
        ),
        (
            lambda p, out: fp.train.links(p.folder, out=out / "run"),
            "source: .* holds no edge splits",
        ),
        (
            lambda p, _: p.loader("train", fanouts=[2]),
            "input: author, paper have a split 'train'. Name one",
        ),
        (
            lambda p, _: p.link_loader([[0, 5]], fanouts=[2]),
            "relation: the graph has .* Name the relation of the edges",
        ),
        (
            lambda p, _: p.plan(1, fanouts=[2]),
            "input: author, paper have a split 'train'. Name one",
        ),
    ],
)
def test_training_is_refused_before_it_starts(stored, tmp_path, call, message):
    with pytest.raises(fp.errors.ParameterError, match=message):
        call(stored, tmp_path)


@pytest.mark.torch
def test_batches_of_all_types_have_all_edges(stored):
    graph = authors()
    ids = []
    for name, n in graph.types:
        seeds = np.array(graph.range_of(name), np.int64)
        for batch in stored.loader(seeds, fanouts=[-1], batch_size=max(n, 1), input=name):
            assert set(batch.x_dict) == {"author", "paper"}
            ids += [edge for of_relation in batch.e_id_dict.values() for edge in of_relation.tolist()]
    assert sorted(ids) == sorted(id for _, _, id, _, _ in graph.edges())


def test_what_trains_on_one_type_asks_for_it(stored):
    for call in (fp.predict_traffic, lambda p, fanouts: p.save_cache(0.1, fanouts=fanouts)):
        with pytest.raises(fp.errors.ParameterError, match="input: author, paper have a split 'train'"):
            call(stored, [2])


@pytest.mark.parametrize(("input", "train"), [("author", [2]), ("paper", [5, 6])])
def test_traffic_knows_the_directions_of_relations(stored, input, train):
    graph = authors()
    for given in (stored, stored.folder):
        found = fp.predict_traffic(given, [-1], batch_size=99, input=input, row_bytes=1)
        assert found.parts["seeds"].sum() == len(train)
        rows = [
            {
                u
                for *_, u, v in graph.edges()
                if v in train and graph.parts[v] == part and graph.parts[u] != part
            }
            for part in range(graph.k)
        ]
        assert found.parts["remote_rows"].to_list() == [len(each) for each in rows]
    given = {"graph": graph_of(stored), "splits": {"train": [2, 5, 6]}, "input": input}
    again = fp.predict_traffic(stored.assignment, [-1], 99, **given)
    assert again.parts["remote_rows"].to_list() == found.parts["remote_rows"].to_list()


def test_refine_edges_of_and_wholegraph_take_them(stored, tmp_path):
    graph = graph_of(stored)
    p = fp.refine(graph, stored)
    p.save(tmp_path / "parts")
    assert fp.open_partition(tmp_path / "parts").manifest["schema"] == 4
    assert fp.edges_of(graph, stored).of == "edges"


def test_update_takes_the_same_ranges_only(stored, tmp_path):
    p = fp.update(graph_of(stored), stored.folder, balance=1.5)
    p.save(tmp_path / "parts")
    graph = authors()
    types = [(name, n + (name == "field")) for name, n in graph.types]
    grown = Typed(types, graph.relations).graph(tmp_path)
    with pytest.raises(fp.errors.ParameterError, match="its types have other numbers of vertices"):
        fp.update(grown, stored.folder)
    with pytest.raises(fp.errors.ParameterError, match="its types have other numbers of vertices"):
        fp.update(grown, stored.assignment)


def test_an_update_in_place_keeps_unchanged_files(stored, tmp_path):
    graph = graph_of(stored)
    rows = {"features": {"paper": np.eye(4, dtype=np.float32)}}
    stored.save(tmp_path / "parts", graph=graph, **rows)
    file = tmp_path / "parts/part-00000/types/paper/features.npy"
    before = file.stat().st_ino
    p = fp.update(graph, tmp_path / "parts", moves=0, balance=2.0)
    p.save(tmp_path / "parts", **rows)
    assert fp.open_partition(tmp_path / "parts").manifest["changed_parts"] == []
    assert file.stat().st_ino == before


def test_text_has_a_file_for_each_type(stored, tmp_path):
    out = fp.export.text(stored.folder, tmp_path / "text")
    graph = authors()
    for name, _ in graph.types:
        parts = [int(line) for line in (out / f"{name}.txt").read_text().splitlines()]
        assert parts == [graph.parts[v] for v in graph.range_of(name)]
    assert not (out / "_N.txt").exists()


# The directory of a graph.


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """Graph directories that ingest wrote: of several types, and of one."""
    import polars as pl

    folder = tmp_path_factory.mktemp("lake")
    papers = {
        "id": ["p", "q", "r"],
        "x": [1.0, 2.0, 3.0],
        "y": [0, 1, 0],
        "at": [5, 6, 7],
        "s": ["train", "val", "test"],
    }
    pl.DataFrame(papers).write_parquet(folder / "papers.parquet")
    pl.DataFrame({"id": ["a", "b"]}).write_parquet(folder / "authors.parquet")
    writes = {"a": ["a", "b", "b"], "p": ["p", "q", "r"], "w": [0.5, 1.5, 2.5], "at": [3, 4, 5]}
    pl.DataFrame(writes).write_parquet(folder / "writes.parquet")
    pl.DataFrame({"from": ["p", "q"], "to": ["q", "r"], "w": [7.0, 8.0]}).write_parquet(
        folder / "cites.parquet"
    )
    paper = {
        "files": "papers.parquet",
        "id": "id",
        "features": ["x"],
        "label": "y",
        "time": "at",
        "split": "s",
    }
    cites = {
        "files": "cites.parquet",
        "source": {"paper": "from"},
        "target": {"paper": "to"},
        "features": ["w"],
    }
    writes = {
        "files": "writes.parquet", "source": {"author": "a"}, "target": {"paper": "p"}, "features": ["w"], "time": "at",
    }  # fmt: skip
    types = {"paper": paper, "author": {"files": "authors.parquet", "id": "id"}}
    root = {"root": str(folder)}
    fp.ingest({**root, "vertices": types, "relations": {"writes": writes, "cites": cites}}, folder / "typed")
    fp.ingest({**root, "vertices": {"paper": paper}, "relations": {"cites": cites}}, folder / "plain")
    return folder


def test_what_ingest_wrote_is_found(lake, tmp_path, caplog):
    graph = fp.open_graph(lake / "typed")
    with caplog.at_level("INFO", "fastpart"):
        fp.VertexPartition([0, 1, 0, 1, 1], 2).save(tmp_path / "parts", graph=graph)
    assert "features, labels, splits, times, features of edges, times of edges taken from" in caplog.text
    first, second = fp.open_partition(tmp_path / "parts").parts
    paper = second.of_type("paper")
    assert paper.features.tolist() == [[2.0], [3.0]]
    assert (paper.labels.tolist(), paper.times.tolist()) == ([1, 0], [6, 7])
    assert (paper.val.tolist(), paper.test.tolist()) == ([True, False], [False, True])
    assert first.of_type("author").features is None
    assert second.of_relation("writes").edge_features.tolist() == [[1.5], [2.5]]
    assert second.of_relation("writes").times.tolist() == [4, 5]
    assert second.of_relation("cites").times is None


def test_what_is_given_replaces_what_is_found(lake, tmp_path):
    graph = fp.open_graph(lake / "typed")
    p = fp.VertexPartition([0, 1, 0, 1, 1], 2)
    given = {"features": {"author": np.ones((2, 1))}, "labels": False, "splits": False, "times": False}
    p.save(tmp_path / "parts", graph=graph, **given)
    stored = fp.open_partition(tmp_path / "parts")
    paper, author = (stored.parts[0].of_type(name) for name in ("paper", "author"))
    assert paper.features is paper.labels is paper.train is paper.times is None
    assert author.features.tolist() == [[1.0]]


def test_a_plain_graph_directory(lake, tmp_path):
    graph = fp.open_graph(lake / "plain")
    p = fp.VertexPartition([0, 1, 1], 2)
    p.save(tmp_path / "parts", graph=graph)
    stored = fp.open_partition(tmp_path / "parts")
    assert stored.manifest["schema"] == 3
    part = stored.parts[1]
    assert (part.features.tolist(), part.labels.tolist(), part.times.tolist()) == (
        [[2.0], [3.0]],
        [1, 0],
        [6, 7],
    )
    assert part.edge_features.tolist() == [[7.0], [8.0], [8.0]]
    assert part.edge_times is None
    p.save(
        tmp_path / "bare",
        graph=graph,
        features=False,
        labels=False,
        splits=False,
        edge_features=False,
        times=False,
    )
    assert "features" not in fp.open_partition(tmp_path / "bare").manifest


def test_splits_of_a_type_with_common_vertices_are_told(tmp_path):
    splits = {"paper": {"train": [0, 1], "test": [2]}, "author": {"train": [2, 0], "val": [0, 1, 2]}}
    told = r"^type 'author': splits: train and val share 2 vertices, the first of them 0\. "
    with pytest.warns(fp.errors.GraphWarning, match=told):
        stored = authors().saved(tmp_path, splits=splits)
    with pytest.warns(fp.errors.GraphWarning, match=told):
        fp.evaluate(graph_of(stored), np.arange(9) % 2, splits=splits)


def test_times_of_plain_graphs(tmp_path):
    p = fp.VertexPartition([0, 1, 0], 2)
    edges = np.array([[0, 1], [1, 2]])
    p.save(tmp_path / "parts", graph=edges, times=np.array([3, 4, 5]), edge_times=np.array([8, 9]))
    part = fp.open_partition(tmp_path / "parts").parts[0]
    assert (part.times.tolist(), part.edge_times.tolist()) == ([3, 5], [8, 9])
    with pytest.raises(fp.errors.ParameterError, match="edge_times: 1 rows for 2 records"):
        p.save(tmp_path / "parts", graph=edges, edge_times=np.array([8]))


def test_the_command(lake, tmp_path, capsys):
    assert main(["partition", str(lake / "typed"), "-k", "2", "-o", f"{tmp_path}/parts"]) == 0
    assert "train" in capsys.readouterr().out
    manifest = json.loads((tmp_path / "parts" / "manifest.json").read_text())
    assert manifest["summary"]["train_balance"] == 2.0
    assert manifest["types"][1]["features"] == {"dtype": "float32", "shape": [1]}


@pytest.mark.parametrize("hops", [1, 2])
def test_wholegraph_has_arrays_of_each_type(tmp_path, hops):
    graph = authors()
    stored = graph.saved(
        tmp_path,
        features={name: 1.0 * np.arange(n)[:, None] for name, n in graph.types},
        splits={"paper": {"train": [0, 2, 3]}},
        edge_features={"writes": np.arange(5.0)},
        halo_hops=hops,
    )
    out = fp.export.wholegraph(stored.folder, tmp_path / "out")
    book = json.loads((out / "partition_book.json").read_text())
    assert book["relations"] == [name for name, _, _ in graph.edge_types]
    old, ids = np.load(out / "orig_nids.npy"), np.load(out / "orig_eids.npy")
    arrays = {
        name: [np.fromfile(out / f"{name}_part_{part}_of_2", facts["dtype"]) for part in range(2)]
        for name, facts in book["arrays"].items()
    }
    ends = (old[np.concatenate(arrays[name])].tolist() for name in ("sources", "destinations"))
    edges = {id: (number, u, v) for number, _, id, u, v in graph.edges()}
    assert list(zip(np.concatenate(arrays["relations"]), *ends, strict=True)) == [
        edges[id] for id in ids.tolist()
    ]
    start = 0
    for part in range(2):
        for name, _ in graph.types:
            count = book["types"][name][part]
            members = old[start : start + count] - graph.first[name]
            assert arrays[f"{name}.features"][part].tolist() == members.tolist()
            if name == "paper":
                trained = [start + at for at, v in enumerate(members) if v in (0, 2, 3)]
                assert arrays["paper.train"][part].tolist() == trained
            start += count
    writes = [id % graph.m for id in ids.tolist() if edges[id][0] == book["relations"].index("rev_writes")]
    first = graph.of_record.index(4)
    assert np.concatenate(arrays["rev_writes.edge_features"]).tolist() == [
        record - first for record in writes
    ]
