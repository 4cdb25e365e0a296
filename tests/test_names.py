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


def test_a_saved_comparison_with_partitions_of_ones_own(tmp_path):
    def fails(graph, k):
        raise ValueError("".join(NAMES.values()))

    own = [partition_called(name) for name in NAMES.values()]
    comparison = fp.compare(
        GRAPH, 3, [*own, ("edges", fp.EdgePartition(np.arange(400) % 3, 3)), fails, "spring"]
    )
    comparison.save(tmp_path / "c.json")
    opened = fp.open_comparison(tmp_path / "c.json")
    assert opened == comparison
    assert_readable(str(opened)[: str(opened).index("ValueError")])
    for name in (NAMES["mathtext"], NAMES["markup"], NAMES["formats"], NAMES["emoji"], "x" * 50, "a b c"):
        assert name in str(opened)
    for suffix in ("html", "svg", "parquet"):
        opened.save(tmp_path / f"c.{suffix}")
    page = (tmp_path / "c.html").read_text()
    assert "<script>" not in page + opened._repr_html_()
    assert "<figure>" in page
    assert NAMES["mathtext"] in page


@pytest.mark.parametrize("kind", NAMES)
def test_a_partition_of_that_name(kind):
    partition = partition_called(NAMES[kind])
    evaluation = fp.evaluate(GRAPH, partition)
    assert_readable(f"{partition!r}\n{evaluation}")
    assert "<script>" not in partition._repr_html_() + evaluation._repr_html_()


def test_pictures_of_partitions_of_these_names(tmp_path):
    evaluation = fp.evaluate(GRAPH, partition_called("mine"))
    kinds = ("mathtext", "a lone dollar", "nul", "surrogate", "3,000 letters")
    fp.report.draw({NAMES[kind]: evaluation for kind in kinds}, tmp_path / "all.svg")
    ElementTree.parse(tmp_path / "all.svg")
    assert NAMES["mathtext"] in (tmp_path / "all.svg").read_text()
    partition_called(NAMES["a lone dollar"]).plot(tmp_path / "one.pdf")


def test_the_guides_example_of_comparing_ones_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fp.generate.planted("g.bin", n=90, m=400, classes=3)
    fp.spring("g.bin", 8).save("theirs.npy")

    def mine(graph, k):
        return np.arange(graph.num_vertices) % k

    theirs = fp.open_partition("theirs.npy", k=8)
    algorithms = ["spring", ("spring", {"passes": 2}), mine, ("theirs", theirs)]
    fp.compare("g.bin", [8], algorithms).save("comparison.json")
    comparison = fp.open_comparison("comparison.json")
    comparison.plot("plots.svg")
    comparison.report("report.html")
    assert re.findall(r">(theirs|mine)<", Path("report.html").read_text())
