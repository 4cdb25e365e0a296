"""``fp.order``: the same graph with clusters side by side, and the way back."""

import json
from pathlib import Path

import numpy as np
import pytest

import fastpart as fp
from fastpart.cli import main
from typed_graphs import Typed

DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture
def planted(tmp_path):
    return fp.generate.planted(tmp_path / "planted.bin", n=2000, m=12000, classes=8, features=3)


def records_of(graph):
    return np.fromfile(graph.path, "<u4").reshape(-1, 2)


def gaps(records, n):
    """Return the mean number of bits of the gaps between the neighbours of a vertex."""
    both = np.concatenate([records, records[:, ::-1]]).astype(np.int64)
    both = both[both[:, 0] != both[:, 1]]
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    same = both[1:, 0] == both[:-1, 0]
    return np.log2(1.0 + np.diff(both[:, 1])[same]).mean()


def coded(number):
    """Return the bytes of a number, 2 bits of which are its length."""
    return next(size for size, bits in [(1, 6), (2, 14), (3, 22), (5, 38)] if number < 1 << bits)


def packed(records, n):
    """Return the bytes per entry of the lists, packed, in plain Python."""
    lists = [[] for _ in range(n)]
    for u, v in records.tolist():
        if u != v:
            lists[u].append(v)
            lists[v].append(u)
    total = 0
    for v, neighbours in enumerate(lists):
        neighbours.sort()
        length = 0
        for place, u in enumerate(neighbours):
            away = u - v
            number = u - neighbours[place - 1] if place else (2 * away if away >= 0 else -2 * away - 1)
            length += coded(number)
        total += length + coded(length)
    return total / max(1, sum(map(len, lists)))


def check(ordering, given, records):
    """The records are those of the given graph, one by one, under new ids."""
    ids = np.asarray(ordering.ids)
    assert sorted(ids.tolist()) == list(range(given.num_vertices))
    assert np.array_equal(ids[records_of(ordering.graph)], records)
    assert ordering.graph.directedness == given.directedness
    assert ordering.graph.num_vertices == given.num_vertices
    assert ordering.graph.identify() == fp.open_graph(records_of(ordering.graph)).identify()


def test_the_records_are_the_same_under_new_ids(planted, tmp_path):
    out = tmp_path / "ordered.bin"
    ordering = fp.order(planted, out=out)
    records = records_of(planted)
    check(ordering, planted, records)
    assert np.array_equal(np.load(f"{out}.ids.npy"), ordering.ids)
    assert ordering.ids.dtype == np.uint64
    assert ordering.bytes_per_entry_before == pytest.approx(packed(records, 2000))
    assert ordering.bytes_per_entry == pytest.approx(packed(records_of(ordering.graph), 2000))
    assert ordering.bytes_per_entry < ordering.bytes_per_entry_before
    assert f"{ordering.bytes_per_entry:.2f} bytes per entry" in repr(ordering)
    assert "before" in ordering._repr_html_()


@pytest.mark.parametrize(
    ("records", "n"),
    [([], 0), ([], 3), ([[0, 0]], 1), ([[4, 4], [1, 1]], 6), ([[2, 0], [0, 2], [2, 0], [1, 1]], 4)],
)
def test_loops_parallel_records_and_isolated_vertices(records, n, tmp_path):
    records = np.array(records, dtype=np.uint32).reshape(-1, 2)
    given = fp.open_graph(records, num_vertices=n)
    check(fp.order(given, out=tmp_path / "ordered.bin"), given, records)


@pytest.mark.parametrize("directedness", ["symmetric", "directed"])
def test_directedness_stays(directedness, planted, tmp_path):
    records = records_of(planted)
    if directedness == "symmetric":
        records = np.concatenate([records, records[:, ::-1]])
    given = fp.open_graph(records, num_vertices=2000, directedness=directedness)
    check(fp.order(given, out=tmp_path / "ordered.bin"), given, records)


