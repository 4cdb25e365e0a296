"""Baselines of a training: what is reached without the network, on the same validation and test items.

- ``majority`` predicts the most frequent class of the training items, or the mean of a regression.
- ``label_propagation`` (Zhu and Ghahramani 2002) uses the edges, but no features. In each round every vertex gets the
  mean of the labels of its in-neighbours, and training vertices keep theirs.
- ``without_edges`` uses the features, but no edges: a perceptron with as many layers as the network.

All three learn from the labels of training items only. Labels of validation items choose the best step of the
perceptron, as they choose the best epoch of a training. Labels of test items are only compared with predictions. Items
are taken in the order of their ids, so that results do not depend on parts and workers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ... import _core
from ...core.parsing import created
from ...errors import FastpartError
from ...graphs.graph_directory import Embedded
from ..data.dataset import SPLITS, AnyDataset, Dataset, EdgeDataset
from ..inference.hops import piece
from ..inference.means import has_space
from ..memory import Need, left_by, size_of
from ..models.categories import TypeCategories
from ..models.scores import TALLY, Task, scores_of
from ..options import TrainOptions
from ..ranks import torch_settings

VERSION = 1
"""The version of :func:`baselines_of` in the folder of a training."""

SHARE = 0.05
"""Most of the time of the training that baselines may take together."""

SECONDS = 1.0
"""Each may take so long after a training of any length."""

ROUNDS = 10
"""Rounds of label propagation."""

STEPS = 200
"""Steps of the perceptron."""

SCORED_EVERY = 20
"""Steps of the perceptron from one validation to the next."""

_PRODUCTS = 1 << 21
"""The bound on products of rows and weights in a step of more than :data:`_ROWS` rows."""

_ROWS = 256
"""Rows that a step may have in any case."""

_EDGE_BYTES = 40
"""Bytes of an edge of a graph that is put together in memory."""

Predict = Callable[[str], Iterable[tuple[Tensor, Tensor]]]
"""Yields outputs and labels of a split, block by block."""


class LeftOutError(Exception):
    """Why a baseline is left out."""


class Deadline:
    """The time that a baseline may take.

    Parameters
    ----------
    seconds : float
        The time, from now on.
    """

    def __init__(self, seconds: float) -> None:
        self._start, self._seconds = time.perf_counter(), seconds

    def check(self) -> None:
        """Raise an error if the time is over."""
        if time.perf_counter() - self._start > self._seconds:
            raise LeftOutError(f"it takes longer than {SHARE:.0%} of the training")


class Items:
    """The labelled items of a dataset: places in their parts, and labels.

    Attributes
    ----------
    dataset : AnyDataset
        The dataset.
    places : dict of list
        Places of the items of each split in each part.
    labels : dict of list
        Their labels.
    """

    def __init__(self, dataset: AnyDataset[Any]) -> None:
        self.dataset, self.parts = dataset, list(dataset.partition.parts)
        self.places: dict[str, list[npt.NDArray[np.int64]]] = {split: [] for split in SPLITS}
        self.labels: dict[str, list[Tensor]] = {split: [] for split in SPLITS}
        for part in self.parts:
            labels = dataset.labels(part)
            for split, places in dataset.splits(part).items():
                self.places[split].append(places.numpy())
                self.labels[split].append(labels[places])

    def sample(self, split: str, most: int, seed: int) -> tuple[Tensor, Tensor]:
        """Return features and labels of at most ``most`` items of a split, by ascending id."""
        dataset, places = self.dataset, self.places[split]
        ids = np.concatenate([dataset.ids_of(*each) for each in zip(self.parts, places, strict=True)])
        order = np.argsort(ids)
        if len(order) > most:
            order = order[np.sort(np.random.default_rng(seed).permutation(len(order))[:most])]
        chosen = np.zeros(len(ids), bool)
        chosen[order] = True
        masks = np.split(chosen, np.cumsum([len(each) for each in places])[:-1])
        rows = [
            self._features(part, each[mask])
            for part, each, mask in zip(self.parts, places, masks, strict=True)
        ]
        among = np.searchsorted(np.flatnonzero(chosen), order)
        return torch.cat(rows)[among], torch.cat(self.labels[split])[order]

    def blocks(self, split: str, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield features and labels of all items of a split, in blocks."""
        for part, places, labels in zip(self.parts, self.places[split], self.labels[split], strict=True):
            for first in range(0, len(places), size):
                some = slice(first, first + size)
                yield self._features(part, places[some]), labels[some]

    def _features(self, part: Any, places: npt.NDArray[np.int64]) -> Tensor:
        rows = self.dataset.inputs_of(part, places)
        if rows is None:
            raise LeftOutError("the items have no features")
        return torch.from_numpy(rows)


