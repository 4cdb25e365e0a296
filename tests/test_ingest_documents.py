"""What the docs say of ingest: recipes that run, schemas that are read, keys that are all there."""

import re
from pathlib import Path

import msgspec
import pytest
import yaml

from fastpart.graphs.ingest import schema as schemas
from fastpart.graphs.ingest.documents import read_schema

DOCS = Path(__file__).parents[1] / "docs"
TABLES = DOCS / "guides" / "tables.md"
REFERENCE = DOCS / "reference" / "ingest.md"


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def test_recipes_print_what_the_guide_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks(TABLES, "python"):
        exec(block, names)
        printed = capsys.readouterr().out
        assert f"{block}```\n\n```\n{printed}```" in TABLES.read_text() or not printed


@pytest.mark.parametrize(
    "text",
    [
        *blocks(TABLES, "yaml"),
        *blocks(REFERENCE, "yaml"),
        *blocks(DOCS / "reference" / "columns.md", "yaml"),
    ],
)
def test_schemas_are_read(tmp_path, text):
    (tmp_path / "schema.yaml").write_text(text)
    schema, _ = read_schema(tmp_path / "schema.yaml")
    assert schema.relations.keys() == yaml.safe_load(text)["relations"].keys()


def test_every_key_is_in_the_reference_once():
    rows = re.findall(r"^\| (`[^|]*`) \|", REFERENCE.read_text(), re.MULTILINE)
    documented = [key for row in rows for key in re.findall(r"`(\w+)`", row)]
    for entry in (schemas.Schema, schemas.Vertices, schemas.Relation):
        names = [field.encode_name for field in msgspec.structs.fields(entry)]
        assert [name for name in names if name not in documented] == []
