"""The loader: its batches are the definition's, for any partition and any number of ranks."""

import gc
import os
import pickle
import signal
import subprocess
import sys
from itertools import chain, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpart as fp
import oracles
from soaked import some_of
from strategies import edge_lists

torch = pytest.importorskip("torch")

from fastpart import _core  # noqa: E402
from fastpart.loading import Batch, Loader  # noqa: E402
from loaded import PARTITIONERS, attributed, endless, stored, trained  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")

SAMPLINGS = {
    "uniform": {"fanouts": [4, 3]},
    "weighted": {"fanouts": [4, 3], "sampling": "weighted"},
    "labor": {"fanouts": [4, 3], "sampling": "labor"},
    "full": {"fanouts": [-1, -1]},
}


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("loader") / "parts", 4)


def same(one, other):
    """Compare all that two batches hold."""
    for name, value in vars(one).items():
        if name != "edge_index":  # made on first use
            found = getattr(other, name)
            assert type(value) is type(found)
            assert np.array_equal(value, found), name


# The promise.


@pytest.mark.parametrize(
    ("name", "sampling"),
    some_of(
        list(product(PARTITIONERS, SAMPLINGS)),
        always=[*product(["hash"], SAMPLINGS), *product(PARTITIONERS, ["uniform"])],
    ),
)
def test_losses_do_not_depend_on_the_partition(tmp_path, name, sampling):
    settings = dict(SAMPLINGS[sampling], batch_size=32, seed=5)
    if sampling == "weighted":
        settings["weights"] = np.random.default_rng(1).random(2000)
    found = {}
    for k in (1, 2, 4):
        partition = stored(tmp_path / str(k), k, name)
        for ranks in {1, k}:
            loaders = [
                partition.loader("train", rank=rank, world_size=ranks, **settings) for rank in range(ranks)
            ]
            found[k, ranks] = trained(endless(loaders), 20)
    expected = found.pop((1, 1))
    assert expected[-5:].mean() < 0.9 * expected[:5].mean()
    for losses in found.values():
        np.testing.assert_allclose(losses, expected, rtol=1e-5)


def test_ranks_beyond_the_parts_and_other_shares_change_nothing(tmp_path):
    partition = stored(tmp_path / "parts", 3)
    losses = []
    for ranks in (2, 5):
        given = {"fanouts": [3, 3], "batch_size": 40, "world_size": ranks}
        losses.append(trained(endless([partition.loader(rank=rank, **given) for rank in range(ranks)]), 6))
    np.testing.assert_allclose(*losses, rtol=1e-9)


def test_what_a_vertex_drew_does_not_depend_on_the_rank(parts):
    """In all batches of a step, a vertex in a level has the same in-edges."""
    for batches in zip(*(parts.loader(fanouts=[3, 2], rank=r, world_size=4) for r in range(4)), strict=True):
        drawn = {}
        for batch in batches:
            level = np.repeat(np.arange(3), batch.num_sampled_nodes)
            for node in range(len(batch.indptr) - 1):
                edges = batch.e_id[batch.indptr[node] : batch.indptr[node + 1]].tolist()
                key = int(level[node]), int(batch.n_id[node])
                assert drawn.setdefault(key, edges) == edges


# Batches.


@st.composite
def cases(draw):
    """A small graph of any kind, with parts that may be empty."""
    n, records = draw(edge_lists(12, 40))
    n += 1
    graph = fp.open_graph(
        records, num_vertices=n, directedness=draw(st.sampled_from(["undirected", "directed"]))
    )
    k = draw(st.integers(1, 5))
    assignment = draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
    return graph, list(map(tuple, records.tolist())), fp.VertexPartition(assignment, k)


