"""``embeddings``: start workers for a partition directory with edge splits, of a graph with types or without."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
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
from ..config import Call
from ..jobs import driver
from ..jobs.group import number_of_workers
from ..jobs.launch import Launch
from ..link_prediction.decoders import DECODERS, decoder_with
from ..link_prediction.embeddings import NEW_EMBEDDINGS, files_of
from ..memory import Need
from ..runs.run_folder import EMBEDDINGS
from ..runs.trained import TrainedModel
from ..scores import Task
from ..trainer import Facts, PoolRule, Trainer
from .dataset import FactDataset
from .objectives import OBJECTIVES
from .trained import TrainedEmbeddings

POOL_RULES: tuple[PoolRule, ...] = get_args(PoolRule)


class Driver(driver.Driver):
    """Starts workers that learn rows of vertices and relations."""

    dataset: FactDataset

    def __init__(self, trainer: Trainer, source: StrPath, call: Call) -> None:
        facts, dataset = trainer.batches, FactDataset(source)
        assert isinstance(facts, Facts)
        candidates, weights = facts.candidates, facts.relation_weights
        width = parameters.integer("width", facts.width, 1, 2**16)
        decoder = parameters.choice("decoder", facts.decoder, DECODERS)
        reciprocal = parameters.flag("reciprocal", facts.reciprocal)
        how: dict[str, Any] = {
            "width": width,
            "decoder": decoder,
            "reciprocal": reciprocal,
            "objective": parameters.choice("objective", facts.objective, OBJECTIVES),
            "negatives": parameters.choice("negatives", facts.negatives, POOL_RULES),
            "num_negatives": parameters.integer("num_negatives", facts.num_negatives, 1, 2**24),
            "num_hard_negatives": parameters.integer(
                "num_hard_negatives", facts.num_hard_negatives, 1, 2**16
            ),
            "candidates": None
            if candidates is None
            else parameters.integer("candidates", candidates, 1, 2**31 - 1),
            "relation_weights": checked_relation_weights(
                None if dataset.typed is None else dataset.typed.relations, weights
            ),
        }
        count = number_of_workers(
            dataset.partition.k, call.workers, call.run.threads or _core.default_threads()
        )
        super().__init__(trainer, call, dataset, count, call.workers)
        self._hard = None if facts.hard_negatives is None else _hard(facts.hard_negatives, dataset)
        self.how = how | {"hard_rows": None if self._hard is None else len(self._hard)}
        self.task = Task(width, dataset.num_relations, multilabel=False)
        self.make = decoder_with(decoder, reciprocal)
        self.example = torch.zeros(2), torch.zeros(2)

    def prepare(self, launch: Launch, stack: ExitStack) -> None:
        """Note the files of learned rows, and hand over the table of hard negatives."""
        self.running["out"] = os.path.abspath(launch.folder.path)
        entries = [EMBEDDINGS, NEW_EMBEDDINGS, *files_of(self.dataset.partition.k)]
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
        decoder, reciprocal = self.how["decoder"], self.how["reciprocal"]
        return TrainedEmbeddings(**vars(trained), decoder=decoder, reciprocal=reciprocal, embeddings=learned)

    def needs(self) -> tuple[Sequence[Need], Sequence[Need]]:
        """Return what each worker takes."""
        dataset, how, n, width = self.dataset, self.how, len(self.dataset.partition), self.how["width"]
        number = 8 if self.options.precision == "float64" else 4
        part = max(each.num_inner for each in dataset.partition.parts)
        parts, facts = -(-dataset.partition.k // self.workers), sum(dataset.manifest["edge_splits"].values())
        size = min(self.options.batch_size or dataset.num_train, dataset.num_train)
        pool = {"all": n, "batch": min(size, n)}.get(how["negatives"], how["num_negatives"])
        rows = min(2 * size + 2 * pool, n + pool)
        relations = (1 + how["reciprocal"]) * dataset.num_relations
        block = 256 * min(n, 1 << 14)
        return [
            Need("facts of all workers, and those that are known", 150 * facts),
            Need("embeddings and their Adam", 5 * number * width * part * parts, "a smaller width="),
            Need("rows of relations and their Adam", 7 * number * width * relations, "a smaller width="),
            Need(
                "logits of a step",
                2 * size * pool * (4 * number + 2),
                "a smaller batch_size=, fewer num_negatives=",
            ),
            Need("rows of a step", 8 * number * width * (rows + 3 * size), "a smaller batch_size="),
            Need("ranks of a block", 40 * block + 16 * width * min(n, 1 << 14)),
        ], ()

    def summary(self) -> dict[str, Any]:
        """Return what the summary says of parts and workers. Facts have no labels."""
        facts = super().summary()
        del facts["label_skew"]
        return facts


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