def baselines_of(
    dataset: AnyDataset[Any], options: TrainOptions, summary: Mapping[str, Any], folder: Path, seconds: float
) -> dict[str, Any]:
    """Measure the baselines of a training.

    Parameters
    ----------
    dataset : AnyDataset
        What was trained on.
    options : TrainOptions
        How it was trained.
    summary : mapping
        What came of it.
    folder : path
        For temporary files.
    seconds : float
        How long it took.

    Returns
    -------
    dict
        ``version``, ``scores`` (by baseline those of :attr:`.Task.scores` for ``val`` and ``test``, as
        ``test_accuracy``), ``left_out`` (by baseline why it was not measured), and ``verdict``, whether edges help.
    """
    task, scores, left_out = dataset.task, dict[str, Any](), dict[str, str]()
    if _split(task, summary) is None:
        reason = "the training has no scores to compare with"
        return {
            "version": VERSION,
            "scores": {},
            "left_out": dict.fromkeys(BASELINES, reason),
            "verdict": None,
        }
    items = None
    with torch_settings(1, options.seed), TemporaryDirectory(dir=folder) as scratch:
        for name, measure in BASELINES.items():
            deadline = Deadline(max(SHARE / 2 * seconds, SECONDS))
            try:
                items = items or Items(dataset)
                scores[name] = _scores(task, measure(items, options, Path(scratch), deadline))
            except (
                LeftOutError,
                FastpartError,
                OSError,
                MemoryError,
            ) as error:  # parts may be on other machines
                left_out[name] = str(error) or type(error).__name__
        count = dataset.count_of(_split(task, summary) or "")
    return {
        "version": VERSION,
        "scores": scores,
        "left_out": left_out,
        "verdict": verdict(task, summary, scores, count),
    }


@torch.no_grad()
def _scores(task: Task, predict: Predict) -> dict[str, float]:
    """Return the scores of predictions. A split without items has none."""
    tallies = torch.zeros(2, TALLY, dtype=torch.float64)
    for row, split in zip(tallies, SPLITS[1:], strict=True):
        for outputs, labels in predict(split):
            row += task.tally(outputs, labels)
    if tallies.isnan().any():
        raise LeftOutError("features are NaN or infinite")
    found = scores_of(SPLITS[1:], tallies, task)
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _encoded(task: Task, labels: Tensor) -> Tensor:
    """Return labels as rows of numbers."""
    return labels if labels.is_floating_point() else F.one_hot(labels, task.classes).float()


def _logits(task: Task, means: Tensor) -> Tensor:
    """Return outputs that predict what means of encoded labels say."""
    return means - 0.5 if task.multilabel else means


def _prior(items: Items) -> Tensor:
    """Return the mean of the encoded labels of the training items."""
    labels = torch.cat(items.labels["train"])
    if labels.is_floating_point():  # in an order that does not depend on parts
        return labels.sort(0).values.double().mean(0).float()
    return torch.bincount(labels, minlength=items.dataset.task.classes).float() / len(labels)


def _majority(items: Items, options: TrainOptions, folder: Path, deadline: Deadline) -> Predict:
    task, prior = items.dataset.task, _prior(items)

    def predict(split: str) -> Iterator[tuple[Tensor, Tensor]]:
        for labels in items.labels[split]:
            yield _logits(task, prior).expand(len(labels), -1), labels

    return predict


