"""What `make release-check` refuses, and that the checkout keeps what it can keep before a release."""

import importlib.util
import json
import os
import subprocess
import sys
import tomllib
from email.message import Message
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

ROOT = Path(__file__).parents[1]
SPEC = importlib.util.spec_from_file_location("release_check", ROOT / "tools" / "release_check.py")
check = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check)


@pytest.mark.parametrize(
    ("tags", "fine"), [(["v0.1.0"], True), ([], False), (["0.1.0"], False), (["v0.1.0", "v0.2.0"], False)]
)
def test_tag(tags, fine):
    assert (check.tag("0.1.0", tags) == []) == fine


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("## [Unreleased]\n\n## [0.1.0] - 2026-01-02\n- x\n", None),
        ("## [0.1.0] - 2026-01-02\n- x\n", None),
        ("## [Unreleased]\n- y\n\n## [0.1.0] - 2026-01-02\n", "Unreleased"),
        ("## [Unreleased]\n- y\n", "no section"),
        ("## [0.1.0]\n", "no section"),
        ("## [0a1b0] - 2026-01-02\n", "no section"),
    ],
)
def test_changelog(text, word):
    wrong = check.changelog(text, "0.1.0")
    assert wrong == [] if word is None else word in wrong[0]


def test_citation_and_links():
    assert check.citation("version: 0.1.0\n", "0.1.0") == []
    assert check.citation("version: 0.1.0\n", "0.2.0")
    stated = dict.fromkeys(check.URLS, "https://example.org")
    assert check.urls(stated) == check.undecided(stated) == check.urls({}) == []
    assert "Repository = 'example.org'" in check.urls({**stated, "Repository": "example.org"})[0]
    (point,) = check.undecided({"Repository": "https://example.org"})
    assert "lacks Changelog, Documentation, Issues:" in point


@pytest.mark.parametrize(
    ("expression", "fine"),
    [
        ("MIT OR Apache-2.0", True),
        ("MIT/Apache-2.0", True),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only AND MIT", False),
        ("(GPL-3.0-only OR MIT) AND Unicode-3.0", True),
        ("MIT AND (GPL-3.0-only)", False),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("BSD License", True),
        ("", False),
    ],
)
def test_permitted(expression, fine):
    assert check.permitted(expression) == fine


def installed(name, **fields):
    metadata = Message()
    metadata["Name"] = name
    for field, value in fields.items():
        metadata[field.replace("_", "-")] = value
    return SimpleNamespace(metadata=metadata)


def test_requirements():
    project = {
        "dependencies": ["numpy>=1.26", "Under_Score"],
        "optional-dependencies": {
            "more": ["viral[x]>=2; python_version > '3'", "fastpart[train]"],
            "lint": ["bad"],
        },
    }
    seen = [
        installed("numpy", License_Expression="BSD-3-Clause AND MIT"),
        installed("under-score", Classifier="License :: OSI Approved :: MIT License"),
        installed("viral", License="GPL-3.0-only\nand more"),
    ]
    assert check.requirements(project, seen) == ["viral: licence GPL-3.0-only"]
    assert "not installed" in check.requirements(project, seen[1:])[0]


def test_only_crates_that_are_compiled_in_count():
    def crate(name, kind="lib", source="index"):
        return {"id": name, "name": name, "source": source, "targets": [{"kind": [kind]}], "license": name}

    def needs(*names, kind=None):
        return [{"pkg": name, "dep_kinds": [{"kind": kind}]} for name in names]

    metadata = {
        "packages": [
            crate("fastpart-python", source=None), crate("a"), crate("b"), crate("tool"), crate("tests"),
            crate("macro", "proc-macro"), crate("of-macro"),
        ],
        "resolve": {
            "nodes": [
                {"id": "fastpart-python", "deps": [*needs("b", "macro"), *needs("tests", kind="dev")]},
                {"id": "b", "deps": [*needs("a"), *needs("tool", kind="build")]},
                {"id": "macro", "deps": needs("of-macro")},
                *({"id": name, "deps": []} for name in ("a", "tool", "tests", "of-macro")),
            ]
        },
    }  # fmt: skip
    found = check.compiled(metadata)
    assert [package["name"] for package in found] == ["a", "b"]
    assert check.crates(found) == ["crate a: licence a", "crate b: licence b"]


def test_the_notices_are_those_of_the_crates_that_are_compiled_in():
    command = [sys.executable, str(ROOT / "tools" / "release_check.py"), "notices"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("cargo has not fetched the crates")
    assert done.stdout == (ROOT / "THIRD-PARTY.txt").read_text()


@pytest.mark.parametrize("name", ["bug", "wish"])
def test_forms_of_issues(name):
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml").read_text())
    assert {"name", "description", "labels", "body"} == set(form)
    fields = [each["id"] for each in form["body"]]
    assert len(set(fields)) == len(fields)
    assert all(each["attributes"]["label"] for each in form["body"])


def instructions():
    """Return the instructions of the Dockerfile, continued lines joined, without comments."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line and not line.startswith("#")]


def test_the_image_is_built_without_an_index():
    steps = instructions()
    runs = [text for name, text in steps if name == "RUN"]
    assert [text for text in runs if "pip install" in text and "--no-index" not in text] == []
    assert sum("pip install" in text for text in runs) == 1
    assert json.loads(dict(steps)["ENTRYPOINT"]) == ["fastpart"]


@pytest.mark.parametrize(
    ("extra", "installed"),
    [(None, "fastpart[train]"), ("", "fastpart"), ("train,cloud", "fastpart[train,cloud]")],
)
def test_the_image_takes_an_extra(extra, installed):
    """The shell of the image gets the argument as a variable of its environment."""
    steps = instructions()
    default = next(text for name, text in steps if text.startswith("EXTRA="))
    assert steps.index(("ARG", default)) > steps.index(("FROM", "${BASE}"))  # others end there
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert default.removeprefix("EXTRA=") in known
    (run,) = (text for name, text in steps if name == "RUN" and "pip install" in text)
    value = default.removeprefix("EXTRA=") if extra is None else extra
    command = ["sh", "-c", f"echo {run.rpartition(' ')[2]}"]
    done = subprocess.run(
        command, env={"EXTRA": value, "PATH": os.environ["PATH"]}, capture_output=True, text=True
    )
    assert done.stdout.strip() == installed
