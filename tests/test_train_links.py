"""Link prediction: the same losses for any parts and workers, resumed, and scored as a ranking by hand scores."""

import json
import shutil
from itertools import repeat
from operator import eq, gt

import numpy as np
import pytest

import fastpart as fp
from fastpart.cli import main
from in_process import in_process
from ranks import run_code, run_ranks

torch = pytest.importorskip("torch")

from fastpart.core.pairs import hashed, keys_of, mixed  # noqa: E402
from fastpart.loading.negatives import others  # noqa: E402
from fastpart.train.data.learned_rows import (  # noqa: E402
    EmbeddingTable,
    SparseAdam,
    initial,
)
from fastpart.train.methods.links.worker import Worker  # noqa: E402
from fastpart.train.registry import loaded, of  # noqa: E402

QUICK = {"hidden": 8, "threads": 1, "epochs": 3, "batch_size": 300, "fanouts": [4, 3]}
LEARNED = {**QUICK, "embeddings": 6}

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    fp.generate.planted(folder / "g.bin", n=400, m=2400, classes=4, features=5, seed=1)
    return fp.split_edges(folder / "g.bin", seed=2, out=folder / "train.bin")


def saved(splits, folder, k, assignment=None, features=True):
    p = fp.spring(splits.graph, k=k) if assignment is None else fp.VertexPartition(assignment, k)
    given = {"features": splits.graph.path.parent / "g.bin.features.npy"} if features else {}
    p.save(folder, graph=splits.graph, edge_splits=splits, **given)
    return folder


@pytest.fixture(scope="module")
def parts(splits, tmp_path_factory):
    return saved(splits, tmp_path_factory.mktemp("parts") / "parts", 3)


@pytest.fixture(scope="module")
def bare(splits, tmp_path_factory):
    """Parts without features."""
    return saved(splits, tmp_path_factory.mktemp("bare") / "parts", 3, features=False)


@pytest.fixture
def alone():
    """Train in this process."""
    return in_process(fp.train.links)


def assert_same(one, other, tolerance=1e-5):
    """Assert the same training, up to rounding."""
    np.testing.assert_allclose(one.history["loss"], other.history["loss"], rtol=tolerance)
    np.testing.assert_allclose(one.history["val_mrr"], other.history["val_mrr"], rtol=1e-2)
    for name in ("test_mrr", "test_auc"):
        assert one.summary[name] == pytest.approx(other.summary[name], rel=1e-2)


def assert_equal(one, other):
    """Assert the same training, bit for bit."""
    for name in ("loss", "val_mrr"):
        assert one.history[name].to_list() == other.history[name].to_list()
    assert all(torch.equal(weight, other.weights[name]) for name, weight in one.weights.items())
    if one.embeddings is not None:
        np.testing.assert_array_equal(one.embeddings, other.embeddings)
    assert one.summary["test_mrr"] == other.summary["test_mrr"]


@pytest.mark.parametrize(
    ("with_features", "given"),
    [
        (True, {"dropout": 0.3}),
        (True, {"embeddings": 6, "fanouts": [-1, 2]}),
        (
            False,
            {"embeddings": 6, "model": "gcn", "decoder": "mlp", "negatives": {"batch": 2}},
        ),
    ],
)
def test_parts_and_workers_do_not_change_the_losses(splits, alone, tmp_path, with_features, given):
    given = {**QUICK, **given}
    one = alone(saved(splits, tmp_path / "one", 1, features=with_features), **given)
    three = fp.train.links(saved(splits, tmp_path / "three", 3, features=with_features), workers=3, **given)
    by_hash = alone(saved(splits, tmp_path / "hash", 4, np.arange(400) * 7 % 4, with_features), **given)
    for other in (three, by_hash):
        assert_same(one, other)
        if one.embeddings is not None:
            np.testing.assert_allclose(one.embeddings, other.embeddings, atol=1e-4)


