"""Inputs of the fault tests, long runs that cost little, and what must be left of a training."""

import os
import tempfile
from pathlib import Path

import pytest
from watched import runs, traces, tree

import fastpart as fp


@pytest.fixture(scope="session")
def graph(tmp_path_factory) -> Path:
    """An R-MAT of 2 million records over 262,144 vertices; copy it before you change it."""
    return fp.generate.rmat(tmp_path_factory.mktemp("graph") / "g.bin", n=1 << 18, m=2_000_000).path


@pytest.fixture(scope="session")
def endless(tmp_path_factory) -> Path:
    """A sparse file of 2**29 records, all of them the loop (0, 0), which takes a second or more to read once."""
    path = tmp_path_factory.mktemp("endless") / "endless.bin"
    path.touch()
    os.truncate(path, 8 << 29)
    return path


@pytest.fixture
def folder(tmp_path):
    """A folder for outputs, and a function that lists what is in it."""
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.fixture
def nothing_left(tmp_path, monkeypatch):
    """Assert that neither processes nor files outlive the training."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    before = set(tree(os.getpid()))
    yield
    assert not [pid for pid in set(tree(os.getpid())) - before if runs(pid)]
    assert traces(os.getpid(), tmp_path / "tmp") == []