def _label_propagation(items: Items, options: TrainOptions, folder: Path, deadline: Deadline) -> Predict:
    """Propagate the labels of training vertices. Rows lie in files, of which one block is in memory.

    Rows of training vertices have the encoded label and a 1. All others begin with zeros. The means of both are
    divided by each other in the end, so vertices that no label has reached do not count.
    """
    dataset, task = items.dataset, items.dataset.task
    if not isinstance(dataset, Dataset | EdgeDataset) or not dataset.propagates:
        raise LeftOutError("labels of edges have no edges to go along")
    if getattr(options, "temporal", None) is not None:
        raise LeftOutError("it would look at edges of later times")
    n, edges = size_of(dataset)
    if isinstance(dataset, EdgeDataset):
        left_by([Need("the whole graph", _EDGE_BYTES * edges)], options.run)
    width = task.classes + 1
    if not has_space(folder, 8 * width * n):
        raise LeftOutError("the folder for temporary files has too little space")
    topology, block, threads = (
        dataset.topology,
        max(piece(8 * width), 1),
        options.threads or _core.default_threads(),
    )
    starts = topology.starts.tolist()
    bounds = [
        (part, first, min(first + block, stop))
        for part, (start, stop) in enumerate(pairwise(starts))
        for first in range(start, stop, block)
    ]
    rows = {
        split: [dataset.rows_of(*each) for each in zip(items.parts, items.places[split], strict=True)]
        for split in SPLITS
    }
    fixed = np.concatenate(rows["train"])
    order = np.argsort(fixed)
    labels = _encoded(task, torch.cat(items.labels["train"]))
    fixed, given = fixed[order], F.pad(labels, (0, 1), value=1.0)[order].numpy()
    files = [[folder / f"labels-{turn}-{part}.npy" for part in range(len(starts) - 1)] for turn in (0, 1)]
    tables = [
        [
            _table(file, stop - start, width)
            for file, (start, stop) in zip(each, pairwise(starts), strict=True)
        ]
        for each in files
    ]
    for number in range(ROUNDS + 1):
        there = [
            file if len(table) else None for file, table in zip(files[1 - number % 2], tables[0], strict=True)
        ]
        before = _core.Features(there, topology, direct=False)
        for part, first, stop in bounds:
            means = np.zeros((stop - first, width), np.float32)
            if number:
                means = before.means(np.arange(first, stop, dtype=np.uint32), threads)
                deadline.check()
            known = slice(*np.searchsorted(fixed, (first, stop)))
            means[fixed[known] - first] = given[known]
            tables[number % 2][part][first - starts[part] : stop - starts[part]] = means
    last, prior = tables[ROUNDS % 2], _prior(items)

    def predict(split: str) -> Iterator[tuple[Tensor, Tensor]]:
        for those, labels in zip(rows[split], items.labels[split], strict=True):
            for at in range(0, len(those), block):
                some = slice(at, at + block)
                part = int(np.searchsorted(starts, those[at], side="right")) - 1
                found = torch.from_numpy(last[part][those[some] - starts[part]])
                mass = found[:, -1:]
                yield _logits(task, torch.where(mass > 0, found[:, :-1] / mass, prior)), labels[some]

    return predict


def _table(file: Path, count: int, width: int) -> npt.NDArray[np.float32]:
    """Return rows in a file."""
    return created(file, np.float32, (int(count), width))


