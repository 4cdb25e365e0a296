"""SANCUS: row blocks against the whole graph, stale copies against a simulation of all workers with dense matrices."""

import copy
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soaked import some_of
from strategies import edge_lists
from thread_wire import together
from trainable import planted

torch = pytest.importorskip("torch")

from fastpart.train.data.dataset import Dataset  # noqa: E402
from fastpart.train.graphs.neighbourhood import Neighbourhood  # noqa: E402
from fastpart.train.method_options import SancusOptions  # noqa: E402
from fastpart.train.methods.distgnn import staleness  # noqa: E402
from fastpart.train.methods.distgnn import wire as wires  # noqa: E402
from fastpart.train.methods.distgnn.blocks import Blocks  # noqa: E402
from fastpart.train.methods.distgnn.exchange import Tools  # noqa: E402
from fastpart.train.methods.distgnn.staleness import BlocksExchange  # noqa: E402
from fastpart.train.models import build  # noqa: E402
from fastpart.train.models.scores import Task  # noqa: E402
from fastpart.train.options import Options  # noqa: E402

TASK = Task(features=3, classes=4, multilabel=False)
CPU = torch.device("cpu")
TOLERANCES = {torch.float32: 1e-5, torch.float64: 1e-10}

pytestmark = pytest.mark.usefixtures("one_thread")


# Small graphs with a part for each vertex, and what there is to learn about them.


class Case:
    def __init__(self, n, edges, parts, k, train, seed=0):
        random = torch.Generator().manual_seed(seed)
        self.n, self.k, self.parts = n, k, np.array(parts, np.int64)
        self.sources, self.ends = edges[:, 0].astype(np.int64), edges[:, 1].astype(np.int64)
        self.train = np.array(train, bool)
        self.features = torch.randn(n, TASK.features, dtype=torch.float64, generator=random)
        self.labels = torch.randint(TASK.classes, (n,), generator=random)
        self.num_train = max(1, int(self.train.sum()))

    def members(self, part):
        return np.flatnonzero(self.parts == part)

    def matrix(self):
        a = torch.zeros(self.n, self.n, dtype=torch.float64)
        a.index_put_(
            (torch.from_numpy(self.ends), torch.from_numpy(self.sources)), torch.ones(()).double(), True
        )
        return a

    def rows(self):
        """Return the row of each vertex in its part."""
        row = np.full(self.n, -1)
        for q in range(self.k):
            row[self.members(q)] = np.arange(len(self.members(q)))
        return row

    def edges(self, part):
        """Return the edges to a part by the part of their source."""
        row, edges = self.rows(), {}
        for q in range(self.k):
            chosen = (self.parts[self.ends] == part) & (self.parts[self.sources] == q)
            ends, sources = row[self.ends[chosen]], row[self.sources[chosen]]
            if chosen.any():
                counts = np.bincount(ends, minlength=len(self.members(part)))
                order = np.argsort(ends, kind="stable")
                edges[q] = (np.concatenate(([0], np.cumsum(counts))), sources[order])
        return edges

    def blocks(self, part, dtype):
        inner = self.members(part)
        chosen = np.flatnonzero(self.parts[self.ends] == part)
        chosen = chosen[np.argsort(self.ends[chosen], kind="stable")]
        halo = np.setdiff1d(self.sources[chosen], inner)
        local = np.full(self.n, -1)
        local[np.concatenate([inner, halo])] = np.arange(len(inner) + len(halo))
        degree = np.bincount(self.ends, minlength=self.n)[inner]
        ids = torch.from_numpy(inner)
        return Blocks(
            num_own=len(inner),
            vertices=ids,
            degree=torch.from_numpy(degree),
            indptr=np.concatenate(([0], np.cumsum(degree))),
            indices=local[self.sources[chosen]],
            features=self.features[ids].to(dtype),
            labels=self.labels[ids],
            splits={"train": torch.from_numpy(np.flatnonzero(self.train[inner]))},
            halo_parts=self.parts[halo],
            halo_rows=self.rows()[halo],
        )

    def needed(self, reader, owner):
        """Return the vertices of a part that another part has edges from."""
        chosen = (self.parts[self.ends] == reader) & (self.parts[self.sources] == owner)
        return np.unique(self.sources[chosen])

    def readers(self, owner):
        return [p for p in range(self.k) if p != owner and len(self.needed(p, owner))]


