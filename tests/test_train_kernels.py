"""Sums over edges against dense matrices; dropout by vertex; messages in pieces."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_partitioned import planted_edges
from strategies import edge_lists
from thread_wire import together

torch = pytest.importorskip("torch")

from fastpart.train.data.dataset import EdgeDataset  # noqa: E402
from fastpart.train.graphs.kernels import Kernel  # noqa: E402
from fastpart.train.graphs.neighbourhood import Neighbourhood, dropped  # noqa: E402
from fastpart.train.methods.distgnn import wire as wires  # noqa: E402
from fastpart.train.methods.distgnn.totals import Copies, ExactTotals  # noqa: E402
from fastpart.train.ranks import Clock  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


@st.composite
def edges_between(draw):
    """Return sources, ends, and the edges by end."""
    n, edges = draw(edge_lists(7, 20))
    sources = n + draw(st.integers(0, 2))
    order = np.argsort(edges[:, 1], kind="stable")
    counts = np.bincount(edges[:, 1], minlength=n)
    return sources, n, np.concatenate(([0], np.cumsum(counts))), edges[order, 0].astype(np.int64)


@settings(max_examples=40, deadline=None)
@given(drawn=edges_between())
def test_kernels_are_dense_products(drawn):
    sources, ends, indptr, indices = drawn
    made = Kernel(indptr, indices, sources)
    assert (made.num_sources, made.num_ends, made.num_edges) == (sources, ends, len(indices))
    end_of = torch.from_numpy(np.repeat(np.arange(ends), np.diff(indptr)))
    source_of = torch.from_numpy(indices)
    matrix = torch.zeros(ends, sources, dtype=torch.float64)
    matrix.index_put_((end_of, source_of), torch.ones(len(indices), dtype=torch.float64), accumulate=True)
    x, y = torch.randn(sources, 3, dtype=torch.float64), torch.randn(ends, 3, dtype=torch.float64)
    close = torch.testing.assert_close
    close(made.sum(x), matrix @ x)
    close(made.back(y), matrix.T @ y)
    left, right = torch.randn(sources, 2, 1).double(), torch.randn(ends, 2, 1).double()
    both = left[source_of] + right[end_of]
    close(made.of_sources(left) + made.at(right), both)
    close(made.at(right), right[end_of])
    picked = torch.zeros(ends, len(indices), dtype=torch.float64)
    picked[end_of, torch.arange(len(indices))] = 1
    close(made.total(both), torch.einsum("ve,eho->vho", picked, both))
    masked = torch.where(picked[:, :, None] > 0, both[None, :, :, 0], -torch.inf)
    largest = masked.amax(1) if len(indices) else torch.full((ends, 2), -torch.inf, dtype=torch.float64)
    close(made.largest(both)[:, :, 0], largest)
    values = torch.randn(sources, 2, 4, dtype=torch.float64)
    close(made.weighted(values, both), torch.einsum("ve,eho->vho", picked, values[source_of] * both))
    of_edges = torch.einsum("ve,eho->vho", picked, (values[source_of] + both) * both)
    close(made.weighted(values, both, both), of_edges)


@settings(max_examples=20, deadline=None)
@given(drawn=edges_between())
def test_sums_have_their_gradients(drawn):
    sources, ends, indptr, indices = drawn
    weights = torch.rand(len(indices), dtype=torch.float64)
    made = Kernel(indptr, indices, sources, weights=weights)
    matrix = torch.zeros(ends, sources, dtype=torch.float64)
    end_of = torch.from_numpy(np.repeat(np.arange(ends), np.diff(indptr)))
    matrix.index_put_((end_of, torch.from_numpy(indices)), weights, accumulate=True)
    x = torch.randn(sources, 2, 3, dtype=torch.float64, requires_grad=True)
    y = torch.randn(ends, 2, 3, dtype=torch.float64, requires_grad=True)
    of_edges = torch.randn(len(indices), 2, 3, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(made.summed(x[:, 0]), matrix @ x[:, 0])
    for function, rows in (
        (lambda x: made.summed(x[:, 0]), x),
        (made.of_sources, x),
        (made.at, y),
        (made.total, of_edges),
    ):
        assert torch.autograd.gradcheck(function, rows)


class Some(Neighbourhood):
    """Vertices without edges."""

    def __init__(self, vertices):
        super().__init__()
        self.vertices, self.num_targets = vertices, len(vertices)

    mean = attend = None


def kept(vertices, share, width=64, seed=0):
    torch.manual_seed(seed)
    h = torch.ones(len(vertices), width)
    return dropped(h, share, Some(vertices))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_dropout_depends_on_the_vertex_and_not_on_its_place(share):
    whole = kept(torch.arange(20_000), share)
    some = torch.randperm(20_000)[:300]
    assert torch.equal(kept(some, share), whole[some])
    assert whole[whole > 0].unique().tolist() == pytest.approx([1 / (1 - share)])
    # As independent draws: over rows, over columns, and between both neighbours.
    drops = (whole == 0).double()
    assert drops.mean().item() == pytest.approx(share, abs=0.003)
    deviation = (share * (1 - share) / 20_000) ** 0.5
    assert ((drops.mean(0) - share).abs() < 5 * deviation).all()
    assert drops.mean(1).var().item() == pytest.approx(share * (1 - share) / 64, rel=0.06)
    between = torch.corrcoef(drops.T) - torch.eye(64)
    assert between.abs().max() < 6 / 20_000**0.5
    assert not torch.equal(kept(torch.arange(100), share, seed=1), whole[:100])


def test_dropout_has_its_gradient_and_its_limits():
    h = torch.randn(50, 8, requires_grad=True)
    torch.manual_seed(0)
    out = dropped(h, 0.3, Some(torch.arange(50)))
    out.sum().backward()
    torch.testing.assert_close(h.grad, (out / h).detach())
    assert torch.equal(kept(torch.arange(9), 0.0), torch.ones(9, 64))
    assert kept(torch.arange(0), 0.5).shape == (0, 64)


@pytest.mark.parametrize("size", [1, 40, 100, 1 << 20])
def test_messages_go_in_pieces_of_a_bounded_size(tmp_path, monkeypatch, size):
    monkeypatch.setattr(wires, "MESSAGE_BYTES", size)
    dataset = EdgeDataset(planted_edges(tmp_path))
    n = len(np.load(tmp_path / "g.bin.labels.npy"))
    rows = torch.randn(3, n, 5, dtype=torch.float64)

    def work(wire):
        copies = Copies.load(dataset, wire.rank)
        x = rows[wire.rank, copies.vertices].clone()
        longest = 0
        swap = wire.swap

        def watched(x, out, into):
            nonlocal longest
            longest = max([longest, *(count * x[:1].numel() * x.element_size() for count in (*out, *into))])
            return swap(x, out, into)

        wire.swap = watched
        total = ExactTotals(copies, wire, Clock()).total(x, last=False)
        return copies.vertices, total, longest

    found = together(3, work)
    expected = torch.zeros(n, 5, dtype=torch.float64)
    for rank, (vertices, _, _) in enumerate(found):
        expected[vertices] += rows[rank, vertices]
    for vertices, total, longest in found:
        torch.testing.assert_close(total, expected[vertices])
        assert 0 < longest <= max(size, 40)  # a row is 40 bytes
