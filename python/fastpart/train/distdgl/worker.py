"""The process that trains: ``python -m fastpart.train.distdgl.worker RUN.json``, started as torchrun starts its own.

DGL starts samplers as processes that import this module, too.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

from ...errors import ParameterError
from ..config import Options
from ..libraries import import_libraries
from ..reporting import Reports, die_with, run
from . import local

_PATIENCE = timedelta(days=7)
"""Of trainers with each other: it is for the supervisor to say when one has failed."""

_WATCHED_EVERY = 0.2
"""Seconds."""


def main(reports: Reports) -> None:
    """Train, and tell the supervisor of every epoch."""
    settings: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if world != settings["trainers"]:
        raise ParameterError(
            f"WORLD_SIZE: {world} trainers were started, {settings['trainers']} are expected"
        )
    import_libraries()
    local.install()
    import dgl
    import torch

    over = _watch_samplers()
    torch.set_num_threads(settings["threads"])
    dgl.distributed.initialize(os.environ["DGL_IP_CONFIG"])
    torch.distributed.init_process_group(
        "gloo", init_method=settings["rendezvous"], rank=rank, world_size=world, timeout=_PATIENCE
    )
    graph = dgl.distributed.DistGraph(settings["graph_name"])
    reports.ready()
    from .training import train

    settings["keeps"] = os.environ["LOCAL_RANK"] == "0"
    train(graph, Options.from_json(settings["options"]), settings, reports)
    torch.distributed.barrier()
    reports.done()
    over.set()
    dgl.distributed.exit_client()


def _watch_samplers() -> threading.Event:
    """End this process when one of its samplers ends before the event: DGL would wait half an hour for it."""
    from dgl.distributed import dist_context

    over = threading.Event()

    def watch() -> None:
        while not over.wait(_WATCHED_EVERY):
            pool = dist_context.SAMPLER_POOL
            codes = [process.exitcode for process in pool.process_list] if pool else []
            if any(code is not None for code in codes) and not over.is_set():
                code = next(code for code in codes if code is not None)
                how = (
                    f"was killed by {signal.Signals(-code).name}"
                    if code < 0
                    else f"ended with exit code {code}"
                )
                print(f"one of its samplers {how}", file=sys.stderr, flush=True)
                os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    return over


if __name__ == "__main__":
    run(main)
elif __name__ == "__mp_main__":  # what a sampler calls the module that its trainer runs
    die_with(os.getppid())
    import_libraries()
    local.install()