@st.composite
def cases(draw, max_k=4):
    n, edges = draw(edge_lists(10, 30))
    k = draw(st.integers(1, max_k))
    parts = draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
    train = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    return Case(n, edges, parts, k, train, draw(st.integers(0, 3)))


def network_of(name, dtype, **options):
    torch.manual_seed(0)
    network = build(TASK, Options(model=name, **{"hidden": 5, "dropout": 0.0, **options})).to(dtype)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return network


def moved(network, epoch):
    """Return a network with weights of its own in each epoch."""
    other = copy.deepcopy(network)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter += 0.1 * torch.sin(
                torch.arange(parameter.numel(), dtype=parameter.dtype) + epoch
            ).view_as(parameter)
    return other


def trained(network, layers, features, labels, train, count):
    """Return the loss and the gradients of the weights."""
    network.zero_grad()
    logits = network(layers, features)
    loss = TASK.losses(logits[train], labels[train]).sum() / count
    loss.backward()
    return loss.item(), {name: p.grad.clone() for name, p in network.named_parameters()}


def epochs_of(case, network, given, epochs=1, watch=lambda part, exchange: None):
    """Return for each epoch the loss and the gradients, summed over workers, and what all saw of each epoch."""
    dtype = next(network.parameters()).dtype

    def work(wire):
        part = case.blocks(wire.rank, dtype)
        exchange = BlocksExchange(part, SancusOptions(layers=len(network.layers), **given), Tools(wire, CPU))
        told = []
        for epoch in range(epochs):
            wire.sent = wire.received = 0
            exchange.begin(epoch)
            own = moved(network, epoch)
            found = trained(
                own, exchange.layers, part.features, part.labels, part.splits["train"], case.num_train
            )
            told.append((*found, exchange.row(), wire.sent, wire.received))
            watch(part, exchange)
        return told

    workers = together(case.k, work)
    return [
        (
            sum(loss for loss, *_ in epoch),
            {name: sum(grads[name] for _, grads, *_ in epoch) for name in epoch[0][1]},
            [row for _, _, row, _, _ in epoch],
            sum(sent for *_, sent, _ in epoch),
            sum(received for *_, received in epoch),
        )
        for epoch in zip(*workers, strict=True)
    ]


class Simulated(Neighbourhood):
    """All workers at once, by dense matrices; blocks that are not fresh are old copies, which have no gradient."""

    def __init__(self, case, dtype, is_fresh=None):
        super().__init__()
        self._case, self._a, self._is_fresh = case, case.matrix().to(dtype), is_fresh
        self.num_targets = case.n
        self.source_degree = self.target_degree = self._a.sum(1).to(torch.int64)
        self.vertices = torch.arange(case.n)
        self.copies, self.ages, self.epoch = {}, {}, 0
        self.fresh, self.widths = [], []

    def sum(self, x):
        self.widths.append(x.shape[1])
        before = dict(self.copies)
        self.fresh = []
        for q in range(self._case.k):
            rows = x[self._case.members(q)].detach()
            self.fresh.append(q not in before or self._is_fresh(self.epoch, q, rows, before[q]))
            if self.fresh[-1] and self._is_fresh is not None:
                self.copies[q] = (rows.clone(), self.epoch)
            self.ages[q] = self.epoch - self.copies[q][1] if q in self.copies else 0
        total = torch.zeros_like(x)
        for p in range(self._case.k):
            seen = x.clone()
            for q in range(self._case.k):
                if q != p and not self.fresh[q]:
                    seen[self._case.members(q)] = before[q][0]
            mine = self._case.members(p)
            total[mine] = (self._a @ seen)[mine]
        return total

    def mean(self, x):
        return self.sum(x) / self.target_degree.clamp(min=1).to(x.dtype).unsqueeze(1)

    def attend(self, *_):
        raise AssertionError


