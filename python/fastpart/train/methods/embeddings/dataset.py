"""A partition directory with edge splits as facts: pairs with their relations."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ....errors import ParameterError, code
from ....partitions.types import edge_keys
from ...models.scores import Task
from ...options import Options
from ..links.dataset import ENDS, LinkDataset

Ids = npt.NDArray[np.int64]


class FactDataset(LinkDataset):
    """A partition of the vertices with edge splits, of a graph with types or without.

    A graph without types counts as one of a single relation. The ``classes`` of the ``task`` are the relations.
    """

    def ends(self, end: int) -> Ids:
        """Return the first vertex, and that behind the last, of the type of an end of each relation.

        Ends are those of :data:`ENDS`. The shape is (relations, 2).
        """
        if self.typed is None:
            return np.array([[0, len(self.partition)]])
        return self.typed.ranges_of(ENDS[end])

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
        return self.task_of_ends(edge_keys(self.partition), classes=options.hidden, multilabel=False)
