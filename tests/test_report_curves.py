"""The plots of a training: what is drawn, and where."""

import xml.etree.ElementTree as ET

import numpy as np
import polars as pl
import pytest

from fastpart.report.curves import COLOURS, HEIGHT, MOST_POINTS, WIDTH, curves_of
from fastpart.report.pages import write_plots
from fastpart.report.shapes import Dot, Line, Text


def metrics(losses, accuracies, f1s=None):
    """Return a table of epochs."""
    columns = {"loss": losses, "val_accuracy": accuracies, "val_f1": accuracies if f1s is None else f1s}
    floats = {name: pl.Series(name, values, pl.Float64) for name, values in columns.items()}
    return pl.DataFrame({"epoch": range(len(losses)), **floats})


def curves(plot):
    """Return the lines of each colour, legend aside."""
    lines = [shape for shape in plot.shapes if isinstance(shape, Line) and shape.thick == 1.5]
    return {colour: [line for line in lines if line.colour == colour] for colour in COLOURS}


def test_curves_go_from_epoch_to_epoch():
    loss, scores = curves_of(metrics([2.0, 1.0, 0.5], [0.1, 0.6, 0.3]), 1)
    first, second = curves(loss)[COLOURS[0]]
    assert (first.x2, first.y2) == (second.x1, second.y1)
    assert first.x1 < second.x1 < second.x2
    assert first.y1 < second.y1 < second.y2  # pixels count downwards
    assert second.y2 - second.y1 == pytest.approx((first.y2 - first.y1) / 2)
    (dot,) = (shape for shape in scores.shapes if isinstance(shape, Dot))
    up, _ = curves(scores)[COLOURS[0]]
    assert (dot.x, dot.y) == (up.x2, up.y2)
    assert dot.title == "accuracy 0.6 in epoch 1, the best by validation"


def test_accuracy_and_f1_are_told_apart_where_they_differ():
    _, same = curves_of(metrics([2, 1], [0.1, 0.2]), 1)
    assert not curves(same)[COLOURS[1]]
    _, other = curves_of(metrics([2, 1], [0.1, 0.2], [0.3, 0.4]), 1)
    assert len(curves(other)[COLOURS[0]]) == len(curves(other)[COLOURS[1]]) == 1
    assert {"accuracy", "micro-F1"} <= {shape.text for shape in other.shapes if isinstance(shape, Text)}


def test_everything_lies_inside():
    random = np.random.default_rng(0)
    for size in (1, 2, 7, 300):
        for plot in curves_of(metrics(random.normal(size=size), random.random(size), random.random(size)), 0):
            for shape in plot.shapes:
                ends = (
                    [(shape.x1, shape.y1), (shape.x2, shape.y2)]
                    if isinstance(shape, Line)
                    else [(shape.x, shape.y)]
                )
                assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in ends)


def test_long_trainings_are_thinned_and_keep_their_last_epoch():
    size = 10 * MOST_POINTS + 3
    loss, _ = curves_of(metrics(np.linspace(1, 0, size), np.linspace(0, 1, size)), size - 1)
    lines = curves(loss)[COLOURS[0]]
    assert len(lines) < MOST_POINTS
    (dot,) = (shape for shape in loss.shapes if isinstance(shape, Dot))
    assert dot.x == lines[-1].x2


def test_what_is_not_a_number_is_not_drawn():
    nan = float("nan")
    (loss,) = curves_of(metrics([2, nan, 1, float("inf")], [nan] * 4), 0)
    assert len(curves(loss)[COLOURS[0]]) == 1
    assert curves_of(metrics([nan], [None]), 0) == []


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_pictures(tmp_path, suffix):
    if suffix != "svg":
        pytest.importorskip("matplotlib")
    file = tmp_path / f"a.{suffix}"
    write_plots(curves_of(metrics([2, 1], [0.1, 0.2], [0.3, 0.4]), 1), file)
    assert file.read_bytes()[:8].startswith({"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}[suffix])
    if suffix == "svg":
        ET.fromstring(file.read_text())
