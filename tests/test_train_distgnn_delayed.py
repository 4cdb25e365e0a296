"""Late and missing totals (cd-r, 0c) against one process that plays all parts, vertex by vertex and epoch by epoch."""

import tempfile
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpart as fp
from edge_partitioned import edge_parts_of, planted_edges
from soaked import some_of
from strategies import edge_lists
from thread_wire import together

torch = pytest.importorskip("torch")

from fastpart.train.data.dataset import EdgeDataset  # noqa: E402
from fastpart.train.graphs.neighbourhood import Neighbourhood  # noqa: E402
from fastpart.train.method_options import DistGNNOptions  # noqa: E402
from fastpart.train.methods.distgnn.exchange import Tools  # noqa: E402
from fastpart.train.methods.distgnn.totals import Copies, TotalsExchange, bins_of  # noqa: E402
from fastpart.train.models import build  # noqa: E402
from fastpart.train.options import Options  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")

DTYPE = torch.float64


class Stage:
    """The copies of all parts under one another; what was posted stays in lists."""

    def __init__(self, parts, delay):
        self.delay, self.epoch = delay, 0
        self.offsets = np.cumsum([0, *(len(part.vertices) for part in parts)])
        self.vertices = torch.cat([part.vertices for part in parts])
        self.degree = torch.cat([part.degree for part in parts])
        self.here = torch.cat([part.local_degree for part in parts])
        self.is_root = torch.cat([torch.arange(len(part.vertices)) < part.num_own for part in parts])
        self.matrix = torch.zeros(len(self.vertices), len(self.vertices), dtype=DTYPE)
        for offset, part in zip(self.offsets, parts, strict=False):
            ends = np.repeat(np.arange(len(part.indptr) - 1), np.diff(part.indptr))
            self.matrix.index_put_(
                (torch.from_numpy(ends + offset), torch.from_numpy(part.indices + offset)),
                torch.ones(len(ends), dtype=DTYPE),
                accumulate=True,
            )
        self.bins = bins_of(self.vertices, delay) if delay else None
        self.root_of = {int(v): i for i, v in enumerate(self.vertices) if self.is_root[i]}
        self.leaves_of = {
            v: [i for i, w in enumerate(self.vertices) if w == v and not self.is_root[i]]
            for v in self.root_of
        }

    def exact(self, x):
        same = (self.vertices[:, None] == self.vertices[None, :]).to(DTYPE)
        return same @ x


class Late(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, layer):
        ctx.layer = layer
        return layer.mixed(x, "values", up=True, down=not layer.last)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.layer.mixed(gradient, "gradients", up=not ctx.layer.last, down=True), None


class OnStage(Neighbourhood):
    """A layer of all parts at once."""

    def __init__(self, stage, delay, first, last):
        super().__init__()
        self.stage, self.delay, self.first, self.last = stage, delay, first, last
        self.num_targets = len(stage.vertices)
        self.source_degree = self.target_degree = stage.degree
        self.posted = {"values": {}, "gradients": {}}
        self.totals = {"values": {}, "gradients": {}}

    def mean(self, x):
        stage = self.stage
        here = stage.matrix @ x
        if self.delay is None:
            return here / stage.here.clamp(min=1)[:, None]
        if self.first:  # features never change: exact, at once
            return stage.exact(here) / stage.degree.clamp(min=1)[:, None]
        return Late.apply(here, self) / self.included().clamp(min=1)[:, None]

    def attend(self, values, source, target, score, drop):
        raise TypeError("no attention here")

    def included(self):
        stage = self.stage
        found = stage.here.clone()
        for i in range(len(found)):
            wait = stage.delay if stage.is_root[i] else 2 * stage.delay
            if stage.bins[i] == stage.epoch % stage.delay and stage.epoch >= wait:
                found[i] = stage.degree[i]
        return found

    def mixed(self, x, way, up, down):
        stage, epoch, out = self.stage, self.stage.epoch, x.clone()
        self.posted[way][epoch], self.totals[way][epoch] = x.clone(), {}
        for v, root in stage.root_of.items():
            if stage.bins[root] != epoch % stage.delay:
                continue
            before = epoch - stage.delay
            if up and before in self.posted[way]:
                for leaf in stage.leaves_of[v]:
                    out[root] += self.posted[way][before][leaf]
            if down and (not up or before in self.posted[way]):
                self.totals[way][epoch][v] = out[root].clone()
                if v in self.totals[way].get(before, {}):
                    for leaf in stage.leaves_of[v]:
                        out[leaf] = self.totals[way][before][v]
        return out


def network_of(name, task, layers):
    torch.manual_seed(0)
    network = build(task, Options(model=name, hidden=5, dropout=0.0, layers=layers)).to(DTYPE)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return network


def trained(network, epochs, step):
    """Return the losses and gradients of some steps of gradient descent."""
    found = []
    for epoch in range(epochs):
        network.zero_grad()
        loss = step(epoch)
        gradients = [torch.zeros_like(w) if w.grad is None else w.grad.clone() for w in network.parameters()]
        found.append((loss, gradients))
    return found


