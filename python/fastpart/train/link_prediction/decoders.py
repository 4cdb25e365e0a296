"""An encoder of vertices and a decoder of pairs as one network."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import torch.nn.functional as F
from torch import Tensor, nn

from ..config import Options
from ..models import build
from ..scores import Task
from ..trainer import DecoderName

DECODERS: tuple[DecoderName, ...] = get_args(DecoderName)


class Dot(nn.Module):
    """The inner product of two vertices."""

    def forward(self, sources: Tensor, targets: Tensor) -> Tensor:
        """Return the logit of each pair of rows."""
        return (sources * targets).sum(-1)

    def against(self, sources: Tensor, targets: Tensor) -> Tensor:
        """Return the logit of each source with each target."""
        return sources @ targets.T


class MLP(nn.Module):
    """A perceptron with one hidden layer over the elementwise product of two vertices."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden, self.out = nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, sources: Tensor, targets: Tensor) -> Tensor:
        """Return the logit of each pair of rows."""
        logits: Tensor = self.out(F.relu(self.hidden(sources * targets))).squeeze(-1)
        return logits

    def against(self, sources: Tensor, targets: Tensor) -> Tensor:
        """Return the logit of each source with each target."""
        return self(sources.unsqueeze(1), targets.unsqueeze(0))


class LinkNetwork(nn.Module):
    """A network that says whether two vertices are linked.

    Attributes
    ----------
    encoder : torch.nn.Module
        Returns one row for each vertex, as the models of fastpart return logits.
    decoder : torch.nn.Module
        Returns a logit for each pair of rows.
    """

    def __init__(self, encoder: nn.Module, decoder: Dot | MLP) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder


def network_with(decoder: DecoderName) -> Callable[[Task, Options], LinkNetwork]:
    """Return a function that makes the network of a task, whose ``classes`` are the width of the encoder's rows."""

    def make(task: Task, options: Options) -> LinkNetwork:
        encoder = build(task, options)
        return LinkNetwork(encoder, Dot() if decoder == "dot" else MLP(task.classes))

    return make
