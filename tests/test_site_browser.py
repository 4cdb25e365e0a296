"""The built site in a browser: silent, and readable on narrow, wide, light and dark screens. `make docs` builds it."""

import time
from pathlib import Path

import pytest

import fastpart as fp
from browser import CHROMIUM, Browser
from soaked import diagonal, some_of

SITE = Path(__file__).parents[1] / "target" / "site"
PAGES = sorted(str(page.relative_to(SITE)) for page in SITE.rglob("*.html") if "_static" not in page.parts)
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
    pytest.mark.skipif(not PAGES, reason="needs the site: make docs"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


def messages(browser):
    """Return what the console says, and what was asked of a network."""
    return [each for each in browser.console if not str(each).startswith("file:")]


OUTSIDE = """[...document.querySelectorAll("article *")].filter(each => {
    if (each.getBoundingClientRect().right <= innerWidth) return false;
    for (let box = each; box; box = box.parentElement)
        if (getComputedStyle(box).overflowX != "visible") return false;
    return true;
}).map(each => each.outerHTML.slice(0, 200))"""


SCREENS = [(360, False), (1400, True), (360, True), (1400, False)]
"""Widths, and whether they are dark. A narrow one shows what does not fit."""


@pytest.mark.parametrize(
    ("page", "width", "dark"),
    some_of(
        [(page, *screen) for page in PAGES for screen in SCREENS],
        [(page, *screen) for page, screen in diagonal(PAGES, SCREENS)],
    ),
)
def test_every_page(browser, page, width, dark):
    browser.open(SITE / page, width, dark=dark)
    assert messages(browser) == []
    assert browser.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    # Tables and code may be wider than the screen, in a box that scrolls.
    assert browser.evaluate(OUTSIDE) == []
    paper = browser.evaluate("getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number)")
    assert (max(paper) < 64) if dark else (min(paper) > 192)


def test_plots_are_there(browser):
    browser.open(SITE / "gallery.html", 1400)
    shown = browser.evaluate(
        "[...document.querySelectorAll('.cell_output img')].map(each => each.naturalWidth)"
    )
    assert len(shown) >= 5
    assert min(shown) > 300


def test_the_quality_page_unfolds(browser):
    """Before its lists were folded it was 34,600 pixels high."""
    for width in (360, 1280):
        browser.open(SITE / "quality.html", width)
        assert browser.evaluate("document.documentElement.scrollHeight") < 12_000
    assert browser.evaluate("document.querySelectorAll('article details').length") > 30
    browser.evaluate("document.querySelectorAll('article details').forEach(each => each.open = true)")
    assert browser.evaluate("document.documentElement.scrollHeight") > 20_000


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_first_screen_of_the_front_page(browser, width, height):
    browser.open(SITE / "index.html", width)
    bottoms = browser.evaluate(f"""Object.fromEntries(
        [...document.querySelectorAll("article p, article pre, article img")]
        .map(each => [each.src || each.textContent, each.getBoundingClientRect().bottom])
        .filter(each => each[1] <= {height}))""")
    shown = "\n".join(bottoms)
    for words in (
        "Its cut is 0.985 of that of ",
        "cut-and-time.svg",
        "pip install",
        f"Version {fp.__version__}, licence ",
    ):
        assert words in shown


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("partition_graph", "Coming from DGL"),
        ("export dgl", "The command line > export dgl"),
        ("ClusterData", "Coming from PyG"),
        ("part_graph", "Coming from METIS and pymetis"),
        ("kernighan_lin_bisection", "Coming from networkx"),
    ],
)
def test_the_search_finds_the_calls_of_others(browser, words, title):
    browser.open(SITE / "search.html", 1280)
    browser.evaluate(f"Search.performSearch({words!r})")
    until, found = time.monotonic() + 20, []
    while title not in found and time.monotonic() < until:
        found = browser.evaluate(
            "[...document.querySelectorAll('#search-results li a')].map(each => each.textContent)"
        )
    assert title in found
