"""Where the features of each part are: in files of this machine, or with another rank."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch.distributed as dist

from ..errors import ParameterError, arg
from ..partitions.loader_options import FetchingOptions
from .agreement import refuse_missing_features
from .fetching import Fetching
from .row_files import RowFiles
from .rows.files import Files
from .rows.owners import Exchange


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
