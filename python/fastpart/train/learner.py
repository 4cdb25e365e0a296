"""A network and its optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .config import Options
from .models import build
from .scores import Task


class Learner:
    """The network of a process, its optimizer, and how many epochs it has trained.

    Attributes
    ----------
    network : torch.nn.Module
        The network.
    adam : torch.optim.Adam
        The optimizer of its weights.
    epochs : int
        Number of epochs so far.
    """

    def __init__(
        self,
        task: Task,
        options: Options,
        state: dict[str, Any],
        device: torch.device | None = None,
        make: Callable[[Task, Options], nn.Module] = build,
    ) -> None:
        torch.manual_seed(options.seed)
        self.network = make(task, options).to(device)
        self.adam = torch.optim.Adam(
            self.network.parameters(), lr=options.lr, weight_decay=options.weight_decay
        )
        self.epochs = 0
        if state:
            self.network.load_state_dict(state["network"])
            self.adam.load_state_dict(state["adam"])
            torch.set_rng_state(state["random"])
            self.epochs = state["epochs"]

    def state(self) -> dict[str, Any]:
        """Return what continues it: weights, optimizer, random numbers of torch, epochs."""
        return {
            "network": self.network.state_dict(),
            "adam": self.adam.state_dict(),
            "random": torch.get_rng_state(),
            "epochs": self.epochs,
        }

    def put(self, weights: dict[str, Tensor]) -> nn.Module:
        """Set the weights, and return the network."""
        self.network.load_state_dict(weights)
        return self.network
