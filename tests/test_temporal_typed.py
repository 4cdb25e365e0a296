"""Typed graphs: in-edges of each relation that were there before the time of a seed, for any partition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart import _core
from soaked import examples
from temporal import NO_TIME, early, latest
from typed_graphs import Typed, authors, typed_graphs

NUMBERS = st.integers(-3, 3) | st.just(NO_TIME)


def timed(draw, sizes):
    """Return times of some types or relations."""
    found = {}
    for name, count in sizes.items():
        if draw(st.booleans()):
            found[name] = np.array(draw(st.lists(NUMBERS, min_size=count, max_size=count)), np.int64)
    return found


def in_edges(graph, times, edge_times):
    """Return by vertex and type of edges: [(source, edge id, its time, that of its source)], in order."""
    of_vertex = np.full(graph.n, NO_TIME)
    for name, values in times.items():
        of_vertex[graph.range_of(name)] = values
    of_record = np.full(graph.m, NO_TIME)
    first = 0
    for name, _, _, _, pairs in graph.relations:
        of_record[first : first + len(pairs)] = edge_times.get(name, NO_TIME)
        first += len(pairs)
    found = {}
    for number, record, edge, u, v in graph.edges():
        found.setdefault((v, number), []).append((u, edge, of_record[record], of_vertex[u]))
    return found


@examples(10)
@given(typed_graphs(), st.data())
def test_batches_follow_the_definition(tmp_path_factory, graph, data):
    draw, folder = data.draw, tmp_path_factory.mktemp("typed")
    times = timed(draw, dict(graph.types))
    edge_times = timed(draw, {name: len(pairs) for name, *_, pairs in graph.relations})
    given = {"times": times or None, "edge_times": edge_times or None}
    if not graph.n or not (times or edge_times):
        return
    stored = graph.saved(folder, **given)
    seeds = draw(
        st.lists(st.tuples(st.integers(0, graph.n - 1), st.integers(-3, 4)), max_size=5, unique=True)
    )
    strategy, fanouts = (
        draw(st.sampled_from(["uniform", "last"])),
        draw(
            st.lists(
                st.lists(
                    st.sampled_from([-1, 0, 1, 3]),
                    min_size=len(graph.edge_types),
                    max_size=len(graph.edge_types),
                ),
                min_size=1,
                max_size=2,
            )
        ),
    )
    how = {"times": stored._times, "temporal": strategy, "edge_ids": True}
    sampler = _core.Sampler(stored._topology, fanouts, types=stored._types, **how)
    rows = stored._topology.rows_of(np.array([v for v, _ in seeds], np.int64))
    batch = sampler.sample(rows, times=np.array([time for _, time in seeds], np.int64))
    check(batch, graph, fanouts, strategy, in_edges(graph, times, edge_times), edge_times)


def check(batch, graph, fanouts, strategy, edges, edge_times):
    """Compare the in-edges of every node and relation with the definition."""
    names = [name for name, _ in graph.types]
    nodes = [
        list(zip(ids.tolist(), at.tolist(), strict=True))
        for ids, at in zip(batch.n_id, batch.seed_time, strict=True)
    ]
    for number, (name, source, target) in enumerate(graph.edge_types):
        of_relation, indptr = name.removeprefix("rev_"), batch.indptr[number]
        sources, targets = nodes[names.index(source)], nodes[names.index(target)]
        levels = np.cumsum([0, *batch.num_sampled_nodes[names.index(target)]])
        for hop, fanout in enumerate(fanouts):
            for node in range(levels[hop], levels[hop + 1]):
                v, time = targets[node]
                row = slice(indptr[node], indptr[node + 1])
                found = [sources[i] for i in batch.indices[number][row]]
                ids = batch.e_id[number][row].tolist()
                allowed = early(edges.get((v, number), []), time)
                count = min(len(allowed), len(allowed) if fanout[number] < 0 else fanout[number])
                if strategy == "last":
                    allowed = latest(allowed, count, of_relation in edge_times)
                assert len(ids) == count
                assert [u for u, _ in found] == [{e: u for u, e, *_ in allowed}[e] for e in ids]
                assert all(at == time for _, at in found)


def test_batches_are_the_same_for_any_partition(tmp_path):
    rng = np.random.default_rng(0)
    sizes = {"paper": 60, "author": 40}
    cites, writes = (
        np.stack([rng.integers(0, count, 800), rng.integers(0, 60, 800)], axis=1).tolist()
        for count in (60, 40)
    )
    relations = [("cites", "paper", "paper", True, cites), ("writes", "author", "paper", True, writes)]
    found = []
    for k in (1, 2, 4):
        graph = Typed(
            list(sizes.items()),
            relations,
            rng.integers(0, k, 100).tolist(),
            k,
        )
        (tmp_path / str(k)).mkdir()
        of_records = np.random.default_rng(1).integers(0, 50, 800)
        times = {"paper": np.arange(60)}
        stored = graph.saved(tmp_path / str(k), times=times, edge_times={"cites": of_records})
        sampler = _core.Sampler(
            stored._topology,
            [[2, 3, 2, 3], [2, 2, 2, 2]],
            types=stored._types,
            times=stored._times,
            edge_ids=True,
        )
        batch = sampler.sample(stored._topology.rows_of(np.arange(0, 60, 3)), times=np.arange(20, 40))
        found.append([*batch.n_id, *batch.seed_time, *batch.indptr, *batch.indices, *batch.e_id])
    for other in found[1:]:
        assert all(map(np.array_equal, found[0], other))


@pytest.mark.torch
def test_a_loader_of_typed_graphs(tmp_path):
    pytest.importorskip("torch_geometric")
    times = {"paper": np.array([9, 5, 7, NO_TIME]), "author": np.arange(3)}
    stored = authors().saved(tmp_path, times=times, edge_times={"cites": np.array([1, 9, 2, 3])})
    first = authors().first["paper"]
    ids = first + np.arange(3)
    (batch,) = stored.loader(ids, fanouts=[-1, -1], temporal="uniform")
    assert batch.seed_time_dict["paper"][:3].tolist() == [9, 5, 7]
    assert set(batch.seed_time_dict) == {"author", "field", "paper", "venue"}
    for name, n_id in batch.n_id_dict.items():
        assert len(batch.seed_time_dict[name]) == len(n_id)
    assert batch.hetero_data()["paper"].seed_time[:3].tolist() == [9, 5, 7]
    with pytest.raises(
        fp.errors.ParameterError, match=f"1 of 4 seeds have no time, the first is vertex {first + 3}"
    ):
        stored.loader(first + np.arange(4), fanouts=[2], temporal="last")
    (again,) = stored.loader([ids[0], ids[0]], fanouts=[2], temporal="last", input_time=[3, 4])
    assert again.seed_time_dict["paper"][:2].tolist() == [3, 4]


def test_times_of_the_wrong_length(tmp_path):
    stored = authors().saved(tmp_path, times={"paper": np.arange(4)}, edge_times={"cites": np.arange(4)})
    file = stored.parts[0].of_relation("cites")._file("times.npy")
    np.save(file, np.load(file)[1:])
    with pytest.raises(fp.errors.GraphFormatError, match="expected int64 of shape"):
        _ = fp.open_partition(tmp_path / "parts")._times
