"""Link prediction over types: the same losses for any parts and workers, and scores as a dense computation gives."""

from dataclasses import replace
from itertools import repeat
from operator import eq, gt

import numpy as np
import pytest

import fastpart as fp
from in_process import in_process
from random_typed import random_typed_graph

torch = pytest.importorskip("torch")

from fastpart.core.pairs import hashed, keys_of, mixed  # noqa: E402
from fastpart.loading.negatives import AllVertices  # noqa: E402
from fastpart.train.data.learned_rows import initial  # noqa: E402
from fastpart.train.graphs.rows import layers_of  # noqa: E402

QUICK = {
    "hidden": 8,
    "threads": 1,
    "epochs": 3,
    "batch_size": 40,
    "fanouts": [4, 3],
    "model": "rgcn",
    "precision": "float64",
    "negatives": 2,
}

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    return fp.split_edges(
        random_typed_graph(tmp_path_factory.mktemp("typed") / "graph", 3, scale=2), 0.1, 0.1
    )


def saved(splits, folder, k, widths=(("paper", 5), ("field", 2))):
    """Save parts with features of some types, by default not of authors, whose rows are learned."""
    rng, sizes = np.random.default_rng(1), {each.name: each.n for each in splits.graph.types}
    features = {name: rng.standard_normal((sizes[name], width)).astype(np.float32) for name, width in widths}
    assignment = np.arange(splits.graph.num_vertices) * 7 % 11 % k
    fp.VertexPartition(assignment, k).save(folder, graph=splits.graph, edge_splits=splits, features=features)
    return folder


@pytest.fixture(scope="module")
def parts(splits, tmp_path_factory):
    return saved(splits, tmp_path_factory.mktemp("parts") / "parts", 3)


@pytest.fixture
def alone():
    """Train in this process."""
    return in_process(fp.train.links)


def assert_same(one, other):
    """Assert the same training, up to rounding."""
    np.testing.assert_allclose(one.history["loss"], other.history["loss"], rtol=1e-12)
    np.testing.assert_allclose(one.history["val_mrr"], other.history["val_mrr"], rtol=1e-6)
    for name in ("test_mrr", "test_auc"):
        assert one.summary[name] == pytest.approx(other.summary[name], rel=1e-6)
    for name, rows in (one.learned or {}).items():
        np.testing.assert_allclose(rows, other.learned[name], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"relation": "writes", "decoder": "mlp", "negatives": "batch", "model": "hgt"},
        {"relation": "cites", "negatives": "degree"},
        {"relation": ["cites", "writes"], "decoder": "dot", "model": "heterosage", "num_hard_negatives": 3},
        {"embeddings": 6, "model": "heterosage"},
        {"embeddings": 3, "model": "hgt", "heads": 1, "relation": "has_topic"},
    ],
)
def test_parts_and_workers_do_not_change_the_losses(splits, alone, tmp_path, given):
    given = {**QUICK, **given}
    if "num_hard_negatives" in given:
        given["negatives"] = {"uniform": 2, "batch": 1, "hard": tmp_path / "hard.npz"}
        np.savez(tmp_path / "hard.npz", writes=hard_negatives(splits))
    one = alone(saved(splits, tmp_path / "one", 1), **given)
    for k, workers in ((2, 1), (3, 2)):
        assert_same(one, fp.train.links(saved(splits, tmp_path / f"{k}", k), workers=workers, **given))
    assert len(one.learned["author"]) == next(e.n for e in splits.graph.types if e.name == "author")


@pytest.mark.parametrize("model", ["rgcn", "hgt"])
def test_embeddings_stand_behind_the_features_of_all_types(splits, alone, tmp_path, model):
    """The first loss is that of features with the first rows behind them, and predictions read the learned ones."""
    sizes = {each.name: each.range for each in splits.graph.types}
    stored = saved(splits, tmp_path / "parts", 2)
    given = {**QUICK, "precision": "float32", "model": model, "batch_size": 10**6, "heads": 1}
    given |= {"embeddings": 4, "relation": "writes"}
    trained = alone(stored, **given)
    first = {name: initial(np.array(ids), 4, 0).astype(np.float32) for name, ids in sizes.items()}
    rows = {name: [] for name in sizes}
    for part in fp.open_partition(stored).parts:
        for name in sizes:
            known = part.of_type(name)
            if known.features is not None:
                rows[name].append((known.inner - sizes[name].start, known.features))
    features = {}
    for name, found in rows.items():
        features[name] = first[name]
        if found:
            places, values = (np.concatenate(each) for each in zip(*found, strict=True))
            features[name] = np.concatenate([values[np.argsort(places)], first[name]], axis=1)
    assignment = np.arange(splits.graph.num_vertices) % 2
    fp.VertexPartition(assignment, 2).save(
        tmp_path / "wide", graph=splits.graph, edge_splits=splits, features=features
    )
    wide = alone(tmp_path / "wide", **{**given, "embeddings": None})
    assert trained.history["loss"][0] == pytest.approx(wide.history["loss"][0], rel=1e-6)
    assert trained.history["loss"][2] != pytest.approx(wide.history["loss"][2], rel=1e-6)
    assert trained.embeddings is None
    assert set(trained.learned) == set(sizes)
    changed = {name: (trained.learned[name] != first[name]).any() for name in sizes}
    assert changed["author"]
    assert changed["paper"]
    for name, of_type in rows.items():  # what predict reads: the features, and the rows of the best epoch
        features[name] = np.concatenate([features[name][:, :-4], trained.learned[name]], axis=1)
        assert bool(of_type) == (features[name].shape[1] > 4)
    fp.VertexPartition(assignment, 2).save(
        tmp_path / "last", graph=splits.graph, edge_splits=splits, features=features
    )
    instead = replace(
        trained,
        learned=None,
        task=replace(trained.task, embeddings=0, widths={n: f.shape[1] for n, f in features.items()}),
    )
    np.testing.assert_allclose(trained.predict(stored), instead.predict(tmp_path / "last"), atol=1e-6)


