"""The worker: epochs over the edges to train on, with learned rows of vertices."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ...loading import sum_gradients
from ...loading.remote import exchange_of
from ...loading.rows.embeddings import Embeddings
from ...loading.timed_edges import EarlierVertices
from ...partitions.seeds import rank_of_part
from ..clock import SYNCHRONISING, Clock
from ..embedding_table import EmbeddingTable, numbers_of_rows, write_embeddings
from ..jobs.worker import Place
from ..learning.learner import Learner
from ..learning.validation import BROKEN, is_better
from ..memory import fitting
from ..method_options import LinkOptions
from ..mini_batches import training as mini_batches
from ..mini_batches.training import COMPUTE
from ..models import takes_edge_attr
from ..ranks import device, rank, world_size
from ..runs.history import score_of
from ..scores import Task
from .dataset import LinkDataset
from .decoders import LinkNetwork, network_with
from .scoring import Encodings, Scorer
from .steps import Links, Step


class Worker(mini_batches.Worker):
    """A worker. Its network is an encoder with a decoder. It owns the learned rows of its parts, if there are any."""

    open = LinkDataset
    network: LinkNetwork

    def __init__(
        self, dataset: LinkDataset, options: LinkOptions, place: Place, state: dict[str, Any]
    ) -> None:
        self._dataset, self._options, self._topology = dataset, options, dataset.topology
        owners = rank_of_part(dataset.partition.k, world_size())
        self._owned = owners == rank()
        self._device, self._clock, self._out = device(), Clock(), place.out
        self._trace = self._sampled = None
        width = options.embeddings or 0
        features = dataset.task.features
        edges = dataset.task.edge_features
        dataset.task = Task(features + width, options.hidden, multilabel=False, edge_features=edges)
        learned = state.get("learner", {})
        self.learner = Learner(
            dataset.task,
            options,
            learned,
            self._device,
            network_with(options.decoder),
            F.binary_cross_entropy_with_logits,
        )
        self.network = self.learner.network
        self._steps = Links(dataset, options, place.free_bytes, takes_edge_attr(self.network.encoder))
        own = np.flatnonzero(self._owned).tolist()
        fetching = self._steps.fetching
        fits = fitting(dataset, options, place.free_bytes)
        self._rows = Encodings(
            dataset,
            own,
            place.scratch,
            options.layers,
            fetching,
            fits,
            learned=width > 0,
            edge_fetching=self._steps.edge_fetching,
        )
        timed = options.temporal is not None and "times" in dataset.manifest
        known = EarlierVertices.of_all(dataset.partition) if timed else None
        self._scorer = Scorer(dataset, self._rows, self._owned, options.candidates, options.seed, known)
        self._table: EmbeddingTable | None = None
        self._best = BROKEN
        if width:
            parts, numbers = range(own[0], own[-1] + 1), numbers_of_rows(self.learner.dtype)
            self._table = EmbeddingTable(
                self._topology, parts, width, options.seed, options.lr, self._out, numbers
            )
            self._exchange = exchange_of(dataset.topology.starts, owners, world_size(), options.timeout)
            self._embeddings = Embeddings(self._table, self._exchange, fetching.counts)
            if state:
                self._restore(state)

    def _restore(self, state: dict[str, Any]) -> None:
        assert self._table is not None
        self._best, saved = state["best"], state["embeddings"]
        if "slot" in saved:
            self._table.load(saved)
        else:
            self._table.load_earlier(saved, self.learner.epochs - 1, state["best_epoch"])

    def round(self, epochs: int, scored: bool) -> dict[str, Any]:
        """Train one epoch, and return its row. ``epochs`` is always 1."""
        row = super().round(epochs, scored)
        if self._table is not None:
            score = score_of(row, self.network.state_dict().values())
            if is_better(score, self._best):  # as the history decides
                self._best = score
                self._table.keep_best()
        return row

    def store(self) -> None:
        """Save the learned rows of this worker, before a checkpoint."""
        if self._table is not None:
            self._table.save()

    def _scores(self) -> dict[str, float | None]:
        self._put_inputs()
        return {"val_mrr": self._scorer.scores(self.network, "val")["mrr"]}

    def _unscored(self) -> dict[str, None]:
        return {"val_mrr": None}

    def _put_inputs(self) -> None:
        """Write the inputs of the encoder, if they have learned rows."""
        if self._table is not None:
            for part in self._table.own:
                rows = [*self._dataset.features_of(part), self._table.of_part(part)]
                self._rows.put(part, np.concatenate(rows, axis=1).astype(np.float32, copy=False))

    def _train(self, step: Step) -> float:  # type: ignore[override]  # steps of edges
        """Make a step, and return the sum of the losses here."""
        loss, x, learned = 0.0, step.x, None
        if self._table is not None:
            with self._clock.timed(SYNCHRONISING):
                ids, places = np.unique(step.inputs, return_inverse=True)
                learned = torch.from_numpy(self._embeddings.rows(ids)).requires_grad_()
            rows = F.embedding(torch.from_numpy(places).to(self._device), learned.to(self._device))
            x = rows if x is None else torch.cat([x, rows], dim=1)
        assert x is not None
        with self._clock.timed(COMPUTE):
            self.learner.optimizer.zero_grad()
            if len(step.rows) or self.learner.normalises:
                loss = self._losses_of_pairs(step, x)
        with self._clock.timed(SYNCHRONISING):
            sum_gradients(self.network.parameters())
            if learned is not None:
                gradient = torch.zeros_like(learned) if learned.grad is None else learned.grad
                self._embeddings.update(gradient.numpy())
        with self._clock.timed(COMPUTE):
            self.learner.step(loss / step.count)
        return loss

    def _losses_of_pairs(self, step: Step, x: Tensor) -> float:
        learner = self.learner
        with learner.computing():
            h = self.network.encoder(step.graphs, x.to(learner.dtype))
            logits = self.network.decoder(*(h[ends] for ends in step.ends)).to(learner.dtype)
        loss = learner.criterion.losses(logits, step.y).sum()
        (loss / step.count).backward()
        return loss.item()

    def close(self) -> None:
        """End the connections to other workers."""
        super().close()
        if self._table is not None:
            self._exchange.close()

    def state(self) -> dict[str, Any]:
        """Return what a resume needs beside the files of the learned rows."""
        state: dict[str, Any] = {"learner": self.learner.state()}
        if self._table is None:
            return state
        return {**state, "best": self._best, "embeddings": self._table.state}

    def final(self, best: dict[str, Tensor]) -> dict[str, float]:
        """Return the scores of the best weights, and write the learned rows of the best epoch."""
        self.learner.put(best)
        if self._table is not None:
            self._table.put_best()
            table, width = self._table, self._table.row_shape[0]
            write_embeddings(self._dataset, self._out, table.own, width, table.of_part)
        self._put_inputs()
        return {
            f"{split}_{name}": value
            for split in ("val", "test")
            for name, value in self._scorer.scores(self.network, split).items()
        }
