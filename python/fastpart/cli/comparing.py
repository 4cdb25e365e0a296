"""The verbs that compare partitions."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

from .. import store
from ..core.parameters import shown
from ..errors import FastpartError, ParameterError
from ..graphs.graph import Graph
from ..measures.compare import Comparison, open_comparison
from ..measures.compare import compare as run_comparison
from ..measures.compare.comparison import FILES, REPORTS
from ..measures.compare.entries import entries_of
from ..store import partial, saving
from .call import Call
from .commands import open_input, output_file
from .config import save_options


def compare(call: Call) -> None:
    """``fastpart compare``."""
    target = output_file(call["out"], FILES) if call["out"] else None
    entries_of(call["algorithms"], call["peers"])  # refuses a wrong name before the graph is read
    graphs = [open_input(call, file) for file in (call["file"], *call["others"])]
    if target is None:
        comparison = run_comparison(graphs, **_parameters(call))
    else:
        for graph in graphs:
            saving.refuse_unwritable(target, "file", graph)
        comparison = _kept_and_saved(call, graphs, target)
        save_options(call, target)
    print(comparison.to_json(parts=False) if call["json"] else comparison)
    if target is not None and not (call["json"] or call["quiet"]):
        print(f"\nsaved to {shown(target)}")
    reasons = [outcome.row.get("error") for outcome in comparison.outcomes]
    if all(reasons):
        raise FastpartError(f"no algorithm returned a partition. The first error: {reasons[0]}")


def _parameters(call: Call) -> dict[str, Any]:
    """Return the parameters of the comparison. A single number of ``--seeds`` is their number."""
    given = call.of("compare")
    match given.get("seeds"):
        case [count]:
            given["seeds"] = count
    return given


def _kept_and_saved(call: Call, graphs: list[Graph], target: Path) -> Comparison:
    """Compare, keep each outcome beside the output as soon as it is there, and write the output."""
    kept = partial.Partial(target, "comparison.json")
    file = shown(kept.folder / kept.marker)
    use = f"`fastpart report {file} -o OUT` shows what was measured"
    if kept.found() is not None:
        text = f"holds the rows of an unfinished comparison. {use}. Remove the folder to compare anew"
        raise FileExistsError(errno.EEXIST, text, str(kept.folder))

    def keep(so_far: Comparison) -> None:
        kept.write(json.loads(so_far.to_json()), f"{len(so_far.outcomes)} outcomes")

    with kept.named(use):
        comparison = run_comparison(graphs, on_outcome=keep, **_parameters(call))
        comparison.save(target)
    kept.remove()
    return comparison


def report(call: Call) -> None:
    """``fastpart report``."""
    target = output_file(call["out"], REPORTS)
    if call["partitions"]:
        comparison = _compare_saved(call, target)
    else:
        if Path(call["file"]).suffix != ".json":
            raise ParameterError(
                f"{shown(call['file'])} is not a comparison. Name a .json that `fastpart compare -o` wrote, or this "
                "graph and then its partitions"
            )
        comparison = open_comparison(call["file"])
    comparison.report(target)
    if not call["quiet"]:
        print(f"saved to {shown(target)}")


def _compare_saved(call: Call, target: Path) -> Comparison:
    """Measure the partitions in files. Each is named like its file."""
    graph = open_input(call)
    saving.refuse_unwritable(target, "file", graph)
    named = [
        (shown(name.rstrip("/")), store.open_partition(name, graph, **call.of("open_partition")))
        for name in call["partitions"]
    ]
    return run_comparison(graph, [], named, balance=None, **call.of("evaluate"))
