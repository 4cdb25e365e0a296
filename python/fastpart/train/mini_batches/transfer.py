"""Steps on the device of a worker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from .steps import Step


def on_device(steps: Iterator[Step], device: torch.device) -> Iterator[Step]:
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


def _moved(step: Step, device: torch.device) -> Step:
    x, y = (
        tensor if tensor.is_cuda else tensor.pin_memory().to(device, non_blocking=True)
        for tensor in (step.x, step.y)
    )
    weights = None if step.weights is None else step.weights.to(device)
    return replace(step, x=x, y=y, rows=step.rows.to(device), weights=weights)


def _arrived(step: Step, copying: torch.cuda.Stream) -> Step:
    """Let the stream that computes wait for the copies, whose memory is not used again before it is done with them."""
    computing = torch.cuda.current_stream()
    computing.wait_stream(copying)
    for tensor in (step.x, step.y, step.rows, step.weights):
        if tensor is not None:
            tensor.record_stream(computing)
    return step
