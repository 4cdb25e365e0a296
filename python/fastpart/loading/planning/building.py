"""Makes a plan: the access lists of all workers, which rows stay in memory, and the packs of the others."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from ... import _core
from ...core import parameters
from ...core.folders import below
from ...core.frames import pl
from ...core.options import RunOptions
from ...core.outputs import new_folder, owning
from ...core.parameters import StrPath, shown, sized
from ...errors import MemoryBudgetError, ParameterError, arg
from ...measures.accesses import SampledEpochs, accesses_of
from ...measures.reading import FeatureFiles
from ...partitions.loader_options import Fanouts, PlanOptions
from ...partitions.partition import VertexPartition
from ...partitions.plan import MARKER, Plan, replaced_files
from ...partitions.types import type_names
from .costs import planned_ways, written_bytes
from .key import key_of
from .packing import PlannedType, WorkerPack, folder_of, most_used, without, write


def plan(
    partition: VertexPartition,
    epochs: int = 1,
    *,
    fanouts: Fanouts,
    vertices: Any = "train",
    input: str | None = None,
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
        return _plan(partition, count, fanouts, vertices, input, world_size, kept, target, options)


def _plan(
    partition: VertexPartition,
    count: int,
    fanouts: Fanouts,
    vertices: Any,
    input: str | None,
    world_size: int,
    kept: int,
    target: Path | None,
    options: PlanOptions,
) -> Plan:
    """Make a plan of checked parameters."""
    run, threads = options.run, options.threads or _core.default_threads()
    replaced = [] if target is None else replaced_files(target)
    types = planned_types(partition)
    _refuse_large(kept * world_size, run)
    sampled = SampledEpochs.of(partition, vertices, fanouts, world_size, options, threads, input)
    lists, told = [], []
    packs: list[list[WorkerPack]] = []
    for worker in range(world_size):
        lists.append(accesses_of(sampled, range(count), worker, [of.number for of in types]))
        cached, distinct = most_used(lists[-1], types, kept)
        packs.append([])
        for of, accesses, rows, number in zip(types, lists[-1], cached, distinct, strict=True):
            packs[-1].append(WorkerPack(folder_of(worker, of.name), rows, without(accesses, rows, of.n)))
            told.append(
                {
                    "worker": worker,
                    **({"type": of.name} if partition.is_typed else {}),
                    "batches": len(accesses),
                    "rows": len(accesses.rows),
                    "distinct_rows": number,
                    "cached_rows": len(rows),
                    "read_rows": packs[-1][-1].num_rows - len(rows),
                }
            )
    key = key_of(partition, sampled.deal, fanouts, world_size, options)
    ways = planned_ways(partition, types, lists, packs, run.memory_limit or _core.memory_budget())
    row_bytes = {of.name: of.row_bytes for of in types} if partition.is_typed else types[0].row_bytes
    made = Plan(count, pl.DataFrame(told), pl.DataFrame(ways), row_bytes, key, target)
    if target is not None:
        _refuse_full(target, written_bytes(types, packs))
        _write(target, replaced, made, packs, types, run)
    return made


def planned_types(partition: VertexPartition) -> list[PlannedType]:
    """Return the features of all types that have some, as they are stored."""
    types = [
        PlannedType(
            number,
            name,
            _core.Features(files.paths, files.topology, starts=files.starts),
            files.rows,
            files.row_bytes,
        )
        for number, (name, files) in enumerate(
            zip(type_names(partition), FeatureFiles.of(partition), strict=True)
        )
        if files is not None and _are_here(files)
    ]
    if not types:
        raise ParameterError(f"partition: it has no features to plan for. Save it with {arg('features')}")
    return types


def _are_here(files: FeatureFiles) -> bool:
    """Return whether there are files of all parts. Raise an error if one is missing."""
    missing = [
        place for place, part in enumerate(files.parts) if not (part._folder / "features.npy").exists()
    ]
    if missing:
        raise ParameterError(
            f"partition: features.npy of part {missing[0]} is not on this machine. A plan needs those of all parts"
        )
    return True


def _write(
    target: Path,
    replaced: list[str],
    made: Plan,
    packs: list[list[WorkerPack]],
    types: list[PlannedType],
    run: RunOptions,
) -> None:
    """Write the folder of a plan under a temporary name, and rename it when it is complete."""
    with new_folder(target, replaced) as inside:
        for of, of_workers in zip(types, zip(*packs, strict=True), strict=True):
            write(inside, of_workers, of.features, run)
        _core.write_file(inside / MARKER, made._marker(below(inside)))


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
