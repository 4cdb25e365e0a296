"""Link prediction that does not look ahead: the same losses for any partition, and held-out pairs that come later."""

import numpy as np
import pytest

import fastpart as fp
from temporal import timed_graph

pytest.importorskip("torch")

N = 200
HOW = {"fanouts": [4, 3], "batch_size": 100, "hidden": 8, "epochs": 2, "dropout": 0.2, "precision": "float64"}


@pytest.fixture(scope="module")
def splits():
    records, _, edge_times = timed_graph(N, 1500)
    edge_times = np.maximum(edge_times, 0)
    return fp.split_edges(fp.open_graph(records, num_vertices=N), 0.1, 0.2, times=edge_times)


def save(folder, splits, k, **changed):
    """Save a random partition of the training graph."""
    rng = np.random.default_rng(0)
    given = {
        "features": rng.normal(size=(N, 6)).astype(np.float32),
        "times": np.minimum(rng.integers(-50, 60, N), -1),
        "edge_times": splits.edge_times,
        "edge_splits": splits,
    }
    partition = fp.random(splits.graph, k=k, of="vertices")
    partition.save(folder, graph=splits.graph, **given | changed)
    return folder


@pytest.mark.parametrize("negatives", ["uniform", "batch"])
def test_losses_and_scores_are_the_same_for_any_partition(tmp_path, splits, negatives):
    found = []
    for k, workers in [(1, 1), (2, 2), (4, 1)]:
        folder = save(tmp_path / f"{k}", splits, k)
        trained = fp.train.links(folder, workers=workers, temporal="uniform", negatives=negatives, **HOW)
        numbers = trained.history.select("loss", "val_mrr").to_numpy()
        found.append([*numbers.ravel(), trained.summary["test_mrr"], trained.summary["test_auc"]])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-7)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-7)


def test_learned_rows_and_graphs_without_times_of_vertices(tmp_path, splits):
    folder = save(tmp_path / "parts", splits, 2, features=None, times=None)
    trained = fp.train.links(
        folder, workers=1, temporal="last", embeddings=4, **HOW | {"precision": "float32"}
    )
    assert trained.embeddings.shape == (N, 4)
    assert 0 < trained.summary["test_mrr"] <= 1


def test_what_would_look_ahead_is_refused(tmp_path, splits):
    how = {"workers": 1, "temporal": "uniform", **HOW}
    pairs = {"val": splits.val, "test": splits.test}
    with pytest.raises(fp.ParameterError, match=r"were not split by time.*split_edges\(graph, times=times\)"):
        fp.train.links(save(tmp_path / "untimed", splits, 2, edge_splits=pairs), **how)
    late = splits.edge_times.copy()
    late[-1] = splits.val_times.min()
    with pytest.raises(fp.ParameterError, match="where the held-out pairs begin"):
        fp.train.links(save(tmp_path / "late", splits, 2, edge_times=late), **how)
    with pytest.raises(fp.ParameterError, match="or the source of one, that came at"):
        fp.train.links(save(tmp_path / "sources", splits, 2, times=np.full(N, 1000)), **how)
    with pytest.raises(fp.ParameterError, match="edges have no time"):
        fp.train.links(save(tmp_path / "none", splits, 2, edge_times=None), **how)
    with pytest.raises(fp.ParameterError, match="in-degrees of the whole graph"):
        fp.train.links(save(tmp_path / "gcn", splits, 2), model="gcn", **how)
