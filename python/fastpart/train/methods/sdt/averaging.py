"""The mean of copies of a network, and of the state of its optimizer, such as the moments of Adam.

If parts have different labels, averaging the weights alone loses accuracy, because the moments of each copy still point
towards the optimum of its own part. So the moments are averaged, too, unless the user turns this off. Whatever tensors
an optimizer keeps for a weight are its moments here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ...graphs.kernels import CPU
from ...options import mixed

State = dict[str, Tensor]


def weights_of(network: nn.Module) -> State:
    """Return copies of all weights, in float64, on the CPU."""
    return {name: _copied(tensor) for name, tensor in network.state_dict().items()}


def put_weights(network: nn.Module, state: State) -> None:
    """Set the weights."""
    with torch.no_grad():
        for name, tensor in network.state_dict().items():
            tensor.copy_(state[name])


def moments_of(optimizer: torch.optim.Optimizer) -> State:
    """Return copies of the tensors that an optimizer keeps for each weight, in float64. It has none before a step."""
    return {
        f"{index}.{name}": _copied(value)
        for index, weight in enumerate(_weights(optimizer))
        for name, value in optimizer.state.get(weight, {}).items()
        if isinstance(value, Tensor)
    }


def put_moments(optimizer: torch.optim.Optimizer, state: State) -> None:
    """Set the moments to a result of :func:`moments_of`."""
    if not state:
        optimizer.state.clear()
    weights = _weights(optimizer)
    for key, value in state.items():
        index, _, name = key.partition(".")
        weight = weights[int(index)]
        known = optimizer.state[weight].get(name)
        if known is None:  # a number, such as that of the steps, has no shape
            known = weight.detach() if value.shape == weight.shape else torch.zeros((), dtype=torch.float32)
        optimizer.state[weight][name] = value.to(known, copy=True)  # the optimizer writes into it


def _copied(tensor: Tensor) -> Tensor:
    return tensor.detach().to(CPU, torch.float64, copy=True)


def _weights(optimizer: torch.optim.Optimizer) -> list[nn.Parameter]:
    return [weight for group in optimizer.param_groups for weight in group["params"]]


def named(state: Any, names: list[str]) -> State:
    """Return a state of a checkpoint by name. Earlier ones are lists: weights, or three tensors of Adam for each."""
    if isinstance(state, dict):
        return state
    if len(state) == len(names):
        return dict(zip(names, state, strict=True))
    kinds = ("step", "exp_avg", "exp_avg_sq")
    return {f"{index // 3}.{kinds[index % 3]}": tensor for index, tensor in enumerate(state)}


class Mean:
    """The weighted mean of states of all workers. The mean of a single state is exact."""

    def __init__(self) -> None:
        self._sum: State = {}
        self._weight = 0.0

    def add(self, state: State, weight: int) -> None:
        """Add a state of this worker."""
        for name, tensor in state.items():
            self._sum.setdefault(name, torch.zeros_like(tensor)).add_(tensor, alpha=weight)
        self._weight += weight

    def of_all(self, like: State) -> State:
        """Return the mean over all workers. ``like``, equal in all of them, has the shapes. If it is empty, all ask."""
        shapes = {name: tensor.shape for name, tensor in like.items()} or self._shapes_of_all()
        mine = self._sum or {name: torch.zeros(shape, dtype=torch.float64) for name, shape in shapes.items()}
        flat = torch.cat(
            [*(mine[name].reshape(-1) for name in shapes), torch.tensor([self._weight]).double()]
        )
        dist.all_reduce(flat)
        values = (flat[:-1] / flat[-1]).split([shape.numel() for shape in shapes.values()])
        return {name: value.reshape(shapes[name]) for name, value in zip(shapes, values, strict=True)}

    def _shapes_of_all(self) -> dict[str, torch.Size]:
        """Return the shapes of what the first worker with any has added."""
        mine = {name: tensor.shape for name, tensor in self._sum.items()}
        of_all: list[dict[str, torch.Size]] = [{}] * dist.get_world_size()
        dist.all_gather_object(of_all, mine)
        return next(filter(None, of_all), {})


@dataclass
class PartState:
    """Random numbers of a part, and Adam's moments if they are not averaged.

    Attributes
    ----------
    dropout, order : torch.Tensor
        States of the generators of dropout and of the order of batches.
    moments : dict of torch.Tensor or None
        A result of :func:`~.averaging.moments_of`.
    """

    dropout: Tensor
    order: Tensor
    moments: State | None = None

    @classmethod
    def new(cls, seed: int, number: int) -> PartState:
        """Return the state before the first round. Part 0 has the random numbers of centralized training."""
        order = torch.Generator().manual_seed(mixed(seed, number) if number else seed).get_state()
        if number == 0:
            return cls(torch.get_rng_state(), order)
        return cls(torch.Generator().manual_seed(mixed(seed, number, 1)).get_state(), order)

    @classmethod
    def of(cls, values: dict[str, Any]) -> PartState:
        """Return what a checkpoint holds."""
        moments = values["moments"]
        return cls(**{**values, "moments": None if moments is None else named(moments, [])})

    @contextmanager
    def random(self) -> Iterator[torch.Generator]:
        """Set torch's random numbers to those of this part, and yield the generator for the order of batches."""
        generator = torch.Generator()
        generator.set_state(self.order)
        torch.set_rng_state(self.dropout)
        yield generator
        self.order, self.dropout = generator.get_state(), torch.get_rng_state()
