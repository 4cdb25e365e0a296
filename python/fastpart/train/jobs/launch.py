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
from ..options import TrainOptions
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
    group : Supervisor or None
        The supervisor that starts the workers. None: this process trains.
    scratch : pathlib.Path
        A folder for temporary files that all workers see.
    joined : bool
        Whether this process trains together with those of a launcher.
    """

    folder: RunFolder
    resume: bool
    group: Supervisor | None
    scratch: Path
    joined: bool = False

    def once(self, make: Callable[[], Result]) -> Result:
        """Return what ``make`` returns in the process of the user, or in rank 0."""
        return _agreed(make) if self.joined else make()

    def importable(self, options: TrainOptions) -> TrainOptions:
        """Return options whose model the workers can import. That of a notebook goes to a file."""
        if not in_notebook(options.model):
            return options
        self.folder.add([MODEL])
        options = options.importable(self.folder.path)
        self.folder.update(options=options.stored())
        return options


@contextmanager
def launching(options: TrainOptions, workers: int | None, alone: bool) -> Iterator[Launch]:
    """Yield where the processes are: only this one if it trains ``alone``.

    A launcher decides about ``workers``, the number that the user asked for, itself.
    """
    if not alone and (ranks := found()) is not None:
        with _joined(options, ranks, workers) as launch:
            yield launch
        return
    out = None if options.out is None else parameters.path("out", options.out)
    with owning(out=out), _alone(options) if alone else _started(options) as launch:
        yield launch


@contextmanager
def _alone(options: TrainOptions) -> Iterator[Launch]:
    """Yield this process."""
    refuse_few_gpus(options.device, 1)
    with tempfile.TemporaryDirectory(prefix="fastpart-", dir=options.tmp_dir) as scratch:
        folder = output_of(Path(scratch), options)
        yield Launch(folder, options.resume, None, Path(scratch))


@contextmanager
def _started(options: TrainOptions) -> Iterator[Launch]:
    """Yield processes that are going to be started on this machine."""
    with Supervisor(options.tmp_dir, options.timeout) as group:
        yield Launch(output_of(group.folder, options), options.resume, group, group.folder)


@contextmanager
def _joined(options: TrainOptions, ranks: Ranks, workers: int | None) -> Iterator[Launch]:
    """Yield the processes of a launcher. The first of them owns the folder."""
    path = shared_output(ranks, options.out, workers)
    resume, overwrite = options.resume or restarted(), options.overwrite and not restarted()
    with joined(ranks, options.device, options.timeout), ExitStack() as stack:

        def claim() -> RunFolder:
            stack.enter_context(Owner(path))
            return RunFolder.claim(path, resume, overwrite)

        folder = _agreed(claim)
        with folder.scratch() if is_first() else nullcontext():
            yield Launch(folder, resume, None, folder.path.absolute() / SCRATCH, True)
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
