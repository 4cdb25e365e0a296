"""The facts of a partition directory: what it holds, how it was made and measured, and what a training would take."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any, Self

from ..core.folders import below
from ..core.inputs import EDGE_LABEL_SPLITS, EDGE_LABELS
from ..core.parameters import StrPath, one_line, sized
from ..core.protocols import Facts, Table, listed, name_of, shortened, side_by_side
from ..partitions.part_files import MANIFEST
from ..partitions.partition import Partition, read_partition
from ..partitions.parts import part_name

_COLUMNS = ("features", "labels", "splits", "times")
_ROWS = [(name, name) for name in _COLUMNS]
_LABEL_SPLITS = "label_splits"
_EDGE_ROWS = [
    ("features", "edge_features"),
    ("labels", EDGE_LABELS),
    (_LABEL_SPLITS, EDGE_LABEL_SPLITS),
    ("times", "times"),
]
"""What rows are called here, and in the entry of a type or relation of a manifest."""

_LETTERS = 24
"""Most letters of the value of a parameter that are shown."""


class PartitionFacts(Facts):
    """The content of a partition directory, from :func:`fastpart.info`. It is a dict, which prints as tables."""

    def _tables(self) -> list[Table]:
        shown = [self._made(), self._parameters(), *self._stored(), *self._parts()]
        return [*shown, *([self._measures()] if self["summary"] else [])]  # the summary comes last

    def _made(self) -> Table:
        loops = "" if self["loops"] is None else f", of which {self['loops']:,} loops"
        numbers = {"vertices": self["n"], "edges": self["m"]}
        rows = [(name, f"{value:,}") for name, value in numbers.items() if value is not None]
        rows = [(name, value + (loops if name == "edges" else "")) for name, value in rows]
        named = {"graph": self["input"], "directedness": self["directedness"], "checksum": self["checksum"]}
        rows += [(name, one_line(value, 60)) for name, value in named.items() if value is not None]
        return listed(
            [
                (
                    "partition",
                    f"{self['k']:,} parts of {self['of']} by {one_line(self['algorithm'] or 'another program', 40)}",
                ),
                *rows,
                *(
                    []
                    if self["halo_hops"] is None
                    else [("halo", f"{self['halo_hops']} hop{'s' * (self['halo_hops'] != 1)}")]
                ),
                ("size", f"{sized(self['bytes'])} in {self['files']:,} files"),
                ("written by", f"fastpart {one_line(self['fastpart'], 20)}, schema {self['schema']}"),
            ]
        )

    def _parameters(self) -> Table:
        given = {
            name: value for name, value in self["parameters"].items() if value is not None and name != "k"
        }
        rows = [(name_of(name), _in_words(value)) for name, value in given.items()]
        return side_by_side("", ("parameter", "value"), rows, 2)

    def _stored(self) -> list[Table]:
        rows = [
            (
                name_of(name, 16),
                f"{each['count']:,}",
                *(_of_rows(cells[key]) if key in cells else "-" for key in _COLUMNS),
            )
            for name, each in self["data"].items()
            for cells in [{"splits": each[_LABEL_SPLITS], **each} if _LABEL_SPLITS in each else each]
        ]
        return [Table("", ("data of", "number", *_COLUMNS), shortened(rows), (0, 2, 3, 4, 5))] if rows else []

    def _parts(self) -> list[Table]:
        if not self["parts"]:
            return []
        names = [name for name in self["parts"][0] if name != "bytes"]
        rows = [(*(f"{part[name]:,}" for name in names), sized(part["bytes"])) for part in self["parts"]]
        return [Table("", (*names, "size"), shortened(rows), ())]

    def _measures(self) -> Table:
        measures = {
            name: value
            for name, value in self["summary"].items()
            if name not in ("of", "algorithm", "k", "n", "m", "loops")
        }
        rows = [
            (one_line(name, 30), _in_words(value)) for name, value in measures.items() if value is not None
        ]
        return side_by_side("", ("measure", "value"), rows, 2)


class TrainingFacts(Facts):
    """The rows and the memory that a training would take, from :func:`fastpart.info`. It is a dict."""

    _text: str

    @classmethod
    def of(cls, facts: Mapping[str, Any], text: str) -> Self:
        """Return the facts, which print as the text."""
        made = cls(facts)
        made._text = text
        return made

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self._text)}</pre>"


def is_partition_directory(source: object) -> bool:
    """Return whether this is the path of a partition directory."""
    return isinstance(source, str | bytes | os.PathLike) and Path(os.fsdecode(source), MANIFEST).is_file()


def partition_facts(source: StrPath) -> PartitionFacts:
    """Return what the manifest of a partition directory says, and the sizes of its parts."""
    partition = read_partition(source)
    manifest: Mapping[str, Any] = partition.manifest or {}
    folder = partition.folder or Path()
    sizes = {name: (folder / name).stat().st_size for name in below(folder)}
    known = {"n": partition.num_vertices, "m": partition.num_edges, "loops": partition.loops}
    told = {name: manifest.get(name) for name in ("directedness", "halo_hops", "fastpart", "schema")}
    return PartitionFacts(
        {
            "of": partition.of,
            "k": partition.k,
            "algorithm": partition.algorithm,
            "parameters": partition.parameters or {},
            **known,
            "checksum": partition.checksum,
            **told,
            "input": manifest.get("input", {}).get("path"),
            "bytes": sum(sizes.values()),
            "files": len(sizes),
            "data": _data(manifest),
            "parts": _parts(partition, sizes) if told["directedness"] is not None else [],
            "summary": manifest.get("summary", {}),
        }
    )


def _parts(partition: Partition, sizes: Mapping[str, int]) -> list[dict[str, int]]:
    """Return the sizes of each part."""
    of_part: dict[str, int] = {}
    for name, size in sizes.items():
        part = name.partition("/")[0]
        of_part[part] = of_part.get(part, 0) + size
    return [
        {
            "part": part.index,
            "vertices": part.num_inner,
            **({"halo": part.num_halo} if partition.of == "vertices" else {}),
            "edges": part.num_edges,
            "bytes": of_part.get(part_name(part.index), 0),
        }
        for part in partition.parts
    ]


def _data(manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what is stored of vertices and edges, or of each type and relation."""
    if "directedness" not in manifest:
        return {}
    types = manifest.get("types", [{**manifest, "name": "vertices"}])
    edges = {**manifest, "name": "edges", "times": manifest.get("edge_times")}
    found = {each["name"]: {"count": each["n"], **_described(each, _ROWS)} for each in types}
    for each in manifest.get("relations", [edges]):
        found[each["name"]] = {"count": each["m"], **_described(each, _EDGE_ROWS)}
    if (splits := manifest.get("edge_splits")) is not None:  # of all relations together
        found.setdefault("edges", {"count": manifest["m"]})["splits"] = splits
    return found


def _described(entries: Mapping[str, Any], names: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the entries of rows, by what they are called here."""
    return {called: entries[name] for called, name in names if entries.get(name) is not None}


def _of_rows(described: Any) -> str:
    """Return type and shape of rows, or the names of splits, as a cell."""
    if not isinstance(described, Mapping) or "dtype" not in described:
        return ", ".join(described)
    return " x ".join(map(str, (described["dtype"], *described.get("shape", ()))))


def _in_words(value: Any) -> str:
    """Return a parameter or a measure as a cell."""
    if isinstance(value, float):
        return f"{value:g}" if value == round(value, 4) else f"{value:.4f}"
    if isinstance(value, Mapping):
        value = value.get("algorithm", ", ".join(f"{key}={item}" for key, item in value.items()))
    return (
        f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else one_line(value, _LETTERS)
    )
