"""Graphs of other libraries' objects: the same records as from an array, and what the object knows of them."""

import os
import tempfile
import tracemalloc
import warnings

import numpy as np
import polars as pl
import pytest

import fastpart as fp

PATH = np.array([[0, 1], [1, 2], [2, 3]])
BOTH = np.concatenate([PATH, PATH[:, ::-1]])


def same(source, records=PATH, n=4, directedness="undirected", **options):
    """Check that a source reads as ``records``, in their order, and says what it knows."""
    graph = fp.open_graph(source, **options)
    assert (graph.num_vertices, graph.directedness) == (n, directedness)
    assert graph.identify() == fp.open_graph(np.array(records), num_vertices=n).identify()
    return graph


# Lists, pairs and arrays of other libraries.


class Alien:
    """An array of a library that shares its memory by DLPack only."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize(
    "source",
    [
        PATH.tolist(),
        [tuple(record) for record in PATH.tolist()],
        (PATH[:, 0], PATH[:, 1]),
        [PATH[:, 0], PATH[:, 1]],
        (PATH[:, 0].tolist(), PATH[:, 1].tolist()),
        (pl.Series(PATH[:, 0]), PATH[:, 1]),
        Alien(PATH),
        Alien(PATH.T.copy()),
    ],
    ids=["lists", "tuples", "pair", "list of two", "two lists", "series", "DLPack", "DLPack edge_index"],
)
def test_lists_pairs_and_dlpack(source):
    same(source)


def test_a_list_of_two_pairs_is_two_records():
    same([[0, 1], [0, 2]], [[0, 1], [0, 2]], 3)
    same(((0, 1), (0, 2)), [[0, 1], [0, 2]], 3)
    same((np.array([0, 1]), np.array([0, 2])), [[0, 0], [1, 2]], 3)


@pytest.mark.parametrize("source", [[], (), ([], []), np.empty((0, 2), int)])
def test_no_edges(source):
    assert fp.open_graph(source, num_vertices=3).num_edges == 0
    assert fp.open_graph(source).num_vertices == 0


def test_arrays_of_accelerators_are_refused():
    array = Alien(PATH)
    array.__class__ = type("Distant", (Alien,), {"__dlpack_device__": lambda self: (2, 0)})
    with pytest.raises(TypeError, match=r"Distant is on an accelerator\. Copy it to the CPU"):
        fp.open_graph(array)


def test_dlpack_is_read_in_place():
    array = np.array(PATH)
    graph = fp.open_graph(Alien(array))
    array[0, 1] = 3
    assert graph.degrees().tolist() == [1, 1, 2, 2]


# Tables.


def test_arrow_tables():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"u": PATH[:, 0], "v": PATH[:, 1]})
    same(table)
    same(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()))
    with pytest.raises(
        TypeError, match="the pyarrow frame: expected two columns of integers or strings, got 'u'"
    ):
        fp.open_graph(table.select(["u"]))


def test_pandas_frames():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(PATH, columns=["u", "v"])
    same(frame)
    same(frame.assign(weight=1.0))
    same(frame.assign(id=7).set_axis(["a", "b", "c"], axis=1), columns=("a", 2))
    with pytest.raises(
        TypeError, match=r"the pandas frame: which columns hold the ids\? It has 'a' .*columns="
    ):
        fp.open_graph(frame.assign(id=7).set_axis(["a", "b", "c"], axis=1))
    with pytest.raises(fp.errors.GraphFormatError, match=r"column 'v' has no id in row 1\. Drop such"):
        fp.open_graph(frame.assign(v=[1.0, None, 3.0]))


def test_lazy_frames_are_streamed(tmp_path):
    random = np.random.default_rng(1)
    records = random.integers(0, 5000, (3_000_000, 2), dtype=np.uint32)
    pl.DataFrame(records, schema=["u", "v"]).write_parquet(tmp_path / "g.parquet", row_group_size=200_000)
    tracemalloc.start()
    graph = fp.open_graph(pl.scan_parquet(tmp_path / "g.parquet"), tmp_dir=tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < records.nbytes / 2  # what numpy holds of it
    assert os.listdir(tmp_path) == ["g.parquet"]
    assert graph.identify() == fp.open_graph(records).identify()


def test_lazy_frames_that_hold_no_edges():
    same(pl.LazyFrame({"u": PATH[:, 0], "v": PATH[:, 1].astype(np.uint8)}))
    assert fp.open_graph(pl.LazyFrame(schema={"u": pl.Int64, "v": pl.Int64})).num_edges == 0
    with pytest.raises(fp.errors.GraphFormatError, match="record 1 holds the id -1, outside 0 to"):
        fp.open_graph(pl.LazyFrame({"u": [0, 1], "v": [0, -1]}))
    with pytest.raises(TypeError, match="column 'v' is Float64"):
        fp.open_graph(pl.LazyFrame({"u": [0], "v": [0.5]}))
    with pytest.raises(TypeError, match="the polars frame: expected two columns"):
        fp.open_graph(pl.LazyFrame({"u": [0]}))
    with pytest.raises(fp.errors.ParameterError, match=r"tmp_dir: .* is not a directory"):
        fp.open_graph(pl.LazyFrame({"u": [0], "v": [1]}), tmp_dir=tempfile.gettempdir() + "/none")


# Sparse matrices.


@pytest.mark.parametrize("form", ["coo", "csr", "csc", "bsr", "dia", "dok", "lil"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_scipy_sparse(form, kind):
    sparse = pytest.importorskip("scipy.sparse")
    u, v = BOTH.T
    dense = np.zeros((6, 6))
    dense[u, v] = 0.5
    matrix = getattr(sparse, f"{form}_{kind}")(dense)
    graph = fp.open_graph(matrix)
    assert (graph.num_vertices, graph.num_edges, graph.directedness) == (6, 6, "symmetric")
    assert graph.degrees().tolist() == [2, 4, 4, 2, 0, 0]
    half = fp.open_graph(getattr(sparse, f"{form}_{kind}")(np.triu(dense)))
    assert (half.num_edges, half.directedness) == (3, "directed")
    assert fp.open_graph(matrix, directedness="undirected").directedness == "undirected"


def test_coo_is_read_in_place():
    sparse = pytest.importorskip("scipy.sparse")
    row, column = PATH.T.astype(np.int32)
    matrix = sparse.coo_array((np.ones(3), (row, column)), shape=(1 << 20, 1 << 20))
    graph = fp.open_graph(matrix)
    assert graph.num_vertices == 1 << 20
    matrix.col[0] = 9
    assert graph.degrees()[9] == 1


def test_matrices_that_are_no_graphs():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match=r"expected a square matrix, got .*coo_array of shape \(2, 3\)"):
        fp.open_graph(sparse.coo_array((2, 3)))


def test_symmetry_counts_repeated_edges():
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.coo_array((np.ones(3), ([0, 0, 1], [1, 1, 0])))
    assert fp.open_graph(matrix).directedness == "directed"


# Graph libraries.


def test_networkx(caplog):
    caplog.set_level("INFO", "fastpart")
    nx = pytest.importorskip("networkx")
    records = PATH.tolist()
    graph = nx.Graph(records)
    graph.add_node(4)
    same(graph, n=5)
    same(nx.DiGraph(records), directedness="directed")
    same(nx.MultiGraph([*records, [0, 1]]), [[0, 1], [0, 1], [1, 2], [2, 3]])
    same(nx.MultiDiGraph([*records, [1, 0]]), [[0, 1], [1, 2], [1, 0], [2, 3]], directedness="directed")
    for nodes in ("ab", [1, 2], [0, 2], [0, 1.5], [-1, 0], [("x", 1), ()]):
        caplog.clear()
        same(fp.open_graph(nx.path_graph(nodes[::-1])), [[0, 1]], 2)
        assert "the nodes of the graph in their order" in caplog.text
    caplog.clear()
    same(nx.Graph([(3, 2), (2, 0), (0, 1)]), [[3, 2], [2, 0], [0, 1]])
    assert not caplog.text
    assert fp.spring(nx.karate_club_graph(), k=2).num_vertices == 34


def test_nodes_with_names_are_ids(tmp_path):
    nx = pytest.importorskip("networkx")
    names = [f"member {v}" for v in range(34)]
    named = nx.relabel_nodes(nx.karate_club_graph(), dict(enumerate(names)))
    graph = fp.open_graph(named)
    p = fp.partition(graph, 2)
    assert p.to_frame()["id"].to_list() == list(named)
    # Labels are matched by the name, and a directory keeps the names.
    clubs = {name: named.nodes[name]["club"] for name in named}
    labels = pl.DataFrame({"id": list(clubs), "club": list(clubs.values())}).sample(
        fraction=1, shuffle=True, seed=0
    )
    saved = p.save(tmp_path / "parts", labels=labels)
    assert saved.to_frame()["id"].to_list() == list(named)
    of_class = {
        (label, club)
        for part in saved.parts
        for vertex, label in zip(part.vertices, part.labels, strict=False)  # the owned ones come first
        for club in [clubs[list(named)[vertex]]]
    }
    assert len(of_class) == 2
    # The next graph may list its nodes in another order.
    later = nx.Graph([("newcomer", names[0]), *reversed(list(named.edges))])
    kept = dict(fp.update(later, p).to_frame().rows())
    before = dict(p.to_frame().rows())
    assert sum(kept[name] == part for name, part in before.items()) > 30
    with pytest.raises(fp.errors.ParameterError, match="another library"):
        fp.store.restore(p, graph=graph)


@pytest.mark.parametrize(
    ("nodes", "ids"),
    [
        ([10, 20, 35], [10, 20, 35]),
        ([0, 1, 2], [0, 1, 2]),
        (["a", 20, 35], [0, 1, 2]),
        ([(1, 2), (2, 3), (3, 4)], [0, 1, 2]),
        ([1 << 70, 1, 2], [0, 1, 2]),
    ],
)
def test_nodes_that_no_column_holds_are_numbers(nodes, ids):
    nx = pytest.importorskip("networkx")
    assert fp.partition(nx.path_graph(nodes), 2).to_frame()["id"].to_list() == ids


def test_names_of_igraph_are_ids():
    igraph = pytest.importorskip("igraph")
    graph = igraph.Graph.TupleList([("a", "b"), ("b", "c"), ("c", "d")])
    assert fp.partition(graph, 2).to_frame()["id"].to_list() == graph.vs["name"]
    graph.vs["name"] = ["a", "a", "b", "c"]
    assert fp.partition(graph, 2).to_frame()["id"].to_list() == [0, 1, 2, 3]


def test_graphs_without_edges():
    nx, igraph = pytest.importorskip("networkx"), pytest.importorskip("igraph")
    for n in (0, 3):
        for graph in (nx.empty_graph(n), igraph.Graph(n)):
            assert (fp.open_graph(graph).num_vertices, fp.open_graph(graph).num_edges) == (n, 0)


def test_igraph():
    igraph = pytest.importorskip("igraph")
    same(igraph.Graph(5, PATH.tolist()), n=5)
    same(igraph.Graph(4, PATH.tolist(), directed=True), directedness="directed")
    with pytest.raises(TypeError, match=r"got igraph.*Vertex"):
        fp.open_graph(igraph.Graph(1).vs[0])


def test_rustworkx():
    rustworkx = pytest.importorskip("rustworkx")
    for kind, directedness in ((rustworkx.PyGraph, "undirected"), (rustworkx.PyDiGraph, "directed")):
        graph = kind()
        graph.add_nodes_from(range(5))
        graph.add_edges_from_no_data([tuple(record) for record in PATH.tolist()])
        same(graph, n=5, directedness=directedness)
        graph.remove_node(1)
        with pytest.raises(fp.errors.GraphFormatError, match=r"graph\.subgraph\(graph\.node_indexes\(\)\)"):
            fp.open_graph(graph)
        left = fp.open_graph(graph.subgraph(graph.node_indexes()))
        assert (left.num_vertices, left.num_edges) == (4, 1)
        assert fp.open_graph(kind()).num_vertices == 0


@pytest.mark.dgl
def test_dgl():
    dgl = pytest.importorskip("dgl")
    u, v = BOTH.T
    same(dgl.graph((u, v), num_nodes=5), BOTH, 5, "symmetric")
    same(dgl.graph((PATH[:, 0], PATH[:, 1])), directedness="directed")
    several = dgl.heterograph({("a", "x", "b"): ([0], [0])})
    with pytest.raises(TypeError, match=r"several types.*dgl\.to_homogeneous\(graph\)"):
        fp.open_graph(several)


@pytest.mark.torch
def test_pyg():
    pytest.importorskip("torch_geometric")
    import torch
    from torch_geometric.data import Data, HeteroData

    index = torch.tensor(BOTH.T)
    same(Data(edge_index=index, num_nodes=5), BOTH, 5, "symmetric")
    same(Data(edge_index=index, x=torch.zeros(6, 2)), BOTH, 6, "symmetric")
    same(Data(edge_index=torch.tensor(PATH.T)), directedness="directed")
    with pytest.raises(TypeError, match=r"HeteroData has several types.*graph\.to_homogeneous\(\)"):
        fp.open_graph(HeteroData())
    with pytest.raises(TypeError, match="has no edge_index"):
        fp.open_graph(Data(x=torch.zeros(2, 2)))


@pytest.mark.torch
def test_torch_tensors_in_pairs():
    import torch

    same((torch.tensor(PATH[:, 0]), torch.tensor(PATH[:, 1])))


# What is refused.


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ({(0, 1)}, "got set"),
        (iter([(0, 1)]), "got list_iterator"),
        ((np.arange(3), np.arange(2)), r"one dimension and one length, got shapes \(3,\) and \(2,\)"),
        ((np.eye(2), np.eye(2)), "one dimension"),
        ([[0, 1], [1]], "lists of different lengths"),
        ([[0.5, 1]], "expected integers or strings, got an array of dtype float64"),
    ],
)
def test_the_error_names_what_to_pass(source, text):
    with pytest.raises(TypeError, match=text):
        fp.open_graph(source)


def test_ids_with_gaps_are_told_of():
    records = np.array([[10**6, 5], [5, 7], [7, 9]])
    told = r"largest id is 1,000,000, but 3 records have at most 6 vertices.*relabel=True"
    with pytest.warns(fp.errors.GraphWarning, match=told):
        assert fp.open_graph(records).num_vertices == 10**6 + 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fp.open_graph(records, relabel=True).num_vertices == 4
        fp.open_graph(records, num_vertices=10**6 + 1)
        fp.open_graph(np.arange(8000).reshape(-1, 2))


def test_columns_that_are_nearly_ids_are_told_how_to_become_some():
    pd = pytest.importorskip("pandas")
    told = r"got 'x' \(float64\), 'y' .*Drop rows without an id, and cast whole numbers to integers$"
    with pytest.raises(TypeError, match=told):
        fp.open_graph(pd.DataFrame({"x": [1.0, 2.0], "y": [2.0, np.nan]}))
    with pytest.raises(
        TypeError, match=r"column 'u' holds 3 of type int\. Expected strings.*\.astype\(str\)$"
    ):
        fp.open_graph(pd.DataFrame({"u": ["x", 3], "v": ["y", "z"]}))