def hard_negatives(splits):
    """Return a paper for each author, as wrong targets of the relation of writing."""
    ranges = {each.name: each.range for each in splits.graph.types}
    authors, papers = (np.array(ranges[name]) for name in ("author", "paper"))
    return np.column_stack([authors, papers[np.arange(len(authors)) * 5 % len(papers)]])


def test_the_loss_with_hard_negatives_against_pairs_by_hand(splits, alone, tmp_path):
    """An edge, a uniform negative and the one of the table, or uniform where it is the edge's own target."""
    table = hard_negatives(splits)
    np.savez(tmp_path / "hard.npz", writes=table)
    given = {"fanouts": [3, 2], "batch_size": 10**6}
    options = {
        **QUICK,
        **given,
        "relation": "writes",
        "epochs": 1,
        "dropout": 0,
        "lr": 1e-30,
        "negatives": {"uniform": 1, "hard": tmp_path / "hard.npz"},
        "num_hard_negatives": 1,
    }
    stored = saved(splits, tmp_path / "all", 3, (("paper", 5), ("field", 2), ("author", 3)))
    trained = alone(stored, **options)
    loader = fp.open_partition(stored).link_loader(
        relation="writes", **given, negatives={"uniform": 1, "hard": table}, num_hard_negatives=1
    )
    batch, network = next(iter(loader)), trained.network().double()
    with torch.no_grad():
        h = network.encode(
            layers_of(batch, torch.device("cpu")),
            {name: rows.double() for name, rows in batch.x_dict.items()},
        )
    rows = {name: dict(zip(batch.n_id_dict[name].tolist(), h[name], strict=False)) for name in h}
    pairs, papers = loader.edges, next(each.range for each in splits.graph.types if each.name == "paper")
    random = hashed(keys_of(*pairs.T), 2, 0, 0)
    random[:, 1] = mixed(random[:, 1])
    uniform = AllVertices(papers, False).others(random, pairs[:, :1], pairs[:, 1:], None)
    hard = [dict(table.tolist())[u] for u in pairs[:, 0].tolist()]
    logits, labels = [], []
    for (u, v), (one, instead), wrong in zip(pairs.tolist(), uniform.tolist(), hard, strict=True):
        for target in (v, one, instead if wrong == v else wrong):
            logits.append(network.decoder_of(0)(rows["author"][u], rows["paper"][target]))
            labels.append(float(target == v))
    loss = torch.nn.functional.binary_cross_entropy_with_logits(
        torch.stack(logits), torch.tensor(labels, dtype=torch.float64)
    )
    assert trained.history["loss"][0] == pytest.approx(loss.item(), rel=1e-9)


