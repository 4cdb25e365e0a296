"""Try a model on a tiny graph before processes are started for it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ...errors import FastpartError, ParameterError
from ...runtime.reporting import describe
from ..config import Options
from ..models import NEIGHBOUR, build, sampling_of
from ..neighbourhood import Neighbourhood
from ..scores import Task
from ..trainable import refuse_untrainable


def try_model(task: Task, options: Options, layers: Sequence[Neighbourhood]) -> None:
    """Run the model forward and backward on rows of ones.

    Raises
    ------
    ParameterError
        The method cannot train the model. The text says why.
    """
    if sampling_of(options.model) != NEIGHBOUR:
        raise ParameterError(
            f"model: {options.model!r} needs sampled graphs, but this method uses full batches. Train it with sdt or "
            "full, or use graphsage, which has the same layers"
        )
    expected = (layers[-1].num_targets, task.classes)
    with torch.random.fork_rng(devices=[]):
        network = build(task, options)
        refuse_untrainable(network, options.model)
        try:
            logits = network(layers, torch.ones(len(layers[0].source_degree), task.features))
            if isinstance(logits, Tensor) and logits.shape == expected:
                logits.sum().backward()
        except (FastpartError, MemoryError):
            raise
        except Exception as error:  # a model of the user may raise anything
            raise ParameterError(
                f"model: {options.model!r} cannot be trained over parts: {describe(error)}. Its layers may use only "
                "the methods of fastpart.train.neighbourhood.Neighbourhood"
            ) from None
    if not isinstance(logits, Tensor) or logits.shape != expected:
        what = (
            f"rows of shape {tuple(logits.shape)}"
            if isinstance(logits, Tensor)
            else f"a {type(logits).__name__}"
        )
        raise ParameterError(
            f"model: {options.model!r} must return a tensor of shape {expected}, one row per vertex, got {what}"
        )
