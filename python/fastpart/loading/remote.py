"""Where the features of each part are: in files of this machine, or with another rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch.distributed as dist

from .. import _core
from ..errors import ParameterError, arg
from ..partitions.loader_options import FetchingOptions
from ..partitions.part_files import PartFiles
from ..partitions.partition import VertexPartition
from ..partitions.types import ONLY_TYPE, of_type, type_names
from .agreement import refuse_missing_features
from .fetching import Fetching
from .rows.files import Files
from .rows.owners import Exchange


@dataclass(frozen=True, eq=False)
class RowFiles:
    """Files of rows, one for each part.

    Attributes
    ----------
    parts : sequence of PartFiles
        Where each lies.
    name : str
        What they hold, as ``features``.
    topology : _core.Topology
        The parts.
    starts : numpy.ndarray
        int64: first row of each part, and the number of rows.
    """

    parts: Sequence[PartFiles]
    name: str
    topology: _core.Topology
    starts: npt.NDArray[np.int64]

    @classmethod
    def of_vertices(cls, partition: VertexPartition) -> RowFiles:
        """Return the features of all vertices of a graph without types."""
        return cls.of_types(partition)[ONLY_TYPE]

    @classmethod
    def of_types(cls, partition: VertexPartition) -> dict[str, RowFiles]:
        """Return the features of the vertices of each type."""
        types = zip(type_names(partition), partition._rows_by_type.starts, strict=True)
        return {
            name: cls(of_type(partition, name), "features", partition._topology, starts)
            for name, starts in types
        }

    @classmethod
    def of_edges(cls, partition: VertexPartition) -> RowFiles:
        """Return the features of all in-edges, each in the part of its target."""
        topology = partition._topology
        return cls(list(partition.parts), "edge_features", topology, topology.edge_starts)

    @property
    def are_here(self) -> npt.NDArray[np.bool_]:
        """Mask of the parts whose file is on this machine."""
        return np.array([(part._folder / f"{self.name}.npy").exists() for part in self.parts])

    def opened(self, here: npt.NDArray[np.bool_], direct: bool | None = None) -> _core.Features | None:
        """Map the files of some parts. None if there are none."""
        file = f"{self.name}.npy"
        files = [part._file(file) if there else None for part, there in zip(self.parts, here, strict=True)]
        return _core.Features(files, self.topology, starts=self.starts, direct=direct) if any(files) else None


def fetching_of(
    files: RowFiles,
    owners: npt.NDArray[np.int64],
    rank: int,
    options: FetchingOptions,
    together: bool = False,
) -> Fetching:
    """Return where the features of batches come from.

    Parameters
    ----------
    files : RowFiles
        The features of the parts.
    owners : numpy.ndarray
        Rank of each part.
    rank : int
        This rank.
    options : FetchingOptions
        ``remote``, ``timeout`` and ``io`` say how.
    together : bool
        Whether the ranks are those of ``torch.distributed``, which all call this.
    """
    remote, io = options.remote, options.io
    if remote == "messages" and not together:
        raise ParameterError(
            f'remote: "messages" needs the ranks of torch.distributed. Leave out {arg("rank")} and '
            f"{arg('world_size')}, and start "
            "several processes"
        )
    row, coding = files.parts[0].stored_type(files.name), files.parts[0].coding(files.name)
    if row is None:
        return Fetching(None, files.starts, owners < 0, None)
    own, exchange = owners == rank, None
    here = own if remote == "messages" else files.are_here
    away = ~own
    if together and not refuse_missing_features(owners, here, files.name) and remote != "maps":
        exchange, away = exchange_of(files.starts, owners, dist.get_world_size(), options.timeout), ~here
    direct = None if io is None else io == "direct"
    features = files.opened(here if exchange is not None else np.ones_like(here), direct)
    return Fetching(Files(features, row[0], row[1]), files.starts, away, exchange, coding)


def exchange_of(
    starts: npt.NDArray[np.int64], owners: npt.NDArray[np.int64], world_size: int, seconds: float
) -> Exchange:
    """Return messages about rows between the ranks, given the first row and the rank of each part.

    All ranks have to call it.
    """
    return Exchange(starts[np.searchsorted(owners, np.arange(world_size + 1))], seconds)
