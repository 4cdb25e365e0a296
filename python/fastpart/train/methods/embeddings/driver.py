"""``embeddings``: start workers for a partition directory with edge splits, of a graph with types or without."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import torch

from ....errors import arg
from ....graphs.weights import checked_relation_weights
from ....partitions.partition import PartitionSource
from ....partitions.types import range_of_type
from ...data.learned_rows import EMBEDDINGS, HARD_NEGATIVES, NEW_EMBEDDINGS, files_of, learned_files
from ...jobs import driver
from ...jobs.launch import Launch, number_of_workers
from ...memory import BatchSize, Need, batches, number_bytes, size_of, weights
from ...method_options import EmbeddingOptions
from ...registry import Method
from ...runs.trained import TrainedModel
from ..links.dataset import digest_of
from ..links.decoders import relation_network
from .dataset import FactDataset
from .trained import TrainedEmbeddings

_DECISIVE = (
    "width",
    "decoder",
    "reciprocal",
    "objective",
    "num_hard_negatives",
    "candidates",
    "relation_weights",
    "encoded",
    "row_width",
)
"""Parameters that decide the results."""


class Driver(driver.Driver):
    """Starts workers that learn rows of vertices and relations."""

    synchronised = True
    told = ("halo_rf",)
    dataset: FactDataset

    options: EmbeddingOptions

    def __init__(self, method: Method, source: PartitionSource, options: EmbeddingOptions) -> None:
        dataset = FactDataset(source)
        if options.encoder is not None:
            options = replace(options, model=options.encoder, encoder=None, encoded=True)
        if options.relation_weights is not None:
            known = None if dataset.typed is None else dataset.typed.relations
            weights = checked_relation_weights(known, options.relation_weights)
            options = replace(options, relation_weights=weights)
        count = number_of_workers(dataset.partition.k, options.workers, options)
        super().__init__(method, options, dataset, count, options.workers)
        self.reads_features = options.encoded
        self._hard = dataset.hard_negatives(options.hard)
        own = {name: getattr(options, name) for name in _DECISIVE} | {"negatives": options.numbers}
        self.decisive = own | {"relations": dataset.num_relations, "hard_negatives": digest_of(self._hard)}
        self.task = dataset.task_of(options.width, options, options.encoded)
        self.make = relation_network(options.decoder, dataset.num_relations, options.reciprocal)
        self.example = torch.zeros(2), torch.zeros(2)

    @property
    def _learned(self) -> tuple[str, ...]:
        """The types whose rows are learned as inputs of an encoder."""
        return self.task.learned

    def guessing(self) -> None:
        """Return nothing: the loss of guessing depends on the objective and on what there is to tell apart."""

    def prepare(self, launch: Launch, stack: ExitStack) -> None:
        """Note the files of learned rows, and hand over the table of hard negatives."""
        k = self.dataset.partition.k
        entries = [EMBEDDINGS, NEW_EMBEDDINGS, *learned_files(self._learned, k)]
        if not self.options.encoded:
            entries += files_of(k)
        launch.once(lambda: launch.folder.add(entries))
        if (table := self._hard) is not None:
            launch.once(lambda: np.save(launch.scratch / HARD_NEGATIVES, table))

    def finished(self, launch: Launch, trained: TrainedModel) -> TrainedEmbeddings:
        """Return the result with its learned rows."""
        file = launch.folder.path / EMBEDDINGS
        learned = np.load(file, mmap_mode=None if trained.out is None else "r")
        return TrainedEmbeddings._of_training(trained, self.decisive, learned)

    def needs(self) -> tuple[Sequence[Need], Sequence[Need]]:
        """Return what each worker takes."""
        dataset, options, n = self.dataset, self.options, len(self.dataset.partition)
        width, number = options.row_width, number_bytes(self.options)
        facts, relations = (
            sum(dataset.manifest["edge_splits"].values()),
            (1 + options.reciprocal) * dataset.num_relations,
        )
        size = min(self.options.batch_size or dataset.num_train, dataset.num_train)
        whole = {"uniform": n, "batch": min(size, n)}
        pool = sum(whole[kind] if each == "all" else each for kind, each in options.numbers.items())
        hard = 0 if options.hard is None else options.num_hard_negatives
        rows = min(2 * (size + pool) + size * hard, n + pool)
        block = min(n, 1 << 14)
        return [
            Need("facts of all workers, and those that are known", 150 * facts),
            *(self._encoder_needs(rows) if options.encoded else self._row_needs()),
            Need("rows of relations and their Adam", 7 * number * width * relations, "smaller rows"),
            Need(
                "logits of a step",
                2 * size * (pool + hard) * (4 * number + 2),
                f"a smaller {arg('batch_size')}",
            ),
            Need("rows of a step", 8 * number * width * (rows + 3 * size), f"a smaller {arg('batch_size')}"),
            Need("ranks of a block", (40 * 256 + 16 * width) * block),
        ], ()

    def _row_needs(self) -> list[Need]:
        """Return what learned rows of a worker's parts take, with their Adam and the best ones."""
        partition = self.dataset.partition
        part, parts = max(each.num_inner for each in partition.parts), -(-partition.k // self.workers)
        size = 5 * number_bytes(self.options) * self.options.width * part * parts
        return [Need("embeddings and their Adam", size, f"a smaller {arg('width')}")]

    def _encoder_needs(self, rows: int) -> list[Need]:
        """Return what an encoder takes with its batches, for so many vertices of a step."""
        options, dataset, task = self.options, self.dataset, self.task
        n, edges = size_of(dataset)
        fanouts = task.most_in_edges(dataset.fanouts(options))
        size = BatchSize.sampled(min(rows, n), fanouts, n, edges)
        learned = sum(len(range_of_type(dataset.partition, name)) for name in task.learned) // self.workers
        return [
            weights(options, task),
            *batches(options, task, size, number_bytes(options) * max(task.input_widths(0).values())),
            Need(
                "learned rows and their Adam",
                5 * number_bytes(options) * options.hidden * learned,
                f"a smaller {arg('hidden')}",
            ),
        ]
