"""The classification task and its scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import msgspec
import torch
import torch.nn.functional as F
from torch import Tensor

from ...graphs.graph_directory import Embedded, EmbeddedColumn
from ...partitions.types import ONLY_TYPE, EdgeKey, relation_fanouts

TALLY = 4
"""Numbers of :meth:`Task.tally`."""


@dataclass(frozen=True)
class Task:
    """Classification of vertices, with one class per vertex or several (``multilabel``), or regression.

    Attributes
    ----------
    features, classes : int
        Width of the features, and number of classes, or width of the targets of a regression.
    multilabel : bool
        Whether labels are float32 rows of zeros and ones rather than one int64 each.
    regression : bool
        Whether labels are float32 rows of targets.
    edge_features : int
        Width of the features of edges, 0 without any, or if the method does not hand them over.
    categories : mapping
        By type, the columns of its features that hold codes of categories. A network has learned rows in their place.
    """

    features: int
    classes: int
    multilabel: bool
    regression: bool = False
    edge_features: int = 0
    categories: Mapping[str, Embedded] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """The type with the labels. A graph without types has one, whose name is empty."""
        return ONLY_TYPE

    @property
    def num_relations(self) -> int:
        """Number of relations."""
        return 1

    @property
    def learned(self) -> tuple[str, ...]:
        """The types whose rows are learned."""
        return ()

    def input_widths(self, hidden: int) -> dict[str, int]:
        """Return the width of the rows that a network gets of each type, given that of its hidden layers."""
        return {ONLY_TYPE: self.features}

    @property
    def embedded(self) -> Self:
        """The task of the layers, which get learned rows of categories in place of codes."""
        if not self.categories:
            return self
        return replace(self, features=self.features + self._wider(self.target), categories={})

    def _wider(self, name: str) -> int:
        """Return by how many numbers learned rows of categories are wider than the codes of a type."""
        return sum(each.dim - 1 for each in self.categories.get(name, {}).values())

    def stored(self) -> dict[str, Any]:
        """Return the values as JSON has them."""
        values = {name: value for name, value in vars(self).items() if name != "categories"}
        return values | ({"categories": msgspec.to_builtins(self.categories)} if self.categories else {})

    def most_in_edges(self, fanouts: Any) -> tuple[int, ...]:
        """Return the most in-edges that a vertex of any type has in each hop of a batch. -1 is all."""
        return tuple(fanouts)

    def types_by_layer(self, layers: int) -> list[tuple[str, ...]]:
        """Return the types whose rows each layer reads, and those that the last one returns."""
        return [(ONLY_TYPE,)] * (layers + 1)

    @property
    def scores(self) -> tuple[str, str]:
        """The names of its scores."""
        return ("rmse", "mae") if self.regression else ("accuracy", "f1")

    def targets(self, labels: Tensor) -> Tensor:
        """Return labels of a directory as losses take them."""
        if self.regression:
            return labels.float().view(len(labels), self.classes)
        return labels.float() if self.multilabel else labels

    def example(self) -> tuple[Tensor, Tensor]:
        """Return logits and labels of two vertices."""
        logits = torch.zeros(2, self.classes)
        rows = self.multilabel or self.regression
        return logits, torch.zeros_like(logits) if rows else torch.zeros(2, dtype=torch.int64)

    def defined(self, outputs: Tensor) -> Tensor:
        """Return which rows of outputs say something: those of which a prediction and its probability follow.

        A class may have a logit of minus infinity, as of a model that rules it out.
        """
        return outputs.isfinite().all(1) if self.regression else outputs.amax(1).isfinite()

    def losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each vertex: cross entropy, in multi-label tasks the mean over the classes.

        In a regression it is the square of the error, the mean over the targets of a vertex.
        """
        if self.regression:
            return (logits - labels).square().mean(1)
        if self.multilabel:
            return F.binary_cross_entropy_with_logits(logits, labels, reduction="none").mean(1)
        return F.cross_entropy(logits, labels, reduction="none")

    def tally(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return float64 counts for :func:`score`. They can be added up over batches and processes.

        These are the correct vertices, all vertices, true positives, and false positives and negatives together. In a
        multi-label task a vertex is correct only if all its labels are. Of a regression they are the sum of the squares
        of the errors, all vertices, the sum of the errors, and 0. All but the number of vertices are NaN if the outputs
        of one are not :meth:`defined`.
        """
        counts = self._counts(logits, labels)
        if not self.defined(logits).all():
            counts[[0, 2, 3]] = torch.nan
        return counts

    def _counts(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the counts of :meth:`tally`, of outputs that are defined."""
        if self.regression:
            errors = (logits - labels).double()
            squares, absolute = errors.square().mean(1).sum(), errors.abs().mean(1).sum()
            return torch.stack(
                [squares, squares.new_tensor(len(labels)), absolute, torch.zeros_like(squares)]
            )
        if self.multilabel:
            predicted, true = logits > 0, labels > 0.5
            right = (predicted == true).all(1).sum()
            counts = [right, right.new_tensor(len(true)), (predicted & true).sum(), (predicted != true).sum()]
        else:
            right = (logits.argmax(1) == labels).sum()
            vertices = right.new_tensor(len(labels))
            counts = [right, vertices, right, 2 * (vertices - right)]
        return torch.stack(counts).double()


@dataclass(frozen=True, kw_only=True)
class TypedTask(Task):
    """A task for vertices of one type of a typed graph. ``features`` is the width of their features.

    Attributes
    ----------
    types : tuple of str
        All types of vertices.
    edge_types : tuple of tuple
        All relations: (type of the sources, name, type of the targets).
    widths : mapping of int
        Width of the features by type. 0: the rows of the type are learned, and as wide as the hidden layers.
    edge_widths : mapping of int
        Width of the features of in-edges by the name of the relation. Those without features are left out.
    returned : tuple of str
        The types whose rows a network returns. The first has the labels.
    embeddings : int
        Width of a learned row of each vertex, behind its features. 0: only types without features have learned rows.
    """

    types: tuple[str, ...]
    edge_types: tuple[EdgeKey, ...]
    widths: Mapping[str, int]
    edge_widths: Mapping[str, int]
    returned: tuple[str, ...]
    embeddings: int = 0

    @property
    def target(self) -> str:
        """The type with the labels."""
        return self.returned[0]

    @property
    def num_relations(self) -> int:
        """Number of relations."""
        return len(self.edge_types)

    @property
    def metadata(self) -> tuple[list[str], list[EdgeKey]]:
        """Types and relations, as ``torch_geometric.nn.to_hetero`` takes them."""
        return list(self.types), list(self.edge_types)

    @property
    def learned(self) -> tuple[str, ...]:
        """The types whose rows are learned."""
        return tuple(name for name in self.types if self.embeddings or not self.widths[name])

    @property
    def embedded(self) -> Self:
        """The task of the layers, which get learned rows of categories in place of codes."""
        widths = {name: width + self._wider(name) for name, width in self.widths.items()}
        return replace(super().embedded, widths=widths) if self.categories else self

    def input_widths(self, hidden: int) -> dict[str, int]:
        """Return the width of the rows that a network gets of each type, given that of its hidden layers."""
        return {name: self.widths[name] + self.embeddings or hidden for name in self.types}

    def most_in_edges(self, fanouts: Any) -> tuple[int, ...]:
        """Return the most in-edges that a vertex of any type has in each hop of a batch. -1 is all."""
        bounds = []
        for of_hop in relation_fanouts(fanouts, self.edge_types):
            sums = dict.fromkeys(self.types, 0)
            for key, fanout in zip(self.edge_types, of_hop, strict=True):
                sums[key[2]] += fanout
            bounds.append(-1 if -1 in of_hop else max(sums.values()))
        return tuple(bounds)

    def types_by_layer(self, layers: int) -> list[tuple[str, ...]]:
        """Return the types whose rows each layer reads, and those that the last one returns, in the order of types."""
        needed = [set(self.returned)]
        for _ in range(layers):
            sources = {source for source, _, target in self.edge_types if target in needed[0]}
            needed.insert(0, needed[0] | sources)
        return [tuple(name for name in self.types if name in those) for those in needed]


def task_of(stored: Mapping[str, Any]) -> Task:
    """Return a task from its values in JSON."""
    if "categories" in stored:
        stored = {
            **stored,
            "categories": msgspec.convert(stored["categories"], dict[str, dict[str, EmbeddedColumn]]),
        }
    if "types" not in stored:
        return Task(**stored)
    edge_types = tuple((source, name, target) for source, name, target in stored["edge_types"])
    names = {name: tuple(stored[name]) for name in ("types", "returned")}
    return TypedTask(**{**stored, **names, "edge_types": edge_types})


def unscored(task: Task, metrics: Iterable[str] | None) -> dict[str, None]:
    """Return the scores of an epoch without validation."""
    return dict.fromkeys(f"val_{name}" for name in (*task.scores, *(metrics or ())))


def scores_of(splits: Sequence[str], tallies: Tensor, task: Task) -> dict[str, float]:
    """Return the scores of each split, as ``val_accuracy`` and ``val_f1`` of ``val``."""
    return {
        f"{split}_{name}": value
        for split, tally in zip(splits, tallies, strict=True)
        for name, value in (errors(tally) if task.regression else score(tally)).items()
    }


def errors(tally: Tensor) -> dict[str, float]:
    """Return the root of the mean square and the mean of the errors of a regression, NaN without vertices."""
    squares, vertices, absolute, _ = tally.tolist()
    if not vertices:
        return {"rmse": float("nan"), "mae": float("nan")}
    return {"rmse": math.sqrt(squares / vertices), "mae": absolute / vertices}


def score(tally: Tensor) -> dict[str, float]:
    """Return accuracy and micro-F1 from the counts of :meth:`Task.tally`, NaN without vertices.

    They are equal for single-label tasks.
    """
    right, vertices, both, wrong = tally.tolist()
    accuracy = right / vertices if vertices else float("nan")
    f1 = 2 * both / (2 * both + wrong) if both or wrong else float("nan")
    return {"accuracy": accuracy, "f1": f1}
