"""Edges split before partitioning, and the splits in a partition directory."""

import json
from collections import Counter
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.cli import main
from linked import DIRECTEDNESS, dealt, either, graph_of, graphs, random_graph, records_of, stored
from soaked import examples

SPLITS = ("train", "val", "test")


def pairs_of(opened, split):
    """Return the pairs of a split of all parts."""
    return np.concatenate([getattr(part, f"edge_{split}") for part in opened.parts])


def expected_pairs(records, directedness):
    """Each pair once, as its first record has it: what a split lists."""
    found, known = [], set()
    for u, v in records.tolist():
        key = (u, v) if directedness == "directed" else frozenset((u, v))
        if u != v and key not in known:
            known.add(key)
            found.append((u, v))
    return found


@given(graphs(), st.floats(0, 0.5), st.floats(0, 0.49), st.integers(0, 3))
def test_no_pair_is_in_two_splits_and_no_record_is_lost(graph, val, test, seed):
    splits = fp.split_edges(graph, val, test, seed=seed)
    records, training = records_of(graph), records_of(splits.graph)
    sets = [
        either(training[training[:, 0] != training[:, 1]]),
        either(splits.val),
        either(splits.test),
    ]
    for one in range(3):
        for other in range(one):
            assert not sets[one] & sets[other]
    held = sets[1] | sets[2]
    kept = [tuple(record) for record in records.tolist() if frozenset(record) not in held]
    assert kept == list(map(tuple, training.tolist()))  # in their order, loops included
    away = records[[frozenset(record) in held for record in records.tolist()]]
    listed = sorted([*map(tuple, splits.val.tolist()), *map(tuple, splits.test.tolist())])
    assert listed == sorted(expected_pairs(away, graph.directedness))
    assert splits.graph.num_vertices == graph.num_vertices
    assert splits.graph.directedness == graph.directedness


def test_the_shares_and_the_seed_decide():
    graph = fp.open_graph(np.random.default_rng(0).integers(0, 5000, (40_000, 2)))
    splits = fp.split_edges(graph, val=0.05, test=0.2, seed=1)
    assert len(splits.val) == pytest.approx(2000, rel=0.1)
    assert len(splits.test) == pytest.approx(8000, rel=0.05)
    other = fp.split_edges(graph, val=0.05, test=0.2, seed=2)
    assert len(either(splits.test) & either(other.test)) == pytest.approx(0.2 * 8000, rel=0.1)


def test_a_file_is_split_as_an_array_is(tmp_path):
    graph = random_graph(n=500, m=4000)
    expected = fp.split_edges(graph, seed=3)
    records_of(graph).astype("<u4").tofile(tmp_path / "g.bin")
    source = fp.open_graph(tmp_path / "g.bin", num_vertices=500)
    found = fp.split_edges(source, seed=3, out=tmp_path / "train.bin")
    assert found.graph.path == tmp_path / "train.bin"
    assert found.graph == expected.graph
    sidecar = json.loads((tmp_path / "train.bin.json").read_text())
    assert (sidecar["n"], sidecar["m"]) == (500, expected.graph.num_edges)
    assert sidecar["checksum"] == found.graph.identify()[1]
    with np.load(tmp_path / "train.bin.splits.npz") as held:
        for name in ("val", "test"):
            np.testing.assert_array_equal(held[name], getattr(expected, name))
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"val": -0.1}, "val: -0.1 is not a share from 0 to 1"),
        ({"test": 1}, "val, test: 0.05 and 1 leave no edges"),
        ({"val": 0.5, "test": 0.5}, "val, test: 0.5 and 0.5 leave no edges to train on"),
        ({"seed": -1}, "seed"),
    ],
)
def test_refused_shares(given, message):
    with pytest.raises(fp.errors.ParameterError, match=message):
        fp.split_edges(np.array([[0, 1], [1, 2], [2, 3]]), **given)


def test_the_input_is_not_overwritten(tmp_path):
    file = tmp_path / "g.bin"
    np.arange(20, dtype="<u4").tofile(file)
    with pytest.raises(fp.errors.ParameterError, match=r"g\.bin is the input"):
        fp.split_edges(file, out=file)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["g.bin"]


