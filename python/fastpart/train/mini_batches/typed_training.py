"""The worker over a typed graph: it also owns the learned rows of its parts, where types have no features."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from ...partitions.seeds import rank_of_part
from ..clock import SYNCHRONISING
from ..jobs.worker import Place
from ..learned_rows import LearnedRows
from ..models import takes_edge_attr
from ..ranks import world_size
from ..runs.history import score_of
from ..typed_data import TypedDataset
from ..typed_inference import TypedInference
from . import training
from .steps import StepSource
from .typed_steps import TypedNeighbours


class Worker(training.Worker):
    """A worker. Where types have no features, their rows are learned beside the weights."""

    _inference: TypedInference

    def __init__(
        self,
        dataset: TypedDataset,
        options: training.WorkerOptions,
        place: Place,
        state: dict[str, Any],
    ) -> None:
        types = dataset.task.learned
        super().__init__(dataset, options, place, state.get("learner", {}) if types else state)
        self._learned: LearnedRows | None = None
        if not types:
            return
        self._learned = LearnedRows(
            dataset.partition,
            types,
            rank_of_part(dataset.partition.k, world_size()),
            options.hidden,
            options.seed,
            options.lr,
            place.out,
            options.timeout,
            np.float64 if options.precision == "float64" else np.float32,
        )
        if state:
            self._learned.load(state["learned"])

    def _source(
        self,
        dataset: Any,
        options: Any,
        place: Place,
        owners: npt.NDArray[np.int64],
    ) -> StepSource:
        return TypedNeighbours(dataset, options, place.free_bytes, takes_edge_attr(self.network))

    def _inference_of(self, dataset: Any, *given: Any) -> TypedInference:
        return TypedInference(dataset, *given)

    def round(self, epochs: int, scored: bool) -> dict[str, Any]:
        """Train one epoch, and return its row. ``epochs`` is always 1."""
        row = super().round(epochs, scored)
        if self._learned is not None:
            self._learned.follow(score_of(row, self.network.state_dict().values()))
        return row

    def _inputs(self, step: Any) -> dict[str, Tensor]:
        """Return the features of a step, and the learned rows. All workers call it."""
        if self._learned is None:
            return dict(step.x)
        with self._clock.timed(SYNCHRONISING):
            return {**step.x, **self._learned.inputs(step.inputs, self._device)}

    def _train(self, step: Any) -> float:
        step.x = self._inputs(step)
        loss = super()._train(step)
        if self._learned is not None:
            with self._clock.timed(SYNCHRONISING):
                self._learned.step()
        return loss

    def _scores(self) -> Any:
        if self._learned is not None and self._sampled is None and self._scored_by != "none":
            self._inference.put_inputs(self._learned.of_part)
        return super()._scores()

    def store(self) -> None:
        """Save the learned rows of this worker, before a checkpoint."""
        if self._learned is not None:
            self._learned.save()

    def state(self) -> dict[str, Any]:
        """Return what a resume needs."""
        if self._learned is None:
            return super().state()
        return {"learner": super().state(), "learned": self._learned.state()}

    def final(self, best: dict[str, Tensor]) -> dict[str, float]:
        """Return the scores of the best weights, and write the learned rows of the best epoch."""
        if self._learned is not None:
            self._learned.put_best()
            self._learned.write()
            self._inference.put_inputs(self._learned.of_part)
        return super().final(best)

    def close(self) -> None:
        """End the connections to other workers."""
        super().close()
        if self._learned is not None:
            self._learned.close()
