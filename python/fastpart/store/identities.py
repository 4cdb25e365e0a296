"""What tells a partition directory from others: its manifest, and the checksums of what a training reads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..core.inputs import EDGE_LABELS, EDGE_MASKS
from ..partitions.coding import COLUMNS, EDGE_COLUMNS
from .manifest import OWN

FILES = {
    "parts": ("vertices.npy", "root.npy"),
    "labels": ("labels.npy",),
    "splits": ("train.npy", "val.npy", "test.npy"),
    "edge splits": ("edge_train.npy", "edge_val.npy", "edge_test.npy"),
}
"""Files of a part that can be read to tell whether they changed, if the directory does not list their checksums."""

OF_EDGES = {"labels of edges": (f"{EDGE_LABELS}.npy", *(f"{mask}.npy" for mask in EDGE_MASKS))}
"""Further files of a part, in a directory with labels of edges."""

ROWS = {"features": ("features.npy", COLUMNS), "edge_features": ("edge_features.npy", EDGE_COLUMNS)}
"""Files of a part that may be too large to read, or on another machine. The list of the directory has to know them."""

_ELSEWHERE = ("input", "fastpart", "schema", "files", OWN)
"""Entries of the manifest that may differ between copies of a directory."""


def identity(manifest: Mapping[str, Any]) -> str:
    """Return a hash of what copies of a directory have in common, also where one of them has no list of its files."""
    return digest({name: value for name, value in manifest.items() if name not in _ELSEWHERE})


def files_of(manifest: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the files of a part that tell whether the part changed, by their content."""
    labelled = any(EDGE_LABELS in each for each in (manifest, *manifest.get("relations", ())))
    return FILES | (OF_EDGES if labelled else {})


def checksums_of(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return a hash of the listed checksums of what a training reads. Nothing if the directory has no list."""
    files = manifest.get("files")
    return (
        {what: digest(_listed(files, names)) for what, names in (files_of(manifest) | ROWS).items()}
        if files
        else {}
    )


def digest(facts: Mapping[str, Any]) -> str:
    """Return a hash of facts, as JSON has them."""
    return hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=16).hexdigest()


def _listed(files: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    wanted = set(names)
    return {
        file: [known["size"], known["xxh3"]] for file, known in files.items() if Path(file).name in wanted
    }
