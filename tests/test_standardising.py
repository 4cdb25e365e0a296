"""Standardised features: mean 0 and deviation 1 on the training vertices, whatever type is stored."""

import numpy as np
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import fastpart as fp
from attributed import attributed
from coded import FEATURES, WIDTH, N, encoded, numbers_of, saved, with_fields
from fastpart.cli import main
from fastpart.core import rows as row_chunks
from fastpart.core.rows import rows_of
from fastpart.partitions.coding import Coding

TRAIN = np.random.default_rng(5).permutation(N)[:170]
REST = np.setdiff1d(np.arange(N), TRAIN)
SPLITS = {"train": TRAIN, "val": REST[::2], "test": REST[1::2]}


def oracle(features, train):
    """Return what is subtracted, and what is divided by: in one piece, in more digits."""
    rows = features[train].astype(np.longdouble)
    constant = (rows == rows[0]).all(axis=0)
    return np.where(constant, rows[0], rows.mean(axis=0)), np.where(constant, 1, rows.std(axis=0))


def expected(features, train=TRAIN):
    mean, deviation = oracle(features, train)
    return ((features - mean) / deviation).astype(np.float64)


def statistics_of(stored):
    return np.load(stored.folder / "feature_statistics.npy")


@pytest.fixture(params=list(FEATURES))
def features(request):
    return FEATURES[request.param]


@given(
    arrays(
        np.float32, st.tuples(st.integers(1, 40), st.integers(1, 4)), elements=st.floats(-1e6, 1e6, width=32)
    ),
    st.integers(1, 5),
    st.data(),
)
def test_statistics_are_those_of_numpy_for_blocks_of_any_size(rows, block, data):
    chosen = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)).filter(any))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(row_chunks, "_BLOCK_BYTES", 8 * rows.shape[1] * block)
        found, statistics = row_chunks.standardised(rows_of("x", rows), np.array(chosen))
    mean, deviation = oracle(rows, np.flatnonzero(chosen))
    largest = np.abs(rows[chosen]).max(axis=0).astype(np.float64)
    assert (np.abs(statistics[0] - mean) <= 1e-12 * largest).all()
    assert (np.abs(statistics[1] - deviation) <= 1e-8 * deviation + 1e-12 * largest).all()
    np.testing.assert_array_equal(found.read(0, len(rows)), (rows - statistics[0]) / statistics[1])


def test_a_column_that_is_constant_on_the_training_vertices_is_only_shifted(tmp_path):
    features = np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32)
    features[:, 0] = 0.1
    features[TRAIN, 1] = 0.3
    stored = saved(tmp_path / "parts", features, splits=SPLITS, standardise=True)
    found = numbers_of(stored)
    assert (found[:, 0] == 0).all()
    assert (found[TRAIN, 1] == 0).all()
    shifted = (features[REST, 1].astype(np.float64) - np.float32(0.3)).astype(np.float32)
    np.testing.assert_array_equal(found[REST, 1], shifted)
    assert statistics_of(stored)[:, :2].tolist() == [[np.float32(0.1), np.float32(0.3)], [1, 1]]


def test_large_offsets_keep_their_digits(tmp_path):
    features = 1.7e9 + np.random.default_rng(0).normal(size=(N, 1))
    found = numbers_of(saved(tmp_path / "parts", features, splits=SPLITS, standardise=True))
    np.testing.assert_allclose(found, expected(features), atol=1e-4)
    assert found[TRAIN].std() == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("dtype", [None, "float32", "float16", "int8"])
def test_every_type_stores_standardised_rows(tmp_path, features, dtype):
    stored = saved(tmp_path / "parts", features, splits=SPLITS, standardise=True, feature_dtype=dtype)
    mean, deviation = oracle(features, TRAIN)
    np.testing.assert_allclose(
        statistics_of(stored), np.stack([mean, deviation]).astype(np.float64), rtol=1e-12
    )
    error = {"float16": 2e-2, "int8": stored.manifest["features"].get("coding", {}).get("largest_error")}
    found, wanted = numbers_of(stored), expected(features)
    assert np.abs(found - wanted).max() <= error.get(dtype, 1e-5) + 1e-5
    if dtype is None:
        assert np.abs(found[TRAIN].mean(axis=0)).max() < 1e-6
        assert stored.manifest["features"] == {"dtype": "float32", "shape": [WIDTH]}
    assert fp.store.verify(stored.folder).foreign == ()
    assert "feature_statistics.npy" in stored.manifest["files"]


