"""Batches, trainings and exports of coded features: those of the decoded numbers, however rows move."""

import numpy as np
import pytest

import fastpart as fp

torch = pytest.importorskip("torch")

from coded import FEATURES, WIDTH, N, encoded, numbers_of, saved  # noqa: E402
from fastpart.loading.rows.sources import decoded  # noqa: E402
from fastpart.partitions.coding import Coding  # noqa: E402
from test_loader_messages import ranks  # noqa: E402
from test_resident import same  # noqa: E402
from test_row_sources import Dictionary  # noqa: E402
from trainable import planted  # noqa: E402

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.timeout(180)]


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


GIVEN = {"fanouts": [4, 3], "batch_size": 32, "seed": 3}


@pytest.mark.parametrize("count", [0, 1, 5])
@pytest.mark.parametrize("width", [1, 6, 9])
def test_rows_on_a_device_are_decoded_bit_for_bit(count, width):
    numbers = np.random.default_rng(0).normal(size=(count, width)).astype(np.float32)
    for columns in (None, np.stack([np.full(width, -4), np.full(width, 8 / 255)]).astype(np.float32)):
        rows, coding = encoded(numbers, columns), Coding(width, columns)
        found = decoded(torch.from_numpy(rows), coding)
        assert found.dtype == torch.float32
        np.testing.assert_array_equal(found.numpy(), coding.decode(rows))


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"ahead": 0},
        {"io": "direct"},
        {"scheduled": True},
        {"merged": True, "edge_ids": True},
        {"resident": 100},
        {"resident": 2000, "io": "direct"},
        {"resident": "1M", "scheduled": True},
        {"rank": 1, "world_size": 3, "cache": 0.3},
    ],
)
def test_batches_are_those_of_the_decoded_numbers(stored, plain, how):
    one = stored.loader(**GIVEN, **how)
    same(one, plain.loader(**GIVEN, **how))
    assert next(iter(one)).x.dtype == torch.float32


def test_rows_of_a_source_of_your_own_need_not_be_coded(stored):
    other = stored.loader(**GIVEN)
    other.fetching.here = Dictionary(stored)
    same(stored.loader(**GIVEN), other)


def test_counted_bytes_are_those_of_stored_rows(stored, scale):
    loader = stored.loader(**GIVEN, rank=0, world_size=3)
    list(loader)
    counts = loader.read_counts()
    assert counts["remote_bytes"] == counts["remote_rows"] * (WIDTH + 8 * (scale == "row")) > 0


def test_resident_rows_stay_coded(stored, scale):
    row = WIDTH + 8 * (scale == "row")
    kept = stored.loader(**GIVEN, resident=7 * row).fetching.of_type[""].resident
    assert len(kept.index.ids) == 7
    assert kept._values.dtype == torch.uint8


MESSAGES = """
given = {"fanouts": [4, 3], "batch_size": 32, "seed": 5}
for more in ({}, {"cache": 0.3}, {"resident": 300}, {"cache": 0.2, "resident": "1M", "ahead": 0}):
    maps = stored.loader(remote="maps", **given, **more)
    messages = stored.loader(remote="messages", **given, **more)
    for one, other in zip(maps, messages, strict=True):
        assert one.x.dtype == other.x.dtype == torch.float32 and torch.equal(one.x, other.x)
    of_maps, of_messages = maps.read_counts(), messages.read_counts()
    row = 6 if stored.manifest["features"]["coding"]["scale"] == "column" else 14
    assert of_maps["remote_bytes"] == of_maps["remote_rows"] * row
    steps = len(messages) if more.get("ahead") == 0 else -(-len(messages) // 2)
    words = 8 * 2 * (size - 1) * steps
    assert of_messages["remote_bytes"] <= of_maps["remote_rows"] * (row + 4) + words, of_messages
    messages.close()
print("same")
"""


def test_messages_carry_the_bytes(stored, tmp_path):
    done = ranks(tmp_path, MESSAGES, stored.folder, 2)
    for out, error, code in done:
        assert (code, out.split()) == (0, ["same"]), error


QUICK = {"hidden": 8, "threads": 1, "epochs": 2}
SAMPLED = {"batch_size": 100, "fanouts": [4, 3]}


def folder(tmp_path, name):
    (tmp_path / name).mkdir()
    return tmp_path / name


def both(tmp_path, k):
    """Return a directory with coded features, and one with the decoded numbers."""
    coded = planted(folder(tmp_path, "coded"), k=k, feature_dtype="int8")
    opened = fp.open_partition(coded)
    assert opened.manifest["features"]["coding"]
    return coded, planted(folder(tmp_path, "plain"), k=k, features=numbers_of(opened))


def test_losses_do_not_depend_on_parts_or_workers(tmp_path):
    one = planted(folder(tmp_path, "one"), k=1, feature_dtype="int8")
    three = planted(folder(tmp_path, "three"), k=3, feature_dtype="int8")
    first = fp.train.sampled(one, **QUICK, **SAMPLED)
    for given in ({}, {"workers": 3}, {"workers": 2, "cache": 0.3}):
        found = fp.train.sampled(three, **QUICK, **SAMPLED, **given)
        for name in ("loss", "val_f1"):
            np.testing.assert_allclose(found.history[name], first.history[name], rtol=1e-4)


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("full", {}),
        ("sdt", {}),
        ("sampled", SAMPLED),
        ("bytegnn", {**SAMPLED, "workers": 2}),
        ("armada", SAMPLED),
        ("armada", {**SAMPLED, "order": "parts", "hold": 1}),
        ("sancus", {}),
    ],
)
def test_methods_train_on_the_decoded_numbers(tmp_path, method, given):
    losses = []
    for parts in both(tmp_path, 2):
        found = getattr(fp.train, method)(parts, **QUICK, **given)
        losses.append(found.history["loss"].to_numpy())
    np.testing.assert_array_equal(*losses)


def test_predictions_are_those_of_the_decoded_numbers(tmp_path):
    both_parts = both(tmp_path, 2)
    trained = fp.train.sampled(both_parts[1], **QUICK, **SAMPLED)
    logits = [trained.predict(parts, what="embeddings") for parts in both_parts]
    np.testing.assert_array_equal(*map(np.asarray, logits))


def test_stores_of_pyg_decode(stored, plain):
    pytest.importorskip("torch_geometric")
    import fastpart.pyg

    stores = map(fastpart.pyg.feature_store, (stored, plain))
    found, expected = (store.get_tensor(group_name=None, attr_name="x", index=None) for store in stores)
    assert found.shape == (N, WIDTH)
    assert torch.equal(found, expected)


def test_exports_decode(stored, plain, tmp_path):
    for name, parts in (("coded", stored), ("plain", plain)):
        fp.export.wholegraph(parts.folder, tmp_path / f"{name}-wholegraph")
        fp.export.pyg(parts.folder, tmp_path / f"{name}-pyg")
    for system, pattern in (("wholegraph", "features_part_*"), ("pyg", "part_*/node_feats.pt")):
        coded, expected = tmp_path / f"coded-{system}", tmp_path / f"plain-{system}"
        files = sorted(coded.glob(pattern))
        assert len(files) == 3
        for file in files:
            assert file.read_bytes() == (expected / file.relative_to(coded)).read_bytes()
