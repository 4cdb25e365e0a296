"""A sampling method is a file and a line of a list. The method of the guide is added to a copy of the core."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import fastpart as fp
from fastpart import _core
from fastpart.partitions.loader_options import Sampling

HOME = Path(__file__).parents[1]
METHODS = Path("rust/sampling/methods")
GUIDE = HOME / "docs" / "guides" / "adding-a-sampling-method.md"

PLACES = {
    "python/fastpart/partitions/loader_options.py",  # of loaders
    "python/fastpart/train/options.py",  # of trainings
}
"""Files that name methods, beside their own and the list. Stubs and help are written from these."""


def known() -> dict[str, str]:
    """Return the module of each method, by its name."""
    declared = (HOME / METHODS / "mod.rs").read_text().partition("\nmethods! {")[2].partition("\n}")[0]
    return dict(re.findall(r'"(\w+)" => (\w+)::\w+,', declared))


def test_loaders_take_the_names_of_the_core():
    assert set(get_args(Sampling)) == set(known())
    topology = _core.Topology.in_memory(np.arange(1), np.zeros(2, np.int64), np.zeros(0, np.int32))
    with pytest.raises(fp.errors.ParameterError, match=f"Known are {', '.join(known())}"):
        _core.Sampler(topology, [1], kind="newest")


def test_no_other_file_names_a_method():
    """Whoever adds one touches its file, the list, and the two files of options."""
    found = set()
    for file in [*HOME.glob("rust/**/*.rs"), *HOME.glob("python/**/*.py")]:
        lines = [line for line in file.read_text().splitlines() if not line.lstrip().startswith(("//", "#"))]
        if re.search(r"\bLabor\b|\blabor(::|\b[\"'`])", "\n".join(lines)):
            found.add(str(file.relative_to(HOME)))
    own = {str(METHODS / "labor.rs"), str(METHODS / "mod.rs")}
    tested = {"rust/sampling/batches/sampler.rs"}  # its tests compare what is kept of lists
    assert found - own - tested == PLACES


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cargo") is None, reason="nothing here compiles Rust")
def test_the_method_of_the_guide_is_a_file_and_a_line(tmp_path):
    blocks = re.findall(r"```rust\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    for name in ("rust", "Cargo.toml", "Cargo.lock", "README.md"):
        source = HOME / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    for name in ("benches", "tests", "examples"):  # the manifest names their files
        (tmp_path / name).symlink_to(HOME / name)
    (tmp_path / METHODS / "newest.rs").write_text(blocks[0])
    listed = tmp_path / METHODS / "mod.rs"
    line = re.search(r' +/// .*\n +"newest" => .*\n', blocks[1])[0]
    declared = listed.read_text()
    assert declared.count("methods! {\n") == 1
    listed.write_text(declared.replace("methods! {\n", f"methods! {{\n{line}"))
    done = subprocess.run(
        ["cargo", "check", "--offline", "--quiet", "-p", "fastpart"],
        cwd=tmp_path,
        env={**os.environ, "CARGO_TARGET_DIR": str(HOME / "target" / "copies")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
