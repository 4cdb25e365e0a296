"""The verbs that set partitions beside one another."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from .. import store
from ..comparing import Comparison
from ..comparing import compare as run_comparison
from ..comparing.comparison import FILES, PICTURES, output
from ..errors import FastpartError, ParameterError
from ..parameters import shown
from .call import Call
from .commands import open_input


def compare(call: Call) -> None:
    """``fastpart compare``."""
    target = output_file(call["out"], FILES) if call["out"] else None
    graph = open_input(call)
    if target is not None:
        store.refuse_unwritable(target, "file", graph)
    comparison = run_comparison(graph, **call.of("compare"))
    if target is not None:
        comparison.save(target)
    print(comparison.to_json(parts=False) if call["json"] else comparison)
    if target is not None and not (call["json"] or call["quiet"]):
        print(f"\nsaved to {shown(target)}")
    reasons = [outcome.row.get("error") for outcome in comparison.outcomes]
    if all(reasons):
        raise FastpartError(f"no algorithm made a partition; the first one: {reasons[0]}")


def report(call: Call) -> None:
    """``fastpart report``."""
    target = output_file(call["out"], PICTURES)
    if call["partitions"]:
        comparison = _compare_saved(call, target)
    else:
        if Path(call["file"]).suffix != ".json":
            raise ParameterError(
                f"{shown(call['file'])}: name the partitions of this graph behind it, or a comparison that `fastpart "
                "compare -o NAME.json` wrote"
            )
        comparison = Comparison.load(call["file"])
    comparison.report(target)
    if not call["quiet"]:
        print(f"saved to {shown(target)}")


def _compare_saved(call: Call, target: Path) -> Comparison:
    """Measure partitions that are in files, named as their files are."""
    graph = open_input(call)
    store.refuse_unwritable(target, "file", graph)
    named = [
        (shown(name.rstrip("/")), store.open_partition(name, graph, **call.of("open_partition")))
        for name in call["partitions"]
    ]
    return run_comparison(graph, [], named, **call.of("evaluate"))


def output_file(out: str, suffixes: tuple[str, ...]) -> Path:
    """Return the output, refused before any work if it cannot be written."""
    target = output(out, suffixes)
    if not target.parent.is_dir():
        raise FileNotFoundError(
            errno.ENOENT, "the folder of the output does not exist; make it first", os.fspath(target.parent)
        )
    if target.suffix in (".png", ".pdf"):
        from ..report.draw import new_figure

        new_figure()
    store.refuse_unwritable(target, "file", None)
    return target
