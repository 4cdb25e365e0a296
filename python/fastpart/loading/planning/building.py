"""Makes a plan: its key, the access lists of all workers, the rows in memory, the cost of reading, and the packs."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _core
from ...core import parameters
from ...core.folders import below
from ...core.frames import pl
from ...core.options import RunOptions
from ...core.outputs import new_folder, owning
from ...core.parameters import StrPath, shown, sized
from ...core.system import ends_of, state_of
from ...errors import MemoryBudgetError, ParameterError, arg
from ...measures.accesses import Accesses, SampledEpochs, accesses_of
from ...measures.reading import Disk, EpochReads, FeatureFiles, FeatureSizes, timed, ways
from ...partitions.coding import COLUMNS
from ...partitions.loader_options import EpochOptions, Fanouts, PlanOptions
from ...partitions.partition import VertexPartition
from ...partitions.plan import MARKER, Key, Plan, ReadCost, replaced_files
from ...partitions.seeds import Deal, sampling_of
from ...partitions.types import edge_keys, fanouts_of, type_names
from ...store.manifest import checksums_of, digest, identity
from .packing import PlannedType, WorkerPack, folder_of, most_used, without, write


def key_of(
    partition: VertexPartition, deal: Deal, fanouts: Fanouts, workers: int, options: EpochOptions
) -> Key:
    """Return what decides the rows of every batch, as JSON has it."""
    sampling = sampling_of(partition, options)
    weights = sampling.pop("weights")
    return {
        "partition": identity(partition.manifest or {}),
        "rows": _rows(partition),
        "vertices": _hash(deal.seeds.ids),
        "weights": None if weights is None else _hash(weights),
        "fanouts": _fanouts(fanouts, partition),
        "batch_size": deal.batch_size,
        "seed": deal.seed,
        "sampling": sampling["kind"],
        "merged": sampling["merged"],
        "temporal": sampling.get("temporal"),
        "times": None if deal.seeds.times is None else _hash(deal.seeds.times),
        "shuffle": deal.shuffle,
        "drop_last": deal.drop_last,
        "workers": workers,
        **({"types": type_names(partition), "input": deal.seeds.type} if partition.is_typed else {}),
    }


def _fanouts(fanouts: Fanouts, partition: VertexPartition) -> Any:
    """Return the fanouts of each hop. Over types they stand by the name of the relation."""
    hops: Any = fanouts_of(fanouts, partition)
    if not partition.is_typed:
        return list(hops)
    return {name: [hop[place] for hop in hops] for place, (_, name, _) in enumerate(edge_keys(partition))}


def _rows(partition: VertexPartition) -> str:
    """Return a hash that differs if parts have other vertices, or these have other features.

    Copies of a directory have the same, if it lists its checksums. Head and tail notice files that were replaced later.
    """
    listed = checksums_of(partition.manifest or {})
    of_file = ends_of if listed else state_of
    files = []
    for part in partition.parts:
        features = [rows._file("features.npy") for rows in part._by_type if rows.feature_bytes]
        files += [part._file("vertices.npy"), *features]
    assert partition.folder is not None
    columns = [partition.folder / rows._above / COLUMNS for rows in partition.parts[0]._by_type]
    found = [of_file(file) for file in [*files, *(file for file in columns if file.exists())]]
    return digest({what: listed.get(what) for what in ("parts", "features")} | {"files": found})


def _hash(array: npt.NDArray[Any]) -> str:
    return _core.hash_bytes(np.ascontiguousarray(array).tobytes())


def written_bytes(types: Sequence[PlannedType], packs: Sequence[Sequence[WorkerPack]]) -> int:
    """Return the bytes of the packed and cached rows of all workers."""
    return sum(
        pack.num_rows * of.row_bytes for of_types in packs for of, pack in zip(types, of_types, strict=True)
    )


def planned_ways(
    partition: VertexPartition,
    types: Sequence[PlannedType],
    lists: Sequence[Sequence[Accesses]],
    packs: Sequence[Sequence[WorkerPack]],
    memory: int,
) -> list[ReadCost]:
    """Return what each way to read the features takes.

    Parameters
    ----------
    partition : VertexPartition
        The parts.
    types : sequence of PlannedType
        The types whose features are planned.
    lists : sequence of sequence of Accesses
        The rows of the batches of each worker, type by type.
    packs : sequence of sequence of WorkerPack
        What is packed for each worker, type by type.
    memory : int
        Bytes that the page cache has for features.
    """
    epochs, steps = len(lists[0][0].epochs), lists[0][0].steps
    of_all = [
        chain.from_iterable(map(each.of, range(len(each))) for each in of_type)
        for of_type in zip(*lists, strict=True)
    ]
    numbers = [of.number for of in types]
    reads = EpochReads.counted(partition, steps, dict(zip(numbers, of_all, strict=True))).per_epoch(epochs)
    files = [each for each in FeatureFiles.of(partition) if each is not None]
    disk = Disk.of([path for each in files for path in each.paths])
    stored = FeatureSizes.of(partition)
    found = ways(reads, disk, stored, memory, epochs)
    sized = [(of.row_bytes, pack) for of_types in packs for of, pack in zip(types, of_types, strict=True)]
    cached = sum(len(pack.cached) * row_bytes for row_bytes, pack in sized)
    packed = [each.read_bytes(row_bytes) for row_bytes, pack in sized for each in pack.epochs]
    plan = timed("plan", round(sum(packed) / epochs), stored.bytes + written_bytes(types, packs), disk)
    found = [*(way for way in found if way.way != "plan"), plan]
    if cached and disk is not None:
        of_rest = [
            chain.from_iterable(map(each.of, range(steps)) for pack in of_type for each in pack.epochs)
            for of_type in zip(*packs, strict=True)
        ]
        rest = dict(zip(numbers, of_rest, strict=True))
        left = EpochReads.counted(partition, steps, rest).per_epoch(epochs)
        found.insert(-1, timed("direct, memory", left.read_bytes, cached, disk, scattered=True))
    return found


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
        _core.write_file(inside / MARKER, made.marker(below(inside)))


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
