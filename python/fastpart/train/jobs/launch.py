"""Where the processes of a training come from: started on this machine, those of a launcher, or that of the user."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ...errors import FastpartError
from ...runtime.environment import found
from ...runtime.watch import Supervisor
from ..config import Call, Options
from ..keywords import Device
from ..plugged.notebooks import in_notebook
from ..ranks import barrier, from_first, is_first
from ..runs.run_folder import MODEL, SCRATCH, RunFolder
from .following import output_of
from .group import joined, refuse_few_gpus, restarted, shared_output

Result = TypeVar("Result")


@dataclass(frozen=True)
class Launch:
    """Where the processes of a training are.

    Attributes
    ----------
    folder : RunFolder
        The folder of the history.
    resume : bool
        Whether to continue from the checkpoint there.
    device : str
        Where the workers compute.
    timeout : float
        Seconds that workers wait for each other.
    group : Supervisor or None
        The supervisor that starts the workers. None: this process trains.
    scratch : pathlib.Path
        A folder for temporary files that all workers see.
    joined : bool
        Whether this process trains together with those of a launcher.
    """

    folder: RunFolder
    resume: bool
    device: Device
    timeout: float
    group: Supervisor | None
    scratch: Path
    joined: bool = False

    def once(self, make: Callable[[], Result]) -> Result:
        """Return what ``make`` returns in the process of the user, or in rank 0."""
        return _agreed(make) if self.joined else make()

    def importable(self, options: Options) -> Options:
        """Return options whose model the workers can import. That of a notebook goes to a file."""
        if not in_notebook(options.model):
            return options
        self.folder.add([MODEL])
        options = options.importable(self.folder.path)
        self.folder.update(options=options.stored())
        return options


@contextmanager
def launching(call: Call, workers: int | None, alone: bool) -> Iterator[Launch]:
    """Yield where the processes are: only this one if it trains ``alone``.

    A launcher decides about ``workers``, the number that the user asked for, itself.
    """
    resume, overwrite = call.resume, call.overwrite
    timeout, device = call.timeout, call.device
    if alone:
        refuse_few_gpus(device, 1)
        with tempfile.TemporaryDirectory(prefix="fastpart-", dir=call.run.tmp_dir) as scratch:
            folder = output_of(Path(scratch), call.out, resume, overwrite)
            yield Launch(folder, resume, device, timeout, None, Path(scratch))
    elif (ranks := found()) is not None:
        path = shared_output(ranks, call.out, workers)
        resume, overwrite = resume or restarted(), overwrite and not restarted()
        with joined(ranks, device, timeout):
            folder = _agreed(lambda: RunFolder.claim(path, resume, overwrite))
            with folder.scratch() if is_first() else nullcontext():
                yield Launch(folder, resume, device, timeout, None, folder.path.absolute() / SCRATCH, True)
                barrier()  # no rank leaves while another one needs it
    else:
        with Supervisor(call.run.tmp_dir, timeout) as group:
            folder = output_of(group.folder, call.out, resume, overwrite)
            yield Launch(folder, resume, device, timeout, group, group.folder)


def _agreed(make: Callable[[], Result]) -> Result:
    """Return what ``make`` returns in rank 0. What it refuses, all ranks refuse: else they would wait for rank 0."""
    made: Result | None = None
    refusal: Exception | None = None
    if is_first():
        try:
            made = make()
        except (FastpartError, OSError) as error:
            refusal = error
    made, refusal = from_first((made, refusal))
    if refusal is not None:
        raise refusal
    return made
