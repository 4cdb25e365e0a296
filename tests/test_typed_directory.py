"""Directories of typed graphs: parts, their types and relations, and their rows, against the definition."""

import json
import pickle
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.graphs.sidecars import Sidecar
from fastpart.graphs.types import TypedRanges
from soaked import examples
from typed_graphs import Typed, authors, typed_graphs


def rows_of(names, lengths, width=2):
    """Return distinguishable rows for each name."""
    return {
        name: np.arange(width * length, dtype=np.float32).reshape(length, width) + 100 * place
        for place, (name, length) in enumerate(zip(names, lengths, strict=True))
    }


@examples(10)
@given(typed_graphs(), st.integers(0, 2))
def test_parts_are_the_graph(tmp_path_factory, graph, hops):
    stored = graph.saved(tmp_path_factory.mktemp("typed"), halo_hops=hops)
    edges, parts = graph.edges(), graph.parts
    assert stored.manifest["schema"] == 4
    assert stored.manifest["num_directed_edges"] == len(edges)
    for index, part in enumerate(stored.parts):
        inner = [v for v in range(graph.n) if parts[v] == index]
        rows = inner
        if hops:
            halo = sorted({u for *_, u, v in edges if parts[v] == index} - set(inner))
            assert part.halo[: part.halo_sizes[0]].tolist() == halo
            rows = inner + (halo if hops == 2 else [])
        assert part.inner.tolist() == inner
        expected = [
            edge for row in rows for edge in edges if edge[4] == row and (hops or parts[edge[3]] == index)
        ]
        sources, targets, ids = (array.tolist() for array in part.in_edges())
        assert list(zip(part.relations.tolist(), ids, sources, targets, strict=True)) == [
            (number, id, u, v) for number, _, id, u, v in expected
        ]
        assert part.degree.tolist() == [sum(edge[4] == v for edge in edges) for v in part.vertices]
        assert [each.name for each in part.edge_types] == [name for name, _, _ in graph.edge_types]
        assert [(each.source, each.target) for each in part.edge_types] == [
            (source, target) for _, source, target in graph.edge_types
        ]
        for number, each in enumerate(part.types):
            view, those = part.of_type(each.name), graph.range_of(each.name)
            assert view.inner.tolist() == [v for v in inner if v in those]
            assert view.halo.tolist() == [v for v in part.halo.tolist() if v in those]
            assert part.num_inner_of_type[number] == view.num_inner == len(view.inner)
            assert sum(hop[number] for hop in part.num_halo_of_type) == view.num_halo == len(view.halo)
        for number, each in enumerate(part.edge_types):
            view = part.of_relation(each.name)
            assert view.edges.tolist() == np.flatnonzero(part.relations == number).tolist()
            assert view.num_edges == len(view.edges)
            assert view.in_edges()[2].tolist() == part.edge_ids[view.edges].tolist()


@examples(8)
@given(typed_graphs(), st.integers(0, 2))
def test_rows_are_those_of_the_types_and_relations(tmp_path_factory, graph, hops):
    names, sizes = zip(*graph.types, strict=True)
    features = rows_of(names[1:], sizes[1:])  # the first type has none
    labels = {name: np.arange(size) - 1 for name, size in graph.types}
    splits = {name: {"train": np.arange(size) % 2 == 0, "test": []} for name, size in graph.types[-1:]}
    times = {name: 10 * np.arange(size) for name, size in graph.types}
    lengths = {name: len(pairs) for name, _, _, _, pairs in graph.relations}
    of_edges = rows_of(list(lengths), list(lengths.values()))
    edge_times = {name: 10 * place + np.arange(m) for place, (name, m) in enumerate(lengths.items())}
    stored = graph.saved(
        tmp_path_factory.mktemp("typed"),
        features=features or None,
        labels=labels,
        splits=splits,
        times=times,
        edge_features=of_edges,
        edge_times=edge_times,
        halo_hops=hops,
        halo_features=bool(features),
    )
    first_record = dict(zip(lengths, np.cumsum([0, *lengths.values()]), strict=False))
    for part in stored.parts:
        assert (part.features, part.labels, part.train) == (None, None, None)
        for name, _ in graph.types:
            view = part.of_type(name)
            inner, halo = view.inner - graph.first[name], view.halo - graph.first[name]
            if name in features:
                np.testing.assert_array_equal(view.features, features[name][inner], strict=True)
                np.testing.assert_array_equal(view.halo_features, features[name][halo], strict=True)
            else:
                assert view.features is view.halo_features is None
            assert view.labels.tolist() == (inner - 1).tolist()
            assert view.times.tolist() == (10 * inner).tolist()
            if name in splits:
                assert view.train.tolist() == (inner % 2 == 0).tolist()
                assert not view.test.any()
            else:
                assert view.train is view.test is None
        for each in part.edge_types:
            view, name = part.of_relation(each.name), each.relation.name
            records = view.in_edges()[2] % max(graph.m, 1) - first_record[name]
            np.testing.assert_array_equal(view.edge_features, of_edges[name][records], strict=True)
            assert view.times.tolist() == edge_times[name][records].tolist()
    fp.store.verify(stored.folder)


