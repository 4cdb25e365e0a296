"""Training by one worker in this process, which takes less time than to start one that imports torch."""

import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest


def in_process(method):
    """Return a method of training whose only worker is this process."""

    def train(source, **given):
        with one_worker():
            return method(source, **given)

    return train


@contextmanager
def one_worker():
    """Let the methods train in this process, as the only worker."""
    import torch.distributed as dist

    from fastpart.train.jobs.launch import Launch
    from fastpart.train.runs.run_folder import RunFolder

    @contextmanager
    def launching(options, workers, alone):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as scratch:
            claimed = RunFolder.claim(options.out or folder, options.resume, options.overwrite)
            yield Launch(claimed, options.resume, None, Path(scratch), joined=True)

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("fastpart.train.jobs.driver.launching", launching)
            yield
    finally:
        dist.destroy_process_group()
