"""Rows of other parts that a rank caches. They change no batch and are counted."""

from typing import get_args

import numpy as np
import pytest

import fastpart as fp
from fastpart import _core

torch = pytest.importorskip("torch")

from fastpart.core.cache_size import CacheSize  # noqa: E402
from fastpart.core.parameters import CacheCriterion  # noqa: E402
from fastpart.loading.cached_rows import rows_to_cache  # noqa: E402
from fastpart.measures.accesses import Epoch  # noqa: E402
from fastpart.store.caches import RECORD, read_cache  # noqa: E402
from loaded import attributed, stored  # noqa: E402
from test_loader_messages import ranks  # noqa: E402

FANOUTS, SIZE = (4, 3), 32


@pytest.fixture
def parts(tmp_path):
    return stored(tmp_path / "parts", 3, "multilevel")


def epoch_of(partition, batch_size=SIZE):
    return Epoch(partition.loader(fanouts=FANOUTS)._seeds.rows, FANOUTS, batch_size)


def numbers(partition, part, cache_by, epoch):
    """Return the score of each row by its definition."""
    topology, data = partition._topology, partition.parts[part]
    everything = topology.ids_of(np.arange(topology.num_vertices, dtype=np.uint32))
    row = {vertex: at for at, vertex in enumerate(everything.tolist())}
    score = np.zeros(len(row))
    if cache_by == "access":
        owners = np.searchsorted(topology.starts, epoch.seeds, side="right") - 1
        return topology.accesses(
            epoch.seeds[owners == part], FANOUTS, num_seeds=len(epoch.seeds), batch_size=epoch.batch_size
        )
    for each in partition.parts if cache_by == "degree" else [data]:
        ends = each.indptr[each.num_inner]
        for source in each.vertices[each.indices[:ends]].tolist() if cache_by != "degree" else ():
            score[row[source]] += 1
        for place, vertex in enumerate(each.inner.tolist() if cache_by == "degree" else ()):
            score[row[vertex]] = each.indptr[place + 1] - each.indptr[place]
    return score


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 40.0])
@pytest.mark.parametrize("cache_by", get_args(CacheCriterion))
def test_the_rows_with_the_highest_scores_are_chosen(parts, cache_by, share):
    epoch = epoch_of(parts)
    for part in range(3):
        score = numbers(parts, part, cache_by, epoch)
        start, end = parts._topology.starts[part : part + 2].tolist()
        found = rows_to_cache(parts, part, CacheSize(share), cache_by, epoch).tolist()
        assert found == sorted(set(found))
        others = [row for row in range(len(score)) if not start <= row < end and score[row] > 0]
        count = len(others) if cache_by == "halo" else min(int(share * (end - start)), len(others))
        assert len(found) == count
        assert set(found) <= set(others)
        left = set(others) - set(found)
        assert not found or not left or min(score[found]) >= max(score[sorted(left)])


def fetched(loader):
    """Return the distinct rows of other ranks in each batch, and how often all of them together."""
    starts = loader.fetching.of_type[""]._starts
    lists = []
    for batch in loader:
        distinct = np.unique(batch.rows)
        owners = np.searchsorted(starts, distinct, side="right") - 1
        lists.append(distinct[np.isin(owners, loader.fetching.of_type[""].away)])
    return lists


@pytest.mark.parametrize("cache_by", get_args(CacheCriterion))
def test_hits_are_counted(parts, cache_by):
    given = {"fanouts": FANOUTS, "batch_size": SIZE, "rank": 1, "world_size": 3, "seed": 2, "ahead": 1}
    without, held = parts.loader(**given), parts.loader(cache=0.2, cache_by=cache_by, **given)
    rows = fetched(without)
    assert without.read_counts()["cached_rows"] == 0
    assert [one.tolist() for one in fetched(held)] == [one.tolist() for one in rows]
    cache = rows_to_cache(parts, 1, CacheSize(0.2), cache_by, epoch_of(parts))
    hits = sum(np.isin(one, cache).sum() for one in rows)
    counts = held.read_counts()
    assert 0 < hits == counts["cached_rows"]
    assert counts["remote_rows"] == sum(map(len, rows)) - hits
    assert counts["remote_bytes"] == counts["remote_rows"] * 6 * 8


