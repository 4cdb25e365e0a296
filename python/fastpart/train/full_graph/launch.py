"""``distgnn`` and ``sancus``: start one worker for each part of a partition directory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.parameters import StrPath
from ...errors import ParameterError
from ...runtime.environment import found
from ..config import Call, Options
from ..data import AnyDataset
from ..jobs.launch import launching
from ..memory import MORE_PARTS, Need, full_batch, graph_bytes, number_bytes, weights
from ..trainable import refuse_before_workers
from ..trained import TrainedModel
from ..trainer import OVER, Trainer
from .exchange import Exchange
from .training import EXCHANGES
from .trial import try_model


def start(trainer: Trainer, source: StrPath, given: Mapping[str, Any]) -> TrainedModel:
    """Start one worker for each part."""
    call, exchange = Call.of(given), EXCHANGES[OVER[trainer.method]]
    options, how = call.options, exchange.checked(**vars(trainer.exchange))
    dataset = exchange.dataset(source)
    k = dataset.partition.k
    refuse_before_workers(dataset.task, options, k, synchronised=True)
    try_model(dataset.task, options, exchange, how)
    if (ranks := found()) is not None and ranks.size != k:
        raise ParameterError(
            f"source: {k} parts for {ranks.size} processes. Start one process per part: --nnodes times "
            "--nproc-per-node of torchrun"
        )
    summary, needed = exchange.summary(how, dataset), needs(exchange, how, dataset, options)
    with launching(call) as launch:
        return launch.train(trainer.method, options, how, dataset, k, summary, needed)


def needs(
    exchange: type[Exchange], how: Mapping[str, Any], dataset: AnyDataset[Any], options: Options
) -> list[Need]:
    """Return what each worker takes: its part, the sums of the features, activations, and messages."""
    task, parts = dataset.task, dataset.partition.parts
    rows = max(part.num_inner for part in parts)
    edges = max(int(part.indptr[part.num_inner]) for part in parts)
    return [
        Need(exchange.held, graph_bytes(options, rows, edges, task.features), MORE_PARTS),
        Need("sums of its features", 2 * number_bytes(options) * rows * task.features, MORE_PARTS),
        Need("activations", full_batch(options, task, rows, rows, edges), "a smaller hidden="),
        *exchange.needs(how, dataset, options, rows),
        weights(options, task),
    ]
