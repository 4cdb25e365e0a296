"""A model tried on a tiny graph, before processes are started for it."""

from __future__ import annotations

from collections.abc import Sequence

import torch

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
    with torch.random.fork_rng(devices=[]):
        network = build(task, options)
        x = torch.ones(len(layers[0].source_degree), task.features)
        try:
            said = network(layers, x)
            said.sum().backward()
        except FastpartError:
            raise
        except Exception as error:  # whatever a model of the user's raises
            raise ParameterError(
                f"model: {options.model!r} cannot be trained over divided neighbourhoods: {describe(error)}; its layers "
                "may call what fastpart.train.neighbourhood.Neighbourhood has, and nothing of DGL's"
            ) from None
    expected = (layers[-1].num_targets, task.classes)
    if said.shape != expected:
        raise ParameterError(
            f"model: {options.model!r} returned rows of shape {tuple(said.shape)}; expected {expected}, one row for "
            "each vertex"
        )