def test_float64_is_exact_and_kept_rows_change_nothing(splits, alone, tmp_path):
    np.save(tmp_path / "hard.npy", np.column_stack([np.arange(400), np.arange(400) * 3 % 397]))
    given = {**QUICK, "embeddings": 6, "precision": "float64", "decoder": "mlp"}
    given |= {"negatives": {"uniform": 1, "batch": 2, "hard": tmp_path / "hard.npy"}}
    given |= {"num_hard_negatives": 2}
    one = alone(saved(splits, tmp_path / "one", 1), **given)
    four = saved(splits, tmp_path / "four", 4, np.arange(400) * 7 % 4)
    kept = {"cache": 0.2, "resident": "10K", "io": "mmap"}
    for other in (alone(four, **given), fp.train.links(four, workers=2, **kept, **given)):
        np.testing.assert_allclose(other.history["loss"], one.history["loss"], rtol=1e-11)
        np.testing.assert_allclose(other.embeddings, one.embeddings, atol=1e-6)
    with pytest.raises(TypeError, match="plan"):
        fp.train.links(four, plan=tmp_path / "plan", **given)


def test_it_learns_and_the_result_can_be_used(parts, alone, tmp_path, splits):
    given = {"hidden": 16, "threads": 1, "epochs": 20, "batch_size": 300, "embeddings": 16, "dropout": 0.0}
    trained = alone(parts, out=tmp_path / "out", **given)
    assert trained.summary["test_auc"] > 0.6
    assert trained.history["loss"][-1] < trained.history["loss"][0]
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "embeddings.npy"), trained.embeddings)
    rows = trained.predict(parts, out=tmp_path / "rows.npy")
    assert rows.shape == (400, 16)
    np.testing.assert_allclose(rows, trained.predict(saved(splits, tmp_path / "one", 1)), atol=1e-5)
    np.testing.assert_allclose(trained.predict(parts, vertices=[9, 2]), rows[[9, 2]], atol=1e-6)
    pairs = splits.test[:50]
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = ((rows / lengths)[pairs[:, 0]] * (rows / lengths)[pairs[:, 1]]).sum(1)
    log_scale, offset = (float(trained.weights[f"decoder.{name}"]) for name in ("log_scale", "offset"))
    logits = np.exp(log_scale) * cosines + offset
    np.testing.assert_allclose(trained.probabilities(parts, pairs), 1 / (1 + np.exp(-logits)), rtol=1e-4)
    assert "test MRR" in repr(trained)
    assert not (tmp_path / "out" / "history.svg").exists()
    for bad, message in (([[0, 400]], "pairs: ids must be from 0 to 399"), ([0, 1], "pairs: expected ids")):
        with pytest.raises(fp.errors.ParameterError, match=message):
            trained.probabilities(parts, bad)
    with pytest.raises(fp.errors.ParameterError, match="what: unknown value 'classes'"):
        trained.predict(parts, what="classes")
    with pytest.raises(fp.errors.ParameterError, match="out: unknown suffix"):
        trained.predict(parts, out=tmp_path / "rows.txt")


def test_a_model_of_features_scores_another_graph(parts, alone, splits, tmp_path):
    trained = alone(parts, **QUICK)
    assert trained.embeddings is None
    assert trained.predict(saved(splits, tmp_path / "other", 2)).shape == (400, 8)
    with pytest.raises(fp.errors.ParameterError, match="has 0 features, but the model was trained on 5"):
        trained.predict(saved(splits, tmp_path / "bare", 2, features=False))


# Scores of trained networks.


def test_a_feature_that_is_nan_leaves_no_scores_and_is_told(splits, alone, tmp_path):
    folder = saved(splits, tmp_path / "parts", 2)
    file = folder / "part-00000" / "features.npy"
    x = np.load(file)
    x[0, 0] = np.nan
    np.save(file, x)
    vertex = fp.open_partition(folder).parts[0].inner[0]
    told = rf"^epoch 0: .* NaN or infinite. The features of vertex {vertex} in part 0 have such numbers. "
    with pytest.warns(fp.errors.GraphWarning, match=told):
        trained = alone(folder, **QUICK)
    assert trained.history["val_mrr"].is_nan().all()
    assert all(np.isnan(trained.summary[name]) for name in ("val_mrr", "test_hits@1", "test_auc"))


