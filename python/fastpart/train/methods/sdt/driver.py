"""``sdt``: start workers for a partition directory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from .... import _core
from ....errors import ParameterError, code
from ....partitions.partition import PartitionSource
from ....runtime.environment import found
from ...data.dataset import Dataset
from ...jobs import driver
from ...jobs.launch import Launch
from ...memory import Need
from ...method_options import SDTOptions
from ...registry import Method
from .sizing import Sizes, needs, parts_for, regrouped
from .worker import copies_of


class Driver(driver.Driver):
    """Starts workers, over new parts if the user wants other ones."""

    dataset: Dataset

    options: SDTOptions

    def __init__(self, method: Method, source: PartitionSource, options: SDTOptions) -> None:
        asked, self._ranks = options.workers, found()
        count = (
            (asked or options.threads or _core.default_threads()) if self._ranks is None else self._ranks.size
        )
        dataset = Dataset(source, options.target)
        super().__init__(method, options, dataset, count, asked)
        if dataset.has_types:
            _refuse_for_types(dataset, options)
        self.decisive = {
            "average": options.average,
            "average_every": options.average_every,
            "moments": options.average_moments,
        }

    @property
    def copies(self) -> int:
        """How many copies of the network train at a time."""
        return copies_of(self.dataset, self.options.average, self.workers)

    def refuse(self) -> None:
        """Refuse nothing yet: copies depend on the parts."""

    def prepare(self, launch: Launch, stack: ExitStack) -> None:
        """Partition again, if the user wants other parts, and refuse what cannot be trained over them."""
        run = self.options.run
        self._sizes = sizes = launch.once(self._wanted)
        if self._ranks is None:
            self.workers = min(self.workers, sizes.parts)
        if self.options.average == "gradients" and self.options.batch_size is not None:
            self.decisive["workers"] = self.workers  # a step has a batch of each
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

    def _wanted(self) -> Sizes:
        """Return the number of parts."""
        options, number = self.options, self.options.parts
        if isinstance(number, str):
            if options.memory_per_worker is None:
                raise ParameterError(
                    'parts: "auto" depends on the memory of a worker. Pass memory_per_worker'
                )
            return parts_for(self.dataset, options.memory_per_worker, self.workers, options.run)
        number = self.dataset.partition.k if number is None else number
        return Sizes.given(self.dataset, number, options.memory_per_worker)


def _refuse_for_types(dataset: Dataset, options: SDTOptions) -> None:
    """Refuse what only graphs without types have."""
    if options.parts not in (None, dataset.partition.k):
        raise ParameterError(
            "parts: a graph with types is not partitioned again. Save a partition with the wanted number of parts, and "
            "leave this out"
        )
    if options.batch_size is not None:
        raise ParameterError(
            "batch_size: batches of a part are sampled without types. Leave it out, and each step is of all training "
            "vertices of a part"
        )
    if dataset.task.learned:
        raise ParameterError(
            f"source: {', '.join(dataset.task.learned)} have no features, and learned rows would have to be exchanged. "
            f"Save features of all types, or train with {code('fastpart.train.sampled', '`fastpart train sampled`')}"
        )
