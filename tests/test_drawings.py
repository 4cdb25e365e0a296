"""The drawings of docs/how-it-works: what their script draws, readable on a phone, in light and dark."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from browser import CHROMIUM, Browser
from test_report_browser import COLOUR, HIDDEN, TEXTS

PAGES = Path(__file__).parents[1] / "docs" / "how-it-works"
PHONE = 312
"""Pixels of the column of text on a phone of 360 pixels."""


def test_the_drawings_are_those_of_the_script(tmp_path):
    shutil.copytree(PAGES / "drawings", tmp_path / "drawings", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, "-B", tmp_path / "drawings"], check=True)
    drawn = {file.name: file.read_text() for file in tmp_path.glob("*.svg")}
    assert drawn == {file.name: file.read_text() for file in PAGES.glob("*.svg")}


def test_each_drawing_is_shown_once():
    shown = [
        name for page in PAGES.glob("*.md") for name in re.findall(r"\]\(([^)]*\.svg)\)", page.read_text())
    ]
    assert sorted(shown) == sorted(file.name for file in PAGES.glob("*.svg"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("dark", [False, True])
def test_the_drawings_are_readable(browser, tmp_path, dark):
    page = tmp_path / "drawings.html"
    page.write_text("".join(file.read_text() for file in sorted(PAGES.glob("*.svg"))))
    browser.open(page, 800, dark=dark)
    assert browser.console == []
    texts = browser.evaluate(TEXTS)
    assert len(texts) > 200
    assert all(left >= 4 and right >= 4 for left, right, _ in texts)
    assert browser.evaluate(HIDDEN) == []
    sizes = "[...document.querySelectorAll('text')].map(text => parseFloat(getComputedStyle(text).fontSize))"
    widths = "[...document.querySelectorAll('svg')].map(svg => svg.viewBox.baseVal.width)"
    assert min(browser.evaluate(sizes)) * PHONE / max(browser.evaluate(widths)) >= 11
    paper = browser.evaluate(COLOUR.replace("SELECTOR", ".paper").replace("PROPERTY", "fill"))
    for selector in ("text", "text.faint", "text.cap"):
        ink = browser.evaluate(COLOUR.replace("SELECTOR", selector).replace("PROPERTY", "fill"))
        assert max(abs(a - b) for a, b in zip(ink, paper, strict=True)) > 80, (selector, ink, paper)
    assert (max(paper) < 64) if dark else (min(paper) > 192)
