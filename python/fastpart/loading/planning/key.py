"""What decides the rows of every batch. A plan is for one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _core
from ...core.file_states import ends_of, state_of
from ...partitions.coding import COLUMNS
from ...partitions.loader_options import EpochOptions, Fanouts
from ...partitions.partition import VertexPartition
from ...partitions.plan import Key
from ...partitions.sampling import sampling_of
from ...partitions.seeds import Deal
from ...partitions.types import edge_keys, fanouts_of, type_names
from ...store.identities import checksums_of, digest, identity


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
