"""Exact ranks of positives among candidates, and the scores that follow from them."""

from __future__ import annotations

import torch
from torch import Tensor

HITS = (1, 3, 10)
"""The k of Hits@k."""

COUNTS = 2 + len(HITS)
"""Numbers of :func:`tally`."""


def ahead(positives: Tensor, others: Tensor, counted: Tensor) -> Tensor:
    """Return how many candidates come before each positive. Equal ones count half. Its rank is 1 more.

    It is NaN where a logit is NaN, which no order has a place for.

    Parameters
    ----------
    positives : torch.Tensor
        Logits, of shape (positives,).
    others : torch.Tensor
        Logits of the candidates, of shape (positives, candidates).
    counted : torch.Tensor
        Mask of the candidates that count.
    """
    own = positives.unsqueeze(1)
    higher, equal = (others > own) & counted, (others == own) & counted
    before = higher.sum(1).double() + equal.sum(1).double() / 2
    unknown = positives.isnan() | (others.isnan() & counted).any(1)
    return before.masked_fill(unknown, torch.nan)


def tally(found: Tensor) -> Tensor:
    """Return float64 sums for :func:`scores`, which can be added up over batches and processes."""
    hits = [torch.where(found.isnan(), found, (found <= k).double()).sum() for k in HITS]
    return torch.stack([found.new_tensor(len(found)), (1 / found).sum(), *hits])


def scores(sums: Tensor) -> dict[str, float]:
    """Return MRR and Hits@k from the sums of :func:`tally`, NaN without positives."""
    count, *rest = sums.tolist()
    names = ("mrr", *(f"hits@{k}" for k in HITS))
    return {name: value / count if count else float("nan") for name, value in zip(names, rest, strict=True)}


def raw_and_filtered(sums: Tensor) -> dict[str, float]:
    """Return the scores of raw and of filtered ranks, from their sums."""
    raw, filtered = map(scores, sums)
    return raw | {f"filtered_{name}": value for name, value in filtered.items()}


def below(positives: Tensor, negatives: Tensor) -> Tensor:
    """Return the share of negatives with a lower logit of each positive. Equal ones count half. The mean is the AUC.

    It is NaN where a logit is NaN.
    """
    if negatives.isnan().any():
        return torch.full(positives.shape, torch.nan, dtype=torch.float64)
    ordered = negatives.sort().values
    sides = [torch.searchsorted(ordered, positives, right=right) for right in (False, True)]
    shares = (sides[0] + sides[1]).double() / (2 * max(len(negatives), 1))
    return shares.masked_fill(positives.isnan(), torch.nan)
