"""Training on GPUs. `pytest -m gpu` runs it where there is one; elsewhere it is skipped."""

import pytest

import fastpart as fp
from trainable import planted

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]

QUICK = {"hidden": 8, "threads": 1, "epochs": 3, "dropout": 0.0}


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("planted"), k=1)


def assert_same(one, other, tolerance):
    losses = pytest.approx(other.history["loss"].to_list(), rel=tolerance)
    assert one.history["loss"].to_list() == losses
    for name, weight in one.weights.items():
        torch.testing.assert_close(weight, other.weights[name], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("model", ["graphsage", "gcn", "gat", "clustergcn", "graphsaint"])
def test_sampled_is_as_on_the_cpu(parts, model):
    given = {**QUICK, "model": model, "batch_size": 100, "fanouts": [4, 3], "workers": 1}
    on_gpu = fp.train.sampled(parts, device="cuda", **given)
    assert_same(on_gpu, fp.train.sampled(parts, **given), 1e-3)
    assert all(weight.device.type == "cpu" for weight in on_gpu.weights.values())


@pytest.mark.parametrize("batch_size", [None, 100])
@pytest.mark.parametrize("model", ["graphsage", "clustergcn", "graphsaint"])
def test_the_whole_graph_is_as_on_the_cpu(parts, model, batch_size):
    given = {**QUICK, "model": model, "batch_size": batch_size}
    assert_same(fp.train.full(parts, device="cuda", **given), fp.train.full(parts, **given), 1e-3)


@pytest.mark.parametrize("given", [{}, {"embeddings": 6}, {"decoder": "mlp", "resident": "1M"}])
def test_links_are_as_on_the_cpu(tmp_path, given):
    graph = fp.generate.planted(tmp_path / "g.bin", n=300, m=2000, classes=3, features=4, seed=1)
    splits = fp.split_edges(graph, seed=2)
    features = tmp_path / "g.bin.features.npy"
    fp.algorithms.random(splits.graph, k=1, of="vertices").save(
        tmp_path / "parts", graph=splits.graph, edge_splits=splits, features=features
    )
    given = {**QUICK, "batch_size": 100, "fanouts": [4, 3], "workers": 1, **given}
    on_gpu = fp.train.links(tmp_path / "parts", device="cuda", **given)
    assert_same(on_gpu, fp.train.links(tmp_path / "parts", **given), 1e-3)


def test_sampled_learns_with_bfloat16(parts):
    given = {**QUICK, "epochs": 15, "batch_size": 100, "workers": 1, "device": "cuda"}
    trained = fp.train.sampled(parts, precision="bfloat16", **given)
    assert trained.summary["test_accuracy"] > 0.85


def test_batches_of_the_loader_lie_there(parts):
    stored = fp.open_partition(parts, of="vertices")
    loaders = [stored.loader(fanouts=[4, 3], batch_size=100, device=device) for device in ("cuda", None)]
    for there, here in zip(*loaders, strict=True):
        assert there.x.is_cuda
        assert torch.equal(there.x.cpu(), here.x)
        assert torch.equal(there.blocks()[0].edge_index.cpu(), here.blocks()[0].edge_index)


@pytest.mark.parametrize("room", [0, 2000, "1M", None])
def test_rows_that_stay_there_change_no_batch(parts, room):
    stored = fp.open_partition(parts, of="vertices")
    given = {"fanouts": [4, 3], "batch_size": 100}
    with_rows, without = stored.loader(device="cuda", resident=room, **given), stored.loader(**given)
    for there, here in zip(with_rows, without, strict=True):
        assert torch.equal(there.x.cpu(), here.x)


def test_full_batches_are_as_on_the_cpu(parts, tmp_path):
    one, other = (fp.train.sancus(parts, device=device, **QUICK) for device in ("cuda", "cpu"))
    assert_same(one, other, 1e-3)
    edges = fp.generate.planted(tmp_path / "g.bin", n=300, m=2000, classes=3, features=4, seed=1)
    saved = {"features": tmp_path / "g.bin.features.npy", "labels": tmp_path / "g.bin.labels.npy"}
    splits = {"train": range(150), "val": range(150, 200), "test": range(200, 300)}
    folder = tmp_path / "edges"
    fp.algorithms.random(edges, k=1, of="edges").save(folder, graph=edges, splits=splits, **saved)
    one, other = (fp.train.distgnn(folder, device=device, **QUICK) for device in ("cuda", "cpu"))
    assert_same(one, other, 1e-3)
