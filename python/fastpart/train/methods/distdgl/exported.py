"""The partition in DGL's format, from an earlier export or exported for a run."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from .... import _core, export
from ....core.folders import within
from ....core.options import RunOptions
from ....core.parameters import shown
from ....core.parsing import Count, PathBelow, checked_object, json_object
from ....errors import GraphFormatError, MemoryBudgetError, ParameterError, arg
from ....partitions.partition import PartitionSource, directory_of
from ....runtime.launch import SHARED_MEMORY
from ...data.dataset import Dataset
from ...memory import PROCESS_BYTES, SMALLER, BatchSize, Need
from ...options import Options
from ...runs.identity import data_of

_PER_VERTEX = 8
"""Bytes of the in-degrees, which training adds."""

_SLACK = 32 << 20
"""Bytes of a part beside its files: the partition book and the output of samplers."""


_REMEDY = "It is not an export to DGL by fastpart. Pass the partition directory instead"


class _Vertices(msgspec.Struct):
    ranges: list[tuple[Count, Count]] = msgspec.field(name="_N")


class _Edges(msgspec.Struct):
    ranges: list[tuple[Count, Count]] = msgspec.field(name="_N:_E:_N")


_FIELDS = {
    "fastpart": str,
    "graph_name": str,
    "num_parts": Annotated[int, msgspec.Meta(ge=1, le=_core.MAX_PARTS)],
    "node_map": _Vertices,
    "edge_map": _Edges,
}
"""The fields of the JSON file of an export. Those of its parts follow from their number."""


@dataclass(frozen=True)
class Export:
    """An export to DGL.

    Attributes
    ----------
    config : pathlib.Path
        The JSON file that lists its parts.
    name : str
        DGL's name of the graph.
    files : list of list of pathlib.Path
        Files of each part. A machine needs only those of its own part.
    vertices : list of int
        Number of vertices of each part.
    empty : list of int
        Parts without a vertex or without an edge.
    identity : dict
        Identifies the graph in checkpoints.
    """

    config: Path
    name: str
    files: list[list[Path]]
    vertices: list[int]
    empty: list[int]
    identity: dict[str, Any]

    @classmethod
    def of(cls, source: PartitionSource, folder: Path, run: RunOptions) -> Export:
        """Export a partition directory into ``folder``, or read the JSON file of an earlier export."""
        path = directory_of(source)
        if path.suffix == ".json" and path.is_file():
            return cls._read(path, {})
        dataset = Dataset(path)
        dataset.refuse_types()
        dataset.refuse_categories("DGL's graph does not know them")
        config = export.dgl(path, folder / "dgl", **vars(run))
        return cls._read(config, data_of(dataset.path, dataset.manifest))

    @classmethod
    def _read(cls, path: Path, identity: dict[str, Any]) -> Export:
        content = json_object(path, None, _FIELDS, _REMEDY)
        name, parts = content["graph_name"], content["num_parts"]
        vertices, edges = content["node_map"]["_N"], content["edge_map"]["_N:_E:_N"]
        if not len(vertices) == len(edges) == parts or any(a > b for a, b in (*vertices, *edges)):
            raise GraphFormatError(f"{shown(path)}: not the vertices and edges of {parts} parts. {_REMEDY}")
        listed = [f"part-{i}" for i in range(parts)]
        checked_object(path, content, dict.fromkeys(listed, dict[str, PathBelow]), _REMEDY)
        where = f"export {shown(path)}"
        files = [[within(path.parent, file, where) for file in content[each].values()] for each in listed]
        if vertices[-1][1] < parts:
            raise ParameterError(
                f"source: DGL cannot train over more parts than vertices, but there are {vertices[-1][1]} vertices in "
                f"{parts} parts"
            )
        empty = [
            i for i, ranges in enumerate(zip(vertices, edges, strict=True)) if any(a == b for a, b in ranges)
        ]
        counts = [end - first for first, end in vertices]
        return cls(path.absolute(), name, files, counts, empty, identity or {"graph": {"n": vertices[-1][1]}})

    @property
    def parts(self) -> int:
        """Number of parts."""
        return len(self.files)

    def size(self, part: int) -> int:
        """Return the bytes of a part in shared memory."""
        for file in self.files[part]:
            if not file.is_file():
                raise FileNotFoundError(
                    errno.ENOENT, "a file of the export is missing. Export again", str(file)
                )
        return sum(file.stat().st_size for file in self.files[part]) + _PER_VERTEX * self.vertices[part]

    def refuse_empty_parts(self) -> None:
        """Refuse parts that DGL cannot share between machines."""
        if self.empty:
            raise ParameterError(
                f"source: part {self.empty[0]} has no vertices or no edges, so DGL cannot load it on its own machine. "
                "Partition into fewer parts"
            )

    def needs(self, parts: Sequence[int], trainers: int, samplers: int, options: Options) -> list[Need]:
        """Return what the processes of some parts take: DGL's servers hold the parts in shared memory."""
        largest = max(map(self.size, parts)) + _SLACK
        vertices = max(self.vertices)
        of_all = options.batch_size or vertices * len(self.vertices) * trainers
        seeds = min(-(-of_all // (len(self.vertices) * trainers)), vertices)
        bytes_of_row = max(1, max(map(self.size, parts)) // max(vertices, 1))
        batch = BatchSize.sampled(seeds, options.fanouts, sum(self.vertices), 1 << 62).rows * bytes_of_row
        count = len(parts) * trainers
        return [
            Need("a part in /dev/shm", largest, "more machines", len(parts)),
            Need("a server", PROCESS_BYTES, "more machines", len(parts)),
            Need("a trainer", PROCESS_BYTES, f"fewer {arg('trainers_per_part')}", count),
            Need("a sampler", PROCESS_BYTES, f"fewer {arg('samplers')}", count * samplers),
            Need("two batches", 2 * batch, SMALLER, count),
        ]

    def refuse_small_memory(self, parts: Sequence[int]) -> None:
        """Refuse parts that do not fit into shared memory. DGL would crash without a message."""
        needed = sum(self.size(part) + _SLACK for part in parts)
        status = os.statvfs(SHARED_MEMORY)
        free = status.f_bavail * status.f_frsize
        if needed > free:
            raise MemoryBudgetError(
                f"distdgl needs {needed:,} bytes in {SHARED_MEMORY} for {len(parts)} parts, {free:,} are free. Enlarge "
                f"it (mount -o remount,size=... {SHARED_MEMORY}, or docker run --shm-size=...), or use more machines"
            )
