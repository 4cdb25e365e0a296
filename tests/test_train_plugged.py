"""What a user plugs in: a network, a loss, an optimizer, a scheduler, and a limit of the gradients."""

import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import fastpart as fp
from soaked import some_of
from trainable import planted

torch = pytest.importorskip("torch")

from fastpart.train.learning.trainable import (  # noqa: E402
    Criterion,
    optimizer_of,
    scheduler_of,
)
from fastpart.train.models.scores import Task  # noqa: E402
from fastpart.train.options import Options  # noqa: E402

F = torch.nn.functional
NODES, EDGES, CLASSES, FEATURES = 300, 1500, 4, 8
QUICK = {"epochs": 3, "hidden": 8, "dropout": 0.0, "threads": 2}
"""Without dropout, and with all neighbours in one batch, all methods compute the same."""

WHOLE = {"batch_size": None, "fanouts": [-1, -1]}


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    return planted(
        folder, k=2, n=NODES, m=EDGES, halo_hops=2
    )  # as many as layers, for the averages of gradients


@pytest.fixture(scope="module")
def edge_parts(parts):
    """The same graph over parts of the edges."""
    graph, out = parts.parent / "g.bin", parts.parent / "edge-parts"
    order = np.random.default_rng(0).permutation(NODES)
    splits = {"train": order[: NODES // 2], "val": order[NODES // 2 : 225], "test": order[225:]}
    labels, features = (f"{graph}.{name}.npy" for name in ("labels", "features"))
    fp.algorithms.hdrf(graph, k=2).save(out, graph=graph, features=features, labels=labels, splits=splits)
    return out


def smoothed(outputs, labels):
    """Return a loss for each row that no method has."""
    return F.cross_entropy(outputs, labels, reduction="none", label_smoothing=0.2) + outputs.square().mean(1)


def plugged(loss=smoothed):
    return {
        "loss": loss,
        "optimizer": lambda weights: torch.optim.AdamW(weights, lr=0.05, betas=(0.8, 0.99)),
        "scheduler": lambda optimizer: torch.optim.lr_scheduler.MultiStepLR(optimizer, [1, 2], 0.5),
        "clip": 0.7,
    }


def by_hand(parts, loss=smoothed, epochs=3):
    """Train in a plain loop on the whole graph in float64, and return the losses."""
    from fastpart.train.data.dataset import Dataset
    from fastpart.train.models import build

    dataset, options = Dataset(parts), Options(hidden=8, dropout=0.0)
    local, given = dataset.whole(), plugged(loss)
    torch.manual_seed(0)
    network = build(dataset.task, options).double()
    optimizer = given["optimizer"](network.parameters())
    scheduler = given["scheduler"](optimizer)
    ids, losses = local.splits["train"], []
    for _ in range(epochs):
        value = loss(network([local.graph] * 2, local.features.double())[ids], local.labels[ids])
        value = value.mean()
        optimizer.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 0.7)
        optimizer.step()
        scheduler.step()
        losses.append(value.item())
    return losses


METHODS = {
    "full": {},
    "sampled": {"workers": 2, **WHOLE},
    "bytegnn": {"workers": 2, **WHOLE},
    "armada": {"compute_workers": 2, **WHOLE},
    "sdt": {"average": "gradients", "workers": 2},
    "distgnn": {},
    "sancus": {},
}
EXACT = {"rtol": 1e-10}
"""With float64. What one worker adds up, two add up in another order."""


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_what_is_plugged_in(parts, edge_parts, method):
    source = edge_parts if method == "distgnn" else parts
    trained = getattr(fp.train, method)(source, precision="float64", **QUICK, **METHODS[method], **plugged())
    np.testing.assert_allclose(trained.history["loss"], by_hand(parts), **EXACT)
    assert {weight.dtype for weight in trained.weights.values()} == {torch.float64}
    assert trained.options.loss is smoothed


@pytest.mark.parametrize("method", sorted({*METHODS} - {"sdt"}))
def test_weights_of_classes_divide(parts, edge_parts, method):
    weights = torch.tensor([1.0, 2.0, 0.5, 3.0])
    loss = torch.nn.CrossEntropyLoss(weight=weights)
    source = edge_parts if method == "distgnn" else parts
    trained = getattr(fp.train, method)(
        source, precision="float64", **QUICK, **METHODS[method], **plugged(loss)
    )
    double = weights.double()
    expected = by_hand(parts, lambda outputs, labels: F.cross_entropy(outputs, labels, weight=double))
    np.testing.assert_allclose(trained.history["loss"], expected, **EXACT)


def test_a_mini_batch_is_divided_by_the_weights_of_all_workers(parts):
    loss = torch.nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5, 3.0]))
    given = {**QUICK, "batch_size": 40, "fanouts": [4, 3], **plugged(loss)}
    one, two = (fp.train.sampled(parts, workers=workers, **given) for workers in (1, 2))
    np.testing.assert_allclose(one.history["loss"], two.history["loss"], rtol=1e-5)