def simulated(case, network, is_fresh=None):
    """Return the layers of the simulation, and what trains an epoch on them."""
    dtype = next(network.parameters()).dtype
    layers = [Simulated(case, dtype)] + [Simulated(case, dtype, is_fresh) for _ in network.layers[1:]]

    def epoch_of(epoch):
        for layer in layers:
            layer.epoch = epoch
        train = torch.from_numpy(np.flatnonzero(case.train))
        features = case.features.to(dtype)
        return trained(moved(network, epoch), layers, features, case.labels, train, case.num_train)

    return layers, epoch_of


def assert_same(found, expected, tolerance):
    assert found[0] == pytest.approx(expected[0], rel=tolerance, abs=tolerance)
    for name, gradient in expected[1].items():
        scale = max(1.0, float(gradient.abs().max()) if gradient.numel() else 1.0)
        torch.testing.assert_close(found[1][name], gradient, rtol=0, atol=tolerance * scale)


# Exact training.


@pytest.mark.parametrize("rows", ["all", "boundary"])
@pytest.mark.parametrize(
    ("name", "dtype"),
    some_of(
        list(product(["graphsage", "graphsage-gcn", "gcn", "gin", "sgc", "ngnn"], TOLERANCES)),
        always=[
            ("graphsage", torch.float32),
            *product(["graphsage", "graphsage-gcn", "gcn", "gin", "sgc", "ngnn"], [torch.float64]),
        ],
    ),
)
@settings(max_examples=10)
@given(case=cases(), layers=st.integers(1, 3))
def test_without_a_bound_gradients_are_those_of_the_whole_graph(name, dtype, rows, case, layers):
    network = network_of(name, dtype, layers=layers)
    found = epochs_of(case, network, {"rows": rows}, 2)
    _, expected = simulated(case, network)
    for epoch in range(2):
        assert_same(found[epoch], expected(epoch), TOLERANCES[dtype])


@pytest.mark.parametrize("rows", ["all", "boundary"])
def test_messages_go_in_pieces(rows, monkeypatch):
    monkeypatch.setattr(wires, "MESSAGE_BYTES", 70)
    random = np.random.default_rng(0)
    case = Case(40, random.integers(0, 40, (200, 2)), random.integers(0, 3, 40), 3, np.ones(40))
    network = network_of("gcn", torch.float64)
    assert_same(epochs_of(case, network, {"rows": rows})[0], simulated(case, network)[1](0), 1e-10)


# Stale copies.


def is_fresh(bound, eps, k):
    """Return the rule of the oracle, from the ages of copies alone."""
    if bound == "period":
        return lambda epoch, q, rows, copy: epoch - copy[1] >= eps
    if bound == "max_age":  # the first copies are taken to be older, all by another number of epochs
        return lambda epoch, q, rows, copy: epoch - (copy[1] or q % (eps + 1) - eps) > eps
    return lambda epoch, q, rows, copy: float((rows - copy[0]).norm()) > eps * float(copy[0].norm())


BOUNDS = st.one_of(
    st.tuples(st.just("max_age"), st.integers(1, 3)),
    st.tuples(st.just("period"), st.integers(2, 4)),
    st.tuples(st.just("max_change"), st.sampled_from([0.01, 0.1, 0.3, 1.0, 1e9])),
)


