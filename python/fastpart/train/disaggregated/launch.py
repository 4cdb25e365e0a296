"""``armada``: start batch workers, a receiver and compute workers for a partition directory."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from ...core import parameters
from ...core.cache_size import CacheSize
from ...errors import ParameterError
from ...partitions.partition import PartitionSource
from ...runtime.environment import found
from ..config import Call
from ..data import Dataset
from ..jobs import driver
from ..jobs.launch import Launch
from ..keywords import SAMPLING_RULES
from ..memory import Need
from ..models import NEIGHBOUR, may_take_edges, sampling_of
from ..trainer import BatchWorkers, InputRows, Neighbours, Trainer
from .cache import POLICIES
from .holding import needs, parts_in_memory
from .processes import joined, started
from .schedule import ORDERS
from .settings import Settings


class Driver(driver.Driver):
    """Starts all processes."""

    dataset: Dataset

    def __init__(self, trainer: Trainer, source: PartitionSource, call: Call) -> None:
        options, made, rows = call.options, trainer.made, trainer.exchange
        assert isinstance(trainer.batches, Neighbours)
        assert isinstance(made, BatchWorkers)
        assert isinstance(rows, InputRows)
        if sampling_of(options.model) != NEIGHBOUR:
            raise ParameterError(
                f"model: {options.model!r} needs sampled graphs, but batch workers sample neighbours only. Train it "
                "with sampled, or use graphsage, which has the same layers"
            )
        how: dict[str, Any] = {
            "sampling": parameters.choice("sampling", trainer.batches.sampling, SAMPLING_RULES),
            "order": parameters.choice("order", made.order, ORDERS),
        }
        batch_workers = parameters.integer("batch_workers", made.batch_workers, 1, 1 << 12)
        asked = made.compute_workers
        if asked is not None:
            asked = parameters.integer("compute_workers", asked, 1, 1 << 12)
        count = asked or 1 if (ranks := found()) is None else ranks.size
        dataset = Dataset(source)
        super().__init__(trainer, call, dataset, count, asked)
        hold = parts_in_memory(dataset, batch_workers, made.order, made.hold, call.run.memory_limit)
        if made.order == "parts":
            how |= {"batch_workers": batch_workers, "hold": hold}
        self.how, self.running = how, {"scores": call.scores}
        self._settings = Settings(
            source=os.path.abspath(dataset.path),
            fanouts=options.fanouts,
            batch_size=options.batch_size or dataset.num_train,
            sampling=trainer.batches.sampling,
            seed=options.seed,
            order=made.order,
            hold=hold,
            cache=CacheSize.of(rows.cache).given,
            policy=parameters.choice("policy", rows.policy, POLICIES),
            ahead=parameters.integer("ahead", made.ahead, 1, 2**10),
            batch_workers=batch_workers,
            compute_workers=count,
            first=0,
            local_workers=count,
            timeout=call.timeout,
            token=secrets.token_hex(16),
            edge_features=may_take_edges(options.model, dataset.task),
        )

    def prepare(self, launch: Launch, stack: ExitStack) -> None:
        """Start the processes that are no compute workers."""
        if launch.group is None:
            file = stack.enter_context(joined(self._settings, self.call.run.tmp_dir))
        else:
            file = started(launch.group, self._settings)
        self.running["settings"] = str(file)

    def needs(self) -> tuple[Sequence[Need], Sequence[Need]]:
        """Return what each compute worker takes, and what the other processes take."""
        return needs(self.dataset, self.options, self._settings)

    def summary(self) -> dict[str, Any]:
        """Return what the summary says of parts and workers."""
        facts = super().summary()
        workers = {"batch_workers": self._settings.batch_workers, "compute_workers": facts.pop("workers")}
        return {**facts, **workers}
