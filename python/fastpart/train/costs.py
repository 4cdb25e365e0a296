"""What an epoch of ``sampled`` reads and what its workers take, before anybody trains."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .. import _core
from ..core.calls import full_signature, refuse_misuse, spread
from ..core.options import RunOptions
from ..core.parameters import shown, sized
from ..errors import MemoryBudgetError, ParameterError
from ..measures.accesses import SampledEpochs
from ..measures.reading import Disk, EpochReads, FeatureFiles, FeatureSizes, ways
from ..partitions.loader_options import EpochOptions
from ..partitions.partition import PartitionSource, directory_of
from ..partitions.plan import ReadCost, table
from .memory import Need, left_by, may_copy, of_processes, processes
from .method_options import SampledOptions
from .methods.sampled import METHOD
from .methods.sampled.driver import Driver
from .models import NEIGHBOUR, sampling_of

EPOCHS = 3
"""Epochs of the plan that is told."""

_LARGEST = 4
"""Needs of a worker that are listed."""


@dataclass(frozen=True)
class Costs:
    """What an epoch reads, and what the workers take.

    Attributes
    ----------
    source : str
        The partition directory.
    workers, training, batch_size : int
        Number of workers and of training vertices, and those of a step.
    target : str or None
        The type of the training vertices in a graph with types.
    fanouts : tuple of int, or dict of them
        Neighbours per vertex in each hop, or those of each relation.
    sampling, seed
        How they are sampled.
    reads : EpochReads
        What batches read.
    stored : FeatureSizes
        The features in their files.
    disk : Disk or None
        What the disk does in a second. None: direct reads are refused, or no type has features.
    limit, needed : int
        The memory limit, and bytes of all processes.
    needs : list of Need
        What each worker takes.
    refusal : str or None
        Why the training would not begin.
    ways : list of ReadCost
        What each way to read the features takes.
    """

    source: str
    workers: int
    training: int
    batch_size: int
    target: str | None
    fanouts: tuple[int, ...] | Mapping[str, tuple[int, ...]]
    sampling: str
    seed: int
    reads: EpochReads
    stored: FeatureSizes
    disk: Disk | None
    limit: int
    needed: int
    needs: Sequence[Need]
    refusal: str | None
    ways: Sequence[ReadCost]

    @property
    def left(self) -> int:
        """Bytes that the page cache has for features."""
        return max(self.limit - self.needed, 0)

    @property
    def advice(self) -> str:
        """What pays, in a few sentences."""
        if self.refusal is not None:
            return f"This training would not begin: {self.refusal}."
        if not self.stored.bytes:
            return "No type has features. Their rows are learned, and none are read."
        if self.stored.bytes <= self.left:
            return "Memory holds the features. They are read once, and nothing else pays."
        coded = sized(self.stored.coded_bytes)
        if self.stored.coded_bytes <= self.left:
            return (
                f"Memory does not hold the features, but with 8 bits per number they take {coded} and fit: save the "
                "partition with --feature-dtype int8."
            )
        smaller = (
            f" With 8 bits per number (--feature-dtype int8) they take {coded}."
            if self.stored.coded_bytes < self.stored.bytes
            else ""
        )
        return f"Memory does not hold the features.{smaller} {self._of_plan()}"

    def _of_plan(self) -> str:
        by_name = {way.way: way for way in self.ways}
        if self.disk is None or "direct" not in by_name:
            other = ", or make a plan" if "plan" in by_name else ""
            return (
                f"The file system refuses direct reads. Put the directory on a disk that allows them{other}."
            )
        if "plan" not in by_name:
            return "Direct reads (--io direct, the default here) read no more than what batches need."
        direct, plan = by_name["direct"].seconds, by_name["plan"].seconds
        assert direct is not None
        assert plan is not None
        saved = direct - 2 * plan  # packing an epoch writes what it reads
        if saved <= 0:
            return "Direct reads (--io direct, the default here) take less time than packing: a plan does not pay."
        epochs = math.ceil(self.disk.consecutive(self.stored.bytes) / saved)
        more = {
            "sampling": (self.sampling, "uniform"),
            "seed": (self.seed, 0),
            "input": (self.target, None),
        }
        others = "".join(f" --{name} {value}" for name, (value, default) in more.items() if value != default)
        return (
            f"A plan pays from {epochs} epoch{'s' * (epochs > 1)} on, against direct reads: fastpart plan "
            f"{self.source} --epochs {EPOCHS} --fanouts {self._fanouts} --batch-size {self.batch_size} --workers "
            f"{self.workers}{others} -o PLAN"
        )

    def rows(self) -> dict[str, Any]:
        """Return all of it, as JSON takes it."""
        told = {**vars(self), "reads": asdict(self.reads), "stored": asdict(self.stored)}
        told["disk"] = None if self.disk is None else asdict(self.disk)
        told["needs"] = [{"what": need.what, "size": need.size} for need in self.needs]
        return {**told, "ways": [asdict(way) for way in self.ways], "left": self.left, "advice": self.advice}

    def __str__(self) -> str:
        reads, stored = self.reads, self.stored
        largest = sorted((need for need in self.needs if need.size), key=lambda need: -need.size)[:_LARGEST]
        each = f" of {stored.bytes // stored.rows:,} bytes" if stored.rows and self.target is None else ""
        of = "" if self.target is None else f" of {self.target}"
        of_types = " of all types" if self.target is not None else ""
        remote = f"{reads.remote_rows:,} of parts of other workers: {sized(reads.remote_bytes)}"
        facts = {
            "training": f"{self.training:,} vertices{of}, {reads.steps:,} steps of {self.batch_size:,}, fanouts "
            + self._fanouts,
            "rows": f"{reads.rows:,} per epoch, each once for a batch: {sized(reads.row_bytes)}",
            **({"remote": f"{remote}, without a cache"} if self.workers > 1 else {}),
            "features": f"{sized(stored.bytes)}: {stored.rows:,} rows{of_types}{each}",
            **({"disk": self._disk} if stored.bytes else {}),
            "memory": f"{sized(self.limit)}, of which {sized(self.left)} are left for features",
            "workers": f"{self.workers}, each takes {sized(sum(need.size for need in self.needs))}",
        }
        lines = [f"{name:10}{text}" for name, text in facts.items()]
        lines += [f"{'':10}{sized(need.size)} for {need.what}" for need in largest]
        return "\n".join([*lines, "", *self._table(), self.advice])

    @property
    def _fanouts(self) -> str:
        """Fanouts as an option takes them."""
        if not isinstance(self.fanouts, Mapping):
            return ",".join(map(str, self.fanouts))
        return ",".join(f"{name}={':'.join(map(str, each))}" for name, each in self.fanouts.items())

    @property
    def _disk(self) -> str:
        if self.disk is None:
            return "refuses direct reads"
        return (
            f"{self.disk.reads:,.0f} reads of 4 KiB and {sized(int(self.disk.bytes))} in sequence per second"
        )

    def _table(self) -> list[str]:
        if not self.ways:
            return []
        packed = [f"plan: packed rows of {EPOCHS} epochs, built once by reading and writing in sequence"]
        return [*table(self.ways), *(packed if any(way.way == "plan" for way in self.ways) else []), ""]


def costs(source: PartitionSource, **training: Any) -> Costs:
    """Return what an epoch of :func:`fastpart.train.sampled` takes, by its parameters.

    Epoch 0 is sampled, and the disk is measured for a second. Features are not read otherwise.
    """
    training = spread(METHOD.function, training, METHOD.without)
    refuse_misuse(METHOD.name, full_signature(METHOD.function), (source,), training, METHOD.without)
    given = SampledOptions.of({**METHOD.defaults, **training})
    driver = Driver(METHOD, source, given)
    driver.fit()
    options, partition, workers = driver.options, driver.dataset.partition, driver.workers
    if sampling_of(options.model) != NEIGHBOUR:
        raise ParameterError(f"model: {options.model} trains on sampled graphs, whose rows are not predicted")
    batch_size = options.batch_size or driver.dataset.num_train
    of_loader = EpochOptions(
        batch_size=batch_size, seed=options.seed, sampling=given.sampling, temporal=given.temporal
    )
    threads = given.threads or _core.default_threads()
    target, fanouts = driver.dataset.target or None, driver.dataset.fanouts(options)
    epochs = SampledEpochs.of(partition, "train", fanouts, workers, of_loader, threads, target)
    (mine, others), run = driver.needs(), given.run
    stated = [*of_processes(mine, workers), *others]
    needs = [*processes(workers, may_copy(workers, stated, run)), *stated]
    limit = run.memory_limit or _core.memory_budget()
    needed = sum(need.total for need in needs)
    reads, stored = (
        EpochReads.of(partition, epochs, workers, max(given.ahead, 1)),
        FeatureSizes.of(partition),
    )
    paths = [path for files in FeatureFiles.of(partition) if files is not None for path in files.paths]
    disk = Disk.of(paths) if paths else None
    return Costs(
        source=shown(directory_of(source)),
        workers=workers,
        training=driver.dataset.num_train,
        batch_size=batch_size,
        target=target,
        fanouts=fanouts,
        sampling=given.sampling,
        seed=options.seed,
        reads=reads,
        stored=stored,
        disk=disk,
        limit=limit,
        needed=needed,
        needs=mine,
        refusal=_refusal(needs, run),
        ways=ways(reads, disk, stored, max(limit - needed, 0), EPOCHS) if paths else [],
    )


def _refusal(needs: Sequence[Need], run: RunOptions) -> str | None:
    try:
        left_by(needs, run)
    except MemoryBudgetError as error:
        return str(error)
    return None
