"""PyG's NodeLoader and LinkLoader over directories with types."""

import pickle
from collections import Counter
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings

import fastpart as fp
from typed_graphs import authors, typed_graphs
from typed_training import WIDTHS, typed_parts

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch_geometric.data import HeteroData  # noqa: E402
from torch_geometric.loader import LinkLoader, NodeLoader  # noqa: E402
from torch_geometric.nn import GraphSAGE, SAGEConv, to_hetero  # noqa: E402
from torch_geometric.sampler import EdgeSamplerInput, NegativeSampling, NodeSamplerInput  # noqa: E402
from torch_geometric.utils import trim_to_layer  # noqa: E402

WRITES, REV_WRITES = ("author", "writes", "paper"), ("paper", "rev_writes", "author")
CITES = ("paper", "cites", "paper")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return typed_parts(tmp_path_factory.mktemp("pyg"), 3)


def stores(stored):
    return fp.pyg.feature_store(stored), fp.pyg.graph_store(stored)


def node_loader(stored, fanouts=(3, 2), nodes="paper", batch_size=64, sampling=None, **given):
    sampler = fp.pyg.sampler(stored, fanouts, **(sampling or {}))
    return NodeLoader(stores(stored), sampler, input_nodes=nodes, batch_size=batch_size, **given)


def link_loader(stored, pairs, relation=WRITES, fanouts=(-1, -1), **given):
    sampler = fp.pyg.sampler(stored, fanouts)
    given = {"batch_size": 32} | given
    return LinkLoader(stores(stored), sampler, edge_label_index=(relation, pairs), **given)


def edges_of(stored):
    """Return source and target by id of each in-edge, by relation. Ids count within types and relations."""
    first = {each.name: each.first for each in stored.parts[0].types}
    known = {}
    for part in stored.parts:
        for each in part.edge_types:
            sources, targets, ids = part.of_relation(each.name).in_edges()
            within = each.ids_within(ids, stored.num_edges)
            ends = zip(
                (sources - first[each.source]).tolist(), (targets - first[each.target]).tolist(), strict=True
            )
            known.setdefault((each.source, each.name, each.target), {}).update(
                zip(within.tolist(), ends, strict=True)
            )
    return known


def sampled(batch, key):
    """Return source, target and id of each edge of a batch."""
    row, col = batch[key].edge_index
    ends = zip(batch[key[0]].n_id[row].tolist(), batch[key[2]].n_id[col].tolist(), strict=True)
    return list(ends), batch[key].e_id.tolist()


# Stores.


def test_rows_of_types(saved):
    stored, features, labels, splits = saved
    store = fp.pyg.feature_store(stored)
    attrs = {(attr.group_name, attr.attr_name) for attr in store.get_all_tensor_attrs()}
    of_papers = {("paper", name) for name in ("y", "train_mask", "val_mask", "test_mask")}
    assert attrs == {(name, "x") for name in WIDTHS} | of_papers
    for each in (store, pickle.loads(pickle.dumps(store))):
        for name, rows in features.items():
            np.testing.assert_array_equal(each[name, "x", None], rows)
            np.testing.assert_array_equal(each[name, "x", torch.tensor([7, 3, 7])], rows[[7, 3, 7]])
            assert each.get_tensor_size(group_name=name, attr_name="x", index=None) == rows.shape
        np.testing.assert_array_equal(each["paper", "y", slice(2, 50, 7)], labels[2:50:7])
        np.testing.assert_array_equal(
            np.flatnonzero(each["paper", "train_mask", None]), np.sort(splits["train"])
        )
    for group, name in (("author", "y"), ("venue", "x"), (None, "x"), (WRITES, "edge_attr")):
        assert store.get_tensor(group_name=group, attr_name=name, index=None) is None
        assert store.get_tensor_size(group_name=group, attr_name=name) is None
    for bad in (-1, 240):
        with pytest.raises(fp.errors.ParameterError, match=f"index: 'paper' has no vertex {bad}"):
            store["paper", "x", torch.tensor([0, bad])]
    with pytest.raises(fp.FastpartError, match="read-only"):
        store["paper", "x", None] = torch.zeros(240, 5)


