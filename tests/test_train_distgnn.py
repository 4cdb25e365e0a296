"""Full batches over parts of the edges: sums, losses and gradients against one process that has the whole graph."""

import tempfile
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_partitioned import edge_parts_of
from soaked import some_of
from strategies import edge_lists
from thread_wire import together

torch = pytest.importorskip("torch")

from fastpart.train.data.dataset import EdgeDataset  # noqa: E402
from fastpart.train.method_options import DistGNNOptions  # noqa: E402
from fastpart.train.methods.distgnn.exchange import Tools  # noqa: E402
from fastpart.train.methods.distgnn.totals import Copies, TotalsExchange  # noqa: E402
from fastpart.train.models import MODELS, build  # noqa: E402
from fastpart.train.options import Options  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")

FULL_BATCH = sorted(set(MODELS) - {"clustergcn", "graphsaint"})
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


def network_of(name, task, dtype, **options):
    torch.manual_seed(0)
    given = {"hidden": 5, "heads": 2, "dropout": 0.0, "layers": 2, **options}
    network = build(task, Options(model=name, **given)).to(dtype)
    for parameter in network.parameters():  # biases begin with 0
        torch.nn.init.normal_(parameter, std=0.5)
    return network


def whole(dataset, network, dtype):
    """Return the loss, the gradients and the logits of one process that knows no parts."""
    local = dataset.whole()
    logits = network([local.graph] * len(network.layers), local.features.to(dtype))
    ids = local.splits["train"]
    loss = dataset.task.losses(logits[ids], local.labels[ids]).sum() / dataset.num_train
    loss.backward()
    return loss.item(), gradients(network), logits.detach()


def gradients(network):
    return {
        name: torch.zeros_like(w) if w.grad is None else w.grad.clone()
        for name, w in network.named_parameters()
    }


def part_on(dataset, wire, dtype, layers=2):
    copies = Copies.load(dataset, wire.rank)
    copies.features = copies.features.to(dtype)
    tools, options = Tools(wire, torch.device("cpu")), DistGNNOptions(layers=layers)
    return copies, TotalsExchange(copies, options, tools)


def step_of(dataset, part, exchange, network):
    """Return the loss, the gradients and the logits of a worker, for one step."""
    network.zero_grad()
    exchange.begin(0)
    logits = network(exchange.layers, part.features)
    ids = part.splits["train"]
    loss = dataset.task.losses(logits[ids], part.labels[ids]).sum() / dataset.num_train
    loss.backward()
    return loss.item(), gradients(network), logits.detach()


@st.composite
def edge_partitions(draw):
    n, edges = draw(edge_lists(8, 20))
    k = draw(st.integers(1, 4))
    assignment = draw(st.lists(st.integers(0, k - 1), min_size=len(edges), max_size=len(edges)))
    return n, edges, assignment, k


@settings(max_examples=8, deadline=None)
@given(graph=edge_partitions().filter(lambda drawn: drawn[0] > 1), layers=st.integers(1, 3))
@pytest.mark.parametrize(
    ("name", "dtype"),
    some_of(
        list(product(FULL_BATCH, TOLERANCE)),
        always=[("graphsage", torch.float32), *product(FULL_BATCH, [torch.float64])],
    ),
)
def test_loss_and_gradients_are_those_of_the_whole_graph(name, dtype, graph, layers):
    n, edges, assignment, k = graph
    with tempfile.TemporaryDirectory() as folder:
        dataset = EdgeDataset(edge_parts_of(Path(folder) / "parts", n, edges, assignment, k))
        loss, expected, logits = whole(dataset, network_of(name, dataset.task, dtype, layers=layers), dtype)
        # Networks are made one after the other: torch has one generator for all threads.
        networks = [network_of(name, dataset.task, dtype, layers=layers) for _ in range(k)]

        def work(wire):
            part, exchange = part_on(dataset, wire, dtype, layers=layers)
            first = step_of(dataset, part, exchange, networks[wire.rank])
            again = step_of(
                dataset, part, exchange, networks[wire.rank]
            )  # with what the first layer has kept
            return part, first, again

        found = together(k, work)
    close = {"atol": TOLERANCE[dtype], "rtol": TOLERANCE[dtype]}
    for step in (1, 2):
        assert sum(worker[step][0] for worker in found) == pytest.approx(loss, abs=TOLERANCE[dtype])
        for key, value in expected.items():
            total = sum(worker[step][1][key] for worker in found)
            torch.testing.assert_close(total, value, **close)
        for part, *steps in found:
            roots = part.vertices[: part.num_own]
            torch.testing.assert_close(steps[step - 1][2], logits[roots], **close)
