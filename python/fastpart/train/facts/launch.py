"""``embeddings``: start workers for a partition directory with edge splits, of a graph with types or without."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch

from ... import _core
from ...core import parameters
from ...core.inputs import arrays_of
from ...core.parameters import StrPath
from ...core.parsing import mapped
from ...errors import ParameterError
from ...graphs.held_out import pairs_of
from ...graphs.relation_weights import checked_relation_weights
from ...partitions.partition import PartitionSource
from ..config import Call
from ..embedding_table import NEW_EMBEDDINGS, files_of
from ..file_names import EMBEDDINGS
from ..jobs import driver
from ..jobs.group import number_of_workers
from ..jobs.launch import Launch
from ..learned_rows import learned_files
from ..link_prediction.decoders import DECODERS, relation_network
from ..link_prediction.launch import kept
from ..memory import BatchSize, Need, batches, number_bytes, size_of, weights
from ..plugged.model_source import checked
from ..runs.trained import TrainedModel
from ..scores import TypedTask
from ..trainer import Ahead, Facts, InputRows, PoolRule, Trainer
from ..typed_data import bounds_of
from .dataset import FactDataset
from .objectives import OBJECTIVES
from .trained import TrainedEmbeddings

POOL_RULES: tuple[PoolRule, ...] = get_args(PoolRule)


class Driver(driver.Driver):
    """Starts workers that learn rows of vertices and relations."""

    synchronised = True
    dataset: FactDataset

    def __init__(self, trainer: Trainer, source: PartitionSource, call: Call) -> None:
        facts, made, rows, dataset = trainer.batches, trainer.made, trainer.exchange, FactDataset(source)
        assert isinstance(facts, Facts)
        assert isinstance(made, Ahead)
        assert isinstance(rows, InputRows)
        encoded = facts.encoder is not None
        if encoded:
            model = checked(facts.encoder, "encoder")
            call = replace(call, options=replace(call.options, model=model))
        how = _checked(facts, dataset)
        how |= {"encoded": encoded, "row_width": call.options.hidden if encoded else how["width"]}
        processors = call.run.threads or _core.default_threads()
        if call.device == "cuda":
            processors = torch.cuda.device_count()
        count = number_of_workers(dataset.partition.k, call.workers, processors)
        super().__init__(trainer, call, dataset, count, call.workers)
        self.reads_features = encoded
        self._hard = None if facts.hard_negatives is None else _hard(facts.hard_negatives, dataset)
        digest = None if self._hard is None else blake2b(self._hard.tobytes(), digest_size=16).hexdigest()
        self.how = how | {"hard_negatives": digest}
        self.running = {"ahead": parameters.integer("ahead", made.batches, 0, 2**10), **kept(rows)}
        self.task = dataset.task_of(how["width"], call.options, encoded)
        self.make = relation_network(how["decoder"], how["relations"], how["reciprocal"])
        self.example = torch.zeros(2), torch.zeros(2)

    @property
    def _learned(self) -> tuple[str, ...]:
        """The types whose rows are learned as inputs of an encoder."""
        return self.task.learned if isinstance(self.task, TypedTask) else ()

    def guessing(self) -> None:
        """Return nothing: the loss of guessing depends on the objective and on what there is to tell apart."""

    def prepare(self, launch: Launch, stack: ExitStack) -> None:
        """Note the files of learned rows, and hand over the table of hard negatives."""
        self.running["out"] = os.path.abspath(launch.folder.path)
        k = self.dataset.partition.k
        entries = [EMBEDDINGS, NEW_EMBEDDINGS, *learned_files(self._learned, k)]
        if not self.how["encoded"]:
            entries += files_of(k)
        launch.once(lambda: launch.folder.add(entries))
        self.running["hard"] = None
        if (table := self._hard) is not None:
            file = Path(launch.scratch, "hard-negatives.npy")
            launch.once(lambda: np.save(file, table))
            self.running["hard"] = str(file)

    def finished(self, launch: Launch, trained: TrainedModel) -> TrainedEmbeddings:
        """Return the result with its learned rows."""
        file = launch.folder.path / EMBEDDINGS
        learned = np.load(file, mmap_mode=None if trained.out is None else "r")
        return TrainedEmbeddings.of_training(trained, self.how, learned)

    def needs(self) -> tuple[Sequence[Need], Sequence[Need]]:
        """Return what each worker takes."""
        dataset, how, n = self.dataset, self.how, len(self.dataset.partition)
        width, number = how["row_width"], number_bytes(self.options)
        facts, relations = (
            sum(dataset.manifest["edge_splits"].values()),
            (1 + how["reciprocal"]) * how["relations"],
        )
        size = min(self.options.batch_size or dataset.num_train, dataset.num_train)
        pool = {"all": n, "batch": min(size, n)}.get(how["negatives"], how["num_negatives"])
        rows = min(2 * (size + pool), n + pool)
        block = min(n, 1 << 14)
        return [
            Need("facts of all workers, and those that are known", 150 * facts),
            *(self._encoder_needs(rows) if how["encoded"] else self._row_needs()),
            Need("rows of relations and their Adam", 7 * number * width * relations, "smaller rows"),
            Need("logits of a step", 2 * size * pool * (4 * number + 2), "a smaller batch_size="),
            Need("rows of a step", 8 * number * width * (rows + 3 * size), "a smaller batch_size="),
            Need("ranks of a block", (40 * 256 + 16 * width) * block),
        ], ()

    def _row_needs(self) -> list[Need]:
        """Return what learned rows of a worker's parts take, with their Adam and the best ones."""
        partition = self.dataset.partition
        part, parts = max(each.num_inner for each in partition.parts), -(-partition.k // self.workers)
        size = 5 * number_bytes(self.options) * self.how["width"] * part * parts
        return [Need("embeddings and their Adam", size, "a smaller width=")]

    def _encoder_needs(self, rows: int) -> list[Need]:
        """Return what an encoder takes with its batches, for so many vertices of a step."""
        options, dataset, task = self.options, self.dataset, self.task
        (n, edges), ranges = size_of(dataset), dataset.partition.parts[0].types or ()
        assert isinstance(task, TypedTask)
        fanouts = bounds_of(options, task)
        size = BatchSize.sampled(min(rows, n), fanouts, n, edges)
        learned = sum(each.n for each in ranges if each.name in task.learned) // self.workers
        return [
            weights(options, task),
            *batches(options, task, size, number_bytes(options) * max(task.widths.values())),
            Need(
                "learned rows and their Adam",
                5 * number_bytes(options) * options.hidden * learned,
                "a smaller hidden=",
            ),
        ]

    def summary(self) -> dict[str, Any]:
        """Return what the summary says of parts and workers. Facts have no labels."""
        facts = super().summary()
        del facts["label_skew"]
        return facts


def _checked(facts: Facts, dataset: FactDataset) -> dict[str, Any]:
    """Return the parameters of the method that change its results."""
    candidates, hard = facts.candidates, facts.num_hard_negatives
    if candidates is not None:
        candidates = parameters.integer("candidates", candidates, 1, 2**31 - 1)
    relations = None if dataset.typed is None else dataset.typed.relations
    return {
        "width": parameters.integer("width", facts.width, 1, 2**16),
        "relations": dataset.num_relations,
        "decoder": parameters.choice("decoder", facts.decoder, DECODERS),
        "reciprocal": parameters.flag("reciprocal", facts.reciprocal),
        "objective": parameters.choice("objective", facts.objective, OBJECTIVES),
        "negatives": parameters.choice("negatives", facts.negatives, POOL_RULES),
        "num_negatives": parameters.integer("num_negatives", facts.num_negatives, 1, 2**24),
        "num_hard_negatives": parameters.integer("num_hard_negatives", hard, 1, 2**16),
        "candidates": candidates,
        "relation_weights": checked_relation_weights(relations, facts.relation_weights),
    }


def _hard(given: StrPath, dataset: FactDataset) -> Any:
    """Return the table of hard negatives, checked: source, target and relation of each row."""
    file = parameters.path("hard_negatives", given)
    table: Any = mapped(file) if file.suffix == ".npy" else dict(arrays_of("hard_negatives", file))
    pairs = pairs_of("hard_negatives", table, len(dataset.partition), dataset.typed)
    if not len(pairs):
        raise ParameterError("hard_negatives: the table has no rows. Leave it out")
    if dataset.typed is None:
        pairs = np.column_stack([pairs, np.zeros(len(pairs), np.int64)])
    return pairs
