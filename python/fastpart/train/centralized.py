"""Centralized training, the reference without parts."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any, Unpack

import torch

from ..core import parameters
from ..core.parameters import StrPath
from ..core.processes import anonymous_bytes
from .beginning import begin
from .config import BatchTraining, Options, options_of, report_of, trains
from .data import AnyDataset, LocalGraph
from .edge_data import open_dataset
from .history import History
from .identity import data_of, must_agree
from .learner import Learner
from .loop import train
from .memory import BatchSize, Need, batches, full_batch, graph_bytes, left_by, size_of, weights
from .models import NEIGHBOUR, sampling_of
from .run_folder import claimed
from .scores import Task, scores_of
from .settings import torch_settings
from .steps import train_epoch
from .trained import TrainedModel
from .validation import refuse_patience_without_validation


@trains
def full(
    source: StrPath,
    *,
    out: StrPath | None = None,
    resume: bool = False,
    overwrite: bool = False,
    **training: Unpack[BatchTraining],
) -> TrainedModel:
    """Train on the whole graph in one process.

    This is the reference for methods that train over parts. Models and options are the same.

    Parameters
    ----------
    source : path
        A partition directory of vertices or of edges, saved with ``graph=``, ``features=``, ``labels=`` and
        ``splits=``. The result does not depend on the parts.
    model : str or callable
        A built-in model (graphsage, graphsage-gcn, gcn, gin, gat, gatv2, sgc, clustergcn, graphsaint, ngnn), an import
        path ``module:Class`` or ``file.py:Class``, or a class that returns a ``torch.nn.Module`` for ``(task,
        options)``. Batch normalisation is trained in one process only, so methods with several workers refuse it.
    hidden : int
        Width of the hidden layers. With attention, width of each head.
    layers : int
        Number of layers.
    heads : int
        Number of attention heads. Models without attention ignore it.
    dropout : float
        Share of the outputs of each hidden layer that is dropped.
    lr : float
        Learning rate of Adam.
    weight_decay : float
        Weight decay of Adam.
    epochs : int
        Maximum number of epochs.
    batch_size : int, optional
        Training vertices per step, with sampled neighbours. Default: all at once, with all neighbours. Models that
        train on sampled graphs (``clustergcn``, ``graphsaint``) by default take about a tenth in each graph.
    fanouts : sequence of int, optional
        Neighbours to sample per vertex in each hop, from the training vertices on. -1 takes all. Default: 10 each.
    patience : int, optional
        Number of epochs without a better validation score (micro-F1) after which training ends. It needs validation
        vertices. Without any, the last epoch counts as the best.
    seed : int
        Seed of weights, dropout and samples.
    out : path, optional
        A folder for ``checkpoint.pt``, ``best.pt`` (weights only) and ``history.parquet``. ``fastpart-run.json`` lists
        what belongs to the training. All else in the folder stays as it is. Its parent must exist.
    resume : bool
        Continue from the checkpoint in ``out``, if there is one. ``epochs``, ``patience`` and what does not change the
        losses may be different then.
    overwrite : bool
        Remove the training that ``out`` holds. Without this and ``resume`` it is refused.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`. The threads are torch's. The step of ``progress`` is "epoch". The memory limit
        is for all processes of the training on this machine. What they need is stated before the start.
    on_epoch : callable, optional
        Called with each new row of the history, a dict, as loggers need it.

    Returns
    -------
    TrainedModel
        With the weights of the epoch with the best validation score.

    Raises
    ------
    ParameterError
        An invalid parameter, or a directory without features, labels or splits.
    GraphFormatError
        A damaged directory or checkpoint.
    MemoryBudgetError
        The memory limit does not hold the training. The text says what needs how much.

    Notes
    -----
    The process holds the graph, the features and the activations of all vertices. With mini-batches it holds the
    activations of a batch, but evaluation still needs those of all vertices. Scores are exact, with all neighbours.

    Examples
    --------
    >>> import numpy as np, fastpart as fp, tempfile
    >>> folder = tempfile.mkdtemp() + "/parts"
    >>> ring = np.array([[i, (i + 1) % 12] for i in range(12)])
    >>> labels = np.arange(12) // 6
    >>> splits = {"train": [0, 3, 6, 9], "val": [1, 7], "test": [2, 8]}
    >>> fp.VertexPartition(labels, k=2).save(
    ...     folder, graph=ring, features=np.eye(2, dtype=np.float32)[labels], labels=labels, splits=splits
    ... )
    >>> fp.train.full(folder, epochs=20).summary["test_accuracy"]
    1.0
    """
    options, run = options_of(training)
    dataset = open_dataset(source)
    refuse_patience_without_validation(dataset, options)
    left_by(needs(dataset, options), run)
    report = report_of(training, run, options.epochs)
    folder = claimed(out, parameters.flag("resume", resume), parameters.flag("overwrite", overwrite))
    if folder is not None:
        must = must_agree("full", options, {}, data_of(dataset.path, dataset.manifest))
        begin(folder, resume, options, must, dataset.path, dataset.task)
    with torch_settings(run.threads, options.seed), nullcontext() if folder is None else folder.kept():
        history = History("full", options, folder, resume)
        local = dataset.whole()
        summary = train(lambda state: _Trainer(dataset.task, options, local, state), history, report)
        trained = TrainedModel.of("full", dataset.task, history, summary)
        history.finish(vars(dataset.task), trained.summary)
        return trained


def needs(dataset: AnyDataset[Any], options: Options) -> list[Need]:
    """Return what the process takes: the graph, its activations, and those of batches if it trains on them."""
    (n, edges), task = size_of(dataset), dataset.task
    whole = options.batch_size is None and sampling_of(options.model) == NEIGHBOUR
    found = [
        Need("the whole graph", graph_bytes(n, edges, task.features), "sampled, which maps it"),
        Need("activations", full_batch(options, task, n, n, edges, whole), "a smaller hidden="),
        weights(options, task),
    ]
    if not whole:
        size = BatchSize.of(options, options.batch_size or n, dataset.num_train, n, edges)
        found += batches(options, task, size, 4 * task.features)
    return found


class _Trainer:
    def __init__(self, task: Task, options: Options, local: LocalGraph, state: dict[str, Any]) -> None:
        self._task, self._options, self._local = task, options, local
        self._learner = Learner(task, options, state)
        self.network = self._learner.network
        self._random = torch.Generator().manual_seed(options.seed)
        if state:
            self._random.set_state(state["order"])

    def round(self, epochs: int) -> dict[str, Any]:
        """Train one epoch and return its row. ``epochs`` is always 1."""
        start = time.perf_counter()
        loss, seen = train_epoch(
            self._task, self.network, self._learner.adam, self._local, self._options, self._random
        )
        seconds = time.perf_counter() - start
        return {
            "loss": loss / max(seen, 1),
            **self._scores(["val"]),
            "seconds": seconds,
            "remote_bytes": 0,
            "worker_bytes": anonymous_bytes(),
        }

    def state(self) -> dict[str, Any]:
        """Return what a resume needs."""
        return {**self._learner.state(), "order": self._random.get_state()}

    def final(self, best: dict[str, torch.Tensor]) -> dict[str, float]:
        """Return the scores of the best weights."""
        self._learner.put(best)
        return self._scores(["val", "test"])

    @torch.no_grad()
    def _scores(self, splits: list[str]) -> dict[str, float]:
        """Return the scores of some splits, from all neighbours."""
        local = self._local
        self.network.eval()
        logits = self.network([local.graph] * self._options.layers, local.features)
        ids = [local.splits[split] for split in splits]
        return scores_of(splits, torch.stack([self._task.tally(logits[i], local.labels[i]) for i in ids]))
