"""The report in a browser: silent, complete, and readable on narrow, wide, light and dark screens."""

import numpy as np
import pytest

import fastpart as fp
from browser import CHROMIUM, Browser

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")

EVIL = "<script>console.log('run')</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Return a page with every kind of table and plot."""
    graph = np.random.default_rng(0).integers(0, 90, (400, 2), dtype=np.uint32)

    def edges(graph, k):
        return fp.EdgePartition(np.arange(graph.num_edges) % k, k)

    def refuses(graph, k):
        raise fp.errors.CapacityError(f"no room for {EVIL} {'x' * 300}")

    def fails(graph, k):
        return 1 / 0

    def evil(graph, k):
        return np.arange(graph.num_vertices) % k

    more = [(f"algorithm {i} with a name", evil) for i in range(12)]
    algorithms = ["spring", "random", "hdrf", edges, (EVIL, evil), refuses, fails, *more]
    file = tmp_path_factory.mktemp("report") / "report.html"
    fp.compare(graph, [2, 5, 8], algorithms, peers=False).report(file)
    return file


SIZES = """[...document.querySelectorAll("SELECTOR")].map(each => {
    const box = each.getBoundingClientRect();
    return [box.left, box.right, box.width, box.height];
})"""

TEXTS = """[...document.querySelectorAll("svg")].flatMap(svg => {
    const outer = svg.getBoundingClientRect();
    return [...svg.querySelectorAll("text")].map(text => {
        const box = text.getBoundingClientRect();
        return [box.left - outer.left, outer.right - box.right, box.height];
    });
})"""

HIDDEN = """[...document.querySelectorAll("svg")].flatMap(svg => {
    const texts = [...svg.querySelectorAll("text")].map(text => [text.textContent, text.getBoundingClientRect()]);
    return texts.flatMap(([name, a], i) => texts.slice(0, i).filter(([, b]) =>
        Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
        Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3
    ).map(([other]) => [svg.getAttribute("aria-label"), name, other]));
})"""

COLOUR = "getComputedStyle(document.querySelector('SELECTOR')).PROPERTY.match(/[0-9]+/g).map(Number)"


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1600])
def test_the_report(browser, report, width, dark):
    browser.open(report, width, dark=dark)
    assert browser.console == []
    for selector, count in (("table", 3), ("svg", 2 * 3 + 8 + 3 * 5 + 3), ("figcaption", 32)):
        sizes = browser.evaluate(SIZES.replace("SELECTOR", selector))
        assert len(sizes) == count
        assert all(wide > 100 and high > 15 for _, _, wide, high in sizes)
    # Tables may be wider than the screen, in a box that scrolls. The page and the plots may not.
    assert browser.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    for selector in ("svg", ".wide", "figcaption", "h1"):
        sizes = browser.evaluate(SIZES.replace("SELECTOR", selector))
        assert all(left >= 0 and right <= width for left, right, _, _ in sizes)
    texts = browser.evaluate(TEXTS)
    assert len(texts) > 300
    assert all(left > -2 and right > -2 for left, right, _ in texts)
    assert min(height for _, _, height in texts) > 8  # as a font of 8 pixels or more
    assert browser.evaluate(HIDDEN) == []
    paper = browser.evaluate(COLOUR.replace("SELECTOR", "body").replace("PROPERTY", "backgroundColor"))
    for selector, name in (("body", "color"), ("td", "color"), ("svg text", "fill")):
        ink = browser.evaluate(COLOUR.replace("SELECTOR", selector).replace("PROPERTY", name))
        assert all(abs(a - b) > 80 for a, b in zip(ink, paper, strict=False)), (selector, ink, paper)
    assert (max(paper[:3]) < 64) if dark else (min(paper[:3]) > 192)


def test_the_console_would_be_heard(browser, tmp_path):
    page = tmp_path / "loud.html"
    page.write_text("<script>console.log('a'); b.c</script><img src='absent.png'>")
    browser.open(page, 800)
    assert len(browser.console) >= 3
