"""Warnings of trainings that learn nothing: why, and what to do.

Before the first epoch, columns of features of very different scales are named. In training, three things are: a layer
after which all rows are zero, losses and scores that are NaN or infinite, with the row of features that they come
from, and a loss that stays that of guessing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ...core.parameters import shown
from ...core.rows import STATISTICS, not_finite
from ...errors import GraphFormatError, GraphWarning, arg, code, warn
from ...partitions.part_files import Array
from ...partitions.part_rows import TypeData
from ..data.dataset import AnyDataset
from ..models import TypedNetwork, may_take_edges
from ..models.network import Network
from ..options import OnEpoch
from ..plugged import ModelSource
from ..runs.history import score_of


def entropy_of_pairs(negatives: int) -> float:
    """Return the cross entropy of guessing which of ``1 + negatives`` pairs are edges, if one of them is."""
    return _entropy(torch.tensor([1.0, negatives], dtype=torch.float64))


def entropy_of_classes(dataset: AnyDataset[Any]) -> float | None:
    """Return the cross entropy of guessing the classes of the training vertices by their frequencies.

    It is at most the logarithm of the number of classes. In a multi-label task it is the mean over the classes. None if
    the task has no classes, or all training vertices are of the same one, which leaves nothing to learn.
    """
    task = dataset.task
    if task.regression:
        return None
    counts, vertices = torch.zeros(task.classes, dtype=torch.float64), 0
    for part in dataset.partition.parts:
        labels = dataset.labels(part)[dataset.splits(part)["train"]]
        vertices += len(labels)
        counts += labels.sum(0) if task.multilabel else torch.bincount(labels, minlength=task.classes)
    if not task.multilabel:
        return _entropy(counts) or None
    each = [_entropy(torch.stack([count, vertices - count])) for count in counts]
    return math.fsum(each) / len(each) or None


def _entropy(counts: torch.Tensor) -> float:
    """Return the entropy of a distribution, in nats."""
    return float(torch.special.entr(counts / counts.sum()).sum())


DEAD = "dead_layer"
"""The entry of a reported row with the number of such a layer, from 1 on."""

_ROUNDS = 2
"""A layer is dead after so many rounds without a number in its rows."""

_FEW = 64
"""So few numbers may all be zero by chance."""


class DeadLayers:
    """Watches the rows between the layers of a network in training, once per epoch and layer unless all are zero.

    Networks of users are not watched.
    """

    def __init__(self, network: nn.Module) -> None:
        self._seen: set[int] = set()
        self._alive: set[int] = set()
        self._rounds: dict[int, int] = {}
        modules = list(network.modules())
        if any(
            hasattr(each, "_orig_mod") for each in modules
        ):  # torch.compile would break its graph at a look
            return
        for each in modules:
            if isinstance(each, Network | TypedNetwork):
                for index, layer in enumerate(each.layers):
                    if index:
                        layer.register_forward_pre_hook(partial(self._see, index))

    def _see(self, index: int, layer: nn.Module, given: tuple[Any, ...]) -> None:
        """Look at the input of a layer: what the layer ``index``, counted from 1 on, has returned."""
        if not layer.training or index in self._alive or len(given) < 2:
            return
        rows: Iterable[Tensor] = given[1].values() if isinstance(given[1], Mapping) else [given[1]]
        self._seen.add(index)
        if any(bool(each.any()) for each in rows) or sum(each.numel() for each in rows) < _FEW:
            self._alive.add(index)

    def after_round(self) -> dict[str, int]:
        """Return what a reported row has about the round: nothing, or the number of the first layer that is dead."""
        dead = self._seen - self._alive
        self._rounds = {index: self._rounds.get(index, 0) + 1 for index in dead}
        self._seen, self._alive = set(), set()
        found = [index for index, rounds in self._rounds.items() if rounds >= _ROUNDS]
        return {DEAD: min(found)} if found else {}


_ROWS = 1000
"""Rows of a sample, at most."""

_PARTS = 8
"""Parts that it is taken of, at most."""

_NUMBERS = 1 << 20
"""Numbers of a sample, at most."""

_LARGE = 10.0
"""Smaller numbers do no harm, whatever the others are."""

_RATIO = 100.0
"""Scales are very different from here on. Words that occur or do not, as 1 and 0, differ less in such a sample."""


def remedy_of(dataset: AnyDataset[Any] | None) -> str:
    """Return what to do about features that a network cannot learn from."""
    done = dataset is not None and is_standardised(dataset)
    smaller = f"use a smaller {code('lr', '--lr')}"
    return smaller if done else f"save the partition with {arg('standardise', True)}, or {smaller}"


def is_standardised(dataset: AnyDataset[Any]) -> bool:
    """Return whether features of a directory are standardised, or those of a type if it has types."""
    return (dataset.path / STATISTICS).exists() or any(dataset.path.glob(f"types/*/{STATISTICS}"))


def warn_of_scales(dataset: AnyDataset[Any]) -> None:
    """Warn if some columns of features are much larger than others, going by a sample of the rows."""
    if is_standardised(dataset):
        return
    for name, rows in _samples(dataset):
        finite = np.where(np.isfinite(rows), rows, 0.0)
        scales = np.sqrt(np.square(finite).mean(axis=0))
        scales[[each.place for each in dataset.task.categories.get(name, {}).values()]] = (
            0  # codes have no size
        )
        used = np.flatnonzero(scales)
        if not len(used):
            continue
        low = np.percentile(scales[used], 10, method="lower")
        column = int(scales.argmax())
        if scales[column] >= max(_LARGE, _RATIO * low):
            of_type = f" of {name!r}" if name else ""
            warn(
                f"source: features{of_type} in {shown(dataset.path)} have columns of very different scales: numbers "
                f"of about {scales[column]:.2g} in column {column}, and of {low:.2g} in others. A network learns "
                f"little from the small ones. Save the partition with {arg('standardise', True)}",
                GraphWarning,
            )


def _samples(dataset: AnyDataset[Any]) -> Iterator[tuple[str, npt.NDArray[np.float64]]]:
    """Yield samples of the rows of features, by type in a graph with types. The same ones in every call."""
    for name, of_type in dataset.types.items():
        parts = [part for part in of_type if part.row_type("features") is not None and part.num_inner]
        chosen = [parts[place] for place in _spread(len(parts), _PARTS)]
        if not chosen:
            continue
        width = int(np.prod(chosen[0].row_type("features")[1]))
        rows = max(1, min(_ROWS, _NUMBERS // max(width, 1)) // len(chosen))
        found = []
        for part in chosen:
            with suppress(GraphFormatError):  # the file lies on another machine, or training will refuse it
                found.append(part.features_of(_spread(part.num_inner, rows)))
        if found:
            yield name, np.concatenate(found).reshape(-1, width).astype(np.float64)


def _spread(count: int, most: int) -> npt.NDArray[np.int64]:
    """Return at most so many of the numbers from 0 to ``count - 1``, at equal distances."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))