@settings(max_examples=60)
@given(
    case=cases(),
    fanouts=st.lists(st.sampled_from([-1, 0, 1, 3]), min_size=1, max_size=3),
    sampling=st.sampled_from(["uniform", "labor"]),
    merged=st.booleans(),
    seed=st.integers(0, 2**64 - 1),
    ahead=st.integers(0, 3),
)
def test_batches_are_those_of_the_definition(tmp_path_factory, case, fanouts, sampling, merged, seed, ahead):
    graph, records, partition = case
    n, m = graph.num_vertices, graph.num_edges
    features, of_edges = np.arange(2.0 * n).reshape(n, 2), np.arange(3.0 * m).reshape(m, 3)
    folder = tmp_path_factory.mktemp("parts") / "parts"
    labels = np.arange(n) + 10
    partition.save(folder, graph=graph, features=features, edge_features=of_edges, labels=labels)
    given = oracles.in_edges(n, records, graph.directedness)
    loader = fp.open_partition(folder).loader(
        np.arange(n), fanouts=fanouts, sampling=sampling, merged=merged, seed=seed, batch_size=5, ahead=ahead
    )
    assert len(loader) == -(-n // 5)
    seen = []
    for batch in loader:
        ids = batch.n_id.tolist()
        seen += ids[: batch.batch_size]
        assert batch.global_size == batch.batch_size == len(batch.y) == batch.num_sampled_nodes[0]
        assert torch.equal(batch.input_id, batch.n_id[: batch.batch_size])
        np.testing.assert_array_equal(batch.x, features[ids])
        np.testing.assert_array_equal(batch.y, labels[ids[: batch.batch_size]])
        np.testing.assert_array_equal(batch.edge_attr, of_edges[batch.e_id.numpy() % max(m, 1)])
        assert sum(batch.num_sampled_nodes) == batch.num_nodes
        assert sum(batch.num_sampled_edges) == batch.num_edges == batch.edge_index.shape[1]
        levels = np.split(np.array(ids), np.cumsum(batch.num_sampled_nodes)[:-1])
        for level in [np.array(ids)] if merged else levels:
            assert len(set(level.tolist())) == len(level)
        sources, targets = batch.edge_index.tolist()
        depth = np.repeat(np.arange(len(levels)), batch.num_sampled_nodes)
        of_node = {node: [] for node in range(batch.num_nodes)}
        for source, target, edge in zip(sources, targets, batch.e_id.tolist(), strict=True):
            of_node[target].append((ids[source], edge))
            assert depth[source] <= depth[target] + 1 if merged else depth[source] == depth[target] + 1
        for node, edges in of_node.items():
            whole, hop = given[ids[node]], depth[node]
            if hop == len(fanouts):
                assert not edges
                continue
            fanout = len(whole) if fanouts[hop] == -1 else fanouts[hop]
            assert set(edges) <= set(whole)
            assert len(set(edges)) == len(edges)
            if sampling == "uniform" or fanout >= len(whole):
                assert len(edges) == min(fanout, len(whole))
    assert sorted(seen) == list(range(n))


def test_blocks_are_prefixes(parts):
    batch = next(iter(parts.loader(fanouts=[4, 3, 2], batch_size=50)))
    nodes, edges = batch.num_sampled_nodes, batch.num_sampled_edges
    sizes = [(block.num_sources, block.num_targets, block.num_edges) for block in batch.blocks()]
    assert sizes == [(sum(nodes[: 4 - i]), sum(nodes[: 3 - i]), sum(edges[: 3 - i])) for i in range(3)]
    for block in batch.blocks():
        assert torch.equal(block.edge_index, batch.edge_index[:, : block.num_edges])
        assert block.edge_index.dtype == torch.int64
        assert block.edge_index[0].max() < block.num_sources
        assert block.edge_index[1].max() < block.num_targets


def test_steps_are_the_same_for_all_ranks(parts):
    loaders = [parts.loader(fanouts=[2], batch_size=32, rank=rank, world_size=3) for rank in range(3)]
    owner = parts.assignment * 3 // 4
    assert {len(loader) for loader in loaders} == {len(list(loader)) for loader in loaders}
    for batches in zip(*loaders, strict=True):
        assert len({batch.global_size for batch in batches}) == 1
        assert sum(batch.batch_size for batch in batches) == batches[0].global_size
        for rank, batch in enumerate(batches):
            assert (owner[batch.n_id[: batch.batch_size]] == rank).all()


def test_a_part_without_vertices_and_one_without_seeds(tmp_path):
    _, rows = attributed()
    assignment = np.where(np.arange(300) < 150, 0, 2)
    rows["splits"] = {"train": np.arange(100)}
    fp.VertexPartition(assignment, 4).save(tmp_path / "parts", **rows)
    loaders = [
        fp.open_partition(tmp_path / "parts").loader(fanouts=[2, 2], batch_size=30, rank=rank, world_size=4)
        for rank in range(4)
    ]
    for batches in zip(*loaders, strict=True):
        assert [batch.batch_size > 0 for batch in batches] == [True, False, False, False]
        empty = batches[1]
        assert (empty.x.shape, empty.edge_index.shape, empty.y.shape) == ((0, 6), (2, 0), (0,))
        assert (empty.num_sampled_nodes, empty.num_sampled_edges) == ([0, 0, 0], [0, 0])
        assert empty.edge_attr.shape == (0, 2)
        assert empty.global_size == sum(batch.batch_size for batch in batches) > 0
    losses = trained(endless(loaders), 5)
    assert np.isfinite(losses).all()


# Epochs.


def test_epochs(parts):
    def seeds(loader):
        return [batch.input_id.tolist() for batch in loader]

    loader = parts.loader(fanouts=[2], batch_size=40)
    first, second = seeds(loader), seeds(loader)
    assert first != second
    assert sorted(chain(*first)) == sorted(chain(*second)) == list(range(len(loader.vertices)))
    loader.set_epoch(1)
    assert seeds(loader) == second
    assert seeds(parts.loader(fanouts=[2], batch_size=40, seed=1)) != first
    val = parts.loader("val", fanouts=[2], batch_size=40)
    assert seeds(val) == seeds(val)
    assert list(chain(*seeds(val))) == list(range(len(val.vertices)))
    dropped = parts.loader(fanouts=[2], batch_size=40, drop_last=True)
    assert [len(ids) for ids in seeds(dropped)] == [40] * len(dropped)
    assert len(dropped) == len(dropped.vertices) // 40


def test_the_order_of_seeds_is_the_same_everywhere(parts):
    """The order is sorted hashes, not a generator that numpy may change."""
    for ids in (np.arange(10, 20), np.arange(10, 20)[::-1]):
        loader = parts.loader(ids, fanouts=[1], batch_size=5, seed=7, shuffle=True)
        found = [batch.n_id[: batch.batch_size].tolist() for batch in loader]
        assert found == [[19, 13, 12, 10, 17], [14, 11, 16, 18, 15]]


def test_what_is_labelled_is_what_a_split_gives(parts):
    _, rows = attributed()
    labels, train = rows["labels"], rows["splits"]["train"]
    loader = parts.loader(fanouts=[1])
    assert loader.vertices.tolist() == sorted(train[labels[train] >= 0])
    mask = np.zeros(300, bool)
    mask[train] = True
    masked, listed = (parts.loader(chosen, fanouts=[1]) for chosen in (mask, train))
    assert masked.vertices.tolist() == sorted(train)
    assert listed.vertices.tolist() == train.tolist()
    (batch,) = listed
    assert batch.n_id[: len(train)].tolist() == train.tolist()
    assert batch.y.tolist() == labels[train].tolist()


@pytest.mark.parametrize("ahead", [0, 1, 5])
@pytest.mark.parametrize("threads", [1, 3])
def test_threads_make_the_same_batches(parts, ahead, threads):
    expected = list(parts.loader(fanouts=[4, 4], batch_size=30))
    found = list(parts.loader(fanouts=[4, 4], batch_size=30, ahead=ahead, threads=threads))
    for one, other in zip(expected, found, strict=True):
        same(one, other)


def test_batches_that_are_kept_do_not_change(parts):
    loader = parts.loader(fanouts=[4, 4], batch_size=30)
    kept = list(loader)
    for _ in range(3):
        for _ in loader:
            pass
    loader.set_epoch(0)
    for one, other in zip(kept, loader, strict=True):
        same(one, other)


def test_an_abandoned_epoch_ends_its_threads(parts):
    def threads():
        return len(os.listdir("/proc/self/task"))

    before = threads()
    for _ in range(3):
        for batch in parts.loader(fanouts=[2], batch_size=1, ahead=4, threads=2):
            assert batch.batch_size == 1
            break
    gc.collect()
    assert threads() <= before


def test_old_directories_give_the_same_batches(tmp_path):
    new = stored(tmp_path / "parts", 4)
    expected = list(new.loader(fanouts=[3, 3], batch_size=64))
    for file in (tmp_path / "parts").glob("*/halo_rows.npy"):
        file.unlink()
    manifest = tmp_path / "parts" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"schema": 3', '"schema": 2'))
    old = fp.open_partition(tmp_path / "parts")
    assert old.manifest["schema"] == 2
    for one, other in zip(expected, old.loader(fanouts=[3, 3], batch_size=64), strict=True):
        same(one, other)


def test_rows_that_were_not_saved_are_none(tmp_path):
    graph, _ = attributed()
    fp.algorithms.hash(graph, 2).save(tmp_path / "parts", graph=graph)
    (batch,) = fp.open_partition(tmp_path / "parts").loader(np.arange(300), fanouts=[2])
    assert batch.x is batch.y is batch.edge_attr is None
    (batch,) = stored(tmp_path / "more", 2).loader([7, 3], fanouts=[2], edge_ids=False)
    assert batch.e_id is batch.edge_attr is None
    assert batch.n_id[:2].tolist() == [7, 3]


def test_labels_of_several_classes(tmp_path):
    graph, rows = attributed()
    rows["labels"] = (np.random.default_rng(0).random((300, 4)) < 0.5).astype(np.uint8)
    fp.algorithms.hash(graph, 3).save(tmp_path / "parts", **rows)
    (batch,) = fp.open_partition(tmp_path / "parts").loader(fanouts=[2])
    assert batch.y.dtype == torch.uint8
    np.testing.assert_array_equal(batch.y, rows["labels"][batch.n_id[: batch.batch_size]])


def test_devices_and_pickles(parts):
    batch = next(iter(parts.loader(fanouts=[2], device="cpu")))
    moved = batch.to("meta")
    assert {getattr(moved, name).device.type for name in ("x", "y", "n_id", "indptr", "edge_attr")} == {
        "meta"
    }
    again = pickle.loads(pickle.dumps(parts))
    same(batch, next(iter(again.loader(fanouts=[2]))))
    same(batch, pickle.loads(pickle.dumps(batch)))
    assert isinstance(batch, Batch)
    assert isinstance(parts.loader(fanouts=[2]), Loader)
    assert repr(batch).startswith("<Batch: ")
    assert repr(parts.loader(fanouts=[2])).endswith("rank 0 of 1>")


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"fanouts": 3}, TypeError, "fanouts: expected a list"),
        ({"fanouts": [-2]}, fp.errors.ParameterError, "fanouts: -2"),
        ({"fanouts": [1.5]}, TypeError, "fanouts"),
        ({"batch_size": 0}, fp.errors.ParameterError, "batch_size: 0"),
        ({"seed": -1}, fp.errors.ParameterError, "seed: -1"),
        ({"rank": 1}, fp.errors.ParameterError, "rank, world_size: pass both"),
        ({"rank": 2, "world_size": 2}, fp.errors.ParameterError, "rank: 2"),
        ({"sampling": "best"}, fp.errors.ParameterError, "sampling: unknown value 'best'"),
        ({"sampling": "weighted"}, fp.errors.ParameterError, "weights"),
        ({"weights": np.ones(3), "sampling": "weighted"}, fp.errors.ParameterError, r"weights: .*\(2000,\)"),
        ({"weights": np.ones(2000)}, fp.errors.ParameterError, "weights"),
        ({"vertices": "trian"}, fp.errors.ParameterError, "no split 'trian'. It has 'train', 'val', 'test'"),
        ({"vertices": [300]}, fp.errors.ParameterError, "vertices: 300 is not between 0 and 299"),
        ({"vertices": [5, 5]}, fp.errors.ParameterError, "vertices: 5 occurs more than once"),
        ({"vertices": [0.5]}, TypeError, "vertices: expected"),
        ({"ahead": -1}, fp.errors.ParameterError, "ahead: -1"),
        ({"threads": 0}, fp.errors.ParameterError, "threads: 0"),
        ({"merged": 1}, TypeError, "merged"),
        ({"shuffle": "no"}, TypeError, "shuffle"),
    ],
)
def test_refusals(parts, arguments, error, text):
    with pytest.raises(error, match=text):
        parts.loader(**{"fanouts": [2], **arguments})


