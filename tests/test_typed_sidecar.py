"""Typed graphs: the types and relations of a sidecar, on the graph, checked against the records."""

import copy
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.cli import main
from fastpart.core.options import RunOptions
from fastpart.graphs.sidecars import Sidecar
from fastpart.graphs.types import Relation, TypedRanges, VertexType
from soaked import examples

TYPES = [{"name": "author", "n": 3}, {"name": "field", "n": 0}, {"name": "paper", "n": 4}]
RELATIONS = [
    {"name": "about", "source": "paper", "target": "field", "m": 0, "reverse": True},
    {"name": "cites", "source": "paper", "target": "paper", "m": 2, "reverse": "merged"},
    {"name": "writes", "source": "author", "target": "paper", "m": 3, "reverse": False},
]
RECORDS = [[3, 6], [6, 3], [0, 3], [0, 4], [2, 6]]


@pytest.fixture
def file(tmp_path):
    return written(tmp_path)


def written(folder, records=RECORDS, types=TYPES, relations=RELATIONS, **more):
    """Write a typed graph of seven vertices."""
    target = folder / "g.bin"
    np.array(records, np.uint32).tofile(target)
    content = {"fastpart": 1, "dtype": "u32", "n": 7, "m": len(records), "directedness": "undirected", **more}
    content |= {"types": types, "relations": relations}
    target.with_name("g.bin.json").write_text(json.dumps(content))
    return target


def test_the_types_of_a_graph(file):
    graph = fp.open_graph(file)
    assert graph.types == (VertexType("author", 0, 3), VertexType("field", 3, 0), VertexType("paper", 3, 4))
    assert graph.relations[1] == Relation("cites", "paper", "paper", 0, 2, "merged")
    assert [each.range for each in graph.types] == [range(3), range(3, 3), range(3, 7)]
    assert [each.range for each in graph.relations] == [range(0), range(2), range(2, 5)]
    assert "undirected, 3 types, 3 relations>" in repr(graph)
    assert "author, field, paper" in graph._repr_html_()
    graph.identify()


def test_they_survive_pickles_copies_and_weights(file):
    graph = fp.open_graph(file)
    for again in (pickle.loads(pickle.dumps(graph)), copy.copy(graph)):
        assert (again.types, again.relations) == (graph.types, graph.relations)
        assert again == graph
    weighted = graph._with_weights(np.arange(1, 6, dtype=np.uint32), RunOptions())
    assert weighted.relations == graph.relations


def test_a_sidecar_is_written_as_it_was_read(file):
    sidecar = Sidecar.read(file)
    before = json.loads(Sidecar.beside(file).read_text())
    sidecar.write(file)
    assert json.loads(Sidecar.beside(file).read_text()) == before


@pytest.mark.parametrize(
    "typed",
    [
        None,
        TypedRanges.of(
            TYPES[:1], [{**RELATIONS[1], "source": "author", "target": "author"}], 3, 2, "directed"
        ),
    ],
)
def test_one_type_and_one_relation_are_a_plain_graph(tmp_path, typed):
    target = tmp_path / "g.bin"
    np.array([[0, 1], [1, 2]], np.uint32).tofile(target)
    Sidecar("u32", 3, 2, "directed", "abc", typed=typed).write(target)
    lines = [
        '"fastpart": 1',
        '"dtype": "u32"',
        '"n": 3',
        '"m": 2',
        '"directedness": "directed"',
        '"checksum": "abc"',
    ]
    assert Sidecar.beside(target).read_text() == "{\n " + ",\n ".join(lines) + "\n}\n"
    graph = fp.open_graph(target)
    assert (graph.types, graph.relations) == (None, None)
    assert fp.open_graph(np.array([[0, 1]])).types is None


def test_reverse_has_a_default(tmp_path):
    bare = [{key: value for key, value in each.items() if key != "reverse"} for each in RELATIONS]
    found = fp.open_graph(written(tmp_path, relations=bare)).relations
    assert [each.reverse for each in found] == [True, "merged", True]
    found = fp.open_graph(written(tmp_path, relations=bare, directedness="directed")).relations
    assert [each.reverse for each in found] == [True, False, True]


