"""Knowledge graph embeddings: decoders, ranks and losses by oracles, and the same losses for any parts and workers."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpart as fp
from in_process import in_process
from linked import random_graph
from random_typed import random_typed_graph, typed_graph
from ranks import run_ranks

torch = pytest.importorskip("torch")

from fastpart.loading.negatives import HardNegatives  # noqa: E402
from fastpart.train.method_options import EmbeddingOptions  # noqa: E402
from fastpart.train.methods.embeddings.dataset import FactDataset  # noqa: E402
from fastpart.train.methods.embeddings.steps import FactSteps, Pools, losses_of  # noqa: E402
from fastpart.train.methods.embeddings.vertices import FactLoader  # noqa: E402
from fastpart.train.methods.links.decoders import Decoder  # noqa: E402
from fastpart.train.methods.links.ranking import FilteredScorer  # noqa: E402

QUICK = {"width": 6, "threads": 1, "epochs": 3, "batch_size": 64, "num_negatives": 9}

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.timeout(300)]


@pytest.fixture
def alone():
    """Train in this process."""
    return in_process(fp.train.embeddings)


def saved(splits, folder, k):
    n = splits.graph.num_vertices
    fp.VertexPartition(np.arange(n) * 7 % 11 % k, k).save(folder, graph=splits.graph, edge_splits=splits)
    return folder


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    graph = random_typed_graph(tmp_path_factory.mktemp("typed") / "graph", 3)
    return fp.split_edges(graph, 0.1, 0.1)


@pytest.fixture(scope="module")
def parts(splits, tmp_path_factory):
    return saved(splits, tmp_path_factory.mktemp("parts") / "parts", 3)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    splits = fp.split_edges(random_graph(), 0.1, 0.1)
    return saved(splits, tmp_path_factory.mktemp("plain") / "parts", 2)


# Decoders and objectives.


def logit(name, h, r, t):
    """Return the score of a fact by the formula of the paper."""
    if name == "dot":
        return (h * t).sum()
    if name == "distmult":
        return (h * r * t).sum()
    half = len(h) // 2
    (h, t), angles = (each[:half] + 1j * each[half:] for each in (h, t)), r
    if name == "rotate":
        return -np.abs(h * np.exp(1j * angles) - t).sum()
    return (h * (r[:half] + 1j * r[half:]) * t.conj()).sum().real


@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("name", ["dot", "distmult", "complex", "rotate"])
def test_decoders_score_as_their_papers_do(name, reciprocal):
    torch.manual_seed(1)
    decoder = Decoder(name, 6, 3, reciprocal).double()
    h, t, r = torch.randn(5, 6).double(), torch.randn(5, 6).double(), torch.tensor([0, 2, 1, 2, 0])
    rows = np.zeros((6, 6)) if decoder.relations is None else decoder.relations.detach().numpy()
    expected = [logit(name, *each) for each in zip(h.numpy(), rows[r], t.numpy(), strict=True)]
    with torch.no_grad():
        np.testing.assert_allclose(decoder(decoder.moved(h, r, False), t), expected, atol=1e-5)
        if reciprocal:
            expected = [logit(name, *each) for each in zip(t.numpy(), rows[r + 3], h.numpy(), strict=True)]
        back = decoder.moved(t, r, True)
        np.testing.assert_allclose(decoder(back, h), expected, atol=1e-5)
        np.testing.assert_allclose(decoder.against(back, h).diagonal(), expected, atol=1e-5)


@pytest.mark.parametrize("name", ["mlp", "rotate"])
def test_blocks_have_the_gradients_of_the_whole(name, monkeypatch):
    torch.manual_seed(2)
    decoder, h, t = Decoder(name, 4, 1, False), torch.randn(7, 4, requires_grad=True), torch.randn(5, 4)
    expected = torch.autograd.grad(decoder(h.unsqueeze(1), t).sin().sum(), h)[0]
    monkeypatch.setattr("fastpart.train.methods.links.decoders._NUMBERS", 40)
    found = torch.autograd.grad(decoder.against(h, t).sin().sum(), h)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_objectives_are_those_of_their_papers():
    positives, negatives = np.array([1.0, -0.5]), np.array([[0.5, -np.inf, 2.0], [0.1, 0.2, 0.3]])
    found = {
        name: losses_of(name, *map(torch.from_numpy, (positives, negatives)), torch.tensor(0.25)).numpy()
        for name in ("softmax", "binary", "self_adversarial")
    }
    for row, (own, others) in enumerate(zip(positives, negatives, strict=True)):
        others = others[np.isfinite(others)]
        e = np.exp([own, *others])
        assert found["softmax"][row] == pytest.approx(-np.log(e[0] / e.sum()))
        right, wrong = np.log1p(np.exp(-own - 0.25)), np.log1p(np.exp(others + 0.25))
        assert found["binary"][row] == pytest.approx((right + wrong.mean()) / 2)
        adversarial = (e[1:] / e[1:].sum() * wrong).sum()
        assert found["self_adversarial"][row] == pytest.approx((right + adversarial) / 2)


# Ranks.


@settings(max_examples=30)
@given(st.data())
def test_ranks_are_those_of_brute_force(data):
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    bounds = np.cumsum([0, *sizes]).tolist()
    kinds = st.integers(0, len(sizes) - 1)
    relations = data.draw(st.lists(st.tuples(kinds, kinds), min_size=1, max_size=3))
    ends = tuple(np.array([bounds[kind[end] : kind[end] + 2] for kind in relations]) for end in (0, 1))
    possible = [
        (h, t, r) for r in range(len(relations)) for h in range(*ends[0][r]) for t in range(*ends[1][r])
    ]
    known = np.array(data.draw(st.lists(st.sampled_from(possible), min_size=1, unique=True)))
    facts = known[: data.draw(st.integers(1, len(known)))]
    rows = (
        torch.from_numpy(
            np.array(
                data.draw(st.lists(st.integers(-1, 1), min_size=2 * bounds[-1], max_size=2 * bounds[-1]))
            )
        )
        .view(-1, 2)
        .double()
    )
    decoder = Decoder("complex", 2, len(relations), False).double()
    decoder.relations.data = decoder.relations.data.round()
    scorer = FilteredScorer(known, ends, None, 0, False)
    found = scorer.scores(decoder, facts, lambda ids: rows[torch.from_numpy(ids)])

    def score(h, t, r):
        return logit("complex", rows[h].numpy(), decoder.relations[r].detach().numpy(), rows[t].numpy())

    ranks = {"": [], "filtered_": []}
    true = set(map(tuple, known.tolist()))
    for h, t, r in facts.tolist():
        for end in (0, 1):
            others = [(v, t, r) if end == 0 else (h, v, r) for v in range(*ends[end][r]) if v != (h, t)[end]]
            for name, each in (("", others), ("filtered_", [one for one in others if one not in true])):
                against = np.array([score(*one) for one in each])
                own = score(h, t, r)
                ranks[name].append(1 + (against > own).sum() + (against == own).sum() / 2)
    for name, of in ranks.items():
        of = np.array(of)
        assert found[f"{name}mrr"] == pytest.approx((1 / of).mean())
        for k in (1, 3, 10):
            assert found[f"{name}hits@{k}"] == pytest.approx((of <= k).mean())


# Samples.


@pytest.mark.parametrize("rule", ["uniform", "degree", "batch", "all"])
def test_negatives_are_of_the_type_that_the_relation_leads_to(parts, rule):
    dataset = FactDataset(parts)
    options = EmbeddingOptions(batch_size=50, negatives=rule, num_negatives=12)
    steps = FactSteps(dataset, options, np.ones(3, bool), None)
    seen = 0
    for step in steps.epoch(0):
        ids = dataset.topology.ids_of(step.rows)
        for group in step.groups:
            bounds = dataset.ends(group.end)[group.relations.numpy()]
            pool, others = ids[group.pool.numpy()], ids[group.others.numpy()]
            assert (bounds == bounds[0]).all()
            assert ((pool >= bounds[0, 0]) & (pool < bounds[0, 1])).all()
            np.testing.assert_array_equal(group.clash.numpy(), others[:, None] == pool)
            assert len(pool) == {"uniform": 12, "degree": 12, "all": np.diff(bounds[0])}.get(rule, len(pool))
            seen += len(others)
        assert step.count == 2 * min(50, dataset.num_train - 50 * step.number)
    assert seen == 2 * dataset.num_train


def test_negatives_by_degree_are_as_frequent_as_word2vec_says(parts):
    dataset = FactDataset(parts)
    facts = dataset.facts("train")
    pools = Pools(dataset, facts, "degree", 200_000, 0)
    first, last = dataset.ends(1)[0]
    found = np.bincount(pools.of(int(first), 1, np.arange(3), 0, 0) - first, minlength=last - first)
    expected = np.bincount(facts[:, :2].ravel(), minlength=last)[first:last] ** 0.75
    np.testing.assert_allclose(found / found.sum(), expected / expected.sum(), atol=0.003)


def test_hard_negatives_come_from_the_rows_of_the_source_and_relation():
    table = np.array([[0, 7, 1], [0, 8, 1], [0, 9, 0], [4, 5, 1]])
    hard = HardNegatives.of(table, 2, 30, 0)
    facts = np.array([[0, 8, 1], [0, 9, 0], [4, 6, 1], [3, 5, 1]])
    found, counted = hard.of_facts(facts, np.arange(4), 5)
    assert set(found[0][counted[0]].tolist()) == {7}
    assert 0 < counted[0].sum() < 30  # the other row is the fact itself
    assert not counted[1].any()
    assert found[2].tolist() == [5] * 30
    assert not counted[3].any()
    again = hard.of_facts(facts[:1], np.arange(1), 5)[0]
    np.testing.assert_array_equal(again, found[:1])


# Trainings.


@pytest.mark.parametrize(
    "given",
    [
        {"dropout": 0.3, "reciprocal": True, "negatives": "degree"},
        {"decoder": "rotate", "objective": "self_adversarial", "negatives": "batch"},
        {"decoder": "mlp", "objective": "binary", "negatives": "all", "relation_weights": {"cites": 0.5}},
    ],
)
def test_parts_do_not_change_the_losses(splits, alone, tmp_path, given):
    given = {**QUICK, "precision": "float64", **given}
    trained = [alone(saved(splits, tmp_path / f"{k}", k), **given) for k in (1, 2, 4)]
    for other in trained[1:]:
        np.testing.assert_allclose(other.history["loss"], trained[0].history["loss"], rtol=1e-11)
        np.testing.assert_allclose(other.embeddings, trained[0].embeddings, atol=1e-6)
        for name, value in trained[0].summary.items():
            if "mrr" in name or "hits" in name:
                assert other.summary[name] == pytest.approx(value, rel=1e-9)


@pytest.fixture(scope="module")
def attributed(tmp_path_factory):
    """Splits of a graph whose papers have features, and these."""
    graph = random_typed_graph(tmp_path_factory.mktemp("attributed") / "graph", 4)
    return fp.split_edges(graph, 0.1, 0.1), np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)


@pytest.mark.parametrize("encoder", ["rgcn", "rgat"])
def test_parts_do_not_change_the_losses_of_an_encoder(attributed, alone, tmp_path, encoder):
    splits, features = attributed
    given = {
        **QUICK,
        "encoder": encoder,
        "hidden": 8,
        "fanouts": [3, 2],
        "precision": "float64",
        "dropout": 0.2,
    }
    trained = []
    for k in (1, 2, 4):
        p = fp.VertexPartition(np.arange(105) * 7 % 11 % k, k)
        folder = tmp_path / f"{k}"
        rows = {"cites": np.arange(2 * splits.graph.relations[0].m, dtype=np.float32).reshape(-1, 2) % 5}
        more = {"edge_features": rows} if encoder == "rgat" else {}
        p.save(folder, graph=splits.graph, edge_splits=splits, features={"paper": features}, **more)
        trained.append(alone(folder, **given))
    for other in trained[1:]:
        np.testing.assert_allclose(other.history["loss"], trained[0].history["loss"], rtol=1e-9)
        np.testing.assert_allclose(other.embeddings, trained[0].embeddings, atol=1e-5)
    assert trained[0].embeddings.shape == (105, 8)
    assert trained[0].scores(tmp_path / "2", [[0, 45]], "writes").shape == (1,)
    three = fp.train.embeddings(tmp_path / "4", workers=3, cache=0.2, **given)
    np.testing.assert_allclose(three.history["loss"], trained[0].history["loss"], rtol=1e-9)


def test_edges_of_a_step_are_no_neighbours_of_it(parts):
    dataset = FactDataset(parts)
    options = EmbeddingOptions(batch_size=40, fanouts=(-1, -1), num_negatives=5, ahead=1, timeout=60.0)
    steps = FactSteps(dataset, options, np.ones(3, bool), None)
    with_all = dataset.partition.loader(np.arange(45, 105), input="paper", fanouts=[-1, -1], batch_size=60)
    assert sum(len(each) for each in next(iter(with_all)).indices_dict.values())
    relations = {each.name: each for each in dataset.typed.edge_types}
    for step, batch in FactLoader(dataset, steps, options):
        said = {(r, *sorted((h, t))) for h, t, r in step.facts.tolist()}
        for key, edges in batch.edge_index_dict.items():
            number = dataset.typed.names.index(relations[key[1]].relation.name)
            assert len(edges[0]) == sum(batch.num_sampled_edges_dict[key])
            for source, target in edges.T.tolist():
                ends = batch.n_id_dict[key[0]][source].item(), batch.n_id_dict[key[2]][target].item()
                assert (number, *sorted(ends)) not in said
        seeds = {
            name: rows[: batch.num_sampled_nodes_dict[name][0]] for name, rows in batch.n_id_dict.items()
        }
        ids = dataset.topology.ids_of(step.rows)
        for vertex_type in dataset.typed.types:
            of_type = ids[np.isin(ids, vertex_type.range)]
            np.testing.assert_array_equal(seeds[vertex_type.name], of_type)


def test_workers_do_not_change_the_losses(splits, alone, parts, tmp_path):
    table = np.column_stack([np.arange(60) % 40, 45 + np.arange(60), np.full(60, 2)])  # writes
    np.save(tmp_path / "hard.npy", table)
    given = {**QUICK, "precision": "float64", "hard_negatives": tmp_path / "hard.npy"}
    one, three = alone(parts, **given), fp.train.embeddings(parts, workers=3, **given)
    np.testing.assert_allclose(three.history["loss"], one.history["loss"], rtol=1e-11)
    assert three.summary["test_filtered_mrr"] == pytest.approx(one.summary["test_filtered_mrr"], rel=1e-9)
    assert three.summary["remote_bytes"] > 0
    without = alone(parts, **{**given, "hard_negatives": None})
    assert without.history["loss"][0] != one.history["loss"][0]


def test_it_learns_and_the_result_can_be_used(tmp_path, alone):
    """Each relation of a ring leads a fixed number of steps on."""
    ids = np.arange(40)
    relations = {f"r{s}": ("v", "v", np.stack([ids, (ids + s) % 40], 1)) for s in (1, 2, 5)}
    splits = fp.split_edges(typed_graph(tmp_path / "graph", {"v": 40}, relations), 0.1, 0.1)
    folder = saved(splits, tmp_path / "parts", 2)
    given = {"width": 16, "decoder": "complex", "lr": 0.03, "dropout": 0.0, "batch_size": 32, "threads": 1}
    trained = alone(folder, epochs=40, eval_every=10, out=tmp_path / "run", **given)
    assert trained.summary["test_filtered_mrr"] > 0.5 > trained.history["val_filtered_mrr"][9]
    assert trained.summary["test_filtered_mrr"] >= trained.summary["test_mrr"]
    opened = fp.train.open(tmp_path / "run")
    assert "test filtered_MRR" in repr(opened)
    np.testing.assert_array_equal(np.load(tmp_path / "run" / "embeddings.npy"), opened.predict(folder))
    np.testing.assert_array_equal(opened.predict(folder, vertices=[3, 1]), trained.embeddings[[3, 1]])
    anchors = [4, 0, 39]
    ids, logits = opened.top(folder, anchors, "r2", k=3)
    assert ids.shape == logits.shape == (3, 3)
    pairs = np.column_stack([np.repeat(anchors, 3), ids.ravel()])
    np.testing.assert_allclose(opened.scores(folder, pairs, "r2"), logits.ravel(), rtol=1e-4)
    back, logits = opened.top(folder, [6], "r2", k=40, end="source")
    assert sorted(back[0].tolist()) == list(range(40))
    assert (np.diff(logits[0]) <= 0).all()
    spoiled = np.array(opened.embeddings)
    spoiled[7] = np.nan
    last, logits = replace(opened, embeddings=spoiled).top(folder, [6], "r2", k=40)
    assert last[0, -1] == 7
    assert np.isnan(logits[0]).tolist() == [False] * 39 + [True]
    with pytest.raises(fp.errors.ParameterError, match="relation: 'r3' is no relation"):
        opened.top(folder, [6], "r3")
    with pytest.raises(fp.errors.ParameterError, match="pairs: ids must be from 0 to 39"):
        opened.scores(folder, [[0, 40]], "r1")


def test_an_interrupted_training_goes_on_bit_for_bit(parts, alone, tmp_path):
    whole = alone(parts, **{**QUICK, "epochs": 4})
    alone(parts, out=tmp_path / "run", **{**QUICK, "epochs": 2})
    later = alone(parts, out=tmp_path / "run", resume=True, **{**QUICK, "epochs": 4})
    assert later.history["loss"].to_list() == whole.history["loss"].to_list()
    np.testing.assert_array_equal(later.embeddings, whole.embeddings)
    with pytest.raises(fp.errors.ParameterError, match="trained with decoder = 'distmult'"):
        alone(parts, out=tmp_path / "run", resume=True, decoder="dot", **QUICK)


def test_a_relation_of_weight_0_is_not_learned(parts, alone):
    trained = alone(parts, dropout=0.0, relation_weights={"has_topic": 0}, **QUICK)
    torch.manual_seed(0)
    start = Decoder("distmult", 6, 3, False).relations.detach()
    rows = trained.network().decoder.relations.detach()
    assert torch.equal(rows[1], start[1])
    assert not torch.equal(rows[0], start[0])


def test_a_plain_graph_has_one_relation(plain, alone):
    trained = alone(plain, decoder="dot", **QUICK)
    assert trained.embeddings.shape == (60, 6)
    assert 0 < trained.summary["test_mrr"] <= trained.summary["test_filtered_mrr"] <= 1
    assert trained.scores(plain, [[0, 1]]).shape == (1,)
    with pytest.raises(fp.errors.ParameterError, match="relation_weights: the graph has no relations"):
        alone(plain, relation_weights={"cites": 1.0})
    with pytest.raises(
        fp.errors.ParameterError, match=r"encoder: the graph has no types\. Train an encoder over it with"
    ):
        alone(plain, encoder="rgcn")


def test_relations_without_edges_are_no_obstacle(tmp_path, alone):
    relations = {
        "a": ("u", "v", np.array([[i, i] for i in range(8)])),
        "none": ("v", "w", []),
        "z": ("u", "w", []),
    }
    graph = typed_graph(tmp_path / "graph", {"u": 8, "v": 8, "w": 0}, relations)
    splits = fp.split_edges(graph, 0, 0.3)
    trained = alone(saved(splits, tmp_path / "parts", 4), **QUICK)
    assert trained.summary["best_epoch"] == 2
    assert trained.top(tmp_path / "parts", [0], "z")[0].shape == (1, 0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"relation_weights": {"cite": 2.0}},
            "relation_weights: the graph has no relation 'cite'. Did you mean",
        ),
        ({"relation_weights": {"cites": -1}}, "relation_weights: cites: -1.0 is no finite number"),
        ({"decoder": "complex", "width": 5}, "width: 5 is odd, but 'complex' needs pairs"),
        ({"decoder": "transe"}, "decoder: unknown value 'transe'"),
        ({"negatives": "local"}, "negatives: unknown value 'local'"),
        ({"encoder": "rgnc"}, "encoder: unknown value 'rgnc'"),
        ({"encoder": "gcn"}, "the graph has types, and gcn is not for such graphs"),
        ({"table": [[0, 105, 2]]}, "hard_negatives: ids must be from 0 to 104"),
        (
            {"table": [[0, 1, 2]]},
            r"hard_negatives: the pair \(0, 1\) is of 'writes', but 1 is no vertex of type 'paper'",
        ),
        ({"table": [[0, 46]]}, "hard_negatives: expected pairs of ids, with the number of the relation"),
        ({"table": [[0, 46, 3]]}, "hard_negatives: numbers of relations"),
        ({"table": np.empty((0, 3), int)}, "hard_negatives: the table has no rows"),
    ],
)
def test_refused_parameters(parts, tmp_path, given, message):
    if "table" in given:
        np.save(tmp_path / "hard.npy", given["table"])
        given = {"hard_negatives": tmp_path / "hard.npy"}
    with pytest.raises(fp.errors.ParameterError, match=message):
        fp.train.embeddings(parts, workers=1, **given)


def test_what_has_no_meaning_is_refused(parts):
    with pytest.raises(TypeError, match="plan"):
        fp.train.embeddings(parts, plan="folder")


def test_it_runs_under_a_launcher(parts, tmp_path):
    words = (
        "--width",
        "6",
        "--epochs",
        "2",
        "--relation-weights",
        "cites=2,writes=0.5",
        "-o",
        tmp_path / "out",
        "--json",
        "-q",
    )
    done, _ = run_ranks("fastpart", "train", "embeddings", parts, *words)
    assert done.code == 0, done.errors
    assert '"test_filtered_mrr"' in done.out
