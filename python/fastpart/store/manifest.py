"""The manifest of a partition directory: read, written with the list of all files, and what tells it from others."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from .. import _core
from ..core.folders import below, inside, owned
from ..core.inputs import EDGE_LABEL_SPLITS, EDGE_LABELS, EDGE_MASKS, SPLITS
from ..core.options import RunOptions
from ..core.outputs import replaceable
from ..core.parameters import choice, integer, shown
from ..core.parsing import PathBelow, conform, json_object, with_checksum
from ..errors import FastpartError, GraphFormatError, ParameterError
from ..graphs.graph_directory import EmbeddedColumn, embedded_in
from ..graphs.sidecars import Companion
from ..graphs.types import RelationEntry, TypedRanges, TypeEntry
from ..partitions.coding import COLUMNS, EDGE_COLUMNS
from ..partitions.part_files import MANIFEST, coded_type, row_type
from ..partitions.part_rows import OF_EDGES, OF_VERTICES, typed_of
from ..partitions.parts import part_name
from .schemas import VERSION

EARLIER = (
    r"assignment\.npy|metrics\.parquet|cache\.json|part-\d{5,}/(part\.json|("
    "vertices|degree|indptr|indices|edge_ids|halo_parts|halo_rows|root|send|send_indptr|recv|recv_indptr|"
    r"features|halo_features|edge_features|labels|train|val|test|cache_ids|edge_(train|val|test|reverse))\.npy)"
)
"""The files that versions wrote which kept no list of them."""

OWN = "manifest_xxh3"
"""The key of the checksum of the manifest itself, taken while its digits are zeros. It is the last one."""

Files = dict[str, dict[str, Any]]
Check = Callable[[str, Any], object]


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a directory as it was written, of any schema."""
    if not os.path.lexists(folder / MANIFEST):
        raise GraphFormatError(f"{shown(folder)} is not a partition directory: it has no {MANIFEST}")
    return json_object(folder / MANIFEST, inside(folder.resolve(), MANIFEST).read_bytes(), version=VERSION)


def refuse_mistyped(file: Path, manifest: Mapping[str, Any]) -> None:
    """Raise an error that names the key unless all entries that are read of parts and files are what they should be.

    The entries of the partition itself are checked where it is restored.
    """
    try:
        for name, check in _CHECKS.items():
            if name in manifest:
                check(name, manifest[name])
        if "directedness" in manifest:
            _refuse_without_graph(manifest)
            _refuse_undescribed(manifest)
    except (ValueError, TypeError) as error:
        raise GraphFormatError(f"{shown(file)}: {error}") from None


def _refuse_without_graph(manifest: Mapping[str, Any]) -> None:
    """Refuse numbers of a graph that are missing or contradict each other: the parts are checked against them."""
    n, m, edges, loops = (
        integer(name, manifest.get(name), 0, most)
        for name, most in (
            ("n", 2**32 - 1),
            ("m", 2**62),
            ("num_directed_edges", 2**63 - 1),
            ("loops", 2**62),
        )
    )
    typed = _typed(manifest)
    undirected = manifest["directedness"] == "undirected"
    most = 2 * m - loops if undirected else m
    least = most
    if typed is not None:  # loops of a merged relation are one edge
        most = m + typed.num_reversed
        least = most - loops
    if not least <= edges <= most or (edges and not n):
        raise ParameterError(f"num_directed_edges: {edges} contradicts n = {n}, m = {m} and loops = {loops}")
    if manifest.get("of") == "vertices":
        integer("halo_hops", manifest.get("halo_hops"), 0, 2)


def _refuse_undescribed(manifest: Mapping[str, Any]) -> None:
    """Refuse rows that the manifest lists as files of the first part, but does not describe: they would be missed."""
    files = manifest.get("files", {})
    for of, names in (
        ("", (*OF_VERTICES, *OF_EDGES, "edge_times")),
        ("types", OF_VERTICES),
        ("relations", OF_EDGES),
    ):
        for entry in [manifest] if not of else manifest.get(of, []):
            above = "/".join([part_name(0), *([of, entry["name"]] if of else [])])
            known = {name for name in names if entry.get(name) is not None} | set(entry.get("splits", []))
            known |= {f"edge_label_{split}" for split in entry.get(EDGE_LABEL_SPLITS, [])}
            for name in (*names, *SPLITS, *EDGE_MASKS):
                if f"{above}/{name}.npy" in files and name not in known:
                    raise ParameterError(
                        f"files: lists {name}.npy, but {of or MANIFEST} has no entry {name!r}"
                    )


def _typed(manifest: Mapping[str, Any]) -> TypedRanges | None:
    """Return the types and relations. Refuse those that contradict each other or cannot be folders."""
    try:
        typed = typed_of(manifest)
        if typed is None:
            return None
        conform(manifest, {"types": list[TypeEntry], "relations": list[RelationEntry]})
        typed.refuse_as_folders()
        for of, names in (("types", OF_VERTICES), ("relations", OF_EDGES)):
            for entry in manifest[of]:
                for name in (*names, CATEGORIES):
                    if name in entry:
                        _CHECKS[name](f"{of}: {entry['name']}: {name}", entry[name])
    except FastpartError:
        raise
    except KeyError as error:
        raise ParameterError(f"types, relations: {error} is missing") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise ParameterError(f"types, relations: {error}") from None
    return typed


def _an(expected: type, text: str) -> Check:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, expected):
            raise TypeError(f"{name}: expected {text}, got {type(value).__name__}")

    return check


