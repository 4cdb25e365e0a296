"""A partition directory with edge splits as facts: pairs with their relations."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.parameters import shown
from ...errors import ParameterError
from ...graphs.types import TypedRanges
from ...loading.links import edges_of
from ...partitions.typed_parts import typed_of
from ..link_prediction.dataset import LinkDataset
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