class Ours(torch.nn.Module):
    """A network with arguments of its own, over an ``edge_index``."""

    def __init__(self, features, hidden, classes):
        super().__init__()
        self.first, self.last = torch.nn.Linear(features, hidden), torch.nn.Linear(hidden, classes)

    def forward(self, x, edge_index):
        source, target = edge_index
        h = torch.zeros(len(x), self.first.out_features).index_add(0, target, self.first(x)[source])
        return self.last(torch.relu(h + self.first(x)))


@pytest.mark.parametrize("method", ["full", "sampled", "bytegnn", "armada", "sdt"])
def test_a_network_is_trained_as_it_is(parts, method):
    torch.manual_seed(3)
    network = Ours(FEATURES, 8, CLASSES)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    given = {**QUICK, "layers": 1, **({} if method == "full" else METHODS[method])}
    given |= {"fanouts": [-1]} if "fanouts" in given else {}
    trained = getattr(fp.train, method)(parts, model=network, **given)
    expected = fp.train.full(parts, model=network, **{**QUICK, "layers": 1})
    np.testing.assert_allclose(trained.history["loss"], expected.history["loss"], rtol=1e-5)
    assert all(torch.equal(network.state_dict()[name], tensor) for name, tensor in before.items())
    assert len(trained.predict(parts)) == NODES


def test_what_is_plugged_in_goes_on_after_a_resume(parts, tmp_path):
    at_once = fp.train.sampled(parts, **QUICK, workers=2, **plugged())
    short = {**QUICK, "epochs": 2}
    fp.train.sampled(parts, out=tmp_path / "run", workers=2, **short, **plugged())
    text = (tmp_path / "run" / "fastpart-run.json").read_text()
    options = json.loads(text)["options"]
    assert (options["loss"], options["clip"], options["optimizer"]) == (
        "smoothed",
        0.7,
        "plugged.<locals>.<lambda>",
    )
    again = {**QUICK, "out": tmp_path / "run", "resume": True, "workers": 2}
    with pytest.raises(fp.errors.ParameterError, match=r"^resume: .* was trained with clip = 0\.7, not None"):
        fp.train.sampled(parts, **again)
    with pytest.raises(
        fp.errors.ParameterError, match=r"^resume: .* was trained with loss = 'smoothed', not None"
    ):
        fp.train.open(tmp_path / "run").resume(epochs=3)
    longer = fp.train.open(tmp_path / "run").resume(
        epochs=3, **{name: value for name, value in plugged().items() if name != "clip"}
    )
    np.testing.assert_allclose(longer.history["loss"], at_once.history["loss"], rtol=1e-6)


OPTIMIZERS = [
    (name, average) for name in ("SGD", "NAdam", "Adagrad", "RMSprop") for average in ("weights", "gradients")
]


@pytest.mark.parametrize(("name", "average"), some_of(OPTIMIZERS, [OPTIMIZERS[0], *OPTIMIZERS[3::4]]))
def test_averages_are_of_any_optimizer(parts, tmp_path, average, name):
    def optimizer(weights):
        more = {"momentum": 0.9} if name == "SGD" else {}
        return getattr(torch.optim, name)(weights, lr=0.01, **more)

    given = {**QUICK, "optimizer": optimizer, "average": average, "workers": 2}
    at_once = fp.train.sdt(parts, **given)
    assert at_once.history["loss"][2] < at_once.history["loss"][0]
    short = {**given, "epochs": 2, "out": tmp_path / "run"}
    fp.train.sdt(parts, **short)
    longer = fp.train.sdt(parts, **{**short, "epochs": 3, "resume": True})
    assert longer.history["loss"].to_list() == at_once.history["loss"].to_list()


