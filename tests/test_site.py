"""The sources of the site: every public name has one place, and links from outside the site lead somewhere."""

import ast
import importlib.util
import re
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

import fastpart as fp
from fastpart.cli import main
from fastpart.cli.verbs import Family, verbs
from fastpart.compat import networkx, pymetis

ROOT = Path(__file__).parents[1]
DIRECTIVE = re.compile(r"^\.\. (currentmodule|auto(?:function|class|exception|data|module)):: (\S+)$", re.M)


def public():
    """Return every public name, with its module. What two modules have belongs to the package."""
    modules = [name for name in fp.__all__ if isinstance(getattr(fp, name), ModuleType)]
    names = {f"fastpart.{name}" for name in fp.__all__ if name not in modules}
    modules += ["algorithms", "errors", "report", "typing"]
    for module in modules:
        those = getattr(fp, module).__all__
        names |= {f"fastpart.{module}.{name}" for name in those if f"fastpart.{name}" not in names}
    for module in (networkx, pymetis):
        names |= {f"{module.__name__}.{name}" for name in module.__all__}
    return names | {f"fastpart.pyg.{name}" for name in names_of_pyg()}


def names_of_pyg():
    """Return the names of `fastpart.pyg`, which only PyG lets us import."""
    tree = ast.parse((Path(fp.__file__).parent / "pyg" / "__init__.py").read_text())
    (names,) = (
        each.value for each in tree.body if isinstance(each, ast.Assign) and each.targets[0].id == "__all__"
    )
    return ast.literal_eval(names)


def documented():
    """Return the names on the pages of the API, as often as they are there."""
    names = Counter()
    for page in sorted((ROOT / "docs" / "reference" / "api").glob("*.rst")):
        module = "fastpart"
        for directive, name in DIRECTIVE.findall(page.read_text()):
            if directive == "currentmodule":
                module = name
            else:
                names[name if name.startswith("fastpart.") else f"{module}.{name}"] += 1
    return names


def test_every_public_name_is_in_the_api_once():
    names = documented()
    assert sorted(public() - set(names)) == []
    assert [name for name, count in names.items() if count > 1] == []


def anchors(page):
    """Return the anchors that GitHub makes of the headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "name",
    ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "datasets/README.md"],
)
def test_links_from_outside_the_site(name):
    page = ROOT / name
    for path, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", page.read_text()):
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


def test_the_page_of_the_command_line_has_the_help_of_every_command(monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("commands", ROOT / "docs" / "commands.py")
    commands = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(commands)
    page = commands.page((ROOT / "docs" / "reference" / "command-line.md").read_text())
    monkeypatch.setenv("COLUMNS", str(commands.WIDTH))
    headings = re.findall(r"^###+ (.*)$", page, re.M)
    known = verbs(["partition"])
    names = [name for name, verb in known.items() if not isinstance(verb, Family)]
    names += [
        f"{name} {each}"
        for name, verb in known.items()
        if isinstance(verb, Family)
        for each in verb.members()
    ]
    assert sorted(headings) == sorted({*names, *known})
    for name in ("convert", "partition", "export dgl", "train sampled"):
        assert main([*name.split(), "--help"]) == 0
        assert capsys.readouterr().out.strip() in page
    assert "| [`partition`](#partition) |" in page
    assert "dgl.distributed.partition_graph" in page  # what is searched for


def test_no_page_installs_from_a_registry_what_is_not_there():
    """On the day of the first release the lines change to 'fastpart[train]' and this test goes."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    failing = [page.name for page in pages if re.search(r"pip install\s+'?fastpart\b", page.read_text())]
    assert not failing
