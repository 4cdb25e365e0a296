"""Exports: the text format, and what every export refuses; no torch."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpart as fp
from exported import triangles
from fastpart.cli import main
from needed import needing_torch
from strategies import assignments

MARKERS = {
    "dgl": "graph.json",
    "glt": "fastpart.json",
    "pyg": "META.json",
    "text": "part_meta.json",
    "wholegraph": "partition_book.json",
}
SYSTEMS = list(MARKERS)
WITH_EDGES = [system for system in SYSTEMS if system != "text"]


def export(system, *arguments, **options):
    return getattr(fp.export, system)(*arguments, **options)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def parts(tmp_path):
    return triangles().save(tmp_path / "parts")


# The text format.


@st.composite
def vertex_partitions(draw):
    parts, k = draw(assignments(draw(st.integers(0, 50))))
    return fp.VertexPartition(parts, k)


@settings(max_examples=15)
@given(part=vertex_partitions())
@pytest.mark.parametrize("name", ["parts", "part.parquet"])
def test_text_is_what_the_dispatch_pipeline_opens(tmp_path_factory, part, name):
    folder = tmp_path_factory.mktemp("text")
    part.save(folder / name)
    made = fp.export.text(folder / name, folder / "text")
    assert made == folder / "text"
    assert names(made) == ["_N.txt", "assignment.txt", "part_meta.json", "partition_meta.json"]
    for file in ("_N.txt", "assignment.txt"):
        assert [int(line) for line in (made / file).read_text().splitlines()] == part.assignment.tolist()
    for file in ("part_meta.json", "partition_meta.json"):
        meta = json.loads((made / file).read_text())
        # The pipeline refuses other versions and other names.
        assert (meta["version"], meta["num_parts"], meta["algo_name"]) == ("1.0.0", part.k, "metis")
        assert meta["algorithm"] == "user"


def test_text_moves_with_its_links(tmp_path, parts):
    fp.export.text(parts, tmp_path / "text").rename(tmp_path / "moved")
    assert (tmp_path / "moved" / "_N.txt").read_text() == "0\n1\n0\n1\n0\n1\n0\n"


# Sources.


@pytest.mark.parametrize("system", SYSTEMS)
def test_edge_partitions_are_refused(tmp_path, system):
    fp.EdgePartition([0, 1, 0], k=2).save(tmp_path / "part.npy")
    with pytest.raises(
        fp.errors.ParameterError,
        match=r"source: .*part\.npy is an edge partition, but (DGL|GLT|PyG|WholeGraph) needs",
    ):
        export(system, tmp_path / "part.npy", tmp_path / "out")
    assert names(tmp_path) == ["part.npy"]


@pytest.mark.parametrize("system", WITH_EDGES)
def test_partitions_without_halo_are_refused(tmp_path, system):
    folder = triangles(halo_hops=0).save(tmp_path / "parts")
    with pytest.raises(
        fp.errors.ParameterError,
        match=r"saved with halo_hops=0, but (DGL|GLT|PyG|WholeGraph) needs .* with halo_hops=1",
    ):
        export(system, folder, tmp_path / "out")
    for name in ("bare", "part.npy"):
        fp.VertexPartition([0, 1], k=2).save(tmp_path / name)
        with pytest.raises(
            fp.errors.ParameterError, match=rf"{name} holds no edges\. .*p\.save\(DIR, graph="
        ):
            export(system, tmp_path / name, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("system", SYSTEMS)
def test_missing_sources_are_named(tmp_path, system):
    with pytest.raises(FileNotFoundError, match="absent"):
        export(system, tmp_path / "absent", tmp_path / "out")
    with pytest.raises(TypeError, match="source: expected a path"):
        export(system, None, tmp_path / "out")


@pytest.mark.parametrize("system", needing_torch(WITH_EDGES, "glt", "pyg"))
def test_parts_that_contradict_the_assignment_are_refused(tmp_path, parts, system):
    shutil.copyfile(parts / "part-00001" / "vertices.npy", parts / "part-00001" / "kept.npy")
    for change in ([0, 2, 6], [5, 3, 1], [1, 3, 3], [1, 3, 99], [-1, 3, 5]):
        vertices = np.load(parts / "part-00001" / "kept.npy")
        vertices[:3] = change
        np.save(parts / "part-00001" / "vertices.npy", vertices)
        with pytest.raises(
            fp.errors.GraphFormatError,
            match=r"inner vertices of part 1 contradict assignment|vertices\.npy: expected",
        ):
            export(system, parts, tmp_path / "out")
    assert names(tmp_path) == ["parts"]


# Targets.


@pytest.mark.parametrize("system", SYSTEMS)
def test_only_earlier_exports_are_replaced(tmp_path, parts, system):
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "chapter.tex").write_text("years of work")
    for content in (None, "years of work", '{"graph_name": "mine"}', "[1]"):
        if content is not None:
            (thesis / MARKERS[system]).write_text(content)
        with pytest.raises(
            FileExistsError, match=rf"not an earlier export \(no {MARKERS[system]} of fastpart"
        ):
            export(system, parts, thesis)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError, match=r"not an earlier export .*file"):
        export(system, parts, tmp_path / "file")
    with pytest.raises(FileNotFoundError, match=r"folder of the output does not exist.*absent"):
        export(system, parts, tmp_path / "absent" / "out")
    assert (thesis / "chapter.tex").read_text() == "years of work"
    assert names(tmp_path) == ["file", "parts", "thesis"]


def test_text_is_replaced(tmp_path, parts):
    (tmp_path / "out").mkdir()
    fp.export.text(parts, tmp_path / "out")
    fp.VertexPartition([1, 0], k=2).save(tmp_path / "part.npy")
    fp.export.text(tmp_path / "part.npy", tmp_path / "out")
    assert (tmp_path / "out" / "assignment.txt").read_text() == "1\n0\n"
    assert names(tmp_path) == ["out", "part.npy", "parts"]


# 36
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("target", ["parts", "parts/part-00000", ".", "link"])
def test_the_input_is_never_the_output(tmp_path, parts, system, target):
    (tmp_path / "link").symlink_to("parts")
    before = names(parts)
    with pytest.raises(fp.errors.ParameterError, match=r"out: .* is the input, contains it, or lies in it"):
        export(system, parts, tmp_path / target)
    assert names(parts) == before


# Parameters.


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden", "-x", "a\n", "a b", "é", "a" * 101, "a\0"])
def test_graph_names_that_are_no_file_names_are_refused(tmp_path, parts, name):
    with pytest.raises(
        fp.errors.ParameterError,
        match=r"graph_name: .* is invalid. Use up to 100 letters, digits, '_', '-' and",
    ):
        fp.export.dgl(parts, tmp_path / "out", graph_name=name)
    with pytest.raises(TypeError, match="graph_name: expected a string, got int"):
        fp.export.dgl(parts, tmp_path / "out", graph_name=3)
    assert names(tmp_path) == ["parts"]


def test_a_memory_limit_below_the_largest_part_is_refused(tmp_path, parts):
    with pytest.raises(
        fp.errors.MemoryBudgetError, match=r"export of part 0 needs \d+ bytes .* the budget is 100"
    ):
        fp.export.dgl(parts, tmp_path / "out", memory_limit=100)
    assert names(tmp_path) == ["parts"]


@pytest.mark.parametrize(
    ("system", "library"), [("dgl", "dgl"), ("dgl", "torch"), ("glt", "torch"), ("pyg", "torch")]
)
def test_missing_libraries_are_named(tmp_path, parts, monkeypatch, system, library):
    if system == "dgl" and library == "torch":
        monkeypatch.setitem(sys.modules, "dgl", sys)  # there, whether or not it is installed
    monkeypatch.setitem(sys.modules, library, None)
    extra = "dgl" if library == "dgl" else "train"
    with pytest.raises(ModuleNotFoundError, match=rf"needs {library}, .*pip install 'fastpart\[{extra}\]'"):
        export(system, parts, tmp_path / "out")
    assert names(tmp_path) == ["parts"]


def test_wholegraph_needs_no_torch(tmp_path, parts, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert fp.export.wholegraph(parts, tmp_path / "out").is_dir()


def test_importing_fastpart_imports_no_torch():
    code = "import sys, fastpart.export; print(sorted({'torch', 'dgl'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# The command line.


def test_the_verb(tmp_path, parts, capsys):
    assert main(["export", "text", str(parts), f"{tmp_path}/out"]) == 0
    assert capsys.readouterr() == (f"saved to {tmp_path}/out\n", "")
    assert main(["export", "text", str(parts), f"{tmp_path}/out", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"format": "text", "out": f"{tmp_path}/out"}
    assert main(["export", "text", str(parts), f"{tmp_path}/out", "-q"]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["text", "parts", "out", "--graph-name", "g"], 2, "unknown option '--graph-name'"),
        (["dgl", "parts", "out", "--graph-name", "a/b"], 2, "--graph-name: 'a/b' is invalid. Use up to"),
        (["xml", "parts", "out"], 2, "unknown command 'xml'"),
        (["text", "parts"], 2, "OUT is missing"),
        (["text", "parts", "out", "more"], 2, "unknown argument 'more'"),
        (["text", "parts", "parts"], 2, "OUT: parts is the input"),
        (["text", "absent", "out"], 1, "absent: No such file"),
        (["text", "parts", "absent/out"], 1, "absent: the folder of the output does not exist"),
        (["dgl", "parts", "out", "--memory-limit", "100"], 1, "the budget is 100"),
    ],
)
def test_the_verb_refuses_in_one_line(tmp_path, parts, capsys, monkeypatch, arguments, code, text):
    monkeypatch.chdir(tmp_path)
    assert main(["export", *arguments]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("fastpart: error: ")
    assert text in printed.err
    assert printed.err.count("\n") == 1
    assert os.listdir(tmp_path) == ["parts"]
