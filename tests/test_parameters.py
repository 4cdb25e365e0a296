"""What parameters may be, and what is said of those that may not."""

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.core.calls import full_signature
from soaked import examples
from strategies import edge_lists

EDGES = np.random.default_rng(0).integers(0, 40, (120, 2), dtype=np.uint32)
"""A random graph of 40 vertices."""


def spring(**given):
    return fp.spring(EDGES, **({"k": 3} | given))


def same(one, other):
    return (one.assignment == other.assignment).all() and one.loads.tolist() == other.loads.tolist()


# 20
@pytest.mark.parametrize("k", [0, -1, 2**20 + 1, 2**31, 2**63, 2**64])
def test_k_out_of_range(k):
    text = rf"^k: {k} is not between 1 and 1048576$"
    for call in (lambda: spring(k=k), lambda: fp.VertexPartition([0], k), lambda: fp.EdgePartition([0], k)):
        with pytest.raises(fp.errors.ParameterError, match=text):
            call()


# 20
@pytest.mark.parametrize("k", [True, 2.0, "8", None, [2], np.float64(2), np.bool_(True)])
def test_k_of_another_type(k):
    with pytest.raises(TypeError, match=r"^k: expected an integer, got \w+$"):
        spring(k=k)
    with pytest.raises(TypeError, match=r"^k: "):
        fp.VertexPartition([0], k)


# 20
def test_one_part_and_integers_of_numpy():
    partition = spring(k=1)
    assert not partition.assignment.any()
    assert partition.loads.tolist() == [40]
    for k in (np.int64(3), np.uint8(3), np.array(3)):
        assert same(spring(k=k), spring())


# 21
def test_more_parts_than_vertices_is_valid_with_a_warning():
    with pytest.warns(
        fp.errors.CapacityWarning, match=r"^k=50 parts for 40 vertices\. At least 10 parts are empty$"
    ) as caught:
        partition = spring(k=50)
    assert caught[0].filename == __file__
    assert partition.loads.max() <= partition.cap
    with pytest.warns(fp.errors.CapacityWarning, match="k=1048576 parts"):
        assert len(spring(k=2**20).loads) == 2**20


# 22
@pytest.mark.parametrize("balance", [float("nan"), float("inf"), -float("inf"), -1, 0, 0.5, 0.999999])
def test_balance_below_1_or_not_finite(balance):
    with pytest.raises(fp.errors.ParameterError, match=r"^balance: \S+ is not a ratio of at least 1"):
        spring(balance=balance)


# 22
@pytest.mark.parametrize("balance", [True, "1.1", None, [1.1], 1 + 0j])
def test_balance_of_another_type(balance):
    with pytest.raises(TypeError, match=r"^balance: expected a number, got \w+$"):
        spring(balance=balance)


