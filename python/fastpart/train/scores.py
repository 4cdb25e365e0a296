"""The classification task and its scores."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import FastpartError, ParameterError
from ..runtime.reporting import describe
from .ranks import total

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
    """

    features: int
    classes: int
    multilabel: bool
    regression: bool = False

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
        of the errors, all vertices, the sum of the errors, and 0.
        """
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


Metrics = Mapping[str, Any]
"""What a user measures beside accuracy and micro-F1, by name."""


def unscored(task: Task, metrics: Metrics | None) -> dict[str, None]:
    """Return the scores of an epoch without validation."""
    return dict.fromkeys(f"val_{name}" for name in (*task.scores, *(metrics or ())))


class Scores:
    """The scores of some splits, added up over blocks of vertices and over workers.

    A metric of a user is a function of outputs and labels, which returns one value for each row or the mean of them,
    or an object of torchmetrics, which adds up over the workers by itself.
    """

    def __init__(self, task: Task, metrics: Metrics | None, splits: Sequence[str]) -> None:
        metrics = metrics or {}
        self._task, self._splits = task, tuple(splits)
        self._sums = torch.zeros(len(splits), TALLY, dtype=torch.float64)
        self._objects = [
            {name: _fresh(metric) for name, metric in metrics.items() if is_accumulated(metric)}
            for _ in splits
        ]
        self._functions = {name: metric for name, metric in metrics.items() if not is_accumulated(metric)}
        self._values = torch.zeros(len(splits), len(self._functions), dtype=torch.float64)

    def add(self, split: str, outputs: Tensor, labels: Tensor) -> None:
        """Count some vertices of a split."""
        index = self._splits.index(split)
        self._sums[index] += self._task.tally(outputs, labels).cpu()
        if not len(labels):
            return
        for place, (name, function) in enumerate(self._functions.items()):
            self._values[index, place] += _sum_of(name, function(outputs, labels), len(labels))
        for metric in self._objects[index].values():
            metric.to(outputs.device) if hasattr(metric, "to") else None
            metric.update(outputs, labels)

    def of_all(self) -> dict[str, float]:
        """Return the scores of the vertices of all workers: ``val_accuracy``, ``val_f1`` and so on."""
        width = len(self._functions)
        sums = total(torch.cat([self._sums, self._values], 1))
        found = scores_of(self._splits, sums[:, :TALLY], self._task)
        for split, of_split, values, objects in zip(
            self._splits, sums, sums[:, TALLY : TALLY + width], self._objects, strict=True
        ):
            vertices = of_split[1].item()
            for name, value in zip(self._functions, values.tolist(), strict=True):
                found[f"{split}_{name}"] = value / vertices if vertices else float("nan")
            for name, metric in objects.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # that a worker has no vertices of the split
                    found[f"{split}_{name}"] = float(metric.compute())
        return found


def is_accumulated(metric: Any) -> bool:
    """Return whether a metric adds up by itself, as those of torchmetrics."""
    return all(callable(getattr(metric, name, None)) for name in ("update", "compute", "reset"))


def _fresh(metric: Any) -> Any:
    metric = copy.deepcopy(metric)
    metric.reset()
    return metric


def _sum_of(name: str, values: Any, rows: int) -> float:
    """Return the sum of a metric over rows, given one value for each or their mean."""
    if isinstance(values, Tensor) and values.ndim:
        if values.shape != (rows,):
            raise ParameterError(
                f"metrics: {name} returned a tensor of shape {tuple(values.shape)} for {rows} rows. Return one value "
                "for each row, or their mean"
            )
        return float(values.double().sum())
    try:
        return float(values) * rows
    except (TypeError, ValueError):
        raise ParameterError(
            f"metrics: {name} returned a {type(values).__name__}. Return one value for each row, or their mean"
        ) from None


def refuse_unfit_metrics(metrics: Metrics | None, task: Task) -> None:
    """Raise an error if a metric of a user cannot be computed for outputs and labels like those of a task."""
    for name, metric in (metrics or {}).items():
        try:
            scores = Scores(task, {name: metric}, ["val"])
            scores.add("val", *task.example())
            scores.of_all()
        except (FastpartError, MemoryError):
            raise
        except Exception as error:  # it may raise anything
            outputs, labels = task.example()
            raise ParameterError(
                f"metrics: {name} cannot be called with outputs of shape {tuple(outputs.shape)} and labels of shape "
                f"{tuple(labels.shape)}: {describe(error)}"
            ) from error


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