@pytest.mark.parametrize("decoder", ["cosine", "mlp"])
def test_scores_against_brute_force(parts, alone, splits, decoder):
    trained = alone(parts, decoder=decoder, candidates=37, **QUICK)
    assert [name for _, name, _ in trained.relations] == [each.name for each in splits.graph.relations]
    rows, network = torch.from_numpy(trained.predict(parts)).double(), trained.network().double()
    ranges = {each.name: each.range for each in splits.graph.types}
    names = ("edge_train", "edge_val", "edge_test")
    facts = np.concatenate(
        [getattr(part, name) for part in fp.open_partition(parts).parts for name in names]
    ).tolist()
    for split in ("val", "test"):
        pairs, ranks, shares, filtered = getattr(splits, split), [], [], []
        for number, (source, _, target) in enumerate(trained.relations):
            known = {(u, w) for u, w, of in facts if of == number}
            if splits.graph.relations[number].reverse == "merged":
                known |= {(w, u) for u, w in known}
            score = network.decoder[number]
            ids = np.arange(ranges[target].start, ranges[target].stop)
            pool = ids[np.argsort(mixed(ids.astype(np.uint64) ^ mixed(np.uint64(0))))][:37].tolist()
            of_relation = pairs[pairs[:, 2] == number, :2]
            with torch.no_grad():
                for u, v in of_relation.tolist():
                    logits = score(rows[u].expand(len(rows), -1), rows).float().tolist()
                    wrong = [w for w in pool if (u, w) not in known]
                    for pool_of, found in ((pool, ranks), (wrong, filtered)):
                        rivals = [logits[w] for w in pool_of if w not in (u, v)]
                        higher, equal = (sum(map(how, rivals, repeat(logits[v]))) for how in (gt, eq))
                        found.append(1 + higher + equal / 2)
                random = hashed(keys_of(*of_relation.T), 1, 0)
                ends = of_relation[:, :1], of_relation[:, 1:]
                negatives = AllVertices(ranges[target], source == target).others(random, *ends, None)[:, 0]
                one, other = (
                    score(rows[of_relation[:, 0]], rows[each]) for each in (of_relation[:, 1], negatives)
                )
            share = (one[:, None] > other).double() + (one[:, None] == other).double() / 2
            shares += share.mean(1).tolist()
        for name, found in (("mrr", ranks), ("filtered_mrr", filtered)):
            assert trained.summary[f"{split}_{name}"] == pytest.approx(np.mean(1 / np.array(found)), rel=1e-3)
        assert sum(filtered) < sum(ranks)
        for k in (1, 3, 10):
            hits = np.mean(np.array(ranks) <= k)
            assert trained.summary[f"{split}_hits@{k}"] == pytest.approx(hits, abs=0.01)
        assert trained.summary[f"{split}_auc"] == pytest.approx(np.mean(shares), abs=1e-4)


@pytest.mark.parametrize("embeddings", [None, 5])
def test_it_is_opened_and_goes_on(parts, alone, tmp_path, embeddings):
    given = {**QUICK, "embeddings": embeddings}
    whole = alone(parts, **{**given, "epochs": 4})
    alone(parts, out=tmp_path / "out", **given)
    kept = fp.train.open(tmp_path / "out")
    assert kept.relations == whole.relations
    assert_same(kept.resume(4), whole)
    opened = fp.train.open(tmp_path / "out")
    rows = opened.predict(parts)
    np.testing.assert_allclose(rows, whole.predict(parts), atol=1e-6)
    np.testing.assert_allclose(opened.predict(parts, vertices=[9, 2]), rows[[9, 2]], atol=1e-6)
    with pytest.raises(fp.errors.ParameterError, match="relation"):
        alone(parts, out=tmp_path / "out", resume=True, **{**given, "relation": "cites"})


def test_probabilities_are_of_a_relation(parts, alone, splits):
    trained = alone(parts, relation=["writes", "cites"], decoder="cosine", **QUICK)
    rows = trained.predict(parts)
    name, number = "writes", [each[1] for each in trained.relations].index("writes")
    all_names = [each.name for each in splits.graph.relations]
    pairs = splits.test[splits.test[:, 2] == all_names.index(name), :2]
    decoder = trained.network().decoder_of(number)
    with torch.no_grad():
        expected = decoder(*(torch.from_numpy(rows[ends]) for ends in pairs.T)).sigmoid()
    np.testing.assert_allclose(trained.probabilities(parts, pairs, name), expected, rtol=1e-6)
    for given, message in (
        ((pairs,), "relation: None was not predicted. There are 'cites', 'writes'"),
        ((pairs, "has_topic"), "relation: 'has_topic' was not predicted"),
        ((pairs[:, ::-1], "writes"), "pairs: ids must be from .*, those of 'author', at the source"),
    ):
        with pytest.raises(fp.errors.ParameterError, match=message):
            trained.probabilities(parts, *given)


def test_what_does_not_fit_is_refused(parts, alone, tmp_path):
    for given, message in (
        ({"relation": "likes"}, "relation: 'likes' is no relation of"),
        ({"relation": []}, "relation: expected the name of a relation"),
        ({"temporal": "uniform"}, "temporal: .* edges have no time"),
        ({"model": "graphsage"}, "model: "),
    ):
        with pytest.raises(fp.errors.ParameterError, match=message):
            alone(parts, **{**QUICK, **given})
    plain = np.array([[v, (v + step) % 60] for v in range(60) for step in (1, 2, 3)])
    splits = fp.split_edges(plain)
    fp.multilevel(splits.graph, k=2).save(tmp_path / "plain", graph=splits.graph, edge_splits=splits)
    with pytest.raises(fp.errors.ParameterError, match=r"relation: .* without types. Leave it out"):
        alone(tmp_path / "plain", **{**QUICK, "model": "gcn", "embeddings": 4, "relation": "writes"})
