"""The multilevel partitioner: caps, cuts recounted, refusals, and METIS's cuts on real graphs."""

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from soaked import some_of
from strategies import edge_lists

DATA = Path(__file__).parents[2] / "shared" / "data"
SHIPPED = Path(__file__).parents[1] / "python" / "fastpart" / "datasets"

# METIS, k-way, ufactor 30, median of three to five seeds: the cut ratio for 4, 8 and 32 parts.
METIS = {
    "amazon-computers": (0.1364, 0.2247, 0.4369),
    "cora": (0.0638, 0.0959, 0.1898),
    "email-enron": (0.1984, 0.2602, 0.3928),
    "fb100-cornell5": (0.3237, 0.4312, 0.6279),
    "tolokers": (0.2742, 0.4133, 0.7201),
}
# With two constraints: vertices within 1.03 of the mean, volume within 1.10.
METIS_OF_TWO = {"amazon-computers": (0.230, 0.383, 0.551)}
PARTS = (4, 8, 32)


def edges_of(name):
    """Return the records of a real graph, or skip."""
    file, shipped = DATA / name / "edges.npy", SHIPPED / f"{name}.txt.gz"
    if file.exists():
        return np.load(file)
    if shipped.exists():
        return np.loadtxt(shipped, dtype=np.uint32)
    pytest.skip(f"no {name} here")


def cap_of(balance, items, k):
    return math.ceil(min(balance, k) * items / k)


@given(edge_lists(max_n=30, max_m=80), st.integers(1, 8), st.sampled_from([None, 1.0, 1.1]))
@pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")
def test_caps_hold(graph, k, volume_balance):
    n, records = graph
    edges = fp.open_graph(records, num_vertices=n)
    made = fp.multilevel(edges, k=k, volume_balance=volume_balance)
    assert made.loads.tolist() == np.bincount(made.assignment, minlength=k).tolist()
    assert made.loads.max(initial=0) <= made.cap == cap_of(1.03, n, k)
    if volume_balance is None:
        assert made.volume_cap is None
    else:
        proper = records[records[:, 0] != records[:, 1]]
        volumes = np.bincount(proper.ravel(), minlength=n) + 1
        assert made.volume_loads.tolist() == [volumes[made.assignment == part].sum() for part in range(k)]
        assert max(made.volume_loads) <= made.volume_cap


def test_one_direction_is_not_symmetric():
    records = np.array([[0, 1], [1, 2]], dtype=np.uint32)
    with pytest.raises(fp.errors.ParameterError, match="directedness"):
        fp.multilevel(fp.open_graph(records, directedness="symmetric"), k=2)
    both = np.concatenate([records, records[:, ::-1]])
    assert fp.multilevel(fp.open_graph(both, directedness="symmetric"), k=2).loads.sum() == 3


def test_a_vertex_above_the_cap_on_volume():
    star = np.array([[0, v] for v in range(1, 40)], dtype=np.uint32)
    with pytest.warns(fp.errors.CapacityWarning, match="volume_balance"):
        made = fp.multilevel(star, k=4, volume_balance=1.0)
    assert max(made.volume_loads) <= made.volume_cap
    with pytest.raises(fp.errors.CapacityError):
        fp.multilevel(star, k=4, volume_balance=1.0, on_infeasible="error")


@pytest.mark.parametrize("name", some_of(METIS, ["amazon-computers", "cora", "email-enron"]))
def test_cuts_less_than_metis(name):
    edges = fp.open_graph(edges_of(name))
    ratios = []
    for k, metis in zip(PARTS, METIS[name], strict=True):
        made = fp.multilevel(edges, k=k)
        assert made.loads.max() <= made.cap
        ratios.append(fp.evaluate(edges, made).summary["cut_ratio"][0] / metis)
    assert math.prod(ratios) ** (1 / len(ratios)) <= 0.95, ratios
    assert max(ratios) <= 1.02, ratios


@pytest.mark.parametrize("k", [2, 4])
def test_quick_boundaries_of_a_grid_are_nearly_straight(tmp_path, k):
    """Straight ones cut the side of the grid once for two parts, and twice for four."""
    side = 120
    grid = fp.generate.grid(tmp_path / "grid.bin", rows=side, columns=side)
    for seed in range(3):
        made = fp.multilevel(grid, k, effort="quick", seed=seed)
        assert made.evaluate().cut_matrix[np.triu_indices(k, 1)].sum() <= 1.2 * side * k / 2


@pytest.mark.parametrize("name", METIS_OF_TWO)
def test_cuts_under_two_bounds(name):
    edges = fp.open_graph(edges_of(name))
    for k, metis in zip(PARTS, METIS_OF_TWO[name], strict=True):
        made = fp.multilevel(edges, k=k, volume_balance=1.1)
        assert made.loads.max() <= made.cap
        assert max(made.volume_loads) <= made.volume_cap
        assert fp.evaluate(edges, made).summary["cut_ratio"][0] <= 1.15 * metis


