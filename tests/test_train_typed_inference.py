"""Outputs over typed graphs layer by layer: those of the whole graph, for fewer rows, in pieces, with learned rows."""

import numpy as np
import pytest

import fastpart as fp
from ranks import run_code
from typed_training import typed_parts

torch = pytest.importorskip("torch")

from fastpart.loading import TypedBatch  # noqa: E402
from fastpart.train.data.dataset import Dataset  # noqa: E402
from fastpart.train.graphs.rows import layers_of  # noqa: E402
from fastpart.train.inference import inference as module  # noqa: E402
from fastpart.train.inference.inference import Inference  # noqa: E402
from fastpart.train.models import TYPED_MODELS, build  # noqa: E402
from fastpart.train.options import Options  # noqa: E402

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.timeout(180)]

LAYERS = 2


@pytest.fixture(scope="module")
def datasets(tmp_path_factory):
    """Return datasets of three parts: with features of all types, and without those of authors."""
    folder = tmp_path_factory.mktemp("typed")
    made = {}
    for name, widths in (("features", None), ("learned", {"field": 2, "paper": 5})):
        (folder / name).mkdir()
        typed_parts(folder / name, 3, widths=widths, scale=1)
        made[name] = Dataset(folder / name / "parts")
    return made


def network_of(dataset, model, layers=LAYERS, **options):
    torch.manual_seed(0)
    given = {"hidden": 4, "heads": 2, "fanouts": (1,) * layers, **options}
    return build(dataset.task, Options(model=model, layers=layers, **given)).eval()


def learned(dataset):
    """Return a row for each vertex of a type, as a function of its id."""

    def rows(name, part):
        ids = dataset.partition.parts[part].of_type(name).inner
        return np.sin(ids[:, None] * np.arange(1, 5)).astype(np.float32)

    return rows


def whole(dataset, network, depth=LAYERS):
    """Return the outputs for all papers by id, from one batch of the whole graph."""
    partition, task, papers = dataset.partition, dataset.task, dataset.targets
    loader = partition.loader(np.array(papers), fanouts=[-1] * depth, batch_size=len(papers))
    (batch,) = loader
    assert isinstance(batch, TypedBatch)
    x = {name: rows.float() for name, rows in batch.x_dict.items()}
    for name in task.learned:
        rows = np.concatenate([learned(dataset)(name, part) for part in range(partition.k)])
        x[name] = torch.from_numpy(rows[batch.rows_dict[name]])
    with torch.no_grad():
        logits = network(layers_of(batch), x)
    return dict(zip(batch.n_id_dict["paper"][: len(logits)].tolist(), logits, strict=True))


def outputs_of(dataset, network, folder, wanted=None, **options):
    inference = Inference(dataset, [0, 1, 2], folder, LAYERS, **options)
    inference.put_inputs(learned(dataset))
    found = {}
    for part, vertices, rows in inference.outputs(network, wanted):
        ids = dataset.partition.parts[part].of_type("paper").inner[vertices]
        found.update(zip(ids.tolist(), rows, strict=True))
    assert all(file.name.startswith("inputs") for file in folder.iterdir())
    return found


