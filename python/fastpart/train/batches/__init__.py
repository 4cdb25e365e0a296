"""Batches: training vertices with some of their neighbours, or sampled graphs."""

from __future__ import annotations

from collections.abc import Iterator

from ..models import CLUSTER, NEIGHBOUR, SAINT, sampling_of
from ..options import Options
from . import cluster, neighbour, saint
from .batch import Batch, weighted
from .field import Field, VertexRows

__all__ = ["Batch", "Field", "VertexRows", "batches", "weighted"]

_KINDS = {NEIGHBOUR: neighbour.batches, CLUSTER: cluster.batches, SAINT: saint.batches}


def batches(field: Field, options: Options, seed: int) -> Iterator[Batch]:
    """Yield the batches of one epoch, of the kind that the model needs. Each process has the same number of them.

    The same seed, process and number of threads give the same batches.
    """
    if not len(field.seeds):
        return iter(())
    return _KINDS[sampling_of(options.model)](field, options, seed)
