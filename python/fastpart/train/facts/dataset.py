"""A partition directory with edge splits as facts: pairs with their relations."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.parameters import shown
from ...errors import ParameterError, code
from ...graphs.types import TypedRanges
from ...loading.links import edges_of
from ...partitions.part_rows import typed_of
from ...partitions.types import type_names
from ..data import task_over_types
from ..link_prediction.dataset import LinkDataset
from ..options import Options
from ..scores import Task

Ids = npt.NDArray[np.int64]

ENDS = ("source", "target")


class FactDataset(LinkDataset):
    """A partition of the vertices with edge splits, of a graph with types or without.

    A graph without types counts as one of a single relation. The ``classes`` of the ``task`` are the relations.
    """

    @cached_property
    def typed(self) -> TypedRanges | None:
        """The types and relations. None: there are none."""
        return typed_of(self.manifest)

    @property
    def num_relations(self) -> int:
        """Number of relations."""
        return 1 if self.typed is None else len(self.typed.relations)

    def relation(self, name: str | None) -> int:
        """Return the number of a relation. None is the only one of a graph without types."""
        names: list[Any] = [None] if self.typed is None else self.typed.names
        if name not in names:
            known = "none" if self.typed is None else ", ".join(self.typed.names[:10])
            raise ParameterError(
                f"relation: {name!r} is no relation of {shown(self.path)}. There are {known}"
            )
        return names.index(name)

    def ends(self, end: int) -> Ids:
        """Return the first vertex, and that behind the last, of the type of an end of each relation.

        Ends are those of :data:`ENDS`. The shape is (relations, 2).
        """
        if self.typed is None:
            return np.array([[0, len(self.partition)]])
        return self.typed.ranges_of(ENDS[end])

    def facts(self, split: str) -> Ids:
        """Return source, target and relation of each pair of a split, ordered by target, source and relation."""
        if split not in self.manifest["edge_splits"]:
            return np.empty((0, 3), np.int64)
        pairs = edges_of(split, self.partition)
        if self.typed is None:
            return np.column_stack([pairs, np.zeros(len(pairs), np.int64)])
        return np.ascontiguousarray(pairs[np.lexsort((pairs[:, 2], pairs[:, 0], pairs[:, 1]))])

    def true_facts(self) -> Ids:
        """Return all facts that are true: those of all splits, both ways where a relation has no direction."""
        facts = np.concatenate([self.facts(split) for split in ("train", "val", "test")])
        if self.typed is None:
            undirected = np.array([self.manifest["directedness"] != "directed"])
        else:
            undirected = np.array([each.reverse == "merged" for each in self.typed.relations])
        back = facts[undirected[facts[:, 2]]][:, [1, 0, 2]]
        return np.concatenate([facts, back])

    def _take_target(self, target: str | None) -> None:
        """Take graphs with types and without."""

    def _task(self) -> Task:
        return Task(0, self.num_relations, multilabel=False)

    def task_of(self, width: int, options: Options, encoded: bool) -> Task:
        """Return what networks are made for: rows of a width that are learned, or a typed graph to encode.

        The ``classes`` of a typed one are the width of the rows that the encoder returns.
        """
        if not encoded:
            return Task(width, self.num_relations, multilabel=False)
        if self.typed is None:
            raise ParameterError(
                "encoder: the graph has no types. Train an encoder over it with "
                + code("fastpart.train.links", "`fastpart train links`")
            )
        ends = {name for each in self.typed.relations for name in (each.source, each.target)}
        returned = tuple(name for name in type_names(self.partition) if name in ends)
        return task_over_types(self.partition, returned, classes=options.hidden, multilabel=False)
