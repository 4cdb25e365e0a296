"""Which peers there are."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ....core.parameters import choice, integer
from ....runtime.launch import interpreter

KaMinParPreset = Literal["default", "fast", "eco", "strong", "largek", "terapart"]
"""Presets of KaMinPar."""

MtKaHyParPreset = Literal[
    "default", "deterministic", "deterministic_quality", "quality", "highest_quality", "large_k"
]
"""Presets of Mt-KaHyPar."""

BATCH = 32_768
"""Vertices that HeiStream and BuffCut partition at once."""


@dataclass(frozen=True)
class Peer:
    """A partitioner of another package.

    Attributes
    ----------
    name : str
        Its name in ``algorithms``.
    module : str
        The module that must be importable.
    parameters : callable
        Its signature states the parameters, their types and defaults. A call refuses invalid values.
    variants : tuple of mappings
        Parameters of further runs that a comparison makes by default.
    command : tuple of str
        The command that runs a task. The task follows as JSON.
    """

    name: str
    module: str
    parameters: Callable[..., None] = lambda: None
    variants: tuple[Mapping[str, Any], ...] = ()
    command: tuple[str, ...] = (*interpreter("fastpart.measures.compare.peers.child"),)

    @property
    def defaults(self) -> dict[str, Any]:
        """The parameters that a run gets where the user gives no others."""
        return {name: each.default for name, each in inspect.signature(self.parameters).parameters.items()}

    @property
    def version(self) -> str | None:
        """The version of the package, or None if it is not installed."""
        try:
            return importlib.metadata.version(self.module)
        except importlib.metadata.PackageNotFoundError:
            return None

    def installed(self) -> bool:
        """Say whether the package can be found. It is not imported."""
        try:
            return importlib.util.find_spec(self.module) is not None
        except (ImportError, ValueError):
            return False


def _metis(constraints: int = 1) -> None: ...


def _kaminpar(preset: KaMinParPreset = "default") -> None:
    choice("kaminpar:preset", preset, get_args(KaMinParPreset))


def _mtkahypar(preset: MtKaHyParPreset = "default") -> None:
    choice("mtkahypar:preset", preset, get_args(MtKaHyParPreset))


def _heistream(batch: int = BATCH, passes: int = 1) -> None:
    integer("heistream:batch", batch, 1, 2**31 - 1)
    integer("heistream:passes", passes, 1, 2**31 - 1)


def _buffcut(buffer: int = 262_144, batch: int = BATCH, passes: int = 1) -> None:
    integer("buffcut:buffer", buffer, 2, 2**31 - 1)
    integer("buffcut:batch", batch, 1, 2**31 - 1)
    integer("buffcut:passes", passes, 1, 2**31 - 1)


def _presets(*names: str) -> tuple[Mapping[str, Any], ...]:
    return tuple({"preset": name} for name in names)


PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer("metis", "pymetis", _metis, ({"constraints": 2},)),
        Peer("kaminpar", "kaminpar", _kaminpar, _presets("eco", "strong", "terapart")),
        Peer("mtkahypar", "mtkahypar", _mtkahypar, _presets("deterministic_quality", "quality")),
        Peer("heistream", "chszlablib", _heistream),
        Peer("buffcut", "chszlablib", _buffcut),
    )
}
"""By name."""
