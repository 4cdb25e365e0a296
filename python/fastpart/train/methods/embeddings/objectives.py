"""Losses of facts against negatives."""

from __future__ import annotations

from typing import get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from ...method_options import Objective

OBJECTIVES: tuple[Objective, ...] = get_args(Objective)


def losses_of(objective: Objective, positives: Tensor, negatives: Tensor, offset: Tensor) -> Tensor:
    """Return the loss of each fact.

    Parameters
    ----------
    objective : {"softmax", "binary", "self_adversarial"}
        The name of the loss.
    positives : torch.Tensor
        Logits of the facts, of shape (facts,).
    negatives : torch.Tensor
        Logits of the negatives of each, of shape (facts, negatives). Those that do not count are minus infinity.
    offset : torch.Tensor
        What is added to logits that are not compared with each other.
    """
    if objective == "softmax":
        return torch.logsumexp(torch.cat([positives.unsqueeze(1), negatives], 1), 1) - positives
    positives, negatives = positives + offset, negatives + offset
    counted = negatives.detach() > -torch.inf
    if objective == "binary":
        weights = counted / counted.sum(1, keepdim=True).clamp(min=1)
    else:
        weights = torch.nan_to_num(torch.softmax(negatives.detach(), 1))
    wrong = (weights * F.softplus(negatives)).sum(1)
    return (F.softplus(-positives) + wrong) / 2
