"""What belongs to vertices follows their ids, wherever a graph has them: parts, features, labels, splits, weights."""

import json

import numpy as np
import polars as pl
import pytest

import fastpart as fp
from fastpart.cli import main

N, OLD = 1000, 900


@pytest.fixture(scope="module")
def users():
    """Ids of 6 digits, in random order, and records among 4 planted blocks of them."""
    rng = np.random.default_rng(7)
    ids = np.array([f"{each:06}" for each in rng.choice(10**6, N, replace=False)])
    u = rng.integers(0, N, 12_000)
    same = rng.random(len(u)) < 0.92
    v = np.where(same, 4 * rng.integers(0, N // 4, len(u)) + u % 4, rng.integers(0, N, len(u)))
    return ids, np.stack([u, v], axis=1)


def frame(ids, records):
    return pl.DataFrame({"source": ids[records[:, 0]], "target": ids[records[:, 1]]})


def by_id(partition, graph):
    """Return the part of each id, as plain dicts have it."""
    return dict(fp.restore(partition, graph=graph).select("id", "part").rows())


@pytest.fixture(scope="module")
def dense(users):
    """The cut of an update of the same graph with numbers, whose new vertices come last."""
    _, records = users
    old = fp.open_graph(records[(records < OLD).all(axis=1)], num_vertices=OLD)
    updated = fp.update(fp.partition(old, 4), fp.open_graph(records, num_vertices=N))
    return updated.cut_ratio


def schema(table):
    ends = {"source": {"user": "source"}, "target": {"user": "target"}}
    return {"vertices": {"user": {}}, "relations": {"follows": {"files": table, **ends}}}


@pytest.mark.parametrize("door", ["frame", "ingest", "directory", "shell"])
def test_an_update_follows_ids(users, dense, door, tmp_path, capsys):
    ids, records = users
    tables = frame(ids, records[(records < OLD).all(axis=1)]), frame(ids, records)
    if door == "frame":
        graphs = [fp.open_graph(table) for table in tables]
    elif door == "ingest":
        graphs = [fp.ingest(schema(table), tmp_path / f"g{i}") for i, table in enumerate(tables)]
    else:
        graphs = [fp.ingest(schema(tables[0]), tmp_path / "graph")]
    p = fp.partition(graphs[0], 4)
    before = by_id(p, graphs[0])
    if door in ("directory", "shell"):  # the new graph takes the place of the old one
        p.save(tmp_path / "parts")
        graphs.append(fp.ingest(schema(tables[1]), tmp_path / "graph"))
    if door == "shell":
        words = [
            "update",
            str(tmp_path / "graph"),
            str(tmp_path / "parts"),
            "-o",
            str(tmp_path / "new"),
            "-q",
        ]
        assert main(words) == 0
        capsys.readouterr()
        q = fp.open_partition(tmp_path / "new", graphs[1])
    else:
        q = fp.update(tmp_path / "parts" if door == "directory" else p, graphs[1])
    after = by_id(q, graphs[1])
    assert len(after) == N
    moved = sum(after[each] != part for each, part in before.items())
    assert q.parameters["moved"] == moved <= np.ceil(0.05 * OLD)
    assert q.cut_ratio <= 1.05 * dense


def test_vertices_that_are_gone_are_told(users, caplog):
    caplog.set_level("INFO", "fastpart")
    ids, records = users
    old = fp.open_graph(frame(ids, records))
    new = fp.open_graph(frame(ids, records[(records >= 50).all(axis=1)]))
    p = fp.partition(old, 4)
    q = fp.update(p, new, moves=0)
    before, after = by_id(p, old), by_id(q, new)
    assert all(before[each] == part for each, part in after.items())
    gone = N - len(after)
    assert gone >= 50
    assert any(f"{gone} of 1,000 vertices of the partition are gone" in each for each in caplog.messages)


def typed(papers, authors, cites, writes):
    papers, authors = np.array(papers), np.array(authors)
    cites = pl.DataFrame({"a": papers[cites[0]], "b": papers[cites[1]]})
    writes = pl.DataFrame({"a": authors[writes[0]], "b": papers[writes[1]]})
    return {
        "vertices": {
            "paper": {"files": pl.DataFrame({"id": papers}), "id": "id"},
            "author": {"files": pl.DataFrame({"id": authors}), "id": "id"},
        },
        "relations": {
            "cites": {"files": cites, "source": {"paper": "a"}, "target": {"paper": "b"}},
            "writes": {"files": writes, "source": {"author": "a"}, "target": {"paper": "b"}},
        },
    }


def test_each_type_follows_its_ids(tmp_path):
    rng = np.random.default_rng(3)
    papers = [f"p{each}" for each in rng.choice(10**6, 120, replace=False)]
    authors = rng.choice(10**9, 60, replace=False).tolist()
    cites, writes = rng.integers(0, 120, (2, 500)), rng.integers(0, 60, (2, 300))
    old = fp.ingest(typed(papers[:100], authors[:50], cites % 100, writes % 50), tmp_path / "g")
    p = fp.multilevel(old, 3)
    before = {}
    for name in ("paper", "author"):
        of = {each.name: each for each in old.types}[name]
        table = fp.restore(p.assignment[of.range.start : of.range.stop], graph=old, of_type=name)
        before |= {(name, each): part for each, part in table.rows()}
    p.save(tmp_path / "parts")
    new = fp.ingest(typed(papers, authors, cites, writes), tmp_path / "g")
    q = fp.update(tmp_path / "parts", new, moves=0, balance=1.5)
    for each in new.types:
        table = fp.restore(q.assignment[each.range.start : each.range.stop], graph=new, of_type=each.name)
        known = [(part, before[each.name, id]) for id, part in table.rows() if (each.name, id) in before]
        assert len(known) == (100 if each.name == "paper" else 50)
        assert all(part == old_part for part, old_part in known)
    with pytest.raises(fp.EdgeFileChangedError, match="its directory was replaced"):
        fp.update(p, new)  # the directory of its graph has other ids now


def test_graphs_that_cannot_be_matched(users, tmp_path):
    ids, records = users
    graph, plain = fp.open_graph(frame(ids, records)), fp.open_graph(records, num_vertices=N)
    p = fp.partition(graph, 2)
    assert fp.update(p, graph).parameters["moved"] == 0
    with pytest.raises(fp.ParameterError, match=r"the vertices of the partition have ids\. Open a newer"):
        fp.update(p, plain)
    np.save(tmp_path / "p.npy", p.assignment)
    for start in (p.assignment, tmp_path / "p.npy"):
        with pytest.raises(
            fp.ParameterError, match=r"does not say which ids its rows are of\. Pass a partition dir"
        ):
            fp.update(start, graph)
    others = fp.open_graph(pl.DataFrame({"source": ["x", "y"], "target": ["y", "z"]}))
    with pytest.raises(fp.ParameterError, match="none of its ids is an id of the partition"):
        fp.update(p, others)
    numbers = fp.open_graph(pl.DataFrame({"source": [5, 900], "target": [900, 10**12]}), relabel=True)
    with pytest.raises(fp.ParameterError, match="are Int64, those of the partition String"):
        fp.update(p, numbers)


def test_a_directory_has_ids_only_if_the_graph_has(users, tmp_path):
    ids, records = users
    graph, plain = fp.open_graph(frame(ids, records)), fp.open_graph(records, num_vertices=N)
    for name, each in {"with": graph, "without": plain}.items():
        fp.partition(each, 2).save(tmp_path / name)
        fp.store.verify(tmp_path / name)
    stored = json.loads((tmp_path / "with" / "manifest.json").read_text())
    assert stored["ids"] == ["vertex"]
    assert "ids/vertex.parquet" in stored["files"]
    assert "ids" not in json.loads((tmp_path / "without" / "manifest.json").read_text())
    assert not (tmp_path / "without" / "ids").exists()
    assert (tmp_path / "with" / "ids" / "vertex.parquet").read_bytes() == (
        graph.directory / "ids" / "vertex.parquet"
    ).read_bytes()


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        (["vertex", "other"], "ids: expected the types of the vertices"),
        (["../../vertex"], "leads out of the partition directory"),
        (["absent"], "is missing"),
        ("vertex", "ids: expected a list of names"),
    ],
)
def test_a_damaged_list_of_ids_is_refused(users, tmp_path, ids, text):
    table, records = users
    graph = fp.open_graph(frame(table, records[:50]))
    fp.partition(graph, 2).save(tmp_path / "parts")
    file = tmp_path / "parts" / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"ids": ids}))
    with pytest.raises(fp.GraphFormatError, match=text):
        fp.update(tmp_path / "parts", fp.open_graph(frame(table, records[:60])))
