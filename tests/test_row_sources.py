"""The stages of a batch, and where its rows come from: what does the same gives the same batches."""

import numpy as np
import pytest

import fastpart as fp

torch = pytest.importorskip("torch")

from fastpart.loading import Sample  # noqa: E402
from fastpart.loading.rows import RowSource  # noqa: E402
from fastpart.loading.rows.owners import (  # noqa: E402
    Embeddings,
    Exchange,
)
from fastpart.loading.rows.sources import (  # noqa: E402
    ABSENT,
    Counts,
    RowIndex,
)
from loaded import stored  # noqa: E402
from test_resident import FANOUTS, SIZE, same  # noqa: E402


class Dictionary:
    """Rows of a dictionary."""

    def __init__(self, parts):
        features = np.concatenate([part.features for part in parts.parts])
        self.dtype, self.row_shape = features.dtype, features.shape[1:]
        self._rows = dict(enumerate(features))

    def rows(self, ids):
        return np.array([self._rows[row] for row in ids.tolist()], self.dtype).reshape(-1, *self.row_shape)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("rows") / "parts", 3)


@pytest.mark.parametrize("given", [{}, {"scheduled": True}, {"rank": 1, "world_size": 3, "cache": 0.3}])
def test_rows_of_a_source_of_your_own_give_the_same_batches(parts, given):
    given = {"fanouts": FANOUTS, "batch_size": SIZE, "seed": 3, **given}
    files, other = parts.loader(**given), parts.loader(**given)
    source: RowSource = Dictionary(parts)
    other.fetching.here = source
    same(files, other)
    counts = other.read_counts()
    assert counts["read_bytes"] == 0
    assert files.read_counts() | {"read_bytes": 0} == counts


@pytest.mark.parametrize("given", [{}, {"scheduled": True}, {"ahead": 0}, {"resident": 20 * 6 * 8}])
def test_direct_reads_give_the_same_batches(parts, given):
    given = {"fanouts": FANOUTS, "batch_size": SIZE, "seed": 3, **given}
    same(parts.loader(io="mmap", **given), parts.loader(io="direct", **given))


def test_other_ways_to_read_are_refused(parts):
    with pytest.raises(
        fp.errors.ParameterError, match=r"io: unknown value 'dircet'.*Did you mean 'direct'\?"
    ):
        parts.loader(fanouts=FANOUTS, io="dircet")


def test_rows_of_a_source_of_your_own_stay_on_the_device(parts):
    given = {"fanouts": FANOUTS, "batch_size": SIZE, "seed": 3}
    other = parts.loader(**given)
    other.fetching.here = Dictionary(parts)
    other.keep(torch.device("cpu"), 20 * 6 * 8)
    assert len(other.fetching.of_type[""].resident.index.ids) == 20
    same(parts.loader(**given), other)


# Stages.


class Seeds:
    """The order of the epochs of another loader, as a list."""

    def __init__(self, other, parts):
        self._orders = [other.seeds(epoch).tolist() for epoch in range(2)]

    def __call__(self, epoch):
        return np.array(self._orders[epoch])


class Sampler:
    """Batches of the core, copied array by array, without features."""

    def __init__(self, other, parts):
        self._stage = other.sample

    def __call__(self, steps, epoch):
        names = ("rows", "indptr", "indices", "num_sampled_nodes", "num_sampled_edges", "e_id", "n_id")
        for batch in self._stage(steps, epoch):
            yield Sample(**{name: getattr(batch, name) for name in names})


class Fetch:
    """Features from an array."""

    def __init__(self, other, parts):
        self._features = np.concatenate([part.features for part in parts.parts])

    def __call__(self, sampled):
        for batch in sampled:
            yield batch, self._features[batch.rows]


class ToDevice:
    """Counts what it moves."""

    def __init__(self, other, parts):
        self.moved = 0

    def __call__(self, batch):
        self.moved += 1
        return batch.to("cpu")


STAGES = {"seeds": Seeds, "sample": Sampler, "fetch": Fetch, "to_device": ToDevice}


@pytest.mark.parametrize("given", [{}, {"scheduled": True}, {"rank": 1, "world_size": 3}, {"resident": 960}])
@pytest.mark.parametrize("names", [[name] for name in STAGES] + [list(STAGES)])
def test_each_stage_is_replaceable(parts, names, given):
    given = {"fanouts": FANOUTS, "batch_size": SIZE, "seed": 3, **given}
    loader, expected = parts.loader(**given), parts.loader(**given)
    for name in names:
        setattr(loader, name, STAGES[name](parts.loader(**given), parts))
    for _ in range(2):
        same(expected, loader)


@pytest.mark.parametrize("given", [{}, {"scheduled": True}, {"rank": 1, "world_size": 3}])
def test_the_stages_of_a_loader_of_edges_are_replaceable(parts, given):
    pairs = np.stack([np.arange(100), np.arange(100) * 7 % 200 + 100], axis=1)
    given = {"edges": pairs, "fanouts": FANOUTS, "batch_size": SIZE, "seed": 3, **given}
    loader, expected = parts.link_loader(**given), parts.link_loader(**given)
    for name, stage in STAGES.items():
        setattr(loader, name, stage(parts.link_loader(**given), parts))
    for one, other in zip(loader, expected, strict=True):
        for name in ("x", "n_id", "indices", "edge_label_index", "input_id"):
            assert torch.equal(getattr(one, name), getattr(other, name))


# Learned rows.


class Table:
    """Rows of zeros, which gradients are added to."""

    dtype, row_shape = np.dtype(np.float32), (2,)

    def __init__(self, n):
        self.values = np.zeros((n, 2), np.float32)

    def rows(self, ids):
        return self.values[ids]

    def step(self, ids, bounds, gradients):
        assert bounds.tolist() == [0, len(ids)]
        self.values[ids] += gradients


def test_gradients_reach_the_rows_that_were_asked_for():
    table, counts = Table(9), Counts()
    source = Embeddings(table, Exchange(np.array([0, 9]), 1.0), counts)
    for ids in ([1, 4], [], [4, 8]):
        rows = source.rows(np.array(ids, np.uint32))
        assert rows.shape == (len(ids), 2)
        source.update(rows + np.array(ids, np.float32)[:, None])
    assert table.values[:, 0].tolist() == [0, 1, 0, 0, 12, 0, 0, 0, 8]
    assert set(counts.read().values()) == {0}  # a single rank sends nothing


# Places of rows.


@pytest.mark.parametrize("ids", [[], [0], [2, 3, 7], list(range(10))])
@pytest.mark.parametrize("memory", [0, 10**6])
def test_rows_are_found_by_a_table_or_by_a_search(monkeypatch, ids, memory):
    monkeypatch.setattr("fastpart._core.memory_budget", lambda: memory)
    rows = np.array([9, 2, 2, 0, 7, 5], np.uint32)
    index = RowIndex(np.array(ids, np.uint32), 10)
    expected = [ids.index(row) if row in ids else ABSENT for row in rows.tolist()]
    assert index.places(rows).tolist() == expected
    assert index.places(rows[:0]).tolist() == []
