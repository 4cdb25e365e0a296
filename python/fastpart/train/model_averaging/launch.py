"""``sdt``: start workers for a partition directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from ... import _core
from ...core import parameters
from ...core.options import RunOptions
from ...core.parameters import StrPath
from ...errors import ParameterError
from ...runtime.environment import found
from ..config import Call
from ..data import Dataset
from ..jobs.launch import launching
from ..trainable import refuse_before_workers
from ..trained import TrainedModel
from ..trainer import Average, ModelAverage, Trainer
from .regroup import regrouped
from .sizing import Sizes, needs, parts_for
from .training import copies_of

AVERAGES: tuple[Average, ...] = get_args(Average)


def start(trainer: Trainer, source: StrPath, given: Mapping[str, Any]) -> TrainedModel:
    """Start the workers, over new parts if the user wants other ones."""
    call, sync = Call.of(given), trainer.sync
    options, run = call.options, call.run
    assert isinstance(sync, ModelAverage)
    how = {
        "average": parameters.choice("average", sync.of, AVERAGES),
        "average_every": parameters.integer("average_every", sync.every, 1, options.epochs),
        "moments": parameters.flag("average_moments", sync.moments),
    }
    asked = call.workers
    wanted = _Parts(sync.parts, parameters.memory_size(sync.memory_per_worker))
    dataset = Dataset(source)
    count = asked or run.threads or _core.default_threads() if (ranks := found()) is None else ranks.size
    with launching(call, asked) as launch:
        sizes = launch.once(lambda: wanted.of(dataset, count, run))
        user = dataset
        if sizes.parts != dataset.partition.k:
            launch.begin("sdt", options, how, dataset, dataset.task)  # refuses before it partitions
            folder = launch.once(lambda: regrouped(user, sizes.parts, launch.folder, run).path.absolute())
            dataset = Dataset(folder)
        if ranks is None:
            count = min(count, dataset.partition.k)
        refuse_before_workers(dataset.task, options, copies_of(dataset, sync.of, count))
        facts, needed = _facts(dataset, sizes, count), needs(dataset, options, count)
        return launch.train("sdt", options, how, dataset, count, facts, needed, source=user)


@dataclass(frozen=True)
class _Parts:
    """The arguments about the parts."""

    number: int | str | None
    budget: int | None

    def of(self, dataset: Dataset, workers: int, run: RunOptions) -> Sizes:
        """Return the number of parts."""
        number = self.number
        if isinstance(number, str):
            parameters.choice("parts", number, ("auto",))
            if self.budget is None:
                raise ParameterError(
                    'parts: "auto" depends on the memory of a worker. Pass memory_per_worker'
                )
            return parts_for(dataset, self.budget, workers, run)
        number = dataset.partition.k if number is None else parameters.parts(number)
        return Sizes.given(dataset, number, self.budget)


def _facts(dataset: Dataset, sizes: Sizes, workers: int) -> dict[str, Any]:
    measured = dataset.manifest.get("summary", {})
    return {
        "parts": dataset.partition.k,
        "halo_rf": measured.get("halo_rf"),
        "label_skew": measured.get("label_skew"),
        "workers": workers,
        "sizing": sizes.explained,
    }
