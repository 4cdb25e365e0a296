"""``armada``: start batch workers, a receiver and compute workers for a partition directory."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from ...errors import ParameterError
from ...partitions.partition import PartitionSource
from ...runtime.environment import found
from ..data import Dataset
from ..jobs import driver
from ..jobs.launch import Launch
from ..memory import Need
from ..method_options import ArmadaOptions
from ..models import NEIGHBOUR, may_take_edges, sampling_of
from ..registry import Method
from .holding import needs, parts_in_memory
from .processes import joined, started
from .settings import Settings


class Driver(driver.Driver):
    """Starts all processes."""

    dataset: Dataset
    options: ArmadaOptions

    def __init__(self, method: Method, source: PartitionSource, options: ArmadaOptions) -> None:
        if sampling_of(options.model) != NEIGHBOUR:
            raise ParameterError(
                f"model: {options.model!r} needs sampled graphs, but batch workers sample neighbours only. Train it "
                "with sampled, or use graphsage, which has the same layers"
            )
        asked = options.compute_workers
        count = asked or 1 if (ranks := found()) is None else ranks.size
        dataset = Dataset(source)
        super().__init__(method, options, dataset, count, asked)
        hold = parts_in_memory(
            dataset, options.batch_workers, options.order, options.hold, options.memory_limit
        )
        self.decisive = {"sampling": options.sampling, "order": options.order}
        if options.order == "parts":
            self.decisive |= {"batch_workers": options.batch_workers, "hold": hold}
        self._settings = Settings(
            source=os.path.abspath(dataset.path),
            fanouts=options.fanouts,
            batch_size=options.batch_size or dataset.num_train,
            sampling=options.sampling,
            seed=options.seed,
            order=options.order,
            hold=hold,
            cache=options.cache,
            policy=options.policy,
            ahead=options.ahead,
            batch_workers=options.batch_workers,
            compute_workers=count,
            first=0,
            local_workers=count,
            timeout=options.timeout,
            token=secrets.token_hex(16),
            edge_features=may_take_edges(options.model, dataset.task),
        )

    def prepare(self, launch: Launch, stack: ExitStack) -> None:
        """Start the processes that are no compute workers."""
        if launch.group is None:
            file = stack.enter_context(joined(self._settings, self.options.tmp_dir))
        else:
            file = started(launch.group, self._settings)
        self.options = replace(self.options, settings=str(file))

    def needs(self) -> tuple[Sequence[Need], Sequence[Need]]:
        """Return what each compute worker takes, and what the other processes take."""
        return needs(self.dataset, self.options, self._settings)

    def summary(self) -> dict[str, Any]:
        """Return what the summary says of parts and workers."""
        facts = super().summary()
        workers = {"batch_workers": self._settings.batch_workers, "compute_workers": facts.pop("workers")}
        return {**facts, **workers}
