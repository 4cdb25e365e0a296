"""Predicted traffic: its probabilities against their definition, and its rows against those of batches."""

from itertools import pairwise, product

import numpy as np
import pytest

import fastpart as fp
from fastpart import _core
from fastpart.cli import main
from fastpart.core.options import RunOptions
from fastpart.errors import ParameterError
from sampled import folders, hubs
from soaked import diagonal, some_of

NAME = "amazon-computers"


@pytest.fixture(scope="module")
def topology(tmp_path_factory):
    """Return four parts of a graph with hubs, mapped, and its in-edges as rows."""
    n, records, _ = hubs()
    root = tmp_path_factory.mktemp("traffic") / "parts"
    graph = fp.open_graph(records, num_vertices=n)
    fp.algorithms.random(graph, 4, of="vertices").save(root, graph=graph)
    topology = _core.Topology(folders(root))
    row = np.argsort(topology.ids_of(np.arange(n, dtype=np.uint32)))
    turned = records[records[:, 0] != records[:, 1]][:, ::-1]
    sources, targets = row[np.concatenate([records, turned])].T
    return topology, sources, targets


def defined(n, sources, targets, seeds, fanouts, num_seeds, batch_size):
    """Return the expected accesses if the vertices of a level were independent."""
    degrees = np.bincount(targets, minlength=n).clip(1)
    batch_size = min(batch_size, num_seeds)
    present = np.zeros(n)
    present[seeds] = batch_size / num_seeds
    missed = 1 - present
    for fanout in fanouts:
        ratio = np.ones(n) if fanout == -1 else np.minimum(1, fanout / degrees)
        logs = -np.log1p(-np.minimum(ratio * present, 1 - 1e-7))
        present = 1 - np.exp(-np.bincount(sources, logs[targets], minlength=n))
        missed *= 1 - present
    full, rest = divmod(num_seeds, batch_size)
    return full * (1 - missed) + 1 - missed ** (rest / batch_size)


