"""The report: one page that needs nothing else, with all that was measured in it, and nothing that was smuggled in."""

import json
import os
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpart as fp
from fastpart.cli import main
from fastpart.report.charts import charts_of
from fastpart.report.labels import Box, labelled
from fastpart.report.shapes import Dot, Line, Picture, Rect, Text, number, text_width, ticks
from fastpart.report.svg import png
from strategies import raw

GRAPH = np.random.default_rng(0).integers(0, 90, (400, 2), dtype=np.uint32)
EVIL = "<script>alert('&')</script>\"\x00\x1b]\ud800"


def dealt(edges, k):
    return np.arange(edges.num_vertices) % k


def alternating(edges, k):
    return fp.EdgePartition(np.arange(edges.num_edges) % k, k)


def refuses(edges, k):
    raise fp.CapacityError(f"no room for {EVIL}")


@pytest.fixture(scope="module")
def compared():
    return fp.compare(GRAPH, [2, 5], ["spring", (EVIL, dealt), ("edges", alternating), refuses], peers=False)


def read(name):
    return Path(name).read_text()


class Page(HTMLParser):
    """What a page holds: its elements, and whatever would be fetched or run."""

    VOID = ("meta", "link", "img", "br", "input", "base")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts, self.references = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.references += [
            value for name, value in attributes if name in ("href", "src", "srcset", "action", "data")
        ]
        assert not any(name.startswith("on") for name, _ in attributes)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_the_page_needs_nothing_else_and_runs_nothing(compared, tmp_path):
    compared.report(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    page = Page(text)
    assert not {"script", "link", "iframe", "object", "img", "base", "form"} & set(page.tags)
    assert all(reference.startswith("data:image/png;base64,") for reference in page.references)
    assert not re.search(r"@import|url\(|https?://(?!www\.w3\.org/2000/svg\")", text)
    assert "<script" not in text
    assert os.listdir(tmp_path) == ["r.html"]


def test_the_page_holds_every_measure(compared, tmp_path):
    compared.report(tmp_path / "r.html")
    texts = Page((tmp_path / "r.html").read_text()).texts
    for row in compared.summary.rows(named=True):
        for name in ("cut_ratio", "vertex_balance", "edge_balance", "halo_rf", "rf", "replica_balance"):
            if row[name] is not None:
                assert f"{row[name]:.4f}" in texts
    assert "spring" in texts
    assert any("no room for <script>" in text for text in texts)
    for k in (2, 5):
        assert any(text.startswith(f"k = {k}: records between parts") for text in texts)


def test_the_best_of_each_k_is_stressed(tmp_path):
    parts = [("good", fp.VertexPartition([0, 0, 0, 1, 1, 1], 2)), ("bad", fp.VertexPartition([0, 1] * 3, 2))]
    edges = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3]])
    fp.compare(edges, 2, parts).report(tmp_path / "r.html")
    rows = re.findall(r"<tr.*?</tr>", (tmp_path / "r.html").read_text())
    stressed = {row.split("<td>")[1].split("<")[0]: row.count("class=best") for row in rows if "<td>" in row}
    # They tie in both balances.
    assert stressed == {"good": 2, "bad": 0}


@pytest.mark.parametrize(("n", "m", "k"), [(0, 0, 1), (1, 0, 1), (4, 0, 3), (2, 1, 2), (3, 5, 5)])
@pytest.mark.filterwarnings("ignore::fastpart.CapacityWarning")
def test_a_report_of_next_to_nothing(tmp_path, n, m, k):
    edges = fp.open_graph(np.zeros((m, 2), np.uint32), num_vertices=n)
    done = fp.compare(edges, k, ["spring", alternating, refuses], peers=False)
    for name in ("r.html", "r.svg"):
        done.report(tmp_path / name)
    Page((tmp_path / "r.html").read_text())
    ElementTree.parse(tmp_path / "r.svg")


def test_nothing_but_refusals(tmp_path):
    done = fp.compare(GRAPH, 2, [refuses])
    done.report(tmp_path / "r.html")
    assert Page((tmp_path / "r.html").read_text()).tags.count("table") == 1
    done.report(tmp_path / "r.svg")
    ElementTree.parse(tmp_path / "r.svg")


def test_the_plots_as_svg_and_png(compared, tmp_path):
    compared.report(tmp_path / "plots.svg")
    root = ElementTree.parse(tmp_path / "plots.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert float(root.get("height")) > 1000
    pytest.importorskip("matplotlib")
    compared.report(tmp_path / "plots.png")
    assert (tmp_path / "plots.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    compared.report(tmp_path / "plots.pdf")
    assert (tmp_path / "plots.pdf").read_bytes()[:5] == b"%PDF-"


def many(algorithms, numbers):
    """Return a comparison as large as they get."""
    edges = fp.open_graph(GRAPH)
    random = np.random.default_rng(1)
    named = [
        (f"algorithm {i} with a name", lambda edges, k: random.integers(0, k, edges.num_vertices))
        for i in range(algorithms)
    ]
    return fp.compare(edges, numbers, named, peers=False)


def box(shape):
    match shape:
        case Text():
            shift = {"start": 0, "middle": 0.5, "end": 1}[shape.anchor] * text_width(shape.text)
            left = shape.x - shift
            return Box(left, shape.y - 8, left + text_width(shape.text), shape.y + 2)
        case Rect() | Picture():
            return Box(shape.x, shape.y, shape.x + shape.width, shape.y + shape.height)
        case Dot():
            return Box(shape.x - 4, shape.y - 4, shape.x + 4, shape.y + 4)
        case Line():
            return Box(
                *map(min, ((shape.x1, shape.x2), (shape.y1, shape.y2))),
                *map(max, ((shape.x1, shape.x2), (shape.y1, shape.y2))),
            )


def test_no_plot_of_15_algorithms_hides_a_text_or_leaves_its_frame():
    plots = [plot for _, group in charts_of(many(15, [4, 8, 32])) for plot in group]
    assert len(plots) == 4 + 3 + 3 + 3
    for plot in plots:
        frame = Box(-1, 0, plot.width + 1, plot.height + 1)
        texts = [shape for shape in plot.shapes if isinstance(shape, Text)]
        for shape in plot.shapes:
            assert box(shape).outside(frame) == pytest.approx(0, abs=1e-6), (plot.title, shape)
        for i, one in enumerate(texts):
            for other in texts[:i]:
                assert box(one).overlap(box(other)) == 0, (plot.title, one, other)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.floats(50, 450), st.floats(50, 250)), min_size=1, max_size=15))