def test_weights_are_left_out_with_a_warning():
    graph = fp.open_graph(np.array([[0, 1], [1, 2], [2, 3]]), weights=[1, 2, 3])
    with pytest.warns(fp.errors.GraphWarning, match="split_edges does not read the weights"):
        assert fp.split_edges(graph, 0, 0).graph.weights is None


# In a partition directory.


@examples(10)
@given(graphs(), st.integers(1, 4), st.sampled_from([1, 2]), st.integers(0, 3))
def test_every_pair_lies_once_in_the_part_of_its_target(graph, k, halo_hops, seed):
    splits = fp.split_edges(graph, 0.2, 0.2, seed=seed)
    assignment = dealt(graph.num_vertices, k, seed)
    opened = stored(splits, assignment, k, halo_hops=halo_hops)
    for part in opened.parts:
        for split in SPLITS:
            pairs = getattr(part, f"edge_{split}")
            assert (assignment[pairs[:, 1]] == part.index).all()
            order = list(map(tuple, pairs[:, ::-1].tolist()))
            assert order == sorted(set(order))
    expected = {
        "train": expected_pairs(records_of(splits.graph), graph.directedness),
        "val": list(map(tuple, splits.val.tolist())),
        "test": list(map(tuple, splits.test.tolist())),
    }
    for split, pairs in expected.items():
        assert Counter(map(tuple, pairs_of(opened, split).tolist())) == Counter(pairs)
    assert opened.manifest["edge_splits"] == {split: len(pairs) for split, pairs in expected.items()}


@examples(10)
@given(graphs(), st.integers(1, 4), st.sampled_from([1, 2]))
def test_reverse_ids(graph, k, halo_hops):
    splits = fp.split_edges(graph, 0, 0)
    opened = stored(splits, dealt(graph.num_vertices, k), k, halo_hops=halo_hops)
    whole = stored(splits, np.zeros(graph.num_vertices, int), 1).parts[0]
    sources, targets, ids = (array.tolist() for array in whole.in_edges())
    ends = dict(zip(ids, zip(sources, targets, strict=True), strict=True))
    known = set(ends.values())
    for part in opened.parts:
        assert len(part.edge_reverse) == part.num_edges
        for *pair, edge, reverse in zip(*part.in_edges(), part.edge_reverse, strict=True):
            back = tuple(map(int, pair[::-1]))
            assert (reverse == -1) == (back not in known)
            if reverse >= 0:
                assert ends[int(reverse)] == back
            if graph.directedness == "undirected" and pair[0] != pair[1]:
                assert abs(reverse - edge) == graph.num_edges


@pytest.mark.parametrize("directedness", DIRECTEDNESS)
def test_a_mapping_and_a_file_do_as_well(tmp_path, directedness):
    splits = fp.split_edges(random_graph(directedness=directedness), seed=1)
    expected = stored(splits, dealt(60, 2), 2)
    np.savez(tmp_path / "held.npz", val=splits.val, test=splits.test)
    for number, held in enumerate((tmp_path / "held.npz", {"val": splits.val, "test": splits.test})):
        p = fp.VertexPartition(dealt(60, 2), 2)
        p.save(tmp_path / f"{number}", graph=splits.graph, edge_splits=held)
        assert fp.open_partition(tmp_path / f"{number}").parts == expected.parts


def test_directories_without_edge_splits_have_none(tmp_path):
    fp.VertexPartition([0, 0, 1], 2).save(tmp_path / "parts", graph=np.array([[0, 1], [1, 2]]))
    part = fp.open_partition(tmp_path / "parts").parts[0]
    assert part.edge_train is part.edge_val is part.edge_test is part.edge_reverse is None


