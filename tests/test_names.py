"""Names of any kind in tables, pages, pictures and saved comparisons: shown as they are, escaped or shortened."""

import re
import unicodedata
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import fastpart as fp

GRAPH = np.random.default_rng(0).integers(0, 90, (400, 2), dtype=np.uint32)

NAMES = {
    "mathtext": r"a$\frac$b $x_1$",
    "a lone dollar": "$\\",
    "escape codes": "a\x1b[31m\x07b",
    "nul": "\0",
    "lines": "a\nb\r\nc",
    "3,000 letters": "x" * 3000,
    "markup": "<script>alert(1)</script>&",
    "surrogate": "a\ud800",
    "right to left": "\u202eabc",
    "emoji": "\N{GRINNING FACE}" * 50,
    "a hidden label": "_hidden",
    "formats": "{x} %s %d",
}


def partition_called(name):
    partition = fp.VertexPartition(np.arange(90) % 3, 3)
    partition.algorithm = name
    return partition


def assert_readable(text):
    """Assert that a terminal shows the text as lines of bearable length."""
    assert all(len(line) < 400 for line in text.split("\n"))
    assert not [each for each in text if unicodedata.category(each) in ("Cc", "Cf", "Cs") and each != "\n"]


@pytest.mark.parametrize("kind", NAMES)
def test_a_saved_comparison_with_partitions_of_ones_own(kind, tmp_path):
    name = NAMES[kind]

    def fails(graph, k):
        raise ValueError(name)

    own = [partition_called(name), ("edges", fp.EdgePartition(np.arange(400) % 3, 3)), (f"{name}!", fails)]
    comparison = fp.compare(GRAPH, 3, [*own, "spring"])
    comparison.save(tmp_path / "c.json")
    opened = fp.open_comparison(tmp_path / "c.json")
    assert opened == comparison
    assert_readable(str(opened)[: str(opened).index("ValueError")])
    assert ("x" * 50 in str(opened)) == (kind == "3,000 letters")
    for suffix in ("html", "svg", "pdf", "png", "parquet"):
        opened.save(tmp_path / f"c.{suffix}")
    page = (tmp_path / "c.html").read_text()
    assert "<script>alert" not in page
    assert "<figure>" in page
    assert "could not be drawn" not in page
    assert "<script>" not in opened._repr_html_()


@pytest.mark.parametrize("kind", NAMES)
def test_a_partition_of_that_name(kind, tmp_path):
    partition = partition_called(NAMES[kind])
    evaluation = fp.evaluate(GRAPH, partition)
    assert_readable(f"{partition!r}\n{evaluation}")
    assert "<script>" not in partition._repr_html_() + evaluation._repr_html_()
    for number, plot in enumerate((partition.plot, evaluation.plot)):
        for suffix in ("svg", "pdf", "png"):
            plot(tmp_path / f"{number}.{suffix}")
        assert ElementTree.parse(tmp_path / f"{number}.svg").getroot().tag.endswith("svg")
    fp.draw({NAMES[kind]: evaluation}, tmp_path / "drawn.svg")
    if kind == "mathtext":
        assert NAMES[kind] in (tmp_path / "0.svg").read_text()


def test_the_guides_example_of_comparing_ones_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fp.generate.planted("g.bin", n=90, m=400, classes=3)
    fp.spring("g.bin", 8).save("theirs.npy")

    def mine(graph, k):
        return np.arange(graph.num_vertices) % k

    theirs = fp.open_partition("theirs.npy", k=8)
    algorithms = ["spring", ("spring", {"passes": 2}), mine, ("theirs", theirs)]
    fp.compare("g.bin", [8, 32], algorithms).save("comparison.json")
    comparison = fp.open_comparison("comparison.json")
    comparison.plot("plots.svg")
    comparison.report("report.html")
    assert re.findall(r">(theirs|mine)<", Path("report.html").read_text())
