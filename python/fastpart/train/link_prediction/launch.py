"""``links``: start workers for a partition directory with edge splits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from ... import _core
from ...core import parameters
from ...core.parameters import StrPath
from ...errors import ParameterError
from ...loading.negatives import NEGATIVE_RULES
from ..config import Call, Options
from ..jobs.group import number_of_workers
from ..jobs.launch import launching
from ..memory import BatchSize, Need, batches, evaluation, row_bytes, size_of, weights
from ..models import NEIGHBOUR, sampling_of
from ..run_folder import EMBEDDINGS
from ..scores import Task
from ..trainable import refuse_before_workers
from ..trainer import Ahead, InputRows, Pairs, Trainer
from .dataset import LinkDataset
from .decoders import DECODERS, network_with
from .embeddings import files_of
from .trained import TrainedLinks
from .training import NEW_EMBEDDINGS


def start(trainer: Trainer, source: StrPath, given: Mapping[str, Any]) -> TrainedLinks:
    """Start the workers."""
    call, pairs, made, rows = Call.of(given), trainer.batches, trainer.made, trainer.exchange
    assert isinstance(pairs, Pairs)
    assert isinstance(made, Ahead)
    assert isinstance(rows, InputRows)
    options, embeddings = call.options, rows.embeddings
    if sampling_of(options.model) != NEIGHBOUR:
        raise ParameterError(
            f"model: {options.model!r} trains on sampled graphs, which link prediction has not"
        )
    asked = call.workers
    dataset = LinkDataset(source)
    if embeddings is None and not dataset.task.features:
        raise ParameterError(
            "embeddings: the directory has no features. Pass the width of a learnable row of each vertex, for example "
            "embeddings=64, or save the partition with features="
        )
    width = None if embeddings is None else parameters.integer("embeddings", embeddings, 1, 2**16)
    decoder = parameters.choice("decoder", pairs.decoder, DECODERS)
    how = {
        "decoder": decoder,
        "negatives": parameters.choice("negatives", pairs.negatives, NEGATIVE_RULES),
        "num_negatives": parameters.integer("num_negatives", pairs.num_negatives, 1, 2**16),
        "candidates": parameters.integer("candidates", pairs.candidates, 1, 2**31 - 1),
        "embeddings": width,
    }
    count = number_of_workers(dataset.partition.k, asked, call.run.threads or _core.default_threads())
    encoded = Task(dataset.task.features + (width or 0), options.hidden, multilabel=False)
    pair = torch.zeros(2), torch.zeros(2)
    refuse_before_workers(encoded, options, count, network_with(decoder), pair, synchronised=True)
    summary = {"parts": dataset.partition.k, "workers": count}
    summary |= {name: dataset.manifest.get("summary", {}).get(name) for name in ("halo_rf",)}
    running: dict[str, Any] = {"ahead": parameters.integer("ahead", made.batches, 0, 2**10)}
    with launching(call, asked) as launch:
        running["out"] = os.path.abspath(launch.folder.path)
        if width is not None:
            entries = [EMBEDDINGS, NEW_EMBEDDINGS, *files_of(dataset.partition.k)]
            launch.once(lambda: launch.folder.add(entries))
        trained = launch.train(
            trainer.method,
            options,
            how,
            dataset,
            count,
            summary,
            needs(dataset, options, how, count),
            task=encoded,
            make=network_with(decoder),
            **running,
        )
        learned = None
        if width is not None:
            file = launch.folder.path / EMBEDDINGS
            learned = np.load(file, mmap_mode=None if trained.out is None else "r")
    return TrainedLinks(**vars(trained), decoder=decoder, embeddings=learned)


def needs(dataset: LinkDataset, options: Options, how: Mapping[str, Any], workers: int) -> list[Need]:
    """Return what each worker takes."""
    (n, edges), training, pairs = size_of(dataset), dataset.num_train, 1 + how["num_negatives"]
    width, part = how["embeddings"] or 0, max(each.num_inner for each in dataset.partition.parts)
    task = Task(dataset.task.features + width, options.hidden, multilabel=False)
    seeds = min(n, (1 + pairs) * -(-(options.batch_size or training) // workers))
    size = BatchSize.sampled(seeds, options.fanouts, n, edges)
    parts, own = -(-dataset.partition.k // workers), -(-training // workers)
    learned = 4 * width * part * (3 * parts + 3) + 4 * part * (task.features if width else 0)
    candidates = 16 * options.hidden * min(n, how["candidates"])
    return [
        weights(options, task),
        *batches(options, task, size, row_bytes(dataset) + 8 * width),
        *evaluation(dataset, options, parts),
        Need("edges to train on", 50 * training + 100 * own * pairs, "fewer num_negatives="),
        Need("embeddings and their Adam", learned, "smaller embeddings="),
        Need("candidates", candidates, "fewer candidates="),
    ]
