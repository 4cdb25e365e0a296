"""A matplotlib that cannot be loaded or cannot draw costs the pictures, and nothing else."""

import os
import subprocess
import sys

import pytest

import fastpart as fp
from soaked import some_of

BROKEN = {
    "unknown backend": {"MPLBACKEND": "nosuch"},
    "settings that are no text": {"MATPLOTLIBRC": "g.bin"},
}
COMPARE = ("compare", "g.bin", "-k", "4", "--algorithms", "spring,random", "-q", "-o")


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fp.generate.planted("g.bin", n=300, m=2000, classes=4)


def run(environment, *arguments):
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("kind", some_of(BROKEN, ["unknown backend"]))
def test_a_report_is_written_without_them(kind):
    done = run(BROKEN[kind], "-m", "fastpart", *COMPARE, "report.html")
    assert done.returncode == 0, done.stderr
    assert (
        "fastpart: note: report.html: The plots could not be drawn: matplotlib cannot be loaded"
        in done.stderr
    )
    with open("report.html") as page:
        text = page.read()
    assert "The plots could not be drawn" in text
    assert ">spring<" in text
    assert not os.path.exists("report.html.partial")


@pytest.mark.parametrize("kind", some_of(BROKEN, ["settings that are no text"]))
def test_a_picture_that_is_all_that_was_asked_for_is_refused_and_the_rows_are_kept(kind):
    done = run(BROKEN[kind], "-m", "fastpart", *COMPARE, "c.svg")
    assert done.returncode == 1
    assert "fastpart: error: matplotlib cannot be loaded (" in done.stderr
    assert "MPLBACKEND" in done.stderr
    assert "The result is kept in c.svg.partial" in done.stderr
    assert not os.path.exists("c.svg")
    assert run({}, "-m", "fastpart", "report", "c.svg.partial/comparison.json", "-o", "c.svg").returncode == 0


@pytest.mark.parametrize("kind", some_of(BROKEN, ["unknown backend"]))
def test_partitions_and_comparisons_outlive_a_plot_that_fails(kind):
    code = """
import fastpart as fp
p, c = fp.spring("g.bin", 2), fp.compare("g.bin", 2, ["spring"])
for plot in (p.plot, c.plot, fp.evaluate("g.bin", p).plot):
    try:
        plot("x.svg")
    except fp.FastpartError as error:
        print(str(error).partition(" (")[0])
p.save("parts")
"""
    done = run(BROKEN[kind], "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "matplotlib cannot be loaded\n" * 3
    assert os.path.exists("parts/part-00001")
    assert not os.path.exists("x.svg")


def test_a_folder_of_settings_that_cannot_be_written_does_no_harm(tmp_path):
    (tmp_path / "a file").touch()
    done = run({"MPLCONFIGDIR": str(tmp_path / "a file")}, "-m", "fastpart", *COMPARE, "report.html")
    assert done.returncode == 0, done.stderr
    with open("report.html") as page:
        assert "<svg" in page.read()


def test_what_drawing_raises_is_named(monkeypatch):
    from fastpart.report import figures

    def broken(*_, **__):
        raise RuntimeError("no font at all")

    monkeypatch.setattr(figures.Figure, "savefig", broken)
    p = fp.spring("g.bin", 2)
    with pytest.raises(
        fp.FastpartError, match=r"matplotlib cannot draw the picture \(RuntimeError: no font at all\)"
    ):
        p.plot("x.svg")
    comparison = fp.compare("g.bin", 2, ["spring"])
    comparison.report("report.html")
    with open("report.html") as page:
        assert "The plots could not be drawn: matplotlib cannot draw the picture" in page.read()
