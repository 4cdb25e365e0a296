"""``fastpart train METHOD``: training over a partition directory, and methods and partitioners beside one another."""

from __future__ import annotations

import io
import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _core, train
from ..comparing.comparison import PICTURES
from ..errors import ParameterError
from ..parameters import shown
from ..report.text import table
from ..report.training import write_training
from ..train.config import Options as TrainingOptions
from .commands import Options, function_parameters, open_input
from .comparing import output_file
from .progress import progress_bar

if TYPE_CHECKING:
    import polars as pl

_OWN = frozenset({"source", "out", "resume", "seed", "threads", "progress"})
"""Parameters of the methods that have options of their own."""


def train_over(options: Options, rest: list[str]) -> None:
    """``fastpart train METHOD``."""
    _refuse_memory_limit(options)
    function = getattr(train, options.method)
    given = function_parameters(function, rest, _OWN)
    with progress_bar(options) as running:
        del running["memory_limit"]
        trained = function(
            options.source, out=options.out, resume=options.resume, seed=options.seed, **given, **running
        )
    if os.environ.get("RANK", "0") != "0":  # torchrun started several of us
        return
    if options.json:
        print(_json({"summary": trained.summary, "history": trained.history.rows(named=True)}))
        return
    print(trained)
    if options.out and not options.quiet:
        print(f"\nsaved to {shown(options.out)}")


def compare(options: Options, rest: list[str]) -> None:
    """``fastpart train compare``."""
    _refuse_memory_limit(options)
    given = function_parameters(TrainingOptions, rest, _OWN, "compare")
    target = output_file(options.out, (".parquet", *PICTURES)) if options.out else None
    with progress_bar(options) as running:
        graph = open_input(options, running)
        del running["memory_limit"]
        compared = train.compare(
            graph,
            options.k,
            features=options.features,
            labels=options.labels,
            splits=options.splits,
            split=options.split,
            methods=_names(options.methods),
            partitioners=None if options.partitioners is None else _names(options.partitioners),
            seeds=options.seeds,
            **given,
            **running,
        )
        if target is not None:
            _save(compared, target, options)
    print(_json(compared.rows(named=True)) if options.json else table(compared))
    if target is not None and not (options.json or options.quiet):
        print(f"\nsaved to {shown(target)}")


def _save(compared: pl.DataFrame, target: Path, options: Options) -> None:
    if target.suffix in PICTURES:
        write_training(compared, target, Path(options.file).name)
        return
    buffer = io.BytesIO()
    compared.write_parquet(buffer)
    _core.write_file(target, buffer.getvalue())


def _refuse_memory_limit(options: Options) -> None:
    if options.memory_limit is not None:
        raise ParameterError("--memory-limit: not for training; sdt takes --memory-per-worker")


def _json(content: Any) -> str:
    """Return JSON, which knows no NaN: scores of splits without vertices are null."""

    def known(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: known(item) for name, item in value.items()}
        if isinstance(value, list):
            return [known(item) for item in value]
        return None if isinstance(value, float) and math.isnan(value) else value

    return json.dumps(known(content))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]
