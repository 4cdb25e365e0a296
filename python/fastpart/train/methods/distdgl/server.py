"""The process that holds one part: ``python -m fastpart.train.methods.distdgl.server``, with DGL's variables set."""

from __future__ import annotations

import os

from ....runtime.reporting import Reports, run
from ...plugged import import_dgl
from . import local


def main(reports: Reports) -> None:
    """Serve until the trainers report their end."""
    import_dgl()
    local.install()
    import dgl

    reports.ready()
    dgl.distributed.initialize(os.environ["DGL_IP_CONFIG"])


if __name__ == "__main__":
    run(main)