def _without_edges(items: Items, options: TrainOptions, folder: Path, deadline: Deadline) -> Predict:
    """Train a perceptron on the features of training items, and take its step with the best validation loss."""
    task = items.dataset.task
    x, labels = items.sample("train", piece(4 * task.features), options.seed)
    network = Perceptron(task, x, items.dataset.codes, options)
    size = max(_PRODUCTS // sum(weight.numel() for weight in network.parameters()), _ROWS)
    validation = items.sample("val", size, options.seed)
    adam, best, least = Adam(network.parameters(), options.lr, options.weight_decay), None, math.inf
    for step, batch in zip(range(1, STEPS + 1), _batches(len(x), size), strict=False):
        with torch.enable_grad():
            task.losses(network.train()(x[batch]), labels[batch]).mean().backward()
        adam.step()
        deadline.check()
        if step % SCORED_EVERY == 0:
            with torch.no_grad():
                loss = float(task.losses(network.eval()(validation[0]), validation[1]).sum())
            if best is None or loss <= least:  # without validation items, the last step
                best, least = {name: each.clone() for name, each in network.state_dict().items()}, loss
    assert best is not None
    network.load_state_dict(best)
    network.eval()

    def predict(split: str) -> Iterator[tuple[Tensor, Tensor]]:
        for rows, of_rows in items.blocks(split, size):
            yield network(rows), of_rows

    return predict


def _batches(count: int, size: int) -> Iterator[Tensor]:
    """Yield places of rows, in random order again and again."""
    while True:
        yield from torch.randperm(count).split(size)


class Perceptron(nn.Module):
    """A network over rows of features, which it standardises as those that it is made with."""

    def __init__(self, task: Task, x: Tensor, codes: Embedded, options: TrainOptions) -> None:
        super().__init__()
        mean, scale = x.mean(0), x.std(0, correction=0)
        scale[scale == 0] = 1
        for column in codes.values():  # they stay numbers of categories
            mean[column.place], scale[column.place] = 0, 1
        self.register_buffer("mean", mean)
        self.register_buffer("scale", scale)
        self.categories = TypeCategories(codes) if codes else nn.Identity()
        width = x.shape[1] + sum(each.dim - 1 for each in codes.values())
        widths = [width, *[options.hidden] * (options.layers - 1), task.classes]
        self.layers = nn.ModuleList(nn.Linear(*each) for each in pairwise(widths))
        self.dropout = nn.Dropout(options.dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs of rows."""
        x = self.categories((x - self.mean) / self.scale)
        for layer in self.layers[:-1]:
            x = self.dropout(F.relu(layer(x)))
        outputs: Tensor = self.layers[-1](x)
        return outputs


class Adam:
    """Adam with weight decay, as ``torch.optim.Adam``, whose import takes a second and 70 MB."""

    def __init__(self, weights: Iterable[nn.Parameter], lr: float, weight_decay: float) -> None:
        self._weights, self._lr, self._decay, self._steps = list(weights), lr, weight_decay, 0
        self._means = [[torch.zeros_like(weight) for weight in self._weights] for _ in range(2)]

    @torch.no_grad()
    def step(self) -> None:
        """Make a step, and forget the gradients."""
        self._steps += 1
        for weight, mean, square in zip(self._weights, *self._means, strict=True):
            assert weight.grad is not None
            gradient = weight.grad + self._decay * weight
            mean.lerp_(gradient, 0.1)
            square.lerp_(gradient * gradient, 0.001)
            root = (square / (1 - 0.999**self._steps)).sqrt_().add_(1e-8)
            weight.addcdiv_(mean, root, value=-self._lr / (1 - 0.9**self._steps))
            weight.grad = None


BASELINES: Mapping[str, Callable[[Items, TrainOptions, Path, Deadline], Predict]] = {
    "majority": _majority,
    "label_propagation": _label_propagation,
    "without_edges": _without_edges,
}
"""The function that measures each baseline, by its name in the summary."""


def _decisive(task: Task) -> str:
    """Return the name of the score that baselines are compared by."""
    return "f1" if task.multilabel else task.scores[0]


def _split(task: Task, summary: Mapping[str, Any]) -> str | None:
    """Return the split that baselines are compared on: ``test`` if it has a score, else ``val``, if that has one."""
    known = (
        split for split in ("test", "val") if isinstance(summary.get(f"{split}_{_decisive(task)}"), float)
    )
    return next((split for split in known if not math.isnan(summary[f"{split}_{_decisive(task)}"])), None)


def verdict(
    task: Task, summary: Mapping[str, Any], scores: Mapping[str, Mapping[str, float]], count: int
) -> str | None:
    """Say whether edges help. None: there is no perceptron to compare with.

    Shares of ``count`` items differ if they are two standard errors of their difference apart. Errors of a regression
    differ by 1 %.
    """
    if "without_edges" not in scores:
        return None
    name = f"{_split(task, summary)}_{_decisive(task)}"
    network, without = summary[name], scores["without_edges"][name]

    def is_better(one: float, other: float) -> bool:
        if task.regression:
            return one < 0.99 * other
        return one - other > 2 * math.sqrt((one * (1 - one) + other * (1 - other)) / count)

    labels = scores.get("label_propagation", {}).get(name)
    if is_better(network, without):
        more = labels is not None and is_better(labels, network)
        return "edges help" + (", and label propagation does better than this network" if more else "")
    if labels is not None and is_better(labels, without):
        return "edges help label propagation, but not this network"
    return "edges do not help" if is_better(without, network) else "edges make no clear difference"


def told(task: Task, summary: Mapping[str, Any]) -> str:
    """Return the baselines of a summary as a line of text."""
    found, name = summary["baselines"], f"{_split(task, summary)}_{_decisive(task)}"
    scores = {**found["scores"], "this network": summary}
    known = ", ".join(f"{each.replace('_', ' ')} {of[name]:.2f}" for each, of in scores.items() if name in of)
    more = f": {found['verdict']}" if found["verdict"] else ""
    left = (f". {each.replace('_', ' ')} was left out: {why}" for each, why in found["left_out"].items())
    return "".join([known, more, *left])
