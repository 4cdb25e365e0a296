"""The report: one page that needs nothing else, with all that was measured in it, and nothing that was smuggled in."""

import json
import os
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.transforms import Bbox

import fastpart as fp
from fastpart.report.figures import PAD, WIDTH, Figure, Measured
from fastpart.report.panels import Point, apart, bars, curves, matrices, scatter, strokes
from fastpart.report.text import Mark
from soaked import examples, soak
from strategies import raw

GRAPH = np.random.default_rng(0).integers(0, 90, (400, 2), dtype=np.uint32)
EVIL = "<script>alert('&')</script>\"\x00\x1b]\ud800"


def dealt(edges, k):
    return np.arange(edges.num_vertices) % k


def alternating(edges, k):
    return fp.EdgePartition(np.arange(edges.num_edges) % k, k)


def refuses(edges, k):
    raise fp.errors.CapacityError(f"no room for {EVIL}")


@pytest.fixture(scope="module")
def compared():
    return fp.compare(GRAPH, [2, 5], ["spring", (EVIL, dealt), ("edges", alternating), refuses], peers=False)


def read(name):
    return Path(name).read_text()


class Page(HTMLParser):
    """What a page holds: its elements, and whatever would be fetched or run."""

    VOID = ("meta", "link", "img", "br", "wbr", "input", "base")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts, self.references, self.ids = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.references += [
            value for name, value in attributes if name in ("href", "src", "srcset", "action", "data")
        ]
        self.ids += [value for name, value in attributes if name == "id"]
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
    assert all(reference.startswith(("data:image/png;base64,", "#")) for reference in page.references)
    assert not re.search(r"@import|url\((?!#)|https?:", text)
    assert len(page.ids) == len(set(page.ids)) > 100
    assert {f"#{name}" for name in page.ids} >= {name for name in page.references if name.startswith("#")}
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
    stressed = {
        row.split("<td>")[1].split("<")[0]: row.count('class="best"') for row in rows if "<td>" in row
    }
    # They tie in both balances.
    assert stressed == {"good": 2, "bad": 0}


@pytest.mark.parametrize(("n", "m", "k"), [(0, 0, 1), soak(1, 0, 1), soak(4, 0, 3), soak(2, 1, 2), (3, 5, 5)])
@pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")
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


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_the_plots_as_a_file_are_the_same_in_every_run(compared, tmp_path, suffix):
    magic = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    files = [tmp_path / f"{name}{suffix}" for name in ("a", "b")]
    compared.report(files[0])
    compared.plot(files[1])
    first, second = (file.read_bytes() for file in files)
    assert first.startswith(magic[suffix])
    assert first == second


def test_the_plots_are_of_quality_time_and_each_measure(compared):
    shown = [part.get_suptitle() for part in compared.plot().subfigs]
    times = [f"k = {k}: edge-cut ratio against seconds" for k in (2, 5)]
    measures = ["edge-cut ratio", "vertex balance", "edge balance", "halo replication factor"]
    assert shown[:6] == [*times, *(f"{measure} (less is better)" for measure in measures)]
    bars = compared.plot().subfigs[2].axes[0].patches
    rows = compared.summary.filter(of="vertices").drop_nulls("cut_ratio").sort("k", maintain_order=True)
    assert [bar.get_width() for bar in bars] == pytest.approx(rows["cut_ratio"].to_list())


def laid_out(panel):
    """Return the figure of a panel of a page, and the boxes of its axes with their texts, in inches."""
    figure = Figure(WIDTH, panel.height, Measured())
    panel.draw(figure)
    figure.content("svg")
    return figure, [axes.get_tightbbox(figure._get_renderer()) for axes in figure.axes]


@pytest.mark.parametrize("spread", [1, 2, 7.9, 8, 12, 29, 50, 70, 9e3, 2e4, 1e7])
def test_numbers_below_the_points_do_not_touch(spread):
    marks = {name: Mark("#000000", "#000000", "o", True, "-") for name in ("sixteen letters!", "b")}
    for least in (1.0e-5, 1.4e-4, 2.1e-4, 4.5e-4, 9.9e-4):
        points = [Point("sixteen letters!", 0.1, seconds=least), Point("b", 0.2, seconds=least * spread)]
        figure, _ = laid_out(scatter("", "edge-cut ratio", points, marks))
        low, high = figure.axes[0].get_xlim()
        ticks = [tick for tick in figure.axes[0].xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
        assert ticks
        boxes = [tick.label1.get_window_extent(figure._get_renderer()) for tick in ticks]
        assert all(a.x1 + 3 < b.x0 for a, b in pairwise(boxes))


@pytest.mark.parametrize("name", ["a", "a name of twenty-seven letters"])
def test_plots_of_a_page_have_its_width(name):
    rows = [(name, np.array([0.9, 1.1]), 1.03), ("b", np.array([1.0, 1.0]), None)]
    matrix = np.array([[3, 1], [1, 2]])
    for panel in (
        bars("", {(name, 2): 0.5, ("b", 4): 1.0}, [2, 4]),
        strokes("", rows),
        matrices("", [(name, matrix)] * 4),
        curves("", {"loss": [(0, 1.0), (1, 0.5)], "score": [(0, 0.1)]}, 1),
    ):
        figure, boxes = laid_out(panel)
        around = Bbox.union(boxes).transformed(figure.dpi_scale_trans.inverted())
        assert min(around.x0, around.y0) > PAD - 0.06
        assert around.x1 < WIDTH - PAD + 0.06
        assert around.y1 < panel.height - PAD + 0.06
        assert around.width > 0.9 * (WIDTH - 2 * PAD)
        assert around.height > 0.8 * (panel.height - 2 * PAD)


@examples(25)
@given(st.lists(st.floats(-0.2, 1.2), min_size=1, max_size=15))
def test_names_beside_points_do_not_touch(places):
    gap = 1 / 15
    found = apart(sorted(places), gap)
    assert all(-1e-9 <= place <= 1 + 1e-9 for place in found)
    assert all(high - low >= gap - 1e-9 for low, high in pairwise(found))
    if all(0 <= place <= 1 for place in places) and all(
        high - low >= gap for low, high in pairwise(sorted(places))
    ):
        assert found == pytest.approx(sorted(places))


# The command line.


@pytest.fixture
def run(run, tmp_path, monkeypatch):
    """Run a command in a folder with a graph, its sidecar and two partitions."""
    monkeypatch.chdir(tmp_path)
    raw(tmp_path / "g.bin", GRAPH)
    sidecar = {"fastpart": 1, "dtype": "u32", "n": 90, "m": 400, "directedness": "undirected"}
    (tmp_path / "g.bin.json").write_text(json.dumps(sidecar))
    fp.spring("g.bin", 3).save("part.npy")
    fp.spring("g.bin", 4).save("parts", graph="g.bin")
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
        (
            ("g.bin.json", "-o", "r.html"),
            1,
            "g.bin.json: the field 'fastpart_comparison' is missing. The file is not a comparison",
        ),
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
