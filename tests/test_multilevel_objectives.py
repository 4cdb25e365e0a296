"""The objectives of the multilevel partitioner, and machines: parameters, errors, the command line."""

import numpy as np
import pytest

import fastpart as fp
from fastpart.cli import main


@pytest.fixture(scope="module")
def edges():
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 400, (3000, 2)) % rng.integers(1, 400, (3000, 1))
    return fp.open_graph(ends.astype(np.uint32), num_vertices=400)


def cut_between_machines(records, partition, per_machine):
    machine = np.asarray(partition) // per_machine
    return int((machine[records[:, 0]] != machine[records[:, 1]]).sum())


def test_the_halo_falls(edges):
    cut, halo = (fp.multilevel(edges, 8, objective=objective) for objective in ("cut", "halo"))
    factors = [fp.evaluate(edges, made).summary["halo_rf"][0] for made in (cut, halo)]
    assert factors[1] < factors[0]
    assert halo.loads.max() <= halo.cap == cut.cap
    assert halo == fp.multilevel(edges, 8, objective="halo", threads=3)
    assert halo.parameters["objective"] == "halo"


def test_machines(edges):
    made = fp.partition(edges, 8, machines=[4, 4])
    assert made == fp.multilevel(edges, 8, machines=np.array([4, 4]), volume_balance=2.0, threads=2)
    assert made.loads.max() <= made.cap
    assert made.parameters["machines"] == [4, 4]
    assert fp.multilevel(edges, 3, machines=(3,)) == fp.multilevel(edges, 3)


def test_machines_under_a_time_limit(edges):
    limited = fp.multilevel(edges, 8, machines=[4, 4], effort="best", time_limit=0.2)
    rounds = limited.parameters.get("rounds")
    again = (
        fp.multilevel(edges, 8, machines=[4, 4])
        if rounds is None
        else fp.multilevel(edges, 8, machines=[4, 4], effort="best", rounds=rounds, threads=2)
    )
    assert np.array_equal(limited.assignment, again.assignment)


@pytest.mark.parametrize("machines", [[4, 3], [8, 8], []])
def test_machines_that_are_not_k_parts(edges, machines):
    with pytest.raises(fp.errors.ParameterError, match=r"machines: .*k is 8"):
        fp.partition(edges, 8, machines=machines)


@pytest.mark.parametrize("machines", [[0, 8], [-1, 9]])
def test_machines_without_parts(edges, machines):
    with pytest.raises(fp.errors.ParameterError, match="machines"):
        fp.multilevel(edges, 8, machines=machines)


@pytest.mark.parametrize("machines", [8, "8,8", [4.0, 4.0], [True, 7]])
def test_machines_of_other_types(edges, machines):
    with pytest.raises(TypeError, match="machines"):
        fp.multilevel(edges, 8, machines=machines)


def test_refusals(edges):
    with pytest.raises(fp.errors.ParameterError, match="objective"):
        fp.multilevel(edges, 8, objective="edges")


def test_command_line(tmp_path, capsys):
    file = tmp_path / "edges.npy"
    rng = np.random.default_rng(1)
    np.save(file, rng.integers(0, 100, (500, 2)).astype(np.uint32))
    out = tmp_path / "parts.npy"
    options = ["-k", "4", "--objective", "halo", "--machines", "2,2", "--out", str(out)]
    assert main(["partition", str(file), *options]) in (0, None)
    graph = fp.open_graph(file)
    assert np.array_equal(np.load(out), fp.multilevel(graph, 4, objective="halo", machines=[2, 2]).assignment)
    assert (
        main(["partition", str(file), "-k", "4", "--machines", "2,3", "--out", str(tmp_path / "no.npy")]) != 0
    )
    assert "machines" in capsys.readouterr().err