@pytest.mark.parametrize("parts", [False, True])
def test_the_same_bytes_for_any_number_of_threads_and_any_memory(parts, tmp_path):
    large = fp.generate.planted(tmp_path / "large.bin", n=20_000, m=500_000)
    partition = fp.spring(large, k=4) if parts else None
    written = []
    # 7 MB have no room for the entries: the adjacency and contracted graphs lie in files.
    for threads, limit in ((1, None), (2, None), (4, None), (1, "7M"), (2, "7M")):
        out = tmp_path / f"{threads}-{limit}.bin"
        graph = fp.open_graph(large.path)  # without an adjacency
        fp.order(graph, partition, out=out, threads=threads, memory_limit=limit)
        written.append((out.read_bytes(), Path(f"{out}.ids.npy").read_bytes()))
    assert written.count(written[0]) == len(written)


def test_another_seed_is_another_order(planted, tmp_path):
    one, other = (fp.order(planted, out=tmp_path / f"{seed}.bin", seed=seed) for seed in (0, 1))
    assert not np.array_equal(one.ids, other.ids)


def test_parts_are_contiguous_in_their_order(planted, tmp_path):
    partition = fp.multilevel(planted, k=5)
    for given in (partition, partition.assignment, tmp_path / "p.npy"):
        partition.save(tmp_path / "p.npy")
        ordering = fp.order(planted, given, k=5, out=tmp_path / "ordered.bin")
        moved = ordering.apply(partition)
        assert np.array_equal(moved.assignment, np.repeat(np.arange(5), partition.loads))
        check(ordering, planted, records_of(planted))


def test_results_come_home(planted, tmp_path):
    ordering = fp.order(planted, out=tmp_path / "ordered.bin")
    labels = np.load(f"{planted.path}.labels.npy")
    assert np.array_equal(ordering.apply(labels)[5], labels[ordering.ids[5]])
    features = np.load(f"{planted.path}.features.npy")
    assert np.array_equal(ordering.restore(ordering.apply(features)), features)
    made = fp.multilevel(ordering.graph, k=4)
    home = ordering.restore(made)
    assert (home.algorithm, home.cap, home.parameters) == (made.algorithm, made.cap, made.parameters)
    assert home.checksum == planted.identify()[1]
    assert home.cut_ratio == made.cut_ratio
    assert np.array_equal(home.loads, made.loads)
    assert ordering.apply(home) == made
    home.save(tmp_path / "parts", graph=planted)
    assert fp.open_partition(tmp_path / "parts", planted) == home
    with pytest.raises(fp.errors.GraphFormatError, match="another graph"):
        ordering.apply(made)
    with pytest.raises(
        fp.errors.ParameterError, match=r"shape \(3,\), expected one row for each of 2000 vertices"
    ):
        ordering.restore([1, 2, 3])


def test_weights_stay_with_their_records(planted, tmp_path):
    weights = np.random.default_rng(0).random(planted.num_edges)
    weighted = fp.open_graph(planted.path, weights=weights)
    ordering = fp.order(weighted, out=tmp_path / "ordered.bin")
    assert np.array_equal(ordering.graph.weights, weighted.weights)
    assert ordering.graph.weight_scale == weighted.weight_scale
    made = fp.multilevel(ordering.graph, k=4)
    assert ordering.restore(made).evaluate().weighted_cut == pytest.approx(made.evaluate().weighted_cut)
    # The order is that of the graph without weights, even where their adjacency is there already.
    fp.multilevel(weighted, k=4)
    again = fp.order(weighted, out=tmp_path / "again.bin")
    assert np.array_equal(again.ids, fp.order(planted, out=tmp_path / "plain.bin").ids)


@pytest.mark.skipif(not (DATA / "com-dblp").exists(), reason="needs the data sets")
def test_neighbours_come_nearer(tmp_path):
    records = np.load(DATA / "com-dblp" / "edges.npy")
    shuffled = np.random.default_rng(0).permutation(317080)[records].astype(np.uint32)
    ordering = fp.order(fp.open_graph(shuffled, num_vertices=317080), out=tmp_path / "ordered.bin")
    assert ordering.bytes_per_entry < 0.6 * ordering.bytes_per_entry_before
    before, after = gaps(shuffled, 317080), gaps(records_of(ordering.graph), 317080)
    assert after < 0.6 * before


