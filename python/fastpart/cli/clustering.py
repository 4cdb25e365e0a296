"""The verb that clusters."""

from __future__ import annotations

import argparse
import json
import time

from .. import _core, store
from ..clustering import cluster as find_clusters
from ..errors import ParameterError
from ..options import run_options
from ..parameters import shown
from .commands import open_input
from .progress import progress_bar


def cluster(options: argparse.Namespace, rest: list[str]) -> None:
    """``fastpart cluster``."""
    if rest:
        raise ParameterError(f"unknown argument {rest[0]!r}")
    target, form = store.output(options.out) if options.out else (None, "npy")
    if form != "npy":
        raise ParameterError(f"-o: {shown(options.out)}; clusters are saved as .npy")
    names = ("method", "max_size", "max_volume", "batch")
    given = {name: getattr(options, name) for name in names}
    with progress_bar(options) as running:
        graph = open_input(options, running)
        if target is not None:
            store.refuse_unwritable(target, form, graph)
        start = time.perf_counter()
        clustering = find_clusters(graph, **given, **running)
        seconds = time.perf_counter() - start
        if target is not None:
            _core.write_npy(target, clustering.assignment, run_options(**running))
    facts = {
        "method": clustering.method,
        "n": clustering.num_vertices,
        "m": clustering.num_edges,
        "clusters": clustering.num_clusters,
        "largest": int(clustering.sizes.max(initial=0)),
        "largest_volume": int(clustering.volumes.max(initial=0)),
        **clustering.caps,
        "modularity": clustering.modularity,
        "seconds": seconds,
    }
    if options.json:
        print(json.dumps(facts))
        return
    for name, value in facts.items():
        text = (
            f"{value:,}" if isinstance(value, int) else f"{value:.4f}" if isinstance(value, float) else value
        )
        print(f"{name:16} {'none' if text is None else text}")
    if target is not None and not options.quiet:
        print(f"saved to {shown(target)}")