def assert_same(found, expected):
    for vertex, row in found.items():
        torch.testing.assert_close(row, expected[vertex], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", ["features", "learned"])
@pytest.mark.parametrize("model", TYPED_MODELS)
def test_layer_by_layer_is_as_the_whole_graph_also_in_pieces(datasets, tmp_path, monkeypatch, model, rows):
    dataset = datasets[rows]
    network = network_of(dataset, model)
    expected = whole(dataset, network)
    assert sorted(expected) == list(dataset.targets)
    found = outputs_of(dataset, network, tmp_path)
    assert sorted(found) == list(dataset.targets)
    assert_same(found, expected)
    monkeypatch.setattr(module, "EDGES", 30)
    assert_same(outputs_of(dataset, network, tmp_path), expected)


@pytest.mark.parametrize("few", [1, 10**9])
def test_few_outputs_are_those_of_all_for_fewer_rows(datasets, tmp_path, monkeypatch, few):
    dataset, computed = datasets["learned"], []
    monkeypatch.setattr(module, "FEW", few)
    network = network_of(dataset, "rgat", 3)
    expected = whole(dataset, network, 3)
    ids = [dataset.targets.start + place for place in (3, 30, 59)]
    layer = type(network).layer

    def counted(index, rows, x):
        computed.append((index, sum(rows.num_targets.values())))
        return layer(network, index, rows, x)

    network.layer = counted
    parts = dataset.partition.parts
    found = outputs_of(
        dataset, network, tmp_path, lambda part: np.isin(parts[part].of_type("paper").inner, ids)
    )
    assert sorted(found) == ids
    assert_same(found, expected)
    counts = [sum(count for at, count in computed if at == index) for index in range(3)]
    assert counts[2] == 3
    everything = dataset.topology.num_vertices
    assert counts[:2] == (
        [everything] * 2 if few > 1 else [len(needed_by(dataset, ids, hops)) for hops in (2, 1)]
    )


def needed_by(dataset, ids, hops):
    """Return the vertices from which some are reached in so many hops, by a plain search."""
    into = {}
    for part in dataset.partition.parts:
        sources, targets, _ = part.in_edges()
        for u, v in zip(sources.tolist(), targets.tolist(), strict=True):
            into.setdefault(v, set()).add(u)
    known = set(ids)
    for _ in range(hops):
        known |= {u for v in known for u in into.get(v, ())}
    return known


def model_of_pyg(task, options):
    from torch_geometric.nn import GraphSAGE, to_hetero

    return to_hetero(GraphSAGE((-1, -1), options.hidden, options.layers, task.classes), task.metadata)


def test_other_networks_are_computed_for_blocks_that_the_memory_holds(datasets, tmp_path):
    pytest.importorskip("torch_geometric")
    dataset = datasets["learned"]
    network = network_of(dataset, model_of_pyg)
    expected, seen = whole(dataset, network), []

    def fits(nodes, edges):
        seen.append((sum(nodes), sum(edges)))
        return sum(nodes) <= 70

    found = outputs_of(dataset, network, tmp_path, fits=fits)
    assert sorted(found) == list(dataset.targets)
    assert_same(found, expected)
    assert any(nodes > 70 for nodes, _ in seen)
    with pytest.raises(
        fp.errors.MemoryBudgetError, match=r"vertex \d+ reaches [\d,]+ vertices over [\d,]+ edges in 2 hops"
    ):
        outputs_of(dataset, network, tmp_path, fits=lambda nodes, edges: False)


def test_half_features_and_empty_parts(tmp_path):
    rng = np.random.default_rng(0)
    features = {
        name: rng.standard_normal((n, 3)).astype(np.float16) for name, n in (("author", 40), ("paper", 60))
    }
    parts = np.where(np.arange(105) < 80, 0, 3)
    typed_parts(tmp_path, 4, parts=parts, features=features, scale=1)
    dataset = Dataset(tmp_path / "parts")
    (tmp_path / "scratch").mkdir()
    inference = Inference(dataset, [0, 1, 2, 3], tmp_path / "scratch", LAYERS)
    inference.put_inputs(learned(dataset))
    network, found = network_of(dataset, "hgt"), {}
    for part, vertices, rows in inference.outputs(network):
        ids = dataset.partition.parts[part].of_type("paper").inner[vertices]
        found.update(zip(ids.tolist(), rows, strict=True))
    assert len(found) == 60
    assert_same(found, whole(dataset, network))


RANK = """
import os, sys, torch, numpy as np, torch.distributed as dist
from pathlib import Path
import fastpart as fp
from fastpart.partitions.seeds import rank_of_part
from fastpart.train.options import Options
from fastpart.train.models import build
from fastpart.train.data.dataset import Dataset
from fastpart.train.inference.inference import Inference

rank = int(os.environ["R"])
dist.init_process_group("gloo", init_method="file://" + sys.argv[3], rank=rank, world_size=2)
dataset = Dataset(sys.argv[1])
loader = dataset.partition.loader("train", fanouts=[1], batch_size=60, remote="messages")
assert loader.fetching.by_messages
own = np.flatnonzero(rank_of_part(3, 2) == rank).tolist()
inference = Inference(dataset, own, Path(sys.argv[2]), 2, loader.fetching)

def learned(name, part):
    ids = dataset.partition.parts[part].of_type(name).inner
    return np.sin(ids[:, None] * np.arange(1, 5)).astype(np.float32)

inference.put_inputs(learned)
torch.manual_seed(0)
network = build(dataset.task, Options(model="rgcn", hidden=4, heads=2, layers=2, fanouts=(1, 1)))
for part, vertices, rows in inference.outputs(network):
    ids = dataset.partition.parts[part].of_type("paper").inner[vertices]
    for vertex, row in zip(ids.tolist(), rows.tolist()):
        print(vertex, *row)
sys.stdout.flush()
dist.barrier()
os._exit(0)
"""


def test_rows_of_other_processes_come_by_messages(datasets, tmp_path):
    dataset = datasets["learned"]
    done = run_code(
        RANK, dataset.path, tmp_path, tmp_path / "wire", variables=lambda rank: {"R": f"{rank}"}, size=2
    )
    assert not any(rank.code for rank in done), done
    lines = [line.split() for rank in done for line in rank.out.splitlines()]
    found = {int(vertex): torch.tensor(list(map(float, row))) for vertex, *row in lines}
    assert sorted(found) == list(dataset.targets)
    assert_same(found, whole(dataset, network_of(dataset, "rgcn")))