def test_names_of_points_hide_neither_points_nor_names(points):
    frame = Box(0, 0, 500, 300)
    named = [(x, y, f"name {i}") for i, (x, y) in enumerate(points)]
    texts = [shape for shape in labelled(named, frame) if isinstance(shape, Text)]
    assert sorted(text.text for text in texts) == sorted(name for _, _, name in named)
    for i, text in enumerate(texts):
        assert box(text).outside(frame) == pytest.approx(0, abs=1e-6)
        assert all(box(text).overlap(box(other)) == 0 for other in texts[:i])


@settings(max_examples=200)
@given(st.floats(0, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_round_and_inside(low, width):
    high = low + width
    made = ticks(low, high)
    slack = 1e-6 * max(abs(high), 1)
    assert all(low - slack <= tick <= high + slack for tick in made)
    assert len(made) <= 7
    if width > 1e-3 * high:
        assert 1 <= len({number(tick) for tick in made}) == len(made)


@settings(max_examples=20)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 99))
def test_png_holds_the_cells(rows, columns, seed):
    cells = np.random.default_rng(seed).integers(0, 256, (rows, columns, 3)).astype(np.uint8)
    data = png(cells)
    body = data[data.index(b"IDAT") + 4 :]
    lines = np.frombuffer(zlib.decompressobj().decompress(body), np.uint8).reshape(rows, 1 + 3 * columns)
    assert not lines[:, 0].any()
    assert np.array_equal(lines[:, 1:].reshape(rows, columns, 3), cells)


# The command line.


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in a folder with a graph, its sidecar and two partitions."""
    monkeypatch.chdir(tmp_path)
    raw(tmp_path / "g.bin", GRAPH)
    sidecar = {"fastpart": 1, "dtype": "u32", "n": 90, "m": 400, "directedness": "undirected"}
    (tmp_path / "g.bin.json").write_text(json.dumps(sidecar))
    fp.spring("g.bin", 3).save("part.npy")
    fp.spring("g.bin", 4).save("parts", graph="g.bin")

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_a_report_of_a_saved_comparison(run):
    assert run("compare", "g.bin", "-k", 2, "--algorithms", "spring", "-o", "c.json")[0] == 0
    assert run("report", "c.json", "-o", "r.html") == (0, "saved to r.html\n", "")
    comparison = fp.open_comparison("c.json")
    comparison.report("direct.html")
    assert read("r.html") == read("direct.html")
    assert run("compare", "g.bin", "-k", 2, "--algorithms", "spring", "-o", "at-once.html")[0] == 0
    assert "spring" in Page(read("at-once.html")).texts


def test_a_report_of_partitions(run):
    assert run("report", "g.bin", "part.npy", "parts/", "-o", "r.html") == (0, "saved to r.html\n", "")
    texts = Page(read("r.html")).texts
    assert {"part.npy", "parts"} <= set(texts)
    for part in (fp.spring("g.bin", 3), fp.spring("g.bin", 4)):
        assert f"{fp.evaluate('g.bin', part).summary['cut_ratio'][0]:.4f}" in texts


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("g.bin", "-o", "r.html"), 2, "g.bin is not a comparison. Name"),
        (("g.bin.json", "-o", "r.html"), 1, "g.bin.json: not a comparison"),
        (("absent.json", "-o", "r.html"), 1, "absent.json: No such file or directory"),
        (("g.bin", "part.npy"), 2, "-o"),
        (("g.bin", "part.npy", "-o", "r.json"), 2, "unknown suffix '.json'"),
        (("g.bin", "part.npy", "part.npy", "-o", "r.html"), 2, "two are called 'part.npy'"),
        (("g.bin", "absent.npy", "-o", "r.html"), 1, "absent.npy"),
        (("g.bin", "part.npy", "-o", "no/r.html"), 1, "does not exist"),
        (("g.bin", "part.npy", "--what", "-o", "r.html"), 2, "--what"),
    ],
)
def test_a_report_is_refused_in_one_line(run, arguments, code, text):
    before = sorted(os.listdir())
    got, out, err = run("report", *arguments)
    assert (got, out, err.count("\n")) == (code, "", 1)
    assert text in err
    assert sorted(os.listdir()) == before


def test_an_existing_report_stays_when_the_new_one_is_refused(run):
    Path("r.html").write_text("mine")
    assert run("report", "g.bin", "g.bin", "-o", "r.html")[0] != 0
    assert read("r.html") == "mine"
    os.mkdir("d.html")
    assert run("report", "g.bin", "part.npy", "-o", "d.html")[0] == 1