def test_rows_of_edges_and_times(tmp_path):
    graph = authors()
    width = {"cites": 2, "writes": 3}
    sizes = {name: len(pairs) for name, *_, pairs in graph.relations}
    rows = {name: np.arange(sizes[name] * w, dtype=np.float32).reshape(-1, w) for name, w in width.items()}
    times = {"paper": np.array([3, 1, 4, 1])}
    edge_times = {"writes": np.arange(sizes["writes"]) * 10}
    stored = graph.saved(tmp_path, edge_features=rows, times=times, edge_times=edge_times, halo_hops=2)
    store = fp.pyg.feature_store(stored)
    assert store["paper", "time", None].tolist() == times["paper"].tolist()
    for each in (store, pickle.loads(pickle.dumps(store))):
        for key in (WRITES, REV_WRITES):
            np.testing.assert_array_equal(each[key, "edge_attr", None], rows["writes"])
            np.testing.assert_array_equal(each[key, "time", None], edge_times["writes"])
        np.testing.assert_array_equal(each[CITES, "edge_attr", None], np.tile(rows["cites"], (2, 1)))
        both = torch.tensor([0, sizes["cites"], 2, sizes["cites"] + 2])  # a record, and the edge against it
        np.testing.assert_array_equal(each[CITES, "edge_attr", both], rows["cites"][[0, 0, 2, 2]])

    def with_edge_features(batch):
        batch[CITES].edge_attr = store[CITES, "edge_attr", batch[CITES].e_id]
        return batch

    batch = next(iter(node_loader(stored, [-1], transform=with_edge_features)))
    assert batch["paper"].time.tolist() == times["paper"][batch["paper"].n_id].tolist()
    np.testing.assert_array_equal(batch[CITES].edge_attr, rows["cites"][batch[CITES].e_id % sizes["cites"]])
    assert len(batch[CITES].e_id) == 2 * sizes["cites"] - 1
    for bad in (-1, 2 * sizes["cites"]):
        with pytest.raises(fp.errors.ParameterError, match=f"'cites' has no edge {bad}"):
            store[CITES, "edge_attr", torch.tensor([0, bad])]


@pytest.mark.parametrize("hops", [1, 2])
def test_edges_are_those_of_the_graph(tmp_path, hops):
    graph = authors()
    stored = graph.saved(tmp_path, halo_hops=hops)
    edges = fp.pyg.graph_store(stored)
    expected = {}
    for number, _, _, u, v in graph.edges():
        name, source, target = graph.edge_types[number]
        expected.setdefault((source, name, target), []).append(
            (u - graph.first[source], v - graph.first[target])
        )
    sizes = dict(graph.types)
    keys = [(source, name, target) for name, source, target in graph.edge_types]
    assert [attr.edge_type for attr in edges.get_all_edge_attrs()[::2]] == keys
    for store in (edges, pickle.loads(pickle.dumps(edges))):
        for key in keys:
            size = sizes[key[0]], sizes[key[2]]
            sources, targets = store.get_edge_index(key, "coo", size=size, is_sorted=True)
            found = list(zip(sources.tolist(), targets.tolist(), strict=True))
            assert Counter(found) == Counter(expected.get(key, []))
            assert targets.tolist() == sorted(targets.tolist())
            indices, indptr = store.get_edge_index(key, "csc", size=size, is_sorted=True)
            assert torch.equal(indices, sources)
            assert torch.equal(torch.bincount(targets, minlength=size[1]), indptr.diff())
    with pytest.raises(KeyError):
        edges.get_edge_index(("venue", "holds", "paper"), "coo")
    with pytest.raises(fp.FastpartError, match="read-only"):
        edges.put_edge_index(torch.zeros(2, 0, dtype=torch.int64), WRITES, "coo")


