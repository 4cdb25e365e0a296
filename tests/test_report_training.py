"""Plots and pages of trainings over several partitions."""

import re
from xml.etree import ElementTree

import polars as pl
import pytest

from fastpart.report.shapes import Rect, Text
from fastpart.report.training import plots_of, write_training

ROWS = [
    {"method": "distgnn", "partitioner": "hdrf", "k": 4, "seconds_per_epoch": 0.5, "peak_bytes": 3 << 20},
    {"method": "distgnn", "partitioner": "sigma", "k": 4, "seconds_per_epoch": 0.25, "peak_bytes": 1 << 20},
    {"method": "sdt", "partitioner": "sigma", "k": 4, "seconds_per_epoch": 2.0, "peak_bytes": None},
    {"method": "full", "partitioner": None, "k": None, "seconds_per_epoch": 9.0, "peak_bytes": None},
]


@pytest.fixture
def table():
    return pl.DataFrame(ROWS).with_columns(worker_bytes=pl.lit(5 << 20), test_accuracy=pl.lit(0.75))


def bars_of(plot):
    """Return the width of each bar and the number behind it, by what the bar stands for."""
    told = [shape.text for shape in plot.shapes if isinstance(shape, Text) and shape.colour == "faint"]
    rects = [shape for shape in plot.shapes if isinstance(shape, Rect)]
    numbers = told[-len(rects) :]
    return {
        rect.title.split(",")[0]: (rect.width, number) for rect, number in zip(rects, numbers, strict=True)
    }


def test_bars_are_as_long_as_the_numbers(table):
    plots = {plot.title.removesuffix(" (less is better)"): bars_of(plot) for plot in plots_of(table)}
    assert list(plots) == [
        "distgnn: seconds per epoch",
        "distgnn: peak memory of a worker, MiB",
        "sdt: seconds per epoch",
        "sdt: memory of a worker, MiB",
    ]
    for name, numbers, ratio in (
        ("distgnn: seconds per epoch", ["0.500", "0.250"], 2),
        ("distgnn: peak memory of a worker, MiB", ["3.0", "1.0"], 3),
    ):
        (longer, first), (shorter, second) = plots[name]["hdrf"], plots[name]["sigma"]
        assert longer == pytest.approx(ratio * shorter)
        assert [first, second] == numbers
    assert plots["sdt: memory of a worker, MiB"]["sigma"][1] == "5.0"


def test_bars_and_numbers_are_inside_the_plot(table):
    for plot in plots_of(table):
        for shape in plot.shapes:
            assert 0 <= shape.x <= plot.width if isinstance(shape, Rect | Text) else True
            assert 0 <= shape.y <= plot.height if isinstance(shape, Rect | Text) else True


def test_a_page_has_the_table_and_the_plots(table, tmp_path):
    write_training(table, tmp_path / "report.html", "a<b>.bin")
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg ") == 4
    assert "<h1>Training over partitions of a&lt;b&gt;.bin</h1>" in page
    rows = re.findall("<tr>(.*?)</tr>", page)
    assert len(rows) == 1 + len(ROWS)
    assert "<td>distgnn</td><td>hdrf</td><td>4</td><td>0.5000</td>" in rows[1]
    assert "<td>full</td><td>\N{EN DASH}</td>" in rows[4]


def test_pictures(table, tmp_path):
    pytest.importorskip("matplotlib")
    for suffix in (".svg", ".png"):
        write_training(table, tmp_path / f"plots{suffix}", "g.bin")
    assert ElementTree.parse(tmp_path / "plots.svg").getroot().tag.endswith("svg")
    assert (tmp_path / "plots.png").read_bytes().startswith(b"\x89PNG")
