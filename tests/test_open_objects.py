"""Objects of OGB, torch and PyG as graphs."""

import numpy as np
import pytest

import fastpart as fp
from same_graph import RECORDS, same

BOTH = np.concatenate([RECORDS, RECORDS[:, ::-1]])


def test_graphs_of_ogb():
    item = {"edge_index": BOTH.T, "edge_feat": np.arange(8), "node_feat": None, "num_nodes": 12}
    for source in (item, (item, np.zeros((12, 1))), [item, np.zeros(12)]):
        graph = same(fp.open_graph(source), BOTH, 12)
        assert graph.directedness == "symmetric"
    assert fp.open_graph(item, weights="edge_feat").weights.tolist() == list(range(8))
    with pytest.raises(
        fp.errors.ParameterError, match="the dict has no 'w', only edge_index, edge_feat, num_nodes"
    ):
        fp.open_graph(item, weights="w")
    with pytest.raises(TypeError, match="expected a dict with edge_index and num_nodes, got the keys x"):
        fp.open_graph({"x": 1})
    with pytest.raises(TypeError, match="edge_index_dict, several types of edges"):
        fp.open_graph({"edge_index_dict": {}, "num_nodes_dict": {}})


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")  # torch speaks of its own checks
def test_sparse_tensors_of_torch():
    import torch

    u, v = torch.tensor(BOTH.T.astype(np.int64))
    coo = torch.sparse_coo_tensor(torch.stack([u, v]), torch.arange(1.0, 9.0), (12, 12))
    order = sorted(set(map(tuple, BOTH.tolist())))
    for matrix in (coo.coalesce(), coo.coalesce().to_sparse_csr()):
        graph = fp.open_graph(matrix)
        assert (graph.num_vertices, graph.num_edges, graph.directedness) == (12, 7, "symmetric")
        assert same(graph, order, 12).weights is None
        assert len(fp.open_graph(matrix, weights="data").weights) == 7
    csc = fp.open_graph(coo.coalesce().to_sparse_csc())
    assert csc.degrees().tolist() == fp.open_graph(coo.coalesce()).degrees().tolist()
    same(fp.open_graph(coo), BOTH, 12)
    with pytest.raises(TypeError, match=r"expected a square matrix, got a sparse tensor of shape \(2, 3\)"):
        fp.open_graph(torch.sparse_coo_tensor(torch.zeros((2, 0), dtype=torch.int64), torch.zeros(0), (2, 3)))
    with pytest.raises(fp.errors.ParameterError, match="the sparse tensor has no 'w'"):
        fp.open_graph(coo, weights="w")


def test_an_adjacency_of_torch_sparse():
    class SparseTensor:
        """As much of torch_sparse as is read."""

        def sparse_sizes(self):
            return 12, 12

        def coo(self):
            return BOTH[:, 0].astype(np.int64), BOTH[:, 1].astype(np.int64), None

    assert same(fp.open_graph(SparseTensor()), BOTH, 12).directedness == "symmetric"


@pytest.mark.torch
def test_data_sets_of_pyg():
    pytest.importorskip("torch_geometric")
    import torch
    from torch_geometric.data import Data, InMemoryDataset

    class Tiny(InMemoryDataset):
        """A data set in memory."""

        def __init__(self, graphs):
            super().__init__()
            self.data, self.slices = self.collate(graphs)

    data = Data(edge_index=torch.tensor(BOTH.T.astype(np.int64)), num_nodes=12, w=torch.arange(8))
    assert same(fp.open_graph(Tiny([data])), BOTH, 12).directedness == "symmetric"
    assert fp.open_graph(Tiny([data]), weights="w").weights.tolist() == list(range(8))
    with pytest.raises(TypeError, match=r"has 2 graphs\. Pass one of them, such as dataset\[0\]"):
        fp.open_graph(Tiny([data, data]))


def test_a_column_that_is_called_weight_is_not_left_out_silently(caplog):
    caplog.set_level("INFO", "fastpart")
    frame = pytest.importorskip("polars").DataFrame(
        {"source": [0, 1], "target": [1, 2], "Weight": [2.0, 3.0]}
    )
    for given in ({}, {"weights": "Weight"}, {"weights": False}):
        caplog.clear()
        graph = fp.open_graph(frame, **given)
        said = "graph: the column 'Weight' is not read. Pass weights='Weight' to weight the records"
        assert (said in caplog.messages) == (not given)
        assert (graph.weights is None) == ("Weight" not in given.values())
