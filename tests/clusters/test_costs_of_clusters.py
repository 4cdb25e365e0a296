"""What a partition on a cluster takes is said before, and holds."""

import json
import sys

import pytest

import fastpart as fp
from fastpart.cli import main
from fastpart.machines.engine import Threads
from fastpart.machines.partitioning import Place
from fastpart.partitions.partitioners.builtin import on_machines

K = 32


class Watched(Threads):
    """Replicas that look at the size of a folder in each superstep."""

    def __init__(self, workers, folder):
        super().__init__(workers)
        self.folder, self.largest = folder, 0

    def replicas(self, program):
        def watching(number, count, exchange):
            def looked(message):
                sizes = (file.stat().st_size for file in self.folder.rglob("*") if file.is_file())
                self.largest = max(self.largest, sum(sizes)) if number == 0 else self.largest
                return exchange(message)

            return program(number, count, looked)

        return super().replicas(watching)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    file = tmp_path_factory.mktemp("graph") / "g.bin"
    fp.generate.planted(file, n=1 << 15, m=1 << 19)
    return fp.open_graph(file)


def on(engine, graph, folder, **given):
    return on_machines(
        "multilevel",
        Place(engine, folder),
        graph,
        K,
        path="two_levels",
        sample=0.25,
        threads=1,
        **given,
    )


@pytest.mark.parametrize("workers", [1, 4])
def test_bytes_are_those_that_were_predicted(graph, workers, tmp_path):
    said = fp.info(graph, K, cluster=workers)["cluster"]
    made = on(Threads(workers), graph, tmp_path)
    assert made.costs["predicted_messages"] == said["messages"]
    assert 0.8 < made.costs["messages"] / said["messages"] < 1.25
    assert (said["machines"], said["sample"]) == (workers, 0.25)


def test_vertices_without_neighbours_send_next_to_nothing():
    edges = [[0, 1], [1, 2]]
    few = fp.info(fp.open_graph(edges), cluster=2)["cluster"]["messages"]
    assert fp.info(fp.open_graph(edges, num_vertices=1000), cluster=2)["cluster"]["messages"] == few


def test_the_shared_folder_and_memory_hold_what_is_made(graph, tmp_path):
    said = fp.info(graph, K, cluster=3)["cluster"]
    engine = Watched(3, tmp_path)
    on(engine, graph, tmp_path, memory_limit=said["memory"])
    assert said["shared"] / 2 < engine.largest <= said["shared"]
    with pytest.raises(fp.errors.MemoryBudgetError):
        on(Threads(3), graph, tmp_path, memory_limit=said["memory"] // 2)


def test_one_machine_is_enough_where_a_plan_fits(graph):
    facts = fp.info(graph, K, cluster=2)
    assert facts["cluster"]["one_machine"] == facts["plans"][-1]
    least = facts["plans"][0]["memory"]
    assert fp.info(graph, K, cluster=2, memory_limit=least)["cluster"]["one_machine"] == facts["plans"][0]
    assert fp.info(graph, K, cluster=2, memory_limit=least - 1)["cluster"]["one_machine"] is None
    assert "cluster" not in fp.info(graph, K)
    assert json.loads(json.dumps(facts)) == facts


def test_the_command_line_says_it(graph, capsys):
    file = str(graph.path)
    assert main(["info", file, "-k", "32", "--cluster", "4"]) == 0
    text = capsys.readouterr().out
    assert "multilevel on a cluster, machines: 4, sample: 0.25" in text
    assert "this machine   enough with path memory" in text
    least = fp.info(graph, K)["plans"][0]["memory"]
    assert main(["info", file, "-k", "32", "--cluster", "4", "--memory-limit", str(least - 1)]) == 0
    assert "this machine   too small" in capsys.readouterr().out
    assert main(["info", file, "--cluster", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cluster"]["machines"] == 4


def test_other_clusters_are_refused(graph, monkeypatch):
    for cluster in (0, -1, 1 << 20):
        with pytest.raises(fp.errors.ParameterError, match="cluster"):
            fp.info(graph, cluster=cluster)
    for cluster in (True, 2.5, [2]):
        with pytest.raises(TypeError, match="cluster"):
            fp.info(graph, cluster=cluster)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(fp.errors.ParameterError, match="cluster= needs ray"):
        fp.info(graph, cluster="auto")
