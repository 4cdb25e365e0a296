"""The facts of a graph as tables."""

from __future__ import annotations

from typing import Any

from ..core.parameters import sized
from ..core.protocols import Facts, Table, listed, name_of, shortened, side_by_side

RATES = {"cached": None, "2 GB/s": 2e9, "0.5 GB/s": 0.5e9, "0.2 GB/s": 0.2e9}
"""Bytes per second of the disks that durations are predicted for. None: the page cache holds all files."""

_COLUMNS = 4
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
        for each in columns[:_COLUMNS]
    ]
    return ", ".join(wide) + (f", {len(columns) - _COLUMNS:,} more" if len(columns) > _COLUMNS else "")


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
