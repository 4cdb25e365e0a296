"""Weighted records: opening, scaling, partitioning and measuring them."""

import json
import pickle
import re
import warnings

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart import _core
from fastpart.cli import main
from needed import needed
from soaked import examples

nx = pytest.importorskip("networkx")
pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.filterwarnings("ignore:.*assumed n")


def planted(n=200):
    """Records of which weights alone show two communities, odd and even, and these weights."""
    u, v = np.triu_indices(n, 1)
    kept = (u * 31 + v * 17) % 5 < 2
    records = np.stack([u[kept], v[kept]], axis=1).astype(np.uint32)
    return records, np.where((records[:, 0] + records[:, 1]) % 2, 1, 20)


def slow_cut(records, weights, parts):
    return sum(
        w for (u, v), w in zip(records.tolist(), weights.tolist(), strict=True) if parts[u] != parts[v]
    )


@st.composite
def weighted(draw, most=30):
    n = draw(st.integers(1, 20))
    ends = st.integers(0, n - 1)
    rows = draw(st.lists(st.tuples(ends, ends, st.integers(1, 100)), min_size=1, max_size=most))
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return n, table[:, :2].astype(np.uint32), table[:, 2]


@given(weighted(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_evaluate_agrees_with_a_slow_count(graph, k, random):
    n, records, weights = graph
    parts = np.array([random.randrange(k) for _ in range(n)])
    e = fp.evaluate(
        fp.open_graph(records, num_vertices=n, weights=weights), fp.VertexPartition(parts, k), threads=2
    )
    proper = records[:, 0] != records[:, 1]
    cut = slow_cut(records, weights, parts)
    assert e.weighted_cut == cut
    assert e.weighted_cut_ratio == pytest.approx(cut / max(weights[proper].sum(), 1))
    assert e.parts["weight_cut"].sum() == 2 * cut
    assert e.parts["weight_internal"].sum() + cut == weights[proper].sum()


@examples(10)
@given(weighted(), st.integers(1, 1000), st.integers(1, 4))
def test_equal_weights_give_what_no_weights_give(graph, weight, k):
    n, records, _ = graph
    opened = fp.open_graph(records, num_vertices=n, weights=np.full(len(records), weight))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fp.errors.CapacityWarning)
        assert fp.multilevel(opened, k) == fp.multilevel(fp.open_graph(records, num_vertices=n), k)


@examples(10)
@given(weighted())
def test_records_of_one_pair_are_one_record_of_their_sum(graph):
    n, records, weights = graph
    pairs = np.sort(records, axis=1)
    single, inverse = np.unique(pairs, axis=0, return_inverse=True)
    sums = np.bincount(inverse.ravel(), weights)
    parts = np.arange(n) % 2
    several = fp.evaluate(fp.open_graph(records, num_vertices=n, weights=weights), parts)
    one = fp.evaluate(fp.open_graph(single, num_vertices=n, weights=sums), parts)
    assert several.weighted_cut == one.weighted_cut


def test_weights_alone_show_the_communities():
    records, weights = planted()
    graph = fp.open_graph(records, weights=weights)
    found = [fp.multilevel(graph, 2, threads=threads) for threads in (1, 2, 3)]
    assert found[0] == found[1] == found[2]
    crossing = int((weights == 1).sum())
    assert found[0].evaluate().weighted_cut == crossing
    assert fp.partition(graph, 2) == found[0]
    assert fp.evaluate(graph, fp.multilevel(records, 2)).weighted_cut > 3 * crossing
    volumes = fp.multilevel(graph, 2, volume_balance=1.1)
    assert volumes.volume_loads.sum() == 2 * len(records) + 200  # degrees, not weights


@pytest.mark.parametrize("options", [{"objective": "halo"}, {"machines": [2, 2]}, {"effort": "best"}])
def test_every_way_to_partition_reads_weights(options):
    records, weights = planted(120)
    graph = fp.open_graph(records, weights=weights)
    one, three = (fp.multilevel(graph, 4, **options, threads=threads) for threads in (1, 3))
    assert one == three


def test_floats_are_scaled_once():
    records, weights = planted(60)
    whole = fp.open_graph(records, weights=weights.astype(np.float32))
    assert whole.weight_scale == 1
    assert whole == fp.open_graph(records, weights=weights)
    halves = fp.open_graph(records, weights=weights / 2)
    assert halves.weight_scale == 2**27
    assert halves.weights.dtype == np.uint32
    assert halves.weights.max() == 10 * 2**27
    p = fp.multilevel(halves, 2)
    assert p.evaluate().weighted_cut == (weights == 1).sum() / 2
    assert repr(halves).endswith("undirected, weights 0.5 to 10>")
    tiny = fp.open_graph(records[:3], weights=[1e-300, 1.5, 0.0])
    assert tiny.weights.tolist() == [1, 1.5 * 2**30, 0]
    assert fp.open_graph(records[:2], weights=[5e-324, 0.0]).weight_scale > 1
    assert fp.open_graph(records[:2], weights=[1e30, 2e30]).weight_scale < 1
    assert fp.open_graph(records[:2], weights=np.array([2**32 - 1, 7], np.int64)).weight_scale == 1
    assert fp.info(halves)["weights"] == {
        "min": 0.5,
        "max": 10.0,
        "sum": weights.sum() / 2,
        "scale": 2.0**27,
    }
    assert "weights" not in fp.info(records)


def test_weights_of_an_arrow_table():
    pytest.importorskip("pyarrow")
    records, weights = planted(30)
    frame = pl.DataFrame({"source": records[:, 0], "target": records[:, 1], "count": weights})
    opened = fp.open_graph(frame.to_arrow(), weights="count")
    assert np.array_equal(opened.weights, fp.open_graph(records, weights=weights).weights)


def test_weights_of_other_libraries():
    records, weights = planted(30)
    n, m = 30, len(records)
    expected = fp.open_graph(records, weights=weights).weights
    matrix = sp.coo_array((weights, records.T), shape=(n, n))
    assert np.array_equal(fp.open_graph(matrix, weights="data").weights, expected)
    assert fp.open_graph(matrix).weights is None
    frame = {"source": records[:, 0], "target": records[:, 1], "count": weights}
    for table in (pl.DataFrame(frame), pd.DataFrame(frame)):
        opened = fp.open_graph(table, weights="count")
        assert opened.num_edges == m
        assert np.array_equal(opened.weights, expected)
    graph = nx.Graph()
    graph.add_weighted_edges_from([(0, 1, 2.5), (1, 2, 4)])
    graph.add_edge(2, 0)
    facts = fp.info(fp.open_graph(graph, weights="weight"))["weights"]
    assert (facts["min"], facts["max"], facts["sum"]) == (1, 4, 7.5)
    for source, name, text in [
        (matrix, "weight", 'A matrix has "data"'),
        (graph, "wt", "no edge of the networkx graph has 'wt'. Attributes of its edges: 'weight'"),
        (
            nx.path_graph(3),
            "weight",
            "no edge of the networkx graph has 'weight'. Attributes of its edges: none",
        ),
        (pl.DataFrame(frame), "w", "only source, target, count"),
        (pd.DataFrame(frame), "w", "no column 'w'"),
    ]:
        with pytest.raises(fp.errors.ParameterError, match=text):
            fp.open_graph(source, weights=name)
    assert fp.open_graph(nx.empty_graph(3), weights="weight").num_edges == 0
    with pytest.raises(TypeError, match="collect"):
        fp.open_graph(pl.LazyFrame(frame), weights="count")


@pytest.mark.parametrize(
    ("weights", "error", "text"),
    [
        ([1, 2], fp.errors.ParameterError, "2 weights for 3 records"),
        ([1, -1, 2], fp.errors.ParameterError, "record 1 has the weight -1"),
        ([1, 2, np.nan], fp.errors.ParameterError, "record 2 has the weight nan"),
        ([np.inf, 1, 1], fp.errors.ParameterError, "record 0 has the weight inf"),
        ([0, 0, 0], fp.errors.ParameterError, "all weights are 0"),
        (["a", "b", "c"], TypeError, "one number per record"),
        ([[1, 2, 3]], TypeError, "one number per record"),
        (3, TypeError, "one number per record"),
    ],
)
def test_wrong_weights_are_refused(weights, error, text):
    with pytest.raises(error, match=text):
        fp.open_graph(np.array([[0, 1], [1, 2], [2, 0]]), weights=weights)


@pytest.fixture
def stored(tmp_path):
    """A raw file with weights beside it."""
    records, weights = planted(60)
    records.tofile(tmp_path / "g.bin")
    np.save(tmp_path / "g.bin.weights.npy", weights.astype(np.uint32))
    return tmp_path / "g.bin", records, weights


@pytest.mark.parametrize("io", ["mmap", "read"])
def test_weights_beside_a_file_are_found(stored, io):
    file, records, weights = stored
    graph = fp.open_graph(file, io=io)
    assert np.array_equal(graph.weights, weights)
    assert not graph.weights.flags.writeable
    assert "weights 1 to 20" in repr(graph)
    assert "1 to 20" in graph._repr_html_()
    assert fp.multilevel(graph, 2) == fp.multilevel(fp.open_graph(records, weights=weights), 2)
    assert fp.open_graph(file, weights=False).weights is None
    np.save(file.with_name("other.npy"), weights / 4)
    other = fp.open_graph(file, weights=str(file.with_name("other.npy")))
    assert (other.weight_scale, other == graph) == (2**28, False)
    again = pickle.loads(pickle.dumps(graph))
    assert again == graph
    assert np.array_equal(again.weights, weights)


def test_weights_of_another_file_are_refused(stored):
    file, _, weights = stored
    companion = file.with_name("g.bin.weights.npy")
    graph = fp.open_graph(file)
    state = pickle.dumps(graph)
    whole = companion.read_bytes()
    companion.write_bytes(whole[:-3])
    with pytest.raises(fp.errors.GraphFormatError, match=r"g\.bin\.weights\.npy: not a \.npy of weights"):
        fp.open_graph(file)
    with pytest.raises(fp.errors.EdgeFileChangedError):
        fp.multilevel(graph, 2)
    np.save(companion, weights[:5].astype(np.uint32))
    with pytest.raises(fp.errors.GraphFormatError, match=f"5 weights for {len(weights)} records"):
        fp.open_graph(file)
    np.save(companion, weights[::-1].astype(np.uint32))
    with pytest.raises(fp.errors.EdgeFileChangedError, match="the weights changed"):
        pickle.loads(state)
    np.save(companion, np.array(["a"] * len(weights)))
    with pytest.raises(TypeError, match="one number per record"):
        fp.open_graph(file)


def test_algorithms_that_do_not_read_weights_say_so():
    records, weights = planted(40)
    graph = fp.open_graph(records, weights=weights)
    readers = [known.name for known in _core.algorithms() if known.reads_weights]
    assert readers == ["multilevel"]
    for known in _core.algorithms():
        function = getattr(fp.algorithms, known.name)
        told = "multiply the cut" if known.reads_weights else "not read"
        assert told in function.__doc__
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            result = function(graph, 2, **needed(known.name, graph.num_vertices))
        texts = [str(each.message) for each in seen if "does not read the weights" in str(each.message)]
        assert len(texts) == (0 if known.reads_weights else 1)
        if not known.reads_weights:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert function(records, 2, **needed(known.name, graph.num_vertices)) == result
    with pytest.warns(fp.errors.GraphWarning, match="cluster does not read"):
        fp.cluster(graph)


def test_compare_measures_weights():
    records, weights = planted(60)
    graph = fp.open_graph(records, weights=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        summary = fp.compare(graph, 2, ["multilevel", "random"]).summary
    ours, random = summary["weighted_cut_ratio"]
    assert ours < random
    assert "weighted_cut_ratio" not in fp.compare(records, 2, ["random"]).summary.columns


def test_peers_get_weights():
    from fastpart.measures.compare.peers.child import simple_graph

    records = np.array([[0, 1], [1, 0], [1, 2], [2, 2]], np.uint32)
    _, indices, weights = simple_graph(records, 3, np.array([3, 4, 0, 9], np.uint32))
    assert indices.tolist() == [1, 0, 2, 1]
    assert weights.tolist() == [7, 7, 1, 1]
    _, _, weights = simple_graph(records, 3, np.full(4, 2**32 - 1, np.uint32))
    assert weights.sum() <= 2**31
    assert weights[0] in (2 * weights[2], 2 * weights[2] - 1)


def test_partitions_of_weighted_graphs_are_saved_and_opened(stored, tmp_path):
    file, _, weights = stored
    graph = fp.open_graph(file)
    p = fp.multilevel(graph, 2)
    p.save(tmp_path / "parts", graph=graph, edge_features=weights.reshape(-1, 1).astype(np.float32))
    again = fp.open_partition(tmp_path / "parts", graph)
    assert again.evaluate().weighted_cut == p.evaluate().weighted_cut
    # The records are the same, so the partition fits them without weights, too.
    assert fp.open_partition(tmp_path / "parts", fp.open_graph(file, weights=False)) == again


def test_a_graph_that_is_open_takes_no_weights():
    graph = fp.open_graph(np.array([[0, 1]]))
    with pytest.raises(fp.errors.ParameterError, match="open already"):
        fp.open_graph(graph, weights=[1])


def test_a_symmetric_graph_needs_symmetric_weights():
    both = np.array([[0, 1], [1, 0], [1, 2], [2, 1]])
    fp.multilevel(fp.open_graph(both, directedness="symmetric", weights=[3, 3, 4, 4]), 2)
    graph = fp.open_graph(both, directedness="symmetric", weights=[3, 2, 4, 4])
    with pytest.raises(fp.errors.ParameterError, match="differ in weight"):
        fp.multilevel(graph, 2)


# Conversion.


def lines(records, weights):
    return "".join(f"{u} {v} {w}\n" for (u, v), w in zip(records.tolist(), weights.tolist(), strict=True))


def test_text_and_back(tmp_path):
    records, weights = planted(40)
    (tmp_path / "g.txt").write_text(lines(records, weights / 4))
    graph = fp.convert(tmp_path / "g.txt", tmp_path / "g.bin", weights=3)
    assert graph.weight_scale == 2**28
    assert graph == fp.open_graph(tmp_path / "g.bin")
    assert np.array_equal(graph.weights / graph.weight_scale, weights / 4)
    described = json.loads((tmp_path / "g.bin.json").read_text())["weights"]
    assert described["scale"] == 2**28
    assert len(described["checksum"]) == 32
    assert fp.convert(tmp_path / "g.txt", tmp_path / "plain.bin").weights is None
    back = fp.convert(tmp_path / "g.bin", tmp_path / "back.txt")
    assert np.array_equal(back.weights, graph.weights)
    assert back.weight_scale == graph.weight_scale
    assert np.allclose(np.loadtxt(tmp_path / "back.txt")[:, 2], weights / 4)
    # An output without weights leaves no weights of an earlier one behind.
    assert fp.convert(tmp_path / "g.txt", tmp_path / "g.bin").weights is None
    assert not (tmp_path / "g.bin.weights.npy").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "back.txt", "g.bin", "g.bin.json", "g.txt", "plain.bin", "plain.bin.json",
    ]  # fmt: skip


def test_metis_and_back(tmp_path):
    (tmp_path / "g.graph").write_text("3 3 1\n2 5 3 7\n1 5 3 9\n1 7 2 9\n")
    graph = fp.convert(tmp_path / "g.graph", tmp_path / "g.bin")
    assert graph.weights.tolist() == [5, 7, 9]
    fp.convert(tmp_path / "g.bin", tmp_path / "again.metis")
    assert (tmp_path / "again.metis").read_text() == "3 3 1\n2 5 3 7\n1 5 3 9\n1 7 2 9\n"
    assert fp.convert(tmp_path / "g.graph", tmp_path / "none.bin", weights=False).weights is None
    (tmp_path / "bad.graph").write_text("3 3 1\n2 5 3 7\n1 5 3 9\n1 7 2 8\n")
    with pytest.raises(fp.errors.GraphFormatError, match="with one weight"):
        fp.convert(tmp_path / "bad.graph", tmp_path / "bad.bin")
    assert not (tmp_path / "bad.bin").exists()


def test_a_long_metis_graph_keeps_weights_in_order(tmp_path):
    n = 20_000
    rows = [
        f"{n} {n - 1} 1",
        "2 1",
        *(f"{v - 1} {v - 1} {v + 1} {v}" for v in range(2, n)),
        f"{n - 1} {n - 1}",
    ]
    (tmp_path / "path.graph").write_text("\n".join(rows) + "\n")
    graph = fp.convert(tmp_path / "path.graph", tmp_path / "path.bin")
    assert np.array_equal(graph.weights, np.arange(1, n))


def test_parquet_and_back(tmp_path):
    records, weights = planted(40)
    frame = pl.DataFrame({"a": records[:, 0], "count": weights, "b": records[:, 1]})
    frame.write_parquet(tmp_path / "g.parquet")
    graph = fp.convert(tmp_path / "g.parquet", tmp_path / "g.bin", weights="count")
    assert np.array_equal(graph.weights, weights)
    fp.convert(tmp_path / "g.bin", tmp_path / "back.parquet")
    assert pl.read_parquet(tmp_path / "back.parquet")["weight"].to_list() == weights.tolist()
    with pytest.raises(fp.errors.ParameterError, match="has no column 'w'"):
        fp.convert(tmp_path / "g.parquet", tmp_path / "h.bin", weights="w")


def test_loops_go_with_their_weights(tmp_path):
    (tmp_path / "g.txt").write_text("7 7 1\n7 900 2\n900 900 3\n900 8 4\n")
    graph = fp.convert(tmp_path / "g.txt", tmp_path / "g.bin", weights=3, relabel=True)
    assert graph.weights.tolist() == [1, 2, 3, 4]
    clean = fp.convert(tmp_path / "g.bin", tmp_path / "h.bin", drop_loops=True)
    assert (clean.num_edges, clean.weights.tolist()) == (2, [2, 4])
    for change in ({"dedup": True}, {"shuffle": True}):
        with pytest.raises(fp.errors.ParameterError, match="do not keep the weights"):
            fp.convert(tmp_path / "g.bin", tmp_path / "i.bin", **change)
        with pytest.raises(fp.errors.ParameterError, match="do not keep the weights"):
            fp.convert(tmp_path / "g.txt", tmp_path / "i.bin", weights=3, relabel=True, **change)
        assert fp.convert(tmp_path / "g.bin", tmp_path / "i.bin", weights=False, **change).weights is None


@pytest.mark.parametrize(
    ("text", "column", "error"),
    [
        ("0 1 2\n1 2\n", 3, "line 2, column 4: 2 columns, but the first line has 3"),
        ("0 1 2\n1 2 x\n", 3, 'line 2, column 5: "x" is no weight'),
        ("0 1 -2\n", 3, 'line 1, column 5: "-2" is no weight'),
        ("0,1,7,nan\n", 4, 'line 1, column 7: "nan" is no weight'),
        ("0 1 0\n", 3, "all weights are 0"),
        ("0 1 2\n", 2, "weights: 2 is not between 3"),
    ],
)
def test_wrong_columns_are_refused(tmp_path, text, column, error):
    (tmp_path / "g.txt").write_text(text)
    with pytest.raises(fp.FastpartError, match=error):
        fp.convert(tmp_path / "g.txt", tmp_path / "g.bin", weights=column)
    assert [path.name for path in tmp_path.iterdir()] == ["g.txt"]


def test_a_sidecar_that_describes_other_weights(tmp_path):
    (tmp_path / "g.txt").write_text("0 1 2\n1 2 3\n")
    fp.convert(tmp_path / "g.txt", tmp_path / "g.bin", weights=3)
    np.save(tmp_path / "g.bin.weights.npy", np.array([3, 2], np.uint32))
    with pytest.raises(fp.errors.GraphFormatError, match="other weights than the sidecar"):
        fp.open_graph(tmp_path / "g.bin")
    (tmp_path / "g.bin.weights.npy").unlink()
    with pytest.raises(FileNotFoundError, match=r"g\.bin\.weights\.npy"):
        fp.open_graph(tmp_path / "g.bin")
    assert fp.open_graph(tmp_path / "g.bin", weights=False).weights is None


def test_the_command_line(tmp_path, capfd):
    def call(*words):
        return main(list(map(str, words))), capfd.readouterr()

    records, weights = planted(60)
    (tmp_path / "g.txt").write_text(lines(records, weights))
    code, said = call("convert", tmp_path / "g.txt", tmp_path / "g.bin", "--weights", "3")
    assert code == 0
    assert "undirected, weights 1 to 20" in said.out
    code, said = call("partition", tmp_path / "g.bin", "-k", "2", "--json")
    summary = json.loads(said.out)["summary"]
    assert summary["weighted_cut"] == (weights == 1).sum()
    assert said.err.count("the records have weights 1 to 20") == 1
    _, said = call("partition", tmp_path / "g.bin", "-k", "2", "--json", "--weights", "no")
    assert "weighted_cut" not in json.loads(said.out)["summary"]
    _, said = call("info", tmp_path / "g.bin")
    assert re.search(r"^weights +1 to 20, sum [\d,]+$", said.out, re.MULTILINE)
