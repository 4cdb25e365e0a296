"""``links``: start workers for a partition directory with edge splits."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np
import torch

from ....core.parameters import shown
from ....errors import ParameterError, arg, code
from ....loading.timed_edges import times_of
from ....partitions.loader_options import TemporalOptions
from ....partitions.partition import PartitionSource
from ...data.learned_rows import EMBEDDINGS, HARD_NEGATIVES, NEW_EMBEDDINGS, files_of
from ...jobs.launch import Launch, number_of_workers
from ...jobs.warnings import Guessing, entropy_of_pairs
from ...memory import (
    BatchSize,
    Need,
    batches,
    edge_row_bytes,
    evaluation,
    kept_rows,
    number_bytes,
    row_bytes,
    size_of,
    weights,
)
from ...method_options import LinkOptions
from ...models import NEIGHBOUR, sampling_of
from ...registry import Method
from ...runs.trained import TrainedModel
from ..sampled.driver import LearningRows, refuse_degrees
from .dataset import LinkDataset, digest_of
from .decoders import network_with
from .trained import TrainedLinks


def refuse_look_ahead(dataset: LinkDataset) -> None:
    """Raise an error if training edges have no times, or scores from all edges would look ahead."""
    partition, given = dataset.partition, TemporalOptions(temporal="uniform")
    for relation in dataset.predicted:
        times_of("train", dataset.pairs("train", relation), partition, given, relation[1])
    if not any(dataset.count_of(split) for split in ("val", "test")):
        return
    since = dataset.held_out_from
    if since is None:
        raise ParameterError(
            f"temporal: the held-out pairs in {shown(dataset.path)} were not split by time, so that scores would look "
            "ahead. Split the edges with "
            + code(
                "splits = fastpart.split_edges(graph, times=times)",
                "`fastpart split-edges GRAPH TRAIN --times TIMES`",
            )
        )
    for part in partition.parts:
        late = any(rows.times is not None and np.any(rows.times >= since) for rows in part._by_relation)
        sources = dataset.topology.rows_of(part.vertices[np.unique(part.indices)])
        if late or np.any(partition._times.of_rows(sources) >= since):
            raise ParameterError(
                f"temporal: part {part.index} of {shown(dataset.path)} has an edge, or the source of one, that came at "
                f"{since} or later, where the held-out pairs begin. Save "
                + code(
                    "splits.graph of fastpart.split_edges(graph, times=times) with edge_times=splits.edge_times",
                    "the TRAIN of `fastpart split-edges GRAPH TRAIN --times TIMES` with --edge-times TRAIN.times.npy",
                )
            )


class Driver(LearningRows):
    """Starts workers for a partition directory with edge splits."""

    synchronised = True
    told = ("halo_rf",)
    dataset: LinkDataset

    options: LinkOptions

    def __init__(self, method: Method, source: PartitionSource, options: LinkOptions) -> None:
        if sampling_of(options.model) != NEIGHBOUR:
            raise ParameterError(
                f"model: {options.model!r} trains on sampled graphs, which link prediction has not"
            )
        dataset = LinkDataset(source)
        dataset.predict(options.relation)
        if options.embeddings is None and not dataset.has_types and not dataset.task.features:
            raise ParameterError(
                "embeddings: the directory has no features. Pass the width of a learnable row of each vertex, for "
                f"example {arg('embeddings', 64)}, or save the partition with {arg('features')}"
            )
        if options.temporal is not None:
            refuse_look_ahead(dataset)
        count = number_of_workers(dataset.partition.k, options.workers, options)
        super().__init__(method, options, dataset, count, options.workers)
        names = ("decoder", "candidates", "embeddings")
        self.decisive = {name: getattr(options, name) for name in names} | {"negatives": options.numbers}
        if options.temporal is not None:
            self.decisive["temporal"] = options.temporal
        if dataset.has_types:
            self.decisive["relations"] = [list(key) for key in dataset.predicted]
        self._hard = dataset.hard_negatives(options.hard)
        if self._hard is not None:
            self.decisive["hard_negatives"] = [digest_of(self._hard), options.num_hard_negatives]
        self.task = dataset.encoder_task(options)
        self._of_all = options.embeddings is not None and not dataset.has_types
        self.make = network_with(options.decoder, len(dataset.predicted))
        self.example = torch.zeros(2), torch.zeros(2)
        if options.temporal is not None:
            refuse_degrees(self.task, options)

    def guessing(self) -> Guessing | None:
        """Return how the network looks if it gives all vertices the same row."""
        return (
            None
            if self.options.loss is not None
            else Guessing(entropy_of_pairs(self.options.negatives_of_edge))
        )

    def prepare(self, launch: Launch, stack: ExitStack) -> None:
        """Note the files of learned rows, and hand over the table of hard negatives."""
        super().prepare(launch, stack)
        if self._of_all:
            entries = [EMBEDDINGS, NEW_EMBEDDINGS, *files_of(self.dataset.partition.k)]
            launch.once(lambda: launch.folder.add(entries))
        if (table := self._hard) is not None:
            launch.once(lambda: np.save(launch.scratch / HARD_NEGATIVES, table))

    def finished(self, launch: Launch, trained: TrainedModel) -> TrainedLinks:
        """Return the result with its learned rows."""
        learned = None
        if self._of_all:
            file = launch.folder.path / EMBEDDINGS
            learned = np.load(file, mmap_mode=None if trained.out is None else "r")
        return TrainedLinks(
            **vars(super().finished(launch, trained)),
            decoder=self.options.decoder,
            relations=self.dataset.predicted,
            embeddings=learned,
        )

    def needs(self) -> tuple[Sequence[Need], Sequence[Need]]:
        """Return what each worker takes."""
        dataset, options, workers = self.dataset, self.options, self.workers
        (n, edges), training, pairs = size_of(dataset), dataset.num_train, 1 + options.negatives_of_edge
        width, part = options.embeddings or 0, max(each.num_inner for each in dataset.partition.parts)
        seeds = min(n, (1 + pairs) * -(-(options.batch_size or training) // workers))
        fanouts = self.task.most_in_edges(dataset.fanouts(options))
        size = BatchSize.sampled(seeds, fanouts, n, edges)
        parts, own = -(-dataset.partition.k // workers), -(-training // workers)
        learned = number_bytes(options) * width * part * (3 * parts + 3)
        learned += 4 * part * max(self.task.input_widths(0).values()) * bool(width)
        return [
            weights(options, self.task),
            *batches(
                options, self.task, size, row_bytes(dataset) + 8 * width, 4 + edge_row_bytes(dataset, options)
            ),
            *evaluation(dataset, options, parts),
            *kept_rows(dataset, options, len(dataset.predicted)),
            Need("edges to train on", 50 * training + 100 * own * pairs, f"fewer {arg('negatives')}"),
            Need("hard negatives", 0 if self._hard is None else 80 * len(self._hard)),
            Need("embeddings and their Adam", learned, f"smaller {arg('embeddings')}"),
            *([] if width else self.learned_needs(parts)),
            Need("known edges of candidates", self._known_edges(n), f"fewer {arg('candidates')}"),
            Need(
                "candidates", 16 * options.hidden * min(n, options.candidates), f"fewer {arg('candidates')}"
            ),
        ], ()

    def _known_edges(self, n: int) -> int:
        """Return the bytes of the edges that filtered ranks leave out, with the pairs of the part that is read."""
        known = sum(self.dataset.manifest["edge_splits"].values())
        of_part = max(sum(part._num_pairs.values()) for part in self.dataset.partition.parts)
        return 32 * known * min(n, self.options.candidates) // max(n, 1) + 60 * of_part