def played(dataset, network, delay, epochs, layers):
    """Return the losses and gradients of all epochs by the slow way; weights move a little in each."""
    parts = [Copies.load(dataset, index) for index in range(dataset.partition.k)]
    stage = Stage(parts, delay)
    graphs = [OnStage(stage, delay, index == 0, index == layers - 1) for index in range(layers)]
    features = torch.cat([part.features for part in parts]).to(DTYPE)

    def step(epoch):
        stage.epoch = epoch
        logits = network(graphs, features)
        loss = sum(
            dataset.task.losses(
                logits[offset:][part.splits["train"]], part.labels[part.splits["train"]]
            ).sum()
            for offset, part in zip(stage.offsets, parts, strict=False)
        )
        (loss / dataset.num_train).backward()
        return loss.item() / dataset.num_train

    return moved(network, epochs, step)


def moved(network, epochs, step):
    found = []
    for epoch in range(epochs):
        found += trained(network, 1, lambda _, epoch=epoch: step(epoch))
        with torch.no_grad():
            for number, weight in enumerate(network.parameters()):
                weight.mul_(1 + 0.01 * ((epoch + number) % 3))
    return found


def exchange_between(wire, copies, delay, layers):
    tools, options = (
        Tools(wire, torch.device("cpu")),
        DistGNNOptions(layers=layers, delay=delay or 0, exchange="never" if delay is None else "always"),
    )
    return TotalsExchange(copies, options, tools)


@settings(max_examples=6, deadline=None)
@given(graph=edge_lists(7, 16).filter(lambda drawn: drawn[0] > 1), layers=st.integers(1, 3), data=st.data())
@pytest.mark.parametrize(
    ("name", "delay"),
    some_of(
        list(product(["graphsage", "graphsage-gcn", "gcn", "gin", "ngnn", "sgc"], [1, 2, 3, None])),
        always=[
            *product(["graphsage"], [1, 2, 3, None]),
            *product(["graphsage-gcn", "gcn", "gin", "ngnn", "sgc"], [2]),
        ],
    ),
)
def test_epochs_are_those_of_the_slow_way(name, delay, graph, layers, data):
    n, edges = graph
    k = data.draw(st.integers(1, 4))
    assignment = data.draw(st.lists(st.integers(0, k - 1), min_size=len(edges), max_size=len(edges)))
    epochs = 8
    with tempfile.TemporaryDirectory() as folder:
        dataset = EdgeDataset(edge_parts_of(Path(folder) / "parts", n, edges, assignment, k))
        expected = played(dataset, network_of(name, dataset.task, layers), delay, epochs, layers)
        networks = [network_of(name, dataset.task, layers) for _ in range(k)]

        def work(wire):
            part = Copies.load(dataset, wire.rank)
            part.features = part.features.to(DTYPE)
            exchange = exchange_between(wire, part, delay, layers)
            network = networks[wire.rank]

            def step(epoch):
                exchange.begin(epoch)
                logits, ids = network(exchange.layers, part.features), part.splits["train"]
                loss = dataset.task.losses(logits[ids], part.labels[ids]).sum() / dataset.num_train
                loss.backward()
                return loss.item()

            found = moved(network, epochs, step)
            exchange.close()
            return found

        workers = together(k, work)
    for epoch, (loss, gradients) in enumerate(expected):
        assert sum(worker[epoch][0] for worker in workers) == pytest.approx(loss, abs=1e-10)
        for number, gradient in enumerate(gradients):
            total = sum(worker[epoch][1][number] for worker in workers)
            torch.testing.assert_close(total, gradient, atol=1e-10, rtol=1e-10)


def test_bins_are_equally_large_whatever_the_ids():
    for ids in (torch.arange(100_000), 64 * torch.arange(100_000), torch.arange(100_000) ** 2):
        counts = torch.bincount(bins_of(ids, 5), minlength=5)
        assert counts.min() > 19_000
        assert counts.max() < 21_000
    assert (bins_of(torch.arange(10), 1) == 0).all()


def test_late_totals_send_a_fraction_of_the_bytes(tmp_path):
    dataset = EdgeDataset(
        planted_edges(tmp_path, k=3, n=2000, m=10_000, by=lambda e, k: fp.algorithms.random(e, k, of="edges"))
    )

    def sent(delay, epochs):
        def work(wire):
            torch.manual_seed(0)
            part = Copies.load(dataset, wire.rank)
            exchange = exchange_between(wire, part, delay, 2)
            network = networks[wire.rank]
            counts = []
            for epoch in range(epochs):
                wire.sent = wire.received = 0
                exchange.begin(epoch)
                network(exchange.layers, part.features).sum().backward()
                counts.append((wire.sent, wire.received))
            exchange.close()
            return counts

        networks = [network_of("graphsage", dataset.task, 2).float() for _ in range(3)]
        workers = together(3, work)
        return np.array(workers).sum(0)[:, 0], np.array(workers).sum(0)[:, 1]

    leaves = sum(len(Copies.load(dataset, index).up.ids) for index in range(3))
    wide, narrow = 4 * dataset.task.features, 4 * dataset.task.classes
    exact, received = sent(0, 3)
    # Features up and down once; then, in the last layer, sums up and gradients down.
    assert exact.tolist() == [leaves * 2 * (wide + narrow)] + [leaves * 2 * narrow] * 2
    assert received.tolist() == exact.tolist()
    late, _ = sent(5, 15)
    assert late[5:10].sum() == late[10:].sum() == leaves * 2 * narrow
    assert sent(None, 3)[0].tolist() == [0, 0, 0]
