"""Bounds on training vertices, which typed graphs in directories with a training split get by default."""

import json
import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.cli import main
from fastpart.partitions.partitioners.builtin import ALGORITHMS
from random_typed import random_typed_graph, typed_graph
from soaked import examples

BOUNDING = ["multilevel", "spring", "ldg", "fennel", "reldg", "refennel", "random"]


def in_directory(graph, splits):
    """Make a graph directory of the folder of a graph, with these splits by type, and open it."""
    folder = graph.path.parent
    graph.path.rename(folder / "edges.bin")
    graph.path.with_name("g.bin.json").rename(folder / "edges.bin.json")
    described = {"fastpart": 1, "directedness": graph.directedness, **graph._typed.content}
    (folder / "graph.json").write_text(json.dumps(described))
    for name, arrays in splits.items():
        (folder / "types" / name).mkdir(parents=True)
        np.savez(folder / "types" / name / "split.npz", **arrays)
    return fp.open_graph(folder)


def with_papers(folder, seed=3, scale=20, share=0.3):
    graph = random_typed_graph(folder, seed=seed, scale=scale)
    papers = graph.types[2].n
    order = np.random.default_rng(seed).permutation(papers)
    train, val = order[: int(share * papers)], order[int(share * papers) : int(2 * share * papers)]
    return in_directory(graph, {"paper": {"train": np.sort(train), "val": val}}), train + graph.types[2].first


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    return with_papers(tmp_path_factory.mktemp("directory"))


@pytest.mark.parametrize("name", BOUNDING)
def test_training_vertices_are_bounded_by_default(known, name, caplog):
    graph, train = known
    with caplog.at_level(logging.INFO, "fastpart"):
        p = getattr(fp.algorithms, name)(graph, 4, threads=1)
    assert "bounds the training vertices of 'paper'" in caplog.text
    loads = np.bincount(p.assignment[train], minlength=4)
    assert loads.max() <= int(np.ceil(1.05 * len(train) / 4)) == p.weight_cap
    assert (loads == p.weight_loads).all()
    assert (p.bounded_types, p.parameters["balance_on"]) == (("paper:train",), "paper:train")
    again = getattr(fp.algorithms, name)(graph, 4, balance_on=p.parameters["balance_on"], threads=2)
    assert again == p
    mask = np.isin(np.arange(graph.num_vertices), train)
    assert getattr(fp.algorithms, name)(graph, 4, balance_on=mask) == p
    free = getattr(fp.algorithms, name)(graph, 4, balance_on=[])
    assert (free.bounded_types, free.weight_loads, free.parameters["balance_on"]) == (None, None, None)
    plain = fp.open_graph(graph._source.block(0, graph.num_edges), num_vertices=graph.num_vertices)
    assert free == getattr(fp.algorithms, name)(plain, 4)


@examples(10)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1), k=st.sampled_from([1, 2, 3, 5, 16]))
def test_no_part_exceeds_its_cap_of_training_vertices(tmp_path_factory, data, seed, k):
    rng = np.random.default_rng(seed)
    types = {name: data.draw(st.integers(0, 12), label=name) for name in "abc"}
    pairs = [(s, t) for s in "abc" for t in "abc" if types[s] and types[t]]
    relations = {
        f"r{index}": (s, t, np.stack([rng.integers(types[end], size=20) for end in (s, t)], 1))
        for index, (s, t) in enumerate(pairs[:3])
    }
    graph = typed_graph(tmp_path_factory.mktemp("g"), types, relations or {"r": ("a", "a", [])})
    splits = {name: {"train": np.flatnonzero(rng.random(n) < 0.5)} for name, n in types.items()}
    graph, train = in_directory(graph, splits), {each.name: each for each in graph.types}
    p = fp.multilevel(graph, k, on_infeasible="error") if k <= graph.num_vertices else None
    if p is None:
        return
    sizes = [len(splits[name]["train"]) for name in "abc"]
    assert set(p.bounded_types or ()) == {f"{n}:train" for n, s in zip("abc", sizes, strict=True) if s}
    for name, size in zip("abc", sizes, strict=True):
        loads = np.bincount(p.assignment[train[name].first + splits[name]["train"]], minlength=k)
        assert loads.max() <= np.ceil(1.05 * size / k)


@pytest.mark.parametrize("name", sorted(set(ALGORITHMS) - set(BOUNDING)))
def test_others_go_on_and_say_so(known, name, caplog):
    graph, train = known
    if "vertices" not in ALGORITHMS[name].of:
        return
    more = {"bytegnn": {"splits": {"train": train}}, "grem": {"chunk": 0.6}}.get(name, {})
    with caplog.at_level(logging.INFO, "fastpart"):
        p = getattr(fp.algorithms, name)(graph, 4, **more)
    assert p.bounded_types is None
    said = f"{name} does not bound the training vertices of 'paper'"
    assert (said in caplog.text) == (name != "bytegnn")


