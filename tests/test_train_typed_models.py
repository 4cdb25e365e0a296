"""Models over types: against loops over the edges and PyG, and on batches with nothing of some types."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fastpart as fp

torch = pytest.importorskip("torch")

from fastpart.train.graphs.rows import layers_of  # noqa: E402
from fastpart.train.learning.trainable import refuse_unfit  # noqa: E402
from fastpart.train.models import MODELS, TYPED_MODELS, attends, build, is_layered  # noqa: E402
from fastpart.train.models.scores import Task, task_of  # noqa: E402
from fastpart.train.options import Options  # noqa: E402
from typed_batches import small  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


def network_of(model, task, dtype=torch.float64, **options):
    torch.manual_seed(0)
    given = {"hidden": 5, "heads": 2, "dropout": 0.0, **options}
    network = build(task, Options(model=model, **given)).to(dtype)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter)
    return network.eval()


def whole(graph, layers):
    """Return the graph as rows of each layer, with the vertices in the order of their ids."""
    batch = graph.batch("paper", range(graph.sizes["paper"]), 0)
    every = {name: list(range(size)) for name, size in graph.sizes.items()}
    edges = {
        key: [(u, v, e) for v in every[key[2]] for e, (u, end) in enumerate(pairs) if end == v]
        for key, pairs in graph.edges.items()
    }
    counts = {name: [size, 0] for name, size in graph.sizes.items()}
    batch = graph._batch("paper", 7, every, edges, counts, {key: [len(each)] for key, each in edges.items()})
    return layers_of(batch) * layers, batch


# Oracles: what a layer makes of rows by type, edge by edge.


def relu(x):
    return np.maximum(x, 0)


def elu(x):
    return np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1)


def linear(module, x):
    y = x @ module.weight.detach().numpy().T
    return y if module.bias is None else y + module.bias.detach().numpy()


def sources_of(graph, key, v):
    """Return the sources of the in-edges of a vertex in a relation, and the edges."""
    return [(u, e) for e, (u, end) in enumerate(graph.edges[key]) if end == v]


def mean(graph, key, v, x):
    rows = [x[u] for u, _ in sources_of(graph, key, v)]
    return np.mean(rows, axis=0) if rows else np.zeros(x.shape[1])


def rgcn(layer, graph, x, last):
    h = {name: linear(own, x[name]) for name, own in layer.own.items()}
    for key, relation in layer.relations.items():
        for v in range(len(h[key[2]])):
            h[key[2]][v] += linear(relation, mean(graph, key, v, x[key[0]]))
    return h


def softmax(scores):
    weights = np.exp(scores - np.max(scores, axis=0))
    return weights / weights.sum(axis=0)


def rgat(layer, graph, x, last):
    h = {name: linear(own, x[name]) for name, own in layer.own.items()}
    for key, of in layer.relations.items():
        for v in range(len(h[key[2]])):
            found = sources_of(graph, key, v)
            if not found:
                continue
            rows = [linear(of.fc_src, x[key[0]][u]).reshape(of.shape) for u, _ in found]
            target = linear(of.fc_dst, x[key[2]][v]).reshape(of.shape)
            scores = []
            for row, (_, e) in zip(rows, found, strict=True):
                both = row + target
                if of.fc_edge is not None:
                    both = both + linear(of.fc_edge, graph.edge_attr[key][e].numpy()).reshape(of.shape)
                scores.append((np.where(both > 0, both, 0.2 * both) * of.attn[0].detach().numpy()).sum(1))
            summed = (softmax(np.array(scores))[:, :, None] * rows).sum(0)
            h[key[2]][v] += summed.mean(0) if last else summed.reshape(-1)
    return h


def gelu(x):
    return torch.nn.functional.gelu(torch.from_numpy(x)).numpy()


def hgt(layer, graph, x, last):
    heads, width = layer._heads
    h = {name: each.copy() for name, each in x.items()}
    for name, maps in layer.targets.items():
        for v in range(len(x[name])):
            query = linear(maps.query, x[name][v]).reshape(heads, width)
            scores, values = [], []
            for key, of in layer.relations.items():
                if key[2] != name:
                    continue
                for u, _ in sources_of(graph, key, v):
                    source = layer.sources.of(key[0])
                    made = [
                        np.einsum("hi,hij->hj", linear(one, x[key[0]][u]).reshape(heads, width), by)
                        for one, by in (
                            (source.key, of.key.detach().numpy()),
                            (source.value, of.value.detach().numpy()),
                        )
                    ]
                    scores.append((made[0] * query).sum(1) * of.prior.detach().numpy()[:, 0] / width**0.5)
                    values.append(made[1])
            message = np.zeros(heads * width)
            if scores:
                message = (softmax(np.array(scores))[:, :, None] * np.array(values)).sum(0).reshape(-1)
            share = 1 / (1 + np.exp(-maps.skip.item()))
            h[name][v] = share * linear(maps.out, gelu(message)) + (1 - share) * x[name][v]
    return {name: linear(of, h[name]) for name, of in layer.classify.items()} if last else h


ORACLES = {
    "rgcn": (rgcn, relu),
    "heterosage": (rgcn, relu),
    "rgat": (rgat, elu),
    "hgt": (hgt, lambda x: x),
}


def oracle(name, network, graph):
    layer, between = ORACLES[name]
    x = {kind: each.numpy() for kind, each in graph.x.items()}
    if network.projects:
        x = {kind: linear(project, x[kind]) for kind, project in network.projections.items()}
    for index, module in enumerate(network.layers):
        last = index == len(network.layers) - 1
        x = layer(module, graph, x, last)
        x = x if last else {kind: between(each) for kind, each in x.items()}
    return x["paper"]


def test_every_model_has_an_oracle():
    assert ORACLES.keys() == TYPED_MODELS.keys()
    assert not TYPED_MODELS.keys() & MODELS.keys()


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("name", TYPED_MODELS)
def test_forward_is_that_of_loops_over_edges(name, layers):
    graph = small(layers)
    rows, _ = whole(graph, layers)
    network = network_of(name, graph.task("paper"), layers=layers)
    with torch.no_grad():
        logits = network(rows, graph.x).numpy()
    np.testing.assert_allclose(logits, oracle(name, network, graph), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", TYPED_MODELS)
def test_batches_with_all_neighbours_are_as_the_whole_graph(name):
    graph = small(1)
    network = network_of(name, graph.task("paper"))
    expected = network(whole(graph, 2)[0], graph.x)
    for seeds in ([0, 3], [6], [], [5, 4, 2, 1]):
        batch = graph.batch("paper", seeds, 2)
        logits = network(layers_of(batch), batch.x_dict)
        torch.testing.assert_close(logits, expected[seeds])


@pytest.mark.parametrize("seeds", [[0, 3], []])
@pytest.mark.parametrize("name", TYPED_MODELS)
def test_every_weight_has_a_finite_gradient_also_without_edges_or_vertices(name, seeds):
    graph = small(2)
    for edges in (graph.edges, {key: [] for key in graph.edges}):
        graph.edges = edges
        graph.edge_attr = {key: each[: len(edges[key])] for key, each in graph.edge_attr.items()}
        batch = graph.batch("paper", seeds, 2)
        network = network_of(name, graph.task("paper"), dropout=0.5).train()
        x = {kind: rows.requires_grad_() for kind, rows in batch.x_dict.items()}
        logits = network(layers_of(batch), x)
        assert logits.shape == (len(seeds), 3)
        logits.square().sum().backward()
        # Otherwise Adam would not change a weight in a process alone, but decay it beside others.
        assert all(torch.isfinite(weight.grad).all() for weight in network.parameters())


@pytest.mark.parametrize("name", TYPED_MODELS)
def test_what_is_dropped_depends_on_the_vertex_and_not_on_the_batch(name):
    graph = small(3)
    network = network_of(name, graph.task("paper"), dropout=0.5).train()

    def logits(seeds):
        batch = graph.batch("paper", seeds, 2)
        torch.manual_seed(7)
        return network(layers_of(batch), batch.x_dict)

    whole, first, second = (logits(seeds) for seeds in ([4, 1, 6, 2], [4, 1], [2, 6]))
    torch.testing.assert_close(whole, torch.cat([first, second.flip(0)]))
    assert not torch.allclose(whole, network.eval()(*rows_of(graph, [4, 1, 6, 2])))


def rows_of(graph, seeds, layers=2):
    batch = graph.batch("paper", seeds, layers)
    return layers_of(batch), batch.x_dict


def test_weights_of_many_relations_are_sums_of_bases():
    graph = small()
    graph.edges = {("paper", f"r{number}", "paper"): [(number % 7, 3)] for number in range(40)}
    graph.edge_attr = {}
    network = network_of("rgcn", graph.task("paper"), layers=1)
    layer = network.layers[0]
    h = linear(layer.own.of("paper"), linear(network.projections.of("paper"), graph.x["paper"].numpy()))
    x = linear(network.projections.of("paper"), graph.x["paper"].numpy())
    for number in range(40):
        weight = np.einsum("b,boi->oi", layer.coefficients[number].detach(), layer.bases.detach())
        h[3] += weight @ x[number % 7]
    with torch.no_grad():
        logits = network(*rows_of(graph, range(7), 1))
    np.testing.assert_allclose(logits.numpy(), h, rtol=1e-9)


# PyG.


@pytest.fixture
def pyg():
    return pytest.importorskip("torch_geometric.nn")


def test_rgcn_is_that_of_pyg(pyg):
    graph = small(4)
    graph.edges = {key: each for key, each in graph.edges.items() if key[0] == key[2] == "paper"}
    graph.edge_attr = {}
    network = network_of("rgcn", graph.task("paper"), layers=1)
    layer, relations = network.layers[0], list(graph.edges)
    conv = pyg.RGCNConv(5, 3, len(relations)).double()
    with torch.no_grad():
        conv.root.copy_(layer.own.of("paper").weight.T)
        conv.bias.copy_(layer.own.of("paper").bias)
        conv.weight.copy_(torch.stack([layer.relations.of(key).weight.T for key in relations]))
    batch = graph.batch("paper", [2, 5, 0], 1)
    data = batch.hetero_data()
    edge_index = torch.cat([data[key].edge_index for key in relations], 1)
    edge_type = torch.cat([torch.full((data[key].num_edges,), at) for at, key in enumerate(relations)])
    expected = conv(network.projections.of("paper")(data["paper"].x), edge_index, edge_type)[:3]
    torch.testing.assert_close(network(layers_of(batch), batch.x_dict), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore:There exist node types")
def test_heterosage_is_that_of_pyg(pyg):
    graph = small(5, topic="topic")
    network = network_of("heterosage", graph.task("paper"), layers=1)
    layer = network.layers[0]
    convs, widths = {}, graph.task("paper").widths
    for key, linear_of in layer.relations.items():
        convs[key] = pyg.SAGEConv((widths[key[0]], widths[key[2]]), 3).double()
        with torch.no_grad():
            convs[key].lin_l.weight.copy_(linear_of.weight)
    own = layer.own.of("paper")
    with torch.no_grad():
        for share in convs.values():
            share.lin_r.weight.copy_(own.weight / len(convs))
            share.lin_l.bias.copy_(own.bias / len(convs))
    batch = graph.batch("paper", [2, 5, 0], 1)
    data = batch.hetero_data()
    outputs = pyg.HeteroConv(convs, aggr="sum")(data.x_dict, data.edge_index_dict)
    torch.testing.assert_close(
        network(layers_of(batch), batch.x_dict), outputs["paper"][:3], rtol=1e-6, atol=1e-6
    )


def test_rgat_with_edge_features_is_that_of_pyg(pyg):
    graph = small(6)
    task = graph.task("paper")
    batch = graph.batch("paper", [2, 5, 0], 1)
    data, (rows,) = batch.hetero_data(), layers_of(batch)
    cites = ("paper", "cites", "paper")
    network = network_of("rgat", task, layers=2)
    of = network.layers[0].relations.of(cites)
    conv = pyg.GATv2Conv((3, 3), 5, heads=2, edge_dim=2, add_self_loops=False).double()
    with torch.no_grad():
        conv.lin_l.weight.copy_(of.fc_src.weight)
        conv.lin_l.bias.zero_()
        conv.lin_r.weight.copy_(of.fc_dst.weight)
        conv.lin_r.bias.copy_(of.fc_dst.bias)
        conv.lin_edge.weight.copy_(of.fc_edge.weight)
        conv.att.copy_(of.attn)
    x = data["paper"].x
    expected = conv((x, x), data[cites].edge_index, data[cites].edge_attr)[:3]
    vertices = rows.vertices["paper"], rows.vertices["paper"][:3]
    sums = of(rows.relations[cites], x, x[:3], 0.0, vertices)
    torch.testing.assert_close(sums.flatten(1), expected, rtol=1e-6, atol=1e-6)


def test_hgt_is_that_of_pyg(pyg):
    graph = small(6, topic="topic")
    task = graph.task("paper")
    network = network_of("hgt", task, layers=1)
    layer, keys = network.layers[0], list(graph.edges)
    conv = pyg.HGTConv(dict.fromkeys(task.types, 10), 10, task.metadata, heads=2).double()
    maps = layer.targets.of("paper")
    with torch.no_grad():
        for name, source in layer.sources.items():
            for what in ("weight", "bias"):
                query = getattr(maps.query, what)
                each = [getattr(source.key, what), query, getattr(source.value, what)]
                getattr(conv.kqv_lin.lins[name], what).copy_(torch.cat(each))
        conv.out_lin.lins["paper"].load_state_dict(maps.out.state_dict())
        conv.skip["paper"].copy_(maps.skip)
        for key, of in layer.relations.items():
            places = [head * len(keys) + keys.index(key) for head in range(2)]
            conv.k_rel.weight[places], conv.v_rel.weight[places] = of.key, of.value
            conv.p_rel["__".join(key)].copy_(of.prior.T)
    rows, x = rows_of(graph, [2, 5, 0], 1)
    data = graph.batch("paper", [2, 5, 0], 1).hetero_data()
    projected = {name: project(x[name]) for name, project in network.projections.items()}
    expected = layer.classify.of("paper")(conv(projected, data.edge_index_dict)["paper"][:3])
    torch.testing.assert_close(network(rows, x), expected, rtol=1e-6, atol=1e-6)


def model_of_pyg(task, options):
    from torch_geometric.nn import GraphSAGE, to_hetero

    return to_hetero(GraphSAGE((-1, -1), options.hidden, options.layers, task.classes), task.metadata)


def test_a_network_by_to_hetero_with_lazy_layers_is_trained_as_it_is(pyg):
    graph = small(7, torch.float32, "topic")
    graph.edges = {key: each for key, each in graph.edges.items() if key[0] != "venue"}
    del graph.sizes["venue"], graph.x["venue"]
    network = network_of(model_of_pyg, graph.task("paper"), torch.float32)
    batch = graph.batch("paper", [2, 5, 0], 2)
    data = batch.hetero_data()
    expected = network.model(data.x_dict, data.edge_index_dict)["paper"][:3]
    torch.testing.assert_close(network(layers_of(batch), batch.x_dict), expected)
    made = network_of(network.model, graph.task("paper"), torch.float32)  # a network that is made is copied
    assert made.model is not network.model
    assert made(layers_of(batch), batch.x_dict).shape == (3, 3)


class ByHand(torch.nn.Module):
    """Sums of edge features, and the features of the vertices, for one type."""

    def __init__(self, task, options):
        super().__init__()
        self.linear = torch.nn.Linear(task.widths[task.target], task.classes)

    def forward(self, x_dict, edge_index_dict, edge_attr_dict):
        (key,) = edge_attr_dict
        total = torch.zeros(len(x_dict[key[2]]), 1, dtype=x_dict[key[2]].dtype)
        total.index_add_(0, edge_index_dict[key][1], edge_attr_dict[key].sum(1, keepdim=True))
        return self.linear(x_dict["paper"]) + total


def test_a_network_may_take_features_of_edges_and_return_rows_of_the_target():
    graph = small(8)
    network = network_of(ByHand, graph.task("paper"))
    assert network.edge_attr
    logits = network(*rows_of(graph, [1, 4], 1))
    cites = ("paper", "cites", "paper")
    for row, v in zip(logits, [1, 4], strict=True):
        total = sum(graph.edge_attr[cites][e].sum() for _, e in sources_of(graph, cites, v))
        torch.testing.assert_close(row, network.model.linear(graph.x["paper"][v]) + total)
    graph.edge_attr = {}
    with pytest.raises(
        fp.errors.ParameterError, match=r"ByHand\.forward takes features of edges, but the relations"
    ):
        network(*rows_of(graph, [1, 4], 1))


# What is refused, and what is told of models.


def test_networks_of_other_widths_are_refused_before_workers_start():
    task = small().task("paper")

    class Narrow(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 4)

        def forward(self, x_dict, edge_index_dict):
            return {"paper": self.linear(x_dict["paper"])}

    with pytest.raises(
        fp.errors.ParameterError, match=r"Narrow returned \(2, 4\) for 2 vertices, but .* 3 outputs"
    ):
        refuse_unfit(task, Options(model=Narrow()))
    with pytest.raises(fp.errors.ParameterError, match=r"Its forward takes \(x_dict, edge_index_dict\)"):
        refuse_unfit(replace(task, widths={**task.widths, "paper": 9}), Options(model=Narrow()))


def test_models_of_the_other_kind_of_graph_are_refused():
    with pytest.raises(
        fp.errors.ParameterError, match=r"the graph has no types, and rgcn is not .* graphsage, "
    ):
        build(Task(3, 2, False), Options(model="rgcn"))
    with pytest.raises(
        fp.errors.ParameterError, match=r"the graph has types, and gcn is not .* rgcn, rgat, hgt, heterosage"
    ):
        build(small().task("paper"), Options(model="gcn"))
    with pytest.raises(fp.errors.ParameterError, match=r"'rgcm'.*Did you mean 'rgcn'"):
        Options.checked({"model": "rgcm"})


def test_properties_of_models():
    assert all(is_layered(name) for name in TYPED_MODELS)
    assert [name for name in TYPED_MODELS if attends(name)] == ["rgat", "hgt"]
    assert network_of("rgat", small().task("paper")).edge_attr
    assert not network_of("rgcn", small().task("paper")).edge_attr


def test_only_the_types_that_are_needed_are_computed():
    graph = small()
    network = network_of("rgcn", graph.task("field.of study"), layers=2)
    assert network.types == [
        ("author", "field.of study", "paper", "venue"),
        ("field.of study", "paper"),
        ("field.of study",),
    ]


def test_a_task_survives_json():
    task = small().task("paper")
    assert task_of(json.loads(json.dumps(vars(task)))) == task
    assert task_of(json.loads(json.dumps(vars(Task(3, 2, True))))) == Task(3, 2, True)
    assert task.learned == ()


def test_the_network_of_the_guide_is_that_of_heterosage():
    guide = (Path(__file__).parents[1] / "docs" / "guides" / "training.md").read_text()
    (code,) = (
        block for block in re.findall(r"```python\n(.*?)```", guide, re.DOTALL) if "TypedNetwork" in block
    )
    names = {}
    exec(code, names)
    graph = small(9)
    own, expected = (
        network_of(model, graph.task("paper"), layers=3) for model in (names["Mine"], "heterosage")
    )
    for one, other in zip(own.layers, expected.layers, strict=True):
        one.own.load_state_dict(other.own.state_dict())
        one.near.load_state_dict(
            other.relations.state_dict(), strict=False
        )  # those of heterosage have no bias
        for linear in one.near:
            torch.nn.init.zeros_(linear.bias)
    rows, x = rows_of(graph, [2, 6], 3)
    torch.testing.assert_close(own(rows, x), expected(rows, x))
