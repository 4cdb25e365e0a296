"""The default bound on volume where hubs would break it."""

import numpy as np
import pytest

import fastpart as fp
from fastpart.partitions.partitioners.choice import VOLUME_BALANCE
from fastpart.partitions.partitioners.speed import slowness


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """Return a graph in which an eighth of the vertices has nearly all edges."""
    return fp.generate.rmat(tmp_path_factory.mktemp("graph") / "g.bin", n=1 << 18, m=1 << 22)


def test_parts_of_a_graph_with_hubs_keep_both_bounds(graph):
    p = fp.partition(graph, 8)
    volumes = np.bincount(p.assignment, weights=graph.degrees() + np.int64(1), minlength=8)
    assert volumes.tolist() == p.volume_loads.tolist()
    mean = (2 * (graph.num_edges - p.loops) + graph.num_vertices) / 8
    assert volumes.max() <= p.volume_cap == np.ceil(VOLUME_BALANCE * mean)
    assert p.loads.max() <= p.cap
    # Four parts at the bound hold all edges, and the others have their share of the vertices.
    assert p.loads.min() > 0.5 * graph.num_vertices / 8
    # Less is cut than by parts at random (7/8), however close the bound.
    assert p.evaluate().cut_ratio < 0.72


def test_predicted_seconds_know_hubs_and_the_bound(graph, tmp_path):
    plain = fp.generate.planted(tmp_path / "p.bin", n=1 << 18, m=1 << 22, classes=16)

    def seconds(of):
        return fp.info(of, k=8, threads=1)["plans"][-1]["seconds"]["cached"]

    assert seconds(graph) > 1.5 * seconds(plain)


def test_the_speed_of_the_machine_is_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = tmp_path / "fastpart" / "speed.json"
    slowness.cache_clear()
    try:
        first = slowness()
        assert 0.05 < first < 50
        kept = file.read_bytes()
        slowness.cache_clear()
        monkeypatch.setattr("fastpart.partitions.partitioners.speed._measured", lambda: pytest.fail("again"))
        assert slowness() == pytest.approx(first, abs=1e-4)
        # A damaged file, and that of another machine, is measured anew.
        for damage in (kept.replace(b"slowness", b"slowmess"), b"{}", kept[:20]):
            file.write_bytes(damage)
            slowness.cache_clear()
            monkeypatch.setattr("fastpart.partitions.partitioners.speed._measured", lambda: 0.31)
            assert slowness() == pytest.approx(2.0)
            assert file.read_bytes() != damage
    finally:
        slowness.cache_clear()