@pytest.mark.parametrize(("decoder", "candidates"), [("cosine", 400), ("dot", 1000), ("mlp", 37)])
def test_scores_against_brute_force(parts, alone, splits, decoder, candidates):
    trained = alone(parts, decoder=decoder, candidates=candidates, **QUICK)
    rows, network = torch.from_numpy(trained.predict(parts)).double(), trained.network().double()
    ids = np.arange(400, dtype=np.uint64)
    pool = np.argsort(mixed(ids ^ mixed(np.uint64(0))))[:candidates].tolist()
    names = ("edge_train", "edge_val", "edge_test")
    known = {
        (u, w)
        for part in fp.open_partition(parts).parts
        for name in names
        for u, w in getattr(part, name).tolist()
    }
    known |= {(w, u) for u, w in known}
    for split in ("val", "test"):
        pairs, ranks, filtered = getattr(splits, split), [], []
        with torch.no_grad():
            for u, v in pairs.tolist():
                logits = network.decoder(rows[u].expand(400, -1), rows).tolist()
                wrong = [w for w in pool if (u, w) not in known]
                for pool_of, found in ((pool, ranks), (wrong, filtered)):
                    rivals = [logits[w] for w in pool_of if w not in (u, v)]
                    higher, equal = (sum(map(how, rivals, repeat(logits[v]))) for how in (gt, eq))
                    found.append(1 + higher + equal / 2)
            negatives = others(hashed(keys_of(*pairs.T), 1, 0), pairs[:, :1], pairs[:, 1:], 400)[:, 0]
            positive, negative = (
                network.decoder(rows[pairs[:, 0]], rows[ends]) for ends in (pairs[:, 1], negatives)
            )
        found = {name: trained.summary[f"{split}_{name}"] for name in ("mrr", "hits@1", "hits@3", "hits@10")}
        expected = {"mrr": np.mean(1 / np.array(ranks))}
        expected |= {f"hits@{k}": np.mean(np.array(ranks) <= k) for k in (1, 3, 10)}
        assert found == pytest.approx(expected, abs=0.01)
        assert found["mrr"] == pytest.approx(expected["mrr"], rel=1e-3)
        assert sum(filtered) < sum(ranks)
        mrr = np.mean(1 / np.array(filtered))
        assert trained.summary[f"{split}_filtered_mrr"] == pytest.approx(mrr, rel=1e-3)
        for k in (1, 3, 10):
            hits = np.mean(np.array(filtered) <= k)
            assert trained.summary[f"{split}_filtered_hits@{k}"] == pytest.approx(hits, abs=0.01)
        one, other = positive[:, None], negative[None]
        share = ((one > other).double() + (one == other).double() / 2).mean().item()
        assert trained.summary[f"{split}_auc"] == pytest.approx(share, abs=1e-4)


def test_patience_looks_at_the_mrr(parts, alone):
    trained = alone(parts, **{**QUICK, "epochs": 30, "lr": 0.2, "patience": 2})
    scores = trained.history["val_mrr"].to_list()
    best = int(np.argmax(scores))
    assert trained.summary["best_epoch"] == best
    assert len(scores) in (30, best + 3)
    assert trained.summary["val_mrr"] == pytest.approx(scores[best])


# Learned rows.


def test_the_rows_are_those_of_the_best_epoch(parts, alone):
    given = {**LEARNED, "lr": 0.2}
    trained = alone(parts, **{**given, "epochs": 30, "patience": 2})
    best = trained.summary["best_epoch"]
    assert best + 2 == trained.history["epoch"][-1] < 29
    shorter = alone(parts, **{**given, "epochs": best + 1})
    np.testing.assert_array_equal(trained.embeddings, shorter.embeddings)
    for name in ("val_mrr", "test_mrr", "test_auc"):
        assert trained.summary[name] == shorter.summary[name]


