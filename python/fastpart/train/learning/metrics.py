"""The scores of a network, those of the user, and the score that decides which epoch is the best."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
import torch.distributed as dist
from torch import Tensor

from ...errors import FastpartError, GraphWarning, ParameterError, code, warn
from ...runtime.reporting import describe
from ..models.scores import TALLY, Task, scores_of
from ..options import Options
from ..plugged import pickled, unpickled
from ..ranks import is_first, total, world_size

UNSCORED = -math.inf
"""The score of an epoch without one. The last of such epochs is the best if none has a score."""

BROKEN = math.nan
"""The score of an epoch whose loss is not finite, and the best score before the first epoch."""


def is_better(score: float, best: float) -> bool:
    """Return whether an epoch is the best so far, given the best score before it.

    An epoch whose loss is not finite is better than none, because every training has a best epoch. It never takes the
    place of one with a loss.
    """
    if math.isnan(score):
        return math.isnan(best)
    return math.isnan(best) or score > best or score == best == UNSCORED


class ValidationData(Protocol):
    """A dataset with something to validate on, or without.

    Attributes
    ----------
    num_val : int
        Number of labelled vertices, or edges, that the validation score counts.
    """

    @property
    def num_val(self) -> int: ...  # noqa: D102


def refuse_patience_without_validation(dataset: ValidationData, options: Options) -> None:
    """Raise an error if ``patience`` has nothing to go by. Without it, warn that the last epoch counts as the best."""
    if dataset.num_val:
        return
    what, splits = (
        "the directory has nothing labelled to validate on",
        code('splits={"train": ..., "val": ...}', "--splits FILE"),
    )
    if options.patience is not None:
        raise ParameterError(
            f"patience: {what}, so no epoch is better than another. Save the partition with validation vertices "
            f"({splits}) or edges, or leave out {code('patience', '--patience')}"
        )
    if is_first():
        warn(
            f"{what}, so the last epoch counts as the best. Save the partition with validation vertices "
            f"({splits}) or edges",
            GraphWarning,
        )


Metrics = Mapping[str, Any]
"""What a user measures beside the scores of the task, by name."""


@runtime_checkable
class UpdatedMetric(Protocol):
    """A metric that is an object with a state, as those of torchmetrics."""

    def reset(self) -> object:
        """Forget all rows."""

    def update(self, outputs: Tensor, labels: Tensor) -> object:
        """Count some rows."""

    def compute(self) -> Any:
        """Return the value over all rows."""


class Scores:
    """The scores of some splits. Each vertex is added by one worker.

    A metric of a user is a function of outputs and labels, which returns one value for each row or the mean of them,
    or an object with ``update``, ``compute`` and ``merge_state``, as those of torchmetrics.
    """

    def __init__(self, task: Task, metrics: Metrics | None, splits: Sequence[str]) -> None:
        metrics = metrics or {}
        self._task, self._splits = task, tuple(splits)
        updated = {name: metric for name, metric in metrics.items() if isinstance(metric, UpdatedMetric)}
        self._functions = {name: metric for name, metric in metrics.items() if name not in updated}
        self._sums = torch.zeros(len(splits), TALLY + len(self._functions), dtype=torch.float64)
        self._updated = [{name: Updated(metric) for name, metric in updated.items()} for _ in splits]

    def add(self, split: str, outputs: Tensor, labels: Tensor) -> None:
        """Count some vertices of a split."""
        if not len(labels):
            return
        index, outputs, labels = self._splits.index(split), outputs.cpu(), labels.cpu()
        tally, values = self._task.tally(outputs, labels), [math.nan] * len(self._functions)
        if not tally[0].isnan():  # no metric has a value for what is none
            values = [_sum_of(name, of(outputs, labels), len(labels)) for name, of in self._functions.items()]
            for metric in self._updated[index].values():
                metric.add(outputs, labels)
        self._sums[index] += torch.cat([tally, torch.tensor(values).double()])

    def of_all(self) -> dict[str, float]:
        """Return the scores of the vertices of all workers: ``val_accuracy``, ``val_f1`` and so on.

        All scores of a split are NaN if outputs of one of its vertices are not :meth:`.Task.defined`.
        """
        sums = total(self._sums.clone())
        found = scores_of(self._splits, sums[:, :TALLY], self._task)
        for split, row, updated in zip(self._splits, sums, self._updated, strict=True):
            vertices = row[1].item()
            for name, value in zip(self._functions, row[TALLY:].tolist(), strict=True):
                found[f"{split}_{name}"] = value / vertices if vertices else float("nan")
            undefined = bool(row[0].isnan())
            found |= {
                f"{split}_{name}": math.nan if undefined else metric.of_all()
                for name, metric in updated.items()
            }
        return found


class Updated:
    """A metric that is an object, with its state.

    States of workers come together by ``merge_state``. The own way of torchmetrics over ``torch.distributed`` is not
    used: a worker without vertices would not take part in it, and the others would wait.
    """

    def __init__(self, metric: Any) -> None:
        self._metric = copy.deepcopy(metric)
        self._metric.reset()
        if hasattr(metric, "sync_on_compute"):
            self._metric.sync_on_compute = False
        self._rows = 0

    def add(self, outputs: Tensor, labels: Tensor) -> None:
        """Update it with some rows."""
        self._metric.update(outputs, labels)
        self._rows += len(labels)

    def of_all(self) -> float:
        """Return its value over the rows of all workers, NaN without any."""
        known = [metric for metric in self._gathered() if metric is not None]
        if not known:
            return float("nan")
        first, *others = known
        for other in others:
            first.merge_state(other)
        return float(first.compute())

    def _gathered(self) -> list[Any]:
        mine = self._metric if self._rows else None
        if world_size() == 1:
            return [mine]
        states: list[Any] = [None] * world_size()
        dist.all_gather_object(states, pickled({"metrics": mine}))
        return [unpickled(state)["metrics"] for state in states]


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


def refuse_unfit_metrics(metrics: Metrics | None, task: Task, copies: int) -> None:
    """Raise an error if a metric of a user cannot be computed for outputs and labels like those of a task.

    So many copies of the network are trained at a time.
    """
    for name, metric in (metrics or {}).items():
        if copies > 1 and isinstance(metric, UpdatedMetric) and not hasattr(metric, "merge_state"):
            raise ParameterError(
                f"metrics: {name} has no merge_state(other), so what {copies} workers count cannot come together. Add "
                "it, or pass a function of outputs and labels"
            )
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