def test_weights_are_balanced():
    edges = fp.open_graph(edges_of("cora"))
    mask = np.random.default_rng(0).random(edges.num_vertices) < 0.1
    made = fp.multilevel(edges, k=8, balance_on=mask)
    assert max(made.weight_loads) <= made.weight_cap
    assert fp.evaluate(edges, made).summary["cut_ratio"][0] <= 0.13


def leanest(file, k):
    """Return the least memory limit that the partitioner accepts, to 10 %."""
    limit = 1 << 20
    while True:
        try:
            fp.multilevel(file, k, memory_limit=limit)
        except fp.errors.MemoryBudgetError:
            limit = limit * 11 // 10
        else:
            return limit


def cut_of(edges, made):
    return fp.evaluate(edges, made).summary["cut_ratio"][0]


@pytest.mark.parametrize(
    ("name", "volume_balance"),
    some_of(
        product(["amazon-computers", "email-enron"], [None, 1.1]),
        [("email-enron", None), ("amazon-computers", 1.1)],
    ),
)
def test_levels_in_files_cut_as_few_edges(name, volume_balance):
    edges = fp.open_graph(edges_of(name))
    for k in (4, 32) if volume_balance is None else (8,):
        in_memory = fp.multilevel(edges, k, volume_balance=volume_balance)
        for path, sample in [("one_level", 0.5), ("two_levels", 0.1)]:
            made = fp.multilevel(edges, k, volume_balance=volume_balance, path=path, sample=sample)
            assert made.loads.max() <= made.cap
            if volume_balance is not None:
                assert max(made.volume_loads) <= made.volume_cap
            assert cut_of(edges, made) <= 1.08 * cut_of(edges, in_memory), (k, path)


def test_a_memory_limit_picks_the_path_and_the_result_names_it(tmp_path):
    file = tmp_path / "g.bin"
    edges = fp.generate.rmat(file, n=1 << 14, m=200_000)
    roomy = fp.multilevel(file, 8, memory_limit="1G")
    assert (roomy.parameters["path"], roomy.parameters["sample"]) == ("memory", None)
    assert roomy == fp.multilevel(edges, 8, path="memory")
    limit = leanest(file, 8)
    for factor in (1.0, 1.2):
        tight = [fp.multilevel(file, 8, memory_limit=int(factor * limit), threads=t) for t in (1, 3)]
        assert {made.parameters["path"] for made in tight} <= {"one_level", "two_levels"}
        for made in tight:
            # The adjacency lies in memory here, and in a file there.
            again = fp.multilevel(edges, **made.parameters)
            assert (made.assignment == again.assignment).all()
            assert made.parameters == again.parameters
            assert made.loads.max() <= made.cap
            assert cut_of(edges, made) <= 1.05 * cut_of(edges, roomy)
    with pytest.raises(fp.errors.MemoryBudgetError, match="multilevel on"):
        fp.multilevel(edges, 8, path="memory", memory_limit=limit)


def test_checkpoints_of_an_interrupted_run_are_used(tmp_path):
    edges = fp.generate.rmat(tmp_path / "g.bin", n=1 << 14, m=300_000)
    how = {"path": "two_levels", "sample": 0.2}
    folder = tmp_path / "steps"

    def stop(*_progress):
        if (folder / "checkpoint-lists-0.bin").exists():
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fp.multilevel(edges, 8, **how, checkpoints=folder, progress=stop)
    assert (folder / "checkpoint.txt").read_text().endswith("path=two_levels, sample=0.2\n")
    with pytest.raises(fp.errors.ParameterError, match=r"checkpoints: .*k=8 there, k=9 here"):
        fp.multilevel(edges, 9, **how, checkpoints=folder)
    made = fp.multilevel(edges, 8, checkpoints=folder)
    assert (made.parameters["path"], made.parameters["sample"]) == ("two_levels", 0.2)
    assert "checkpoints" not in made.parameters
    assert made == fp.multilevel(edges, 8, **how)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"path": "disk"}, "path"),
        ({"sample": 0.5}, "sample"),
        ({"path": "memory", "sample": 0.5}, "sample"),
        ({"path": "two_levels", "sample": 0}, "sample"),
        ({"path": "one_level", "machines": [1, 1]}, "path"),
    ],
)
def test_paths_and_samples_that_do_not_go_together(wrong, name):
    with pytest.raises(fp.errors.ParameterError, match=name):
        fp.multilevel(np.array([[0, 1], [1, 2]], dtype=np.uint32), 2, **wrong)
