"""The guides "Coming from": their Python runs as it stands, and prints what they say."""

import re
from pathlib import Path

import pytest

GUIDES = Path(__file__).parents[1] / "docs" / "guides"


@pytest.mark.parametrize(
    ("page", "needs"),
    [
        ("from-metis", None),
        ("from-graphstorm", None),
        ("from-networkx", "networkx"),
        pytest.param("from-pyg", "torch_geometric", marks=pytest.mark.torch),
        pytest.param("from-dgl", "dgl", marks=pytest.mark.dgl),
    ],
)
@pytest.mark.filterwarnings("default")  # those of the other packages
def test_blocks_print_what_the_page_says(page, needs, tmp_path, monkeypatch, capsys):
    if needs:
        pytest.importorskip(needs)
    monkeypatch.chdir(tmp_path)
    text = (GUIDES / f"{page}.md").read_text()
    names = {}
    blocks = re.findall(r"^```python\n(.*?)^```$(?:\n\n^```\n(.*?)^```$)?", text, re.DOTALL | re.MULTILINE)
    assert blocks
    for code, expected in blocks:
        exec(code, names)
        assert capsys.readouterr().out == expected
