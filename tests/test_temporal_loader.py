"""Loaders that do not look ahead: times of the directory or of the user, any partition, and what is refused."""

import json
import pickle
from functools import partial
from itertools import chain

import numpy as np
import pytest

import fastpart as fp
from temporal import NO_TIME, save, timed_graph

torch = pytest.importorskip("torch")

from loaded import Sage, endless, trained  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")

N = 300


def graph():
    """Return records, and rows to save: all vertices have times and labels."""
    records, times, edge_times = timed_graph(N)
    rng = np.random.default_rng(1)
    times = rng.integers(0, 60, N)
    features = rng.normal(size=(N, 6))
    rows = {
        "features": features,
        "labels": features[:, :3].argmax(1),
        "splits": {"train": np.arange(0, N, 2)},
    }
    return records, {"times": times, "edge_times": edge_times, **rows}


def test_an_opened_partition_is_pickled_after_its_use(parts):
    assert len(list(parts.loader(fanouts=[2], temporal="uniform", batch_size=32)))
    assert pickle.loads(pickle.dumps(parts)) == parts


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    records, rows = graph()
    return save(tmp_path_factory.mktemp("temporal") / "parts", N, records, 3, **rows)


@pytest.mark.parametrize("temporal", ["uniform", "last"])
def test_losses_do_not_depend_on_partition_and_ranks(tmp_path, temporal):
    records, rows = graph()
    found = []
    for k, ranks in [(1, 1), (2, 2), (4, 2)]:
        stored = save(tmp_path / f"{k}", N, records, k, **rows)
        how = {"fanouts": [4, 3], "batch_size": 40, "temporal": temporal, "world_size": ranks}
        loaders = [stored.loader("train", rank=rank, **how) for rank in range(ranks)]
        found.append(trained(endless(loaders), 8))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-10)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-10)


@pytest.mark.parametrize("temporal", ["uniform", "last"])
def test_no_batch_holds_what_came_later(parts, temporal):
    records, rows = graph()
    for batch in parts.loader("train", fanouts=[5, 5], batch_size=30, temporal=temporal):
        seeds = batch.n_id[: batch.batch_size].numpy()
        assert np.array_equal(batch.seed_time[: batch.batch_size], rows["times"][seeds])
        sources = batch.indices.numpy()
        before = batch.seed_time.numpy()[sources]
        assert (rows["times"][batch.n_id.numpy()[sources]] < before).all()
        assert (rows["edge_times"][batch.e_id.numpy() % len(records)] < before).all()
        targets = np.repeat(batch.seed_time[: len(batch.indptr) - 1].numpy(), np.diff(batch.indptr))
        assert np.array_equal(targets, before)
        assert torch.equal(batch.x, torch.from_numpy(rows["features"])[batch.n_id])
        assert batch.to("cpu").seed_time.dtype == torch.int64


def test_whole_neighbourhoods_before_a_time(parts):
    records, rows = graph()
    loader = parts.loader(np.arange(9), fanouts=[-1], temporal="uniform", input_time=np.full(9, 30))
    (batch,) = loader
    ends = np.concatenate([records, records[records[:, 0] != records[:, 1], ::-1]])
    at = np.concatenate([rows["edge_times"], rows["edge_times"][records[:, 0] != records[:, 1]]])
    early = ends[np.maximum(at, rows["times"][ends[:, 0]]) < 30]
    assert np.array_equal(np.diff(batch.indptr), np.bincount(early[:, 1], minlength=N)[:9])


def test_a_vertex_may_be_a_seed_at_several_times(parts):
    ids, times = np.repeat([5, 2, 9], 2), np.array([10, 20, 30, 40, 50, 60])
    how = {"fanouts": [3], "temporal": "last", "batch_size": 4}
    loader = parts.loader(ids, input_time=times, shuffle=True, **how)
    met = [(batch.input_id.tolist(), batch.seed_time[: batch.batch_size].tolist()) for batch in loader]
    assert [[times[i] for i in positions] for positions, _ in met] == [at for _, at in met]
    assert sorted(chain.from_iterable(positions for positions, _ in met)) == list(range(6))
    turned = parts.loader(ids[::-1], input_time=times[::-1], shuffle=True, **how)
    assert [batch.seed_time[: batch.batch_size].tolist() for batch in turned] == [at for _, at in met]


def test_plans_caches_and_resident_rows_never_change_a_batch(parts, tmp_path):
    how = {"fanouts": [4, 3], "batch_size": 40, "temporal": "uniform"}
    plan = parts.plan(2, pack=tmp_path / "plan", **how)
    expected = [(b.n_id, b.x) for b in parts.loader("train", **how)]
    for more in ({"plan": plan}, {"cache": 0.5}, {"resident": "100K"}, {"io": "direct"}, {"ahead": 0}):
        found = [(b.n_id, b.x) for b in parts.loader("train", **how, **more)]
        assert all(
            torch.equal(a, b)
            for pair in zip(expected, found, strict=True)
            for a, b in zip(*pair, strict=True)
        )
    with pytest.raises(fp.errors.ParameterError, match=r"made for temporal='uniform', not 'last'"):
        parts.loader("train", plan=plan, **how | {"temporal": "last"})
    with pytest.raises(fp.errors.ParameterError, match="made for other vertices; other times of the seeds"):
        parts.loader(np.arange(5), plan=plan, input_time=np.arange(5), **how)


