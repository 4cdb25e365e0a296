"""Where the features of each part are: in files of this machine, or with another rank."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import numpy.typing as npt
import torch.distributed as dist

from .. import _core
from ..core import parameters
from ..core.parameters import RowsIo
from ..errors import ParameterError
from ..partitions.loadable import Remote
from ..partitions.partition import VertexPartition
from .agreement import refuse_missing_features, refuse_other_directories
from .fetching import Fetching
from .rows.files import Files
from .rows.owners import Exchange


def fetching_of(
    partition: VertexPartition,
    owners: npt.NDArray[np.int64],
    rank: int,
    remote: Remote | None = "maps",
    together: bool = False,
    seconds: float = math.inf,
    io: RowsIo | None = None,
) -> Fetching:
    """Return where the features of batches come from.

    Parameters
    ----------
    partition : VertexPartition
        The parts.
    owners : numpy.ndarray
        Rank of each part.
    rank : int
        This rank.
    remote : {"maps", "messages"} or None
        See :meth:`fastpart.VertexPartition.loader`.
    together : bool
        Whether the ranks are those of ``torch.distributed``, which all call this.
    seconds : float
        Longest time to wait for another rank.
    io : {"mmap", "direct"}, optional
        How files are read.
    """
    if remote is not None:
        parameters.choice("remote", remote, get_args(Remote))
    if remote == "messages" and not together:
        raise ParameterError(
            'remote: "messages" needs the ranks of torch.distributed. Leave out rank= and world_size=, and start '
            "several processes"
        )
    if together:
        refuse_other_directories(partition.manifest or {})
    parts, topology = partition.parts, partition._topology
    row, coding = parts[0].stored_type("features"), parts[0].coding("features")
    if row is None:
        return Fetching(None, topology.starts, owners < 0, None)
    files = [part.folder / "features.npy" for part in parts]
    own, exchange = owners == rank, None
    here = own if remote == "messages" else np.array([file.exists() for file in files])
    away = ~own
    if together and not refuse_missing_features(owners, here) and remote != "maps":
        exchange, away = exchange_of(topology, owners, dist.get_world_size(), seconds), ~here
    mapped = [part._file("features.npy") if exchange is None or here[part.index] else None for part in parts]
    direct = None if parameters.rows_io(io) is None else io == "direct"
    features = _core.Features(mapped, topology, direct=direct) if any(mapped) else None
    return Fetching(Files(features, row[0], row[1]), topology.starts, away, exchange, coding)


def exchange_of(
    topology: _core.Topology, owners: npt.NDArray[np.int64], world_size: int, seconds: float
) -> Exchange:
    """Return messages about rows between the ranks, given the rank of each part. All ranks have to call it."""
    return Exchange(topology.starts[np.searchsorted(owners, np.arange(world_size + 1))], seconds)