def test_refusals(planted, tmp_path):
    out = tmp_path / "ordered.bin"
    with pytest.raises(fp.errors.ParameterError, match="is the input"):
        fp.order(planted, out=planted.path)
    with pytest.raises(fp.errors.ParameterError, match="k: needs a partition"):
        fp.order(planted, out=out, k=4)
    with pytest.raises(fp.errors.GraphFormatError, match="another graph"):
        fp.order(planted, [0, 1], k=2, out=out)
    with pytest.raises(fp.errors.ParameterError, match="parts of edges"):
        fp.order(planted, fp.algorithms.random(planted, 2, of="edges"), out=out)
    with pytest.raises(fp.errors.MemoryBudgetError):
        fp.order(fp.open_graph(planted.path), out=out, memory_limit="100K")
    assert not list(tmp_path.glob("*ordered.bin*"))


def test_command_line(planted, tmp_path, capsys):
    out = tmp_path / "ordered.bin"
    assert main(["order", str(planted.path), "-o", str(out)]) == 0
    ordering = fp.order(planted, out=tmp_path / "other.bin")
    text = capsys.readouterr().out
    assert f"{ordering.bytes_per_entry:.2f} bytes per entry" in text
    assert out.read_bytes() == ordering.graph.path.read_bytes()
    parts = tmp_path / "p.npy"
    fp.spring(planted, k=3).save(parts)
    words = ["order", str(planted.path), "--partition", str(parts), "-k", "3", "-o", str(out), "--json"]
    assert main(words) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["n"] == 2000
    assert facts["bytes_per_entry"] < facts["bytes_per_entry_before"]
    assert main(["order", str(planted.path)]) == 2


# Graphs with types.


def with_types(folder):
    """Write papers in clusters, whose ids are shuffled, and authors that write within one cluster."""
    random, papers, authors, clusters = np.random.default_rng(3), 600, 300, 20
    of_paper, of_author = (random.integers(0, clusters, n) for n in (papers, authors))
    members = [np.flatnonzero(of_paper == each) for each in range(clusters)]
    cites = [(u, random.choice(members[of_paper[u]])) for u in range(papers) for _ in range(4)]
    writes = [(a, random.choice(members[of_author[a]])) for a in range(authors) for _ in range(6)]
    relations = [("cites", "paper", "paper", "merged", cites), ("writes", "author", "paper", True, writes)]
    return Typed([("author", authors), ("paper", papers)], relations).graph(folder)


def test_types_stay_ranges(tmp_path):
    graph = with_types(tmp_path)
    ordering = fp.order(graph, out=tmp_path / "ordered.bin", threads=1)
    check(ordering, graph, records_of(graph))
    assert (ordering.graph.types, ordering.graph.relations) == (graph.types, graph.relations)
    for each in graph.types:
        assert sorted(ordering.ids[each.first : each.range.stop].tolist()) == list(each.range)
    assert ordering.bytes_per_entry < ordering.bytes_per_entry_before
    assert packed(records_of(graph), 900) == pytest.approx(ordering.bytes_per_entry_before)
    assert packed(records_of(ordering.graph), 900) == pytest.approx(ordering.bytes_per_entry)
    writes = slice(graph.relations[1].first, None)  # authors have no edges among themselves
    near = [
        np.abs(np.diff(records_of(each)[writes, 1].astype(int))).mean() for each in (graph, ordering.graph)
    ]
    assert near[1] < near[0]
    ordering.graph.identify()  # refuses records whose ends are not of the types of their relation
    same = fp.order(graph, out=tmp_path / "same.bin", threads=2)
    np.testing.assert_array_equal(same.ids, ordering.ids)


def test_parts_lie_within_types(tmp_path):
    graph = with_types(tmp_path)
    partition = fp.spring(graph, k=3)
    ordering = fp.order(graph, partition, out=tmp_path / "ordered.bin")
    moved = ordering.apply(partition)
    for each in graph.types:
        assert np.all(np.diff(moved.assignment[each.first : each.range.stop]) >= 0)
    np.testing.assert_array_equal(ordering.restore(moved).assignment, partition.assignment)
    before, after = (fp.evaluate(g, p) for g, p in ((graph, partition), (ordering.graph, moved)))
    assert before.relations.equals(after.relations)
    moved.save(tmp_path / "parts", graph=ordering.graph)
    assert [each.name for each in fp.open_partition(tmp_path / "parts").parts[0].types] == ["author", "paper"]
