"""Classes, probabilities, logits or embeddings of every vertex, by a trained network over whole neighbourhoods."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ...core.options import RunOptions
from ...core.outputs import folder_beside
from ...core.pairs import among
from ...core.parameters import shown
from ...core.parsing import created
from ...errors import GraphWarning, ParameterError, warn
from ...partitions.partition import PartitionSource, directory_of
from ...partitions.seeds import vertex_ids
from ...partitions.types import range_of_type
from ...store import open_partition
from ..data.dataset import AnyDataset, Dataset, open_dataset
from ..inference.hops import PIECE_BYTES
from ..inference.inference import Inference
from ..memory import Need, evaluation, fitting, full_batch, graph_bytes, left_by, size_of
from ..models import Network, TypedNetwork, attends, takes_edge_attr
from ..models.categories import match_categories
from ..models.scores import Task
from ..options import Options, Predicted

UNKNOWN = 255
"""In place of 0 and 1 in a row of classes that does not follow from its logits."""

VertexOutputs = Iterator[tuple[npt.NDArray[np.int64], Tensor]]
"""Ids of vertices, and one row for each."""

Output = TypeVar("Output", bound=tuple[Any, ...])


def predictions(
    network: nn.Module,
    task: Task,
    options: Options,
    source: PartitionSource,
    what: Predicted,
    target: Path | None,
    run: RunOptions,
    vertices: Any = None,
    learned: Mapping[str, npt.NDArray[Any]] | None = None,
) -> npt.NDArray[Any]:
    """Return one row for each vertex of a partition directory, or for some. See :meth:`.TrainedModel.predict`."""
    dataset = _dataset(source, task)
    match_categories(network, task, dataset.task, dataset.path)
    of_edges = dataset.task.edge_features
    # 0: of a run that did not note them.
    if takes_edge_attr(network) and task.edge_features not in (0, of_edges):
        raise ParameterError(
            f"source: {shown(dataset.path)} has {of_edges} features of edges, but the model was trained on "
            f"{task.edge_features}"
        )
    layers = options.layers
    if what == "embeddings":
        layers -= 1
        if not isinstance(network, Network | TypedNetwork) or not layers:
            raise ParameterError(
                "what: 'embeddings' are the outputs of the last hidden layer, which only a "
                "fastpart.train.models.Network of two layers or more has"
            )
    chosen = Chosen.of(vertices, dataset.targets)
    free = left_by(_needs(dataset, options, what, target, chosen.count), run, "predicting")
    with scratch(target, run.tmp_dir) as (folder, layers_in):
        rows = OutputRows(chosen, None if target is None else folder / target.name)
        found = _outputs(dataset, network, options, layers, free, layers_in, chosen, learned)
        for ids, values in reported(found, chosen.count, run):
            defined = values.isfinite().all(1) if what == "embeddings" else task.defined(values)
            rows.put(ids, rows_of(what, values, defined, task), defined)
        return rows.moved(target)


def _dataset(source: PartitionSource, task: Task) -> AnyDataset[Any]:
    """Open a directory. Refuse one of a graph that a network for the task does not fit."""
    refuse_without_types(source, task)
    dataset = open_dataset(source, task.target or None)
    there = dataset.task
    if there.features != task.features:
        raise ParameterError(
            f"source: {shown(dataset.path)} has {there.features} features, but the model was trained on "
            f"{task.features}"
        )
    refuse_other_types(dataset, task)
    return dataset


def refuse_without_types(source: PartitionSource, task: Task) -> None:
    """Raise an error unless a graph has types where the task has some."""
    path, typed = directory_of(source), bool(task.target)
    if ("types" in (open_partition(path).manifest or {})) != typed:
        raise ParameterError(
            f"source: {shown(path)} holds a graph with{'out' if typed else ''} types, but the model was trained on one "
            f"with{'' if typed else 'out'}"
        )


def refuse_other_types(dataset: AnyDataset[Any], task: Task) -> None:
    """Raise an error unless types, relations and widths of features are those that a task has."""
    refuse_without_types(dataset.path, task)
    for name in ("types", "edge_types", "widths") if task.target else ():
        if getattr(dataset.task, name) != getattr(task, name):
            raise ParameterError(
                f"source: {shown(dataset.path)} has other {name.replace('_', ' ')} than the graph that the model was "
                f"trained on: {getattr(dataset.task, name)}, not {getattr(task, name)}"
            )


class Chosen:
    """The vertices that are wanted: all, or those that a user asks for, each once.

    Attributes
    ----------
    count : int
        How many they are.
    """

    def __init__(self, count: int, ids: npt.NDArray[np.int64] | None, first: int = 0) -> None:
        self.count, self._first = count, first
        self._order = None if ids is None else np.argsort(ids)
        self._ids = np.empty(0, np.int64) if ids is None else np.sort(ids)

    @classmethod
    def of(cls, vertices: Any, among: range, name: str = "vertices") -> Chosen:
        """Check the ids or the mask of a user, who passed them as ``name``. None: all that outputs are of."""
        if vertices is None:
            return cls(len(among), None, among.start)
        ids = vertex_ids(vertices, among.stop, name=name)
        if len(ids) and ids.min() < among.start:
            raise ParameterError(
                f"vertices: {ids.min()} is not between {among.start} and {among.stop - 1}, the vertices that the model "
                "has outputs of"
            )
        return cls(len(ids), ids, among.start)

    def mask(self, inner: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which of some ids are wanted."""
        return np.ones(len(inner), np.bool_) if self._order is None else among(inner, self._ids)

    def places(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the places of wanted ids in the result."""
        return ids - self._first if self._order is None else self._order[np.searchsorted(self._ids, ids)]


def result_need(task: Task, what: Predicted, hidden: int, target: Path | None, count: int) -> Need:
    """Return the need of a result of ``count`` rows. An embedding has ``hidden`` numbers, and a file takes nothing."""
    one = what == "classes" and not (task.multilabel or task.regression)  # of int64
    numbers = hidden if what == "embeddings" else 2 if one else task.classes
    return Need("the result", 0 if target else 4 * numbers * count, "out=, a file")


def _needs(
    dataset: AnyDataset[Any], options: Options, what: Predicted, target: Path | None, count: int
) -> list[Need]:
    """Return what predicting takes beside the process."""
    (n, edges), task = size_of(dataset), dataset.task
    hidden = options.hidden * (options.heads if attends(options.model) else 1)
    rows = result_need(task, what, hidden, target, count)
    if isinstance(dataset, Dataset):
        return [*evaluation(dataset, options, 1), rows]
    return [
        Need("the whole graph", graph_bytes(options, n, edges, task.features), "a partition of the vertices"),
        Need(
            "activations",
            full_batch(options, task, n, n, edges, training=False),
            "a partition of the vertices",
        ),
        rows,
    ]


@contextmanager
def scratch(target: Path | None, tmp_dir: Path | None) -> Iterator[tuple[Path, Path]]:
    """Yield a temporary folder for the result, and one for hidden layers.

    The first one lies beside the target, so that a file in it can take its place. So does the other one unless the user
    has named a folder for temporary files.
    """
    with ExitStack() as stack:
        folders = []
        if target is None or tmp_dir is not None:
            temporary = tempfile.TemporaryDirectory(prefix="fastpart-", dir=tmp_dir)
            folders.append(Path(stack.enter_context(temporary)))
        if target is not None:
            folders.append(stack.enter_context(folder_beside(target)))
        yield folders[-1], folders[0]


def reported(outputs: Iterator[Output], count: int, run: RunOptions) -> Iterator[Output]:
    """Yield outputs, each with its rows at the end, and report how many of so many rows there were."""
    done = 0
    for each in outputs:
        yield each
        done += len(each[-1])
        if run.progress is not None:
            run.progress("predict", done, count)


def _outputs(
    dataset: AnyDataset[Any],
    network: nn.Module,
    options: Options,
    layers: int,
    free: int,
    folder: Path,
    chosen: Chosen,
    learned: Mapping[str, npt.NDArray[Any]] | None = None,
) -> VertexOutputs:
    if isinstance(dataset, Dataset):
        parts = dataset.partition.parts
        fits = fitting(dataset, options, free)
        here, free = list(range(len(parts))), free // 2
        inference = Inference(dataset, here, folder, layers, fits=fits, free_bytes=free)
        inference.put_inputs(learned_of(dataset, learned or {}))

        def inner(part: int) -> npt.NDArray[np.int64]:
            return np.asarray(dataset.labelled(parts[part]).inner)

        for part, vertices, outputs in inference.outputs(
            network, lambda part: chosen.mask(inner(part)), layers
        ):
            yield inner(part)[vertices], outputs
        return
    # A part of the edges has no whole rows, so the graph is put together in memory.
    local = dataset.whole()
    with torch.no_grad():
        network.eval()
        if isinstance(network, Network):
            x = local.features
            for index in range(layers):
                x = network.layer(index, local.graph, x)
        else:
            x = network([local.graph] * layers, local.features)
    known = np.asarray(local.vertices)
    mask = chosen.mask(known)
    yield known[mask], x[torch.from_numpy(mask)]


def learned_of(
    dataset: Dataset, learned: Mapping[str, npt.NDArray[Any]]
) -> Callable[[str, int], npt.NDArray[Any]]:
    """Return what finds the learned rows of a type in a part."""
    if missing := [name for name in dataset.task.learned if name not in learned]:
        raise ParameterError(
            f"run: the training has not ended, and writes the learned rows of {missing[0]!r} in its end. Go on with "
            "it: resume()"
        )
    vertices = {name: range_of_type(dataset.partition, name) for name in dataset.task.learned}
    for name, ids in vertices.items():
        if len(learned[name]) != len(ids):
            raise ParameterError(
                f"source: {shown(dataset.path)} has {len(ids):,} vertices of {name!r}, but the model has learned "
                f"{len(learned[name]):,} rows of theirs. Pass a partition of the graph that it was trained on"
            )

    def of_part(name: str, part: int) -> npt.NDArray[Any]:
        return np.asarray(learned[name][dataset.types[name][part].inner - vertices[name].start])

    return of_part


def rows_of(what: Predicted, outputs: Tensor, defined: Tensor, task: Task) -> npt.NDArray[Any]:
    """Return what a user asks for, given outputs and a mask of those that say something."""
    if what == "classes":
        return answers_of(outputs, defined, task)
    if what == "probabilities":
        found = outputs.sigmoid() if task.multilabel else outputs.softmax(1)
        return found.masked_fill(~defined.unsqueeze(1), torch.nan).numpy()
    return outputs.numpy()


def answers_of(logits: Tensor, defined: Tensor, task: Task) -> npt.NDArray[Any]:
    """Return the classes that logits stand for, or the numbers of a regression."""
    if task.regression:
        return logits.squeeze(1).numpy() if task.classes == 1 else logits.numpy()
    if task.multilabel:
        return (logits > 0).to(torch.uint8).masked_fill(~defined.unsqueeze(1), UNKNOWN).numpy()
    return logits.argmax(1).masked_fill(~defined, -1).numpy()


class OutputRows:
    """Rows of the wanted vertices or records, in memory or in a file. ``item`` is the word for one of them."""

    def __init__(self, chosen: Chosen, file: Path | None, item: str = "vertex") -> None:
        self._chosen, self._file, self._item = chosen, file, item
        self._rows: npt.NDArray[Any] | None = None
        self._unwritten = self._undefined = 0
        self._first = np.iinfo(np.int64).max

    def put(self, vertices: npt.NDArray[np.int64], rows: npt.NDArray[Any], defined: Tensor) -> None:
        """Set the rows of vertices. ``defined`` tells which of them say something."""
        if not defined.all():
            undefined = vertices[~defined.numpy()]
            self._undefined += len(undefined)
            self._first = min(self._first, int(undefined.min()))
        if self._rows is None:
            shape = (self._chosen.count, *rows.shape[1:])
            if self._file is None:
                self._rows = np.zeros(shape, rows.dtype)
            else:
                self._rows = created(self._file, rows.dtype, shape)
        self._rows[self._chosen.places(vertices)] = rows
        self._unwritten += rows.nbytes
        if self._file is not None and self._unwritten > PIECE_BYTES:
            self._rows.flush()  # type: ignore[union-attr]
            self._unwritten = 0

    def moved(self, target: Path | None) -> npt.NDArray[Any]:
        """Return the rows, or a map of them after the file has taken the place of the target."""
        assert self._rows is not None
        if self._undefined:
            first, several = f"{self._item} {self._first}", {"vertex": "vertices"}.get(self._item, "records")
            which = (
                first if self._undefined == 1 else f"{self._undefined} {several}, the first of them {first},"
            )
            warn(
                f"predict: the outputs of {which} are NaN or infinite. They stand for no class, which is -1, or "
                f"{UNKNOWN} in rows of several classes. Look for such numbers in the features there and of neighbours",
                GraphWarning,
            )
        if self._file is None or target is None:
            return self._rows
        self._rows.flush()  # type: ignore[attr-defined]
        os.replace(self._file, target)
        mapped: npt.NDArray[Any] = np.lib.format.open_memmap(target, "r")
        return mapped