PATH = np.array([[0, 1], [1, 2], [2, 3], [3, 4]])


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ({"val": [[0, 2]], "test": [[2, 0]]}, r"val and test both hold the pair \(0, 2\)"),
        ({"val": [[2, 1]]}, r"held-out pair \(2, 1\) is an edge of the graph"),
        ({"val": [[0, 5]]}, "val: ids must be from 0 to 4"),
        ({"test": [0, 2]}, r"test: expected pairs of ids, of shape \(pairs, 2\)"),
        ({"test": [[0, 2], [0, 2]]}, "test: a pair occurs more than once"),
    ],
)
def test_refused_pairs(tmp_path, held, message):
    with pytest.raises(fp.errors.ParameterError, match=f"edge_splits: (the )?{message}"):
        fp.VertexPartition([0, 0, 1, 1, 1], 2).save(tmp_path / "parts", graph=PATH, edge_splits=held)
    assert not (tmp_path / "parts").exists()


def test_refused_uses(tmp_path):
    splits = fp.split_edges(PATH, 0, 0)
    with pytest.raises(
        fp.errors.ParameterError, match="edge_splits: links are trained over parts of the vertices"
    ):
        fp.EdgePartition([0, 0, 1, 1], 2).save(tmp_path / "parts", graph=PATH, edge_splits=splits)
    p = fp.VertexPartition([0, 0, 1, 1, 1], 2)
    with pytest.raises(fp.errors.ParameterError, match="halo_hops=1"):
        p.save(tmp_path / "parts", graph=PATH, edge_splits=splits, halo_hops=0)
    with pytest.raises(fp.errors.ParameterError, match="edge_splits: needs graph="):
        p.save(tmp_path / "parts", edge_splits=splits)
    with pytest.raises(TypeError, match="edge_splits: expected what split_edges returns"):
        p.save(tmp_path / "parts", graph=PATH, edge_splits=[1])


@pytest.mark.parametrize("damage", ["id", "target", "shape", "missing", "count"])
def test_damaged_splits_are_refused(tmp_path, damage):
    splits = fp.split_edges(random_graph(), seed=1)
    fp.VertexPartition(dealt(60, 2), 2).save(tmp_path / "parts", graph=splits.graph, edge_splits=splits)
    folder = tmp_path / "parts" / "part-00000"
    pairs = np.load(folder / "edge_train.npy")
    if damage == "missing":
        (folder / "edge_train.npy").unlink()
    elif damage == "count":
        sizes = json.loads((folder / "part.json").read_text())
        (folder / "part.json").write_text(json.dumps(sizes | {"edge_splits": {"train": -1}}))
    else:
        other = np.flatnonzero(dealt(60, 2) == 1)[0]
        pairs[0] = {"id": [60, pairs[0, 1]], "target": [pairs[0, 0], other], "shape": pairs[0]}[damage]
        np.save(folder / "edge_train.npy", pairs[1:] if damage == "shape" else pairs)
    with pytest.raises(fp.errors.GraphFormatError, match=r"edge_train|edge_splits|train"):
        assert fp.open_partition(tmp_path / "parts").parts[0].edge_train is None


def test_the_command_line(tmp_path, capsys):
    graph = random_graph(n=200, m=1500)
    np.save(tmp_path / "g.npy", records_of(graph).astype(np.uint32))
    words = [str(tmp_path / "g.npy"), str(tmp_path / "t.bin"), "--num-vertices", "200", "--seed", "4"]
    assert main(["split-edges", *words, "--val", "0.1", "--json"]) == 0
    splits = fp.split_edges(graph, val=0.1, seed=4)
    printed = json.loads(capsys.readouterr().out)
    assert (printed["m"], printed["val"]) == (splits.graph.num_edges, len(splits.val))
    words = ["-k", "2", "--algorithm", "spring", "--edge-splits", str(tmp_path / "t.bin.splits.npz"), "-q"]
    assert main(["partition", str(tmp_path / "t.bin"), *words, "-o", str(tmp_path / "parts")]) == 0
    manifest = fp.open_partition(tmp_path / "parts").manifest
    assert manifest["edge_splits"]["test"] == len(splits.test)
    if find_spec("torch"):
        assert main(["train", "links", str(tmp_path / "parts")]) == 2
        assert "embeddings: the directory has no features" in capsys.readouterr().err


def test_graph_of_lists_both_directions():
    assert graph_of([[0, 1], [2, 2]], 3, "symmetric").num_edges == 3