def test_sparse_adam_is_that_of_torch():
    random = torch.Generator().manual_seed(0)
    start = torch.randn(20, 3, generator=random)
    table = torch.nn.Embedding(20, 3, sparse=True, _weight=start.clone())
    theirs = torch.optim.SparseAdam(table.parameters(), lr=0.05)
    ours = SparseAdam(start.clone(), lr=0.05)
    for step in range(30):
        rows = torch.randperm(20, generator=random)[: step % 7 + 1].sort().values
        gradient = torch.randn(len(rows), 3, generator=random)
        table.weight.grad = torch.sparse_coo_tensor(rows[None], gradient, (20, 3))
        theirs.step()
        # As three ranks send it: the first has a part of each gradient, the second nothing, the last the rest.
        half = rows[: len(rows) // 2]
        of_half, rest = gradient[: len(half)] * 0.5, gradient.clone()
        rest[: len(half)] *= 0.5
        lists = torch.cat([half, rows]).to(torch.uint32).numpy()
        bounds = np.array([0, len(half), len(half), len(half) + len(rows)])
        ours.step(lists + np.uint32(7), bounds, torch.cat([of_half, rest]).numpy(), first=7)
        torch.testing.assert_close(ours.values, table.weight.detach(), rtol=0, atol=1e-7)  # torch's roots


def test_rows_that_no_batch_uses_stay_as_they_were(alone, tmp_path):
    matching = fp.open_graph(np.array([[v, v + 50] for v in range(50)]), num_vertices=120)
    p = fp.VertexPartition(np.arange(120) % 3, 3)
    p.save(tmp_path / "parts", graph=matching, edge_splits={"val": [[0, 51], [1, 52]]})
    trained = alone(tmp_path / "parts", **{**LEARNED, "lr": 0.5, "negatives": "batch"})
    changed = (trained.embeddings != initial(np.arange(120), 6, 0)).any(axis=1)
    assert changed[:100].mean() > 0.8
    assert not changed[100:].any()


def test_first_rows_depend_on_vertex_and_seed():
    rows = initial(np.arange(10_000), 8, 0)
    np.testing.assert_array_equal(initial(np.array([77, 3]), 8, 0), rows[[77, 3]])
    assert (initial(np.arange(100), 8, 1) != rows[:100]).mean() > 0.99
    assert abs(rows.mean()) < 0.01
    assert (rows**2).sum(1).mean() == pytest.approx(1, rel=0.01)
    assert np.corrcoef(rows[:, 0], rows[:, 1])[0, 1] == pytest.approx(0, abs=0.03)


def stop(_, done, __):
    if done == 2:
        raise InterruptedError


def test_resumed_training_is_as_if_never_stopped(parts, tmp_path):
    given = {**LEARNED, "epochs": 4, "workers": 2}
    whole = fp.train.links(parts, **given)
    with pytest.raises(InterruptedError):
        fp.train.links(parts, out=tmp_path / "out", progress=stop, **given)
    assert not (tmp_path / "out" / "embeddings.npy").exists()
    assert_equal(fp.train.links(parts, out=tmp_path / "out", resume=True, **given), whole)
    kept = {each.name for each in (tmp_path / "out" / "embeddings").iterdir()}
    assert kept <= {"first", "second"}


@pytest.mark.parametrize("given", [QUICK, LEARNED])
@pytest.mark.parametrize("seconds", [0.0, 5.0])
def test_a_training_that_was_killed_is_resumed(parts, alone, tmp_path, monkeypatch, given, seconds):
    """Stop in the middle of any epoch. The checkpoint is that of the first epoch or, with 0 seconds, of the last."""
    monkeypatch.setattr("fastpart.train.runs.history.SAVE_SECONDS", seconds)
    given = {**given, "epochs": 5, "batch_size": 700, "lr": 0.2}
    whole, train = alone(parts, **given), Worker._train
    for last in range(1, 5):
        left = iter(range(3 * last + 1))  # 3 steps an epoch

        def killed(self, step, left=left):
            next(left)
            return train(self, step)

        monkeypatch.setattr(Worker, "_train", killed)
        with pytest.raises((StopIteration, RuntimeError)):
            alone(parts, out=tmp_path / f"{last}", **given)
        monkeypatch.setattr(Worker, "_train", train)
        assert_equal(alone(parts, out=tmp_path / f"{last}", resume=True, **given), whole)
        assert_equal(alone(parts, out=tmp_path / f"{last}", resume=True, **given), whole)  # it is over


def test_a_training_is_opened_with_its_learned_rows_and_leaves_those_of_the_user(bare, alone, tmp_path):
    out, mine = tmp_path / "out", tmp_path / "out" / "embeddings" / "mine.txt"
    trained = alone(bare, out=out, **LEARNED)
    mine.write_text("precious")
    opened = fp.train.open(out)
    assert_equal(opened, trained)
    np.testing.assert_array_equal(opened.predict(bare), trained.predict(bare))
    longer = alone(bare, out=out, resume=True, **{**LEARNED, "epochs": 5})
    assert_equal(longer, alone(bare, **{**LEARNED, "epochs": 5}))
    alone(bare, out=out, overwrite=True, **LEARNED)
    assert mine.read_text() == "precious"
    mine.parent.rename(tmp_path / "mine")
    with pytest.raises(fp.errors.ParameterError, match="mine is not empty, but holds no training"):
        alone(bare, out=tmp_path / "mine", **LEARNED)
    assert (tmp_path / "mine" / "mine.txt").read_text() == "precious"


def test_learned_rows_are_saved_with_the_checkpoints_only(bare, alone, tmp_path, monkeypatch):
    saves, save = [], EmbeddingTable.save
    monkeypatch.setattr(EmbeddingTable, "save", lambda self: saves.append(save(self)))
    alone(bare, out=tmp_path / "out", **{**LEARNED, "epochs": 6})
    assert len(saves) == 2  # after the first epoch, and in the end


@pytest.mark.parametrize("damage", ["shape", "bytes"])
def test_damaged_rows_are_named(bare, alone, tmp_path, damage):
    given = {**LEARNED, "epochs": 4}
    with pytest.raises(InterruptedError):
        alone(bare, out=tmp_path / "out", progress=stop, **given)
    for file in (tmp_path / "out" / "embeddings").glob("*/part-00001.npy"):
        if damage == "shape":
            np.save(file, np.zeros((3, 1, 6), np.float32))
        else:
            file.write_bytes(b"nothing")
    with pytest.raises(fp.errors.GraphFormatError, match=r"part-00001.npy: not the rows of a part"):
        alone(bare, out=tmp_path / "out", resume=True, **given)


def test_rows_of_other_parts_are_not_resumed(splits, bare, alone, tmp_path):
    alone(bare, out=tmp_path / "out", **LEARNED)
    other = saved(splits, tmp_path / "other", 3, np.arange(400) % 3, features=False)
    with pytest.raises(fp.errors.ParameterError, match=r"resume: .*out was trained on other parts"):
        alone(other, out=tmp_path / "out", resume=True, **LEARNED)


def test_parts_that_hold_nothing_take_part(splits, alone, tmp_path):
    empty = saved(splits, tmp_path / "empty", 3, np.arange(400) % 2 * 2)
    trained = fp.train.links(empty, workers=3, **LEARNED)
    assert (trained.history["remote_bytes"] > 0).all()  # learned rows and features
    assert {"parts": 3, "workers": 3, "epochs": 3}.items() <= trained.summary.items()
    one = alone(saved(splits, tmp_path / "one", 1), **LEARNED)
    assert (one.history["remote_bytes"] == 0).all()
    assert_same(trained, one)


def test_without_validation_the_last_epoch_is_the_best(splits, alone, tmp_path):
    p = fp.spring(splits.graph, k=2)
    p.save(tmp_path / "parts", graph=splits.graph, edge_splits={"test": splits.test})
    trained = alone(tmp_path / "parts", **LEARNED)
    assert trained.summary["best_epoch"] == 2
    assert np.isnan(trained.summary["val_mrr"])
    assert 0 < trained.summary["test_mrr"] < 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "embeddings: the directory has no features. Pass the width"),
        ({"embeddings": 0}, "embeddings: 0"),
        (
            {"embeddings": 4, "decoder": "sine"},
            "decoder: unknown value 'sine'. Valid values are 'cosine', 'dot', 'mlp'",
        ),
        ({"embeddings": 4, "negatives": "hard"}, "negatives: unknown value 'hard'"),
        ({"embeddings": 4, "negatives": 0}, "negatives: an edge needs some"),
        ({"embeddings": 4, "candidates": 0}, "candidates: 0"),
        ({"embeddings": 4, "model": "clustergcn"}, "model: 'clustergcn' trains on sampled graphs"),
        ({"embeddings": 4, "resume": True}, "resume: needs out="),
        ({"embeddings": 4, "table": [[0, 400]]}, "negatives: hard: ids must be from 0 to 399"),
    ],
)
def test_refusals(bare, tmp_path, given, message):
    if "table" in given:
        np.save(tmp_path / "hard.npy", given["table"])
        given = {"embeddings": 4, "negatives": {"uniform": 1, "hard": tmp_path / "hard.npy"}}
    with pytest.raises(fp.errors.ParameterError, match=message):
        fp.train.links(bare, **given)


