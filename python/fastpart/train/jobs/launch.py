"""Where the processes of a training come from: started on this machine, those of a launcher, or that of the user."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ...core import parameters
from ...core.outputs import Owner, owning
from ...errors import FastpartError
from ...runtime.environment import Ranks, found
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
    if not alone and (ranks := found()) is not None:
        with _joined(call, ranks, workers) as launch:
            yield launch
        return
    out = None if call.out is None else parameters.path("out", call.out)
    with owning(out=out), _alone(call) if alone else _started(call) as launch:
        yield launch


@contextmanager
def _alone(call: Call) -> Iterator[Launch]:
    """Yield this process."""
    refuse_few_gpus(call.device, 1)
    with tempfile.TemporaryDirectory(prefix="fastpart-", dir=call.run.tmp_dir) as scratch:
        folder = output_of(Path(scratch), call.out, call.resume, call.overwrite)
        yield Launch(folder, call.resume, call.device, call.timeout, None, Path(scratch))


@contextmanager
def _started(call: Call) -> Iterator[Launch]:
    """Yield processes that are going to be started on this machine."""
    with Supervisor(call.run.tmp_dir, call.timeout) as group:
        folder = output_of(group.folder, call.out, call.resume, call.overwrite)
        yield Launch(folder, call.resume, call.device, call.timeout, group, group.folder)


@contextmanager
def _joined(call: Call, ranks: Ranks, workers: int | None) -> Iterator[Launch]:
    """Yield the processes of a launcher. The first of them owns the folder."""
    resume, overwrite = call.resume, call.overwrite
    timeout, device = call.timeout, call.device
    path = shared_output(ranks, call.out, workers)
    resume, overwrite = resume or restarted(), overwrite and not restarted()
    with joined(ranks, device, timeout), ExitStack() as stack:

        def claim() -> RunFolder:
            stack.enter_context(Owner(path))
            return RunFolder.claim(path, resume, overwrite)

        folder = _agreed(claim)
        with folder.scratch() if is_first() else nullcontext():
            yield Launch(folder, resume, device, timeout, None, folder.path.absolute() / SCRATCH, True)
            barrier()  # no rank leaves while another one needs it


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
