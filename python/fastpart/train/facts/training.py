"""The worker: epochs over facts, with learned rows of vertices and of relations."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ...core.processes import anonymous_bytes
from ...loading import dropout, sum_gradients
from ...loading.remote import exchange_of
from ...loading.rows.counts import Counts
from ...loading.rows.embeddings import Embeddings
from ...partitions.seeds import owner_of, rank_of_part
from ..clock import SYNCHRONISING, Clock
from ..config import Options
from ..learning.learner import Learner
from ..learning.validation import is_better
from ..link_prediction.decoders import Decoder, decoder_with
from ..link_prediction.embeddings import EmbeddingTable, write_embeddings
from ..link_prediction.filtered import FilteredScorer
from ..ranks import barrier, device, of_all, rank, world_size
from ..scores import Task
from .dataset import FactDataset
from .objectives import losses_of
from .steps import FactSteps, Group, Step

COMPUTE, SAMPLING = "compute", "sampling"
STEPS = (COMPUTE, SYNCHRONISING, SAMPLING)
"""The timed steps of an epoch."""

_RELATIONS = 0x72656C
"""Tells dropout of rows of relations from that of rows of vertices."""

Ids = npt.NDArray[np.int64]


class Worker:
    """A worker. It owns the rows of the vertices of its parts. Weights of the decoder are equal in all workers.

    Attributes
    ----------
    network : Decoder
        The decoder, with the rows of relations.
    """

    open = FactDataset
    network: Decoder

    def __init__(
        self, dataset: FactDataset, options: Options, how: dict[str, Any], folder: Path, state: dict[str, Any]
    ) -> None:
        self._dataset, self._options, self._how = dataset, options, how
        self._folder, self._out = folder, Path(how["out"])
        owners = rank_of_part(dataset.partition.k, world_size())
        owned, self._device, self._clock = owners == rank(), device(), Clock()
        dataset.task = Task(how["width"], dataset.num_relations, multilabel=False)
        make = decoder_with(how["decoder"], how["reciprocal"])
        self.learner = Learner(dataset.task, options, state.get("learner", {}), self._device, make)
        self.network = self.learner.network
        hard = None if how["hard"] is None else np.load(how["hard"])
        self._steps = FactSteps(dataset, options, how, owned, hard)
        own, topology = np.flatnonzero(owned).tolist(), dataset.topology
        self._owned, self._counts = owned, Counts()
        numbers = np.float64 if self.learner.dtype == torch.float64 else np.float32
        parts = range(own[0], own[-1] + 1)
        self._table = EmbeddingTable(
            topology, parts, how["width"], options.seed, options.lr, self._out, numbers
        )
        self._exchange = exchange_of(topology.starts, owners, world_size(), how["timeout"])
        self._embeddings = Embeddings(self._table, self._exchange, self._counts)
        ends = dataset.ends(0), dataset.ends(1)
        plain = dataset.typed is None
        self._scorer = FilteredScorer(dataset.true_facts(), ends, how["candidates"], options.seed, plain)
        self._best = -math.inf
        if state:
            self._best = state["best"]
            self._table.load(state["embeddings"])

    def round(self, epochs: int, scored: bool) -> dict[str, Any]:
        """Train one epoch, and return its row. ``epochs`` is always 1."""
        self.network.train()
        self._clock.read()
        barrier()
        start, epoch, loss, count = time.perf_counter(), self.learner.epochs, 0.0, 0.0
        self._table.at_rate(float(self.learner.optimizer.param_groups[0]["lr"]))
        steps = self._steps.epoch(epoch)
        while True:
            with self._clock.timed(SAMPLING):
                step = next(steps, None)
            if step is None:
                break
            loss, count = loss + self._train(step, epoch), count + step.count
        seconds = time.perf_counter() - start
        self.learner.end_epochs()
        spent = self._clock.read()
        times = of_all({f"{each}_seconds": spent[each] for each in STEPS})
        sent = of_all({"remote_bytes": self._counts.read().get("remote_bytes", 0)})
        of = of_all({"loss": loss / count, "seconds": seconds, "bytes": anonymous_bytes()})
        scores = self._scores("val") if scored else None
        self._keep_best(scores)
        return {
            "loss": of["loss"].sum().item(),
            "seconds": of["seconds"].max().item(),
            **{name: each.mean().item() for name, each in times.items()},
            "remote_bytes": int(sent["remote_bytes"].sum()),
            "worker_bytes": int(of["bytes"].max()),
            **{f"val_{name}": None if scores is None else scores[name] for name in ("filtered_mrr", "mrr")},
        }

    def _keep_best(self, scores: dict[str, float] | None) -> None:
        """Keep the rows of the best epoch, which is decided as in the history."""
        score = math.nan if scores is None else scores["filtered_mrr"]
        if is_better(score, self._best):
            self._best = self._best if math.isnan(score) else score
            self._table.keep_best()

    def _train(self, step: Step, epoch: int) -> float:
        """Make a step, and return the sum of the losses here."""
        with self._clock.timed(SYNCHRONISING):
            learned = torch.from_numpy(self._embeddings.rows(step.rows))
        loss = 0.0
        with self._clock.timed(COMPUTE):
            x = learned.to(self._device).requires_grad_()
            self.learner.optimizer.zero_grad()
            if step.groups:
                loss = self._backward(step, x, epoch)
        with self._clock.timed(SYNCHRONISING):
            sum_gradients(self.network.parameters())
            gradient = torch.zeros_like(learned) if x.grad is None else x.grad.cpu()
            self._embeddings.update(gradient.numpy())
        with self._clock.timed(COMPUTE):
            self.learner.step(loss / step.count)
        return loss

    def _backward(self, step: Step, x: Tensor, epoch: int) -> float:
        share, keys = self._options.dropout, (self._options.seed, epoch, step.number)
        ids = torch.from_numpy(self._dataset.topology.ids_of(step.rows)).to(self._device)
        rows, factors = dropout(x, share, ids, *keys), self.network.relations
        if factors is not None and self._how["decoder"] != "rotate":  # angles are no numbers to leave out
            numbers = torch.arange(len(factors), device=self._device)
            factors = dropout(factors, share, numbers, *keys, _RELATIONS)
        with self.learner.computing():
            loss = torch.stack([self._losses(group, rows, factors) for group in step.groups]).sum()
        (loss / step.count).backward()
        return loss.item()

    def _losses(self, group: Group, rows: Tensor, factors: Tensor | None) -> Tensor:
        """Return the weighted sum of the losses of a group."""
        place, network = self._device, self.network
        anchors, others, pool = (rows[each.to(place)] for each in (group.anchors, group.others, group.pool))
        moved = network.moved(anchors, group.relations.to(place), group.end == 0, factors)
        logits = network.against(moved, pool).masked_fill(group.clash.to(place), -torch.inf)
        if group.hard is not None and group.counted is not None:
            hard = network(moved.unsqueeze(1), rows[group.hard.to(place)])
            logits = torch.cat([logits, hard.masked_fill(~group.counted.to(place), -torch.inf)], 1)
        positives, dtype = network(moved, others), self.learner.dtype
        losses = losses_of(self._how["objective"], positives.to(dtype), logits.to(dtype), network.offset)
        return (losses * group.weights.to(place, dtype)).sum()

    def _scores(self, split: str) -> dict[str, float]:
        """Return the scores of a split, of all workers."""
        dataset, topology = self._dataset, self._dataset.topology
        facts = dataset.facts(split)
        targets = topology.rows_of(np.ascontiguousarray(facts[:, 1]))
        mine = self._owned[owner_of(targets, topology.starts)]
        files = [self._folder / f"rows-{part}.npy" for part in range(dataset.partition.k)]
        for part in self._table.own:
            np.save(files[part], self._table.of_part(part))
        barrier()
        stored, starts = [np.load(file, mmap_mode="r") for file in files], topology.starts

        def rows_of(ids: Ids) -> Tensor:
            rows = topology.rows_of(np.ascontiguousarray(ids))
            found, parts = np.empty((len(rows), self._how["width"])), owner_of(rows, starts)
            for part in np.unique(parts):
                those = parts == part
                found[those] = stored[part][rows[those] - starts[part]]
            return torch.from_numpy(found)

        decoder = Decoder(
            self._how["decoder"], self._how["width"], dataset.num_relations, self._how["reciprocal"]
        )
        decoder.load_state_dict({name: each.cpu() for name, each in self.network.state_dict().items()})
        found = self._scorer.scores(decoder.eval(), facts[mine], rows_of)
        barrier()
        return found

    def store(self) -> None:
        """Save the learned rows of this worker, before a checkpoint."""
        self._table.save()

    def state(self) -> dict[str, Any]:
        """Return what a resume needs beside the files of the learned rows."""
        return {"learner": self.learner.state(), "best": self._best, "embeddings": self._table.state}

    def final(self, best: dict[str, Tensor]) -> dict[str, float]:
        """Return the scores of the best weights, and write the learned rows of the best epoch."""
        self.learner.put(best)
        self._table.put_best()
        write_embeddings(self._table, self._dataset, self._out)
        return {
            f"{split}_{name}": value
            for split in ("val", "test")
            for name, value in self._scores(split).items()
        }

    def close(self) -> None:
        """End the connections to other workers."""
        self._exchange.close()