@settings(max_examples=12)
@given(typed_graphs())
def test_any_graph_with_types(graph):
    with TemporaryDirectory() as folder:
        stored = graph.saved(folder)
        store, sampler, expected = fp.pyg.graph_store(stored), fp.pyg.sampler(stored, [-1]), {}
        for number, _, _, u, v in graph.edges():
            name, source, target = graph.edge_types[number]
            ends = u - graph.first[source], v - graph.first[target]
            expected.setdefault((source, name, target), []).append(ends)
        for attr in store.get_all_edge_attrs()[::2]:
            found = zip(*(ends.tolist() for ends in store.get_edge_index(attr)), strict=True)
            assert Counter(found) == Counter(expected.get(attr.edge_type, []))
        for name, n in graph.types:
            out = sampler.sample_from_nodes(NodeSamplerInput(None, torch.arange(n), input_type=name))
            for key, row in out.row.items():
                ends = zip(
                    out.node[key[0]][row].tolist(), out.node[key[2]][out.col[key]].tolist(), strict=True
                )
                into = expected.get(key, []) if key[2] == name else []
                assert Counter(ends) == Counter(into)
                assert len(out.edge[key].unique()) == len(into)


# NodeLoader.


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("merged", [False, True])
def test_batches_of_the_node_loader(saved, workers, merged):
    stored, features, labels, splits = saved
    known, seeds = edges_of(stored), []
    train = np.isin(np.arange(240), splits["train"])
    for batch in node_loader(stored, num_workers=workers, sampling={"merged": merged}):
        assert isinstance(batch, HeteroData)
        papers = batch["paper"].n_id
        seeds += papers[: batch["paper"].batch_size].tolist()
        np.testing.assert_array_equal(batch["paper"].y, labels[papers])
        np.testing.assert_array_equal(batch["paper"].train_mask, train[papers])
        for name, rows in features.items():
            nodes = batch[name].n_id
            np.testing.assert_array_equal(batch[name].x, rows[nodes])
            assert (len(nodes) == len(nodes.unique())) or not merged
            assert sum(batch[name].num_sampled_nodes) == len(nodes)
        for key, of in known.items():
            ends, ids = sampled(batch, key)
            assert ends == [of[edge] for edge in ids]
            assert sum(batch[key].num_sampled_edges) == len(ids)
    assert seeds == list(range(240))


def test_whole_neighbourhoods_and_fanouts_by_relation(saved):
    stored, *_ = saved
    known = edges_of(stored)
    seeds = torch.tensor([5, 200, 17])
    batch = next(iter(node_loader(stored, [-1], ("paper", seeds))))
    for key, of in known.items():
        expected = {edge for edge, (_, v) in of.items() if key[2] == "paper" and v in seeds.tolist()}
        assert set(sampled(batch, key)[1]) == expected
    batch = next(iter(node_loader(stored, {"rev_writes": [0, -1], WRITES: [2, 0]}, ("paper", seeds))))
    assert {key for key in known if len(batch[key].e_id)} == {WRITES, REV_WRITES}
    assert max(Counter(v for _, v in sampled(batch, WRITES)[0]).values()) <= 2


def test_seeds_of_a_type_and_of_a_mask(saved):
    stored, *_ = saved
    assert next(iter(node_loader(stored, nodes="author", batch_size=9)))["author"].batch_size == 9
    mask = fp.pyg.feature_store(stored)["paper", "val_mask", None]
    batch = next(iter(node_loader(stored, nodes=("paper", mask))))
    assert batch["paper"].n_id[:40].tolist() == torch.nonzero(mask)[:, 0].tolist()


