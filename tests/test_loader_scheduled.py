"""The scheduled loader: the batches of the loader in order, whatever the schedule, and samplers of users."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpart as fp
from fastpart import _core

torch = pytest.importorskip("torch")

from fastpart.loading import Sample, Trace, making  # noqa: E402
from loaded import stored  # noqa: E402
from test_loader import same  # noqa: E402
from typed_training import typed_parts  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("loader") / "parts", 4)


@settings(max_examples=25, deadline=None)
@given(
    fanouts=st.lists(st.integers(-1, 4), min_size=1, max_size=3),
    batch_size=st.integers(1, 200),
    threads=st.integers(1, 4),
    ranks=st.integers(1, 3),
    how=st.sampled_from(
        [{}, {"sampling": "labor"}, {"edge_ids": False}, {"merged": True}, {"resident": 20000}]
    ),
)
def test_batches_are_those_in_order(parts, fanouts, batch_size, threads, ranks, how):
    for rank in range(ranks):
        given = {"fanouts": fanouts, "batch_size": batch_size, "rank": rank, "world_size": ranks, **how}
        plain, scheduled = parts.loader(**given), parts.loader(**given, scheduled=True, threads=threads)
        for _ in range(2):
            for one, other in zip(plain, scheduled, strict=True):
                same(one, other)
        assert plain.read_counts() == scheduled.read_counts()


def test_pieces_of_large_features(tmp_path, monkeypatch):
    monkeypatch.setattr(making, "_PIECE_BYTES", 500)
    parts, trace = stored(tmp_path / "parts", 2), Trace()
    given = {"fanouts": [4, 4], "batch_size": 60}
    for one, other in zip(
        parts.loader(**given), parts.loader(**given, scheduled=True, threads=3, trace=trace), strict=True
    ):
        same(one, other)
    tasks = [event["name"] for event in trace.events() if event["ph"] == "X"]
    assert tasks.count("features") > 3 * tasks.count("neighbourhood")


def test_what_making_batches_took(parts):
    for how in ({}, {"scheduled": True}):
        loader = parts.loader(fanouts=[4, 4], batch_size=30, **how)
        assert len(list(loader)) > 1
        spent = loader.read_seconds()
        assert set(spent) == {"sampling", "fetching"}
        assert all(0 < seconds < 10 for seconds in spent.values())
        assert loader.read_seconds() == {"sampling": 0, "fetching": 0}


# Samplers of users.


def all_of(parts, hops):
    """Return a sampler of all in-edges, by a loop."""
    topology = parts._topology
    whole = topology.subgraph(np.arange(topology.num_vertices, dtype=np.uint32), edge_ids=True)

    def sample(seeds, epoch, step):
        levels, indices, counts, e_id = [list(map(int, seeds))], [], [], []
        for _ in range(hops):
            place, begin = {}, sum(map(len, levels))
            for row in levels[-1]:
                edges = range(whole.indptr[row], whole.indptr[row + 1])
                sources = [int(whole.indices[edge]) for edge in edges]
                indices += [begin + place.setdefault(source, len(place)) for source in sources]
                e_id += [int(whole.e_id[edge]) for edge in edges]
                counts.append(len(sources))
            levels.append(list(place))
        indptr = np.concatenate(([0], np.cumsum(counts)))
        sizes = np.cumsum([0, *map(len, levels)])
        return Sample(
            rows=np.array(list(chain(*levels)), np.uint32),
            indptr=indptr.astype(np.int32),
            indices=np.array(indices, np.int32),
            num_sampled_nodes=list(map(len, levels)),
            num_sampled_edges=[int(indptr[sizes[h + 1]] - indptr[sizes[h]]) for h in range(hops)],
            e_id=np.array(e_id, np.int64),
        )

    return sample


def test_a_sampler_of_ones_own_is_one_function(parts):
    given = {"fanouts": [-1, -1], "batch_size": 40}
    own = parts.loader(**given, scheduled=True, threads=2, neighbourhood=all_of(parts, 2))
    for one, other in zip(parts.loader(**given), own, strict=True):
        same(one, other)


def broken(parts, **wrong):
    def sample(seeds, epoch, step):
        return Sample(**{**vars(all_of(parts, 1)(seeds, epoch, step)), **wrong})

    return sample


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rows": np.zeros(3, np.uint32)}, "expected as many as nodes"),
        ({"rows": np.zeros(3)}, "rows of the sample it returned is no array of uint32"),
        ({"indptr": np.zeros(3, np.int32)}, "wrong indptr: expected"),
        ({"indices": np.full(0, 0, np.int32)}, "wrong indptr: expected"),
        ({"num_sampled_nodes": [1]}, "expected 2 and 1 numbers"),
        ({"rows": [1, 2]}, "rows of the sample it returned is no array of uint32"),
        ({"num_sampled_nodes": 5}, "num_sampled_nodes of the sample it returned is no list of counts"),
        ({"num_sampled_edges": [1.5]}, "num_sampled_edges of the sample it returned is no list of counts"),
        ({"num_sampled_edges": [10**6]}, "wrong num_sampled_edges: expected in-edges of each level"),
        ({"n_id": [0, 1]}, "n_id of the sample it returned is no array of int64"),
        ({"n_id": np.zeros(3, np.int64)}, "wrong n_id: expected none, or one for each"),
        ({"e_id": [0, 1]}, "e_id of the sample it returned is no array of int64"),
        ({"e_id": np.zeros(3, np.int64)}, "wrong e_id: expected None, or one for each"),
        ({"features": [[0.0]]}, "features of the sample it returned is no array"),
        ({"features": np.zeros((3, 1))}, "wrong features: expected None, or a row for each"),
    ],
)
def test_broken_samples_are_refused(parts, wrong, message):
    loader = parts.loader(fanouts=[-1], batch_size=30, scheduled=True, neighbourhood=broken(parts, **wrong))
    with pytest.raises(fp.errors.ParameterError, match=f"^neighbourhood: .*{message}"):
        list(loader)


def test_something_else_than_a_sample_is_refused(parts):
    for other in (None, 3, {"rows": []}):
        sampler = lambda seeds, epoch, step, other=other: other  # noqa: E731
        with pytest.raises(fp.errors.ParameterError, match="rows of the sample it returned"):
            list(parts.loader(fanouts=[-1], batch_size=30, scheduled=True, neighbourhood=sampler))


def test_samples_of_other_seeds_and_outside_are_refused(parts):
    def other(seeds, epoch, step):
        return all_of(parts, 1)(seeds[::-1].copy(), epoch, step)

    def outside(seeds, epoch, step):
        sample = all_of(parts, 1)(seeds, epoch, step)
        return Sample(**{**vars(sample), "indices": sample.indices + len(sample.rows)})

    for sampler, message in ((other, "the first are not the seeds"), (outside, "a source is not one of the")):
        with pytest.raises(fp.errors.ParameterError, match=message):
            list(parts.loader(fanouts=[-1], batch_size=30, scheduled=True, neighbourhood=sampler))


def test_refusals(parts):
    with pytest.raises(fp.errors.ParameterError, match="they need scheduled=True"):
        parts.loader(fanouts=[2], trace=Trace())
    with pytest.raises(TypeError, match="neighbourhood: expected a callable"):
        parts.loader(fanouts=[2], scheduled=True, neighbourhood=3)
    with pytest.raises(TypeError, match="scheduled"):
        parts.loader(fanouts=[2], scheduled="yes")


def test_an_error_of_a_users_sampler_is_raised_as_it_is(parts):
    def fails(seeds, epoch, step):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        list(parts.loader(fanouts=[2], scheduled=True, neighbourhood=fails))


# Edges.


@pytest.mark.parametrize("negatives", [2, {"batch": 2}, {"uniform": 1, "batch": 1, "local": 2}])
def test_scheduled_batches_of_edges(tmp_path, negatives):
    rng = np.random.default_rng(0)
    splits = fp.split_edges(rng.integers(0, 200, (1500, 2)), seed=1)
    features = rng.standard_normal((200, 3), dtype=np.float32)
    fp.VertexPartition(np.arange(200) % 3, k=3).save(
        tmp_path / "parts", graph=splits.graph, features=features, edge_splits=splits
    )
    opened, trace = fp.open_partition(tmp_path / "parts"), Trace()
    given = {
        "fanouts": [3, 2],
        "batch_size": 100,
        "negatives": negatives,
        "world_size": 2,
    }
    for rank in range(2):
        plain = opened.link_loader(**given, rank=rank)
        scheduled = opened.link_loader(**given, rank=rank, scheduled=True, threads=3, trace=trace)
        for _ in range(2):
            for one, other in zip(plain, scheduled, strict=True):
                same(one, other)
    tasks = [event["name"] for event in trace.events() if event["ph"] == "X"]
    assert {tasks.count(name) for name in ("seed", "positive", "negative", "neighbourhood")} == {
        4 * len(plain)
    }


# Graphs with types.


OVER_TYPES = {
    "": {},
    "labor": {"sampling": "labor", "threads": 3},
    "by relation": {"fanouts": {"cites": [3, 2], "rev_writes": [2, 2]}, "threads": 2},
    "authors": {"vertices": np.arange(0, 160, 3), "input": "author", "merged": True},
    "no ids": {"edge_ids": False, "rank": 1, "world_size": 3},
    "cache": {"cache": 0.3, "rank": 1, "world_size": 3, "threads": 2},
    "resident": {"resident": "2K"},
}
"""Options of loaders, by what they are for."""


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    rows = np.random.default_rng(0).random((600, 2), np.float32)
    return typed_parts(tmp_path_factory.mktemp("typed"), 3, edge_features={"cites": rows})[0]


def same_of_types(one, other):
    assert vars(one).keys() == vars(other).keys()
    for name, value in vars(one).items():
        found = getattr(other, name)
        if not isinstance(value, dict):
            assert np.array_equal(value, found), name
            continue
        assert list(value) == list(found)
        for key, rows in value.items():
            assert type(rows) is type(found[key])
            assert np.array_equal(rows, found[key]), (name, key)


@pytest.mark.parametrize("given", OVER_TYPES.values(), ids=OVER_TYPES)
def test_scheduled_batches_over_types(typed, given, monkeypatch):
    monkeypatch.setattr(making, "_PIECE_BYTES", 200)  # several pieces of each type
    given = {"fanouts": [4, 3], "batch_size": 20, "seed": 3, **given}
    trace = Trace()
    in_order, scheduled = typed.loader(**given), typed.loader(**given, scheduled=True, trace=trace)
    for _ in range(2):
        for one, other in zip(in_order, scheduled, strict=True):
            assert set(one.x_dict) == {"author", "field", "paper"}
            assert bool(one.edge_attr_dict) == given.get("edge_ids", True)
            same_of_types(one, other)
    assert in_order.read_counts() == scheduled.read_counts()
    tasks = [event["name"] for event in trace.events() if event["ph"] == "X"]
    assert tasks.count("neighbourhood") > 0
    assert (tasks.count("features") > tasks.count("neighbourhood")) == ("resident" not in given)


@pytest.mark.parametrize("negatives", [2, {"batch": 2}, {"uniform": 1, "batch": 1, "local": 2}])
def test_scheduled_batches_of_a_relation(typed, negatives):
    pairs = np.stack([np.arange(50), np.arange(50) * 7 % 240 + 180], axis=1)
    given = {
        "edges": pairs,
        "relation": "writes",
        "fanouts": [3, 2],
        "batch_size": 16,
        "negatives": negatives,
    }
    scheduled = typed.link_loader(**given, scheduled=True, threads=2)
    for one, other in zip(typed.link_loader(**given), scheduled, strict=True):
        assert len(one.edge_label) == scheduled.pairs_of_edge * one.batch_size
        same_of_types(one, other)


def own_over_types(stored, fanouts, **wrong):
    """Return a sampler of a user that takes the seeds of each type, with the samples of the core."""
    topology = stored._topology
    sampler = _core.Sampler(topology, fanouts, types=stored._types, edge_ids=True)
    numbers, within = stored._rows_by_type.locate(np.arange(topology.num_vertices, dtype=np.uint32))
    rows = [np.flatnonzero(numbers == number)[np.argsort(within[numbers == number])] for number in range(3)]

    def sample(seeds, epoch, step):
        assert len(seeds) == 3
        every = np.concatenate([rows[number][each] for number, each in enumerate(seeds)]).astype(np.uint32)
        if sum(map(bool, map(len, seeds))) > 1:
            every.sort()  # as a loader of edges has them, part after part
        found = sampler.sample(every, epoch=epoch, step=step)
        names = ("rows", "indptr", "indices", "num_sampled_nodes", "num_sampled_edges", "e_id")
        return Sample(**{**{name: getattr(found, name) for name in names}, **wrong})

    return sample


def test_a_sampler_of_ones_own_over_types(typed):
    fanouts = [[2, 3, 2, 2, 3], [1, 2, 3, 2, 2]]
    by_name = {
        key: [hop[number] for hop in fanouts]
        for number, key in enumerate(each.name for each in typed.parts[0].edge_types)
    }
    own = {"scheduled": True, "threads": 2, "neighbourhood": own_over_types(typed, fanouts)}
    given = {"fanouts": by_name, "batch_size": 20}
    for one, other in zip(typed.loader(**given), typed.loader(**given, **own), strict=True):
        same_of_types(one, other)
    given |= {"relation": "writes", "edges": np.stack([np.arange(50), np.arange(50) * 7 % 240 + 180], axis=1)}
    for one, other in zip(typed.link_loader(**given), typed.link_loader(**given, **own), strict=True):
        same_of_types(one, other)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"rows": np.zeros(3, np.uint32)},
            "rows of the sample .* is no list with an entry for each of 3 types",
        ),
        (
            {"indptr": [np.zeros(1, np.int32)]},
            "indptr of .* is no list with an entry for each of 5 relations",
        ),
        ({"rows": [np.zeros(1, np.uint32)] * 3}, "wrong rows of 'author': expected as many as nodes"),
        ({"num_sampled_nodes": [[1]] * 3}, "expected 2 and 1 numbers of each"),
        ({"num_sampled_nodes": [5] * 3}, "num_sampled_nodes of the sample it returned is no list of counts"),
        ({"indices": [np.full(1, 10**6, np.int32)] * 5}, "wrong indptr of 'cites'"),
        ({"num_sampled_edges": [[10**6]] * 5}, "wrong num_sampled_edges of 'cites'"),
        ({"e_id": [np.zeros(3, np.int64)] * 5}, "wrong e_id of 'cites'"),
        ({"n_id": [np.zeros(3, np.int64)] * 3}, "wrong n_id of 'author'"),
        ({"features": []}, "features of the sample it returned is not None"),
    ],
)
def test_broken_samples_over_types_are_refused(typed, wrong, message):
    sampler = own_over_types(typed, [[2] * 5], **wrong)
    loader = typed.loader(fanouts=[2], batch_size=30, scheduled=True, neighbourhood=sampler)
    with pytest.raises(fp.errors.ParameterError, match=f"^neighbourhood: .*{message}"):
        list(loader)


def test_samples_of_other_seeds_over_types_are_refused(typed):
    of_core = own_over_types(typed, [[2] * 5])

    def other(seeds, epoch, step):
        return of_core([each[::-1] for each in seeds], epoch, step)

    loader = typed.loader(fanouts=[2], batch_size=30, scheduled=True, neighbourhood=other)
    with pytest.raises(fp.errors.ParameterError, match="wrong rows of 'paper': the first are not the seeds"):
        list(loader)
