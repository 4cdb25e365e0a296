"""info() of a partition directory: what it says is what is there."""

import json
import os
import re

import numpy as np
import pytest

import fastpart as fp
from fastpart.cli import main
from typed_graphs import Typed

EDGES = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3], [5, 5]])


@pytest.fixture
def folder(tmp_path):
    partition = fp.spring(EDGES, k=2, seed=3)
    given = {"features": np.zeros((6, 4), np.float32), "labels": np.arange(6), "edge_times": np.arange(8)}
    splits = {"train": [0, 3], "val": [1], "test": [2]}
    partition.save(tmp_path / "parts", graph=EDGES, **given, splits=splits)
    return tmp_path / "parts"


def test_facts_are_what_is_there(folder):
    facts, opened = fp.info(folder), fp.open_partition(folder)
    assert (facts["k"], facts["n"], facts["m"], facts["loops"]) == (2, 6, 8, 1)
    assert (facts["algorithm"], facts["parameters"]["seed"]) == ("spring", 3)
    assert facts["data"]["vertices"]["features"] == {"dtype": "float32", "shape": [4]}
    assert facts["data"]["vertices"]["splits"] == ["train", "val", "test"]
    assert list(facts["data"]["edges"]) == ["count", "times"]
    for told, part in zip(facts["parts"], opened.parts, strict=True):
        assert (told["vertices"], told["halo"]) == (part.num_inner, part.num_halo)
        assert told["edges"] == part.num_edges
        assert told["bytes"] == sum(file.stat().st_size for file in part.folder.iterdir())
    files = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
    assert (facts["files"], facts["bytes"]) == (len(files), sum(map(os.path.getsize, files)))
    assert facts["summary"]["cut_ratio"] == opened.manifest["summary"]["cut_ratio"]
    assert fp.info(str(folder), 3) == facts == json.loads(json.dumps(facts))


def test_rows_of_relations_and_splits_of_all_edges_are_told(tmp_path):
    relations = [
        ("rates", "user", "film", True, [(0, 1), (1, 0), (2, 2), (0, 2)]),
        ("knows", "user", "user", "merged", [(0, 1), (1, 2)]),
    ]
    typed = Typed([("user", 3), ("film", 3)], relations, [0, 1, 0, 1, 1, 0], 2)
    splits = {"val": {"rates": [[2, 3]]}, "test": {"rates": [[1, 4]]}}
    given = {"times": {"user": np.arange(3)}, "edge_times": {"rates": np.arange(4)}}
    stored = typed.saved(tmp_path, **given, edge_splits=splits)
    facts = fp.info(tmp_path / "parts")
    whole = {"dtype": "int64", "shape": []}
    assert facts["data"]["rates"] == {"count": 4, "times": whole}
    assert facts["data"]["user"] == {"count": 3, "times": whole}
    assert facts["data"]["knows"] == {"count": 2}
    assert facts["data"]["edges"] == {"count": 6, "splits": stored.manifest["edge_splits"]}
    assert re.search(r"^rates +4  - .* int64$", str(facts), re.MULTILINE)


def test_the_shell_prints_the_same_and_refuses_options_of_graphs(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder.parent)
    facts = fp.info(folder)
    assert main(["info", "parts/"]) == 0
    text = capsys.readouterr().out
    assert text == f"{facts}\n"
    assert max(map(len, text.splitlines())) <= 80
    assert text.startswith(
        "partition     2 parts of vertices by spring\nvertices      6\nedges         8, of which 1 "
    )
    assert re.search(r"^vertices +6  float32 x 4  int64 +train, val, test  -$", text, re.MULTILINE)
    assert text.splitlines()[-1].split()[0] == list(facts["summary"])[-1] or "label_skew" in text
    assert main(["info", "parts", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == facts
    assert main(["info", "parts", "--columns", "a,b"]) == 2
    assert "--columns: leave it out, or name the graph" in capsys.readouterr().err
    with pytest.raises(fp.errors.ParameterError, match="cluster: a partition directory has no estimates"):
        fp.info(folder, cluster=2)


def test_less_is_known_of_a_directory_without_a_graph(tmp_path):
    fp.VertexPartition([0, 1, 1], k=2).save(tmp_path / "bare")
    facts = fp.info(tmp_path / "bare")
    assert (facts["k"], facts["m"], facts["parts"], facts["data"]) == (2, None, [], {})
    assert str(facts).startswith("partition   2 parts of vertices by ")
    assert "<table>" in facts._repr_html_()


def test_parts_of_edges_have_no_halo(tmp_path):
    fp.algorithms.dbh(EDGES, k=2).save(tmp_path / "edges", graph=EDGES)
    facts = fp.info(tmp_path / "edges")
    assert facts["of"] == "edges"
    assert sum(part["edges"] for part in facts["parts"]) == facts["data"]["edges"]["count"] * 2 - 1
    assert "halo" not in facts["parts"][0]
    assert "rf" in facts["summary"]
    assert "2 parts of edges by dbh" in str(facts)


@pytest.mark.parametrize(
    "content", ["{", '{"schema": 99}', '{"schema": 3, "of": "vertices", "k": 2, "summary": []}']
)
def test_a_damaged_manifest_is_refused_with_its_name(folder, content):
    (folder / "manifest.json").write_text(content)
    with pytest.raises(fp.errors.GraphFormatError, match="parts"):
        fp.info(folder)
