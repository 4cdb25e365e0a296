"""What reading the features of planned epochs costs, by the ways to read them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from ...measures.accesses import Accesses
from ...measures.reading import Disk, EpochReads, FeatureFiles, FeatureSizes, timed, ways
from ...partitions.partition import VertexPartition
from ...partitions.plan import ReadCost
from .packing import PlannedType, WorkerPack


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
