"""``fastpart train METHOD`` over a partition directory, and ``fastpart train compare``."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from logging import LogRecord
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _core, train
from ..core.notes import log
from ..core.outputs import owning
from ..core.parameters import TABLES, choice, shown
from ..errors import ParameterError
from ..graphs.graph_directory import GraphDirectory
from ..measures.compare.comparison import REPORTS
from ..partitions.partitioners import PARTITIONERS
from ..report.files import write_tables
from ..report.text import table, table_of
from ..runtime.environment import is_other_rank
from ..store.directory import RUN_OPTIONS
from ..train.loggers import loggers_of
from ..train.plugged import checked
from .call import Call
from .commands import open_input, output_file
from .config import options_file, save_options

if TYPE_CHECKING:
    import polars as pl

    from ..train import TrainedModel
from collections.abc import Mapping

from ..report.text import MANY


def _refuse_typos(call: Call) -> None:
    """Refuse an unknown model or partitioner before torch is imported, which takes seconds."""
    if call["model"] is not None:
        checked(call["model"])
    for name in call["partitioners"] or ():
        choice("--partitioners", name, PARTITIONERS)


def train_over(call: Call) -> None:
    """``fastpart train METHOD``."""
    _refuse_typos(call)
    predictions = _predictions("--predictions", call["predictions"], call) if call["predictions"] else None
    if call["restore"] and predictions is None:
        raise ParameterError("--restore: needs --predictions, a .parquet or a .csv")
    given = call.of(f"train.{call.name}")
    if predictions is not None and call["out"] is None:  # hours of training outlive predictions that fail
        given["out"] = predictions.with_name(f"{predictions.name}.partial")
    with nullcontext() if is_other_rank() else owning(predictions=predictions):
        _train(call, given, predictions)


def _train(call: Call, given: dict[str, Any], predictions: Path | None) -> None:
    """Train, and write what was asked for beside the training."""
    if call["log"] and not is_other_rank():  # each rank would open its own
        given["callbacks"] = loggers_of(call["log"])
    rows = EpochRows()
    if not (call["json"] or call["quiet"]):
        given["on_epoch"] = rows
        if sys.stdout.isatty():
            given["progress"] = False  # rows would be printed into the bar
    with redirect_stdout(sys.stderr) if call["json"] else nullcontext():  # for what models of users print
        trained = getattr(train, call.name)(**given)
    if is_other_rank():
        return
    if call["out"] is not None:
        _save_options(call)
    if predictions is not None:
        _predict(trained, Path(given["out"]), call, predictions)
        if call["out"] is None:
            _remove(given["out"])
    if call["json"]:
        print(_json({"summary": trained.summary, "history": trained.history.rows(named=True)}))
        return
    print(f"\n{_result(trained)}" if rows.printed else trained)
    if not call["quiet"]:
        for target in filter(None, (call["out"], call["predictions"])):
            print(f"\nsaved to {shown(target)}")


def _result(trained: TrainedModel) -> str:
    """Return what follows the epochs that were printed."""
    from ..train.runs.summary import result_of

    return result_of(trained.task, trained.summary)


def _save_options(call: Call) -> None:
    """Write the options of the command to the folder of the training."""
    from ..train.runs.run_folder import RunFolder

    folder = RunFolder(Path(call["out"]))
    folder.add([RUN_OPTIONS])
    _core.write_file(folder.path / RUN_OPTIONS, options_file(call, "train"))


def _predict(trained: TrainedModel, run: Path, call: Call, predictions: Path) -> None:
    """Write the classes of all vertices. An error says where the training is kept."""
    from ..train.runs.run_folder import RunFolder

    with RunFolder(run).kept():
        trained.predict(call["source"], out=predictions, restore=call["restore"])


def _remove(run: Path) -> None:
    """Remove a folder that kept a training while it was under way."""
    from ..train.runs.run_folder import RunFolder

    RunFolder(run).clear()
    with suppress(OSError):  # something of the user is there
        run.rmdir()


def predict(call: Call) -> None:
    """``fastpart predict``."""
    out = _predictions("-o", call["out"], call)
    train.predict(**call.of("train.predict"))
    call.tell({"out": str(out)}, f"saved to {shown(out)}")


def _predictions(option: str, out: str, call: Call) -> Path:
    """Return the file of predictions. Refuse one that cannot be written before any work is done."""
    suffixes = (".parquet", ".csv") if call["restore"] else (".npy",)
    if Path(out).suffix not in suffixes:
        more = "" if call["restore"] else ", or pass --restore for a table with your own ids"
        raise ParameterError(
            f"{option}: {shown(out)} is no {' or '.join(suffixes)} file. Choose a name that ends so{more}"
        )
    if call["restore"]:
        GraphDirectory.of(call["restore"])
    return output_file(out, suffixes)


@contextmanager
def _without_starts() -> Iterator[None]:
    """Leave out the notes that workers start, one for each training of a comparison."""

    def is_other(record: LogRecord) -> bool:
        return not record.msg.startswith("starting ")

    log.addFilter(is_other)
    try:
        yield
    finally:
        log.removeFilter(is_other)


def compare(call: Call) -> None:
    """``fastpart train compare``."""
    _refuse_typos(call)
    target = output_file(call["out"], (*TABLES, *REPORTS)) if call["out"] else None
    graph = open_input(call)
    with _without_starts():
        compared = train.compare(graph, **call.of("train.compare"))
    # What took hours is shown before the file is written, which may fail.
    print(_json(compared.rows(named=True)) if call["json"] else table(compared), flush=True)
    if target is not None:
        _save(compared, target, call)
        save_options(call, target, "train")
    if target is not None and not (call["json"] or call["quiet"]):
        print(f"\nsaved to {shown(target)}")


def _save(compared: pl.DataFrame, target: Path, call: Call) -> None:
    if target.suffix in REPORTS:
        from ..report.pages import write_training

        write_training(compared, target, Path(call["file"]).name)
        return
    write_tables(target, compared, [table_of("", compared)])


def _json(content: Any) -> str:
    """Return JSON. NaN, the score of a split without vertices, becomes null."""

    def known(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: known(item) for name, item in value.items()}
        if isinstance(value, list):
            return [known(item) for item in value]
        return None if isinstance(value, float) and math.isnan(value) else value

    return json.dumps(known(content))


_WIDTH = 80
"""Most letters of a line."""

_LEAST = {"loss": 9, "seconds": 9, "remote_bytes": 14}
"""Width of columns whose numbers may grow. Scores have 6 letters."""


class EpochRows:
    """A table that gets a row for each epoch: its loss, validation scores, seconds and bytes that were fetched.

    Columns that do not fit into 80 letters are left out. The history has all.
    """

    def __init__(self) -> None:
        self._widths: dict[str, int] = {}

    def __call__(self, row: Mapping[str, Any]) -> None:
        """Print a row, before the first one the names of the columns."""
        if not self._widths:
            self._widths = _widths(row)
            self._print({name: name for name in self._widths})
        self._print(row)

    @property
    def printed(self) -> bool:
        """Whether there was a row."""
        return bool(self._widths)

    def _print(self, row: Mapping[str, Any]) -> None:
        cells = [_cell(row.get(name)).rjust(width) for name, width in self._widths.items()]
        print("  ".join(cells), flush=True)  # also in a pipe


def _widths(row: Mapping[str, Any]) -> dict[str, int]:
    """Return the columns to print, in their order, and their widths."""
    scores = [name for name in row if name.startswith("val_")]
    found, left = dict[str, int](), _WIDTH + 2
    for name in ("epoch", "loss", "seconds", "remote_bytes", *scores):
        width = max(len(name), _LEAST.get(name, 6))
        if name in row and width + 2 <= left:
            found[name], left = width, left - width - 2
    return {
        name: found[name] for name in ("epoch", "loss", *scores, "seconds", "remote_bytes") if name in found
    }


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.{0 if value >= MANY else 4}f}" if isinstance(value, float) else str(value)
