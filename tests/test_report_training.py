"""Plots and pages of trainings, by epoch and over several partitions."""

import re
from xml.etree import ElementTree

import polars as pl
import pytest

from fastpart.report.comparisons import panels_of, plot_history
from fastpart.report.figures import figure_of
from fastpart.report.pages import write_training

ROWS = [
    ("distgnn", "hdrf", 4, 0.75, 0.5, 0.25, 3 << 20, 3 << 20),
    ("distgnn", "sigma", 4, 0.5, 0.25, 0.5, 1 << 20, 1 << 20),
    ("sdt", "sigma", 4, 0.25, 2.0, None, 2 << 20, 5 << 20),
    ("full", None, None, 0.875, 9.0, 0.0, 0, 4 << 20),
]
COLUMNS = (
    "method",
    "partitioner",
    "k",
    "test_accuracy",
    "seconds_per_epoch",
    "idle_share",
    "remote_bytes",
    "worker_bytes",
)


@pytest.fixture
def table():
    return pl.DataFrame(ROWS, schema=COLUMNS, orient="row")


def test_bars_are_as_long_as_the_numbers(table):
    panels = list(panels_of(table))
    assert [panel.title for panel in panels] == [
        "test accuracy (more is better)",
        "seconds per epoch (less is better)",
        "share of the time without computing (less is better)",
        "MiB between workers per epoch (less is better)",
        "memory of the largest worker, MiB (less is better)",
    ]
    for place, lengths, texts in zip(
        figure_of(panels).subfigs[:5],
        ([0.75, 0.5, 0.25, 0.875], [0.5, 0.25, 2, 9], [0.25, 0.5, 0], [3, 1, 2, 0], [3, 1, 5, 4]),
        (
            ["0.7500", "0.5000", "0.2500", "0.8750"],
            ["0.500", "0.250", "2.000", "9.000"],
            ["0.25", "0.50", "0.00"],
            ["3.00", "1.00", "2.00", "0.00"],
            ["3", "1", "5", "4"],
        ),
        strict=True,
    ):
        (axes,) = place.axes
        assert [bar.get_width() for bar in axes.patches] == pytest.approx(lengths)
        assert [text.get_text() for text in axes.texts] == texts
        names = ["distgnn, hdrf", "distgnn, sigma", "sdt, sigma", "full"]
        if len(lengths) == 3:  # sdt does not tell
            names.remove("sdt, sigma")
        assert [text.get_text() for text in axes.get_yticklabels()] == names


def test_a_page_has_the_table_and_the_plots(table, tmp_path):
    write_training(table, tmp_path / "report.html", "a<b>.bin")
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg ") == 5
    assert "<h1>Training over partitions of a&lt;b&gt;.bin</h1>" in page
    rows = re.findall("<tr>(.*?)</tr>", page)
    assert len(rows) == 1 + len(ROWS)
    assert "<td>distgnn</td><td>hdrf</td><td>4</td><td>0.7500</td>" in rows[1]
    assert "<td>full</td><td>\N{EN DASH}</td>" in rows[4]


def test_pictures(table, tmp_path):
    for suffix in (".svg", ".png"):
        write_training(table, tmp_path / f"plots{suffix}", "g.bin")
    assert ElementTree.parse(tmp_path / "plots.svg").getroot().tag.endswith("svg")
    assert (tmp_path / "plots.png").read_bytes().startswith(b"\x89PNG")


# By epoch.


def history(losses, accuracies, f1s=None):
    """Return a table of epochs."""
    columns = {"loss": losses, "val_accuracy": accuracies, "val_f1": accuracies if f1s is None else f1s}
    floats = {name: pl.Series(name, values, pl.Float64) for name, values in columns.items()}
    return pl.DataFrame({"epoch": range(len(losses)), **floats})


def lines(table, best=0):
    """Return the points of the lines of each plot, by title. The dot of the best epoch is a line, too."""
    figure = plot_history(table, best)
    return {
        place.get_suptitle(): [line.get_xydata().tolist() for line in place.axes[0].lines]
        for place in figure.subfigs
        if place.axes
    }


LOSS, SCORE = "loss over the training vertices", "score over the validation vertices"


def test_curves_go_from_epoch_to_epoch():
    drawn = lines(history([2.0, 1.0, 0.5], [0.1, 0.6, 0.3]), 1)
    assert drawn == {
        LOSS: [[[0, 2], [1, 1], [2, 0.5]], [[1, 1]]],
        SCORE: [[[0, 0.1], [1, 0.6], [2, 0.3]], [[1, 0.6]]],
    }


def test_accuracy_and_f1_are_told_apart_where_they_differ():
    (_, score) = plot_history(history([2, 1], [0.1, 0.2], [0.3, 0.4]), 1).subfigs
    assert [text.get_text() for text in score.axes[0].get_legend().get_texts()] == ["accuracy", "micro-F1"]
    (_, score) = plot_history(history([2, 1], [0.1, 0.2]), 1).subfigs
    assert score.axes[0].get_legend() is None


def test_what_is_not_a_number_is_not_drawn():
    nan = float("nan")
    assert lines(history([2, nan, 1, float("inf")], [nan] * 4)) == {LOSS: [[[0, 2], [2, 1]], [[0, 2]]]}
    assert lines(history([nan], [None])) == {}


@pytest.mark.parametrize(("suffix", "magic"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
@pytest.mark.parametrize("epochs", [1, 300])
def test_pictures_of_epochs(tmp_path, suffix, magic, epochs):
    file = tmp_path / f"a.{suffix}"
    plot_history(history([2.0] * epochs, [0.1] * epochs), 0, file)
    assert file.read_bytes().startswith(magic)