def test_pairs_have_a_loss_of_the_user(tmp_path):
    ring = np.array([[v, (v + step) % 60] for v in range(60) for step in (1, 2, 3)])
    splits = fp.split_edges(ring)
    fp.multilevel(splits.graph, k=2).save(tmp_path / "parts", graph=splits.graph, edge_splits=splits)
    given = {"embeddings": 8, "hidden": 8, "dropout": 0, "epochs": 3}

    def squares(outputs, labels):
        return (torch.sigmoid(outputs) - labels).square()

    one, two = (
        fp.train.links(tmp_path / "parts", **given, workers=workers, loss=squares, clip=1.0)
        for workers in (1, 2)
    )
    np.testing.assert_allclose(one.history["loss"], two.history["loss"], rtol=1e-5)
    assert one.history["loss"][2] < one.history["loss"][0] < 0.5  # cross entropy begins at 0.7 and above


@pytest.mark.parametrize("method", ["sampled", "armada", "sancus"])
def test_a_worker_whose_weights_differ_is_named(parts, method):
    def optimizer(weights):
        import os

        return torch.optim.SGD(weights, lr=0.1 * (1 + int(os.environ.get("RANK", 0))))

    with pytest.raises(
        fp.errors.TrainingError,
        match=r"rank 1: after a round its weights are not those of rank 0\. The model",
    ):
        getattr(fp.train, method)(parts, **QUICK, **METHODS[method], optimizer=optimizer)


# Scores after some epochs only.


@pytest.mark.parametrize("method", METHODS)
def test_losses_do_not_depend_on_when_scores_are_computed(parts, edge_parts, method):
    source = edge_parts if method == "distgnn" else parts
    given = {**QUICK, **METHODS[method], "epochs": 5}
    seldom, always = (getattr(fp.train, method)(source, **given, eval_every=every) for every in (2, 1))
    np.testing.assert_allclose(seldom.history["loss"], always.history["loss"], rtol=1e-6)
    for name in ("val_accuracy", "val_f1"):
        assert seldom.history[name].is_null().to_list() == [True, False, True, False, False]
        scored = seldom.history[name].drop_nulls().to_list()
        assert scored == pytest.approx([always.history[name][epoch] for epoch in (1, 3, 4)])
    assert seldom.summary["best_epoch"] in (1, 3, 4)
    assert seldom.summary["val_f1"] == max(seldom.history["val_f1"].drop_nulls())


def test_patience_ends_a_training_after_a_validation_only(parts, tmp_path):
    given = {**QUICK, "epochs": 40, "patience": 3, "lr": 1e-9}  # no epoch is better than the first
    assert len(fp.train.full(parts, **given).history) == 4
    trained = fp.train.full(parts, **given, eval_every=5, out=tmp_path / "run")
    assert (len(trained.history), trained.summary["best_epoch"]) == (10, 4)
    longer = fp.train.open(tmp_path / "run").resume(patience=6, eval_every=2)  # neither changes a loss
    assert longer.history["val_f1"].is_null().to_list()[9:] == [False, True, False]
    assert longer.plot(tmp_path / "plot.svg")


# The criterion.


@pytest.mark.parametrize(
    "loss",
    [
        F.cross_entropy,
        torch.nn.CrossEntropyLoss(),
        torch.nn.CrossEntropyLoss(reduction="sum"),
        lambda outputs, labels: F.cross_entropy(outputs, labels, reduction="none"),
        lambda outputs, labels: F.cross_entropy(outputs, labels, reduction="none").unsqueeze(1),
    ],
)
def test_a_loss_is_one_value_for_each_row(loss):
    outputs, labels = torch.randn(5, 3), torch.tensor([0, 1, 2, 1, 0])
    found = Criterion(loss).losses(outputs, labels)
    assert torch.equal(found, F.cross_entropy(outputs, labels, reduction="none"))


def test_one_value_is_the_mean_of_its_rows():
    outputs, labels = torch.randn(5, 3), torch.tensor([0, 1, 2, 1, 0])
    found = Criterion(lambda o, y: F.cross_entropy(o, y)).losses(outputs, labels)
    assert found.sum() / 5 == pytest.approx(F.cross_entropy(outputs, labels).item())


# What is refused.

