"""The verbs that compare partitions."""

from __future__ import annotations

from pathlib import Path

from .. import store
from ..comparing import Comparison, open_comparison
from ..comparing import compare as run_comparison
from ..comparing.comparison import FILES, REPORTS
from ..comparing.entries import entries_of
from ..errors import FastpartError, ParameterError
from ..parameters import in_folder, output, shown
from ..store import saving
from .call import Call
from .commands import open_input


def compare(call: Call) -> None:
    """``fastpart compare``."""
    target = output_file(call["out"], FILES) if call["out"] else None
    entries_of(call["algorithms"], call["peers"])  # refuses a wrong name before the graph is read
    graph = open_input(call)
    if target is not None:
        saving.refuse_unwritable(target, "file", graph)
    comparison = run_comparison(graph, **call.of("compare"))
    if target is not None:
        comparison.save(target)
    print(comparison.to_json(parts=False) if call["json"] else comparison)
    if target is not None and not (call["json"] or call["quiet"]):
        print(f"\nsaved to {shown(target)}")
    reasons = [outcome.row.get("error") for outcome in comparison.outcomes]
    if all(reasons):
        raise FastpartError(f"no algorithm returned a partition. The first error: {reasons[0]}")


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
    return run_comparison(graph, [], named, **call.of("evaluate"))


def output_file(out: str, suffixes: tuple[str, ...]) -> Path:
    """Return the output. Refuse one that cannot be written before any work is done."""
    target = in_folder(output(out, suffixes))
    saving.refuse_unwritable(target, "file", None)
    return target
