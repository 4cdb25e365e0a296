"""``distgnn``: start one worker for each part of an edge partition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from ...core.parameters import StrPath
from ..config import Call, Options
from ..edge_data import EdgeDataset
from ..full_graph.launch import train
from ..full_graph.part import Tools
from ..full_graph.trial import try_model
from ..full_graph.wire import Lists
from ..memory import MORE_PARTS, Need, full_batch, graph_bytes, number_bytes, weights, widths
from ..scores import Task
from ..trainable import refuse_before_workers
from ..trained import TrainedModel
from ..trainer import Totals, Trainer
from .local import Copies
from .part import checked, part_of


def start(trainer: Trainer, source: StrPath, given: Mapping[str, Any]) -> TrainedModel:
    """Start one worker for each part."""
    call, totals = Call.of(given), trainer.exchange
    assert isinstance(totals, Totals)
    options, how = call.options, checked(totals.delay, totals.exchange)
    dataset = EdgeDataset(source)
    refuse_before_workers(dataset.task, options, dataset.partition.k, synchronised=True)
    _try(dataset.task, options, how)
    measured = dataset.manifest.get("summary", {})
    summary = {
        "delay": how["delay"],
        "exchange": how["exchange"],
        "parts": dataset.partition.k,
        "replication_factor": measured.get("rf"),
    }
    return train(trainer.method, call, how, dataset, summary, needs(dataset, options, how))


def needs(dataset: EdgeDataset, options: Options, how: Mapping[str, Any]) -> list[Need]:
    """Return what each worker takes: its part, the sums of the features, activations, and messages under way."""
    task, parts = dataset.task, dataset.partition.parts
    n, edges = max(len(part.vertices) for part in parts), max(part.num_edges for part in parts)
    late = sum(out for _, out in widths(options, task)) * 4 * 8 * n if how["delay"] else 0
    return [
        Need("a part of the edges", graph_bytes(options, n, edges, task.features), MORE_PARTS),
        Need("sums of its features", 2 * number_bytes(options) * n * task.features, MORE_PARTS),
        Need("activations", full_batch(options, task, n, n, edges), "a smaller hidden="),
        Need("messages under way", late, "delay=0"),
        weights(options, task),
    ]


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
