"""The verb that clusters."""

from __future__ import annotations

import argparse
import json
import time

from .. import _core, store
from ..clustering import cluster as find_clusters
from ..errors import ParameterError
from ..parameters import run_options, shown
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
        edges = open_input(options, running)
        if target is not None:
            store.refuse_unwritable(target, form, edges)
        start = time.perf_counter()
        found = find_clusters(edges, **given, **running)
        seconds = time.perf_counter() - start
        if target is not None:
            _core.write_npy(target, found.assignment, run_options(**running))
    facts = {
        "method": found.method,
        "n": found.n,
        "m": found.m,
        "clusters": found.num_clusters,
        "largest": int(found.sizes.max(initial=0)),
        "largest_volume": int(found.volumes.max(initial=0)),
        **found.caps,
        "modularity": found.modularity,
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
