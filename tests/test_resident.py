"""Rows of features that stay on a device. On the CPU here; tests/test_train_gpu.py has them on a GPU."""

import numpy as np
import pytest

import fastpart as fp

torch = pytest.importorskip("torch")

from fastpart.loading.cached_rows import most_accessed_rows  # noqa: E402
from fastpart.measures.accesses import Epoch  # noqa: E402
from fastpart.train.data.dataset import Dataset  # noqa: E402
from fastpart.train.method_options import SampledOptions  # noqa: E402
from fastpart.train.methods.sampled.steps import Neighbours  # noqa: E402
from loaded import stored  # noqa: E402
from test_loader_messages import ranks  # noqa: E402
from trainable import planted  # noqa: E402

FANOUTS, SIZE = (4, 3), 32
ROW = 6 * 8
"""Bytes of a row."""

ROOMS = [0, ROW, 20 * ROW, "1M"]
"""Memory for no row, for one, for some, for all."""


@pytest.fixture
def parts(tmp_path):
    return stored(tmp_path / "parts", 3, "multilevel")


def same(one, other):
    ours, theirs = list(one), list(other)
    assert len(ours) == len(theirs) > 0
    for batch, expected in zip(ours, theirs, strict=True):
        assert torch.equal(batch.n_id, expected.n_id)
        assert batch.x.dtype == expected.x.dtype
        assert torch.equal(batch.x, expected.x)
        assert torch.equal(batch.y, expected.y)


@pytest.mark.parametrize("room", ROOMS)
def test_they_change_no_batch(parts, room):
    given = {"fanouts": FANOUTS, "batch_size": SIZE, "seed": 3}
    same(parts.loader(resident=room, **given), parts.loader(**given))


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("cache", [None, 0.3])
def test_they_change_no_batch_and_no_count_of_a_rank(parts, cache, room):
    given = {"fanouts": FANOUTS, "batch_size": SIZE, "rank": 1, "world_size": 3, "cache": cache}
    with_rows, without = parts.loader(resident=room, **given), parts.loader(**given)
    with_rows.read_counts()  # the rows that stay were read
    same(with_rows, without)
    counts, expected = with_rows.read_counts(), without.read_counts()
    read, everything = counts.pop("read_bytes"), expected.pop("read_bytes")
    assert counts == expected
    assert read < everything if room else read == everything


def test_as_many_rows_stay_as_have_room(parts):
    for room, count in [(ROW - 1, None), (7 * ROW, 7), (10**9, 300)]:
        kept = parts.loader(fanouts=FANOUTS, resident=room).fetching.of_type[""].resident
        assert (None if kept is None else len(kept.index.ids)) == count
    rank = {"rank": 1, "world_size": 3}
    own = parts.parts[1].num_inner
    assert (
        len(parts.loader(fanouts=FANOUTS, resident="1M", **rank).fetching.of_type[""].resident.index.ids)
        == own
    )
    cached = parts.loader(fanouts=FANOUTS, resident="1M", cache=0.2, **rank)
    assert (
        len(cached.fetching.of_type[""].resident.index.ids)
        == own + len(cached.fetching.of_type[""].cached.ids)
        > own
    )


def test_the_most_accessed_rows_stay(parts):
    topology, own = parts._topology, np.array([False, True, False])
    seeds = parts.loader(fanouts=FANOUTS)._seeds.rows
    start, end = topology.starts[1:3]
    epoch, rows = Epoch(seeds, FANOUTS, SIZE), np.arange(start, end, dtype=np.uint32)
    kept = most_accessed_rows(topology, own, rows, 10, epoch)
    mine = seeds[(seeds >= start) & (seeds < end)]
    score = topology.accesses(mine, FANOUTS, num_seeds=len(seeds), batch_size=SIZE)
    assert kept.tolist() == sorted(set(kept.tolist()))
    assert len(kept) == 10
    assert min(score[kept]) >= max(score[np.setdiff1d(rows, kept)])


def test_features_of_half_precision_and_of_no_vertex(tmp_path):
    half = stored(tmp_path / "half", 2, dtype=np.float16)
    given = {"fanouts": [2], "batch_size": SIZE}
    same(half.loader(resident=500, **given), half.loader(**given))
    assert next(iter(half.loader(resident="1M", **given))).x.dtype == torch.float16
    bare = fp.VertexPartition([0, 1], k=2)
    bare.save(tmp_path / "bare", graph=[[0, 1]], splits={"train": [0]})
    assert (
        next(iter(fp.open_partition(tmp_path / "bare", of="vertices").loader(resident=9, fanouts=[1]))).x
        is None
    )


@pytest.mark.parametrize("wrong", ["much", -1])
def test_wrong_sizes_are_refused(parts, wrong):
    with pytest.raises(fp.errors.ParameterError, match="resident"):
        parts.loader(fanouts=FANOUTS, resident=wrong)


MESSAGES = """
given = {"fanouts": [4, 3], "batch_size": 32, "seed": 1, "remote": "messages", "cache": 0.2}
for room in (0, 960, "1M"):
    one, other = stored.loader(resident=room, **given), stored.loader(**given)
    batches = 0
    for with_rows, without in zip(one, other, strict=True):
        assert torch.equal(with_rows.x, without.x)
        batches += 1
    assert one.read_counts() | {"read_bytes": 0} == other.read_counts() | {"read_bytes": 0}
    print(batches)
    one.close(), other.close()
"""


def test_they_change_no_batch_that_comes_by_messages(tmp_path):
    stored(tmp_path / "parts", 4)
    done = ranks(tmp_path, MESSAGES, tmp_path / "parts", 3)
    assert [code for *_, code in done] == [0] * 3, done
    assert [out.split() for out, *_ in done] == [["5"] * 3] * 3


def test_they_change_no_loss(tmp_path):
    folder = planted(tmp_path, k=2)
    given = {"model": "gcn", "hidden": 8, "threads": 1, "epochs": 2, "batch_size": 100, "fanouts": [4, 3]}
    one, other = (fp.train.sampled(folder, workers=2, resident=room, **given) for room in ("1M", None))
    assert one.history["loss"].to_list() == other.history["loss"].to_list()


def test_workers_keep_them(tmp_path):
    dataset = Dataset(planted(tmp_path, k=2))
    options = SampledOptions(batch_size=100, fanouts=(4, 3), ahead=1, timeout=9.0, resident=10**6)
    kept = Neighbours(dataset, options, 10**6, False, None)._loader.fetching.of_type[""].resident
    assert len(kept.index.ids) == dataset.topology.num_vertices
