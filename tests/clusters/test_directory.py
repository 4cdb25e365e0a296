"""The directory and the measures of a partition are those of one machine, byte for byte, whoever makes them."""

import filecmp
import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from test_bits import GRAPHS, planted, symmetric
from test_unfinished_jobs import Failing

import fastpart as fp
from fastpart.cli import main
from fastpart.machines.engine import Threads
from fastpart.store import verify

RNG = np.random.default_rng(8)


@pytest.fixture
def shared(tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    return folder


def dealt(graph, k):
    """Return a partition with an empty part."""
    n = graph.num_vertices
    assignment = RNG.integers(0, k, n)
    assignment[assignment == min(1, k - 1)] = 0
    partition = fp.VertexPartition(assignment, k)
    partition.graph = graph
    return partition


def files_of(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def same(made, expected, *more):
    """Compare all files. The manifest has the checksums of what the command adds."""
    names = files_of(expected)
    assert files_of(made) == sorted([*names, *more])
    others = [name for name in names if not (more and name == "manifest.json")]
    assert filecmp.cmpfiles(expected, made, others, shallow=False)[1:] == ([], [])


def saved(partition, tmp_path, engine, shared, **given):
    """Save a partition on one machine and with an engine. Both have the same files."""
    expected, made = tmp_path / "expected", tmp_path / "made"
    partition.save(expected, **given)
    partition.save(made, cluster=engine, shared=shared, **given)
    same(made, expected)
    assert list(shared.iterdir()) == []
    return made


def directed():
    return fp.open_graph(planted(1500, 9000), directedness="directed")


KINDS = {
    "undirected": GRAPHS["loops and parallel records"],
    "symmetric": lambda: symmetric(planted(1500, 9000)),
    "directed": directed,
}


@pytest.mark.parametrize("halo_hops", [0, 1, 2])
@pytest.mark.parametrize(("name", "workers"), [("undirected", 3), ("symmetric", 2), ("directed", 4)])
def test_a_directory_has_the_bytes_of_one_machine(name, workers, halo_hops, tmp_path, shared):
    graph = KINDS[name]()
    n, m = graph.num_vertices, graph.num_edges
    split = RNG.integers(0, 3, n)
    data = {
        "features": RNG.random((n, 5), dtype=np.float32),
        "labels": RNG.integers(0, 4, n),
        "splits": {each: np.flatnonzero(split == i) for i, each in enumerate(("train", "val", "test"))},
        "edge_features": RNG.random((m, 2), dtype=np.float32),
        "halo_hops": halo_hops,
        "halo_features": halo_hops > 0,
    }
    made = saved(dealt(graph, 7), tmp_path, Threads(workers), shared, **data)
    assert len(fp.open_partition(made, graph).parts) == 7
    assert verify(made)


@pytest.mark.parametrize(
    ("name", "k", "workers"),
    [("empty", 3, 2), ("few vertices", 1, 4), ("few vertices", 5, 1), ("few vertices", 5, 4)],
)
def test_small_graphs_and_any_workers(name, k, workers, tmp_path, shared):
    saved(dealt(GRAPHS[name](), k), tmp_path, Threads(workers), shared)


def test_a_typed_graph(tmp_path, shared):
    schema = fp.generate.typed(tmp_path / "tables", scale=0.0005)
    graph = fp.ingest(schema, tmp_path / "graph")
    partition = dealt(graph, 4)
    made = saved(partition, tmp_path, Threads(3), shared, halo_hops=2)
    assert (made / "part-00003" / "relations.npy").is_file()
    same_measures(graph, partition, Threads(2), shared)


def same_measures(graph, partition, engine, shared, **given):
    made = fp.evaluate(graph, partition, cluster=engine, shared=shared, **given)
    assert made.to_json() == fp.evaluate(graph, partition, **given).to_json()
    assert list(shared.iterdir()) == []
    return made


@pytest.mark.parametrize(("workers", "k"), [(4, 1), (2, 63), (1, 64), (2, 65), (3, 300), (4, 5000)])
def test_measures_are_those_of_one_machine(workers, k, shared):
    graph = GRAPHS["loops and parallel records"]()
    partition = dealt(graph, k)
    made = same_measures(graph, partition, Threads(workers), shared, labels=np.arange(600) % 3)
    expected = fp.evaluate(graph, partition)
    assert np.array_equal(made.cut_matrix, expected.cut_matrix)


def test_a_save_that_failed_goes_on_behind_the_groups_that_are_there(tmp_path, shared):
    partition = dealt(KINDS["undirected"](), 9)
    partition.save(tmp_path / "expected")
    with pytest.raises(OSError, match="the power is off"):
        partition.save(tmp_path / "made", cluster=Failing(4, tasks=3 + 2), shared=shared)
    assert not (tmp_path / "made").exists()
    damaged, _ = shared.glob("*/parts-*")
    next(damaged.glob("part-*/indices.npy")).write_bytes(b"")
    partition.save(tmp_path / "made", cluster=(engine := Counted(2)), shared=shared)
    assert engine.tasks == [3, 3]  # three counts, then three groups of four, though there are two workers
    same(tmp_path / "made", tmp_path / "expected")
    assert list(shared.iterdir()) == []


class Counted(Threads):
    """An engine that knows how many tasks each stage had."""

    def __init__(self, workers):
        super().__init__(workers)
        self.tasks = []

    def submit(self, task, each):
        self.tasks.append(len(each))
        return super().submit(task, each)


def test_a_second_command_waits_for_the_first(tmp_path, shared):
    partition, refused = dealt(KINDS["undirected"](), 6), []

    class Disturbed(Threads):
        def submit(self, task, each):
            refusal = pytest.raises(
                fp.errors.ParameterError, match=r"^shared: \S+job-\S+ is in use\. At work there: "
            )
            with ThreadPoolExecutor(1) as other, refusal:
                how = {"cluster": Threads(2), "shared": shared}
                other.submit(partition.save, tmp_path / "second", **how).result()
            refused.append(task)
            return super().submit(task, each)

    partition.save(tmp_path / "first", cluster=Disturbed(2), shared=shared)
    assert len(refused) == 2  # while it counted, and while it wrote
    partition.save(tmp_path / "second", cluster=Threads(2), shared=shared)
    same(tmp_path / "first", tmp_path / "second")


def test_another_file_system_gets_copies(tmp_path, shared, monkeypatch):
    def refused(file, target):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr("os.link", refused)
    saved(dealt(KINDS["directed"](), 5), tmp_path, Threads(2), shared)


def test_an_output_that_fails_leaves_the_parts_for_the_next_try(tmp_path, shared, monkeypatch):
    partition = dealt(KINDS["undirected"](), 6)
    partition.save(tmp_path / "expected")
    with monkeypatch.context() as patch:
        patch.setattr("fastpart.store.directory.arrays_of_type", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            partition.save(tmp_path / "made", cluster=Threads(3), shared=shared)
    partition.save(tmp_path / "made", cluster=(engine := Counted(3)), shared=shared)
    assert engine.tasks == [3]  # counts only
    same(tmp_path / "made", tmp_path / "expected")


def test_what_one_machine_must_do_is_refused(tmp_path, shared):
    graph = KINDS["directed"]()
    partition = dealt(graph, 3)
    for out in ("parts.npy", "parts.parquet"):
        with pytest.raises(
            fp.errors.ParameterError, match="a cluster writes the parts of a vertex partition"
        ):
            partition.save(tmp_path / out, cluster=Threads(1), shared=shared)
    edges = fp.algorithms.dbh(graph, 3)
    with pytest.raises(fp.errors.ParameterError, match="a cluster writes the parts of a vertex partition"):
        edges.save(tmp_path / "parts", cluster=Threads(1), shared=shared)
    with pytest.raises(fp.errors.ParameterError, match="an edge partition is measured by one machine"):
        edges.evaluate(cluster=Threads(1), shared=shared)
    with pytest.raises(fp.errors.ParameterError, match="shared: needs cluster="):
        partition.evaluate(shared=shared)
    with pytest.raises(fp.errors.ParameterError, match="shared: name a folder"):
        partition.save(tmp_path / "parts", cluster=Threads(1))


def test_the_command_writes_and_measures_on_the_cluster(tmp_path, shared, monkeypatch, capsys):
    file = tmp_path / "g.npy"
    np.save(file, planted(1500, 9000))
    engines = []

    def engine_of(cluster, folder):
        if isinstance(cluster, Threads):
            return cluster
        assert (cluster, folder) == ("auto", shared)
        engines.append(Counted(3))
        return engines[-1]

    monkeypatch.setattr("fastpart.machines.starting.engine_of", engine_of)
    at = ["--cluster", "auto", "--shared", str(shared), "--json", "--quiet"]
    made = tmp_path / "parts"
    assert main(["partition", str(file), "-k", "4", *at, "-o", str(made)]) == 0
    (engine,) = engines  # the cluster is looked at once
    assert engine.tasks[-2:] == [3, 3]
    printed = json.loads(capsys.readouterr().out)
    partition = fp.open_partition(made, fp.open_graph(file))
    assert partition.parameters["path"] == "two_levels"
    partition.save(tmp_path / "expected")
    same(made, tmp_path / "expected", "run.toml")
    assert main(["evaluate", str(file), str(made), *at]) == 0
    assert json.loads(capsys.readouterr().out) == printed
    assert engines[-1].tasks == [3]
    assert list(shared.iterdir()) == []
    shutil.rmtree(made)
