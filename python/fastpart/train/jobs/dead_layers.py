"""Layers after which all rows are zero. No gradient passes them, so nothing before them learns any more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from torch import Tensor, nn

from ..models import TypedNetwork
from ..models.network import Network

DEAD = "dead_layer"
"""The entry of a reported row with the number of such a layer, from 1 on."""

_ROUNDS = 2
"""A layer is dead after so many rounds without a number in its rows."""

_FEW = 64
"""So few numbers may all be zero by chance."""


class DeadLayers:
    """Watches the rows between the layers of a network in training, once per epoch and layer unless all are zero.

    Networks of users are not watched.
    """

    def __init__(self, network: nn.Module) -> None:
        self._seen: set[int] = set()
        self._alive: set[int] = set()
        self._rounds: dict[int, int] = {}
        modules = list(network.modules())
        if any(
            hasattr(each, "_orig_mod") for each in modules
        ):  # torch.compile would break its graph at a look
            return
        for each in modules:
            if isinstance(each, Network | TypedNetwork):
                for index, layer in enumerate(each.layers):
                    if index:
                        layer.register_forward_pre_hook(partial(self._see, index))

    def _see(self, index: int, layer: nn.Module, given: tuple[Any, ...]) -> None:
        """Look at the input of a layer: what the layer ``index``, counted from 1 on, has returned."""
        if not layer.training or index in self._alive or len(given) < 2:
            return
        rows: Iterable[Tensor] = given[1].values() if isinstance(given[1], Mapping) else [given[1]]
        self._seen.add(index)
        if any(bool(each.any()) for each in rows) or sum(each.numel() for each in rows) < _FEW:
            self._alive.add(index)

    def after_round(self) -> dict[str, int]:
        """Return what a reported row has about the round: nothing, or the number of the first layer that is dead."""
        dead = self._seen - self._alive
        self._rounds = {index: self._rounds.get(index, 0) + 1 for index in dead}
        self._seen, self._alive = set(), set()
        found = [index for index, rounds in self._rounds.items() if rounds >= _ROUNDS]
        return {DEAD: min(found)} if found else {}
