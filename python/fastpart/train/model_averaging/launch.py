"""``sdt``: start workers for a partition directory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

from ... import _core
from ...core import parameters
from ...core.options import RunOptions
from ...errors import ParameterError
from ...partitions.partition import PartitionSource
from ...runtime.environment import found
from ..config import Call
from ..data import Dataset
from ..jobs import driver
from ..jobs.launch import Launch
from ..memory import Need
from ..trainer import Average, ModelAverage, Trainer
from .regroup import regrouped
from .sizing import Sizes, needs, parts_for
from .training import copies_of

AVERAGES: tuple[Average, ...] = get_args(Average)


class Driver(driver.Driver):
    """Starts workers, over new parts if the user wants other ones."""

    dataset: Dataset

    def __init__(self, trainer: Trainer, source: PartitionSource, call: Call) -> None:
        sync, run, asked = trainer.sync, call.run, call.workers
        assert isinstance(sync, ModelAverage)
        how = {
            "average": parameters.choice("average", sync.of, AVERAGES),
            "average_every": parameters.integer("average_every", sync.every, 1, call.options.epochs),
            "moments": parameters.flag("average_moments", sync.moments),
        }
        self._wanted = _Parts(sync.parts, parameters.memory_size(sync.memory_per_worker))
        self._ranks = found()
        count = (asked or run.threads or _core.default_threads()) if self._ranks is None else self._ranks.size
        super().__init__(trainer, call, Dataset(source), count, asked)
        self.how = how

    @property
    def copies(self) -> int:
        """How many copies of the network train at a time."""
        return copies_of(self.dataset, self.how["average"], self.workers)

    def refuse(self) -> None:
        """Refuse nothing yet: copies depend on the parts."""

    def prepare(self, launch: Launch, stack: ExitStack) -> None:
        """Partition again, if the user wants other parts, and refuse what cannot be trained over them."""
        run = self.call.run
        self._sizes = sizes = launch.once(lambda: self._wanted.of(self.dataset, self.workers, run))
        if self._ranks is None:
            self.workers = min(self.workers, sizes.parts)
        if self.how["average"] == "gradients" and self.options.batch_size is not None:
            self.how["workers"] = self.workers  # a step has a batch of each
        if sizes.parts != self.dataset.partition.k:
            self.begin(launch)  # refuses before it partitions
            regroup = partial(regrouped, self.dataset, sizes.parts, launch.folder, run)
            self.dataset = Dataset(launch.once(lambda: regroup().path.absolute()))
        super().refuse()

    def needs(self) -> tuple[Sequence[Need], Sequence[Need]]:
        """Return what each worker takes."""
        return needs(self.dataset, self.options, self.workers), ()

    def summary(self) -> dict[str, Any]:
        """Return what the summary says of parts and workers, and why there are so many."""
        return {**super().summary(), "sizing": self._sizes.explained}


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
