"""The sampling processes of a trainer. DGL starts them and does not notice when they die."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from ....core.system import die_with
from ....runtime.launch import SHARED_MEMORY
from ....runtime.reporting import RUN, describe
from ...plugged import import_dgl
from . import local

_WATCHED_EVERY = 0.2
"""Seconds between two checks of the samplers."""


def prepare() -> None:
    """Name what a trainer and its samplers share after the run. Call this before the samplers are started."""
    if RUN not in os.environ:
        return
    name = os.environ[RUN]
    # The path of a socket must be short, and the folder of temporary files may have a long name.
    folder = SHARED_MEMORY / f"{name}-sockets"
    folder.mkdir(mode=0o700, exist_ok=True)
    config = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    config |= {"semprefix": f"/{name}-", "tempdir": str(folder)}


def begin() -> None:
    """Begin a sampler. It imports the module of its trainer and calls a function of DGL."""
    die_with(os.getppid())
    import_dgl()
    local.install()
    from dgl.distributed import dist_context

    dist_context.init_process = _ending(dist_context.init_process)


def _ending(work: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that ends the process if the work fails. DGL would wait for the other processes instead."""

    @wraps(work)
    def ending(*arguments: Any) -> None:
        try:
            work(*arguments)
        except BaseException as error:
            print(describe(error), file=sys.stderr, flush=True)
            os._exit(1)

    return ending


@contextmanager
def blamed(over: threading.Event) -> Iterator[None]:
    """Let a sampler's death that breaks its trainer be told by :func:`watch`, rather than the broken pipe."""
    try:
        yield
    except OSError:
        over.wait(2 * _WATCHED_EVERY)
        raise


def watch() -> threading.Event:
    """End this trainer when a sampler ends before the returned event is set. DGL would wait half an hour."""
    from dgl.distributed import dist_context

    over = threading.Event()

    def look() -> None:
        while not over.wait(_WATCHED_EVERY):
            pool = dist_context.SAMPLER_POOL
            codes = [process.exitcode for process in pool.process_list] if pool else []
            ended = [code for code in codes if code is not None]
            if ended and not over.is_set():
                code = ended[0]
                how = f"was killed by {signal.Signals(-code).name}" if code < 0 else "failed"
                print(f"one of its samplers {how}", file=sys.stderr, flush=True)
                os._exit(1)

    threading.Thread(target=look, daemon=True).start()
    return over