def changed(entries, place, **change):
    entries = [dict(each) for each in entries]
    entries[place] |= change
    return {"types" if "n" in entries[0] else "relations": entries}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed(TYPES, 0, n=2), "types: 6 together, expected 7"),
        (changed(RELATIONS, 2, m=1), "relations: 3 together, expected 5"),
        (changed(TYPES, 0, n=-3), "types: n: -3"),
        (changed(TYPES, 0, name="paper"), "types: a name is there twice"),
        (changed(RELATIONS, 0, name="cites"), "relations: a name is there twice"),
        (changed(RELATIONS, 0, source="venue"), "'about' has an end that is none of author, field, paper"),
        (changed(RELATIONS, 2, reverse="merged"), "reverse of 'writes' is 'merged'"),
        (changed(RELATIONS, 2, reverse=3), "reverse of 'writes' is 3"),
        (changed(RELATIONS, 2, reverse=1), "reverse of 'writes' is 1"),
        (changed(TYPES, 0, name="../x"), "cannot be the name of a folder"),
        (changed(RELATIONS, 0, name="x\n"), "cannot be the name of a folder"),
        (changed(TYPES, 0, name=3), "a name is no text"),
        ({"types": 5}, "the field 'types' holds an integer, not a list. Delete it"),
        ({"relations": None}, "the field 'relations' holds null, not a list. Delete it"),
        ({"relations": [3]}, r"the field 'relations\[0\]' holds an integer, not an object. Delete it"),
    ],
)
def test_sidecars_that_contradict_themselves(tmp_path, change, message):
    target = written(tmp_path, **change)
    with pytest.raises(fp.errors.GraphFormatError, match=message):
        fp.open_graph(target)


@pytest.mark.parametrize(
    ("place", "record", "message"),
    [
        (0, [2, 4], r"record 0 leads from 2 to 4, but 'cites' leads from 'paper' \(3 to 6\) to 'paper'"),
        (
            4,
            [1, 2],
            r"record 4 leads from 1 to 2, but 'writes' leads from 'author' \(0 to 2\) to 'paper' \(3 to 6\)",
        ),
    ],
)
def test_records_of_other_types_are_named_in_the_first_scan(tmp_path, place, record, message):
    records = [list(each) for each in RECORDS]
    records[place] = record
    graph = fp.open_graph(written(tmp_path, records))
    with pytest.raises(fp.errors.GraphFormatError, match=message):
        graph.identify()
    again = pickle.loads(pickle.dumps(graph))
    again.degrees()  # knows loops and checksum from its own pass
    with pytest.raises(fp.errors.GraphFormatError, match=message):
        fp.info(again)


@examples(15)
@given(st.data())
def test_the_check_finds_the_first_wrong_record(data):
    sizes = data.draw(st.lists(st.integers(0, 3), min_size=2, max_size=3))
    types = [{"name": str(place), "n": size} for place, size in enumerate(sizes)]
    kinds = st.sampled_from([each["name"] for each in types])
    relations = [
        {
            "name": f"r{place}",
            "source": data.draw(kinds),
            "target": data.draw(kinds),
            "m": data.draw(st.integers(0, 3)),
        }
        for place in range(2)
    ]
    n, m = sum(sizes), sum(each["m"] for each in relations)
    ids = st.integers(0, max(n - 1, 0))
    records = np.array([[data.draw(ids), data.draw(ids)] for _ in range(m)], np.uint32).reshape(m, 2)
    of_vertex = [each["name"] for each in types for _ in range(each["n"])] or ["none"]
    of_record = [each for each in relations for _ in range(each["m"])]
    wrong = [
        place
        for place, (u, v) in enumerate(records)
        if (of_vertex[u], of_vertex[v]) != (of_record[place]["source"], of_record[place]["target"])
    ]
    typed = TypedRanges.of(types, relations, n, m, "directed")
    if not wrong:
        typed.check(lambda start, stop: records[start:stop], "g")
        return
    with pytest.raises(fp.errors.GraphFormatError, match=f"g: record {wrong[0]} leads"):
        typed.check(lambda start, stop: records[start:stop], "g")


def test_info(file, capsys):
    facts = fp.info(file)
    assert (facts["types"], facts["relations"]) == (TYPES, RELATIONS)
    assert main(["info", str(file)]) == 0
    out = capsys.readouterr().out
    for row in (
        "author 3",
        "field 0",
        "paper 4",
        "about paper field 0",
        "cites paper paper 2",
        "writes author paper 3",
    ):
        assert row in [" ".join(line.split()) for line in out.splitlines()]


def test_typed_graphs_are_partitioned_as_they_are(file):
    graph = fp.open_graph(file)
    p = fp.spring(graph, k=2)
    plain = fp.spring(fp.open_graph(np.array(RECORDS), num_vertices=7), k=2)
    assert p.assignment.tolist() == plain.assignment.tolist()
    assert graph != fp.open_graph(np.array(RECORDS), num_vertices=7)