@pytest.mark.parametrize("fanouts", [[], [0], [3], [5, 2], [2, 4]])
@pytest.mark.parametrize("batch_size", [10, 64, 10_000])
def test_accesses_are_near_their_definition(topology, fanouts, batch_size):
    topology, sources, targets = topology
    n = topology.num_vertices
    seeds = np.arange(0, n // 4, 7, dtype=np.uint32)
    num_seeds = 4 * len(seeds)
    found = topology.accesses(seeds, fanouts, num_seeds=num_seeds, batch_size=batch_size)
    assert found.dtype == np.float32
    expected = defined(n, sources, targets, seeds, fanouts, num_seeds, batch_size)
    # Half of it is drawn.
    assert found.sum() == pytest.approx(expected.sum(), rel=0.05)
    often = expected > 3
    np.testing.assert_allclose(found[often], expected[often], rtol=0.7)
    assert (found[expected == 0] == 0).all()


def measured(topology, seeds, fanouts, batch_size, epochs):
    """Return the rows per epoch of each part, and those of other parts, that batches have. A batch has a row once."""
    starts = topology.starts
    rows, remote = np.zeros((2, topology.num_parts))
    steps = -(-len(seeds) // batch_size)
    for epoch in range(epochs):
        sampler = _core.Sampler(topology, fanouts, seed=epoch)
        order = np.random.default_rng(epoch).permutation(seeds)
        owners = np.searchsorted(starts, order, side="right") - 1
        for step, part in np.ndindex(steps, topology.num_parts):
            inside = slice(step * batch_size, (step + 1) * batch_size)
            batch = sampler.sample(order[inside][owners[inside] == part], epoch=epoch, step=step)
            distinct = np.unique(batch.rows)
            rows[part] += len(distinct)
            remote[part] += np.count_nonzero((distinct < starts[part]) | (distinct >= starts[part + 1]))
    return rows / epochs, remote / epochs


def saved(root, name, k, algorithm, datasets):
    graph = fp.convert(datasets / f"{name}.txt.gz", root.parent / "g.bin")
    train = np.random.default_rng(1).choice(graph.num_vertices, graph.num_vertices // 5, replace=False)
    partition = getattr(fp.algorithms, algorithm)(graph, k)
    if isinstance(partition, fp.EdgePartition):
        partition = fp.algorithms.random(graph, k, of="vertices")
    partition.save(root, graph=graph, splits={"train": train})
    return graph, train, fp.open_partition(root)


ALGORITHMS = ["random", "sigma", "multilevel"]
BATCHES = [([10, 10], 100), ([4, -1], 64), ([5, 4, 3], 1000)]


@pytest.mark.parametrize(
    ("algorithm", "batches"),
    some_of(product(ALGORITHMS, BATCHES), diagonal(ALGORITHMS, BATCHES)),
)
def test_prediction_is_what_batches_have(tmp_path, datasets, algorithm, batches):
    fanouts, batch_size = batches
    graph, train, stored = saved(tmp_path / "p", NAME, 4, algorithm, datasets)
    traffic = fp.predict_traffic(stored, fanouts, batch_size, cache=0.1)
    topology = stored._topology
    rows, remote = measured(topology, topology.rows_of(np.sort(train)), fanouts, batch_size, 3)
    assert traffic.rows == pytest.approx(rows.sum(), rel=0.03)
    assert traffic.remote_rows == pytest.approx(remote.sum(), rel=0.05)
    np.testing.assert_allclose(traffic.parts["remote_rows"], remote, rtol=0.12)
    assert 0 < traffic.saved_rows < traffic.remote_rows
    # The same edges, from the graph.
    whole = fp.predict_traffic(stored, fanouts, batch_size, graph=graph, splits={"train": train})
    assert whole.remote_rows == pytest.approx(traffic.remote_rows, rel=0.02)


def test_prediction_does_not_depend_on_threads_memory_or_names(tmp_path):
    n, records, _ = hubs()
    parts = np.random.default_rng(0).integers(0, 5, n)
    train = np.arange(0, n, 9)

    def predicted(parts=parts, train=train, records=records, **options):
        graph = fp.open_graph(records, num_vertices=n)
        return fp.predict_traffic(parts, [5, 4], 50, graph=graph, splits={"train": train}, **options)

    one = predicted(threads=1)
    limit = 20 * n + 30 * n
    assert one.parts.equals(predicted(threads=3).parts)
    assert one.parts.equals(predicted(memory_limit=limit, threads=1).parts)
    with pytest.raises(fp.errors.MemoryBudgetError):
        predicted(memory_limit=30 * n)
    renamed = np.random.default_rng(1).permutation(n)
    parts_renamed = np.empty(n, int)
    parts_renamed[renamed] = parts
    other = predicted(parts_renamed, renamed[train], renamed[records].astype(np.uint32))
    assert other.remote_rows == pytest.approx(one.remote_rows, rel=0.03)


@pytest.mark.parametrize("directedness", ["undirected", "symmetric", "directed"])
def test_records_mean_what_directories_store(tmp_path, directedness):
    n, records, _ = hubs()
    parts, train = np.arange(n) % 3, np.arange(0, n, 5)
    if directedness == "symmetric":
        records = np.concatenate([records, records[records[:, 0] != records[:, 1]][:, ::-1]])
    graph = fp.open_graph(np.ascontiguousarray(records), num_vertices=n, directedness=directedness)
    fp.VertexPartition(parts, 3).save(tmp_path / "p", graph=graph, splits={"train": train})
    stored = fp.predict_traffic(tmp_path / "p", [-1, -1], 10)
    whole = fp.predict_traffic(parts, [-1, -1], 10, graph=graph, splits={"train": train})
    # Nothing but the seeds of a batch is left to chance.
    assert stored.remote_rows == pytest.approx(whole.remote_rows, rel=0.03)


def test_caches_and_bytes(tmp_path):
    n, records, features = hubs()
    graph = fp.open_graph(records, num_vertices=n)
    splits = {"train": np.arange(0, n, 5)}
    fp.algorithms.random(graph, 3, of="vertices").save(
        tmp_path / "p", graph=graph, features=features, splits=splits
    )
    none, tenth, most = (fp.predict_traffic(tmp_path / "p", [5, 5], 100, cache=c) for c in (0, 0.1, 1.0))
    assert (none.saved_rows, none.fetched_rows) == (0, none.remote_rows)
    assert tenth.parts["cached_rows"].to_list() == [100, 100, 100]
    assert 0.1 * none.remote_rows < tenth.saved_rows < most.saved_rows < none.remote_rows
    of_size = fp.predict_traffic(tmp_path / "p", [5, 5], 100, cache="2K")
    assert of_size.parts["cached_rows"].to_list() == [2048 // 20] * 3
    assert repr(of_size).endswith("with a cache of 2K>")
    for exact in (False, True):
        share, size = (
            fp.predict_traffic(tmp_path / "p", [5, 5], 100, cache=cache, exact=exact)
            for cache in (0.1, f"{2000 / 1024}K")
        )
        assert share.parts.equals(size.parts)
    given = {"graph": graph, "splits": splits, "cache": "2K"}
    bare = fp.predict_traffic(
        stored := fp.algorithms.random(graph, 3, of="vertices"), [5], row_bytes=20, **given
    )
    assert bare.parts["cached_rows"].to_list() == [2048 // 20] * 3
    with pytest.raises(ParameterError, match="cache: 2K is a size, but the bytes of a row are unknown"):
        fp.predict_traffic(stored, [5], **given)
    compared = fp.compare(
        graph, 3, ["random"], splits=splits, fanouts=[5], cache=[0, "2K"], row_bytes=20, peers=False
    )
    assert {"remote_rows", "remote_rows_2K", "remote_mb_2K"} <= set(compared.summary.columns)
    assert none.row_bytes == 20
    assert none.remote_mb == pytest.approx(20e-6 * none.remote_rows)
    assert repr(tenth).startswith("<Traffic: ")
    assert "Predicted traffic" in tenth._repr_html_()


@pytest.mark.torch
@pytest.mark.parametrize(("cache", "seed"), [(0, 0), (0, 3), (0.1, 0), (1, 2)])
@pytest.mark.parametrize(("fanouts", "batch_size"), [([5, 4], 50), ([3, -1], 1000), ([], 7)])
def test_a_count_is_that_of_the_loaders(stored_hubs, cache, seed, fanouts, batch_size):
    found = fp.predict_traffic(stored_hubs, fanouts, batch_size, cache=cache, seed=seed, exact=True)
    options = {"fanouts": fanouts, "batch_size": batch_size, "seed": seed, "cache": float(cache), "ahead": 0}
    for rank, part in enumerate(found.parts.iter_rows(named=True)):
        loader = stored_hubs.loader("train", rank=rank, world_size=stored_hubs.k, **options)
        batches = list(loader)
        counts = loader.read_counts()
        assert part["rows"] == sum(len(np.unique(batch.rows)) for batch in batches)
        assert part["seeds"] == sum(batch.batch_size for batch in batches)
        assert part["remote_rows"] - part["saved_rows"] == counts.get("remote_rows", 0)
        assert part["saved_rows"] == counts.get("cached_rows", 0)


@pytest.fixture(scope="module")
def stored_hubs(tmp_path_factory):
    n, records, features = hubs()
    graph = fp.open_graph(records, num_vertices=n)
    folder, splits = tmp_path_factory.mktemp("hubs") / "p", {"train": np.arange(0, n, 20)}
    fp.algorithms.random(graph, 3, of="vertices").save(folder, graph=graph, features=features, splits=splits)
    return fp.open_partition(folder)


def test_the_cheaper_prediction_is_the_default(stored_hubs):
    def predicted(fanouts, **options):
        return fp.predict_traffic(stored_hubs, fanouts, 50, **options)

    few, many = [2, 2], [20, 20]  # 150 training vertices sample 900 edges, or 63,000 of 30,000 records
    for fanouts, cache, is_count in [
        (few, 0, True),
        (many, 0, False),
        (few, 0.1, False),
        ([2, -1], 0, False),
    ]:
        found = predicted(fanouts, cache=cache)
        assert found.parts.equals(predicted(fanouts, cache=cache, exact=is_count).parts)
        assert not found.parts.equals(predicted(fanouts, cache=cache, exact=not is_count).parts)


def test_a_count_of_given_vertices_does_not_depend_on_their_order_or_threads(stored_hubs):
    train = np.random.default_rng(0).permutation(3000)[:300]
    one, other = (
        fp.predict_traffic(
            stored_hubs, [3, 3], 40, splits={"train": ids}, exact=True, threads=threads, cache=0.2
        )
        for ids, threads in ((train, 1), (np.sort(train), 3))
    )
    assert one.parts.equals(other.parts)


def test_a_count_tells_its_progress_and_memory(stored_hubs):
    said = []
    options = {"exact": True, "cache": 0}
    fp.predict_traffic(stored_hubs, [2], 50, progress=lambda *about: said.append(about), **options)
    assert said == [("batches", done, 9) for done in range(1, 10)]
    with pytest.raises(fp.errors.MemoryBudgetError, match=r"need 15\.0 kB"):
        fp.predict_traffic(stored_hubs, [2], memory_limit=10_000, **options)


def test_a_comparison_tells_the_traffic(tmp_path, datasets):
    graph, train, _ = saved(tmp_path / "p", NAME, 4, "random", datasets)
    summary = fp.compare(
        graph, 4, ["random:of=vertices", "multilevel", "dbh"],
        splits={"train": train}, fanouts=[5, 5], batch_size=100, row_bytes=400,
    ).summary  # fmt: skip
    names = ["remote_rows", "remote_mb", "remote_rows_0.1", "remote_mb_0.1"]
    assert [name for name in summary.columns if name.startswith("remote")] == names
    worst, best, edges = summary.select(names).rows()
    assert worst[0] > 2 * best[0] > 2 * best[2]
    assert best[1] == pytest.approx(best[0] * 400e-6, rel=0.01)
    assert edges == (None,) * 4
    with pytest.raises(ParameterError, match="splits"):
        fp.compare(graph, 4, ["random"], fanouts=[5])


@pytest.mark.parametrize(
    ("given", "error", "named"),
    [
        ({"fanouts": [-2]}, ParameterError, "fanouts: -2"),
        ({"fanouts": "10,10"}, TypeError, "fanouts: expected a list"),
        ({"batch_size": 0}, ParameterError, "batch_size: 0"),
        ({"cache": -0.1}, ParameterError, "cache: -0.1"),
        ({"cache": 5}, ParameterError, "cache: 5 is not a share of a part.s rows from 0 to 1"),
        ({"cache": "0.1"}, ParameterError, "cache: '0.1' is text without a unit"),
        ({"cache": "200"}, ParameterError, "cache: '200' is text without a unit"),
        ({"cache": "2X"}, ParameterError, "cache: '2X' is not a size"),
        ({"cache": float("nan")}, ParameterError, "cache: nan"),
        ({"row_bytes": -1}, ParameterError, "row_bytes: -1"),
        ({"splits": None}, ParameterError, "splits: there are no training"),
        ({"splits": {"val": [0]}}, ParameterError, "splits: there are no training"),
        ({"exact": True}, ParameterError, "exact: only the parts of a directory"),
        ({"exact": True, "graph": None}, ParameterError, "exact: only the parts of a directory"),
        ({"exact": 1}, TypeError, "exact: expected True"),
        ({"seed": -1}, ParameterError, "seed"),
        ({"graph": None}, ParameterError, "graph: the partition does not know"),
        ({"partition": [0, 1]}, fp.errors.GraphFormatError, "another graph"),
    ],
)
def test_bad_predictions_are_refused(given, error, named):
    path = np.array([[0, 1], [1, 2], [2, 3]])
    given = {"partition": [0, 0, 1, 1], "fanouts": [2], "graph": path, "splits": {"train": [1]}} | given
    with pytest.raises(error, match=named):
        fp.predict_traffic(**given)


def test_accesses_do_not_depend_on_threads_or_the_order_of_seeds(topology):
    topology = topology[0]
    seeds = np.random.default_rng(0).permutation(topology.num_vertices).astype(np.uint32)[:500]
    found = [
        topology.accesses(given, [5, 5], num_seeds=500, batch_size=60, options=RunOptions(threads=threads))
        for given, threads in ((seeds, 1), (np.sort(seeds), 3))
    ]
    assert (found[0] == found[1]).all()


def test_more_in_edges_are_more_accesses(topology):
    topology = topology[0]
    seeds = np.arange(100, dtype=np.uint32)
    totals = [
        topology.accesses(seeds, [fanout, fanout], num_seeds=400, batch_size=40) for fanout in (1, 2, 8, -1)
    ]
    for less, more in pairwise(totals):
        assert (less <= more + 1e-4).all()
        assert less.sum() < more.sum()


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"fanouts": [-2]}, "fanouts: -2"),
        ({"batch_size": 0}, "batch_size: 0"),
        ({"seeds": [3000]}, "seeds: the row 3000"),
    ],
)
def test_bad_accesses_are_refused(topology, given, named):
    given = {"seeds": [0], "fanouts": [5], "num_seeds": 10, "batch_size": 2} | given
    seeds = np.array(given.pop("seeds"), np.uint32)
    with pytest.raises(ParameterError, match=named):
        topology[0].accesses(seeds, **given)


@pytest.mark.parametrize("directedness", ["undirected", "directed"])
def test_weights_are_the_expected_draws(directedness):
    n, records, _ = hubs()
    graph = fp.open_graph(records, num_vertices=n, directedness=directedness)
    train, fanouts, size, k = np.arange(0, n, 5, dtype=np.uint32), [5, 3], 60, 4
    options = RunOptions()
    found = _core.sampling_weights(
        graph._source,
        k,
        train,
        fanouts,
        directedness=directedness,
        relations=None,
        batch_size=size,
        options=options,
    )
    sources, targets = records.T.astype(np.int64)
    if directedness == "undirected":
        turned = sources != targets
        sources, targets = np.r_[sources, targets[turned]], np.r_[targets, sources[turned]]
    degrees = np.bincount(targets, minlength=n).clip(1)
    present, draws = np.zeros(n), np.zeros(n)
    present[train] = size / len(train) / k
    for fanout in fanouts:
        drawn = np.minimum(1, fanout / degrees) * present
        draws += drawn
        present = 1 - np.exp(np.bincount(sources, np.log1p(-drawn)[targets], minlength=n))
    expected = draws[records[:, 1]]
    if directedness == "undirected":
        expected = expected + np.where(records[:, 0] != records[:, 1], draws[records[:, 0]], 0)
    np.testing.assert_allclose(found, 1024 * expected / expected.mean(), rtol=1e-3, atol=1.5)


def test_traffic_as_objective_fetches_less(tmp_path, datasets):
    graph, train, _ = saved(tmp_path / "p", NAME, 4, "random", datasets)
    splits = {"train": train}
    given = {"splits": splits, "fanouts": [10, 10], "batch_size": 100}
    cut = fp.partition(graph, 4)
    least = fp.partition(graph, 4, objective="traffic", **given)
    assert (least.algorithm, least.cap) == (cut.algorithm, cut.cap)
    assert least.parameters["chosen"]["objective"] == "traffic"
    assert least.graph._weights is None
    assert least.cut_ratio == fp.evaluate(graph, least).cut_ratio
    assert (
        least.assignment == fp.partition(graph, 4, objective="traffic", threads=1, **given).assignment
    ).all()
    rows = []
    for name, partition in {"cut": cut, "traffic": least}.items():
        partition.save(tmp_path / name, graph=graph, splits=splits)
        topology = fp.open_partition(tmp_path / name)._topology
        rows.append(measured(topology, topology.rows_of(np.sort(train)), [10, 10], 100, 1)[1].sum())
    assert rows[1] < 0.97 * rows[0]


def test_the_command_takes_traffic(tmp_path, datasets, capsys):
    graph, train, _ = saved(tmp_path / "p", NAME, 4, "random", datasets)
    np.savez(tmp_path / "split.npz", train=train)
    end = ["-k", "4", "--fanouts", "10,5", "--splits", str(tmp_path / "split.npz"), "--quiet"]
    assert main(["partition", str(graph.path), "--objective", "traffic", *end]) == 0
    assert "train_balance" in capsys.readouterr().out
    assert main(["compare", str(graph.path), "--algorithms", "hash", "--cache", "0,0.2", *end]) == 0
    assert "remote_rows_0.2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"splits": None}, 'splits: objective="traffic"'),
        ({"fanouts": [-3]}, "fanouts: -3"),
        ({"batch_size": 0}, "batch_size: 0"),
        ({"graph": ([[0, 1]], [2])}, "weights=False"),
        ({"of": "edges"}, "objective"),
    ],
)
def test_bad_objectives_are_refused(given, named):
    given = {"graph": ([[0, 1]], None), "splits": {"train": [0]}} | given
    records, weights = given.pop("graph")
    graph = fp.open_graph(np.array(records), weights=weights and np.array(weights))
    with pytest.raises(ParameterError, match=named):
        fp.partition(graph, 1, objective="traffic", **given)
