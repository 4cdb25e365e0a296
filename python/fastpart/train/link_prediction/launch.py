"""``links``: start workers for a partition directory with edge splits."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch

from ... import _core
from ...core import parameters
from ...errors import ParameterError
from ...loading.cached_rows import checked
from ...loading.negatives import NEGATIVE_RULES
from ...partitions.partition import PartitionSource
from ..config import Call
from ..embedding_table import NEW_EMBEDDINGS, files_of
from ..file_names import EMBEDDINGS
from ..jobs import driver
from ..jobs.chance import of_pairs
from ..jobs.group import number_of_workers
from ..jobs.launch import Launch
from ..jobs.unlearned import Guessing
from ..memory import (
    BatchSize,
    Need,
    batches,
    edge_row_bytes,
    evaluation,
    number_bytes,
    row_bytes,
    size_of,
    weights,
)
from ..mini_batches.temporal import refuse_degrees, temporal_rule
from ..models import NEIGHBOUR, sampling_of
from ..runs.trained import TrainedModel
from ..scores import Task
from ..trainer import Ahead, InputRows, Pairs, Trainer
from .dataset import LinkDataset
from .decoders import OF_PAIRS, network_with
from .temporal import refuse_look_ahead
from .trained import TrainedLinks


def kept(rows: InputRows) -> dict[str, Any]:
    """Return how rows of features are read and which a worker keeps, checked. It does not change losses."""
    cached = checked(rows.cache, rows.cache_by)
    return {
        "io": parameters.rows_io(rows.io),
        "cache": None if cached is None else cached.given,
        "cache_by": rows.cache_by,
        "resident": parameters.memory_size(rows.resident, "resident", 0),
    }


class Driver(driver.Driver):
    """Starts workers for a partition directory with edge splits."""

    synchronised = True
    dataset: LinkDataset

    def __init__(self, trainer: Trainer, source: PartitionSource, call: Call) -> None:
        pairs, made, rows, options = trainer.batches, trainer.made, trainer.exchange, call.options
        assert isinstance(pairs, Pairs)
        assert isinstance(made, Ahead)
        assert isinstance(rows, InputRows)
        if sampling_of(options.model) != NEIGHBOUR:
            raise ParameterError(
                f"model: {options.model!r} trains on sampled graphs, which link prediction has not"
            )
        asked, dataset = call.workers, LinkDataset(source)
        if rows.embeddings is None and not dataset.task.features:
            raise ParameterError(
                "embeddings: the directory has no features. Pass the width of a learnable row of each vertex, for "
                "example embeddings=64, or save the partition with features="
            )
        width = None
        if rows.embeddings is not None:
            width = parameters.integer("embeddings", rows.embeddings, 1, 2**16)
        decoder = parameters.choice("decoder", pairs.decoder, OF_PAIRS)
        how: dict[str, Any] = {
            "decoder": decoder,
            "negatives": parameters.choice("negatives", pairs.negatives, NEGATIVE_RULES),
            "num_negatives": parameters.integer("num_negatives", pairs.num_negatives, 1, 2**16),
            "candidates": parameters.integer("candidates", pairs.candidates, 1, 2**31 - 1),
            "embeddings": width,
        }
        temporal = temporal_rule(pairs.temporal)
        if temporal is not None:
            refuse_look_ahead(dataset)
            how["temporal"] = temporal
        ahead = parameters.integer("ahead", made.batches, 0, 2**10)
        processors = call.run.threads or _core.default_threads()
        if call.device == "cuda":
            processors = torch.cuda.device_count()
        count = number_of_workers(dataset.partition.k, asked, processors)
        super().__init__(trainer, call, dataset, count, asked)
        self.how, self.running, self._width = how, {"ahead": ahead, **kept(rows)}, width
        known = dataset.task
        self.task = Task(
            known.features + (width or 0), options.hidden, multilabel=False, edge_features=known.edge_features
        )
        self.make, self.example = network_with(decoder), (torch.zeros(2), torch.zeros(2))
        if temporal is not None:
            refuse_degrees(self.task, options)

    def guessing(self) -> Guessing | None:
        """Return how the network looks if it gives all vertices the same row."""
        return None if self.options.loss is not None else Guessing(of_pairs(self.how["num_negatives"]))

    def prepare(self, launch: Launch, stack: ExitStack) -> None:
        """Note the files of learned rows."""
        self.running["out"] = os.path.abspath(launch.folder.path)
        if self._width is not None:
            entries = [EMBEDDINGS, NEW_EMBEDDINGS, *files_of(self.dataset.partition.k)]
            launch.once(lambda: launch.folder.add(entries))

    def finished(self, launch: Launch, trained: TrainedModel) -> TrainedLinks:
        """Return the result with its learned rows."""
        learned = None
        if self._width is not None:
            file = launch.folder.path / EMBEDDINGS
            learned = np.load(file, mmap_mode=None if trained.out is None else "r")
        return TrainedLinks(**vars(trained), decoder=self.how["decoder"], embeddings=learned)

    def needs(self) -> tuple[Sequence[Need], Sequence[Need]]:
        """Return what each worker takes."""
        dataset, options, how, workers = self.dataset, self.options, self.how, self.workers
        (n, edges), training, pairs = size_of(dataset), dataset.num_train, 1 + how["num_negatives"]
        width, part = self._width or 0, max(each.num_inner for each in dataset.partition.parts)
        seeds = min(n, (1 + pairs) * -(-(options.batch_size or training) // workers))
        size = BatchSize.sampled(seeds, options.fanouts, n, edges)
        parts, own = -(-dataset.partition.k // workers), -(-training // workers)
        resident = min(self.running["resident"] or 0, n * dataset.partition.parts[0].feature_bytes)
        learned = number_bytes(options) * width * part * (3 * parts + 3)
        learned += 4 * part * (self.task.features if width else 0)
        return [
            weights(options, self.task),
            *batches(
                options, self.task, size, row_bytes(dataset) + 8 * width, 4 + edge_row_bytes(dataset, options)
            ),
            *evaluation(dataset, options, parts),
            Need(
                "places of rows that are kept",
                4 * n * sum(map(bool, self._kept)),
                "no cache= and no resident=",
            ),
            Need("resident rows", resident if self.call.device == "cpu" else 0, "a smaller resident="),
            Need("edges to train on", 50 * training + 100 * own * pairs, "fewer num_negatives="),
            Need("embeddings and their Adam", learned, "smaller embeddings="),
            Need("candidates", 16 * options.hidden * min(n, how["candidates"]), "fewer candidates="),
        ], ()

    @property
    def _kept(self) -> list[Any]:
        """What of rows a worker keeps."""
        return [self.running["cache"], self.running["resident"]]

    def summary(self) -> dict[str, Any]:
        """Return what the summary says of parts and workers. Links have no labels."""
        facts = super().summary()
        del facts["label_skew"]
        return facts
