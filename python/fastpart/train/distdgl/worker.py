"""The process that trains: ``python -m fastpart.train.distdgl.worker RUN.json``, started as torchrun starts its own.

DGL starts samplers as processes that import this module, too.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from ..config import Options
from ..libraries import import_libraries
from ..reporting import Reports, die_with, run
from . import local

_PATIENCE = timedelta(days=7)
"""Of trainers with each other: it is for the supervisor to say when one has failed."""


def main(reports: Reports) -> None:
    """Train, and tell the supervisor of every epoch."""
    settings: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    import_libraries()
    local.install()
    import dgl
    import torch

    torch.set_num_threads(settings["threads"])
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dgl.distributed.initialize(os.environ["DGL_IP_CONFIG"])
    torch.distributed.init_process_group(
        "gloo", init_method=settings["rendezvous"], rank=rank, world_size=world, timeout=_PATIENCE
    )
    graph = dgl.distributed.DistGraph(settings["graph_name"])
    reports.ready()
    from .training import train

    train(graph, Options.from_json(settings["options"]), settings, reports)
    torch.distributed.barrier()
    reports.done()
    dgl.distributed.exit_client()


if __name__ == "__main__":
    run(main)
elif (parent := multiprocessing.parent_process()) is not None and __name__ == "__mp_main__":
    assert parent.pid is not None
    die_with(parent.pid)
    import_libraries()
    local.install()