def test_refused_directories(tmp_path):
    graph = np.array([[0, 1], [1, 2], [2, 3]])
    p = fp.VertexPartition([0, 0, 1, 1], 2)
    p.save(tmp_path / "parts", graph=graph, features=np.eye(4, dtype=np.float32))
    with pytest.raises(
        fp.errors.ParameterError, match=r"holds no edge splits\. Split the edges with splits = "
    ):
        fp.train.links(tmp_path / "parts")
    loops = fp.open_graph(np.array([[1, 1]]), num_vertices=4)
    p.save(tmp_path / "loops", graph=loops, edge_splits={"val": [[0, 1]]})
    with pytest.raises(fp.errors.ParameterError, match="has no edges to train on"):
        fp.train.links(tmp_path / "loops", embeddings=4)
    fp.EdgePartition([0, 0, 1], 2).save(tmp_path / "edges", graph=graph)
    with pytest.raises(fp.errors.ParameterError, match="is an edge partition"):
        fp.train.links(tmp_path / "edges", embeddings=4)


@pytest.mark.parametrize("method", ["links", "embeddings"])
def test_the_stated_memory_counts_the_negatives_of_all_kinds(parts, tmp_path, method):
    np.save(tmp_path / "hard.npy", [[0, 1]])
    known = of(method)

    def stated(negatives, **more):
        options = known.options.checked({"batch_size": 100, "negatives": negatives, **more})
        return sum(need.size for need in loaded(known.driver)(known, parts, options).needs()[0])

    hard = {"uniform": 20, "hard": tmp_path / "hard.npy"}
    assert stated({"uniform": 20, "degree": 30}) == stated(50) > stated(20)
    assert stated(hard, num_hard_negatives=40) > stated(hard, num_hard_negatives=10) > stated(20)
    if method == "embeddings":
        assert stated({"batch": "all", "uniform": 20}) == stated(120) < stated("all") == stated(400)


