"""The head of a cluster dies in the midst of a job. On another cluster, the same command goes on."""

import subprocess
import sys
import time

import numpy as np
import pytest
from emulated import cluster
from test_bits import planted

import fastpart as fp

ray = pytest.importorskip("ray")

import driver  # noqa: E402

from fastpart.machines.on_ray import RayEngine  # noqa: E402


@pytest.mark.soak
@pytest.mark.timeout(400)
@pytest.mark.parametrize("seen", ["counts.json", "pieces.bin"])
def test_a_lost_head_ends_the_command_and_the_next_goes_on(tmp_path, seen):
    file, shared = tmp_path / "g.npy", tmp_path / "shared"
    np.save(file, planted(6400, 40_000))
    shared.mkdir()
    command = [sys.executable, driver.__file__, "ADDRESS", file, shared, tmp_path / "mark", "none"]
    with cluster(2) as made:
        command[2] = made.address
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            end = time.monotonic() + 60
            while not list(shared.glob(f"*/{seen}")):
                assert time.monotonic() < end
                time.sleep(0.01)
            ray.shutdown()
            made.head_node.kill_all_processes(check_alive=False, allow_graceful=False)
            output, _ = process.communicate(timeout=200)
        assert process.returncode
        assert "Failed to connect to GCS" in output  # Ray ends the process itself
    graph = fp.open_graph(file, num_vertices=6400)
    with cluster(2):
        again = driver.partition(RayEngine(), graph, shared)
    np.testing.assert_array_equal(again.assignment, fp.multilevel(graph, 8, **driver.GIVEN).assignment)
    assert list(shared.iterdir()) == []