def test_partitions_without_edges_are_refused(tmp_path):
    graph, rows = attributed()
    partition = fp.algorithms.hash(graph, 2)
    with pytest.raises(fp.FastpartError, match="the partition is in memory"):
        partition.loader(fanouts=[2])
    partition.save(tmp_path / "parts", halo_hops=0, **rows)
    with pytest.raises(fp.errors.ParameterError, match="lacks the edges between parts"):
        fp.open_partition(tmp_path / "parts").loader(fanouts=[2])
    partition.save(tmp_path / "parts", graph=graph, overwrite=True)
    with pytest.raises(fp.errors.ParameterError, match=r"no split 'train'\. It has none"):
        fp.open_partition(tmp_path / "parts").loader(fanouts=[2])


def test_in_edges_are_found_by_their_ids(tmp_path):
    """The rows of in-edges of samples that users make, against a look at all in-edges of the target."""
    partition = stored(tmp_path / "parts", 2)
    topology, m = partition._topology, partition.manifest["m"]
    sample = _core.Sampler(topology, [3, 3], edge_ids=True, edge_rows=True).sample(
        np.arange(20, dtype=np.uint32)
    )
    targets = np.repeat(sample.rows[: len(sample.indptr) - 1], np.diff(sample.indptr))
    np.testing.assert_array_equal(topology.edge_rows_of(targets, sample.e_id, m), sample.edge_rows)
    ids = np.concatenate([part.edge_ids for part in partition.parts])
    np.testing.assert_array_equal(ids[sample.edge_rows], sample.e_id)
    with pytest.raises(fp.errors.ParameterError, match=r"ids: the edge .* is no in-edge of the vertex"):
        topology.edge_rows_of(targets[:1], np.array([10**6]), m)
    with pytest.raises(fp.errors.ParameterError, match="ids: 2 for 1 targets"):
        topology.edge_rows_of(targets[:1], sample.e_id[:2], m)


KILLED = """
import sys, fastpart as fp
for batch in fp.open_partition(sys.argv[1]).loader(fanouts=[3, 3], batch_size=1, ahead=4, threads=2):
    print("ready", flush=True)
"""


def test_a_killed_process_leaves_nothing(tmp_path):
    stored(tmp_path / "parts", 3)
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    before = sorted((file, file.stat().st_mtime_ns) for file in tmp_path.rglob("*"))
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, tmp_path / "parts"],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(scratch)},
        cwd=scratch,
    )
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert sorted((file, file.stat().st_mtime_ns) for file in tmp_path.rglob("*")) == before
