"""`fastpart.pyg.ClusterData`: PyG's class, with our parts in the place of those of METIS."""

import inspect

import numpy as np
import pytest

import fastpart as fp

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch_geometric.data import Data  # noqa: E402
from torch_geometric.loader import ClusterData, ClusterLoader  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]
N = 200


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    ends = torch.from_numpy(rng.integers(0, N, (2, 600)))
    both = torch.cat([ends, ends.flip(0)], dim=1)
    return Data(x=torch.arange(N).unsqueeze(1).float(), edge_index=both, edge_attr=both[0] * N + both[1])


@pytest.mark.parametrize("sparse_format", ["csr", "csc"])
@pytest.mark.parametrize("keep", [False, True])
def test_items_are_the_parts_of_multilevel(data, sparse_format, keep):
    clusters = fp.pyg.ClusterData(data, 5, keep_inter_cluster_edges=keep, sparse_format=sparse_format)
    p = fp.multilevel(data.edge_index.numpy(), 5, min_balance=0.5)
    assert len(clusters) == 5
    for part, cluster in enumerate(clusters):
        assert set(cluster.x[:, 0].long().tolist()) == set(np.flatnonzero(p.assignment == part).tolist())
        sources, targets = cluster.edge_attr // N, cluster.edge_attr % N
        inside = torch.tensor(p.assignment)[torch.stack([sources, targets])] == part
        assert (inside[0] | inside[1]).all() if keep else inside.all()


def test_pygs_loader_merges_them(data):
    batches = list(ClusterLoader(fp.pyg.ClusterData(data, 6), batch_size=2))
    assert sorted(int(v) for batch in batches for v in batch.x[:, 0]) == list(range(N))
    for batch in batches:
        ids = batch.x[:, 0].long()
        assert torch.equal(ids[batch.edge_index[0]] * N + ids[batch.edge_index[1]], batch.edge_attr)


def test_no_part_is_empty(data):
    clusters = fp.pyg.ClusterData(data, N // 2)
    assert min(cluster.num_nodes for cluster in clusters) >= 1
    with pytest.warns(fp.errors.CapacityWarning):
        assert len(fp.pyg.ClusterData(data, N + 1)) == N + 1


@pytest.mark.filterwarnings("ignore:Weights only load failed")  # PyG reads its own class
def test_kept_parts_are_found_again_and_those_of_metis_are_not(data, tmp_path):
    (tmp_path / "part_4").mkdir()
    (tmp_path / "part_4" / "metis.pt").write_text("of PyG")
    first = fp.pyg.ClusterData(data, 4, save_dir=str(tmp_path))
    assert (tmp_path / "part_4" / "fastpart.pt").exists()
    again = fp.pyg.ClusterData(data, 4, save_dir=str(tmp_path))
    assert torch.equal(first.partition.node_perm, again.partition.node_perm)


def test_the_signature_is_that_of_pyg():
    mine, theirs = (inspect.signature(each).parameters for each in (fp.pyg.ClusterData, ClusterData))
    assert [(each.name, each.default) for each in mine.values()] == [
        (each.name, each.default) for each in theirs.values()
    ]


@pytest.mark.filterwarnings("ignore:Weights only load failed")  # PyG reads its own class
@pytest.mark.parametrize("sparse_format", ["csr", "csc"])
def test_kept_parts_of_another_graph_are_refused(data, tmp_path, sparse_format):
    given = {"save_dir": str(tmp_path), "sparse_format": sparse_format}
    fp.pyg.ClusterData(data, 4, **given)
    fp.pyg.ClusterData(data, 4, **given)
    renamed, fewer = (data.edge_index + 1) % data.num_nodes, data.edge_index[:, :-2]
    for edges in (renamed, fewer):
        other = Data(edge_index=edges, num_nodes=data.num_nodes)
        with pytest.raises(fp.errors.ParameterError, match=r"fastpart\.pt holds the parts of another graph"):
            fp.pyg.ClusterData(other, 4, **given)
