"""The state of a part between rounds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...options import mixed
from .averaging import State, named


@dataclass
class PartState:
    """Random numbers of a part, and Adam's moments if they are not averaged.

    Attributes
    ----------
    dropout, order : torch.Tensor
        States of the generators of dropout and of the order of batches.
    moments : dict of torch.Tensor or None
        A result of :func:`~.averaging.moments_of`.
    """

    dropout: Tensor
    order: Tensor
    moments: State | None = None

    @classmethod
    def new(cls, seed: int, number: int) -> PartState:
        """Return the state before the first round. Part 0 has the random numbers of centralized training."""
        order = torch.Generator().manual_seed(mixed(seed, number) if number else seed).get_state()
        if number == 0:
            return cls(torch.get_rng_state(), order)
        return cls(torch.Generator().manual_seed(mixed(seed, number, 1)).get_state(), order)

    @classmethod
    def of(cls, values: dict[str, Any]) -> PartState:
        """Return what a checkpoint holds."""
        moments = values["moments"]
        return cls(**{**values, "moments": None if moments is None else named(moments, [])})

    @contextmanager
    def random(self) -> Iterator[torch.Generator]:
        """Set torch's random numbers to those of this part, and yield the generator for the order of batches."""
        generator = torch.Generator()
        generator.set_state(self.order)
        torch.set_rng_state(self.dropout)
        yield generator
        self.order, self.dropout = generator.get_state(), torch.get_rng_state()
