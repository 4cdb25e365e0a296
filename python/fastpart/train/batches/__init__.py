"""Batches: the whole local graph, or samples of it."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ..config import Options
from ..data import LocalGraph
from ..models import CLUSTER, NEIGHBOUR, SAINT, sampling
from . import cluster, neighbour, saint
from .batch import Batch

__all__ = ["Batch", "batches"]

_KINDS = {NEIGHBOUR: neighbour.batches, CLUSTER: cluster.batches, SAINT: saint.batches}


def batches(local: LocalGraph, options: Options, generator: torch.Generator) -> Iterator[Batch]:
    """Yield the batches of one epoch over the training vertices of ``local``, of the kind that the model needs.

    Each has at least one target. The same state of ``generator`` and number of threads give the same batches.
    """
    return _KINDS[sampling(options.model)](local, options, generator)