@pytest.mark.parametrize("rows", ["all", "boundary"])
@pytest.mark.parametrize("name", ["graphsage", "gcn", "gin"])
@settings(max_examples=25)
@given(case=cases(), bound=BOUNDS, layers=st.integers(2, 3))
def test_stale_copies_are_as_in_a_simulation_of_all_workers(name, rows, case, bound, layers):
    bound, eps = bound
    network = network_of(name, torch.float64, layers=layers)
    found = epochs_of(case, network, {"rows": rows, bound: eps}, epochs=6)
    graphs, expected = simulated(case, network, is_fresh(bound, eps, case.k))
    read = [bool(case.readers(q)) for q in range(case.k)]
    for epoch in range(6):
        assert_same(found[epoch], expected(epoch), 1e-10)
        fresh = sum(
            now for graph in graphs[1:] for now, is_read in zip(graph.fresh, read, strict=True) if is_read
        )
        counts = {"broadcasts": fresh, "skipped": (layers - 1) * sum(read) - fresh}
        assert found[epoch][2] == [counts] * case.k
        if bound != "max_change":
            oldest = eps - (bound == "period")
            assert all(age <= oldest for graph in graphs[1:] for age in graph.ages.values())


@pytest.mark.parametrize("bound", ["period", "max_age"])
@given(k=st.integers(1, 9), age=st.integers(1, 5), first=st.integers(0, 20))
def test_copies_never_get_older_than_the_bound(bound, k, age, first):
    class Wire:
        rank, size = 0, k

    rule = staleness.bound(SancusOptions(**{bound: age + (bound == "period")}), Wire())
    copied = dict.fromkeys(range(k), first)  # as after a resume
    oldest, numbers = 0, []
    for epoch in range(first + 1, first + 30):
        due = rule.due(epoch, None, None)
        copied.update((q, epoch) for q in range(k) if due[q])
        oldest = max(oldest, *(epoch - at for at in copied.values()))
        numbers.append(sum(due))
    assert oldest == age
    windows = [sum(numbers[at : at + age + 1]) for at in range(len(numbers) - age)]
    assert set(windows) == {k}
    if bound == "max_age":
        assert max(numbers) <= -(-k // (age + 1))


def test_scores_take_no_copies_and_leave_them_alone():
    random = np.random.default_rng(1)
    case = Case(30, random.integers(0, 30, (100, 2)), random.integers(0, 3, 30), 3, np.ones(30))
    network = network_of("graphsage", torch.float64)
    logits = []

    def check(part, exchange):
        with torch.no_grad():
            rows = moved(network, 5)(exchange.exact, part.features)
        logits.append((part.vertices, rows))

    given = {"rows": "all", "period": 5}
    looked = epochs_of(case, network, given, epochs=3, watch=check)
    alone = epochs_of(case, network, given, epochs=3)
    for one, other in zip(looked, alone, strict=True):
        assert_same(one, other, 0)
        assert one[2] == other[2]
    layers = [Simulated(case, torch.float64)] * 2
    with torch.no_grad():
        expected = moved(network, 5)(layers, case.features)
    for vertices, rows in logits:
        torch.testing.assert_close(rows, expected[vertices], rtol=0, atol=1e-10)


def test_blocks_are_compared_with_what_was_sent_whatever_becomes_of_them():
    epoch = staleness.Epoch()
    layer = staleness.Staleness(staleness.ChangeBound(0.5, wires.NoWire()), epoch, [[1]], 0)
    x, fresh = torch.ones(2, 3), []
    for number, factor in enumerate((1.4, 1.4, 1.0, torch.nan, 1.0)):
        epoch.begin(number)
        fresh += layer.decide(x)[0]
        x.mul_(factor)  # as a model may do after the product
    assert fresh == [True, False, True, False, True]


def test_several_products_in_a_layer_have_copies_of_their_own():
    class Two(torch.nn.Module):
        def __init__(self, *_):
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 5), torch.nn.Linear(11, 4)])

        def forward(self, graphs, x):
            h = torch.relu(self.layers[0](graphs[0].mean(x)))
            graph = graphs[1]
            return self.layers[1](torch.cat([graph.sum(h), graph.mean(h[:, :4] ** 2), h[:, :2]], 1))

    random = np.random.default_rng(2)
    case = Case(30, random.integers(0, 30, (100, 2)), random.integers(0, 3, 30), 3, np.ones(30))
    network = Two().double()
    rule = is_fresh("period", 3, 3)
    found = epochs_of(case, network, {"rows": "boundary", "period": 3}, epochs=4)

    class Both:
        """A layer of the oracle for each product."""

        def __init__(self):
            self.layers = [Simulated(case, torch.float64, rule) for _ in range(2)]

        sum = property(lambda self: self.layers[0].sum)
        mean = property(lambda self: self.layers[1].mean)

    first, both = Simulated(case, torch.float64), Both()
    for epoch in range(4):
        for layer in both.layers:
            layer.epoch = epoch
        train = torch.arange(case.n)
        expected = trained(
            moved(network, epoch), [first, both], case.features, case.labels, train, case.num_train
        )
        assert_same(found[epoch], expected, 1e-10)


