"""Where the features of each part are: in files of this machine, or with another rank that has the same directory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch.distributed as dist

from ..errors import GraphFormatError, ParameterError, arg
from ..partitions.loader_options import FetchingOptions
from ..store.manifest import checksums_of, identity
from .fetching import Fetching
from .row_files import RowFiles
from .rows.owners import Exchange
from .rows.sources import Files

_TOLD = ("k", "n", "m", "checksum", "halo_hops", "features", "labels", "splits")
"""Entries of the manifest that an error names."""


def refuse_other_directories(manifest: Mapping[str, Any]) -> None:
    """Raise an error that names the odd rank unless all ranks have the same partition. All ranks have to call it."""
    told = {name: manifest.get(name) for name in _TOLD}
    facts = _gathered({"digest": identity(manifest), "checksums": checksums_of(manifest), **told})
    usual = facts[_usual([f"{fact['digest']} {fact['checksums']}" for fact in facts])]
    for rank, fact in enumerate(facts):
        wrong = [
            f"{name} is {fact[name]} instead of {usual[name]}" for name in _TOLD if fact[name] != usual[name]
        ]
        # Copies of versions that kept no list of checksums know nothing of them.
        known = fact["checksums"].keys() & usual["checksums"].keys()
        others = [what for what in sorted(known) if fact["checksums"][what] != usual["checksums"][what]]
        wrong += [f"its {what.replace('_', ' ')} differ" for what in others]
        if wrong or fact["digest"] != usual["digest"]:
            raise GraphFormatError(
                f"rank {rank} has another partition than the other ranks: {', '.join(wrong) or 'its parts differ'}. "
                "Copy the same partition directory to all machines"
            )


def _usual(values: list[str]) -> int:
    """Return the first rank with the value of most ranks."""
    return values.index(Counter(values).most_common(1)[0][0])


def refuse_missing_features(
    owners: npt.NDArray[np.int64], here: npt.NDArray[np.bool_], name: str = "features"
) -> bool:
    """Raise an error unless every rank has the features of its parts. Return whether all ranks have those of all."""
    of_ranks: list[list[bool]] = _gathered(here.tolist())
    for part, rank in enumerate(owners.tolist()):
        if not of_ranks[rank][part]:
            raise GraphFormatError(
                f"{name}.npy of part {part} is not on the machine of rank {rank}, which trains on this part. Copy "
                "it there"
            )
    return all(map(all, of_ranks))


def _gathered(value: Any) -> list[Any]:
    values: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


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
