"""Schemas of a few bytes that stand for far more: refused by name before anything of that size is made."""

import os
import subprocess
import sys

import pytest

import fastpart as fp
from fastpart.errors import ParameterError
from fastpart.graphs.ingest import ingest
from fastpart.graphs.ingest.documents import read_schema

NINE = ["x: &a0 [0, 0, 0, 0, 0, 0, 0, 0, 0]"] + [
    f"x{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)
]
MERGED = ["x0: &a0 {k: 0}"] + [f"x{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}" for i in range(1, 9)]
GRAPHSTORM = ["version: gconstruct-v0.1", "nodes: *a8", "edges: *a8"]
ITSELF = {
    "list": "vertices: &a [*a]",
    "mapping": "vertices: &a {paper: *a}",
    "key": "vertices: &a {? *a : 1}",
    "merged": "vertices: &a {<<: *a}",
    "all": "&a [*a]",
    "entry": "vertices: {paper: &a {files: p.csv, features: [*a]}}",
}


def refusal(text, tmp_path):
    """The refusal of a schema, by a process that may take 1 GiB and a minute."""
    file = tmp_path / "schema.yaml"
    file.write_text(text)
    code = (
        "import resource, sys\n"
        "from fastpart.graphs.ingest.documents import read_schema\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 28),) * 2)\n"
        "try:\n    read_schema(sys.argv[1])\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)], capture_output=True, text=True, timeout=60, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.replace(str(tmp_path), "")


@pytest.mark.parametrize("lines", [NINE, MERGED, NINE + GRAPHSTORM], ids=["lists", "merged", "graphstorm"])
def test_aliases_that_multiply_are_refused(tmp_path, lines):
    assert refusal("\n".join(lines), tmp_path) == (
        "ParameterError /schema.yaml: its aliases (`*name`) repeat more than 100,000 values. Write the values instead\n"
    )


@pytest.mark.parametrize("text", ITSELF.values(), ids=ITSELF)
def test_a_value_that_contains_itself_is_refused(tmp_path, text):
    (tmp_path / "schema.yml").write_text(f"# of itself\n{text}")
    with pytest.raises(ParameterError, match=r"schema.yml: line 2: a value that contains itself"):
        read_schema(tmp_path / "schema.yml")
    with pytest.raises(ParameterError, match=r"schema.yml: line 2: a value that contains itself"):
        fp.ingest(tmp_path / "schema.yml", tmp_path / "graph")


def test_a_dict_that_contains_itself_is_refused(tmp_path):
    content = {"vertices": {"paper": {"files": "p.csv", "features": []}}}
    content["vertices"]["paper"]["features"].append(content)
    with pytest.raises(ParameterError, match="schema: a value contains itself"):
        ingest(content, tmp_path / "graph")


def test_anchors_are_read(tmp_path):
    columns = "[a, b, c, d, e, f, g, h]"
    types = "\n".join(
        f"  t{i}: {{files: t{i}.csv, id: id, features: *f, format: *csv}}" for i in range(1, 300)
    )
    (tmp_path / "schema.yaml").write_text(
        f"vertices:\n  t0: &t {{files: t0.csv, id: id, features: &f {columns}, format: &csv {{csv: {{}}}}}}\n{types}\n"
        "  last: {<<: *t, files: last.csv}\n"
        "relations:\n  r: {files: r.csv, source: {t0: u}, target: {last: v}}\n"
    )
    schema, _ = read_schema(tmp_path / "schema.yaml")
    assert len(schema.vertices) == 301
    assert schema.vertices["last"].features == schema.vertices["t7"].features
