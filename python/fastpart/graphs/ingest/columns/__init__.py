"""Columns of tables as arrays beside the graph: features, labels, splits, times and weights.

Arrays are created sparse, and written in place, a file of the table at a time. A file can be written again, and files
in any order: the bytes are the same. In memory are a batch of rows, and, while features of a type or relation with
splits are standardised, a byte per vertex or record.

The table of vertices has one row per vertex, up to those that are left out. A vertex without a row gets the value of
``fill`` (or 0) as features, no label, no split and no time.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .... import _core
from ....core.notes import log
from ....core.parsing import json_object
from ....core.rows import STATISTICS, Rows, standardised
from ....errors import GraphWarning, ParameterError, warn
from ...graph_directory import CATEGORIES
from ..catalog import RelationTable, VertexTable
from ..schema import Rates
from .features import Features, Layout
from .labels import (
    NO_ROW,
    NO_SPLIT,
    TRAIN,
    LabelPlan,
    Labels,
    SplitColumn,
    bounds_of,
    split_at_random,
    split_by_time,
    split_description,
    write_splits,
)
from .rows import (
    RESTART,
    Array,
    Mask,
    Piece,
    Place,
    at_records,
    at_vertices,
    blocks,
    create,
    dtype_in,
    flush,
    is_number,
    is_text,
    opened,
    pieces,
    replacing,
    scalars,
)
from .surveys import UNKNOWN, Categories, Fact, Survey, Times, surveyed

FEATURES = "features.npy"
LABELS = "labels.npy"
SPLIT = "split.npz"
TIMES = "times.npy"
WEIGHTS = "weights.npy"

DESCRIPTION = "columns.json"
"""What the arrays hold. It is written last, so it tells that they are complete."""

RAW = "features.raw.npy"
"""Features before they are standardised."""

STATES = "states.npy"
"""Which vertices or records have a row, and their split if a column says it."""

SPLIT_STATES = "split_states.npy"
"""The states with the splits that shares lead to."""

Stored = tuple[str, tuple[int, ...], npt.DTypeLike]
"""File, shape and type of an array."""

_ROWS = 1 << 16
"""Rows that are written at a time, at most."""


class _Columns(ABC):
    """The columns of a table, for the ``count`` vertices or records that it describes.

    ``wanted`` tells whether the schema asks for any. The calls are, in this order: :meth:`survey` of each file,
    :meth:`begin`, ``write`` of all rows, :meth:`finish`. A process that goes on after a kill calls :meth:`begin`
    again. What it did before is not needed, other than the surveys and the folder.
    """

    _item: ClassVar[str]

    def __init__(self, table: VertexTable | RelationTable, count: int) -> None:
        entry, reader, self._where = table.entry, table.reader, table.name
        self._count, self._reader = count, reader
        self._features: Features | None = None
        self._times: Times | None = None
        self._label: Labels | None = None
        self._split: SplitColumn | Rates | None = None
        self._layout: Layout | None = None
        self._plan: LabelPlan | None = None
        self._kind = ""
        self._bounds: tuple[float, ...] = ()
        if reader is not None and reader.files:
            if entry.time is not None:
                self._times = Times(entry.time, reader)
            if table.features:
                self._features = Features(self._where, table.features, reader, table.vocabulary)
            if entry.label is not None:
                self._label = Labels(self._where, entry.label, reader, table.vocabulary)
            self._split = SplitColumn(entry.split, reader) if isinstance(entry.split, str) else entry.split
        if isinstance(self._split, Rates):
            self._bounds = bounds_of(self._where, self._split)
            if self._split.by == "time" and self._times is None:
                raise ParameterError(
                    f"{self._where}: split: by time needs time, the name of the column with times"
                )
        self.wanted = any(
            each is not None for each in (self._features, self._times, self._label, self._split)
        )

    def _facts(self, number: int) -> list[Fact]:
        facts = [] if self._features is None else self._features.facts(number)
        facts += [] if self._times is None else self._times.facts(number)
        return facts + ([] if self._label is None else self._label.facts())

    def _widths(self, number: int) -> dict[str, int | None]:
        widths = {} if self._features is None else self._features.widths(number)
        return widths | ({} if self._label is None else self._label.widths(number))

    def survey(self, number: int) -> dict[str, Any]:
        """Return what must be known of file ``number`` before rows are written, as JSON holds it.

        Only columns of categories, of text, and those with ``fill`` are read. Of columns of lists the first list is.
        """
        if self._reader is None:
            return {}
        found = surveyed(self._reader, number, self._facts(number))
        widths = self._widths(number)
        return found | ({"widths": widths} if widths else {})

    def begin(self, folder: Path, surveys: Sequence[Survey], anew: bool = False) -> None:
        """Create the arrays in ``folder``. Those that are there are left as they are, and so is a finished folder.

        ``anew``: in place of those that are there.
        """
        if not self.wanted:
            return
        self._prepare(surveys)
        if not (folder / DESCRIPTION).exists():
            folder.mkdir(parents=True, exist_ok=True)
            for name, shape, dtype in self._arrays().values():
                if anew:
                    (folder / name).unlink(missing_ok=True)
                create(folder / name, shape, dtype)

    def files(self, folder: Path) -> list[Path]:
        """Return the files that rows are written to, once the arrays are created."""
        return [folder / name for name, _, _ in self._arrays().values()]

    def _prepare(self, surveys: Sequence[Survey]) -> None:
        """Learn from the surveys how rows are written."""
        if self._features is not None:
            self._layout = self._features.layout(surveys, self._count)
        if self._times is not None:
            self._kind = self._times.kind(surveys)
        if self._label is not None:
            self._plan = self._label.plan(surveys)

    def _arrays(self) -> dict[str, Stored]:
        """Return file, shape and type of each array that rows are written to, by what it holds."""
        arrays: dict[str, Stored] = {}
        if self._features is not None and self._layout is not None:
            name = RAW if self._features.standardised(self._layout) else FEATURES
            arrays["features"] = (name, (self._count, self._layout.width), self._layout.dtype)
        if self._times is not None:
            arrays["times"] = (TIMES, (self._count,), np.int64)
        if self._split is not None:
            arrays["states"] = (STATES, (self._count,), np.uint8)
        if self._plan is not None:
            arrays["labels"] = (LABELS, self._plan.shape(self._count), self._plan.dtype)
        return arrays

    def _columns(self) -> list[str]:
        columns = [] if self._features is None else list(self._features.names)
        others = self._times, self._label, self._split
        return columns + [each.column for each in others if each is not None and not isinstance(each, Rates)]

    def _open(self, folder: Path) -> dict[str, Array]:
        """Map the arrays that rows are written to, by what they hold."""
        return {key: opened(folder / each[0], write=True) for key, each in self._arrays().items()}

    def _write_rows(self, folder: Path, number: int, start: int, stop: int, place: Place) -> None:
        """Write rows start..stop of file ``number`` to their places."""
        if not self.wanted:
            return
        assert self._reader is not None
        arrays = self._open(folder)
        rows = _ROWS if self._layout is None else min(_ROWS, self._layout.rows)
        for piece in pieces(self._reader, number, sorted(set(self._columns())), start, stop, rows, place):
            self._write(piece, arrays)
        for array in arrays.values():
            flush(array)

    def _write(self, piece: Piece, arrays: dict[str, Array]) -> None:
        if self._features is not None and self._layout is not None:
            self._features.write(piece, self._layout, arrays["features"])
        if self._times is not None:
            self._times.write(piece, self._kind, arrays["times"])
        if self._plan is not None:
            self._plan.write(piece, arrays["labels"])
        if isinstance(self._split, SplitColumn):
            self._split.write(piece, arrays["states"])
        elif "states" in arrays:
            arrays["states"][piece.slots] = NO_SPLIT

    def finish(self, folder: Path, surveys: Sequence[Survey]) -> dict[str, Any]:
        """Complete the arrays after all rows are written, and return what they hold."""
        if not self.wanted:
            return {}
        done = _finished(folder)
        if done is not None:
            return done
        arrays = self._open(folder)
        more = self._complete(arrays)
        for array in arrays.values():
            flush(array)
        told = self._describe(surveys, arrays) | more
        found = {} if self._layout is None else dict(self._layout.categories)
        if self._plan is not None:
            told["labels"] = self._plan.description(arrays["labels"])
            if self._plan.classes is not None:
                found[self._plan.column] = self._plan.classes
        states = arrays.get("states")
        if self._split is not None:
            states = self._split_states(folder, arrays)
            with replacing(folder / SPLIT) as new:
                sizes = write_splits(new, states)
            column = self._split.column if isinstance(self._split, SplitColumn) else self._split
            told["split"] = split_description(column, sizes)
            if not sizes["train"]:
                warn(f"{self._where}: no {self._item} is in the split train", GraphWarning)
        self._standardise(folder, arrays.get("states"), None if self._split is None else states)
        return self._close(folder, told, found, surveys)

    @abstractmethod
    def _complete(self, arrays: dict[str, Array]) -> dict[str, Any]:
        """Write what no row of the table says. Return what is known of it."""

    def _split_states(self, folder: Path, arrays: dict[str, Array]) -> Array:
        """Return the states with the splits of all items. Shares are of those that have a row, and a label."""
        if not isinstance(self._split, Rates):
            return arrays["states"]
        create(folder / SPLIT_STATES, (self._count,), np.uint8)
        states = opened(folder / SPLIT_STATES, write=True)
        for rows in blocks(states):
            states[rows] = arrays["states"][rows]

        def chosen(rows: slice) -> Mask:
            mask: Mask = arrays["states"][rows] != NO_ROW
            return mask if self._plan is None else mask & self._plan.known(arrays["labels"][rows])

        if self._split.by == "time":
            split_by_time(states, arrays["times"], chosen, self._bounds)
        else:
            split_at_random(states, chosen, self._bounds)
        return states

    def _describe(self, surveys: Sequence[Survey], arrays: dict[str, Array]) -> dict[str, Any]:
        told: dict[str, Any] = {}
        if self._features is not None and self._layout is not None:
            told["features"] = self._features.description(self._layout, surveys)
        if self._times is not None:
            told["times"] = self._times.description(self._kind, arrays["times"])
        return told

    def _standardise(self, folder: Path, rows_of: Array | None, splits: Array | None) -> None:
        """Write the features whose columns of numbers are standardised, by the mean and deviation of training items.

        Without splits, all items with a row count. ``rows_of`` has the states of the rows. None: each item has a row.
        Items without a row have the mean, if nothing else is told.
        """
        if self._features is None or self._layout is None:
            return
        columns = self._features.standardised(self._layout)
        if not columns:
            return
        blank = self._features.standardised(self._layout, filled=False)
        there = np.broadcast_to(np.True_, self._count) if rows_of is None else rows_of != NO_ROW
        chosen = there if splits is None else splits == TRAIN
        if not chosen.any():
            raise ParameterError(
                f"{self._where}: standardise: there are no rows, or none in the split train, to take it of"
            )
        raw = opened(folder / RAW)
        create(folder / FEATURES, raw.shape, raw.dtype)
        features = opened(folder / FEATURES, write=True)
        part = Rows((len(raw), len(columns)), raw.dtype, lambda start, stop: raw[start:stop][:, columns])
        made, statistics = standardised(part, chosen)
        for rows in blocks(raw):
            block = np.array(raw[rows])
            block[:, columns] = made.read(rows.start, rows.stop)
            block[np.ix_(np.flatnonzero(~there[rows]), np.array(blank, np.int64))] = 0
            features[rows] = block
        flush(features)
        every = np.stack([np.zeros(raw.shape[1]), np.ones(raw.shape[1])])
        every[:, columns] = statistics
        _save(folder / STATISTICS, np.save, every)

    def _close(
        self,
        folder: Path,
        told: dict[str, Any],
        categories: Mapping[str, Categories],
        surveys: Sequence[Survey],
    ) -> dict[str, Any]:
        """Write the categories and the description, and remove what is not needed any more."""
        if categories:
            embedded = self._embedded(surveys)
            by_column = {name: each.content | embedded.get(name, {}) for name, each in categories.items()}
            _core.write_file(
                folder / CATEGORIES, json.dumps(by_column, ensure_ascii=False, indent=1).encode()
            )
        _core.write_file(
            folder / DESCRIPTION, (json.dumps(told, ensure_ascii=False, indent=1) + "\n").encode()
        )
        return _finished(folder) or told

    def _embedded(self, surveys: Sequence[Survey]) -> dict[str, dict[str, Any]]:
        if self._features is None or self._layout is None:
            return {}
        return self._features.embedded(self._layout, surveys)


class VertexColumns(_Columns):
    """The columns of a table of vertices, for the vertices of its type."""

    _item = "vertex"

    def _arrays(self) -> dict[str, Stored]:
        return super()._arrays() | {"states": (STATES, (self._count,), np.uint8)}

    def write(
        self, folder: Path, number: int, vertices: npt.NDArray[np.uint32], start: int, stop: int
    ) -> None:
        """Write rows start..stop of file ``number``. ``vertices[i]`` is the vertex of row start + i within its type.

        2**32 - 1 is a row that is left out.
        """
        self._write_rows(folder, number, start, stop, at_vertices(vertices))

    def _complete(self, arrays: dict[str, Array]) -> dict[str, Any]:
        """Write what vertices without a row have. Return their number."""
        absent = 0
        for rows in blocks(arrays["states"]):
            places = np.flatnonzero(arrays["states"][rows] == NO_ROW) + rows.start
            absent += len(places)
            if not len(places):
                continue
            if self._features is not None and self._layout is not None:
                fill = self._features.absent(self._layout)
                if fill.any():
                    arrays["features"][places] = fill
            if self._times is not None:
                arrays["times"][places] = UNKNOWN
            if self._plan is not None and self._plan.none != 0:
                arrays["labels"][places] = self._plan.none
        if absent:
            log.info("%s: %d vertices have no row in its table, and no label or time", self._where, absent)
        return {"without_row": absent}


class RelationColumns(_Columns):
    """The columns of a table of records, for the records of its relation.

    Weights are written as they are in the table, as float64.
    """

    _item = "record"

    def __init__(self, table: RelationTable, m: int) -> None:
        super().__init__(table, m)
        self._weight = table.entry.weight if table.reader.files else None
        for file in table.reader.files:
            if self._weight is None:
                break
            dtype = dtype_in(file, self._weight)
            if not (is_number(dtype) or is_text(dtype)):
                raise ParameterError(f"{file.path}: column {self._weight!r} is {dtype}. A weight is a number")
        self.wanted |= self._weight is not None

    def _columns(self) -> list[str]:
        return super()._columns() + ([] if self._weight is None else [self._weight])

    def _arrays(self) -> dict[str, Stored]:
        weights = {} if self._weight is None else {"weights": (WEIGHTS, (self._count,), np.float64)}
        return super()._arrays() | weights

    def write(
        self, folder: Path, number: int, records: int, kept: Mask | None, start: int, stop: int
    ) -> None:
        """Write rows start..stop of file ``number``. The first that is kept is record ``records`` of the relation.

        ``kept`` tells the rows that become records. None: all.
        """
        self._write_rows(folder, number, start, stop, at_records(records, kept))

    def _write(self, piece: Piece, arrays: dict[str, Array]) -> None:
        super()._write(piece, arrays)
        if self._weight is not None:
            arrays["weights"][piece.slots] = self._weights(piece, self._weight)

    def _weights(self, piece: Piece, column: str) -> Array:
        weights, missing = scalars(piece, column, np.dtype(np.float64))
        piece.refuse(missing, column, lambda place: "the weight is missing. Write a number of at least 0")
        wrong = ~(np.isfinite(weights) & (weights >= 0))
        piece.refuse(
            wrong, column, lambda place: f"the weight {weights[place]} is not a finite number of at least 0"
        )
        return weights

    def _complete(self, arrays: dict[str, Array]) -> dict[str, Any]:
        """Return where weights come from. Each record has a row."""
        return {} if self._weight is None else {"weights": {"column": self._weight}}


def _finished(folder: Path) -> dict[str, Any] | None:
    """Return what the arrays hold if they are complete. Remove what was needed to complete them."""
    if not (folder / DESCRIPTION).exists():
        return None
    told = json_object(folder / DESCRIPTION, remedy=RESTART)
    for name in (RAW, STATES, SPLIT_STATES):
        (folder / name).unlink(missing_ok=True)
    return told


def _save(target: Path, save: Any, *arrays: Any, **named: Any) -> None:
    with replacing(target) as new, new.open("wb") as file:
        save(file, *arrays, **named)
