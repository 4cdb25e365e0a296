"""What a notebook shows by itself: bars of long steps, the epochs of a training, and results as tables."""

import re

import pytest

import fastpart as fp

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

BEGIN = """
import numpy as np, fastpart as fp
from fastpart.core import notes
ring = np.array([[v, (v + 1) % 60] for v in range(60)])
splits = {"train": np.arange(40), "val": np.arange(40, 60)}
beside = dict(features=np.eye(60, dtype=np.float32), labels=np.arange(60) % 3, splits=splits)
p = fp.spring(ring, 2)
quick = dict(epochs=14, hidden=4)
"""


def run(*cells):
    """Run cells in a kernel. Return the outputs of each but the first, which is the same for all tests."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in (BEGIN, *cells)])
    nbclient.NotebookClient(notebook, timeout=300, allow_errors=True, kernel_name="python3").execute()
    assert not [each for cell in notebook.cells for each in cell.outputs if each.output_type == "error"]
    return [cell.outputs for cell in notebook.cells[1:]]


def pages(outputs):
    return ["".join(each.data["text/html"]) for each in outputs if "text/html" in each.get("data", {})]


@pytest.mark.torch
def test_a_training_shows_its_epochs_and_ends_with_the_scores():
    pytest.importorskip("torch")
    trained, off, configured, own = run(
        "trained = fp.train.full(p, **beside, **quick)",
        "fp.train.full(p, **beside, **quick, progress=False);",
        "with fp.config(progress=False): fp.train.full(p, **beside, **quick);",
        "heard = []\n"
        "fp.train.full(p, **beside, **quick, progress=lambda *step: heard.append(step))\n"
        "print(len(heard) > 10)",
    )
    (table,) = pages(trained)
    assert re.search(r"TrainedModel by full: 14 epochs, the best \d+", table)
    rows = re.findall(r"<td>(\d+)</td><td>(\d\.\d{4})</td>", table)
    assert [int(epoch) for epoch, _ in rows] == [4, 5, 6, 7, 8, 9, 10, 11, 12, 13]
    assert re.findall(r"<th>(\w+)</th>", table) == ["epoch", "loss", "val_accuracy", "val_f1", "seconds"]
    assert not [each for each in trained if each.output_type == "stream"]  # no bar flashes for short steps
    assert pages(off) == pages(configured) == []
    assert own[-1].text == "True\n"


@pytest.mark.torch
def test_a_result_of_a_training_is_a_table():
    pytest.importorskip("torch")
    ((shown,),) = run("fp.train.full(p, **beside, **quick, progress=False)")
    page = shown.data["text/html"]
    assert page.startswith("<div><p>TrainedModel</p><table>")
    assert "<th>method</th><td>full</td>" in page
    assert "per_worker" not in page


def test_a_bar_comes_for_long_steps_only():
    slow = "notes._LATER = 0.0\n"  # every step counts as long
    long, short, off, inside = run(
        f"{slow}fp.spring(np.tile(ring, (2000, 1)), 2)",
        "notes._LATER = 0.5\nfp.spring(ring, 2);",
        f"{slow}fp.spring(np.tile(ring, (2000, 1)), 2, progress=False);",
        f"{slow}fp.compare(np.tile(ring, (200, 1)), 2, ['spring'], progress=False);",
    )
    assert any(each.output_type == "stream" and "%|" in each.text for each in long)
    for quiet in (short, off, inside):
        assert not [each for each in quiet if each.output_type == "stream" and "%|" in each.text]


def test_no_bar_comes_without_a_notebook(capfd, monkeypatch):
    monkeypatch.setattr("fastpart.core.notes._LATER", 0.0)
    fp.spring([[v, (v + 1) % 60] for v in range(60)] * 2000, 2)
    assert capfd.readouterr().err == ""


def test_data_sets_are_tables():
    page = fp.datasets.cora()._repr_html_()
    for name, value in {"vertices": "2,708", "classes": "7", "train": "140", "test": "1,000"}.items():
        assert f"<th>{name}</th><td>{value}</td>" in page
