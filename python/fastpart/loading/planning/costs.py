"""What reading the features of planned epochs costs, by the ways to read them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from ...measures.accesses import Accesses
from ...measures.reading import Disk, EpochReads, FeatureSizes, timed, ways
from ...partitions.partition import VertexPartition
from ...partitions.plan import ReadCost
from .packing import WorkerPack


def planned_ways(
    partition: VertexPartition, lists: Sequence[Accesses], packs: Sequence[WorkerPack], memory: int
) -> list[ReadCost]:
    """Return what each way to read the features takes.

    Parameters
    ----------
    partition : VertexPartition
        The parts.
    lists : sequence of Accesses
        The rows of the batches of each worker.
    packs : sequence of WorkerPack
        What is packed for each worker.
    memory : int
        Bytes that the page cache has for features.
    """
    epochs, steps = len(lists[0].epochs), lists[0].steps
    batches = chain.from_iterable(map(each.of, range(len(each))) for each in lists)
    reads = EpochReads.counted(partition, steps, batches).per_epoch(epochs)
    disk = Disk.of([part.folder / "features.npy" for part in partition.parts])
    stored = FeatureSizes.of(partition)
    found = ways(reads, disk, stored, memory, epochs)
    row_bytes = partition.parts[0].feature_bytes
    cached = sum(len(pack.cached) for pack in packs) * row_bytes
    packed = [each.read_bytes(row_bytes) for pack in packs for each in pack.epochs]
    written = sum(pack.num_rows for pack in packs) * row_bytes
    plan = timed("plan", round(sum(packed) / epochs), stored.bytes + written, disk)
    found = [*(way for way in found if way.way != "plan"), plan]
    if cached and disk is not None:
        batches = chain.from_iterable(map(each.of, range(steps)) for pack in packs for each in pack.epochs)
        left = EpochReads.counted(partition, steps, batches).per_epoch(epochs)
        found.insert(-1, timed("direct, memory", left.read_bytes, cached, disk, scattered=True))
    return found
