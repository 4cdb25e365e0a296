"""`llms.txt`, which the build of the site writes: all pages and all calls, and short."""

import importlib.util
import re
from pathlib import Path

import pytest

from fastpart.partitions.partitioners import builtin

pytest.importorskip("torch")

DOCS = Path(__file__).parents[1] / "docs"
SPEC = importlib.util.spec_from_file_location("llms", DOCS / "llms.py")
llms = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(llms)

pytestmark = pytest.mark.torch


def test_it_names_every_page_and_every_partitioner():
    text = llms.text(DOCS)
    links = re.findall(r"^- \[[^]]+\]\(([^)]+)\.html\)", text, re.M)
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md")}
    inner = {page for page in pages if page.startswith("how-it-works/")} - {"how-it-works/index"}
    assert sorted(links) == sorted(pages - inner - {"index"})
    assert text.startswith("# fastpart\n\n> ")
    assert len(text) < 30_000
    for name in builtin.__all__:
        assert len(re.findall(rf"^- `fp\.(?:algorithms\.)?{name}\(", text, re.M)) == 1
    assert ":func:" not in text


def test_it_has_no_parameters_that_every_call_has():
    calls = dict(llms.functions())
    assert calls["fp.algorithms.dbh(graph, k, seed, out)"]
    assert not [call for call in calls if "memory_limit" in call]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("# A\n\nOne [two](b.md) three.\nFour. Five.\n", "One two three."),
        ("---\nx: y\n---\n\n# A\n\n```python\n```\n", ""),
        ("# A\n\n| a |\n", ""),
    ],
)
def test_opening(page, expected):
    assert llms.opening(page) == expected
