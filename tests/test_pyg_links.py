"""PyG's LinkLoader over our sampler."""

from collections import Counter

import numpy as np
import pytest

import fastpart as fp
from linked import dealt, either, random_graph, stored

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch_geometric.loader import LinkLoader  # noqa: E402
from torch_geometric.sampler import EdgeSamplerInput, NegativeSampling  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def opened():
    splits = fp.split_edges(random_graph(), 0.1, 0.1, seed=1)
    return stored(splits, dealt(60, 3), 3, features=np.arange(60, dtype=np.float32)[:, None])


@pytest.fixture(scope="module")
def train(opened):
    return torch.from_numpy(opened.link_loader(fanouts=[1]).edges.T.copy())


def batches(opened, train, **given):
    loader = LinkLoader(
        (fp.pyg.feature_store(opened), fp.pyg.graph_store(opened)),
        link_sampler=fp.pyg.sampler(opened, [-1, -1]),
        edge_label_index=(None, train),
        batch_size=32,
        **given,
    )
    return list(loader)


def known_edges(opened):
    """Return all in-edges as (source, target), each as often as it occurs."""
    pieces = [part.in_edges()[:2] for part in opened.parts]
    return Counter(zip(*(np.concatenate(ends).tolist() for ends in zip(*pieces, strict=True)), strict=True))


def test_batches_without_negatives(opened, train):
    edges, place = known_edges(opened), 0
    for batch in batches(opened, train):
        assert batch.x[:, 0].tolist() == batch.n_id.tolist()
        ends = batch.n_id[batch.edge_label_index]
        assert torch.equal(ends, train[:, place : place + ends.shape[1]])
        assert batch.input_id.tolist() == list(range(place, place + ends.shape[1]))
        place += ends.shape[1]
        sampled = list(map(tuple, batch.n_id[batch.edge_index].T.tolist()))
        assert not either(sampled) & either(ends.T.tolist())
        assert Counter(sampled) <= edges
        assert sum(batch.num_sampled_edges[0:]) == len(sampled) == len(batch.e_id)
        seeds = batch.n_id[: batch.num_sampled_nodes[0]].tolist()
        into = Counter(target for _, target in sampled)
        left = either(ends.T.tolist())
        for seed in seeds:  # all others are there
            assert into[seed] == sum(
                times
                for (source, target), times in edges.items()
                if target == seed and frozenset((source, target)) not in left
            )
    assert place == train.shape[1]


def test_binary_negatives(opened, train):
    for batch in batches(opened, train, neg_sampling="binary"):
        count = len(batch.input_id)
        assert batch.edge_label.tolist() == [1] * count + [0] * count
        assert batch.edge_label_index.shape == (2, 2 * count)
    halves = batches(opened, train, neg_sampling=NegativeSampling("binary", 0.5))
    assert len(halves[0].edge_label) == 48
    labels = torch.arange(train.shape[1])
    batch = batches(opened, train, neg_sampling="binary", edge_label=labels)[0]
    assert batch.edge_label.tolist() == [*range(1, 33), *[0] * 32]  # PyG counts them from 1 on


def test_triplets(opened, train):
    weight = torch.zeros(60)
    weight[[3, 4]] = 1
    place = 0
    for batch in batches(opened, train, neg_sampling=NegativeSampling("triplet", 2, dst_weight=weight)):
        count = len(batch.input_id)
        ends = torch.stack([batch.n_id[batch.src_index], batch.n_id[batch.dst_pos_index]])
        assert torch.equal(ends, train[:, place : place + count])
        assert batch.dst_neg_index.shape == (count, 2)
        assert set(batch.n_id[batch.dst_neg_index].reshape(-1).tolist()) == {3, 4}
        place += count
    one = batches(opened, train, neg_sampling="triplet")[0]
    assert one.dst_neg_index.shape == (32,)


def test_the_same_calls_give_the_same_batches(opened, train):
    first, second = (batches(opened, train, neg_sampling="binary") for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one.n_id, other.n_id)
        assert torch.equal(one.edge_label_index, other.edge_label_index)


def test_times_are_refused(opened):
    ends = torch.tensor([0]), torch.tensor([1])
    with pytest.raises(fp.errors.ParameterError, match=r"edge_label_time: .*times of edges"):
        fp.pyg.sampler(opened, [1]).sample_from_edges(EdgeSamplerInput(None, *ends, time=torch.tensor([0])))


def test_a_network_of_pyg_learns_links(opened, train):
    from torch_geometric.nn import GraphSAGE

    torch.manual_seed(0)
    network, table = GraphSAGE(8, 8, 2), torch.nn.Embedding(60, 8)
    optimizer = torch.optim.Adam([*network.parameters(), *table.parameters()], lr=0.02)
    losses = []
    for _ in range(15):
        for batch in batches(opened, train, neg_sampling="binary"):
            h = network(table(batch.n_id), batch.edge_index)
            logits = (h[batch.edge_label_index[0]] * h[batch.edge_label_index[1]]).sum(1)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, batch.edge_label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert np.mean(losses[-6:]) < 0.85 * np.mean(losses[:6])
