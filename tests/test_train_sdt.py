"""Model averaging: its arithmetic against plain loops, its exact cases, and parts by memory."""

import copy
import json

import numpy as np
import pytest

import fastpart as fp
from ranks import run_ranks
from trainable import planted

torch = pytest.importorskip("torch")

from fastpart.core.options import RunOptions  # noqa: E402
from fastpart.train.data.dataset import Dataset  # noqa: E402
from fastpart.train.inference.inference import Inference  # noqa: E402
from fastpart.train.jobs.job import Place  # noqa: E402
from fastpart.train.learning.learner import batches_of  # noqa: E402
from fastpart.train.method_options import SDTOptions  # noqa: E402
from fastpart.train.methods.sdt import averaging, sizing  # noqa: E402
from fastpart.train.methods.sdt.worker import Worker  # noqa: E402
from fastpart.train.models import build  # noqa: E402
from fastpart.train.models.scores import scores_of  # noqa: E402
from fastpart.train.options import Options  # noqa: E402
from fastpart.train.runs.run_folder import RunFolder  # noqa: E402

EXACT = {"dropout": 0.0, "epochs": 6, "hidden": 8, "threads": 1}


@pytest.fixture(scope="module", autouse=True)
def _one_process(tmp_path_factory):
    """Agree with nobody."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    file = tmp_path_factory.mktemp("rendezvous") / "file"
    torch.distributed.init_process_group("gloo", init_method=f"file://{file}", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def two_hops(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("two"), k=3, halo_hops=2)


@pytest.fixture(scope="module")
def one_hop(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("one"), k=3)


def close(one, other, tolerance=1e-5):
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], atol=tolerance, rtol=0)


@pytest.mark.timeout(120)
def test_one_part_is_centralized_training(two_hops, tmp_path):
    central = fp.train.full(two_hops, **{**EXACT, "dropout": 0.5})
    alone = fp.train.sdt(two_hops, **{**EXACT, "dropout": 0.5}, parts=1, out=tmp_path / "out")
    close(alone.weights, central.weights)
    assert alone.summary["parts"] == alone.summary["workers"] == 1
    for name in ("loss", "val_accuracy"):
        np.testing.assert_allclose(alone.history[name], central.history[name], atol=1e-5)
    assert alone.summary["test_f1"] == pytest.approx(central.summary["test_f1"])


@pytest.mark.timeout(120)
@pytest.mark.parametrize("workers", [1, 2])
def test_gradients_over_complete_halos_are_those_of_the_whole_graph(two_hops, workers):
    central = fp.train.full(two_hops, **EXACT)
    parts = fp.train.sdt(two_hops, **EXACT, average="gradients", workers=workers)
    close(parts.weights, central.weights)
    np.testing.assert_allclose(parts.history["loss"], central.history["loss"], atol=1e-5)


@pytest.mark.timeout(120)
def test_several_workers_average_as_one_does(one_hop):
    one = fp.train.sdt(one_hop, **EXACT, workers=1)
    two = fp.train.sdt(one_hop, **EXACT, workers=2)
    close(one.weights, two.weights, 1e-6)
    assert two.summary["workers"] == 2
    assert (two.history["remote_bytes"] > 0).all()
    assert (two.history["worker_bytes"] > 0).all()


@pytest.mark.parametrize("moments", [True, False])
@pytest.mark.parametrize("epochs", [1, 2])
def test_rounds_against_plain_loops(one_hop, tmp_path, moments, epochs):
    dataset, options = Dataset(one_hop), SDTOptions(dropout=0.0, hidden=8, average_moments=moments)
    worker = Worker(dataset, options, Place(tmp_path, tmp_path, 1 << 20), {})
    shared = copy.deepcopy(worker.network)
    for _ in range(2):
        worker.round(epochs, True)
    for name, value in _averaged(dataset, options, shared, 2, epochs, moments).items():
        torch.testing.assert_close(worker.network.state_dict()[name], value, atol=1e-6, rtol=0)


def _averaged(dataset, options, shared, rounds, epochs, moments):
    parts = [dataset.part(number) for number in range(dataset.partition.k)]
    counts = [len(part.splits["train"]) for part in parts]
    copies = [copy.deepcopy(shared) for _ in parts]
    adams = [
        torch.optim.Adam(c.parameters(), lr=options.lr, weight_decay=options.weight_decay) for c in copies
    ]

    def mean(tensors):
        return sum(c * t.double() for c, t in zip(counts, tensors, strict=True)) / sum(counts)

    for _ in range(rounds):
        for part, network, adam in zip(parts, copies, adams, strict=True):
            for _ in range(epochs):
                ids = part.splits["train"]
                logits = network([part.graph] * 2, part.features)[ids]
                adam.zero_grad()
                torch.nn.functional.cross_entropy(logits, part.labels[ids]).backward()
                adam.step()
        with torch.no_grad():
            for parameters in zip(*(network.parameters() for network in copies), strict=True):
                value = mean(parameters)
                states = [adam.state[p] for adam, p in zip(adams, parameters, strict=True)]
                for parameter in parameters:
                    parameter.copy_(value)
                for name in ("exp_avg", "exp_avg_sq") if moments else ():
                    value = mean([state[name] for state in states])
                    for state in states:
                        state[name].copy_(value)
    return copies[0].state_dict()


class OverAll(torch.nn.Module):
    """A network without layers that others know of."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, graphs, x):
        return self.network(graphs, x)