def test_a_network_learns_from_the_past(parts):
    loader = parts.loader("train", fanouts=[4, 3], batch_size=50, temporal="uniform")
    losses = trained(endless([loader]), 60)
    assert losses[-3:].mean() < 0.6 * losses[:3].mean()
    assert isinstance(Sage(), torch.nn.Module)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"temporal": "first"}, fp.errors.ParameterError, "temporal: .*uniform.*last"),
        (
            {"temporal": "last", "sampling": "labor"},
            fp.errors.ParameterError,
            "sampling: temporal='last' says how",
        ),
        (
            {"temporal": "last", "scheduled": True},
            fp.errors.ParameterError,
            "temporal samples are not scheduled",
        ),
        ({"input_time": [1]}, fp.errors.ParameterError, 'Pass temporal="uniform"'),
        ({"temporal": "last", "input_time": [1, 2]}, fp.errors.ParameterError, "2 times for 3 vertices"),
        (
            {"temporal": "last", "input_time": [1, NO_TIME, 2]},
            fp.errors.ParameterError,
            "item 1 is .* no time",
        ),
        (
            {"temporal": "last", "input_time": [1.5, 2, 3]},
            TypeError,
            "whole number per seed, as int64, got float64",
        ),
        (
            {"temporal": "last", "vertices": "train", "input_time": [1]},
            fp.errors.ParameterError,
            "Pass their ids",
        ),
        (
            {"temporal": "last", "vertices": [4, 4], "input_time": [7, 7]},
            fp.errors.ParameterError,
            "item 1 occurs more than once with the time 7",
        ),
    ],
)
def test_refusals(parts, given, error, text):
    vertices = given.pop("vertices", [1, 2, 3])
    with pytest.raises(error, match=text):
        parts.loader(vertices, fanouts=[2], **given)


def test_seeds_without_a_time_are_refused(tmp_path):
    records, rows = graph()
    none = save(tmp_path / "none", N, records, 2)
    with pytest.raises(
        fp.errors.ParameterError, match=r"holds no times. Save the partition with edge_times= or times="
    ):
        none.loader([1], fanouts=[2], temporal="uniform")
    edges = save(tmp_path / "edges", N, records, 2, edge_times=rows["edge_times"])
    with pytest.raises(
        fp.errors.ParameterError, match=r"1 of 1 seeds have no time, the first is vertex 1. Save.*input_time="
    ):
        edges.loader([1], fanouts=[2], temporal="uniform")
    assert len(list(edges.loader([1], fanouts=[2], temporal="uniform", input_time=[5]))) == 1
    rows["times"][[7, 8]] = NO_TIME
    some = save(tmp_path / "some", N, records, 2, times=rows["times"])
    with pytest.raises(fp.errors.ParameterError, match="2 of 3 seeds have no time, the first is vertex 8"):
        some.loader([8, 1, 7], fanouts=[2], temporal="uniform")


@pytest.mark.parametrize("name", ["times.npy", "edge_times.npy"])
@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda file: file.unlink(), "is missing"),
        (lambda file: np.save(file, np.load(file)[1:]), "expected int64 of shape"),
        (lambda file: np.save(file, np.load(file).astype(np.float64)), "expected int64 of shape"),
        (lambda file: file.write_bytes(file.read_bytes()[:-8]), "not a .npy array"),
    ],
)
def test_hostile_directories(tmp_path, name, change, text):
    records, rows = graph()
    save(tmp_path / "parts", N, records, 2, **rows)
    change(tmp_path / "parts" / "part-00000" / name)
    stored = fp.open_partition(tmp_path / "parts", of="vertices")
    with pytest.raises(fp.errors.GraphFormatError, match=text):
        list(stored.loader([1], fanouts=[2], temporal="uniform", input_time=[5]))


def test_a_manifest_with_another_type_of_times(tmp_path):
    records, rows = graph()
    save(tmp_path / "parts", N, records, 2, **rows)
    manifest = tmp_path / "parts" / "manifest.json"
    content = json.loads(manifest.read_text())
    content["times"] = {"dtype": "float32", "shape": []}
    manifest.write_text(json.dumps(content))
    load = partial(fp.open_partition, tmp_path / "parts", of="vertices")
    with pytest.raises(fp.errors.GraphFormatError, match="expected float32 of shape"):
        load().loader([1], fanouts=[2], temporal="uniform", input_time=[5])
