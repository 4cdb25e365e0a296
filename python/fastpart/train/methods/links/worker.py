"""The worker: epochs over the edges to train on, with learned rows of vertices."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from ....partitions.seeds import rank_of_part
from ....partitions.types import ONLY_TYPE, EdgeKey, edge_keys
from ...data.learned_rows import HARD_NEGATIVES, LearnedRows, numbers_of_rows, write_embeddings
from ...jobs.job import Place
from ...learning.learner import Learner
from ...memory import fitting
from ...method_options import LinkOptions
from ...models import takes_edge_attr
from ...ranks import SYNCHRONISING, Clock, device, rank, world_size
from ..sampled import worker as sampled
from .dataset import LinkDataset
from .decoders import LinkNetwork, network_with
from .scoring import Encodings, Scorer
from .steps import Links, Step


class Worker(sampled.Worker):
    """A worker. Its network is an encoder with a decoder. It owns the learned rows of its parts, if there are any."""

    open = LinkDataset
    network: LinkNetwork
    _options: LinkOptions

    def __init__(
        self, dataset: LinkDataset, options: LinkOptions, place: Place, state: dict[str, Any]
    ) -> None:
        dataset.predict(options.relation)
        of_all = options.embeddings is not None and not dataset.has_types
        self._of_all = (ONLY_TYPE,) if of_all else ()
        self._dataset, self._options, self._topology = dataset, options, dataset.topology
        owners = rank_of_part(dataset.partition.k, world_size())
        self._owned = owners == rank()
        self._device, self._clock, self._out = device(), Clock(), place.out
        self._trace = self._sampled = None
        self._task = dataset.task = dataset.encoder_task(options)
        self.learner = Learner(
            dataset.task,
            options,
            state.get("learner", {}),
            self._device,
            network_with(options.decoder, len(dataset.predicted)),
            F.binary_cross_entropy_with_logits,
        )
        self.network = self.learner.network
        self._steps = Links(
            dataset,
            options,
            place.free_bytes,
            takes_edge_attr(self.network.encoder),
            relations=dataset.predicted,
            hard=self._hard_negatives(dataset, options, place),
        )
        own = np.flatnonzero(self._owned).tolist()
        self._inference = Encodings(
            dataset,
            own,
            place.scratch,
            options.layers,
            self._steps.fetching,
            fitting(dataset, options, place.free_bytes),
            edge_fetching=self._steps.edge_fetching,
            learned=of_all,
        )
        self._scorer = Scorer(
            dataset,
            self._inference,
            self._owned,
            options.candidates,
            options.seed,
            options.temporal is not None,
        )
        if names := self._of_all or dataset.task.learned:
            self._learned = LearnedRows(
                dataset.partition,
                names,
                owners,
                options.embeddings or options.hidden,
                options.seed,
                options.lr,
                place.out,
                options.timeout,
                numbers_of_rows(self.learner.dtype),
            )
            if state:
                self._restore(self._learned, state)

    def _hard_negatives(
        self, dataset: LinkDataset, options: LinkOptions, place: Place
    ) -> dict[EdgeKey, npt.NDArray[np.int64]]:
        """Return the hard negatives of the relations that have some."""
        if options.hard is None:
            return {}
        table = np.load(place.scratch / HARD_NEGATIVES)
        keys = edge_keys(dataset.partition)
        return {keys[number]: table[table[:, 2] == number, :2] for number in np.unique(table[:, 2])}

    def _restore(self, learned: LearnedRows, state: dict[str, Any]) -> None:
        rows = state.get("embeddings", {})
        if not self._of_all:
            learned.load(state["learned"])
        elif "slot" in rows:
            learned.load({"best": state["best"], "table": rows})
        else:
            learned.load_earlier(state, self.learner.epochs - 1)

    def _scores(self) -> dict[str, float | None]:
        self._put_inputs()
        return {"val_mrr": self._scorer.scores(self.network, "val")["mrr"]}

    def _unscored(self) -> dict[str, None]:
        return {"val_mrr": None}

    def _put_inputs(self) -> None:
        """Write the inputs of the encoder, if they have learned rows."""
        if self._learned is not None:
            self._inference.put_inputs(self._inputs_of_part)

    def _inputs_of_part(self, name: str, part: int) -> npt.NDArray[np.float32]:
        """Return the features, if there are any, and the learned rows of a type in a part."""
        assert self._learned is not None
        rows = [*self._dataset.features_of(name, part), self._learned.of_part(name, part)]
        return np.concatenate(rows, axis=1).astype(np.float32, copy=False)

    def _inputs(self, step: Step) -> dict[str, Tensor]:
        """Return the features of a step, and the learned rows behind them. All workers call it."""
        if self._learned is None:
            return step.x
        with self._clock.timed(SYNCHRONISING):
            learned = self._learned.inputs(step.inputs, self._device)
        both = {name: torch.cat([step.x[name], learned[name]], 1) for name in step.x.keys() & learned.keys()}
        return {**step.x, **learned, **both}

    def _losses(self, step: Any) -> float:
        """Add the gradients of a step, and return the sum of its losses here.

        Relations take turns, so a step of a graph with types leaves weights out. Their gradients are 0, also where one
        worker trains, as they are where gradients are added.
        """
        loss = super()._losses(step)
        for weight in self.network.parameters() if self._dataset.has_types else ():
            if weight.requires_grad and weight.grad is None:
                weight.grad = torch.zeros_like(weight)
        return loss

    def _logits(self, step: Step) -> Tensor:
        """Return the logits of the pairs of a step."""
        dtype = self.learner.dtype
        with self.learner.computing():
            return self.network.decoder_of(step.relation)(*self.network.ends_of(step, dtype)).to(dtype)

    def _counts(self, local: int) -> dict[str, int]:
        counts = super()._counts(local)
        messages = 0 if self._learned is None else self._learned.counts.read()["remote_bytes"]
        return counts | {"remote_bytes": counts["remote_bytes"] + messages}

    def state(self) -> dict[str, Any]:
        """Return what a resume needs beside the files of the learned rows."""
        state: dict[str, Any] = {"learner": self.learner.state()}
        if self._learned is None:
            return state
        saved = self._learned.state()
        if self._of_all:
            return {**state, "best": saved["best"], "embeddings": saved["table"]}
        return {**state, "learned": saved}

    def final(self, best: dict[str, Tensor]) -> dict[str, float]:
        """Return the scores of the best weights, and write the learned rows of the best epoch."""
        self.learner.put(best)
        if self._learned is not None:
            self._learned.put_best()
            self._write(self._learned)
        self._put_inputs()
        return {
            f"{split}_{name}": value
            for split in ("val", "test")
            for name, value in self._scorer.scores(self.network, split).items()
        }

    def _write(self, learned: LearnedRows) -> None:
        """Write the learned rows, for the result. In a graph without types, they are in one file."""
        if self._of_all:
            own, width = np.flatnonzero(self._owned).tolist(), self._options.embeddings
            assert width is not None
            write_embeddings(
                self._dataset, self._out, own, width, lambda part: learned.of_part(ONLY_TYPE, part)
            )
        else:
            learned.write()
