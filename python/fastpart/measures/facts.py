"""The facts of a graph and of a partition directory, as tables."""

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

RATES = {"cached": None, "2 GB/s": 2e9, "0.5 GB/s": 0.5e9, "0.2 GB/s": 0.2e9}
"""Bytes per second of the disks that durations are predicted for. None: the page cache holds all files."""

_GRAPH_COLUMNS = 4
"""Columns of features that a line names."""


class GraphFacts(Facts):
    """What a graph is and what partitions of it would cost, from :func:`fastpart.info`.

    It is a dict, which prints as tables.
    """

    def _tables(self) -> list[Table]:
        there = self.get("cluster")
        return [
            self._sizes(),
            *types_and_relations(self),
            *self._features(),
            self._degrees(),
            self._memory(),
            self._plans(),
            *([_on_cluster(there, self["plans"][0])] if there else []),
        ]

    def _sizes(self) -> Table:
        weights = self.get("weights")
        rows = [
            ("vertices", f"{self['n']:,}, of which {self['isolated']:,} isolated"),
            ("edges", f"{self['m']:,}, of which {self['loops']:,} loops"),
            ("directedness", self["directedness"]),
            ("mean degree", f"{self['mean_degree']:,.1f}"),
        ]
        if weights:
            rows += [("weights", f"{weights['min']:g} to {weights['max']:g}, sum {weights['sum']:,g}")]
        return listed([*rows, ("checksum", self["checksum"])])

    def _features(self) -> list[Table]:
        rows = [
            (name_of(each["name"]), f"{each['width']:,}", each["dtype"], _columns(each["columns"]))
            for each in self.get("features", [])
        ]
        return (
            [Table("", ("features of", "width", "type", "columns"), shortened(rows), (0, 2, 3))]
            if rows
            else []
        )

    def _degrees(self) -> Table:
        degrees = self["degrees"]
        return Table("degrees by quantile", [*degrees], [[f"{value:,}" for value in degrees.values()]], ())

    def _memory(self) -> Table:
        needed = [(name, sized(value)) for name, value in self["memory"].items()]
        return side_by_side(f"memory, k = {self['k']:,}", ("algorithm", "memory"), needed, 3)

    def _plans(self) -> Table:
        disks = [name for name, rate in RATES.items() if rate]
        columns = ["memory from", "path", "sample", "files", "cached", *disks]
        rows = [
            [
                sized(plan["memory"]),
                plan["path"],
                f"{plan['sample'] or '-'}",
                sized(plan["files"]) if plan["files"] else "-",
                *(seconds(value) for value in plan["seconds"].values()),
            ]
            for plan in self["plans"]
        ]
        title = f"multilevel by memory limit, k = {self['k']:,}; seconds with files cached or on a disk"
        return Table(title, columns, rows, (1,))


def _columns(columns: list[dict[str, Any]]) -> str:
    """Return the columns of a table that features are made of, and the width of each, as a cell."""
    wide = [
        f"{name_of(each['column'])} {each['width']:,}" + (f" ({each['as']})" if "as" in each else "")
        for each in columns[:_GRAPH_COLUMNS]
    ]
    return ", ".join(wide) + (
        f", {len(columns) - _GRAPH_COLUMNS:,} more" if len(columns) > _GRAPH_COLUMNS else ""
    )


def types_and_relations(content: dict[str, Any]) -> list[Table]:
    """Return tables of the types and relations of a graph, or none if it has none."""
    if "types" not in content:
        return []
    types = [(name_of(each["name"]), f"{each['n']:,}") for each in content["types"]]
    relations = [
        (*(name_of(each[name]) for name in ("name", "source", "target")), f"{each['m']:,}")
        for each in content["relations"]
    ]
    return [
        Table("", ("type", "vertices"), shortened(types)),
        Table("", ("relation", "from", "to", "edges"), shortened(relations), (0, 1, 2)),
    ]


def _on_cluster(there: dict[str, Any], least: dict[str, Any]) -> Table:
    """Return what ``multilevel`` takes on a cluster, and whether one machine is enough."""
    received = there["messages"] * (there["machines"] - 1) // there["machines"]
    if plan := there["one_machine"]:
        files = f" and {sized(plan['files'])} of files" if plan["files"] else ""
        enough = f"enough with path {plan['path']}: {sized(plan['memory'])} of memory{files}"
    else:
        enough = f"too small, {sized(least['memory'])} of memory are enough"
    rows = [
        ("memory", f"{sized(there['memory'])} on each machine"),
        ("shared folder", f"{sized(there['shared'])} at most"),
        ("messages", f"{sized(there['messages'])}, each machine receives {sized(received)}"),
        ("this machine", enough),
    ]
    return listed(rows, f"multilevel on a cluster, machines: {there['machines']}, sample: {there['sample']}")


def seconds(value: float) -> str:
    """Return a prediction of seconds."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


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
