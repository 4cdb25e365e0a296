"""``distgnn``: start one worker for each part of an edge partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ...core.parameters import StrPath
from ..config import Call, Options
from ..edge_data import EdgeDataset
from ..full_graph import launch
from ..full_graph.part import Tools
from ..full_graph.trial import try_model
from ..full_graph.wire import Lists
from ..memory import MORE_PARTS, Need, full_batch, graph_bytes, number_bytes, weights, widths
from ..scores import Task
from ..trainer import Totals, Trainer
from .local import Copies
from .part import checked, part_of


class Driver(launch.Driver):
    """Starts one worker for each part of the edges."""

    dataset: EdgeDataset

    def __init__(self, trainer: Trainer, source: StrPath, call: Call) -> None:
        totals = trainer.exchange
        assert isinstance(totals, Totals)
        how, dataset = checked(totals.delay, totals.exchange), EdgeDataset(source)
        super().__init__(trainer, call, dataset, dataset.partition.k)
        self.how = how

    def try_model(self) -> None:
        """Refuse a model that cannot be trained over parts."""
        _try(self.task, self.options, self.how)

    def summary(self) -> dict[str, Any]:
        """Return what the summary says of messages and parts."""
        replicated = self.dataset.manifest.get("summary", {}).get("rf")
        return {**self.how, "parts": self.workers, "replication_factor": replicated}

    def needs(self) -> tuple[Sequence[Need], Sequence[Need]]:
        """Return what each worker takes: its part, sums of the features, activations, and messages under way."""
        options, task, parts = self.options, self.task, self.dataset.partition.parts
        n, edges = max(len(part.vertices) for part in parts), max(part.num_edges for part in parts)
        late = sum(out for _, out in widths(options, task)) * 4 * 8 * n if self.how["delay"] else 0
        return [
            Need("a part of the edges", graph_bytes(options, n, edges, task.features), MORE_PARTS),
            Need("sums of its features", 2 * number_bytes(options) * n * task.features, MORE_PARTS),
            Need("activations", full_batch(options, task, n, n, edges), "a smaller hidden="),
            Need("messages under way", late, "delay=0"),
            weights(options, task),
        ], ()


def _try(task: Task, options: Options, how: dict[str, Any]) -> None:
    """Try the model on two vertices and the edges between them."""
    none = torch.empty(0, dtype=torch.int64)
    shape = (2, task.classes) if task.multilabel else (2,)
    two = Copies(
        num_roots=2,
        vertices=torch.arange(2),
        degree=torch.ones(2, dtype=torch.int64),
        indptr=np.arange(3),
        indices=np.array([1, 0], np.int32),
        features=torch.ones(2, task.features),
        labels=torch.zeros(shape),
        splits={"train": none, "val": none, "test": none},
        up=Lists([none]),
        down=Lists([none]),
    )
    part = part_of(two, task, 1, options, how, Tools.alone())
    part.begin(0)
    try_model(task, options, part.layers)
