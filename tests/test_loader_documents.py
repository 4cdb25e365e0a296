"""What the docs say of loaders: parameters, examples and the guide."""

import doctest
import re
from pathlib import Path

import pytest

import fastpart as fp
from fastpart.core.calls import full_signature

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("name", ["loader", "link_loader"])
def test_every_parameter_is_in_the_docs_once(name):
    method = getattr(fp.VertexPartition, name)
    documented = method.full_doc.partition("Parameters\n")[2].partition("\nReturns\n")[0]
    entries = re.findall(r"^(\w[\w, ]*?) :", documented, re.MULTILINE)
    assert sorted(", ".join(entries).split(", ")) == sorted({*full_signature(method).parameters} - {"self"})


def test_the_example_of_the_docs(capsys):
    example = fp.VertexPartition.loader.__doc__.replace("  # doctest: +SKIP", "")
    test = doctest.DocTestParser().get_doctest(example, {}, "loader", None, 0)
    assert doctest.DocTestRunner().run(test).failed == 0, capsys.readouterr().out


def test_the_page_of_the_docs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[1] / "docs" / "guides" / "loading.md").read_text()
    train, *of_pyg = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    names = {}
    exec(train, names)
    printed = capsys.readouterr().out
    assert f"```\n{printed}```" in page
    pytest.importorskip("torch_geometric")
    exec("\n".join(of_pyg), names)
    assert names["logits"].shape[1] == 4
