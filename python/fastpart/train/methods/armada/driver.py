"""``armada``: start batch workers, a receiver and compute workers, on one machine or many, and state their memory."""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch.distributed as dist

from .... import _core
from ....core import parameters
from ....errors import MemoryBudgetError, ParameterError, TrainingError, arg
from ....partitions.partition import PartitionSource
from ....partitions.parts import VertexPartData
from ....partitions.types import fanouts_of
from ....runtime.environment import found
from ....runtime.watch import Supervisor
from ...data.dataset import Dataset
from ...jobs.launch import Launch
from ...memory import (
    LIGHT_BYTES,
    SMALLER,
    BatchSize,
    Need,
    batches,
    edge_row_bytes,
    evaluation,
    row_bytes,
    size_of,
    weights,
)
from ...method_options import ArmadaOptions, Order
from ...models import NEIGHBOUR, may_take_edges, sampling_of
from ...options import Options
from ...ranks import from_first, rank, world_size
from ...registry import Method
from ..sampled.driver import LearningRows
from .batch_worker import RECEIVERS
from .rendezvous import Settings, address_of, cached_rows

_MODULE = "fastpart.train.methods.armada"
_ENVIRONMENT = {"OMP_NUM_THREADS": "1"}

LOOPBACK = "127.0.0.1"


def started(group: Supervisor, settings: Settings) -> Path:
    """Start all processes but the compute workers on this machine. Return the file of the settings."""
    file = group.folder / "armada.json"
    settings.save(file)
    _start_batch_workers(group, file, range(settings.batch_workers))
    group.start("receiver", _MODULE, "receiver", str(file), LOOPBACK, environment=_ENVIRONMENT, serves=True)
    return file


@contextmanager
def joined(settings: Settings, tmp_dir: Path | None) -> Iterator[Path]:
    """Start a receiver on each machine of a launcher, and some batch workers. Yield the file of the settings there.

    All ranks have to call it. The first one of a machine supervises the processes there.
    """
    here, workers = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    settings = replace(settings, token=from_first(settings.token), first=rank() - here, local_workers=workers)
    if here:
        yield _meet(None)
        return
    with Supervisor(tmp_dir, settings.timeout) as group:
        file = group.folder / "armada.json"
        settings.save(file)
        group.start("receiver", _MODULE, "receiver", str(file), _address(), environment=_ENVIRONMENT)
        _meet(file, group, settings.batch_workers)
        leaving = threading.Event()
        threading.Thread(target=_watch, args=(group, leaving), daemon=True).start()
        try:
            yield file
        finally:
            leaving.set()


def _meet(file: Path | None, group: Supervisor | None = None, batch_workers: int = 0) -> Path:
    """Tell all ranks where the receivers are, and start the batch workers of this machine. Return its settings."""
    found = None if file is None else (str(file), address_of(file.parent))
    of_all: list[tuple[str, tuple[str, int]] | None] = [None] * world_size()
    dist.all_gather_object(of_all, found)
    receivers = [each[1] for each in of_all if each is not None]
    if file is None or group is None:
        mine = [each for each in of_all[: rank()] if each is not None][-1]
        return Path(mine[0])
    _core.write_file(file.parent / RECEIVERS, json.dumps({"receivers": receivers}).encode())
    machine = receivers.index(address_of(file.parent))
    _start_batch_workers(group, file, range(machine, batch_workers, len(receivers)))
    return file


def _start_batch_workers(group: Supervisor, file: Path, workers: Iterable[int]) -> None:
    for worker in workers:
        name, arguments = f"batch worker {worker}", ("batch_worker", str(file), str(worker))
        group.start(name, _MODULE, *arguments, environment=_ENVIRONMENT, serves=True, replaceable=True)


def _watch(group: Supervisor, leaving: threading.Event) -> None:
    """End this process, and so the other ranks, when the processes here fail."""
    try:
        for _ in group.messages():
            pass
    except (TrainingError, OSError, ValueError) as error:  # the last two if the group has ended
        if not leaving.is_set():
            print(error, file=sys.stderr, flush=True)
            group.__exit__(type(error), error, None)
            os._exit(1)


def _address() -> str:
    """Return the address at which other machines reach this one: that with which it reaches the first one."""
    if os.environ["LOCAL_WORLD_SIZE"] == os.environ["WORLD_SIZE"]:
        return LOOPBACK
    ranks = found()
    assert ranks is not None  # a launcher has started them
    at = ranks.address()  # a group of the user may have met elsewhere
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:  # it sends nothing
        line.connect((at["MASTER_ADDR"], int(at["MASTER_PORT"])))
        address: str = line.getsockname()[0]
        return address


_VERTEX_BYTES, _EDGE_BYTES = 40, 24
"""Memory of a part in a batch worker, beside its features: as read, and while it is joined with the others."""


