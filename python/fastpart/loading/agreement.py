"""The directories of all ranks, compared before they are used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch.distributed as dist

from ..errors import GraphFormatError
from ..store.identities import checksums_of, identity

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
