"""The mean of copies of a network, and of the moments of Adam.

If parts have different labels, averaging the weights alone loses accuracy, because the moments of each copy still point
towards the optimum of its own part. So the moments are averaged, too, unless the user turns this off.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn

State = list[Tensor]


def weights_of(network: nn.Module) -> State:
    """Return copies of all weights, in float64."""
    return [tensor.detach().double().clone() for tensor in network.state_dict().values()]


def put_weights(network: nn.Module, state: State) -> None:
    """Set the weights."""
    with torch.no_grad():
        for tensor, value in zip(network.state_dict().values(), state, strict=True):
            tensor.copy_(value)


def moments_of(adam: torch.optim.Adam) -> State:
    """Return copies of the number of steps and the moments of each parameter, in float64."""
    tensors = []
    for parameter in _parameters(adam):
        state, zeros = adam.state[parameter], torch.zeros_like(parameter)
        tensors += [
            state.get("step", torch.zeros(())),
            state.get("exp_avg", zeros),
            state.get("exp_avg_sq", zeros),
        ]
    return [tensor.detach().double().clone() for tensor in tensors]


def put_moments(adam: torch.optim.Adam, state: State) -> None:
    """Set the moments to a result of :func:`moments_of`."""
    values = iter(state)
    for parameter in _parameters(adam):
        adam.state[parameter] = {
            "step": next(values).float(),
            "exp_avg": next(values).to(parameter.dtype),
            "exp_avg_sq": next(values).to(parameter.dtype),
        }


def _parameters(adam: torch.optim.Adam) -> list[nn.Parameter]:
    return [parameter for group in adam.param_groups for parameter in group["params"]]


class Mean:
    """The weighted mean of states of all workers. The mean of a single state is exact."""

    def __init__(self) -> None:
        self._sum: State = []
        self._weight = 0.0

    def add(self, state: State, weight: int) -> None:
        """Add a state of this worker."""
        if not self._sum:
            self._sum = [torch.zeros_like(tensor) for tensor in state]
        for total, tensor in zip(self._sum, state, strict=True):
            total.add_(tensor, alpha=weight)
        self._weight += weight

    def of_all(self, like: State) -> State:
        """Return the mean over all workers. ``like`` gives the shapes to workers that added nothing."""
        mine = self._sum or [torch.zeros_like(tensor) for tensor in like]
        flat = torch.cat([tensor.reshape(-1) for tensor in mine] + [torch.tensor([self._weight]).double()])
        dist.all_reduce(flat)
        values = (flat[:-1] / flat[-1]).split([tensor.numel() for tensor in mine])
        return [value.reshape(tensor.shape) for value, tensor in zip(values, mine, strict=True)]