Name = Callable[[int], str]

_BLOCK_BYTES = 32 << 20
"""Numbers that are looked at at a time."""


class Undefined:
    """Warns of the first loss or score of a training that is not finite.

    ``dataset`` is what is trained on, None if there is only an export of it. Those of its features that the ``model``
    takes are read after such a number was found. Without a model rows are learned, and no features are read.
    """

    def __init__(self, dataset: AnyDataset[Any] | None, model: ModelSource | None) -> None:
        self._dataset, self._model, self._told = dataset, model, False

    def watched(self, report: OnEpoch) -> OnEpoch:
        """Return a report of epochs that warns."""

        def reported(row: dict[str, Any]) -> None:
            self._look(f"epoch {row['epoch']}", row, ["loss", *self._scores("val")])
            report(row)

        return reported

    def end(self, summary: Mapping[str, Any]) -> None:
        """Look at the scores of the best epoch."""
        self._look("the best epoch", summary, [*self._scores("val"), *self._scores("test")])

    def _scores(self, split: str) -> list[str]:
        """Return the scores that are numbers if all outputs are. A split without vertices has none."""
        if self._dataset is not None and not self._dataset.count_of(split):
            return []
        return [f"{split}_{name}" for name in ("accuracy", "rmse", "mrr")]

    def _look(self, when: str, row: Mapping[str, Any], names: Iterable[str]) -> None:
        """Warn if one of these numbers is not finite."""
        values = ((name, row.get(name)) for name in names)
        found = [name for name, value in values if value is not None and not math.isfinite(value)]
        if found and not self._told:
            self._told = True
            are = "is" if len(found) == 1 else "are"
            warn(f"{when}: {' and '.join(found)} {are} NaN or infinite. {self._cause()}", GraphWarning)

    def _cause(self) -> str:
        """Return what they come from, and what to do about it."""
        lower = f"lower {code('lr', '--lr')}, or clip gradients with {arg('clip')}"
        if self._model is None:
            return lower.capitalize()
        if self._dataset is None:
            return f"Look for such numbers in the features, {lower}"
        for where, rows, name in _rows_of(self._dataset, self._model):
            step = max(1, _BLOCK_BYTES // max(rows[:1].nbytes, 1))
            for start in range(0, len(rows), step):
                wrong = not_finite(np.asarray(rows[start : start + step]))
                if len(wrong):
                    return (
                        f"The {where} of {name(start + int(wrong[0]))} have such numbers. Replace them, and save the "
                        "partition again"
                    )
        return f"All features are finite: {lower}"


def _rows_of(dataset: AnyDataset[Any], model: ModelSource) -> Iterator[tuple[str, Array, Name]]:
    """Yield the features of vertices and of edges in each part, and what names the item of a row.

    Those on other machines are left out, and so are those with 8 bits per number, which are finite.
    """
    of_edges = dataset.has_types or may_take_edges(model, dataset.task)
    types, relations = dataset.types.values(), dataset.relations.values()
    for part in dataset.partition.parts:
        for data in [parts[part.index] for parts in types]:
            if data.row_type("features") is not None and data.coding("features") is None:
                with suppress(GraphFormatError, OSError):
                    yield "features", data.features, partial(_vertex, part.index, data)
        for data in [parts[part.index] for parts in relations if of_edges]:
            if data.row_type("edge_features") is not None and data.coding("edge_features") is None:
                with suppress(GraphFormatError, OSError):
                    yield "edge features", data.edge_features, partial(_edge, part.index, data)


def _vertex(part: int, data: Any, row: int) -> str:
    if not isinstance(data, TypeData):  # of an edge partition
        return f"vertex {data.vertices[row]} in part {part}"
    of = f" of type {data.type.name!r}" if data.type.name else ""
    return f"vertex {data.inner[row] - data.type.first}{of} in part {part}"


def _edge(part: int, data: Any, row: int) -> str:
    sources, targets, _ = data.in_edges()
    return f"the edge from vertex {sources[row]} to {targets[row]} in part {part}"


_NEARLY = 0.98
"""Share of the loss of guessing from which on a loss is no better."""


@dataclass(frozen=True)
class Guessing:
    """How a network looks that gives all vertices, or all pairs, the same output.

    Attributes
    ----------
    loss : float
        Its loss is at least this one, of guessing.
    rows : int
        So many rows of the history in sequence have the same score, to the last digit.
    epochs : int
        So many epochs are needed to learn anything. A network that learns may begin with a larger loss.
    """

    loss: float
    rows: int = 2
    epochs: int = 1


def watched(report: OnEpoch, guessing: Guessing | None, remedy: str) -> OnEpoch:
    """Return a report of epochs that warns once if a network learns nothing.

    Either all its rows are zero after a layer, or its loss and its scores are those of guessing. A first large step
    does both where features are large or much alike. Without ``guessing`` its loss is not known.
    """
    last, same, told = math.nan, 0, False

    def is_guessing(row: dict[str, Any]) -> bool:
        nonlocal last, same
        score = score_of(row)
        if guessing is None or not math.isfinite(score):
            return False
        same, last = same + 1 if score == last else 1, score
        enough = same >= guessing.rows and row["epoch"] + 1 >= guessing.epochs
        return enough and row["loss"] >= _NEARLY * guessing.loss

    def reported(row: dict[str, Any]) -> None:
        nonlocal told
        dead, guesses = row.pop(DEAD, None), is_guessing(row)
        if (dead or guesses) and not told:
            told = True
            why = (
                f"all rows are zero after layer {dead}, so all vertices have the same output"
                if dead
                else f"the network has learned nothing, its loss of {row['loss']:.3g} is that of guessing"
            )
            warn(
                f"epoch {row['epoch']}: {why}. Where features are large or much alike, {remedy}", GraphWarning
            )
        report(row)

    return reported
