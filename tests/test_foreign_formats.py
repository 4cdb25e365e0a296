"""Formats of graphs that fastpart does not read: refused by name, with a remedy that works as it is written."""

import gzip
import json
import pickle
import re
import struct
import subprocess

import polars as pl
import pytest

import fastpart as fp
from fastpart.cli import main

nx = pytest.importorskip("networkx")

PATH = nx.path_graph(4)


def written(write):
    return lambda file: write(PATH, file)


def dumped(content):
    return lambda file: file.write_text(json.dumps(content))


def text(content):
    return lambda file: file.write_text(content)


FORMATS = {
    "g.gml": ("GML", written(nx.write_gml)),
    "g.graphml": ("GraphML", written(nx.write_graphml)),
    "g.gexf": ("GEXF", written(nx.write_gexf)),
    "g.net": ("a network of Pajek", written(nx.write_pajek)),
    "g.g6": ("graph6", written(nx.write_graph6)),
    "g.s6": ("sparse6", written(nx.write_sparse6)),
    "links.json": ("node-link JSON", dumped(nx.node_link_data(PATH, edges="links"))),
    "edges.json": ("node-link JSON", dumped(nx.node_link_data(PATH, edges="edges"))),
    "adjacency.json": ("adjacency JSON", dumped(nx.adjacency_data(PATH))),
    "pairs.json": ("JSON", dumped([[0, 1], [1, 2], [2, 3]])),
    "rows.json": ("JSON", dumped([{"source": v, "target": v + 1} for v in range(3)])),
    "rows.txt": ("JSON, an object a line", text("".join(f'{{"u": {v}, "v": {v + 1}}}\n' for v in range(3)))),
    "g.col": ("DIMACS", text("c made by x\np edge 4 3\ne 1 2\ne 2 3\ne 3 4\n")),
    "g.mtx": (
        "Matrix Market whose first line begins with one %",
        text("%MatrixMarket matrix coordinate pattern symmetric\n4 4 3\n2 1\n3 2\n4 3\n"),
    ),
    "out.g": ("a bipartite network of KONECT", text("% bip unweighted\n% 3 2 2\n1 1\n2 1\n2 2\n")),
}


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # the remedy leaves a file open
@pytest.mark.parametrize("name", FORMATS)
def test_the_remedy_opens_the_graph(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    called, write = FORMATS[name]
    write(tmp_path / name)
    with pytest.raises(
        fp.errors.GraphFormatError, match=rf"^{re.escape(name)}: line 1, column 1: {called}"
    ) as error:
        fp.open_graph(name)
    if code := re.search(r"In Python: (fp\..*)$", str(error.value)):
        graph = eval(code[1], {"fp": fp, "networkx": nx, "json": json, "polars": pl})
    else:
        command = re.search(r"`(.*)`", str(error.value))[1]
        subprocess.run(command, shell=True, check=True)
        graph = fp.open_graph(command.rpartition(" > ")[2])
    assert graph.num_edges == 3


def test_each_verb_says_it_and_packing_does_not_matter(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    nx.write_gml(PATH, "g.gml")
    (tmp_path / "g.gz").write_bytes(gzip.compress((tmp_path / "g.gml").read_bytes()))
    for file in ("g.gml", "g.gz"):
        for verb in ("partition FILE -k 2", "info FILE", "compare FILE -k 2", "convert FILE o"):
            assert main([*verb.replace("FILE", file).split(), "-q"]) == 1
            said = capsys.readouterr().err
            assert f"{file}: line 1, column 1: GML" in said
            assert f'In Python: fp.open_graph(networkx.read_gml("{file}"))' in said
    with pytest.raises(fp.errors.GraphFormatError, match=r"g\.gml: line 1, column 1: GML"):
        fp.open_graph(["g.gml", "g.gml"])


@pytest.mark.parametrize("line", ["graph {\n0 -- 1;\n}\n", "strict digraph x\n{\n0 -> 1\n}\n"])
def test_others_that_are_named(tmp_path, line):
    (tmp_path / "g.dot").write_text(line)
    with pytest.raises(fp.errors.GraphFormatError, match=r"DOT of Graphviz.*nx_pydot\.read_dot"):
        fp.open_graph(tmp_path / "g.dot")


@pytest.mark.parametrize("name", ["g", "g.pkl", "g.bin", "g.txt"])
def test_pickles_and_binaries_are_named(tmp_path, name):
    for protocol in range(2, 6):
        for content in (PATH, [[0, 1]], {"edges": [[0, 1]]}):
            (tmp_path / name).write_bytes(pickle.dumps(content, protocol))
            with pytest.raises(fp.errors.GraphFormatError, match=f"{name}: this is a pickle of Python"):
                fp.open_graph(tmp_path / name)
    parhip = [3, 4, 6, *(8 * (8 + each) for each in (0, 1, 3, 5, 6)), 1, 0, 2, 1, 3, 2]
    (tmp_path / name).write_bytes(struct.pack(f"<{len(parhip)}Q", *parhip))
    with pytest.raises(fp.errors.GraphFormatError, match=f"{name}: this is a binary graph of ParHIP"):
        fp.open_graph(tmp_path / name)


def test_hypergraphs_are_refused(tmp_path):
    (tmp_path / "g.hgr").write_text("2 4\n1 2 3\n2 3 4\n")
    with pytest.raises(fp.errors.GraphFormatError, match=r"g\.hgr: a hypergraph of hMETIS"):
        fp.open_graph(tmp_path / "g.hgr")


def test_a_matrix_is_known_by_its_name_and_in_small_letters(tmp_path):
    (tmp_path / "g.mtx").write_text("4 4 2\n1 2\n2 3\n")
    with pytest.raises(fp.errors.GraphFormatError, match=r"no sparse matrix\. Expected `%%MatrixMarket"):
        fp.open_graph(tmp_path / "g.mtx")
    (tmp_path / "g").write_text("%%matrixmarket matrix coordinate pattern symmetric\n4 4 2\n2 1\n3 2\n")
    assert fp.open_graph(tmp_path / "g").num_vertices == 4
