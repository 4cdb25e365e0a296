"""The digest by which `.ci/run` leaves out the tests of DGL."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def copy(tmp_path):
    """Return a tree with what the digest is of, and the digest."""
    for name in ("python/fastpart/export", "python/fastpart/store", "python/fastpart/train", "rust/parts"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "tests" / "faults").mkdir(parents=True)
    for pattern in ("*.py", "*.txt", "faults/*.py"):
        for file in (ROOT / "tests").glob(pattern):
            shutil.copy(file, tmp_path / "tests" / file.relative_to(ROOT / "tests"))
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "dgl_digest.py", tmp_path / "tools")
    (tmp_path / "tests" / "dgl.digest").write_text(run(tmp_path).stdout)
    return tmp_path


def run(root, *words):
    return subprocess.run(
        [sys.executable, root / "tools" / "dgl_digest.py", *words], capture_output=True, text=True
    )


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("python/fastpart/export/dgl.py", True),
        ("python/fastpart/train/methods/distdgl/training.py", True),
        ("python/fastpart/store/schemas.py", True),
        ("rust/parts/layout.rs", True),
        ("tests/requirements-dgl.txt", True),
        ("tests/test_train_distdgl.py", True),
        ("python/fastpart/train/options.py", False),
    ],
)
def test_a_change_of_what_they_depend_on_runs_them_again(copy, file, counts):
    assert run(copy, "--check").returncode == 0
    with (copy / file).open("a") as opened:
        opened.write("\n")
    assert run(copy, "--check").returncode == int(counts)


def test_a_file_that_moved_is_told_and_no_digest_runs_them(copy):
    (copy / "tests" / "dgl.digest").unlink()
    assert run(copy, "--check").returncode == 1
    (copy / "python/fastpart/store/schemas.py").rename(copy / "python/fastpart/store/schema.py")
    assert "Name what has taken its place" in run(copy).stderr