def test_a_row_longer_than_a_window_is_in_order(tmp_path):
    """A vertex with more edges than a worker holds at a time is read from the file twice."""
    n, m = 10, 800_000
    ends = np.arange(m) % n
    records = np.full((2, m, 2), n, np.uint32)
    records[0, :, 1] = records[1, :, 0] = ends
    records.tofile(tmp_path / "g.bin")
    relations = [
        {"name": "r", "source": "t", "target": "s", "m": m, "reverse": True},
        {"name": "s", "source": "s", "target": "t", "m": m, "reverse": False},
    ]
    types = [{"name": "s", "n": n}, {"name": "t", "n": 1}]
    typed = TypedRanges.of(types, relations, n + 1, 2 * m, "directed")
    Sidecar("u32", n + 1, 2 * m, "directed", typed=typed).write(tmp_path / "g.bin")
    fp.VertexPartition(np.zeros(n + 1, int), 1).save(tmp_path / "parts", graph=tmp_path / "g.bin")
    (part,) = fp.open_partition(tmp_path / "parts").parts
    row = slice(*part.indptr[-2:])
    np.testing.assert_array_equal(part.relations[row], np.repeat([1, 2], m))
    np.testing.assert_array_equal(part.edge_ids[row], np.r_[m : 2 * m, 2 * m : 3 * m])
    np.testing.assert_array_equal(part.indices[row], np.tile(ends, 2))


def test_many_relations_take_two_bytes(tmp_path):
    relations = [(f"r{place:03}", "v", "v", place % 2 == 0, [(place % 3, 1)]) for place in range(200)]
    stored = Typed([("v", 3)], relations, [0, 1, 0], 2).saved(tmp_path)
    assert {part.relations.dtype for part in stored.parts} == {np.dtype(np.uint16)}
    edges = stored.parts[1].relations
    assert edges.tolist() == [
        *range(200),
        *(200 + place // 2 for place in range(0, 200, 2) if place % 3 == 1),
    ]


def test_codes_and_statistics_lie_with_their_type(tmp_path):
    random = np.random.default_rng(0)
    features = {"author": random.normal(3, 2, (3, 9)), "paper": random.normal(-5, 1, (4, 16))}
    splits = {"paper": {"train": [0, 1, 2]}}
    stored = authors().saved(
        tmp_path, features=features, splits=splits, standardise=True, feature_dtype="int8"
    )
    for name, rows in features.items():
        train = rows[:3]  # all authors, since they have no splits
        expected = (rows - train.mean(0)) / train.std(0)
        for part in stored.parts:
            view = part.of_type(name)
            wanted = expected[view.inner - view.type.first]
            np.testing.assert_allclose(view.features, wanted, atol=0.05)
            assert view.stored_features.dtype == np.uint8
        statistics = np.load(stored.folder / "types" / name / "feature_statistics.npy")
        np.testing.assert_allclose(statistics[0], train.mean(0))


# What is given, and what is refused.


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"features": np.eye(9)},
            r"features: the graph has several types. Give them by type, as features=\{'author'",
        ),
        (
            {"labels": {"papers": [0]}},
            "labels: 'papers' is no type of the graph. There are author, field, paper",
        ),
        ({"splits": {"train": [0]}}, "splits: 'train' is no type of the graph"),
        ({"features": {"paper": np.eye(3)}}, "type 'paper': features: 3 rows for 4 vertices"),
        ({"edge_features": {"writes": np.eye(3)}}, "relation 'writes': edge_features: 3 rows for 5 records"),
        ({"edge_features": {"rev_writes": np.eye(5)}}, "'rev_writes' is no relation of the graph"),
        ({"times": {"paper": np.arange(3)}}, "type 'paper': times: 3 rows for 4 vertices"),
        ({"edge_splits": {"val": [[0, 1]]}}, "edge_splits: val: expected pairs of ids, with the number"),
        ({"halo_features": True}, "halo_features: there are no features"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, given, message):
    with pytest.raises(fp.errors.ParameterError, match=message):
        authors().saved(tmp_path, **given)


