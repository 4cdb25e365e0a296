"""Link prediction that does not look ahead: the same losses for any partition, and held-out pairs that come later."""

import numpy as np
import pytest

import fastpart as fp
from random_typed import typed_graph
from temporal import timed_graph

torch = pytest.importorskip("torch")

from fastpart.core.pairs import mixed  # noqa: E402

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
    partition = fp.algorithms.random(splits.graph, k=k, of="vertices")
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
    with pytest.raises(
        fp.errors.ParameterError, match=r"were not split by time.*split_edges\(graph, times=times\)"
    ):
        fp.train.links(save(tmp_path / "untimed", splits, 2, edge_splits=pairs), **how)
    late = splits.edge_times.copy()
    late[-1] = splits.val_times.min()
    with pytest.raises(fp.errors.ParameterError, match="where the held-out pairs begin"):
        fp.train.links(save(tmp_path / "late", splits, 2, edge_times=late), **how)
    with pytest.raises(fp.errors.ParameterError, match="or the source of one, that came at"):
        fp.train.links(save(tmp_path / "sources", splits, 2, times=np.full(N, 1000)), **how)
    with pytest.raises(fp.errors.ParameterError, match="edges have no time"):
        fp.train.links(save(tmp_path / "none", splits, 2, edge_times=None), **how)
    with pytest.raises(fp.errors.ParameterError, match="in-degrees of the whole graph"):
        fp.train.links(save(tmp_path / "gcn", splits, 2), model="gcn", **how)


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    """Splits by time of papers that authors write and that cite. Topics were always there. 30 papers have no edge."""
    rng, sizes = np.random.default_rng(0), {"author": 60, "field": 8, "paper": 180}
    relations = {
        name: (source, target, np.stack([rng.integers(0, n, 400), rng.integers(0, m, 400)], axis=1))
        for name, source, target, n, m in (
            ("cites", "paper", "paper", 150, 150),
            ("has_topic", "paper", "field", 150, 8),
            ("writes", "author", "paper", 60, 150),
        )
    }
    graph = typed_graph(tmp_path_factory.mktemp("typed") / "graph", sizes, relations)
    times = {name: rng.integers(0, 100, 400) for name in ("cites", "writes")}
    return fp.split_edges(graph, 0.1, 0.2, times=times)


def save_typed(folder, splits, k, **changed):
    """Save parts of papers with features and times: those at no edge come late."""
    rng, sizes = np.random.default_rng(0), {each.name: each.range for each in splits.graph.types}
    papers = np.array(sizes["paper"])
    times = np.where(np.arange(len(papers)) < 150, rng.integers(-9, 0, len(papers)), 1000)
    given = {
        "features": {"paper": rng.normal(size=(len(papers), 6)).astype(np.float32)},
        "times": {"paper": times},
        "edge_times": splits.edge_times,
        "edge_splits": splits,
    }
    assignment = np.arange(splits.graph.num_vertices) * 7 % 11 % k
    fp.VertexPartition(assignment, k).save(folder, graph=splits.graph, **given | changed)
    return folder


TYPED = {**HOW, "batch_size": 40, "model": "rgcn", "relation": ["cites", "writes"], "temporal": "uniform"}


def test_over_types_losses_and_scores_are_the_same_for_any_partition(tmp_path, typed):
    found = []
    for k, workers, embeddings in [(1, 1, None), (3, 2, None), (1, 1, 3), (2, 1, 3)]:
        folder = save_typed(tmp_path / f"{k}-{embeddings}", typed, k)
        trained = fp.train.links(folder, workers=workers, embeddings=embeddings, **TYPED)
        numbers = trained.history.select("loss", "val_mrr").to_numpy()
        found.append([*numbers.ravel(), trained.summary["test_mrr"], trained.summary["test_auc"]])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-7)
    np.testing.assert_allclose(found[3], found[2], rtol=1e-7)
    still = fp.train.links(folder, workers=1, embeddings=3, **{**TYPED, "temporal": None})
    assert still.history["loss"][0] != pytest.approx(found[2][0], rel=1e-3)


def test_over_types_targets_are_ranked_among_those_that_were_there(tmp_path, typed):
    folder = save_typed(tmp_path / "parts", typed, 2)
    trained = fp.train.links(folder, workers=1, candidates=50, **{**TYPED, "relation": "writes"})
    times = np.empty(typed.graph.num_vertices, np.int64)
    for part in fp.open_partition(folder).parts:
        papers = part.of_type("paper")
        times[papers.inner] = papers.times
    ids = np.array(next(each.range for each in typed.graph.types if each.name == "paper"))
    assert (times[ids] >= typed.val_times.min()).sum() == 30
    ids = ids[np.argsort(mixed(ids.astype(np.uint64) ^ mixed(np.uint64(0))))]
    pool = ids[times[ids] < typed.val_times.min()][:50]
    rows, decoder = torch.from_numpy(trained.predict(folder)).double(), trained.network().double().decoder[0]
    ranks = []
    with torch.no_grad():
        for u, v, relation in typed.test.tolist():
            if typed.graph.relations[relation].name == "writes":
                logits = decoder(rows[u].expand(len(rows), -1), rows).float()
                rivals = logits[pool[pool != v]]
                ranks.append(1 + (rivals > logits[v]).sum().item() + (rivals == logits[v]).sum().item() / 2)
    assert trained.summary["test_mrr"] == pytest.approx(np.mean(1 / np.array(ranks)), rel=1e-3)


def test_over_types_what_would_look_ahead_is_refused(tmp_path, typed):
    pairs = {"val": typed.val, "test": typed.test}
    late = {name: times.copy() for name, times in typed.edge_times.items()}
    late["writes"][-1] = typed.val_times.min()
    papers = len(next(each.range for each in typed.graph.types if each.name == "paper"))
    for number, (changed, given, message) in enumerate(
        (
            ({"edge_splits": pairs}, {}, "were not split by time"),
            ({"edge_times": late}, {"relation": "cites"}, "where the held-out pairs begin"),
            ({"times": {"paper": np.full(papers, 1000)}}, {}, "or the source of one, that came at"),
            ({}, {"relation": "has_topic"}, "edges have no time"),
        )
    ):
        with pytest.raises(fp.errors.ParameterError, match=message):
            fp.train.links(save_typed(tmp_path / f"{number}", typed, 2, **changed), **{**TYPED, **given})
