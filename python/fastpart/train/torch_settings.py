"""Temporary global settings of torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def torch_settings(threads: int | None, seed: int) -> Iterator[None]:
    """Seed torch and set its threads, and restore both in the end."""
    with torch.random.fork_rng(devices=[]), torch_threads(threads):
        torch.manual_seed(seed)
        yield


@contextmanager
def torch_threads(threads: int | None) -> Iterator[None]:
    """Set the threads of torch, if they are given, and restore them in the end."""
    before = torch.get_num_threads()
    if threads:
        torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
