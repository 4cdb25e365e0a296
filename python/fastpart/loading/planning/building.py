"""Makes a plan: the access lists of all workers, which rows stay in memory, and the packs of the others."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ... import _core
from ...core import parameters
from ...core.folders import below
from ...core.frames import pl
from ...core.options import RunOptions
from ...core.outputs import owning
from ...core.parameters import StrPath, shown, sized
from ...errors import MemoryBudgetError, ParameterError, arg
from ...measures.accesses import SampledEpochs, accesses_of
from ...partitions.loader_options import PlanOptions
from ...partitions.partition import VertexPartition
from ...partitions.plan import MARKER, Plan, replaced_files
from .costs import planned_ways
from .key import key_of
from .packing import WorkerPack, most_used, without, write


def plan(
    partition: VertexPartition,
    epochs: int = 1,
    *,
    fanouts: Sequence[int],
    vertices: Any = "train",
    workers: int = 1,
    memory: int | str | None = None,
    pack: StrPath | None = None,
    options: PlanOptions,
) -> Plan:
    """Plan the next epochs, as :meth:`fastpart.VertexPartition.plan` documents."""
    count = parameters.integer("epochs", epochs, 1, 2**31 - 1)
    world_size = parameters.integer("workers", workers, 1, partition.k)
    kept = parameters.memory_size(memory, "memory", 0) or 0
    target = None if pack is None else parameters.in_folder(parameters.path("pack", pack))
    with owning(pack=target):
        return _plan(partition, count, fanouts, vertices, world_size, kept, target, options)


def _plan(
    partition: VertexPartition,
    count: int,
    fanouts: Sequence[int],
    vertices: Any,
    world_size: int,
    kept: int,
    target: Path | None,
    options: PlanOptions,
) -> Plan:
    """Make a plan of checked parameters."""
    run, threads = options.run, options.threads or _core.default_threads()
    replaced = [] if target is None else replaced_files(target)
    features, row_bytes = stored_features(partition), partition.parts[0].feature_bytes
    _refuse_large(kept * world_size, run)
    sampled = SampledEpochs.of(partition, vertices, fanouts, world_size, options, threads)
    lists, packs, told = [], [], []
    for worker in range(world_size):
        lists.append(accesses_of(sampled, range(count), worker))
        cached, distinct = most_used(lists[-1], partition._topology.num_vertices, kept // max(row_bytes, 1))
        packs.append(WorkerPack(worker, cached, without(lists[-1], cached, partition._topology.num_vertices)))
        told.append(
            {
                "worker": worker,
                "batches": len(lists[-1]),
                "rows": len(lists[-1].rows),
                "distinct_rows": distinct,
                "cached_rows": len(cached),
                "read_rows": packs[-1].num_rows - len(cached),
            }
        )
    key = key_of(partition, sampled.deal, parameters.fanouts_of(fanouts), world_size, options)
    ways = planned_ways(partition, lists, packs, run.memory_limit or _core.memory_budget())
    made = Plan(count, pl.DataFrame(told), pl.DataFrame(ways), row_bytes, key, target)
    if target is not None:
        _refuse_full(target, sum(each.num_rows for each in packs) * row_bytes)
        _write(target, replaced, made, packs, features, run)
    return made


def _files(partition: VertexPartition) -> list[Path]:
    return [part.folder / "features.npy" for part in partition.parts]


def stored_features(partition: VertexPartition) -> _core.Features:
    """Return the features of all parts as they are stored."""
    partition.refuse_types("partition", "a plan is for")
    if partition.parts[0].stored_type("features") is None:
        raise ParameterError(f"partition: it has no features to plan for. Save it with {arg('features')}")
    missing = [part for part, file in enumerate(_files(partition)) if not file.exists()]
    if missing:
        raise ParameterError(
            f"partition: features.npy of part {missing[0]} is not on this machine. A plan needs those of all parts"
        )
    files = [part._file("features.npy") for part in partition.parts]
    return _core.Features(files, partition._topology)


def _write(
    target: Path,
    replaced: list[str],
    made: Plan,
    packs: list[WorkerPack],
    features: _core.Features,
    run: RunOptions,
) -> None:
    """Write the folder of a plan under a temporary name, and rename it when it is complete."""
    directory = _core.AtomicDir(target, replaced)
    try:
        inside = Path(directory.path)
        write(inside, packs, features, run)
        _core.write_file(inside / MARKER, made.marker(below(inside)))
        directory.commit()
    finally:
        directory.discard()


def _refuse_large(memory: int, run: RunOptions) -> None:
    limit = _core.memory_budget() if run.memory_limit is None else run.memory_limit
    if memory > limit:
        raise MemoryBudgetError(
            f"memory: the rows of all workers take {sized(memory)}, but the memory limit leaves {sized(limit)}. Use a "
            f"smaller {arg('memory')}"
        )


def _refuse_full(target: Path, needed: int) -> None:
    free = shutil.disk_usage(target.parent).free
    if needed > free:
        raise ParameterError(
            f"pack: the rows take {sized(needed)}, but the disk of {shown(target)} has {sized(free)} left. Plan fewer "
            "epochs, or use another disk"
        )