def _names(name: str, value: Any) -> None:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise TypeError(f"{name}: expected a list of names")


def _splits(name: str, value: Any) -> None:
    _names(name, value)
    if not set(value) <= set(SPLITS) or len(set(value)) < len(value):
        raise ParameterError(f"{name}: expected some of {', '.join(SPLITS)}, each once")


def _counts(name: str, value: Any) -> None:
    _an(dict, "an object")(name, value)
    for split, count in value.items():
        integer(f"{name}: {split}", count, 0, 2**63 - 1)


def _listed(name: str, value: Any) -> None:
    conform({name: value}, {name: dict[PathBelow, Companion]})


def _categories(name: str, value: Any) -> None:
    conform({name: value}, {name: dict[str, EmbeddedColumn]})
    embedded_in(value, name)


CATEGORIES = "categories"
"""The entry that describes the columns of features with codes of categories."""

_CHECKS: dict[str, Check] = {
    CATEGORIES: _categories,
    "directedness": lambda name, value: choice(name, value, ("undirected", "symmetric", "directed")),
    "features": coded_type,
    "halo_features": coded_type,
    "edge_features": coded_type,
    "edge_times": row_type,
    "labels": row_type,
    "times": row_type,
    EDGE_LABELS: row_type,
    "splits": _splits,
    EDGE_LABEL_SPLITS: _splits,
    "ids": _names,
    "edge_splits": _counts,
    "held_out_from": lambda name, value: integer(name, value, -(2**63), 2**63 - 1),
    "summary": _an(dict, "an object"),
    "input": _an(dict, "an object"),
    "changed_parts": _an(list, "a list"),
    "files": _listed,
}


def manifest_bytes(manifest: Mapping[str, Any]) -> bytes:
    """Return the bytes of a manifest. A file takes one line of them."""
    told = {name: value for name, value in manifest.items() if name not in ("files", OWN)}
    text = as_json(told, indent=1).decode().removesuffix("\n}\n")
    if "files" not in manifest:
        return f"{text}\n}}\n".encode()
    lines = (f"  {json.dumps(name)}: {json.dumps(facts)}" for name, facts in manifest["files"].items())
    text += ',\n "files": {\n' + ",\n".join(lines) + "\n }\n}\n"
    return with_checksum(text.encode(), OWN)


def as_json(content: dict[str, Any], indent: int | None = None) -> bytes:
    """Return the bytes of a JSON file."""
    return (json.dumps(content, indent=indent, default=_plain) + "\n").encode()


def _plain(value: Any) -> Any:
    """Convert numpy's numbers and arrays to Python's."""
    return value.tolist()


def replaced_files(target: Path, holds: Iterable[str] | None = None) -> list[str]:
    """Return the files of a partition directory that a new one replaces. Refuse a target that holds anything else.

    ``holds`` is what the new one is going to hold. By default any partition directory may be replaced.
    """
    return replaceable(target, MANIFEST, EARLIER, "a partition directory", holds or (), holds is None)


def own_files(folder: Path) -> list[str]:
    """Return the files of a partition directory that are fastpart's and there, without the manifest."""
    known = set(owned(folder, MANIFEST, EARLIER)) - {MANIFEST}
    return [name for name in below(folder) if name in known]


class Listing:
    """Size and checksum of the files of a directory, taken soon after they are written, while they are in memory."""

    def __init__(self, folder: Path, options: RunOptions) -> None:
        self._folder, self._options = folder, options
        self._known: Files = {}

    def add(self, names: Iterable[str] | None = None) -> None:
        """Take in files. Default: all that are not known yet."""
        new = [name for name in (below(self._folder) if names is None else names) if name not in self._known]
        root = self._folder.resolve()
        hashes = _core.hash_files([inside(root, name) for name in new], self._options)
        self.know(dict(zip(new, hashes, strict=True)))

    def know(self, found: Mapping[str, tuple[int, str]]) -> None:
        """Take in files whose size and checksum the writer took."""
        self._known |= {name: facts_of(*each) for name, each in found.items()}

    @property
    def files(self) -> Files:
        """The entry ``files`` of the manifest."""
        return dict(sorted(self._known.items()))


def facts_of(size: int, xxh3: str) -> dict[str, Any]:
    """Return the entry of a file."""
    return {"size": size, "xxh3": xxh3}


FILES = {
    "parts": ("vertices.npy", "root.npy"),
    "labels": ("labels.npy",),
    "splits": ("train.npy", "val.npy", "test.npy"),
    "edge splits": ("edge_train.npy", "edge_val.npy", "edge_test.npy"),
}
"""Files of a part that can be read to tell whether they changed, if the directory does not list their checksums."""

_EDGE_LABEL_FILES = {"labels of edges": (f"{EDGE_LABELS}.npy", *(f"{mask}.npy" for mask in EDGE_MASKS))}
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
    return FILES | (_EDGE_LABEL_FILES if labelled else {})


def checksums_of(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return a hash of the listed checksums of what a training reads. Nothing if the directory has no list."""
    files = manifest.get("files")
    return (
        {what: digest(_listed_sums(files, names)) for what, names in (files_of(manifest) | ROWS).items()}
        if files
        else {}
    )


def digest(facts: Mapping[str, Any]) -> str:
    """Return a hash of facts, as JSON has them."""
    return hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=16).hexdigest()


def _listed_sums(files: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    wanted = set(names)
    return {
        file: [known["size"], known["xxh3"]] for file, known in files.items() if Path(file).name in wanted
    }
