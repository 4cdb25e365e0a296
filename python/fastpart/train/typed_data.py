"""A partition directory of a typed graph as training data."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.parameters import shown
from ..errors import ParameterError, arg, code
from ..partitions.part_rows import TypeData
from ..partitions.partition import PartitionSource, directory_of
from ..partitions.parts import VertexPartData
from ..partitions.types import edge_keys, relation_fanouts, type_names, types_with
from ..store import open_partition
from .data import Dataset, saving, width_of
from .options import Options
from .scores import Task, TypedTask


class TypedDataset(Dataset):
    """A partition of the vertices of a typed graph to train on. One type of them, the target, has labels.

    Attributes
    ----------
    target : str
        The type of the vertices with labels.
    """

    target: str
    task: TypedTask

    @property
    def targets(self) -> range:
        """The vertices of the target."""
        return self.partition.parts[0].of_type(self.target).type.range

    @property
    def known(self) -> Mapping[str, Any]:
        """What the manifest says of the target."""
        return self._entry(self.target)

    def _entry(self, name: str) -> Mapping[str, Any]:
        entry: Mapping[str, Any] = self.manifest["types"][type_names(self.partition).index(name)]
        return entry

    def _take_target(self, target: str | None) -> None:
        names = type_names(self.partition)
        if target is not None and target not in names:
            raise ParameterError(f"target: {target!r} is none of the types {', '.join(names)}")
        if target is None:
            found = [name for name in types_with("train", self.partition) if "labels" in self._entry(name)]
            if len(found) > 1:
                raise ParameterError(
                    f"target: {', '.join(found)} have labels and training vertices. Name one of them with "
                    + arg("target")
                )
            if not found:
                given = " and ".join(f"{name}={{{names[0]!r}: ...}}" for name in ("labels", "splits"))
                by_schema = "labels and splits of a type, which the schema of `fastpart ingest` names"
                raise ParameterError(
                    f"source: no type in {shown(self.path)} has labels and training vertices. Save the partition with "
                    + code(given, by_schema)
                )
            target = found[0]
        self.target = target

    def _refuse_incomplete(self) -> None:
        self.partition.refuse_without_edges("source")
        missing = [] if "labels" in self.known else ["labels"]
        if "train" not in self.known.get("splits", []):
            missing.append("splits")
        if missing:
            raise ParameterError(
                f"source: {shown(self.path)} holds no {', no '.join(missing)} of {self.target!r}. Save the partition "
                f"with {saving(missing, self.target)}"
            )

    def _task(self) -> Task:
        part = self.partition.parts[0]
        rows = {name: part.of_type(name).row_type("features") for name in type_names(self.partition)}
        widths = {name: 0 if row is None else width_of(row[1]) for name, row in rows.items()}
        of_edges = {
            each.name: part.of_relation(each.name).row_type("edge_features") for each in part.edge_types or ()
        }
        return TypedTask(
            widths[self.target],
            **self._outputs(),
            types=tuple(widths),
            edge_types=tuple(edge_keys(self.partition)),
            widths=widths,
            edge_widths={name: width_of(row[1]) for name, row in of_edges.items() if row is not None},
            returned=(self.target,),
        )

    def labelled(self, part: VertexPartData) -> TypeData:
        """Return the rows of the target in a part."""
        return part.of_type(self.target)

    def own(self, part: VertexPartData) -> npt.NDArray[np.bool_]:
        """Return a mask of all inner vertices of the target."""
        return np.ones(part.of_type(self.target).num_inner, bool)

    @cached_property
    def row_bytes(self) -> int:
        """Bytes of the widest row of features of a vertex in a batch, decoded."""
        rows = [self.partition.parts[0].of_type(name).row_type("features") for name in self.task.types]
        sizes = (int(row[0].itemsize * np.prod(row[1], dtype=np.int64)) for row in rows if row is not None)
        return max(sizes, default=0)

    @property
    def rows_learned(self) -> int:
        """Vertices of the types whose rows are learned."""
        return sum(each.n for each in self.partition.parts[0].types or () if each.name in self.task.learned)

    def fanouts(self, options: Options) -> list[list[int]]:
        """Return the fanout of each relation in each hop, hop by hop."""
        return relation_fanouts(options.relation_fanouts or options.fanouts, self.task.edge_types)

    def bounds(self, options: Options) -> tuple[int, ...]:
        """Return the most in-edges that a vertex of any type has in each hop of a batch. -1 is all."""
        return bounds_of(options, self.task)


def bounds_of(options: Options, task: TypedTask) -> tuple[int, ...]:
    """Return the most in-edges that a vertex of any type of a task has in each hop of a batch. -1 is all."""
    targets = [key[2] for key in task.edge_types]
    bounds = []
    for of_hop in relation_fanouts(options.relation_fanouts or options.fanouts, task.edge_types):
        if -1 in of_hop:
            bounds.append(-1)
            continue
        sums = dict.fromkeys(task.types, 0)
        for name, fanout in zip(targets, of_hop, strict=True):
            sums[name] += fanout
        bounds.append(max(sums.values()))
    return tuple(bounds)


def dataset_of(source: PartitionSource, target: str | None = None) -> Dataset:
    """Return a partition of the vertices of a graph, with or without types, to train on."""
    partition = open_partition(directory_of(source))
    typed = partition.of == "vertices" and "types" in (partition.manifest or {})
    return (TypedDataset if typed else Dataset)(source, target)