def test_edge_partitions_of_typed_graphs_have_no_directory(tmp_path):
    graph = authors().graph(tmp_path)
    p = fp.algorithms.random(graph, k=2, of="edges")
    with pytest.raises(fp.errors.ParameterError, match="the parts of an edge partition do not know types"):
        p.save(tmp_path / "parts")
    p.save(tmp_path / "parts.npy")


@pytest.mark.parametrize("name", ["..", "a/b", "", ".x", "-x", "a" * 65, "rev_writes"])
def test_names_that_cannot_be_folders(tmp_path, name):
    relations = [(name, "author", "paper", False, []), ("writes", "author", "paper", True, [(0, 0)])]
    graph = Typed([("author", 1), ("paper", 1)], relations, [0, 0], 1)
    with pytest.raises(
        fp.errors.ParameterError, match=r"cannot be the name of a folder|is a relation, and the reverse"
    ):
        graph.saved(tmp_path)


# Reading.


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A directory of two parts that holds all that it can."""
    stored = authors().saved(
        tmp_path_factory.mktemp("typed"),
        features={"paper": np.eye(4, dtype=np.float32), "author": np.ones((3, 2))},
        labels={"paper": [0, 1, 2, -1]},
        splits={"paper": {"train": [0, 1], "val": [2], "test": [3]}},
        times={"paper": np.arange(4)},
        edge_features={"writes": np.eye(5), "cites": np.ones(4)},
        edge_times={"about": np.arange(4)},
        halo_features=True,
    )
    return stored.folder


@pytest.fixture
def folder(original, tmp_path):
    """A copy of it, to damage."""
    return Path(shutil.copytree(original, tmp_path / "parts"))


def read(folder, parts=slice(None)):
    partition = fp.open_partition(folder)
    for part in partition.parts[parts]:
        names = [name for name in dir(type(part)) if not name.startswith("_")]
        assert [getattr(part, name) for name in names]
        part.in_edges()
        for each in part.types:
            view = part.of_type(each.name)
            assert [getattr(view, name) for name in dir(type(view)) if not name.startswith("_")]
        for each in part.edge_types:
            view = part.of_relation(each.name)
            assert [getattr(view, name) for name in dir(type(view)) if not name.startswith("_")]
            view.in_edges()


def test_parts_are_compared_and_pickled(folder):
    part = fp.open_partition(folder).parts[0]
    shutil.copytree(folder, folder.with_name("copy"))
    other = fp.open_partition(folder.with_name("copy")).parts[0]
    assert part == other == pickle.loads(pickle.dumps(part))
    features = np.load(folder.with_name("copy") / "part-00000/types/paper/features.npy")
    np.save(folder.with_name("copy") / "part-00000/types/paper/features.npy", features + 1)
    assert part != fp.open_partition(folder.with_name("copy")).parts[0]


def test_views_of_what_is_not_there(folder, tmp_path):
    part = fp.open_partition(folder).parts[0]
    with pytest.raises(fp.errors.ParameterError, match="type: 'x' is none of author, field, paper, venue"):
        part.of_type("x")
    with pytest.raises(fp.errors.ParameterError, match="relation: 'rev_cites' is none of about, cites"):
        part.of_relation("rev_cites")
    fp.VertexPartition([0, 0], 1).save(tmp_path / "plain", graph=[[0, 1]])
    (plain,) = fp.open_partition(tmp_path / "plain").parts
    assert plain.types is plain.relations is plain.num_inner_of_type is None
    with pytest.raises(fp.errors.ParameterError, match="holds a graph without types"):
        plain.of_type("paper")


def damaged(array):
    """Return arrays that are no more those of the part."""
    yield array[:-1]
    yield array.astype(np.float64)
    if array.dtype.kind in "iu" and array.ndim == 1 and len(array) > 1:
        yield array[::-1].copy()
        yield np.full_like(array, np.iinfo(array.dtype).max)


def test_every_damaged_array_is_refused_or_read(folder):
    for file in sorted((folder / "part-00000").rglob("*.npy")):
        array, old = np.load(file), file.read_bytes()
        for other in damaged(array):
            np.save(file, other)
            mistyped = other.shape != array.shape or other.dtype != array.dtype
            with (
                pytest.raises(fp.errors.GraphFormatError, match="part-00000")
                if mistyped
                else suppress(fp.errors.GraphFormatError)
            ):
                read(folder, slice(1))
        file.write_bytes(old)
    read(folder)


@pytest.mark.parametrize("key", ["num_inner_of_type", "num_halo_of_type", "num_edges_of_relation"])
@pytest.mark.parametrize(
    "value", [None, 3, "x", [], [1], [-1, 2, 0, 0], [[1]], [[0] * 4, [0] * 4], {}, "absent"]
)
def test_counts_of_another_kind(folder, key, value):
    file = folder / "part-00000" / "part.json"
    content = json.loads(file.read_text()) | {key: value}
    file.write_text(json.dumps({name: each for name, each in content.items() if each != "absent"}))
    with pytest.raises(fp.errors.GraphFormatError, match=key):
        read(folder)


def test_counts_of_others_are_refused(folder):
    file = folder / "part-00000" / "part.json"
    content = json.loads(file.read_text())
    inner = content["num_inner_of_type"]
    inner[0], inner[1] = inner[1], inner[0]
    file.write_text(json.dumps(content) + "\n")
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"vertices.npy: expected as many vertices of each type"
    ):
        read(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.pop("relations"), "relations"),
        (lambda m: m.update(types=3), "types"),
        (lambda m: m.update(types=[]), "types: 0 together, expected 9"),
        (lambda m: m["types"][0].update(n=4), "types: 10 together, expected 9"),
        (lambda m: m["types"][3].update(name="../../x"), "cannot be the name of a folder"),
        (lambda m: m["relations"][0].update(name="/x"), "cannot be the name of a folder"),
        (lambda m: m["relations"][0].update(target="x"), "'about' has an end that is none of"),
        (lambda m: m["relations"][0].update(reverse=4), "reverse of 'about' is 4"),
        (lambda m: m["relations"][0].pop("m"), "m' is missing"),
        (
            lambda m: m["types"][2].update(features={"dtype": "O", "shape": []}),
            "types: paper: features: dtype",
        ),
        (lambda m: m["types"][2].update(splits=3), "types: paper: splits"),
        (lambda m: m["relations"][4].update(edge_features=[]), "relations: writes: edge_features"),
        (lambda m: m.update(num_directed_edges=18), "num_directed_edges: 18 contradicts"),
    ],
)
def test_manifests_that_contradict_themselves(folder, change, message):
    file = folder / "manifest.json"
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    with pytest.raises(fp.errors.GraphFormatError, match=message):
        fp.open_partition(folder)


def test_a_directory_is_replaced_by_one_with_the_same_data(tmp_path):
    graph = authors()
    lengths = {name: len(pairs) for name, *_, pairs in graph.relations}
    of_types = {name: np.arange(size) % 2 for name, size in graph.types}
    of_relations = {name: np.arange(m) % 2 for name, m in lengths.items()}
    data = {
        "features": rows_of(*zip(*graph.types, strict=True)),
        "labels": of_types,
        "times": of_types,
        "splits": {name: {"train": [0]} for name, size in graph.types if size},
        "edge_features": rows_of(lengths, lengths.values()),
        "edge_labels": of_relations,
        "edge_label_splits": {name: {"train": [0]} for name in lengths},
        "edge_times": of_relations,
    }
    first = graph.saved(tmp_path, **data)
    again = graph.saved(tmp_path, **data)
    assert again.manifest["files"] == first.manifest["files"]
    for name, rows in data.items():
        less = {key: value for key, value in data.items() if key != name}
        with pytest.raises(FileExistsError) as refused:
            graph.saved(tmp_path, **less)
        told = str(refused.value).partition(", which would be lost")[0]
        assert all(f" of {of}" in told for of in rows if len(rows[of]))


def test_verify_upgrade_and_replacement(folder):
    assert not fp.store.upgrade(folder)
    fp.store.verify(folder)
    stored = fp.open_partition(folder)
    graph = authors().graph(folder.parent)
    with pytest.raises(
        FileExistsError, match=r"holds features of author, .*splits of paper.* overwrite=True"
    ):
        stored.save(folder, graph=graph)
    stored.save(folder, graph=graph, overwrite=True)
    assert not (folder / "part-00000" / "types").exists()
    fp.store.verify(folder)