def test_the_command_line_and_ranks(bare, tmp_path, capsys):
    np.save(tmp_path / "hard.npy", [[0, 1], [0, 2], [5, 7]])
    words = ["--hidden", "8", "--epochs", "3", "--batch-size", "300", "--fanouts", "4,3", "--embeddings", "6"]
    words += ["--negatives", f"uniform=1,batch=2,hard={tmp_path / 'hard.npy'}", "--num-hard-negatives", "2"]
    code = main(["train", "links", str(bare), *words, "--threads", "1", "--workers", "2", "--json"])
    out = json.loads(capsys.readouterr().out)
    assert code == 0
    assert 0 < out["summary"]["test_mrr"] < 1
    done, _ = run_ranks("fastpart", "train", "links", bare, *words, "-o", tmp_path / "out", "--json", "-q")
    assert done.code == 0, done.errors
    losses, expected = ([row["loss"] for row in each["history"]] for each in (json.loads(done.out), out))
    assert losses == expected
    assert np.load(tmp_path / "out" / "embeddings.npy").shape == (400, 6)


MACHINE = """
import json, os, sys, fastpart as fp
rank, folder = os.environ["RANK"], sys.argv[1]
trained = fp.train.links(f"{folder}/machine{rank}", out=f"{folder}/out", **eval(sys.argv[2]))
if rank == "0":
    print(json.dumps([trained.history["loss"].to_list(), trained.summary["test_auc"]]))
"""


def test_machines_with_their_own_features_only(parts, alone, tmp_path):
    for rank in range(2):
        shutil.copytree(parts, tmp_path / f"machine{rank}")
        for part in range(3):
            if part * 2 // 3 != rank:
                (tmp_path / f"machine{rank}" / f"part-{part:05d}" / "features.npy").unlink()
    done, _ = run_code(MACHINE, tmp_path, repr(LEARNED))
    assert done.code == 0, done.errors
    losses, auc = json.loads(done.out)
    expected = alone(parts, **LEARNED)
    np.testing.assert_allclose(losses, expected.history["loss"], rtol=1e-5)
    assert auc == pytest.approx(expected.summary["test_auc"], rel=1e-2)
