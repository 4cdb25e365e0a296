"""What a worker remembers of a part from round to round."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from ..seeds import mixed
from .averaging import State


@dataclass
class PartState:
    """Random numbers of a part, and Adam's moments where they are not averaged.

    Attributes
    ----------
    dropout, order : torch.Tensor
        State of the generators of dropout, and of the order of batches.
    moments : list of torch.Tensor or None
        As :func:`~.averaging.moments_of` gives them.
    """

    dropout: Tensor
    order: Tensor
    moments: State | None = None

    @classmethod
    def new(cls, seed: int, number: int) -> PartState:
        """Return the state before the first round. Part 0 has the numbers that centralized training has."""
        order = torch.Generator().manual_seed(mixed(seed, number) if number else seed).get_state()
        if number == 0:
            return cls(torch.get_rng_state(), order)
        return cls(torch.Generator().manual_seed(mixed(seed, number, 1)).get_state(), order)

    @contextmanager
    def random(self) -> Iterator[torch.Generator]:
        """Let torch go on with the random numbers of this part; give the generator for the order of batches."""
        generator = torch.Generator()
        generator.set_state(self.order)
        torch.set_rng_state(self.dropout)
        yield generator
        self.order, self.dropout = generator.get_state(), torch.get_rng_state()
