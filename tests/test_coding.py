"""Features with 8 bits per number: what is stored, what readers get, and what is refused."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import fastpart as fp
from attributed import attributed
from coded import FEATURES, WIDTH, N, encoded, numbers_of, saved, with_fields
from fastpart.cli import main
from fastpart.core.rows import rows_of
from fastpart.partitions.coding import COLUMNS, CodedRows, Coding


def oracle(codes, low, step):
    """Return the numbers of codes."""
    return np.float32(low) + np.float32(step) * codes.astype(np.float32)


def decoded_by_row(coded, width):
    scales = np.ascontiguousarray(coded[:, width:]).view(np.float32)
    return oracle(coded[:, :width], scales[:, :1], scales[:, 1:])


@pytest.fixture(scope="module", params=list(FEATURES))
def scale(request):
    return request.param


@pytest.fixture(scope="module")
def stored(scale, tmp_path_factory):
    return saved(tmp_path_factory.mktemp(scale) / "parts", FEATURES[scale], feature_dtype="int8")


@pytest.fixture(scope="module")
def plain(scale, stored, tmp_path_factory):
    """Return the same directory with the decoded numbers as plain float32."""
    return saved(tmp_path_factory.mktemp(scale) / "parts", numbers_of(stored))


LARGE = 2.0**99
finite = st.floats(-LARGE, LARGE, width=32, allow_subnormal=False)
rows_of_numbers = arrays(np.float32, st.tuples(st.integers(1, 8), st.integers(1, 9)), elements=finite)


@given(rows_of_numbers, st.booleans())
def test_every_number_is_within_half_a_step(numbers, by_row):
    axis = 1 if by_row else 0
    low, high = numbers.min(axis=axis), numbers.max(axis=axis)
    step = (high - low) / np.float32(255)
    scales = None if by_row else np.stack([low, step])
    coding = Coding(numbers.shape[1], scales)
    coded = coding.encode(numbers)
    assert coded.tobytes() == encoded(numbers, scales).tobytes()
    found = coding.decode(coded)
    expected = decoded_by_row(coded, numbers.shape[1]) if by_row else oracle(coded, low, step)
    assert found.tobytes() == expected.tobytes()
    if by_row:
        low, high, step = low[:, None], high[:, None], step[:, None]
    rounding = 4 * np.spacing(np.maximum(np.abs(low), np.abs(high)).astype(np.float64).astype(np.float32))
    error = np.abs(found.astype(np.float64) - numbers)
    assert (error <= step.astype(np.float64) * 0.5001 + rounding).all()


def test_the_scale_that_changes_a_sample_less_is_chosen(stored, scale):
    described = stored.manifest["features"]
    assert described["coding"]["scale"] == scale
    assert (described["dtype"], described["shape"]) == ("float32", [WIDTH])
    assert (stored.folder / COLUMNS).exists() == (scale == "column")
    width = WIDTH + (8 if scale == "row" else 0)
    for part in stored.parts:
        assert part.stored_features.dtype == np.uint8
        assert part.stored_features.shape == (part.num_inner, width)
        assert part.features.dtype == np.float32
        some = np.arange(0, part.num_inner, 3)
        np.testing.assert_array_equal(part.features_of(some), part.features[some])


def test_the_manifest_states_the_error(stored, scale):
    original, found = FEATURES[scale], numbers_of(stored)
    error = np.abs(found.astype(np.float64) - original)
    stated = stored.manifest["features"]["coding"]
    assert stated["largest_error"] == error.max()
    relative = np.sqrt((np.square(error).mean(axis=0) / original.astype(np.float64).var(axis=0)).mean())
    assert stated["rms_error"] == pytest.approx(relative)
    assert 0 < relative < 0.02


def test_a_column_of_0_and_1_is_exact_by_column(tmp_path):
    parts = saved(tmp_path / "parts", FEATURES["column"], feature_dtype="int8").parts
    for part in parts:
        np.testing.assert_array_equal(part.features[:, 5], FEATURES["column"][part.inner, 5])


def test_versions_that_cannot_decode_refuse_the_schema(stored, plain):
    assert stored.manifest["schema"] == 4
    assert plain.manifest["schema"] == 3
    assert not fp.store.upgrade(stored.folder)
    assert fp.store.verify(stored.folder).foreign == ()


def test_rows_are_coded_piece_by_piece_as_at_once(monkeypatch, scale):
    whole = CodedRows(rows_of("features", FEATURES[scale]))
    at_once = whole.rows.read(0, N)
    monkeypatch.setattr("fastpart.partitions.coding._BLOCK_BYTES", 4 * WIDTH * 7)
    pieces = CodedRows(rows_of("features", FEATURES[scale]))
    found = np.concatenate([pieces.rows.read(start, min(start + 11, N)) for start in range(0, N, 11)])
    np.testing.assert_array_equal(found, at_once)
    one, other = pieces.described()["coding"], whole.described()["coding"]
    assert one.pop("scale") == other.pop("scale") == scale
    assert one == pytest.approx(other)


def test_columns_have_the_range_of_all_rows_not_that_of_the_sample():
    rows = np.tile(np.array([[0, 1, 1e4], [1, 0, 3e4]], np.float32), (5000, 1))
    rows[4999, 0] = 5  # between two runs of the sample
    coded = CodedRows(rows_of("features", rows))
    low, step = coded.columns
    assert low[0] == 0
    assert 255 * step[0] == pytest.approx(5)
    assert Coding(3, coded.columns).decode(coded.rows.read(4999, 5000))[0, 0] == pytest.approx(5)


def test_halo_features_are_coded(tmp_path, scale):
    features = FEATURES[scale]
    parts = saved(tmp_path / "parts", features, halo_features=True, feature_dtype="int8")
    known = {}
    for part in parts.parts:
        known |= dict(zip(part.inner.tolist(), part.features, strict=True))
    for part in parts.parts:
        assert part.halo_features.shape == (part.num_halo, WIDTH)
        for vertex, row in zip(part.halo.tolist(), part.halo_features, strict=True):
            np.testing.assert_array_equal(row, known[vertex])


def test_parts_of_edges_decode(tmp_path, scale):
    graph, _ = attributed()
    features = FEATURES[scale]
    fp.algorithms.dbh(graph, k=3).save(
        tmp_path / "parts", graph=graph, features=features, feature_dtype="int8"
    )
    for part in fp.open_partition(tmp_path / "parts").parts:
        largest = np.abs(part.features - features[part.vertices]).max()
        assert largest <= part._manifest["features"]["coding"]["largest_error"]


def test_rows_that_are_given_coded_are_copied(tmp_path):
    coded = encoded(FEATURES["row"])
    file = tmp_path / "x.npy"
    np.save(file, with_fields(coded))
    graph, _ = attributed()
    for features in (file, with_fields(coded), with_fields(np.repeat(coded, 2, axis=0))[::2]):
        for dtype in (None, "int8"):
            stored = saved(tmp_path / "parts", features, feature_dtype=dtype)
            assert stored.manifest["schema"] == 4
            assert stored.manifest["features"]["coding"] == {"scale": "row"}
            for part in stored.parts:
                np.testing.assert_array_equal(part.stored_features, coded[part.inner])
    fp.algorithms.dbh(graph, k=3).save(tmp_path / "edges", graph=graph, features=file)
    for part in fp.open_partition(tmp_path / "edges").parts:
        np.testing.assert_array_equal(part.stored_features, coded[part.vertices])


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_rows_that_are_given_coded_are_decoded_for_another_type(tmp_path, dtype):
    coded = encoded(FEATURES["column"] / 100)
    stored = saved(tmp_path / "parts", with_fields(coded), feature_dtype=dtype)
    assert stored.manifest["features"] == {"dtype": dtype, "shape": [WIDTH]}
    for part in stored.parts:
        np.testing.assert_array_equal(part.features, decoded_by_row(coded, WIDTH)[part.inner].astype(dtype))


def test_rows_with_other_fields_are_refused(tmp_path):
    rows = with_fields(encoded(FEATURES["row"]))
    wider = rows.astype([("codes", "u1", (WIDTH,)), ("low", "f4"), ("step", "f8")])
    for wrong in [np.zeros(N, [("low", "f4"), ("step", "f4")]), wider, rows[:, None]]:
        with pytest.raises(TypeError, match="features: expected numbers, or n rows with the fields"):
            saved(tmp_path / "parts", wrong)
        np.save(tmp_path / "x.npy", wrong)
        with pytest.raises(TypeError, match="features: expected numbers, or n rows with the fields"):
            saved(tmp_path / "parts", tmp_path / "x.npy")
    broken = rows.copy()
    broken["step"][205] = np.nan
    with pytest.raises(fp.errors.ParameterError, match="features: the scale of row 205 is not finite"):
        saved(tmp_path / "parts", broken)
    with pytest.raises(TypeError, match="edge_features: expected real numbers or bools"):
        saved(tmp_path / "parts", FEATURES["row"], edge_features=rows)
    np.save(tmp_path / "x.npy", rows)
    with pytest.raises(fp.errors.GraphFormatError, match=r"x\.npy"):
        saved(tmp_path / "parts", FEATURES["row"], edge_features=tmp_path / "x.npy")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_other_types_are_plain_rows(tmp_path, dtype):
    features = np.random.default_rng(0).normal(size=(N, WIDTH))
    stored = saved(tmp_path / "parts", features, feature_dtype=dtype)
    assert stored.manifest["schema"] == 3
    assert stored.manifest["features"] == {"dtype": dtype, "shape": [WIDTH]}
    for part in stored.parts:
        np.testing.assert_array_equal(part.features, features[part.inner].astype(dtype))


def test_what_cannot_be_coded_is_refused_by_name(tmp_path):
    features = np.ones((N, WIDTH))
    graph, _ = attributed()

    def refused(text, features=features, **more):
        given = {"feature_dtype": "int8", **more}
        with pytest.raises(fp.errors.ParameterError, match=text):
            saved(tmp_path / "parts", features, **given)
        assert not (tmp_path / "parts").exists()

    for wrong in (np.nan, np.inf, 1e39):
        broken = features.copy()
        broken[17, 2] = wrong
        refused("features: row 17 holds NaN, an infinite number, or one above", broken)
    beyond = features.copy()
    beyond[290, 2] = 1e9
    refused("features: row 290 holds a number that float16 does not", beyond, feature_dtype="float16")
    refused(r'"int8" needs features of shape \(n, width\), got \(300, 1, ', features[:, None])
    refused("feature_dtype: unknown value 'int4'", feature_dtype="int4")
    small = np.random.default_rng(0).normal(size=(N, WIDTH)) * 1e-8
    refused(r'feature_dtype: "float16" changes .* Use "float32"', small, feature_dtype="float16")
    with pytest.raises(fp.errors.ParameterError, match="feature_dtype: there are no features"):
        fp.VertexPartition(np.zeros(N, int), 1).save(tmp_path / "p", graph=graph, feature_dtype="int8")


def test_rows_that_8_bits_change_too_much_are_refused(tmp_path):
    random = np.random.default_rng(0)
    heavy = random.normal(size=(N, 400)) * 0.01
    heavy[np.arange(N), random.integers(0, 400, N)] = 1  # in every row and nearly every column
    with pytest.raises(
        fp.errors.ParameterError, match=r'"int8" changes a sample .* Use "float16" or "float32"'
    ):
        saved(tmp_path / "parts", heavy * np.exp(random.normal(size=(N, 400)) * 2), feature_dtype="int8")


def test_damaged_codings_are_named(tmp_path):
    stored = saved(tmp_path / "parts", FEATURES["column"], feature_dtype="int8")
    file = stored.folder / "manifest.json"
    told = json.loads(file.read_text())
    for coding in ("row", {}, {"scale": "part"}):
        file.write_text(json.dumps(told | {"features": told["features"] | {"coding": coding}}))
        with pytest.raises(fp.errors.GraphFormatError, match=r"manifest.json: features: coding"):
            fp.open_partition(stored.folder)
    (stored.folder / COLUMNS).unlink()
    file.write_text(json.dumps(told))
    with pytest.raises(fp.errors.GraphFormatError, match=r"feature_columns.npy is missing"):
        _ = fp.open_partition(stored.folder).parts[0].features


def test_the_command_line_saves_them(tmp_path):
    records = np.random.default_rng(0).integers(0, N, (1000, 2)).astype(np.uint32)
    np.save(tmp_path / "g.npy", records)
    np.save(tmp_path / "x.npy", FEATURES["row"])
    words = ["partition", "g.npy", "-k", "2", "--algorithm", "spring", "-o", "parts/", "--features", "x.npy"]
    words = [str(tmp_path / word) if word.endswith((".npy", "/")) else word for word in words]
    assert main([*words, "--num-vertices", str(N), "--feature-dtype", "int8", "-q"]) == 0
    assert fp.open_partition(tmp_path / "parts").manifest["features"]["coding"]["scale"] == "row"


def test_traffic_counts_the_bytes_that_move(stored, plain, scale):
    counts = [fp.predict_traffic(parts, [3, 2], 50) for parts in (stored, plain)]
    assert counts[0].remote_rows == counts[1].remote_rows
    assert [count.row_bytes for count in counts] == [WIDTH + 8 * (scale == "row"), 4 * WIDTH]
