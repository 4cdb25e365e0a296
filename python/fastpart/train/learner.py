"""A network and its optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .config import Options
from .models import build
from .ranks import copy_from_first, world_size
from .scores import Task
from .trainable import refuse_batch_norm, refuse_untrainable


class Learner:
    """The network of a process, its optimizer, and how many epochs it has trained. It begins with the values of rank 0.

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
        refuse_untrainable(self.network, options.model)
        refuse_batch_norm(self.network, world_size())
        self.adam = torch.optim.Adam(
            self.network.parameters(), lr=options.lr, weight_decay=options.weight_decay
        )
        self.epochs = 0
        if state:
            self.network.load_state_dict(state["network"])
            self.adam.load_state_dict(state["adam"])
            torch.set_rng_state(state["random"])
            self.epochs = state["epochs"]
        # Models of users may draw weights from elsewhere than torch, and so differ in each process.
        copy_from_first([*self.network.parameters(), *self.network.buffers()])

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