def test_scores_are_those_of_the_whole_graph(one_hop, tmp_path):
    dataset, options = Dataset(one_hop), Options(hidden=8, layers=3, fanouts=(1, 1, 1))
    network = build(dataset.task, options)
    whole = dataset.whole()
    with torch.no_grad():
        logits = network.eval()([whole.graph] * 3, whole.features)
    tallies = [dataset.task.tally(logits[i], whole.labels[i]) for i in map(whole.splits.get, ("val", "test"))]
    expected = scores_of(("val", "test"), torch.stack(tallies), dataset.task)
    inference = Inference(dataset, list(range(dataset.partition.k)), tmp_path, 3)
    assert inference.scores(network) == pytest.approx(expected)
    assert not list(tmp_path.iterdir())
    # Another network is computed at once. Outputs of a hidden layer are those of a network without the last one.
    assert inference.scores(OverAll(network)) == pytest.approx(expected)
    for layers in (1, 2, 3):
        below = whole.features
        with torch.no_grad():
            for index in range(layers):
                below = network.layer(index, whole.graph, below)
        found = torch.zeros_like(below)
        for part, vertices, rows in inference.outputs(network, layers=layers):
            found[torch.from_numpy(dataset.partition.parts[part].inner[vertices])] = rows
        torch.testing.assert_close(found, below, rtol=1e-4, atol=1e-5)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("what", ["empty part", "no training vertices"])
def test_parts_without_work_are_skipped(tmp_path, what):
    n = 600
    assignment = np.arange(n) % 3
    splits = {"train": np.arange(0, n, 2), "val": np.arange(1, n, 4), "test": np.arange(3, n, 4)}
    if what == "empty part":
        assignment[assignment == 1] = 0
    else:
        splits["train"] = np.flatnonzero(assignment != 1)
        splits["val"] = np.flatnonzero(assignment == 1)[::2]
        splits["test"] = np.flatnonzero(assignment == 1)[1::2]
    parts = planted(tmp_path, k=3, assignment=assignment, splits=splits)
    trained = fp.train.sdt(parts, epochs=10, hidden=16, workers=3, threads=1)
    assert trained.summary["test_accuracy"] > 0.5


@pytest.mark.timeout(120)
def test_resuming_is_going_on(one_hop, tmp_path):
    given = {"hidden": 8, "epochs": 6, "threads": 1, "workers": 2, "batch_size": 50}

    def stop(_, done, __):
        if done == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fp.train.sdt(one_hop, **given, out=tmp_path / "out", progress=stop)
    went_on = fp.train.sdt(one_hop, **given, out=tmp_path / "out", resume=True)
    at_once = fp.train.sdt(one_hop, **given)
    assert went_on.history["epoch"].to_list() == list(range(6))
    close(went_on.weights, at_once.weights, 1e-6)


@pytest.mark.timeout(120)
def test_ranks_of_a_launcher(one_hop, tmp_path):
    words = ("--hidden", 8, "--dropout", 0, "--epochs", 6, "--threads", 1, "--json", "-o", tmp_path / "run")
    done, _ = run_ranks("fastpart", "train", "sdt", one_hop, *words)
    assert done.code == 0, done.errors
    found = json.loads(done.out)
    alone = fp.train.sdt(one_hop, **EXACT, workers=1)
    np.testing.assert_allclose([row["loss"] for row in found["history"]], alone.history["loss"], atol=1e-5)
    assert found["summary"]["workers"] == 2


def test_the_mean_of_one_is_itself():
    state = {"weight": torch.rand(3, 2).double() / 3, "step": torch.tensor(7.0).double()}
    for like in (state, {}):  # whatever the others know
        mean = averaging.Mean()
        mean.add(state, 13)
        torch.testing.assert_close(mean.of_all(like), state, atol=1e-15, rtol=1e-15)