def test_rows_given_with_8_bits_are_coded_anew(tmp_path):
    coded = encoded(FEATURES["row"])
    numbers = Coding(WIDTH).decode(coded)
    found = saved(tmp_path / "parts", with_fields(coded), splits=SPLITS, standardise=True)
    assert found.manifest["features"]["coding"]["rms_error"] < 0.02
    same = saved(tmp_path / "same", numbers, splits=SPLITS, standardise=True, feature_dtype="int8")
    for one, other in zip(found.parts, same.parts, strict=True):
        np.testing.assert_array_equal(one.stored_features, other.stored_features)


@pytest.mark.parametrize("kind", ["sparse", "parquet", "bool", "masks"])
def test_every_input_is_standardised(tmp_path, kind):
    features, given, splits = FEATURES["row"], FEATURES["row"], SPLITS
    if kind == "sparse":
        given = scipy.sparse.csr_array(features)
    elif kind == "parquet":
        given = tmp_path / "x.parquet"
        pl.DataFrame(features).write_parquet(given)
    elif kind == "bool":
        features = given = features > 0
    else:
        splits = {name: np.isin(np.arange(N), ids) for name, ids in SPLITS.items()}
    stored = saved(tmp_path / "parts", given, splits=splits, standardise=True)
    np.testing.assert_allclose(numbers_of(stored), expected(features), rtol=1e-6, atol=1e-6)


def test_halos_and_parts_of_edges_hold_standardised_rows(tmp_path, features):
    wanted = expected(features)
    for part in saved(tmp_path / "p", features, splits=SPLITS, standardise=True, halo_features=True).parts:
        np.testing.assert_allclose(part.halo_features, wanted[part.halo], rtol=1e-5, atol=1e-6)
    graph, _ = attributed()
    more = {"features": features, "splits": SPLITS, "standardise": True}
    fp.algorithms.dbh(graph, k=3).save(tmp_path / "edges", graph=graph, **more)
    for part in fp.open_partition(tmp_path / "edges").parts:
        np.testing.assert_allclose(part.features, wanted[part.vertices], rtol=1e-5, atol=1e-6)


def test_what_cannot_be_standardised_is_refused_by_name(tmp_path):
    features = FEATURES["row"]

    def refused(text, features=features, **more):
        with pytest.raises(fp.errors.ParameterError, match=text):
            saved(tmp_path / "parts", features, **{"splits": SPLITS, "standardise": True, **more})
        assert not (tmp_path / "parts").exists()

    refused("standardise: takes the statistics of the training vertices. Pass splits=", splits=None)
    refused("standardise: the splits have no training vertices", splits={"val": TRAIN})
    refused("standardise: the splits have no training vertices", splits={"train": np.zeros(N, bool)})
    graph, _ = attributed()
    with pytest.raises(fp.errors.ParameterError, match="standardise: there are no features"):
        fp.VertexPartition(np.zeros(N, int), 1).save(
            tmp_path / "parts", graph=graph, splits=SPLITS, standardise=True
        )
    broken = features.copy()
    broken[TRAIN[7], 2] = np.inf
    refused(f"features: row {TRAIN[7]} of a training vertex has no finite numbers", broken)
    with pytest.raises(TypeError, match="standardise"):
        saved(tmp_path / "parts", features, splits=SPLITS, standardise="yes")


def test_the_command_line_standardises(tmp_path):
    records = np.random.default_rng(0).integers(0, N, (1000, 2)).astype(np.uint32)
    np.save(tmp_path / "g.npy", records)
    np.save(tmp_path / "x.npy", FEATURES["row"])
    np.savez(tmp_path / "s.npz", **SPLITS)
    words = ["g.npy", "-k", "2", "--algorithm", "spring", "-o", "parts/", "--features", "x.npy"]
    words += ["--splits", "s.npz", "--num-vertices", str(N), "--standardise", "-q"]
    words = [str(tmp_path / word) if word.endswith((".npy", ".npz", "/")) else word for word in words]
    assert main(["partition", *words]) == 0
    found = numbers_of(fp.open_partition(tmp_path / "parts"))
    np.testing.assert_allclose(found, expected(FEATURES["row"]), rtol=1e-5, atol=1e-6)