def test_the_same_calls_draw_the_same_and_later_ones_anew(saved):
    stored, *_ = saved

    def nodes(loader):
        return [batch["author"].n_id.tolist() for batch in loader]

    loader = node_loader(stored)
    first, second = nodes(loader), nodes(loader)
    again = node_loader(stored)
    assert (nodes(again), nodes(again)) == (first, second)
    assert first != second
    assert nodes(node_loader(stored, sampling={"seed": 1})) != first
    sampler = fp.pyg.sampler(stored, [3, 2])
    seeds = NodeSamplerInput(None, torch.arange(20), input_type="paper")
    copy = pickle.loads(pickle.dumps(sampler))
    assert torch.equal(
        sampler.sample_from_nodes(seeds).node["author"], copy.sample_from_nodes(seeds).node["author"]
    )


def test_a_model_of_pyg_learns(saved):
    stored, _, _, splits = saved
    torch.manual_seed(0)
    model = to_hetero(GraphSAGE(-1, 16, num_layers=2, out_channels=3), stored_metadata(stored))
    seeds = ("paper", torch.from_numpy(splits["train"]))
    loader = node_loader(stored, [4, 4], seeds, batch_size=30, shuffle=True)
    optimizer, means = None, []
    for _ in range(12):
        losses = []
        for batch in loader:
            out = model(batch.x_dict, batch.edge_index_dict)["paper"][: batch["paper"].batch_size]
            optimizer = optimizer or torch.optim.Adam(model.parameters(), lr=0.02)
            loss = torch.nn.functional.cross_entropy(out, batch["paper"].y[: len(out)])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        means.append(np.mean(losses))
    assert means[-1] < 0.8 * means[0]


def stored_metadata(stored):
    """Return types and relations, as to_hetero takes them."""
    part = stored.parts[0]
    return [each.name for each in part.types], [(e.source, e.name, e.target) for e in part.edge_types]


def test_layers_that_are_trimmed(saved):
    stored, *_ = saved
    batch = next(iter(node_loader(stored, [3, 2], batch_size=20)))
    of_types, of_relations = batch.num_sampled_nodes_dict, batch.num_sampled_edges_dict
    conv = SAGEConv((-1, -1), 4)
    whole = conv((batch["author"].x, batch["paper"].x), batch[WRITES].edge_index)
    for hop, h in enumerate((1, 0), 0):
        x, edges, _ = trim_to_layer(hop, of_types, of_relations, batch.x_dict, batch.edge_index_dict)
        assert len(x["paper"]) == sum(of_types["paper"][: 3 - hop])
        out = conv((x["author"], x["paper"]), edges[WRITES])
        seen = sum(of_types["paper"][: h + 1])
        torch.testing.assert_close(out[:seen], whole[:seen])


# LinkLoader.


def test_edges_to_predict_are_left_out(saved):
    stored, *_ = saved
    known = edges_of(stored)
    pairs = torch.tensor(sorted(set(known[WRITES].values()))).T
    place = 0
    for batch in link_loader(stored, pairs):
        count = len(batch[WRITES].input_id)
        ends = batch[WRITES].edge_label_index
        found = torch.stack([batch["author"].n_id[ends[0]], batch["paper"].n_id[ends[1]]])
        assert torch.equal(found, pairs[:, place : place + count])
        left = set(map(tuple, found.T.tolist()))
        papers = batch["paper"].n_id[: batch["paper"].num_sampled_nodes[0]].tolist()
        authors_ = batch["author"].n_id[: batch["author"].num_sampled_nodes[0]].tolist()
        for key, seeds, turn in ((WRITES, papers, 1), (REV_WRITES, authors_, -1)):
            expected = {e for e, (u, v) in known[key].items() if v in seeds and (u, v)[::turn] not in left}
            of_seeds = {e for (_, v), e in zip(*sampled(batch, key), strict=True) if v in seeds}
            assert of_seeds == expected
            assert not {(u, v)[::turn] for u, v in sampled(batch, key)[0]} & left
            assert sum(batch[key].num_sampled_edges) == len(batch[key].e_id)
        of_seeds = {e for (_, v), e in zip(*sampled(batch, CITES), strict=True) if v in papers}
        assert of_seeds == {e for e, (_, v) in known[CITES].items() if v in papers}  # others stay
        place += count
    assert place == pairs.shape[1]