REFUSED = {
    "a name": (
        {"loss": "mse"},
        TypeError,
        r"^loss: expected a callable\(outputs, labels\), such as .*, got str$",
    ),
    "an optimizer": (
        {"optimizer": torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])},
        TypeError,
        r"^optimizer: expected a callable\(weights\), such as lambda weights: .*, got Adam$",
    ),
    "no optimizer": (
        {"optimizer": lambda weights: 3},
        fp.errors.ParameterError,
        r"^optimizer: it returned a int, not",
    ),
    "LBFGS": (
        {"optimizer": torch.optim.LBFGS},
        fp.errors.ParameterError,
        r"^optimizer: LBFGS evaluates the loss several",
    ),
    "fails": (
        {"optimizer": lambda weights: 1 / 0},
        fp.errors.ParameterError,
        r"^optimizer: it cannot be made: ZeroDiv",
    ),
    "plateau": (
        {"scheduler": torch.optim.lr_scheduler.ReduceLROnPlateau},
        fp.errors.ParameterError,
        r"^scheduler: it returned a ReduceLROnPlateau\. Return one that steps once in each epoch without a score",
    ),
    "no gradient": (
        {"loss": lambda outputs, labels: torch.zeros(len(labels))},
        fp.errors.ParameterError,
        r"^loss: it has no gradient\. Compute it",
    ),
    "other rows": (
        {"loss": lambda outputs, labels: outputs[:1].sum(1)},
        fp.errors.ParameterError,
        r"^loss: it returned a tensor of shape \(1,\) for 2 rows\. Return one value for each row, or their mean$",
    ),
    "other labels": (
        {"loss": F.binary_cross_entropy_with_logits},
        fp.errors.ParameterError,
        r"^loss: it cannot be called with outputs of shape \(2, 4\) and labels of shape \(2,\): ValueError: ",
    ),
    "clip": ({"clip": 0}, fp.errors.ParameterError, r"^clip: "),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_train_is_refused_before_workers_start(parts, what, monkeypatch):
    def refuse(*arguments, **given):
        raise AssertionError("a process was started")

    monkeypatch.setattr("fastpart.runtime.watch.Supervisor.start", refuse)
    given, error, text = REFUSED[what]
    for method in ("sampled", "full"):
        with pytest.raises(error, match=text):
            getattr(fp.train, method)(parts, **QUICK, **given)


def test_what_cannot_be_sent_is_refused(parts):
    lock = threading.Lock()

    def loss(outputs, labels):
        with lock:
            return F.cross_entropy(outputs, labels, reduction="none")

    with pytest.raises(
        fp.errors.ParameterError, match=r"^loss: other processes cannot get .*loss \(TypeError: .*lock"
    ):
        fp.train.sampled(parts, **QUICK, loss=loss)
    assert len(fp.train.full(parts, **QUICK, loss=loss).history) == 3


def test_without_cloudpickle_the_remedy_is_named(parts, monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"^loss=: workers get it by cloudpickle, which is not .*\[train\]"
    ):
        fp.train.sampled(parts, **QUICK, loss=smoothed)


def test_defaults_are_adam_and_a_rate_that_stays():
    weights = [torch.nn.Parameter(torch.zeros(1))]
    optimizer = optimizer_of(weights, Options(lr=0.3, weight_decay=0.1))
    assert type(optimizer) is torch.optim.Adam
    assert (optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["weight_decay"]) == (0.3, 0.1)
    assert scheduler_of(optimizer, Options()) is None
    assert Criterion(Task(2, 2, False).losses).weighted is False


def test_the_guide_runs(tmp_path):
    guide = Path(__file__).parents[1] / "docs" / "guides" / "your-own-training.md"
    blocks = re.findall(r"```python\n(.*?)```", guide.read_text(), re.DOTALL)
    assert len(blocks) == 4
    code = blocks[3].replace('"run"', '"ours"')
    kept = 'fp.train.full("parts", model=Mean(16, 32, 4), layers=1, loss=focal, epochs=3, out="ours")\n'
    (tmp_path / "mine.py").write_text(
        "\n".join([*blocks[:3], "if __name__ == '__main__':", *_indented(kept + code)])
    )
    done = subprocess.run(
        [sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True, timeout=150
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"│ 4 +┆ [\d.]+ +┆ [\d.]+ +│", done.stdout)
    assert re.search(r"│ 3 +┆ [\d.]+ +┆ null +│", done.stdout)


def _indented(code):
    return [f"    {line}" for line in code.splitlines()]
