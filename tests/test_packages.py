"""The packages that `make wheel` built are complete, and run where their names say."""

import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

import fastpart as fp

ROOT = Path(__file__).parents[1]
GLIBC = (2, 17)
TUTORIAL = ROOT / "docs/tutorials/partition.md"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def packages(pattern: str) -> list[Path]:
    return sorted((ROOT / "dist").glob(pattern)) or [
        pytest.param(None, marks=pytest.mark.skip("no packages in dist/; run: make wheel"), id="none")
    ]


def interpreters() -> list[Path]:
    """Each Python from 3.11 on that is installed here: in the search path or by pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = {}
    for minor in range(11, 30):
        name = f"python3.{minor}"
        paths = [*sorted(pyenv.glob(f"versions/3.{minor}.*/bin/{name}")), shutil.which(name)]
        if paths[0]:
            found[name] = Path(paths[0])
    return [pytest.param(path, id=name) for name, path in found.items()]


def run(*command: object, cwd: Path) -> str:
    """Output of a command that must succeed, without what would lead it to this checkout."""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def sources(*patterns: str) -> set[str]:
    return set(run("git", "ls-files", *patterns, cwd=ROOT).splitlines())


@pytest.mark.parametrize("sdist", packages("*.tar.gz"), ids=lambda path: path.name)
def test_source_distribution_has_what_a_build_takes_and_no_more(sdist):
    with tarfile.open(sdist) as archive:
        members = {member.name.partition("/")[2] for member in archive if member.isfile()}
    assert sources("rust", "python", "benches/*.rs", "examples/*.rs") <= members
    assert {
        "Cargo.toml",
        "Cargo.lock",
        "pyproject.toml",
        "LICENSE",
        "THIRD-PARTY.txt",
        "README.md",
        "PKG-INFO",
    } <= members
    assert {member.split("/")[0] for member in members if "/" in member} == {
        "rust",
        "python",
        "benches",
        "examples",
    }
    assert not [member for member in members if member.endswith((".so", ".pyc"))]


@pytest.mark.parametrize("wheel", packages("*.whl"), ids=lambda path: path.name)
class TestWheel:
    def test_name_says_any_python_since_3_11_and_glibc_2_17(self, wheel):
        *name, platforms = wheel.stem.split("-")
        assert name == ["fastpart", fp.__version__, "cp311", "abi3"]
        machine = platforms.rpartition("manylinux_2_17_")[2]
        assert machine in ("x86_64", "aarch64")
        assert set(platforms.split(".")) == {f"manylinux_2_17_{machine}", f"manylinux2014_{machine}"}

    def test_tags_are_those_of_the_name(self, wheel):
        with zipfile.ZipFile(wheel) as archive:
            (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/WHEEL"))
            tags = re.findall(r"^Tag: (.*)$", archive.read(metadata).decode(), re.MULTILINE)
        python, abi, platforms = wheel.stem.split("-")[2:]
        assert sorted(tags) == sorted(f"{python}-{abi}-{platform}" for platform in platforms.split("."))

    def test_has_the_whole_package_and_nothing_else(self, wheel):
        with zipfile.ZipFile(wheel) as archive:
            members = {name for name in archive.namelist() if ".dist-info/" not in name}
        package = {name.removeprefix("python/") for name in sources("python/fastpart")}
        assert members == package | {"fastpart/_core.abi3.so"}

    def test_brings_the_licences_of_what_is_compiled_in(self, wheel):
        with zipfile.ZipFile(wheel) as archive:
            names = {name.rpartition("/licenses/")[2] for name in archive.namelist() if "/licenses/" in name}
        assert names == {"LICENSE", "THIRD-PARTY.txt"}

    def test_asks_for_no_symbol_newer_than_its_glibc(self, wheel, tmp_path):
        with zipfile.ZipFile(wheel) as archive:
            core = archive.extract("fastpart/_core.abi3.so", tmp_path)
        text = run("readelf", "--version-info", "--wide", core, cwd=tmp_path)
        versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([\d.]+)", text)}
        assert versions
        assert max(versions) <= GLIBC

    @pytest.mark.parametrize("python", interpreters())
    def test_a_tutorial_runs_in_an_empty_environment(self, wheel, python, tmp_path):
        if not wheel.stem.endswith(os.uname().machine):
            pytest.skip("built for another machine")
        home = tmp_path / "venv"
        run(python, "-m", "venv", home, cwd=tmp_path)
        run(home / "bin/pip", "install", "--quiet", "--only-binary", ":all:", wheel, cwd=tmp_path)
        cells = re.findall(
            r"^```\{code-cell\}.*?\n(.*?)^```$", TUTORIAL.read_text(), re.MULTILINE | re.DOTALL
        )
        assert cells
        script = tmp_path / "tutorial.py"
        script.write_text("\n".join([*cells, "print(fp.__file__)"]))
        assert run(home / "bin/python", script, cwd=TUTORIAL.parent).strip().startswith(str(home))
