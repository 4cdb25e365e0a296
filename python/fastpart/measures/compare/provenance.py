"""The provenance of a comparison for a paper: versions, machine, parameters, and the papers of its algorithms."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.resources
import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ... import _core
from ...core.parameters import one_line
from ...core.system import memory_bytes, processor
from .entries import Entry

PAPERS: Mapping[str, tuple[str, ...]] = {
    "spring": ("spring",),
    "sigma": ("sigma",),
    "grem": ("grem",),
    "multilevel": ("multilevel", "sclap", "jet"),
    "refine": ("jet",),
    "update": ("unified",),
    "edges_of": ("sigma",),
    "ldg": ("ldg",),
    "fennel": ("fennel",),
    "reldg": ("restreaming", "ldg"),
    "refennel": ("restreaming", "fennel"),
    "bytegnn": ("bytegnn",),
    "hdrf": ("hdrf",),
    "greedy": ("powergraph",),
    "hep": ("hep",),
    "two_phase": ("twophase",),
    "dbh": ("dbh",),
    "partition": ("multilevel", "sclap", "jet"),
    "metis": ("metis",),
    "kaminpar": ("kaminpar",),
    "mtkahypar": ("mtkahypar",),
    "heistream": ("heistream",),
    "buffcut": ("buffcut",),
}
"""The entries of ``references.bib`` that each algorithm follows. ``random`` and ``hash`` follow none."""

EDGES_OF_PARTITION = ("hep", "sigma")
"""Further entries for ``partition`` where it partitions edges."""


def bibtex_of(provenance: Mapping[str, Any], of_edges: Iterable[str]) -> str:
    """Return the BibTeX entries of fastpart and of what ran. ``of_edges`` are the labels of the edge partitions."""
    keys: dict[str, None] = {}
    for label, name in provenance["algorithms"].items():
        keys |= dict.fromkeys(PAPERS.get(name, ()))
        if name == "partition" and label in set(of_edges):
            keys |= dict.fromkeys(EDGES_OF_PARTITION)
    text = importlib.resources.files(__package__).joinpath("references.bib").read_text(encoding="utf-8")
    entries = {re.split(r"[{,]", entry, maxsplit=2)[1]: entry.strip() for entry in text.split("\n\n")}
    return "\n\n".join([_software(provenance), *(entries[key] for key in sorted(keys))]) + "\n"


def _software(provenance: Mapping[str, Any]) -> str:
    """Return the entry of fastpart, with the version that ran."""
    commit = provenance["build"]["commit"]
    version = f"Version {provenance['versions']['fastpart']}" + (f", commit {commit}" if commit else "")
    return "\n".join(
        [
            "@misc{fastpart,",
            "  author    = {{The fastpart contributors}},",
            "  title     = {{fastpart}: Streaming Graph Partitioning for Distributed {GNN} Training on Graphs Larger "
            "than Memory},",
            f"  note      = {{{version}}},",
            "}",
        ]
    )


@functools.cache
def build() -> dict[str, str | None]:
    """Return the identity of the code of fastpart: a digest of its files, and its commit if that is known.

    The commit is that of a checkout (with ``+`` behind it if files were changed), or that of an installation from a
    repository.
    """
    home = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for file in sorted(
        each for each in home.rglob("*") if each.is_file() and each.suffix not in (".pyc", ".pyo")
    ):
        digest.update(file.relative_to(home).as_posix().encode() + hashlib.sha256(file.read_bytes()).digest())
    return {"digest": digest.hexdigest()[:32], "commit": _commit(home.parents[1])}


def _commit(checkout: Path) -> str | None:
    with suppress(OSError, subprocess.SubprocessError):
        if (
            checkout / ".git"
        ).exists():  # git itself would also find the repository of somebody else's environment
            head, changed = (
                subprocess.run(
                    ("git", "-C", os.fspath(checkout), *words),
                    capture_output=True,
                    text=True,
                    check=True,
                    timeout=10,
                ).stdout.strip()
                for words in (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
            )
            return head + "+" * bool(changed)
    with suppress(OSError, ValueError, LookupError, TypeError, importlib.metadata.PackageNotFoundError):
        text = importlib.metadata.distribution("fastpart").read_text("direct_url.json")
        return str(json.loads(text or "{}")["vcs_info"]["commit_id"])
    return None


MOST_LETTERS = 80
"""Most letters of a parameter that is no number and no short text."""


def provenance_of(entries: Iterable[Entry], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the build of fastpart, date, versions, machine, the settings of all runs, and what each algorithm is.

    It names neither the host nor the user.
    """
    versions = {"fastpart": _core.__version__, "python": platform.python_version(), "numpy": np.__version__}
    parameters, algorithms = {}, {}
    for entry in entries:
        algorithms[entry.label] = entry.algorithm
        used = entry.parameters(settings["balance"])
        parameters[entry.label] = {name: _plain(value) for name, value in used.items()}
        versions |= {name: version for name, version in entry.versions.items() if version is not None}
    return {
        "build": build(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **{name: _plain(value) for name, value in settings.items()},
        "versions": versions,
        "machine": {
            "processor": one_line(processor(), MOST_LETTERS),
            "cores": os.cpu_count() or 1,
            "memory": memory_bytes(),
        },
        "parameters": parameters,
        "algorithms": algorithms,
    }


def _plain(value: Any) -> Any:
    """Return a parameter as JSON can hold it. Arrays and other objects are named by their type."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, os.PathLike):
        return one_line(os.fspath(value), MOST_LETTERS)
    return f"{type(value).__name__} of {len(value)}" if hasattr(value, "__len__") else type(value).__name__
