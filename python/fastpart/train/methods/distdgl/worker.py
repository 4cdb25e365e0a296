"""The training process: ``python -m fastpart.train.methods.distdgl.worker RUN.json``, with torchrun's variables set.

DGL starts samplers as processes that import this module, too.
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from ....core.parsing import json_object
from ....errors import ParameterError
from ....runtime.reporting import Reports, run
from ...method_options import DistDGLOptions
from ...plugged import import_dgl
from . import local, samplers

_PATIENCE = timedelta(days=7)
"""How long trainers wait for each other. The supervisor ends them when one fails."""


def main(reports: Reports) -> None:
    """Train, and report every epoch to the supervisor."""
    settings: dict[str, Any] = json_object(Path(sys.argv[1]), None, {"trainers": int, "options": dict})
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if world != settings["trainers"]:
        raise ParameterError(f"WORLD_SIZE: expected {settings['trainers']} trainers, got {world}")
    import_dgl()
    local.install()
    import dgl
    import torch

    samplers.prepare()
    over = samplers.watch()
    torch.set_num_threads(settings["threads"])
    dgl.distributed.initialize(os.environ["DGL_IP_CONFIG"])
    torch.distributed.init_process_group(
        "gloo", init_method=settings["rendezvous"], rank=rank, world_size=world, timeout=_PATIENCE
    )
    graph = dgl.distributed.DistGraph(settings["graph_name"])
    reports.ready()
    from .training import train_over

    settings["keeps"] = os.environ["LOCAL_RANK"] == "0"
    with samplers.blamed(over):
        train_over(graph, DistDGLOptions.received(settings["options"]), settings, reports)
    torch.distributed.barrier()
    reports.done()
    over.set()
    dgl.distributed.exit_client()


if __name__ == "__main__":
    run(main)
elif __name__ == "__mp_main__":  # the name of this module in a sampler
    samplers.begin()
