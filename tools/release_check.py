"""The state that a checkout must have before it is released. `make release-check` also builds packages and docs.

    python tools/release_check.py             names all that is wrong, and fails if there is something
    python tools/release_check.py notices     prints what THIRD-PARTY.txt must hold

Each check returns sentences about what is wrong, and none if all is well. Decisions that only the owner of the project
can make are named as open, every time, and do not fail: a link is left out rather than made up.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]

ALLOWED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC",
    "MIT", "MPL-2.0", "PSF-2.0", "Unicode-3.0", "Zlib",
}  # fmt: skip
"""Licences that ask for nothing but their notice. MPL-2.0 also asks for the source of changed files, which none is."""

OLD_NAMES = {
    "APACHE": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "Python Software Foundation License": "PSF-2.0",
}
"""Names of licences in metadata that is older than SPDX expressions."""

OUR_LICENCE = "Apache-2.0"
URLS = ("Changelog", "Documentation", "Issues", "Repository")
DEVELOPMENT = ("test", "lint")
"""Extras for those who change fastpart."""


def tag(version: str, tags: Iterable[str]) -> list[str]:
    """The commit has the tag of its version, and no other."""
    tags = list(tags)
    if tags == [f"v{version}"]:
        return []
    return [f"tags of this commit: {', '.join(tags) or 'none'}. Expected v{version}; run: git tag v{version}"]


def changelog(text: str, version: str) -> list[str]:
    """The changelog dates this version, and nothing is left above it."""
    dated = re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", text, re.M)
    if not dated:
        return [f"CHANGELOG.md: no section '## [{version}] - YYYY-MM-DD'"]
    above = re.search(r"^## \[Unreleased\]\n(.*?)^## \[", text, re.M | re.S)
    if above and above[1].strip():
        return [f"CHANGELOG.md: entries under Unreleased. Move them under {version}"]
    return []


def citation(text: str, version: str) -> list[str]:
    """CITATION.cff states the version that Cargo.toml states."""
    stated = re.search(r"^version: (.*)$", text, re.M)
    if stated and stated[1] == version:
        return []
    return [f"CITATION.cff: version {stated[1] if stated else 'missing'}. Cargo.toml has {version}"]


def urls(stated: dict[str, str]) -> list[str]:
    """Links that are there are complete."""
    return [
        f"pyproject.toml: [project.urls] has {name} = {address!r}. Expected an address that begins with https://"
        for name, address in stated.items()
        if not address.startswith("https://")
    ]


def undecided(stated: dict[str, str]) -> list[str]:
    """Open: the addresses that the package index is to show, which have to be known before the upload."""
    missing = [name for name in URLS if name not in stated]
    if not missing:
        return []
    return [
        f"pyproject.toml: [project.urls] lacks {', '.join(missing)}: nobody has said where the project lives. The "
        "package index and the site show no link until the owner does"
    ]


def permitted(expression: str) -> bool:
    """Whether an SPDX expression, or an older name, lets us use what has this licence."""
    expression = OLD_NAMES.get(expression, expression).strip()
    flat = expression.replace("/", " OR ")
    while inner := re.search(r"\(([^()]*)\)", flat):
        flat = flat.replace(inner[0], "MIT" if permitted(inner[1]) else "refused")
    return any(all(name.strip() in ALLOWED for name in each.split(" AND ")) for each in flat.split(" OR "))


def compiled(metadata: dict) -> list[dict]:
    """The crates of others that the extension module has in it: no build tools, no macros, nothing for tests."""
    packages = {package["id"]: package for package in metadata["packages"]}
    needed = {node["id"]: node["deps"] for node in metadata["resolve"]["nodes"]}
    found, left = set(), [name for name in needed if packages[name]["name"] == "fastpart-python"]
    while left:
        name = left.pop()
        if name in found or any("proc-macro" in target["kind"] for target in packages[name]["targets"]):
            continue
        found.add(name)
        left += [
            each["pkg"] for each in needed[name] if any(kind["kind"] is None for kind in each["dep_kinds"])
        ]
    others = [packages[name] for name in found if packages[name]["source"]]
    return sorted(others, key=lambda package: package["name"])


def crates(packages: list[dict]) -> list[str]:
    """Each crate has a licence that we may ship under."""
    return [
        f"crate {package['name']}: licence {package['license']}"
        for package in packages
        if not permitted(package["license"] or "none")
    ]


def notices(packages: list[dict]) -> str:
    """The licences that must come along: of crates that do not offer our own licence."""
    texts = ["What the extension module of fastpart has in it, beside code under the Apache License 2.0.\n"]
    for package in packages:
        if OUR_LICENCE in re.split(r" OR |/", package["license"]):
            continue
        text = min(Path(package["manifest_path"]).parent.glob("LICENSE*")).read_text().strip()
        texts.append(f"{'-' * 80}\n{package['name']} {package['version']} ({package['license']})\n\n{text}\n")
    return "\n".join(texts)


def requirements(project: dict, installed: Iterable[Distribution]) -> list[str]:
    """Each package that pip installs with us or with an extra has a licence that users can live with."""
    extras = {
        name: those for name, those in project["optional-dependencies"].items() if name not in DEVELOPMENT
    }
    lines = [*project["dependencies"], *(line for those in extras.values() for line in those)]
    names = {_normal(re.match(r"[\w.-]+", line)[0]) for line in lines} - {"fastpart"}
    seen = {_normal(each.metadata["Name"]): licences(each) for each in installed}
    return [
        f"{name}: not installed in .venv, .venv-train or .venv-dgl. Its licence was not seen"
        if name not in seen
        else f"{name}: licence {' or '.join(seen[name]) or 'not stated'}"
        for name in sorted(names)
        if not any(map(permitted, seen.get(name, ())))
    ]


def licences(package: Distribution) -> list[str]:
    """Return the licences in the metadata of a package: an expression, classifiers, or the first line of a text."""
    metadata = package.metadata
    if metadata.get("License-Expression"):
        return [metadata["License-Expression"]]
    classifiers = [line for line in metadata.get_all("Classifier", []) if line.startswith("License ::")]
    if classifiers:
        return [line.rpartition(":: ")[2] for line in classifiers]
    return (metadata.get("License") or "").splitlines()[:1]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def _crates_here() -> list[dict]:
    target = "x86_64-unknown-linux-gnu"
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    return compiled(json.loads(_output(*command)))


def main() -> None:
    """Run the checks on this checkout."""
    packages = _crates_here()
    if sys.argv[1:] == ["notices"]:
        print(notices(packages), end="")
        return
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    installed = distributions(path=list(map(str, ROOT.glob(".venv*/lib/python3*/site-packages"))))
    wrong = [
        *tag(version, _output("git", "tag", "--points-at", "HEAD").split()),
        *changelog((ROOT / "CHANGELOG.md").read_text(), version),
        *citation((ROOT / "CITATION.cff").read_text(), version),
        *urls(project.get("urls", {})),
        *crates(packages),
        *requirements(project, installed),
    ]
    if (ROOT / "THIRD-PARTY.txt").read_text() != notices(packages):
        wrong.append("THIRD-PARTY.txt: not the licences of Cargo.lock; run: tools/release_check.py notices")
    if _output("git", "status", "--porcelain"):
        wrong.append("the checkout has changes that are not committed")
    print("\n".join(wrong) or f"{version}: nothing is wrong with tag, changelog, links and licences")
    for point in undecided(project.get("urls", {})):
        print(f"open: {point}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
