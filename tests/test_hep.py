"""HEP from Python: its parameters, and what it says if memory is short. The oracle: `tests/partitioners/hep.rs`."""

import re

import numpy as np
import pytest

import fastpart as fp
import oracles

STAR = np.array([[0, v] for v in range(1, 2001)] + [[v, v + 1] for v in range(1, 2000)])


def test_parameters_are_kept_and_every_record_has_one_part():
    partition = fp.algorithms.hep(STAR, 8, tau=3)
    assert (partition.of, partition.parameters) == (
        "edges",
        {"k": 8, "balance": 1.05, "tau": 3.0, "refine": False, "seed": 0},
    )
    assert partition.cap == -(-105 * len(STAR) // 800)
    assert (np.bincount(partition.assignment, minlength=8) == partition.loads).all()
    assert partition.loads.max() <= partition.cap
    evaluation = fp.evaluate(STAR, partition)
    expected = oracles.replicas(STAR.tolist(), partition.assignment.tolist(), 8)
    assert evaluation.parts["replicas"].to_list() == list(map(len, expected))


def test_the_seed_is_that_of_the_order():
    one, other = fp.algorithms.hep(STAR, 8, seed=1), fp.algorithms.hep(STAR, 8, seed=2)
    assert (one.assignment != other.assignment).any()
    assert (fp.algorithms.hep(STAR, 8, seed=1, threads=3).assignment == one.assignment).all()


@pytest.mark.parametrize("tau", [-1, float("nan"), "most"])
def test_wrong_tau(tau):
    with pytest.raises(fp.errors.ParameterError, match=r"tau: "):
        fp.algorithms.hep(STAR, 2, tau=tau)


def test_fit_needs_a_limit_and_says_what_it_took():
    with pytest.raises(fp.errors.ParameterError, match=r"tau: .*memory_limit"):
        fp.algorithms.hep(STAR, 4, tau="fit")
    partition = fp.algorithms.hep(STAR, 4, tau="fit", memory_limit="64M")
    again = fp.algorithms.hep(STAR, 4, tau=partition.parameters["tau"])
    assert (again.assignment == partition.assignment).all()


def test_a_refusal_names_the_largest_tau_that_fits():
    edges = np.random.default_rng(1).integers(0, 20_000, (2_000_000, 2), dtype=np.uint32)
    given = {"threads": 1, "memory_limit": "16M"}
    with pytest.raises(fp.errors.MemoryBudgetError, match=r"tau = [0-9.]+ fits") as refused:
        fp.algorithms.hep(edges, 4, tau=100, **given)
    largest = float(re.search(r"tau = ([0-9.]+) fits", str(refused.value))[1])
    partition = fp.algorithms.hep(edges, 4, tau=largest, **given)
    assert partition.loads.sum() == len(edges)
    assert fp.algorithms.hep(edges, 4, tau="fit", **given).parameters["tau"] == largest
