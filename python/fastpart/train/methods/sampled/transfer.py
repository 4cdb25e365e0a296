"""Steps on the device of a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, Self, TypeVar

import torch
from torch import Tensor


class Movable(Protocol):
    """A step whose tensors can be moved."""

    def moved(self, move: Callable[[Tensor], Tensor]) -> Self:
        """Return the step with tensors that were moved."""

    @property
    def tensors(self) -> list[Tensor]:
        """All that :meth:`moved` moves."""


AnyStep = TypeVar("AnyStep", bound=Movable)


def on_device(steps: Iterator[AnyStep], device: torch.device) -> Iterator[AnyStep]:
    """Yield the steps with their tensors on a device.

    On a GPU, the features of the next step are copied while this one computes: from page-locked memory, in a stream of
    their own.
    """
    if device.type != "cuda":
        yield from steps
        return
    copying, pending = torch.cuda.Stream(device), None
    while True:
        with torch.cuda.stream(copying):  # rows that stay on the GPU are put into batches there, too
            step = next(steps, None)
            moved = None if step is None else _moved(step, device)
        if pending is not None:
            yield _arrived(pending, copying)
        if moved is None:
            return
        pending = moved


def _moved(step: AnyStep, device: torch.device) -> AnyStep:
    def move(tensor: Tensor) -> Tensor:
        return tensor if tensor.is_cuda else tensor.pin_memory().to(device, non_blocking=True)

    return step.moved(move)


def _arrived(step: AnyStep, copying: torch.cuda.Stream) -> AnyStep:
    """Let the stream that computes wait for the copies, whose memory is not used again before it is done with them."""
    computing = torch.cuda.current_stream()
    computing.wait_stream(copying)
    for tensor in step.tensors:
        tensor.record_stream(computing)
    return step