def test_directions_of_relations_within_a_type(tmp_path):
    stored = authors().saved(tmp_path)
    extends, reverse = ("paper", "extends", "paper"), ("paper", "rev_extends", "paper")
    for key, pair in ((extends, (1, 0)), (reverse, (0, 1))):
        batch = next(iter(link_loader(stored, torch.tensor([pair]).T, key, [-1])))
        assert sampled(batch, extends)[0] == [(2, 0)]
        assert sampled(batch, reverse)[0] == []
        assert sampled(batch, CITES)[0].count((0, 1)) == 2  # another relation
    batch = next(
        iter(link_loader(stored, torch.tensor([[1], [0]]), CITES, [-1]))
    )  # merged: without direction
    assert sampled(batch, CITES)[0] == [(3, 0)]
    praises = ("author", "praises", "author")
    batch = next(iter(link_loader(stored, torch.tensor([[1], [0]]), praises, [-1])))
    assert (0, 1) in sampled(batch, praises)[0]  # not the reverse of the pair, but in return


def test_binary_negatives(saved):
    stored, *_ = saved
    pairs = torch.tensor(sorted(set(edges_of(stored)[WRITES].values()))).T
    weight = torch.zeros(240)
    weight[[3, 4]] = 1
    for batch in link_loader(stored, pairs, neg_sampling=NegativeSampling("binary", 0.5, dst_weight=weight)):
        count = len(batch[WRITES].input_id)
        labels, ends = batch[WRITES].edge_label, batch[WRITES].edge_label_index
        assert labels.tolist() == [1] * count + [0] * ((count + 1) // 2)
        assert set(batch["paper"].n_id[ends[1][count:]].tolist()) <= {3, 4}
        assert batch["author"].n_id[ends[0]].max() < 160
    labels = torch.arange(pairs.shape[1])
    batch = next(iter(link_loader(stored, pairs, neg_sampling="binary", edge_label=labels)))
    assert batch[WRITES].edge_label.tolist() == [*range(1, 33), *[0] * 32]  # PyG counts them from 1 on


@pytest.mark.parametrize("key", [WRITES, CITES])
@pytest.mark.parametrize("workers", [0, 2])
def test_triplets(saved, key, workers):
    stored, *_ = saved
    pairs = torch.tensor(sorted(set(edges_of(stored)[key].values()))).T
    place, negatives = 0, set()
    for batch in link_loader(
        stored, pairs, key, neg_sampling=NegativeSampling("triplet", 2), num_workers=workers
    ):
        sources, targets = batch[key[0]], batch[key[2]]
        count = len(sources.src_index)
        ends = torch.stack([sources.n_id[sources.src_index], targets.n_id[targets.dst_pos_index]])
        assert torch.equal(ends, pairs[:, place : place + count])
        assert targets.dst_neg_index.shape == (count, 2)
        negatives |= set(targets.n_id[targets.dst_neg_index].reshape(-1).tolist())
        place += count
    assert place == pairs.shape[1]
    assert len(negatives) > 100
    assert max(negatives) < 240


def test_all_edges_of_a_relation(saved):
    stored, *_ = saved
    loader = LinkLoader(
        stores(stored), fp.pyg.sampler(stored, [2]), edge_label_index=REV_WRITES, batch_size=1000
    )
    batch = next(iter(loader))
    row, col = batch[REV_WRITES].edge_label_index
    found = zip(batch["paper"].n_id[row].tolist(), batch["author"].n_id[col].tolist(), strict=True)
    assert Counter(found) == Counter(edges_of(stored)[REV_WRITES].values())
    assert len(batch[WRITES].e_id) == len(batch[REV_WRITES].e_id) == 0


def test_a_network_of_pyg_learns_links(saved):
    stored, *_ = saved
    pairs = torch.tensor(sorted(set(edges_of(stored)[WRITES].values()))).T[:, :200]
    torch.manual_seed(0)
    model = to_hetero(GraphSAGE(-1, 32, num_layers=2, out_channels=16), stored_metadata(stored))
    optimizer, means = None, []
    for _ in range(15):
        losses = []
        for batch in link_loader(stored, pairs, fanouts=[4, 4], neg_sampling="binary", batch_size=100):
            h = model(batch.x_dict, batch.edge_index_dict)
            optimizer = optimizer or torch.optim.Adam(model.parameters(), lr=0.02)
            row, col = batch[WRITES].edge_label_index
            logits = (h["author"][row] * h["paper"][col]).sum(1)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, batch[WRITES].edge_label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        means.append(np.mean(losses))
    assert means[-1] < 0.95 * means[0]


# Refusals.


def test_unknown_types_and_ids_out_of_range(saved):
    stored, *_ = saved
    sampler, ids = fp.pyg.sampler(stored, [2]), torch.tensor([0])
    for name in (None, "venue"):
        with pytest.raises(
            fp.errors.ParameterError, match="input_nodes: expected one of the types author, field"
        ):
            sampler.sample_from_nodes(NodeSamplerInput(None, ids, input_type=name))
    for key in (None, ("author", "reads", "paper"), ("paper", "writes", "author")):
        with pytest.raises(
            fp.errors.ParameterError, match=r"edge_label_index: expected one of the relations \('paper'"
        ):
            sampler.sample_from_edges(EdgeSamplerInput(None, ids, ids, input_type=key))
    for bad in (-1, 240):
        with pytest.raises(
            fp.errors.ParameterError, match=f"input_nodes: 'paper' has no vertex {bad}.*0 to 239"
        ):
            next(iter(node_loader(stored, nodes=("paper", torch.tensor([0, bad])))))
        with pytest.raises(fp.errors.ParameterError, match=f"edge_label_index: 'paper' has no vertex {bad}"):
            next(iter(link_loader(stored, torch.tensor([[0], [bad]]))))
    with pytest.raises(fp.errors.ParameterError, match="'author' has no vertex 160"):
        next(iter(link_loader(stored, torch.tensor([[160], [0]]))))


def test_times_and_fanouts_are_refused(saved):
    stored, *_ = saved
    with pytest.raises(fp.errors.ParameterError, match=r"input_time: .*times of seeds.*loader\(temporal="):
        next(iter(node_loader(stored, input_time=torch.arange(240))))
    pairs = torch.tensor([[0], [0]])
    with pytest.raises(
        fp.errors.ParameterError, match=r"edge_label_time: .*times of edges.*Leave edge_label_time out"
    ):
        next(iter(link_loader(stored, pairs, edge_label_time=torch.tensor([3]))))
    with pytest.raises(fp.errors.ParameterError, match="unknown relation 'reads'"):
        fp.pyg.sampler(stored, {"reads": [2]})
    with pytest.raises(fp.errors.ParameterError, match="lacks the edges between parts"):
        fp.pyg.feature_store(authors().saved(stored.folder.parent, halo_hops=0, overwrite=True))


def test_types_without_vertices_and_relations_without_edges(tmp_path):
    stored = authors().saved(tmp_path, features={"paper": np.eye(4, dtype=np.float32)})
    batch = next(iter(node_loader(stored, [-1, -1], ("paper", torch.tensor([2])))))
    assert batch["venue"].n_id.tolist() == []
    assert batch["venue"].num_sampled_nodes == [0, 0, 0]
    np.testing.assert_array_equal(batch["paper"].x, np.eye(4)[batch["paper"].n_id])
    with pytest.raises(fp.errors.ParameterError, match="'venue' has no vertex 0"):
        next(iter(node_loader(stored, nodes=("venue", torch.tensor([0])))))