# 22
@given(edge_lists(40, 80), st.integers(1, 7))
def test_balance_1_is_exactly_the_ceiling_of_the_mean(graph, k):
    n, edges = graph
    if k > n:
        return
    partition = fp.spring(fp.open_graph(edges, num_vertices=n), k=k, balance=1)
    assert partition.cap == -(-n // k)
    assert partition.loads.max() <= partition.cap


# 22
def test_huge_balance_acts_as_k():
    assert same(spring(balance=1e308), spring(balance=3))
    assert spring(balance=1e308).cap == 40
    assert same(spring(balance=np.float32(1.5)), spring(balance=1.5))


# 23
@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seed_out_of_range(seed, tmp_path):
    with pytest.raises(
        fp.errors.ParameterError, match=rf"^seed: {seed} is not between 0 and 18446744073709551615$"
    ):
        spring(seed=seed)
    with pytest.raises(fp.errors.ParameterError, match=r"^seed: "):
        fp.generate.rmat(tmp_path / "g.bin", n=8, m=8, seed=seed)


# 23
@pytest.mark.parametrize("seed", [0.0, "1", True, np.random.default_rng(0)])
def test_seed_of_another_type(seed):
    with pytest.raises(TypeError, match=r"^seed: expected an integer"):
        spring(seed=seed)


# 23
def test_no_seed_is_refused():
    with pytest.raises(TypeError, match=r"seed: None is not repeatable\. Give a number, as in seed=0"):
        spring(seed=None)
    assert spring(seed=2**64 - 1).parameters["seed"] == 2**64 - 1


def running(**options):
    """Call everything that takes threads, memory_limit and progress."""
    opened = fp.open_graph(EDGES)
    partition = fp.VertexPartition(np.zeros(40, int), 1)
    yield lambda: fp.open_graph(EDGES, **options)
    yield lambda: fp.spring(opened, 3, **options)
    yield lambda: opened.degrees(**options)
    yield lambda: fp.evaluate(opened, partition, **options)
    yield lambda: fp.info(opened, **options)


# 24
@pytest.mark.parametrize("threads", [-1, 1025, 10**6, 2**63, 2**64])
def test_threads_out_of_range(threads):
    for call in running(threads=threads):
        with pytest.raises(fp.errors.ParameterError, match=rf"^threads: {threads} "):
            call()


# 24
@pytest.mark.parametrize("threads", [True, 2.0, "2"])
def test_threads_of_another_type(threads):
    for call in running(threads=threads):
        with pytest.raises(TypeError, match=r"^threads: expected an integer"):
            call()


# 24
@pytest.mark.parametrize("threads", [None, 0, 1, 2, 17])
def test_any_number_of_threads_gives_the_same(threads):
    assert same(spring(threads=threads), spring(threads=1))


# 25
@examples(15)
@given(edge_lists(30, 200), st.sampled_from([1, 2, 3, 16, 200, 10**9]), st.integers(1, 5))
def test_a_batch_gives_the_same_for_any_number_of_threads(graph, batch, k):
    n, edges = graph
    opened = fp.open_graph(edges, num_vertices=max(n, k))
    one = fp.spring(opened, k=k, batch=batch, threads=1)
    for threads in (2, 3):
        assert same(fp.spring(opened, k=k, batch=batch, threads=threads), one)


# 25
def test_batches_of_one_of_all_and_of_more():
    m = len(EDGES)
    assert same(spring(batch=None), spring(batch=1))  # few records are decided one by one
    assert same(spring(batch=m), spring(batch=m + 1))
    assert same(spring(batch=m), spring(batch=2**63))


# 25
@pytest.mark.parametrize("name", ["batch", "passes"])
def test_batch_and_passes_refused(name):
    for value in (0, -1, 2**64):
        with pytest.raises(fp.errors.ParameterError, match=rf"^{name}: {value} is not between 1 and"):
            spring(**{name: value})
    for value in (1.0, "1", True):
        with pytest.raises(TypeError, match=rf"^{name}: expected an integer"):
            spring(**{name: value})


def test_more_passes_are_kept_among_the_parameters():
    partition = spring(passes=3, strict=False)
    assert partition.parameters == {
        "k": 3,
        "balance": 1.05,
        "balance_on": None,
        "balance_on_ratio": 1.05,
        "seed": 0,
        "passes": 3,
        "batch": None,
        "strict": False,
    }
    assert partition.cap is None


@pytest.mark.parametrize("strict", ["false", 0, 1, None, np.bool_(True)])
def test_strict_is_a_bool(strict):
    with pytest.raises(TypeError, match=r"^strict: expected True or False, got \w+$"):
        spring(strict=strict)


# 26
@pytest.mark.parametrize(
    "function",
    [
        fp.spring,
        fp.open_graph,
        fp.evaluate,
        fp.info,
        fp.open_partition,
        fp.convert,
        fp.generate.rmat,
        fp.generate.planted,
    ],
)
def test_typos_are_never_swallowed(function):
    kinds = {parameter.kind for parameter in full_signature(function).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds
    with pytest.raises(TypeError, match="blance"):
        function(EDGES, blance=1.1)


# 26
def test_typos_of_save_are_never_swallowed(tmp_path):
    with pytest.raises(TypeError, match="replace"):
        spring().save(tmp_path / "part.npy", replace=True)
    assert list(tmp_path.iterdir()) == []


# Memory.


@pytest.mark.parametrize(
    "limit", [None, "4G", "4g", "4GB", "4 GiB", "1.5G", "512M", "99999K", 2**40, "1T", np.int64(2**33)]
)
def test_memory_limit_in_every_form(limit):
    assert same(spring(memory_limit=limit), spring())


@pytest.mark.parametrize(
    ("limit", "shown"),
    [(123, "123 bytes"), ("1K", "1.0 kB"), ("0.001G", "1.1 MB"), ("7MiB", "7.3 MB"), ("9", "9 bytes")],
)
def test_memory_limit_below_the_need_says_both_numbers(limit, shown):
    with pytest.raises(
        fp.errors.MemoryBudgetError,
        match=rf"needs 8\.4 MB of memory, but the budget is {shown}\. Raise memory_limit",
    ):
        spring(memory_limit=limit)
    with pytest.raises(MemoryError):
        spring(memory_limit=limit)


@pytest.mark.parametrize(
    ("limit", "error"),
    [
        ("", fp.errors.ParameterError),
        ("G", fp.errors.ParameterError),
        ("4X", fp.errors.ParameterError),
        ("-4G", fp.errors.ParameterError),
        ("1e9", fp.errors.ParameterError),
        ("1,5G", fp.errors.ParameterError),
        ("0", fp.errors.ParameterError),
        ("9" * 400, fp.errors.ParameterError),
        ("99999999T", fp.errors.ParameterError),
        (0, fp.errors.ParameterError),
        (-1, fp.errors.ParameterError),
        (2**63, fp.errors.ParameterError),
        (1.5, TypeError),
        (True, TypeError),
        (b"4G", TypeError),
    ],
)
def test_memory_limits_that_are_refused(limit, error):
    for call in running(memory_limit=limit):
        with pytest.raises(error, match=r"^memory_limit: "):
            call()


# Progress.


@pytest.mark.parametrize("progress", ["bar", 3, 1.0])
def test_progress_is_a_bool_or_callable(progress):
    for call in running(progress=progress):
        with pytest.raises(
            TypeError, match=r"^progress: expected True, False or a callable\(phase, done, total\), got \w+$"
        ):
            call()


def test_progress_hears_of_every_step():
    heard = []
    spring(progress=lambda *step: heard.append(step))
    assert heard
    for phase, done, total in heard:
        assert isinstance(phase, str)
        assert 0 <= done <= total


def test_an_exception_of_progress_is_raised():
    def progress(*_):
        raise LookupError("enough")

    for call in running(progress=progress):
        with pytest.raises(LookupError, match="enough"):
            call()


# Degrees.


@pytest.mark.parametrize("dtype", [np.uint32, np.int64, np.uint64, ">u4", np.uint8])
def test_right_degrees_change_nothing(dtype):
    degrees = fp.open_graph(EDGES).degrees().astype(dtype)
    assert same(spring(degrees=degrees), spring())
    assert same(spring(degrees=np.repeat(degrees, 2)[::2]), spring())


def test_wrong_degrees_are_refused():
    degrees = fp.open_graph(EDGES).degrees().astype(np.int64)
    with pytest.raises(fp.errors.ParameterError, match="degrees: 39 degrees for 40 vertices"):
        spring(degrees=degrees[1:])
    with pytest.raises(
        fp.errors.ParameterError, match=r"degrees: they sum to \d+. The records have \d+ ends"
    ):
        spring(degrees=degrees + 1)
    for values in (degrees - 100, degrees + 2**33):
        with pytest.raises(fp.errors.ParameterError, match="degrees: values must fit in uint32"):
            spring(degrees=values)
    for values in (degrees.astype(float), degrees.reshape(2, 20), degrees.tolist(), "count"):
        with pytest.raises(TypeError, match="degrees: expected a one-dimensional numpy array of integers"):
            spring(degrees=values)


# Degrees of the right sum cannot be told from right ones: the result is worse, but valid.
@examples(10)
@given(st.randoms(use_true_random=False), st.integers(1, 9))
def test_degrees_of_other_vertices_break_nothing(random, k):
    degrees = fp.open_graph(EDGES).degrees().tolist()
    random.shuffle(degrees)
    degrees[0], degrees[1] = degrees[0] + degrees[1], 0
    partition = spring(k=k, degrees=np.array(degrees))
    assert partition.loads.tolist() == np.bincount(partition.assignment, minlength=k).tolist()
    assert partition.loads.max() <= partition.cap


# Assignments of the user's own.


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.uint64, ">i4"])
def test_assignments_of_any_integer_type(dtype):
    array = np.array([0, 2, 1, 2], dtype=dtype)
    partition = fp.VertexPartition(array, 3)
    assert partition.assignment.dtype == np.int32
    assert partition.assignment.tolist() == [0, 2, 1, 2]
    assert partition.loads.tolist() == [1, 1, 2]
    array[0] = 1
    assert partition.assignment[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        partition.assignment[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        partition.loads[0] = 1
    assert (partition.algorithm, partition.cap, partition.checksum, len(partition)) == ("user", None, None, 4)
    assert repr(partition) == "<VertexPartition: user, k=3, 4 vertices, loads 1..2>"


@pytest.mark.parametrize(
    ("k", "dtype"), [(255, np.uint8), (256, np.int16), (32_767, np.int16), (32_768, np.int32)]
)
def test_edge_partitions_take_the_narrowest_type(k, dtype):
    partition = fp.EdgePartition([0, k - 1], k)
    assert partition.assignment.dtype == dtype
    assert partition.assignment.tolist() == [0, k - 1]


@pytest.mark.parametrize(
    ("array", "error", "text"),
    [
        ([0, 3, 5], fp.errors.ParameterError, r"record 1 has part 3, outside 0\.\.2 \(k=3\)"),
        ([0, -1], fp.errors.ParameterError, "record 1 has part -1"),
        ([2**64 - 1], fp.errors.ParameterError, "record 0 has part 18446744073709551615"),
        ([0.0], TypeError, "assignment: expected integers, got dtype float64"),
        ([True], TypeError, "assignment: .* got dtype bool"),
        ([[0]], TypeError, r"assignment: expected one part per record, got shape \(1, 1\)"),
        (0, TypeError, r"assignment: .* got shape \(\)"),
        ([None], TypeError, "assignment: .* got dtype object"),
    ],
)
def test_assignments_that_are_refused(array, error, text):
    with pytest.raises(error, match=text):
        fp.EdgePartition(array, 3)
