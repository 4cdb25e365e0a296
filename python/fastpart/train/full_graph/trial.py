"""A model tried on a tiny graph, before processes are started for it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ...errors import FastpartError, ParameterError
from ..config import Options
from ..models import NEIGHBOUR, build, sampling
from ..neighbourhood import Neighbourhood
from ..reporting import describe
from ..scores import Task


def try_model(task: Task, options: Options, layers: Sequence[Neighbourhood]) -> None:
    """Let the model forth and back over neighbourhoods of ones.

    Raises
    ------
    ParameterError
        The model cannot be trained so; the text says why.
    """
    if sampling(options.model) != NEIGHBOUR:
        raise ParameterError(
            f"model: {options.model!r} learns from sampled graphs, and full batches have none; train it with sdt or "
            "full, or take graphsage here, which has the same layers"
        )
    expected = (layers[-1].num_targets, task.classes)
    with torch.random.fork_rng(devices=[]):
        network = _built(task, options)
        if not any(weight.requires_grad for weight in network.parameters()):
            raise ParameterError(f"model: {options.model!r} has no weights to train")
        try:
            logits = network(layers, torch.ones(len(layers[0].source_degree), task.features))
            if isinstance(logits, Tensor) and logits.shape == expected:
                logits.sum().backward()
        except (FastpartError, MemoryError):
            raise
        except Exception as error:  # whatever a model of the user's raises
            raise ParameterError(
                f"model: {options.model!r} cannot be trained over divided neighbourhoods: {describe(error)}; its "
                "layers may call what fastpart.train.neighbourhood.Neighbourhood has, and nothing of DGL's"
            ) from None
    if not isinstance(logits, Tensor) or logits.shape != expected:
        what = (
            f"rows of shape {tuple(logits.shape)}"
            if isinstance(logits, Tensor)
            else f"a {type(logits).__name__}"
        )
        raise ParameterError(
            f"model: {options.model!r} returned {what}; expected a tensor of shape {expected}, one row for each vertex"
        )


def _built(task: Task, options: Options) -> nn.Module:
    try:
        return build(task, options)
    except (FastpartError, MemoryError):
        raise
    except Exception as error:  # whatever a model of the user's raises
        raise ParameterError(f"model: {options.model!r} cannot be made: {describe(error)}") from None