class Driver(LearningRows):
    """Starts all processes."""

    options: ArmadaOptions

    def __init__(self, method: Method, source: PartitionSource, options: ArmadaOptions) -> None:
        if sampling_of(options.model) != NEIGHBOUR:
            raise ParameterError(
                f"model: {options.model!r} needs sampled graphs, but batch workers sample neighbours only. Train it "
                "with sampled, or use graphsage, which has the same layers"
            )
        asked = options.compute_workers
        count = asked or 1 if (ranks := found()) is None else ranks.size
        dataset = Dataset(source, options.target)
        if dataset.has_types and options.order == "parts":
            raise ParameterError(
                f"order: parts in memory are sampled without types. Use {arg('order', 'global')}, which maps all parts"
            )
        super().__init__(method, options, dataset, count, asked)
        hold = parts_in_memory(
            dataset, options.batch_workers, options.order, options.hold, options.memory_limit
        )
        self.decisive = {"sampling": options.sampling, "order": options.order}
        if options.order == "parts":
            self.decisive |= {"batch_workers": options.batch_workers, "hold": hold}
        self._settings = Settings(
            source=os.path.abspath(dataset.path),
            fanouts=fanouts_of(dataset.fanouts(options), dataset.partition),
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
            target=dataset.target,
        )

    def prepare(self, launch: Launch, stack: ExitStack) -> None:
        """Start the processes that are no compute workers."""
        super().prepare(launch, stack)
        if launch.group is None:
            file = stack.enter_context(joined(self._settings, self.options.tmp_dir))
        else:
            file = started(launch.group, self._settings)
        self.options = replace(self.options, settings=str(file))

    def needs(self) -> tuple[Sequence[Need], Sequence[Need]]:
        """Return what each compute worker takes, and what the other processes take."""
        workers, others = needs(self.dataset, self.options, self._settings)
        learned = self.learned_needs(-(-self.dataset.partition.k // self._settings.local_workers))
        return [*workers, *learned], others

    def summary(self) -> dict[str, Any]:
        """Return what the summary says of parts and workers."""
        facts = super().summary()
        workers = {"batch_workers": self._settings.batch_workers, "compute_workers": facts.pop("workers")}
        return {**facts, **workers}


def parts_in_memory(
    dataset: Dataset, batch_workers: int, order: Order, asked: int | None, limit: int | None = None
) -> int:
    """Return how many parts a batch worker holds: as asked, else as many as fit the memory. 0: all are mapped."""
    if order == "global":
        if asked is not None:
            raise ParameterError(
                f"hold: {arg('order', 'global')} maps all parts. Leave it out, or use {arg('order', 'parts')}"
            )
        return 0
    most = -(-dataset.partition.k // batch_workers)
    if asked is not None:
        most = min(parameters.integer("hold", asked, 1, 1 << 20), most)
    sizes = sorted((_num_bytes(part) for part in dataset.partition.parts), reverse=True)
    budget = (_core.memory_budget() if limit is None else limit) // batch_workers
    fitting = next((count for count in range(most, 0, -1) if sum(sizes[:count]) <= budget), 0)
    if fitting < (most if asked is not None else 1):
        count = most if asked is not None else 1
        raise MemoryBudgetError(
            f"hold: {count} parts need up to {sum(sizes[:count]):,} bytes, but the memory limit leaves {budget:,} for "
            f"each batch worker. Use a smaller {arg('hold')}, more parts, or {arg('order', 'global')}, which maps them"
        )
    return fitting


def needs(dataset: Dataset, options: Options, settings: Settings) -> tuple[list[Need], list[Need]]:
    """Return the memory that each compute worker takes, and that of the other processes."""
    (n, edges), k = size_of(dataset), dataset.partition.k
    of_types = [of_type[0].feature_bytes for of_type in dataset.types.values()]
    row, rows = max(of_types), [sum(part.num_inner for part in of_type) for of_type in dataset.types.values()]
    fanouts = dataset.task.most_in_edges(dataset.fanouts(options))
    count, makers = settings.local_workers, settings.batch_workers
    step = BatchSize.sampled(settings.batch_size, fanouts, n, edges)
    batch = BatchSize.sampled(-(-settings.batch_size // count), fanouts, n, edges)
    sizes = sorted(map(_num_bytes, dataset.partition.parts), reverse=True) if settings.hold else []
    capacities = cached_rows(settings.cache, rows, k, of_types)
    cached = sum(capacity * (each + 16) for capacity, each in zip(capacities, of_types, strict=True))
    training, of_edges = 56 * dataset.num_train, edge_row_bytes(dataset, options)
    workers = [
        weights(options, dataset.task),
        *batches(options, dataset.task, batch, row_bytes(dataset, moved=True), 4 + of_edges),
        *evaluation(dataset, options, -(-k // count)),
    ]
    return workers, [
        Need("a batch worker", LIGHT_BYTES, f"fewer {arg('batch_workers')}", makers),
        Need("training vertices and ids", training + 16 * n, f"fewer {arg('batch_workers')}", makers + 1),
        Need(
            "parts in memory",
            sum(sizes[: settings.hold]),
            f"a smaller {arg('hold')}, or {arg('order', 'global')}",
            makers,
        ),
        Need("two batches that are made", 2 * step.size(row, 4 + of_edges), SMALLER, makers),
        Need("a receiver", LIGHT_BYTES),
        Need("cached rows", cached, f"a smaller {arg('cache')}"),
        Need(
            "steps in /dev/shm",
            (settings.ahead + 1) * step.size(row, 4 + of_edges),
            f"a smaller {arg('ahead')}, or {SMALLER}",
        ),
    ]


def _num_bytes(part: VertexPartData) -> int:
    return part.num_inner * (part.feature_bytes + _VERTEX_BYTES) + part.num_edges * _EDGE_BYTES
