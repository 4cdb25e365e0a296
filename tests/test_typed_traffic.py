"""Predicted traffic of typed graphs against batches that numpy draws relation by relation. What caches keep."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.cli import main
from fastpart.core.cache_size import CacheSize
from fastpart.measures.accesses import Epoch, most_needed_of_others
from fastpart.measures.sampling_plan import bytes_of_rows, of_each_row
from soaked import examples
from typed_graphs import Typed, authors, typed_graphs

FANOUTS = {"cites": [3, 2], "writes": [2, 1], "rev_about": [4, 2], "rev_writes": [1, 1]}


def large(scale=60, seed=0):
    """Return authors, fields and papers with every kind of relation, and so many parts that all have vertices."""
    rng = np.random.default_rng(seed)
    sizes = {"author": 6 * scale, "field": scale, "paper": 8 * scale}

    def pairs(source, target, count):
        ends = [rng.integers(sizes[end], size=count) for end in (source, target)]
        return list(zip(ends[0].tolist(), ends[1].tolist(), strict=True))

    relations = [
        ("about", "paper", "field", True, pairs("paper", "field", 20 * scale)),
        ("cites", "paper", "paper", "merged", pairs("paper", "paper", 30 * scale)),
        ("knows", "author", "author", False, pairs("author", "author", 12 * scale)),
        ("writes", "author", "paper", True, pairs("author", "paper", 20 * scale)),
    ]
    graph = Typed(list(sizes.items()), relations, k=3)
    graph.parts = rng.integers(0, 3, graph.n)
    return graph


def drawn(graph, seeds, hops, rng):
    """Return the vertices of a batch: so many in-edges of each vertex of a level and of each relation."""
    lists = {}
    for number, _, _, u, v in graph.edges():
        lists.setdefault((v, number), []).append(u)
    found, level = set(seeds), set(seeds)
    for hop in hops:
        picks = [
            np.array(lists[v, r])[np.arange(len(lists[v, r])) if f == -1 else
            rng.permutation(len(lists[v, r]))[:f]]
            for v in level for r, f in enumerate(hop) if (v, r) in lists
        ]  # fmt: skip
        level = set(np.concatenate([*picks, []]).astype(int).tolist())
        found |= level
    return found


def counted(graph, train, hops, batch_size, epochs=6):
    """Return the rows and the rows of other parts by part and type, per epoch."""
    names = [name for name, _ in graph.types]
    kinds = np.concatenate([[place] * size for place, (_, size) in enumerate(graph.types)]).astype(int)
    rows, remote = np.zeros((2, graph.k, len(names)))
    rng, parts = np.random.default_rng(5), np.asarray(graph.parts)
    for _ in range(epochs):
        order = rng.permutation(train)
        for first in range(0, len(order), batch_size):
            step = order[first : first + batch_size]
            for part in range(graph.k):
                batch = np.array(sorted(drawn(graph, step[parts[step] == part].tolist(), hops, rng)), int)
                rows[part] += np.bincount(kinds[batch], minlength=len(names))
                away = batch[parts[batch] != part]
                remote[part] += np.bincount(kinds[away], minlength=len(names))
    return rows / epochs, remote / epochs


def hops_of(graph, fanouts):
    count = len(next(iter(fanouts.values())))
    return [[fanouts.get(name, (0,) * count)[hop] for name, _, _ in graph.edge_types] for hop in range(count)]


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    graph, folder = large(), tmp_path_factory.mktemp("traffic")
    rng = np.random.default_rng(1)
    train = rng.choice(480, 150, replace=False)
    features = {
        "paper": rng.random((480, 16), np.float32),
        "field": rng.random((60, 4), np.float32),
    }
    stored = graph.saved(folder, features=features, splits={"paper": {"train": train}})
    return graph, stored, train + graph.first["paper"]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    "fanouts", [FANOUTS, [2, 2], {("paper", "cites", "paper"): [-1, -1], "about": [1, 1]}]
)
def test_prediction_is_what_batches_fetch(known, fanouts, exact):
    graph, stored, train = known
    t = fp.predict_traffic(stored, fanouts, 60, cache=0, exact=exact)
    by_name = fanouts
    if isinstance(fanouts, list):
        by_name = {name: fanouts for name, _, _ in graph.edge_types}
    by_name = {key if isinstance(key, str) else key[1]: hops for key, hops in by_name.items()}
    rows, remote = counted(graph, train, hops_of(graph, by_name), 60)
    assert t.types["type"].to_list() == ["author", "field", "paper"]
    assert t.row_bytes == {"author": 0, "field": 16, "paper": 64}
    np.testing.assert_allclose(t.types["rows"], rows.sum(0), rtol=0.03, atol=3)
    np.testing.assert_allclose(t.types["remote_rows"], remote.sum(0), rtol=0.03, atol=3)
    # Types without features cost nothing.
    np.testing.assert_allclose(t.parts["remote_rows"], remote[:, 1:].sum(1), rtol=0.06)
    assert t.remote_rows == pytest.approx(remote[:, 1:].sum(), rel=0.03)
    assert t.remote_mb == pytest.approx(t.types["remote_rows"].dot(t.types["row_bytes"]) / 1e6)


def test_graph_and_directory_say_the_same(known):
    graph, stored, train = known
    there = fp.predict_traffic(stored, FANOUTS, 60, cache=0.2, exact=False)
    whole = fp.open_graph(stored.folder.parent / "g.bin")
    given = {"row_bytes": {"field": 16, "paper": 64}, "splits": {"train": train}}
    here = fp.predict_traffic(stored, FANOUTS, 60, cache=0.2, graph=whole, **given)
    np.testing.assert_allclose(here.types["remote_rows"], there.types["remote_rows"], rtol=0.03)
    np.testing.assert_allclose(here.types["saved_rows"], there.types["saved_rows"], rtol=0.08, atol=4)
    by_type = {"paper": {"train": train - graph.first["paper"]}}
    again = fp.predict_traffic(
        stored, FANOUTS, 60, cache=0.2, graph=whole, row_bytes=given["row_bytes"], splits=by_type, threads=2
    )
    assert again.types.equals(here.types)
    assert fp.predict_traffic(stored, FANOUTS, 60, splits=by_type).types.equals(
        fp.predict_traffic(stored, FANOUTS, 60).types
    )
    free = fp.predict_traffic(stored, FANOUTS, 60, graph=whole, splits=by_type)
    assert (free.row_bytes, free.remote_mb) == (None, None)
    assert free.remote_rows == pytest.approx(free.types["remote_rows"].sum())


def test_accesses_are_near_what_batches_have(known):
    graph, stored, train = known
    types, hops = stored._types, hops_of(graph, FANOUTS)
    topology, rows = stored._topology, stored._topology.rows_of(np.sort(train))
    found = Epoch(rows, hops, 60, types).expected_steps(topology, np.arange(3) == 1)
    expected = np.zeros(graph.n)
    for epoch in range(40):
        order, parts = np.random.default_rng(epoch).permutation(train), np.asarray(graph.parts)
        for first in range(0, len(order), 60):
            step = order[first : first + 60]
            batch = drawn(graph, step[parts[step] == 1].tolist(), hops, np.random.default_rng((epoch, first)))
            expected[sorted(batch)] += 1 / 40
    by_row = expected[topology.ids_of(np.arange(graph.n, dtype=np.uint32))]
    assert found.sum() == pytest.approx(by_row.sum(), rel=0.05)
    assert np.corrcoef(found, by_row)[0, 1] > 0.9


def test_caches_prefer_wide_rows_that_are_needed(known):
    graph, stored, train = known
    worth, topology = bytes_of_rows(stored), stored._topology
    kinds, _ = stored._types.locate(np.arange(graph.n, dtype=np.uint32))
    assert (worth == np.array([0, 16, 64], np.float32)[kinds]).all()
    assert (of_each_row(stored._types, [5, 6, 7]) == kinds + 5).all()
    scores = Epoch(topology.rows_of(train), hops_of(graph, FANOUTS), 60, stored._types).expected_steps(
        topology, np.arange(3) == 0
    )
    kept = most_needed_of_others(topology, 0, CacheSize(0.1), scores, worth)
    first, end = topology.starts[:2]
    assert len(kept) == int(0.1 * np.count_nonzero(worth[first:end]))
    others = np.setdiff1d(np.arange(end, graph.n), kept)
    assert (scores * worth)[kept].min() >= (scores * worth)[others].max()
    of_size = most_needed_of_others(topology, 0, CacheSize.of("2K"), scores, worth)
    assert 2048 - 64 < worth[of_size].sum() <= 2048
    for found in (
        fp.predict_traffic(stored, FANOUTS, 60, cache="2K", exact=exact) for exact in (False, True)
    ):
        filled = (found.types["cached_rows"] * found.types["row_bytes"]).sum()
        assert 3 * (2048 - 64) < filled <= 3 * 2048
    none, some = (fp.predict_traffic(stored, FANOUTS, 60, cache=cache) for cache in (0, 0.3))
    assert none.fetched_mb == pytest.approx(some.remote_mb, rel=0.03)
    assert some.fetched_mb < none.fetched_mb
    assert some.types["cached_rows"][0] == some.types["saved_rows"][0] == 0
    counted = fp.predict_traffic(stored, FANOUTS, 60, cache=0.3, exact=True)
    np.testing.assert_allclose(counted.types["saved_rows"], some.types["saved_rows"], rtol=0.1, atol=10)
    stored.save_cache(0.1, fanouts=FANOUTS, batch_size=60)
    listed = np.load(stored.parts[0]._file("cache_ids.npy"))
    assert set(listed.tolist()) == set(topology.ids_of(kept).tolist())


@examples(8)
@given(graph=typed_graphs(), data=st.data())
def test_whole_neighbourhoods_are_what_can_be_reached(tmp_path_factory, graph, data):
    filled = [(name, n) for name, n in graph.types if n]
    if not filled:
        return
    name, n = data.draw(st.sampled_from(filled))
    train = sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1)))
    folder = tmp_path_factory.mktemp("g")
    stored = graph.saved(folder, splits={name: {"train": np.array(train)}})
    names = [each for each, _, _ in graph.edge_types]
    used = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    hops = data.draw(st.integers(1, 3))
    fanouts = {each: [-1] * hops for each in used}
    rows, remote = counted(
        graph, np.array(train) + graph.first[name], hops_of(graph, fanouts), 1000, epochs=1
    )
    for how in ({"exact": False}, {"exact": True}, {"graph": graph.graph(folder)}):
        splits = {"splits": {name: {"train": train}}} if "graph" in how else {}
        t = fp.predict_traffic(stored, fanouts, 1000, cache=0, **how, **splits)
        assert t.types["rows"].to_list() == rows.sum(0).tolist()
        assert t.types["remote_rows"].to_list() == remote.sum(0).tolist()
        assert t.parts["remote_rows"].to_list() == remote.sum(1).tolist()


def test_refusals(known):
    _, stored, _ = known
    whole = fp.open_graph(stored.folder.parent / "g.bin")
    with pytest.raises(fp.errors.ParameterError, match="fanouts: unknown relation 'cited'"):
        fp.predict_traffic(stored, {"cited": [2]})
    with pytest.raises(fp.errors.ParameterError, match="same number of hops for each relation"):
        fp.predict_traffic(stored, {"cites": [2], "writes": [2, 2]})
    with pytest.raises(fp.errors.ParameterError, match="row_bytes: 'papers' is none of the types"):
        fp.predict_traffic(stored, [2], row_bytes={"papers": 4})
    with pytest.raises(fp.errors.ParameterError, match="row_bytes: the graph has no types"):
        fp.predict_traffic([0, 1], [2], graph=[[0, 1]], splits={"train": [0]}, row_bytes={"a": 4})
    with pytest.raises(fp.errors.ParameterError, match="splits: there are no training vertices"):
        fp.predict_traffic(stored, [2], graph=whole)
    both = {name: {"train": [0, 1]} for name in ("author", "paper")}
    with pytest.raises(fp.errors.ParameterError, match="input: author, paper have training vertices"):
        fp.predict_traffic(stored, [2], graph=whole, splits=both)
    with pytest.raises(fp.errors.ParameterError, match="input: unknown type 'venue'"):
        fp.predict_traffic(stored, [2], graph=whole, splits=both, input="venue")
    one = fp.predict_traffic(stored, [2], graph=whole, splits=both, input="author")
    assert one.parts["seeds"].sum() == 2
    with pytest.raises(fp.errors.ParameterError, match="splits: 'papers' is no type"):
        fp.evaluate(whole, stored, splits={"paper": {"train": [0]}, "papers": {"train": [0]}})
    with pytest.raises(fp.errors.ParameterError, match="2 numbers for a hop of 6 relations"):
        stored._topology.accesses(
            np.zeros(1, np.uint32), [[1, 2]], num_seeds=1, batch_size=1, types=stored._types
        )
    with pytest.raises(fp.errors.ParameterError, match="input: this graph has no types"):
        fp.predict_traffic([0, 1], [2], graph=[[0, 1]], splits={"train": [0]}, input="a")


def test_damaged_relations_are_refused(tmp_path, capsys):
    graph = authors()
    stored = graph.saved(tmp_path, splits={"paper": {"train": [0, 1, 2, 3]}})
    file = stored.parts[0]._folder / "relations.npy"
    relations = np.load(file)
    np.save(file, relations[:-1])
    with pytest.raises(fp.FastpartError, match=r"relations\.npy"):
        fp.predict_traffic(tmp_path / "parts", [2], cache=0.1)
    assert main(["verify", str(tmp_path / "parts")]) != 0
    assert "relations.npy" in capsys.readouterr().err
    np.save(file, np.full_like(relations, 200))
    t = fp.predict_traffic(
        tmp_path / "parts", [2], exact=False, cache=0.1
    )  # ids of no relation: nothing is sampled
    assert np.isfinite(t.rows)
    with pytest.raises(fp.FastpartError, match=r"relations\.npy"):
        fp.predict_traffic(tmp_path / "parts", [2], exact=True)


def test_comparisons_show_each_type(known, tmp_path):
    graph, stored, train = known
    whole = fp.open_graph(stored.folder.parent / "g.bin")
    splits = {"paper": {"train": train - graph.first["paper"], "val": [0]}}
    c = fp.compare(
        whole,
        [2, 3],
        ["random", "ldg"],
        splits=splits,
        fanouts=FANOUTS,
        row_bytes={"paper": 64},
        cache=(0, 0.1),
    )
    assert c.summary["error"].null_count() == 4, c.summary["error"].to_list()
    assert c.types.columns[:6] == ["algorithm", "k", "type", "vertices", "vertex_balance", "halo"]
    more = ["remote_rows", "remote_mb", "remote_rows_0.1", "remote_mb_0.1"]
    assert c.types.columns[-4:] == more
    assert c.types.columns[7:9] == ["train_balance", "val_balance"]
    assert len(c.types) == 2 * 2 * 3
    of_papers = c.types.rows(named=True)[2::3]
    assert [row["remote_mb"] for row in of_papers] == pytest.approx(c.summary["remote_mb"].to_list())
    assert c.types["train_balance"].null_count() == 8
    p = fp.algorithms.ldg(whole, 3)
    assert fp.evaluate(whole, p, splits=splits).types["halo"].to_list() == c.types["halo"].to_list()[-3:]
    c.save(tmp_path / "c.json")
    again = fp.open_comparison(tmp_path / "c.json")
    assert again == c
    assert again.types.equals(c.types)
    content = json.loads((tmp_path / "c.json").read_text())
    content["rows"][0]["types"]["remote_mb"][0] = "many"
    (tmp_path / "c.json").write_text(json.dumps(content))
    with pytest.raises(fp.errors.GraphFormatError):
        fp.open_comparison(tmp_path / "c.json")
    plain = fp.compare([[0, 1], [1, 2]], 2, ["random"])
    assert plain.types is None


@pytest.mark.torch
@pytest.mark.parametrize(("cache", "seed"), [(0, 3), (0.1, 0), (1, 2)])
@pytest.mark.parametrize(("fanouts", "batch_size"), [(FANOUTS, 50), ([3, -1], 1000)])
def test_a_count_is_that_of_the_typed_loaders(known, cache, seed, fanouts, batch_size):
    _, stored, _ = known
    found = fp.predict_traffic(stored, fanouts, batch_size, cache=cache, seed=seed, exact=True)
    options = {"fanouts": fanouts, "batch_size": batch_size, "seed": seed, "cache": float(cache), "ahead": 0}
    names = found.types["type"].to_list()
    remote, cached = (dict.fromkeys(names, 0) for _ in range(2))
    for rank, part in enumerate(found.parts.iter_rows(named=True)):
        loader = stored.loader("train", rank=rank, world_size=stored.k, **options)
        assert part["seeds"] == sum(batch.batch_size for batch in loader)
        of_types = loader.fetching.counts_of_types()
        for name in names:
            remote[name] += of_types[name].get("remote_rows", 0)
            cached[name] += of_types[name].get("cached_rows", 0)
        assert part["saved_rows"] == sum(of_types[name].get("cached_rows", 0) for name in names)
    fed = found.types["row_bytes"] > 0
    fetched = found.types["remote_rows"] - found.types["saved_rows"]
    assert fetched.filter(fed).to_list() == [remote[name] for name in ("field", "paper")]
    assert found.types["saved_rows"].to_list() == [cached[name] for name in names]


def test_the_shell_takes_fanouts_and_bytes_by_name(known, tmp_path, capsys):
    _, stored, train = known
    np.savez(tmp_path / "split.npz", train=train)
    call = ["compare", str(stored.folder.parent / "g.bin"), "-k", "2", "--algorithms", "ldg", "--json", "-q"]
    call += ["--splits", str(tmp_path / "split.npz"), "--cache", "0"]
    assert main([*call, "--fanouts", "cites=3:2,writes=2:1", "--row-bytes", "paper=64"]) == 0
    row = json.loads(capsys.readouterr().out)["rows"][0]
    whole = fp.open_graph(stored.folder.parent / "g.bin")
    fanouts = {"cites": [3, 2], "writes": [2, 1]}
    given = {"splits": {"train": train}, "row_bytes": {"paper": 64}, "cache": 0}
    t = fp.predict_traffic(fp.algorithms.ldg(whole, 2), fanouts, **given)
    assert row["remote_mb"] == t.remote_mb
    assert main([*call, "--fanouts", "3,2", "--row-bytes", "64"]) == 0
    t = fp.predict_traffic(fp.algorithms.ldg(whole, 2), [3, 2], **given | {"row_bytes": 64})
    assert json.loads(capsys.readouterr().out)["rows"][0]["remote_mb"] == t.remote_mb
    assert main([*call, "--fanouts", "cites=3:x"]) != 0
    assert "--fanouts: cites: 'x' is not a number" in capsys.readouterr().err
