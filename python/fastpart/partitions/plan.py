"""A plan of epochs, in memory and in its folder."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from .. import _core
from ..core import parameters
from ..core.calls import called_well
from ..core.frames import pl
from ..core.outputs import replaceable
from ..core.parameters import StrPath, shown, sized
from ..core.parsing import Count, conform, is_intact, json_object, with_checksum
from ..core.protocols import tables
from ..errors import GraphFormatError, ParameterError, arg

MARKER = "plan.json"
"""What the folder of a plan has. It lists the other files."""

_SCHEMA = 2

Key = dict[str, Any]
"""What decides the batches, as JSON has it."""

_SHOWN = (
    "input",
    "fanouts",
    "batch_size",
    "seed",
    "sampling",
    "merged",
    "temporal",
    "shuffle",
    "drop_last",
    "workers",
)
"""Entries that a user has passed."""

_OF = {
    "partition": "another partition",
    "rows": "other features or other parts",
    "vertices": "other vertices",
    "weights": "other weights",
    "times": "other times of the seeds",
    "types": "other types",
}
"""What it means if another entry differs."""


class _Worker(msgspec.Struct, kw_only=True):
    worker: Count
    type: str | msgspec.UnsetType = msgspec.UNSET
    batches: Count
    rows: Count
    distinct_rows: Count
    cached_rows: Count
    read_rows: Count


class _Way(msgspec.Struct):
    way: str
    bytes: Count | None
    seconds: float | None
    once_bytes: Count
    once_seconds: float | None


class _Key(msgspec.Struct):
    workers: Count


class _Content(msgspec.Struct):
    """The fields of ``plan.json``. What else decides the batches is compared where they are made."""

    epochs: Count
    row_bytes: Count | dict[str, Count]
    key: _Key
    workers: Annotated[list[_Worker], msgspec.Meta(min_length=1)]
    ways: list[_Way]


@dataclass(frozen=True)
class ReadCost:
    """A way to read the features of an epoch.

    Attributes
    ----------
    way : str
        How features are read.
    bytes : int or None
        Bytes that an epoch reads from the disk. None: the system decides.
    seconds : float or None
        How long the disk takes for them. None: it was not measured.
    once_bytes : int
        Bytes that are read and written before, once.
    once_seconds : float or None
        How long these take.
    """

    way: str
    bytes: int | None
    seconds: float | None
    once_bytes: int = 0
    once_seconds: float | None = 0.0


@dataclass(frozen=True, eq=False)
class Plan:
    """The rows that batches of the next epochs need, from :meth:`fastpart.VertexPartition.plan`.

    Attributes
    ----------
    epochs : int
        Epochs that were planned, from 0 on.
    workers : polars.DataFrame
        One row per worker: ``worker``, ``batches`` of all epochs, and of features ``rows``, the distinct ones of each
        batch, ``distinct_rows`` of all batches, ``cached_rows``, which stay in memory, and ``read_rows``, those of
        ``rows`` that do not. In a graph with types one row per worker and ``type`` that has features.
    ways : polars.DataFrame
        One row per way to read features: ``way``, and per epoch of all workers ``bytes`` from the disk and ``seconds``
        that the disk takes for them. ``once_bytes`` and ``once_seconds`` are those of packing all epochs. Bytes are
        missing where the system decides, seconds where the disk could not be measured.
    row_bytes : int, or dict of str to int
        Bytes of the features of a vertex, as they are stored. In a graph with types they differ by type.
    folder : pathlib.Path or None
        Where the packed rows are.
    key : dict
        What decides the batches.
    """

    epochs: int
    workers: pl.DataFrame
    ways: pl.DataFrame
    row_bytes: int | dict[str, int]
    key: Key
    folder: Path | None = None

    @classmethod
    @called_well
    def read(cls, folder: StrPath) -> Plan:
        """Open the folder of a plan.

        Parameters
        ----------
        folder : path
            The folder that :meth:`fastpart.VertexPartition.plan` wrote.

        Returns
        -------
        Plan

        Raises
        ------
        GraphFormatError
            It is none, or it is damaged.
        """
        path = parameters.path("plan", folder)
        marker = path / MARKER
        if not marker.is_file():
            raise GraphFormatError(
                f"{shown(path)} is no plan: it has no {MARKER}. Make one with `fastpart plan`"
            )
        text = marker.read_bytes()
        content = json_object(marker, text, None, "Make the plan again", ("schema", _SCHEMA))
        if (schema := content.get("schema")) != _SCHEMA:
            raise GraphFormatError(
                f"{shown(marker)}: schema {schema} is not {_SCHEMA}, that of this version. Make the plan again"
            )
        if not is_intact(text):
            raise GraphFormatError(f"{shown(marker)}: not as it was written. Make the plan again")
        try:
            conform(content, _Content)
            sizes, types = content["row_bytes"], {each.get("type") for each in content["workers"]}
            if types != (set(sizes) if isinstance(sizes, dict) else {None}):
                raise ValueError("row_bytes: expected a number for each type of workers")
            return cls(
                content["epochs"],
                pl.DataFrame(content["workers"]),
                pl.DataFrame(content["ways"]),
                content["row_bytes"],
                content["key"],
                path,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise GraphFormatError(f"{shown(marker)}: {error}. Make the plan again") from None

    def __fspath__(self) -> str:
        if self.folder is None:
            raise ParameterError(f"plan: its rows are not packed. Make it with {arg('pack')}, a folder")
        return str(self.folder)

    @property
    def _most_cached(self) -> int:
        """Bytes of the rows that stay in the memory of a worker, of the one that has most."""
        totals: Counter[int] = Counter()
        for row in self.workers.iter_rows(named=True):
            size = self.row_bytes if isinstance(self.row_bytes, int) else self.row_bytes[row["type"]]
            totals[row["worker"]] += row["cached_rows"] * size
        return max(totals.values())

    @property
    def _most_rows(self) -> int:
        """Rows of all batches of a worker, of the one that has most."""
        rows = self.workers.group_by("worker").agg(pl.col("rows").sum())["rows"]
        return int(rows.max())  # type: ignore[arg-type]  # there are workers

    def _marker(self, files: Sequence[str]) -> bytes:
        """Return the content of the marker of a folder with such files."""
        told = {
            "schema": _SCHEMA,
            "fastpart": _core.__version__,
            "epochs": self.epochs,
            "key": self.key,
            "row_bytes": self.row_bytes,
            "workers": self.workers.to_dicts(),
            "ways": self.ways.to_dicts(),
            "files": list(files),
        }
        return with_checksum((json.dumps(told, indent=1) + "\n").encode())

    def _refuse_other(self, wanted: Mapping[str, Any]) -> None:
        """Raise an error that names what differs unless the plan is for batches with this key."""
        if differs := difference(self.key, wanted):
            where = shown(os.fspath(self))
            raise ParameterError(
                f"plan: {where} was made for {differs}. Pass what it was made for, or make another plan"
            )

    def __repr__(self) -> str:
        rows, read = int(self.workers["rows"].sum()), int(self.workers["read_rows"].sum())
        where = "" if self.folder is None else f", packed in {shown(self.folder)}"
        return f"<Plan: {self.epochs} epochs, {rows:,} rows, {read:,} from the disk{where}>"

    def __str__(self) -> str:
        with pl.Config(tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True, tbl_rows=40):
            text = f"{self!r}\n{self.workers}"
        found = (ReadCost(*values) for values in self.ways.iter_rows())
        return "\n".join([text, "", *table(found), f"plan: packed rows of {self.epochs} epochs, built once"])

    def _repr_html_(self) -> str:
        return tables(f"Plan of {self.epochs} epochs", self.workers, self.ways)


def replaced_files(target: Path) -> list[str]:
    """Return the files of a plan that a new one replaces. Refuse a target that holds anything else."""
    return replaceable(target, MARKER, "", "a plan")


def difference(planned: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """Return what differs between the keys of a plan and of batches, in words. Nothing does: no text."""
    odd = [name for name in wanted if planned.get(name) != wanted[name]]
    others = [_OF[name] for name in odd if name in _OF]
    passed = [f"{name}={planned.get(name)!r}, not {wanted[name]!r}" for name in odd if name in _SHOWN]
    return "; ".join([*others, *passed])


def table(found: Iterable[ReadCost]) -> list[str]:
    """Return a line for each way, and one above them."""
    row = "{:16}{:>14}{:>9}{:>14}{:>9}".format
    lines, bounded = [row("per epoch", "from disk", "seconds", "once", "seconds")], True
    for way in found:
        bounded &= way.bytes is not None
        size = "not bounded" if way.bytes is None else sized(way.bytes)
        once = (sized(way.once_bytes), _seconds(way.once_seconds)) if way.once_bytes else ("", "")
        lines.append(row(way.way, size, _seconds(way.seconds), *once).rstrip())
    if not bounded:
        lines.append(
            "maps: memory does not hold the files, and the system reads up to all of them for each batch"
        )
    return lines


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.3g}"
