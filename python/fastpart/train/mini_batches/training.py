"""The worker: epochs over its training vertices, one step for each batch of all workers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...loading import Batch, sum_gradients
from ...loading.seeds import owner_of, rank_of_part
from ...processes import anonymous_bytes
from ..clock import SYNCHRONISING, Clock
from ..config import Options
from ..data import Dataset
from ..inference import Inference
from ..learner import Learner
from ..ranks import barrier, largest, rank, total, world_size
from ..rows import Rows
from ..seeds import mixed

SAMPLING, COMPUTE = "sampling", "compute"
STEPS = (SAMPLING, COMPUTE, SYNCHRONISING)
"""The timed steps of an epoch."""


class Worker:
    """A worker. All workers have the same weights and the same random numbers.

    Attributes
    ----------
    network : torch.nn.Module
        The network. Its weights are equal in all workers.
    """

    open = Dataset

    def __init__(
        self, dataset: Dataset, options: Options, how: dict[str, Any], folder: Path, state: dict[str, Any]
    ) -> None:
        self._task, self._options, self._topology = dataset.task, options, dataset.topology
        owners = rank_of_part(dataset.partition.k, world_size())
        self._owned = owners == rank()
        self._row_bytes = dataset.row_bytes
        # Hops go from the seeds outwards, layers towards them.
        self._loader = dataset.partition.loader(
            "train",
            fanouts=options.fanouts[::-1],
            batch_size=options.batch_size or dataset.num_train,
            seed=options.seed,
            sampling=how["draw"],
            edge_ids=False,
        )
        self._learner = Learner(dataset.task, options, state)
        self.network = self._learner.network
        self._inference = Inference(dataset, np.flatnonzero(self._owned).tolist(), folder, options.layers)
        self._clock = Clock()

    def round(self, epochs: int) -> dict[str, Any]:
        """Train one epoch, and return its row. ``epochs`` is always 1."""
        self._loader.set_epoch(self._learner.epochs)
        self.network.train()
        self._clock.read()
        barrier()
        start = time.perf_counter()
        counts = np.zeros(4)  # loss, seeds, rows of own parts, rows of other parts
        for batch in self._timed():
            torch.manual_seed(
                mixed(self._options.seed, self._learner.epochs, batch.step)
            )  # equal in all workers
            counts += [*self._step(batch), *self._rows(batch)]
        seconds = time.perf_counter() - start
        self._learner.epochs += epochs
        spent = self._clock.read()
        sums = total(torch.tensor([*counts, *(spent[step] for step in STEPS)], dtype=torch.float64)).tolist()
        loss, seen, local, remote = sums[:4]
        most = largest(torch.tensor([seconds, float(anonymous_bytes())], dtype=torch.float64))
        return {
            "loss": loss / max(seen, 1),
            "seconds": most[0].item(),
            **{f"{step}_seconds": value / world_size() for step, value in zip(STEPS, sums[4:], strict=True)},
            "local_rows": int(local),
            "remote_rows": int(remote),
            "remote_bytes": int(remote) * self._row_bytes,
            "worker_bytes": int(most[1]),
            **self._inference.scores(self.network, ("val",)),
        }

    def _timed(self) -> Iterator[Batch]:
        """Yield the batches of the epoch, and count the time of waiting for them."""
        batches = iter(self._loader)
        while True:
            with self._clock.timed(SAMPLING):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def _step(self, batch: Batch) -> tuple[float, int]:
        """Make a step, and return the sum of the losses here and their number."""
        loss = 0.0
        with self._clock.timed(COMPUTE):
            self._learner.adam.zero_grad()
            if batch.batch_size:
                loss = self._backward(batch)
        with self._clock.timed(SYNCHRONISING):
            sum_gradients(self.network.parameters())
        with self._clock.timed(COMPUTE):
            self._learner.adam.step()
        return loss, batch.batch_size

    def _backward(self, batch: Batch) -> float:
        whole = Rows(
            batch.indptr.numpy(),
            batch.indices.numpy(),
            lambda: torch.from_numpy(self._topology.degrees_of(batch.rows)),
            batch.n_id,
            sources=batch.num_nodes,
        )
        assert batch.x is not None
        assert batch.y is not None
        logits = self.network(whole.by_layer(batch.num_sampled_nodes), batch.x.float())
        labels = batch.y.float() if self._task.multilabel else batch.y
        loss = self._task.losses(logits, labels).sum()
        (loss / batch.global_size).backward()
        return loss.item()

    def _rows(self, batch: Batch) -> tuple[int, int]:
        """Return how many rows of features are of own parts, and of others."""
        own = int(np.count_nonzero(self._owned[owner_of(batch.rows, self._topology.starts)]))
        return own, batch.num_nodes - own

    def state(self) -> dict[str, Any]:
        """Return what a resume needs."""
        return self._learner.state()

    def final(self, best: dict[str, Tensor]) -> dict[str, float]:
        """Return the scores of the best weights."""
        return self._inference.scores(self._learner.put(best))