# What is sent.


@settings(max_examples=40)
@given(case=cases(), eps=st.integers(0, 2))
def test_bytes_are_those_counted_by_hand(case, eps):
    network = network_of("graphsage", torch.float32, layers=3)
    graphs, expected = simulated(case, network, is_fresh("max_age", eps, case.k))
    sent = {}
    for rows in ("all", "boundary"):
        given = {"rows": rows, "max_age": eps}
        sent[rows] = epochs_of(case, network, given, epochs=4)
    for epoch in range(4):
        for graph in graphs:
            graph.widths.clear()
        expected(epoch)
        by_hand = {"all": 0, "boundary": 0}
        for q in range(case.k):
            for p in case.readers(q):
                width = graphs[0].widths[0] if epoch == 0 else 0  # features go once, and have no gradient
                width += 2 * sum(graph.widths[0] for graph in graphs[1:] if graph.fresh[q])
                by_hand["all"] += 4 * width * len(case.members(q))
                by_hand["boundary"] += 4 * width * len(case.needed(p, q))
        for rows in by_hand:
            assert sent[rows][epoch][3] == sent[rows][epoch][4] == by_hand[rows]
        assert by_hand["boundary"] <= by_hand["all"]


@pytest.mark.parametrize("rows", ["all", "boundary"])
def test_blocks_without_edges_send_nothing(rows):
    cycles = np.array([[i, (i + 1) % 5] for i in range(5)])
    case = Case(10, np.concatenate([cycles, cycles + 5]), [0] * 5 + [1] * 5, 2, np.ones(10))
    (epoch,) = epochs_of(case, network_of("gcn", torch.float32), {"rows": rows})
    assert epoch[2:] == ([{"broadcasts": 0, "skipped": 0}] * 2, 0, 0)


# Partition directories.


@pytest.mark.parametrize("hops", [1, 2])
def test_blocks_of_a_directory_are_those_of_the_graph(tmp_path, hops):
    path = planted(tmp_path, k=3, n=60, m=150, halo_hops=hops)
    dataset = Dataset(path)
    edges = np.fromfile(tmp_path / "g.bin", "<u4").reshape(-1, 2)
    both = np.concatenate([edges, edges[:, ::-1]])
    parts = np.empty(60, np.int64)
    for part in dataset.partition.parts:
        parts[part.inner] = part.index
    case = Case(60, both, parts, 3, np.ones(60))
    for index in range(3):
        found, expected, blocks = (
            Blocks.load(dataset, index),
            case.blocks(index, torch.float32),
            case.edges(index),
        )
        assert found.vertices.equal(expected.vertices)
        assert found.degree.equal(expected.degree)
        edges = found.edges(index)
        assert edges.keys() == blocks.keys()
        assert found.facts["halo"] == sum(len(case.needed(index, q)) for q in range(3) if q != index)
        assert found.facts["edges"] == sum(parts[both[:, 1]] == index)
        for q, (indptr, indices) in edges.items():
            np.testing.assert_array_equal(indptr, blocks[q][0])
            for row, (start, stop) in enumerate(pairwise(indptr)):
                assert sorted(indices[start:stop]) == sorted(blocks[q][1][start:stop]), row