def test_what_earlier_versions_kept_has_names():
    network = torch.nn.Linear(2, 3)
    adam = torch.optim.Adam(network.parameters())
    network(torch.ones(4, 2)).sum().backward()
    adam.step()
    moments = averaging.moments_of(adam)
    assert list(moments) == [f"{i}.{name}" for i in (0, 1) for name in ("step", "exp_avg", "exp_avg_sq")]
    again = averaging.named(list(moments.values()), [])
    assert all(torch.equal(again[name], tensor) for name, tensor in moments.items())
    weights = averaging.weights_of(network)
    assert list(averaging.named(list(weights.values()), list(weights))) == ["weight", "bias"]


def test_parts_by_memory(one_hop):
    dataset = Dataset(one_hop)
    total = sizing.graph_bytes(dataset)
    enough = sizing.parts_for(dataset, total * 6, workers=2, run=RunOptions())
    assert enough.parts == enough.explained["parts_by_rule"] == 2
    # The rule does not know the halo: with a little less than the larger half takes, two parts are too few.
    tight = sizing.parts_for(
        dataset, 3 * enough.explained["largest_part_bytes"] - 300, workers=2, run=RunOptions()
    )
    room = tight.explained["memory_per_worker"] - tight.explained["computing_bytes"]
    assert tight.explained["parts_by_rule"] == 2
    assert tight.parts > 2
    assert tight.explained["largest_part_bytes"] <= room
    assert tight.explained["replication"] > 1
    with pytest.raises(fp.errors.MemoryBudgetError, match=r"memory_per_worker: .* times the graph"):
        sizing.parts_for(dataset, total // 20, workers=1, run=RunOptions())


def test_sizes_of_new_parts_are_those_of_saved_ones(one_hop, tmp_path):
    dataset = Dataset(one_hop)

    again = sizing.regrouped(dataset, 5, RunFolder(tmp_path), RunOptions())
    assert again.partition.k == 5
    assert sizing._bytes_of_parts(again) == sizing._bytes_of_new(dataset, 5, RunOptions())
    assert sizing.regrouped(dataset, 5, RunFolder(tmp_path), RunOptions()).path == again.path
    for one, other in ((dataset.whole(), again.whole()),):
        assert torch.equal(one.features, other.features)
        assert torch.equal(one.labels, other.labels)
        assert all(torch.equal(ids, other.splits[name]) for name, ids in one.splits.items())
        assert torch.equal(one.graph.edge_index, other.graph.edge_index)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"workers": 0}, "workers"),
        ({"resume": True}, "resume: needs out="),
        ({"average": "all"}, "average: unknown value"),
        ({"average_every": 0}, "average_every"),
        ({"average_every": 101}, "average_every"),
        ({"parts": "some"}, "parts: unknown value"),
        ({"parts": "auto"}, "memory_per_worker"),
        ({"memory_per_worker": 1000}, "leave 333 for a part"),
    ],
)
def test_refusals(one_hop, given, message):
    with pytest.raises(fp.FastpartError, match=message):
        fp.train.sdt(one_hop, **given)


@pytest.mark.timeout(120)
def test_a_model_that_a_worker_cannot_make_is_named(one_hop, tmp_path):
    file = tmp_path / "mine.py"
    # It is tried in the process of the user, who is told at once. This one fails in workers only.
    file.write_text(
        "import os, torch\n"
        "def Mine(task, options):\n"
        "    if 'RANK' in os.environ:\n"
        "        raise RuntimeError('no such thing')\n"
        "    return torch.nn.Linear(task.features, task.classes)\n"
    )
    with pytest.raises(fp.errors.TrainingError, match=r"worker 0.*\n?.*no such thing"):
        fp.train.sdt(one_hop, model=f"{file}:Mine", workers=1)


def test_batches_are_of_each_part(one_hop):
    local = Dataset(one_hop).part(1)
    options = Options(batch_size=7, fanouts=(3, 3))
    found = list(batches_of(local, options, torch.Generator().manual_seed(0)))
    assert (
        sorted(np.concatenate([batch.targets for batch in found]).tolist()) == local.splits["train"].tolist()
    )


def test_what_was_partitioned_around_its_splits_is_so_again(one_hop, tmp_path):
    with sizing.graph_of(Dataset(one_hop), RunOptions()) as graph:
        splits = sizing._splits(Dataset(one_hop))
        p = fp.algorithms.bytegnn(graph, 2, splits=splits, hops=1)
        rows = sizing._rows(Dataset(one_hop), tmp_path)
        p.save(tmp_path / "parts", graph=graph, halo_hops=1, **rows)
        again = sizing.regrouped(Dataset(tmp_path / "parts"), 5, RunFolder(tmp_path), RunOptions())
        expected = fp.algorithms.bytegnn(graph, 5, splits=splits, hops=1)
    assert again.partition.assignment.tolist() == expected.assignment.tolist()
    assert again.partition.parameters["hops"] == 1
