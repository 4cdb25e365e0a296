"""The verbs that set partitions beside one another."""

from __future__ import annotations

import argparse
import errno
import os
from pathlib import Path

from .. import store
from ..comparing import Comparison
from ..comparing import compare as run_comparison
from ..comparing.comparison import FILES, PICTURES, output
from ..errors import FastpartError, ParameterError
from ..parameters import shown
from .commands import open_input
from .progress import progress_bar

Options = argparse.Namespace


def compare(options: Options, rest: list[str]) -> None:
    """``fastpart compare``."""
    if rest:
        raise ParameterError(f"unknown argument {rest[0]!r}")
    target = output_file(options.out, FILES) if options.out else None
    with progress_bar(options) as running:
        graph = open_input(options, running)
        if target is not None:
            store.refuse_unwritable(target, "file", graph)
        comparison = run_comparison(
            graph,
            _numbers(options.k),
            None if options.algorithms is None else [name.strip() for name in options.algorithms.split(",")],
            labels=options.labels,
            splits=options.splits,
            split=options.split,
            seed=options.seed,
            peers=options.peers,
            time_limit=options.time_limit,
            tmp_dir=options.tmp_dir,
            **running,
        )
        if target is not None:
            comparison.save(target)
    print(comparison.to_json(parts=False) if options.json else comparison)
    if target is not None and not (options.json or options.quiet):
        print(f"\nsaved to {shown(target)}")
    reasons = [outcome.row.get("error") for outcome in comparison.outcomes]
    if all(reasons):
        raise FastpartError(f"no algorithm made a partition; the first one: {reasons[0]}")


def report(options: Options, rest: list[str]) -> None:
    """``fastpart report``."""
    if rest:
        raise ParameterError(f"unknown argument {rest[0]!r}")
    target = output_file(options.out, PICTURES)
    if options.partitions:
        comparison = _compare_saved(options, target)
    else:
        if Path(options.file).suffix != ".json":
            raise ParameterError(
                f"{shown(options.file)}: name the partitions of this graph behind it, or a comparison that `fastpart "
                "compare -o NAME.json` wrote"
            )
        comparison = Comparison.load(options.file)
    comparison.report(target)
    if not options.quiet:
        print(f"saved to {shown(target)}")


def _compare_saved(options: Options, target: Path) -> Comparison:
    """Measure partitions that are in files, named as their files are."""
    with progress_bar(options) as running:
        graph = open_input(options, running)
        store.refuse_unwritable(target, "file", graph)
        named = [
            (
                shown(name.rstrip("/")),
                store.open_partition(name, graph, k=options.k, of=options.of, **running),
            )
            for name in options.partitions
        ]
        return run_comparison(
            graph, [], named, labels=options.labels, splits=options.splits, split=options.split, **running
        )


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


def _numbers(text: str) -> list[int]:
    """Read numbers of parts, as 4,8,32."""
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise ParameterError(f"-k: {text!r}; write numbers of parts, as 8 or 4,8,32") from None
