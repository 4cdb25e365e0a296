"""Try a model on a tiny graph before processes are started for it."""

from __future__ import annotations

import torch
from torch import Tensor

from ....errors import FastpartError, ParameterError
from ....runtime.reporting import describe
from ...learning.trainable import refuse_untrainable
from ...models import NEIGHBOUR, build, sampling_of
from ...models.scores import Task
from ...options import Options
from .exchange import Exchange
from .part import Tools


def try_model(task: Task, options: Options, exchange: type[Exchange]) -> None:
    """Run the model forward and backward on a graph of two vertices, in this process.

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
    two = exchange.part.of_two(task)
    messages = exchange(two, options, Tools.alone())
    messages.begin(0)
    expected = (two.num_own, task.classes)
    with torch.random.fork_rng(devices=[]):
        network = build(task, options)
        refuse_untrainable(network, options.model)
        try:
            logits = network(messages.layers, two.features)
            shape = tuple(logits.shape) if isinstance(logits, Tensor) else None
            if shape == expected:
                logits.sum().backward()
        except (FastpartError, MemoryError):
            raise
        except Exception as error:  # a model of the user may raise anything
            raise ParameterError(
                f"model: {options.model!r} cannot be trained over parts: {describe(error)}. Its layers may use only "
                "the methods of fastpart.train.graphs.neighbourhood.Neighbourhood"
            ) from None
    if shape != expected:
        what = f"a {type(logits).__name__}" if shape is None else f"rows of shape {shape}"
        raise ParameterError(
            f"model: {options.model!r} must return a tensor of shape {expected}, one row per vertex, got {what}"
        )