@pytest.mark.parametrize("cache_by", ["access", "degree"])
def test_a_size_holds_as_many_rows_as_fit(parts, cache_by):
    row_bytes, epoch = 6 * 8, epoch_of(parts)
    of_size = rows_to_cache(parts, 1, CacheSize.of("0.4K"), cache_by, epoch)
    own = int(np.diff(parts._topology.starts)[1])
    assert len(of_size) == 409 // row_bytes
    np.testing.assert_array_equal(
        of_size, rows_to_cache(parts, 1, CacheSize(409 // row_bytes / own + 1e-9), cache_by, epoch)
    )
    given = {"fanouts": FANOUTS, "batch_size": SIZE, "rank": 1, "world_size": 3, "cache_by": cache_by}
    loader = parts.loader(cache="0.4K", **given)
    np.testing.assert_array_equal(loader.fetching.of_type[""].cached.ids, of_size)
    parts.save_cache("0.4K", fanouts=FANOUTS, batch_size=SIZE, cache_by=cache_by)
    np.testing.assert_array_equal(read_cache(parts, 1), np.sort(parts._topology.ids_of(of_size)))


def test_access_saves_more_than_degree(tmp_path):
    parts = stored(tmp_path / "parts", 4, "multilevel", n=3000, m=12000)
    given = {"fanouts": FANOUTS, "batch_size": SIZE, "rank": 1, "world_size": 4, "ahead": 1}

    def saved(cache_by):
        loader = parts.loader(cache=0.1, cache_by=cache_by, **given)
        list(loader)
        return loader.read_counts()["cached_rows"]

    assert saved("access") > saved("degree") > 0


SAME = """
given = {"fanouts": [4, 3], "batch_size": 32, "seed": 5}
for cache, cache_by in ((None, "access"), (0, "access"), (0.2, "access"), (1, "degree"), (0.1, "links"), (0.1, "halo")):
    maps = stored.loader(remote="maps", cache=cache, cache_by=cache_by, **given)
    messages = stored.loader(remote="messages", cache=cache, cache_by=cache_by, **given)
    for one, other in zip(maps, messages, strict=True):
        assert one.x.dtype == other.x.dtype and torch.equal(one.x, other.x)
    of_maps, of_messages = maps.read_counts(), messages.read_counts()
    print(of_messages["remote_rows"], of_messages["cached_rows"], of_messages["remote_bytes"])
    if cache is not None:
        assert of_maps["cached_rows"] == of_messages["cached_rows"]
    messages.close()
"""


@pytest.mark.parametrize("size", [2, 3])
def test_a_cache_changes_no_batch_and_saves_messages(tmp_path, size):
    partition = stored(tmp_path / "parts", 4)
    partition.save_cache(0.2, fanouts=FANOUTS, batch_size=SIZE)
    done = ranks(tmp_path, SAME, tmp_path / "parts", size)
    assert [code for *_, code in done] == [0] * size, done
    sums = np.sum([[[*map(int, line.split())] for line in out.splitlines()] for out, *_ in done], axis=0)
    rows, hits, message_bytes = sums.T.tolist()
    assert hits[1] == 0 < hits[2] == hits[0]  # that of the directory is the default
    assert all(fetched + held == rows[1] for fetched, held in zip(rows, hits, strict=True))
    assert rows[3] < rows[2] < rows[1]
    assert message_bytes[2] < message_bytes[1]


def test_an_empty_part_and_one_without_seeds(tmp_path):
    _, rows = attributed()
    rows["splits"] = {"train": np.arange(100)}
    fp.VertexPartition(np.where(np.arange(300) < 150, 0, 2), 4).save(tmp_path / "parts", **rows)
    partition = fp.open_partition(tmp_path / "parts")
    for cache_by in get_args(CacheCriterion):
        partition.save_cache(0.5, fanouts=FANOUTS, cache_by=cache_by)
        sizes = [len(read_cache(partition, part)) for part in range(4)]
        assert sizes[1] == sizes[3] == 0 < sizes[0] <= 150
        assert (sizes[2] > 0) == (cache_by != "access")


def test_a_cache_of_another_partition_is_refused(tmp_path):
    one, other = stored(tmp_path / "one", 3), stored(tmp_path / "other", 3, "spring")
    one.save_cache(fanouts=FANOUTS)
    (other.folder / RECORD).write_bytes((one.folder / RECORD).read_bytes())
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"cache\.json: the caches are those of another partition"
    ):
        fp.export.glt(tmp_path / "other", tmp_path / "glt")
    (other.folder / RECORD).write_text("{")
    with pytest.raises(fp.errors.GraphFormatError, match=r"cache\.json"):
        fp.export.glt(tmp_path / "other", tmp_path / "glt")


def test_a_cache_larger_than_memory_is_refused(parts, monkeypatch):
    loader = parts.loader(fanouts=FANOUTS)
    loader.fetching.of_type[""]._exchange = object()  # rows come by messages
    monkeypatch.setattr(_core, "memory_budget", lambda: 1000)
    text = "cache: 21 rows need 1,008 bytes, but the memory limit leaves 1,000"
    with pytest.raises(fp.errors.MemoryBudgetError, match=text):
        loader.fetching.of_type[""].keep_cached(np.arange(21, dtype=np.uint32))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"cache": -0.1}, "cache: -0.1 is not a share"),
        ({"cache": float("nan")}, "cache: "),
        ({"cache": 0.1, "cache_by": "cold"}, "cache_by: unknown value 'cold'"),
    ],
)
def test_refusals(parts, given, text):
    with pytest.raises(fp.errors.ParameterError, match=text):
        parts.loader(fanouts=FANOUTS, **given)
    with pytest.raises(fp.errors.ParameterError, match=text):
        parts.save_cache(fanouts=FANOUTS, **given)
    bare = fp.VertexPartition([0, 1], 2)
    with pytest.raises(fp.FastpartError):
        bare.save_cache(fanouts=FANOUTS)
