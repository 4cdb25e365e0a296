"""Access lists: the rows of each batch, found without torch, are those of the loader."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import fastpart as fp
from attributed import attributed
from fastpart import _core
from fastpart.core.pairs import distinct
from fastpart.measures.accesses import accesses

SAMPLINGS = {
    "uniform": {"fanouts": [4, 3]},
    "merged": {"fanouts": [4, 3], "merged": True},
    "weighted": {"fanouts": [4, 3], "sampling": "weighted", "weights": np.random.default_rng(1).random(2000)},
    "labor": {"fanouts": [4, 3], "sampling": "labor"},
    "all": {"fanouts": [2, -1]},
    "seeds only": {"fanouts": []},
}


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    graph, rows = attributed()
    folder = tmp_path_factory.mktemp("accesses") / "parts"
    fp.algorithms.hash(graph, 4).save(folder, **rows)
    return fp.open_partition(folder)


def of_loader(parts, vertices, epochs, **options):
    """Return the distinct rows of each batch of the loader."""
    loader = parts.loader(vertices, **options)
    found = []
    for epoch in epochs:
        loader.set_epoch(epoch)
        found += [np.unique(batch.rows) for batch in loader]
    return found


def is_same(found, expected):
    assert len(found) == len(expected) == len(found.epochs) * found.steps
    assert found.indptr.dtype == np.int64
    assert found.rows.dtype == np.uint32
    for batch, rows in enumerate(expected):
        assert np.array_equal(found.of(batch), rows), batch
    assert found.indptr[-1] == len(found.rows)


@pytest.mark.torch
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize(("rank", "world_size"), [(0, 1), (1, 2), (2, 3), (3, 4), (5, 6)])
def test_rows_are_those_of_the_loader(parts, sampling, rank, world_size):
    options = dict(SAMPLINGS[sampling], batch_size=32, seed=5, rank=rank, world_size=world_size)
    epochs = range(3, 5)
    is_same(
        accesses(parts, epochs=epochs, threads=2, **options), of_loader(parts, "train", epochs, **options)
    )


@pytest.mark.torch
@pytest.mark.parametrize(
    ("vertices", "options"),
    [
        ("train", {"drop_last": True}),
        ("train", {"drop_last": True, "batch_size": 1000}),
        ("train", {"shuffle": False}),
        ("train", {"seed": 7}),
        ("val", {}),
        ("val", {"shuffle": True}),
        (np.arange(0, 300, 7), {"shuffle": True, "drop_last": True}),
        (np.arange(0), {}),
    ],
)
def test_seeds_are_dealt_as_the_loader_deals_them(parts, vertices, options):
    options = {"fanouts": [3, 2], "batch_size": 20, "rank": 1, "world_size": 2, **options}
    is_same(accesses(parts, vertices, **options), of_loader(parts, vertices, range(1), **options))


def test_rows_on_disk_are_those_in_memory(parts, tmp_path):
    options = {"fanouts": [3, 2], "batch_size": 32, "epochs": range(2)}
    stored, kept = accesses(parts, folder=tmp_path, **options), accesses(parts, **options)
    assert isinstance(stored.rows, np.memmap)
    assert np.array_equal(stored.rows, kept.rows)
    assert np.array_equal(stored.indptr, kept.indptr)
    none = accesses(parts, folder=tmp_path, fanouts=[3], epochs=range(0))
    assert (len(none), len(none.rows)) == (0, 0)


def test_samples_of_several_threads_and_of_one_are_the_same(parts):
    options = {"fanouts": [3, 2], "batch_size": 8}
    one, three = (accesses(parts, threads=threads, **options) for threads in (1, 3))
    assert np.array_equal(one.rows, three.rows)


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        ({"rank": 1}, "rank, world_size"),
        ({"rank": 2, "world_size": 2}, "rank"),
        ({"vertices": "training"}, "vertices"),
        ({"batch_size": 0}, "batch_size"),
        ({"fanouts": [-2]}, "fanouts"),
        ({"sampling": "best"}, "sampling"),
    ],
)
def test_wrong_parameters_are_named(parts, wrong, names):
    with pytest.raises(fp.errors.ParameterError, match=f"^{names}"):
        accesses(parts, **{"fanouts": [2], **wrong})


def test_they_need_no_torch():
    code = "import sys; import fastpart.measures.accesses; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@given(arrays(np.uint32, st.integers(0, 50), elements=st.integers(0, 30)))
def test_distinct_values_are_those_of_numpy(values):
    assert np.array_equal(distinct(values), np.unique(values))


@pytest.mark.torch
@pytest.mark.parametrize("io", ["mmap", "direct"])
@pytest.mark.parametrize("options", [{}, {"scheduled": True}, {"ahead": 0, "merged": True}, {"cache": 0.2}])
def test_a_loader_counts_the_rows_that_were_listed(parts, io, options):
    options = {"fanouts": [4, 3], "batch_size": 32, "rank": 1, "world_size": 3, **options}
    loader = parts.loader(io=io, **options)
    list(loader)
    counts, listed = loader.read_counts(), accesses(parts, **{**options, "cache": None})
    assert counts["rows"] == len(listed.rows)
    features = _core.Features(
        [part.folder / "features.npy" for part in parts.parts], parts._topology, direct=io == "direct"
    )
    loader.set_epoch(0)
    assert counts["read_bytes"] == sum(features.bytes_of(batch.rows) for batch in loader)
    loader.read_counts()
    assert set(loader.read_counts().values()) == {0}


@pytest.mark.torch
@pytest.mark.parametrize("io", ["mmap", "direct"])
def test_a_training_counts_the_rows_that_were_listed(parts, io):
    given = {"fanouts": [4, 3], "batch_size": 32, "seed": 3}
    history = fp.train.sampled(parts.folder, workers=2, epochs=2, hidden=8, io=io, **given).history
    for epoch in range(2):
        of_ranks = [
            accesses(parts, epochs=range(epoch, epoch + 1), rank=rank, world_size=2, **given)
            for rank in range(2)
        ]
        assert history["rows"][epoch] == sum(len(each.rows) for each in of_ranks)
    sizes = history["read_bytes"].to_list()
    assert min(sizes) > 0
    if io == "direct" and _core.disk_rates([parts.parts[0].folder / "features.npy"], 0.01):
        features = _core.Features(
            [part.folder / "features.npy" for part in parts.parts], parts._topology, direct=True
        )
        lists = [accesses(parts, rank=rank, world_size=2, **given) for rank in range(2)]
        assert sizes[0] == sum(
            features.bytes_of(each.of(step)) for each in lists for step in range(each.steps)
        )
