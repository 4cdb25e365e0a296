"""Centralized training, the reference without parts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import torch

from ...core.parameters import StrPath
from ...core.processes import anonymous_bytes
from ..beginning import begin
from ..config import Call, Options
from ..data import AnyDataset, LocalGraph
from ..edge_data import open_dataset
from ..history import History
from ..identity import data_of, must_agree
from ..jobs.group import refuse_few_gpus
from ..learner import Learner
from ..loop import train
from ..memory import BatchSize, Need, batches, full_batch, graph_bytes, left_by, size_of, weights
from ..metrics import Scores
from ..models import NEIGHBOUR, sampling_of
from ..run_folder import claimed
from ..scores import Task, unscored
from ..settings import torch_settings
from ..steps import train_epoch
from ..trainable import refuse_unfit
from ..trained import TrainedModel
from ..trainer import Trainer
from ..validation import refuse_patience_without_validation


def start(trainer: Trainer, source: StrPath, given: Mapping[str, Any]) -> TrainedModel:
    """Train on the whole graph in this process."""
    call = Call.of(given)
    options, run = call.options, call.run
    dataset = open_dataset(source)
    refuse_patience_without_validation(dataset, options)
    refuse_unfit(dataset.task, options)
    refuse_few_gpus(call.device, 1)
    left_by(needs(dataset, options), run)
    folder = claimed(call.out, call.resume, call.overwrite)
    if folder is not None:
        must = must_agree(trainer.method, options, {}, data_of(dataset.path, dataset.manifest))
        begin(folder, call.resume, options, must, dataset.path, dataset.task)
    with torch_settings(run.threads, options.seed), nullcontext() if folder is None else folder.kept():
        history = History(trainer.method, options, folder, call.resume)
        local = dataset.whole(torch.device(call.device))
        summary = train(
            lambda state: _Trainer(dataset.task, options, local, state),
            history,
            call.report,
            steps=call.steps,
        )
        trained = TrainedModel.of(trainer.method, dataset.task, history, summary)
        history.finish(vars(dataset.task), trained.summary)
        return trained


def needs(dataset: AnyDataset[Any], options: Options) -> list[Need]:
    """Return what the process takes: the graph, its activations, and those of batches if it trains on them."""
    (n, edges), task = size_of(dataset), dataset.task
    whole = options.batch_size is None and sampling_of(options.model) == NEIGHBOUR
    found = [
        Need("the whole graph", graph_bytes(options, n, edges, task.features), "sampled, which maps it"),
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
        self.learner = Learner(task, options, state, local.device)
        local.features = local.features.to(self.learner.dtype)
        self.network = self.learner.network
        self._random = torch.Generator().manual_seed(options.seed)
        if state:
            self._random.set_state(state["order"])

    def round(self, epochs: int, scored: bool) -> dict[str, Any]:
        """Train one epoch and return its row. ``epochs`` is always 1."""
        start = time.perf_counter()
        loss, seen = train_epoch(self.learner, self._local, self._options, self._random)
        self.learner.end_epochs()
        seconds = time.perf_counter() - start
        return {
            "loss": loss / max(seen, 1),
            **(self._scores(["val"]) if scored else unscored(self._task, self._options.metrics)),
            "seconds": seconds,
            "remote_bytes": 0,
            "worker_bytes": anonymous_bytes(),
        }

    def state(self) -> dict[str, Any]:
        """Return what a resume needs."""
        return {**self.learner.state(), "order": self._random.get_state()}

    def final(self, best: dict[str, torch.Tensor]) -> dict[str, float]:
        """Return the scores of the best weights."""
        self.learner.put(best)
        return self._scores(["val", "test"])

    @torch.no_grad()
    def _scores(self, splits: list[str]) -> dict[str, float]:
        """Return the scores of some splits, from all neighbours."""
        local = self._local
        self.network.eval()
        logits = self.network([local.graph] * self._options.layers, local.features)
        scores = Scores(self._task, self._options.metrics, splits)
        for split in splits:
            ids = local.splits[split]
            scores.add(split, logits[ids], local.labels[ids])
        return scores.of_all()
