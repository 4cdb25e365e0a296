"""Pairs of vertices to tell apart, as PyG's LinkLoader asks for them: edges, and negatives behind them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.sampler import EdgeSamplerInput, NegativeSampling

from ..graphs.types import VertexType

Ids = npt.NDArray[np.int64]
Types = tuple[VertexType, VertexType]
"""The types of the sources and of the targets."""


def with_negatives(ends: Ids, how: NegativeSampling | None, types: Types, seed: int) -> tuple[Ids, Ids]:
    """Return sources and targets, with negatives behind them."""
    if how is None:
        return ends[0], ends[1]
    count = math.ceil(ends.shape[1] * how.amount)
    generator = torch.Generator().manual_seed(seed)

    def sampled(of: VertexType, weight: Tensor | None) -> Ids:
        if weight is None:
            found = torch.randint(of.n, (count,), generator=generator)
        else:
            found = torch.multinomial(weight, count, replacement=True, generator=generator)
        return of.first + found.numpy()

    sources = np.concatenate([ends[0], sampled(types[0], how.src_weight)]) if how.is_binary() else ends[0]
    return sources, np.concatenate([ends[1], sampled(types[1], how.dst_weight)])


def located(sources: Ids, targets: Ids, types: Types) -> tuple[Ids, list[Tensor]]:
    """Return the distinct vertices, which ascend, and the places of sources and targets among those of their types."""
    ids, places = np.unique(np.concatenate([sources, targets]), return_inverse=True)
    firsts = np.searchsorted(ids, [each.first for each in types])
    of_ends = np.split(places.astype(np.int64), [len(sources)])
    return ids, [torch.from_numpy(of - first) for of, first in zip(of_ends, firsts, strict=True)]


def metadata_of(index: EdgeSamplerInput, how: NegativeSampling | None, at: list[Tensor]) -> tuple[Any, ...]:
    """Return what PyG's LinkLoader reads beside the sample, given the places of sources and targets."""
    count, (sources, targets) = len(index.row), at
    if how is not None and how.is_triplet():
        negatives = targets[count:].view(count, -1).squeeze(-1)
        return index.input_id, sources, targets[:count], negatives, None
    label = index.label
    if how is not None:
        label = torch.ones(count) if label is None else label
        label = torch.cat([label, label.new_zeros((len(sources) - count, *label.shape[1:]))])
    return index.input_id, torch.stack([sources, targets]), label, None
