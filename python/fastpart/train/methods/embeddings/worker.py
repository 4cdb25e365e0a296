"""The worker: epochs over facts, with rows of vertices and of relations."""

from __future__ import annotations

import time
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from ....core.system import anonymous_bytes
from ....loading import dropout, sum_gradients
from ....partitions.seeds import owner_of, rank_of_part
from ...data.learned_rows import HARD_NEGATIVES, write_embeddings
from ...jobs.job import Place
from ...learning.learner import Learner
from ...method_options import EmbeddingOptions
from ...options import mixed
from ...ranks import SYNCHRONISING, Clock, barrier, copy_from_first, device, of_all, rank, world_size
from ...runs.history import score_of
from ..links.decoders import RelationNetwork, relation_network
from ..links.ranking import FilteredScorer
from .dataset import FactDataset
from .steps import FactSteps, Group, Step, losses_of
from .vertices import EncodedVertices, LearnedVertices, VertexRows

COMPUTE, IDLE = "compute", "idle"

_RELATIONS = 0x72656C
"""Tells dropout of rows of relations from that of rows of vertices."""

Ids = npt.NDArray[np.int64]


class Worker:
    """A worker. It owns the rows of the vertices of its parts. Weights of the network are equal in all workers.

    Attributes
    ----------
    network : RelationNetwork
        The decoder, with the rows of relations, and the encoder if there is one.
    """

    open = FactDataset
    network: RelationNetwork

    def __init__(
        self, dataset: FactDataset, options: EmbeddingOptions, place: Place, state: dict[str, Any]
    ) -> None:
        self._dataset, self._options = dataset, options
        self._owners = rank_of_part(dataset.partition.k, world_size())
        self._owned, self._device, self._clock = self._owners == rank(), device(), Clock()
        dataset.task = dataset.task_of(options.width, options, options.encoded)
        make = relation_network(options.decoder, dataset.num_relations, options.reciprocal)
        learned = state.get("learner", {})
        # The loss is that of the objective. That of the learner is never called.
        self.learner = Learner(dataset.task, options, learned, self._device, make, F.mse_loss)
        self.network = self.learner.network
        hard = None if options.hard is None else np.load(place.scratch / HARD_NEGATIVES)
        steps = FactSteps(dataset, options, self._owned, hard)
        self._own, self._width = np.flatnonzero(self._owned).tolist(), options.row_width
        self._out = place.out
        self._files = [place.scratch / f"rows-{part}.npy" for part in range(dataset.partition.k)]
        kind = EncodedVertices if options.encoded else LearnedVertices
        self._vertices: VertexRows = kind(dataset, options, place, steps, self._owners, self.learner)
        ends = dataset.ends(0), dataset.ends(1)
        plain = dataset.typed is None
        self._scorer = FilteredScorer(dataset.true_facts(), ends, options.candidates, options.seed, plain)
        if state:
            self._vertices.load(state["vertices"])

    def round(self, epochs: int, scored: bool) -> dict[str, Any]:
        """Train one epoch, and return its row. ``epochs`` is always 1."""
        self.network.train()
        self._clock.read()
        self._vertices.read_counts()  # scores have read rows, too
        barrier()
        start, epoch, loss, count = time.perf_counter(), self.learner.epochs, 0.0, 0.0
        steps = self._vertices.epoch(epoch)
        while True:
            with self._clock.timed(IDLE):
                step, made = next(steps, (None, None))
            if step is None:
                break
            torch.manual_seed(mixed(self._options.seed, epoch, step.number))  # equal in all workers
            loss, count = loss + self._train(step, made, epoch), count + step.count
        seconds = time.perf_counter() - start
        self.learner.end_epochs()
        copy_from_first(self.network.buffers())  # models of users may count batches
        spent = self._clock.read() | self._vertices.read_seconds()
        times = of_all({f"{each}_seconds": second for each, second in spent.items()})
        sent = of_all(self._vertices.read_counts())
        of = of_all({"loss": loss / count, "seconds": seconds, "bytes": anonymous_bytes()})
        scores = self._scores("val") if scored else None
        row = {
            "loss": of["loss"].sum().item(),
            "seconds": of["seconds"].max().item(),
            **{name: each.mean().item() for name, each in times.items()},
            **{name: int(each.sum()) for name, each in sent.items()},
            "worker_bytes": int(of["bytes"].max()),
            **{f"val_{name}": None if scores is None else scores[name] for name in ("filtered_mrr", "mrr")},
        }
        self._vertices.follow(score_of(row, self.network.state_dict().values()))
        return row

    def _train(self, step: Step, made: Any, epoch: int) -> float:
        """Make a step, and return the sum of the losses here."""
        with self._clock.timed(SYNCHRONISING):
            inputs = self._vertices.inputs(step, made)
        loss = 0.0
        with self._clock.timed(COMPUTE):
            self.learner.optimizer.zero_grad()
            if step.groups or self.learner.normalises:
                loss = self._backward(step, made, inputs, epoch)
        with self._clock.timed(SYNCHRONISING):
            sum_gradients(self.network.parameters())
            self._vertices.update(inputs)
        with self._clock.timed(COMPUTE):
            self.learner.step(loss / step.count)
        return loss

    def _backward(self, step: Step, made: Any, inputs: Any, epoch: int) -> float:
        share, keys = self._options.dropout, (self._options.seed, epoch, step.number)
        with self.learner.computing():
            rows = self._vertices.rows(step, made, inputs)
            factors = self.network.decoder.relations
            if (
                factors is not None and self._options.decoder != "rotate"
            ):  # angles are no numbers to leave out
                numbers = torch.arange(len(factors), device=self._device)
                factors = dropout(factors, share, numbers, *keys, _RELATIONS)
            losses = [self._losses(group, rows, factors) for group in step.groups]
        loss = torch.stack(losses).sum() if losses else 0 * rows.sum()
        (loss / step.count).backward()
        return loss.item()

    def _losses(self, group: Group, rows: Tensor, factors: Tensor | None) -> Tensor:
        """Return the weighted sum of the losses of a group."""
        place, decoder = self._device, self.network.decoder
        anchors, others, pool = (rows[each.to(place)] for each in (group.anchors, group.others, group.pool))
        moved = decoder.moved(anchors, group.relations.to(place), group.end == 0, factors)
        logits = decoder.against(moved, pool).masked_fill(group.clash.to(place), -torch.inf)
        if group.hard is not None and group.counted is not None:
            hard = decoder(moved.unsqueeze(1), rows[group.hard.to(place)])
            logits = torch.cat([logits, hard.masked_fill(~group.counted.to(place), -torch.inf)], 1)
        positives, dtype = decoder(moved, others), self.learner.dtype
        losses = losses_of(self._options.objective, positives.to(dtype), logits.to(dtype), decoder.offset)
        return (losses * group.weights.to(place, dtype)).sum()

    def _scores(self, split: str) -> dict[str, float]:
        """Return the scores of a split, of all workers."""
        dataset, topology = self._dataset, self._dataset.topology
        facts = dataset.facts(split)
        mine = self._owned[owner_of(topology.rows_of(np.ascontiguousarray(facts[:, 1])), topology.starts)]
        self._store_rows()
        stored, starts = [np.load(file, mmap_mode="r") for file in self._files], topology.starts

        def rows_of(ids: Ids) -> Tensor:
            rows = topology.rows_of(np.ascontiguousarray(ids))
            found, parts = np.empty((len(rows), self._width)), owner_of(rows, starts)
            for part in np.unique(parts):
                those = parts == part
                found[those] = stored[part][rows[those] - starts[part]]
            return torch.from_numpy(found)

        decoder = deepcopy(self.network.decoder).cpu().eval()
        found = self._scorer.scores(decoder, facts[mine], rows_of)
        barrier()
        return found

    def _store_rows(self) -> None:
        """Write the rows of the vertices of all parts to files that all workers see."""
        self._vertices.before_scores()
        for part in self._own:
            np.save(self._files[part], self._vertices.stored(part))
        barrier()

    def store(self) -> None:
        """Save the learned rows of this worker, before a checkpoint."""
        self._vertices.store()

    def state(self) -> dict[str, Any]:
        """Return what a resume needs beside the files of the learned rows."""
        return {"learner": self.learner.state(), "vertices": self._vertices.state()}

    def final(self, best: dict[str, Tensor]) -> dict[str, float]:
        """Return the scores of the best weights, and write the rows of the best epoch."""
        self.learner.put(best)
        self._vertices.finish()
        scores = {
            f"{split}_{name}": value
            for split in ("val", "test")
            for name, value in self._scores(split).items()
        }
        # The files have the rows of the last scores.
        write_embeddings(
            self._dataset, self._out, self._own, self._width, lambda part: np.load(self._files[part])
        )
        return scores

    def close(self) -> None:
        """End the connections to other workers."""
        self._vertices.close()