def test_what_cannot_be_bounded_is_no_refusal(known, tmp_path, caplog):
    graph, _ = known
    with caplog.at_level(logging.INFO, "fastpart"):
        assert fp.spring(graph, 4, strict=False).weight_loads is None
        assert "spring does not bound" in caplog.text
        both = {name: {"train": np.arange(4)} for name in ("author", "paper")}
        several = in_directory(random_typed_graph(tmp_path / "g", seed=1), both)
        assert fp.algorithms.ldg(several, 2).bounded_types == ("author:train",)
        assert "ldg does not bound the training vertices of 'paper'" in caplog.text
        assert fp.multilevel(several, 2).bounded_types == ("author:train", "paper:train")
    assert fp.multilevel(several, 2, balance_on="train") == fp.multilevel(several, 2)
    with pytest.raises(fp.errors.ParameterError, match="ldg takes one bound, not 2"):
        fp.algorithms.ldg(several, 2, balance_on="train")
    with pytest.raises(fp.errors.ParameterError, match="graph directory has none of type 'field'"):
        fp.algorithms.ldg(several, 2, balance_on="field:train")
    with pytest.raises(fp.errors.ParameterError, match="no type 'fields:train'"):
        fp.algorithms.ldg(several, 2, balance_on="fields:train")
    loose = random_typed_graph(tmp_path / "loose", seed=1)
    with pytest.raises(
        fp.errors.ParameterError, match="'train' stands for the training vertices of a graph dir"
    ):
        fp.multilevel(loose, 2, balance_on="train")


def test_a_partition_keeps_its_bounds(known, tmp_path):
    graph, train = known
    p = fp.multilevel(graph, 4)
    for q in (fp.refine(p.graph, p), fp.update(graph, p)):
        assert q.bounded_types == ("paper:train",)
        assert np.bincount(q.assignment[train], minlength=4).max() <= q.weight_cap
    assert fp.refine(graph, fp.multilevel(graph, 4, balance_on=[])).bounded_types is None
    assert fp.refine(p.graph, p, balance_on=[]).bounded_types is None
    p.save(tmp_path / "parts/")
    opened = fp.open_partition(tmp_path / "parts")
    assert (opened.bounded_types, opened.weight_cap) == (p.bounded_types, p.weight_cap)
    assert fp.refine(graph, opened).bounded_types == p.bounded_types
    assert opened.manifest["caps"][1]["name"] == "paper:train"
    assert p.evaluate().weight_balance_paper_train == max(p.weight_loads) * 4 / sum(p.weight_loads)


@pytest.mark.parametrize("effort", ["fast", "default", "best"])
def test_partition_bounds_whatever_it_chooses(known, effort):
    graph, train = known
    p = fp.partition(graph, 8, effort=effort)
    assert np.bincount(p.assignment[train], minlength=8).max() <= np.ceil(1.05 * len(train) / 8)
    edges = fp.partition(graph, 4, of="edges", effort=effort)
    loose = fp.open_graph(graph._source.block(0, graph.num_edges), num_vertices=graph.num_vertices)
    assert (edges.assignment == fp.partition(loose, 4, of="edges", effort=effort).assignment).all()


def test_the_shell_knows_the_words(known, tmp_path, capsys):
    graph, _ = known
    out = str(tmp_path / "p.npy")
    call = ["partition", str(graph.path), "-k", "4", "--algorithm", "multilevel", "-o", out]
    assert main([*call, "--balance-on-ratio", "1.2"]) == 0
    assert "--balance-on: bounds the training vertices of 'paper'" in capsys.readouterr().err
    assert (np.load(out) == fp.multilevel(graph, 4, balance_on_ratio=1.2).assignment).all()
    for word, bounds in (("vertices", []), ("train", "train"), ("type:paper:train", "paper:train")):
        assert main([*call, "--balance-on", word]) == 0
        assert (np.load(out) == fp.multilevel(graph, 4, balance_on=bounds).assignment).all()
    assert main([*call, "--balance-on", "vertices,train"]) != 0
    assert "stands alone" in capsys.readouterr().err


def test_a_damaged_split_is_named(tmp_path):
    graph, _ = with_papers(tmp_path)
    (graph.directory / "types/paper/split.npz").write_bytes(b"no archive")
    with pytest.raises(fp.FastpartError, match=r"split\.npz"):
        fp.multilevel(graph, 2)
    np.savez(graph.directory / "types/paper/split.npz", train=np.arange(2000))
    with pytest.raises(fp.errors.ParameterError, match="type 'paper': splits: train"):
        fp.multilevel(graph, 2)
    assert fp.multilevel(graph, 2, balance_on=[]).k == 2
