"""The ids that vertices had in tables: a Parquet file for each type, in the order of its vertices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import EdgeFileChangedError, GraphFormatError, ParameterError
from .frames import before_polars_threads, pl
from .parameters import regular, shown
from .parsing import damaged
from .system import state_of


@dataclass(frozen=True)
class IdTable:
    """The ids of the vertices of one type.

    Attributes
    ----------
    name : str
        The type.
    first, n : int
        Its first vertex, and how many there are.
    file : pathlib.Path
        Parquet with a column ``id``: row i is that of vertex ``first + i``.
    state : tuple
        Says whether another file lies there now.
    """

    name: str
    first: int
    n: int
    file: Path
    state: tuple[int | str, ...]

    @classmethod
    def of(cls, name: str, first: int, n: int, file: Path) -> IdTable:
        """Return the table of a file that is there."""
        return cls(name, first, n, file, tuple(state_of(file)))

    def scanned(self) -> pl.LazyFrame:
        """Return the columns ``id`` and ``vertex``, which counts within the type."""
        self.refuse_changed()
        before_polars_threads(f"ids: {shown(self.file)}")
        with damaged(self.file, "not a Parquet file of ids"):
            scanned = pl.scan_parquet(self.file).select("id")
            rows = scanned.select(pl.len()).collect().item()
            if rows != self.n:
                raise GraphFormatError(
                    f"{shown(self.file)}: {rows:,} ids for {self.n:,} vertices of {self.name!r}. Write the "
                    "directory anew"
                )
            return scanned.with_row_index("vertex")

    def refuse_changed(self) -> None:
        """Refuse a file that took the place of the one that was there when the graph was opened."""
        if not regular(self.file).exists() or tuple(state_of(self.file)) != self.state:
            raise EdgeFileChangedError(
                f"{shown(self.file)}: the ids are not those of the graph that was opened: its directory was replaced. "
                "Open the graph again. A partition directory keeps the ids of its graph"
            )

    @cached_property
    def dtype(self) -> Any:
        """The Polars type of the ids."""
        with damaged(self.file, "not a Parquet file of ids"):
            return pl.scan_parquet(regular(self.file)).collect_schema()["id"]

    @cached_property
    def are_numbers(self) -> bool:
        """Whether each id is the number of its vertex within the type."""
        if not self.dtype.is_integer():
            return False
        with damaged(self.file, "not a Parquet file of ids"):
            ids = self.scanned().select((pl.col("id") == pl.col("vertex")).all()).collect()
        return bool(ids.item())

    def numbers_of(self, column: pl.Series) -> pl.Series:
        """Return the vertex of each id, which counts within the type. Null where no vertex has the id."""
        try:
            given = _as(column, self.dtype)
        except pl.exceptions.PolarsError:
            return pl.Series(column.name, [None] * len(column), pl.UInt32)
        known = self.scanned()
        with damaged(self.file, "not a Parquet file of ids"):
            wanted = pl.LazyFrame({"id": given, "row": np.arange(len(given))})
            found = wanted.join(known, on="id", how="left").sort("row").collect()
        if len(found) != len(column):
            raise GraphFormatError(f"{shown(self.file)}: an id is there twice. Write the directory anew")
        return found["vertex"]

    def id_of(self, vertex: int) -> Any:
        """Return the id of a vertex, which counts within the type."""
        with damaged(self.file, "not a Parquet file of ids"):
            return self.scanned().slice(vertex, 1).select("id").collect().item()


def _as(column: pl.Series, dtype: Any) -> pl.Series:
    """Return values as ids of a type. Null where they cannot be."""
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype.is_float() and not dtype.is_float():
        whole = column.cast(pl.Int64, strict=False)
        column = pl.select(pl.when(whole.cast(pl.Float64) == column).then(whole)).to_series()
    return column.cast(dtype, strict=False)


Ids = Sequence[IdTable]
"""The tables of all types, in the order of their vertices. Empty where vertices have no ids."""


def of_name(ids: Ids, name: str) -> Ids:
    """Return the table of one type, if there is one."""
    return [each for each in ids if each.name == name]


def carried(
    old: Ids, new: Ids, values: npt.NDArray[np.uint32], into: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint32]:
    """Give the vertices of one graph the values that the vertices with their ids have in another graph.

    Parameters
    ----------
    old, new : sequence of IdTable
        The ids of both graphs. Those of a type are compared with the ids of that type. Two single types are compared
        whatever their names are, since the only type of a table of edges has no name.
    values : array
        One per vertex of the old graph.
    into : array
        One per vertex of the new graph, written where the id is known.

    Raises
    ------
    ParameterError
        No type is in both, ids are numbers in one graph and text in the other, or no vertex is in both.
    """
    by_name = {each.name: each for each in old}
    pairs = [(by_name[each.name], each) for each in new if each.name in by_name]
    if len(old) == len(new) == 1:
        pairs = [(old[0], new[0])]
    if not pairs:
        raise ParameterError(
            f"graph: it has the types {', '.join(each.name for each in new)}, the graph of the partition "
            f"{', '.join(each.name for each in old)}. Vertices are matched by type and id. Partition the new graph "
            "from scratch"
        )
    found = 0
    for before, now in pairs:
        rows = _common(before, now)
        into[now.first + rows["now"].to_numpy().astype(np.int64)] = values[
            before.first + rows["vertex"].to_numpy().astype(np.int64)
        ]
        found += len(rows)
    if not found and len(values) and len(into):
        raise ParameterError(
            "graph: none of its ids is an id of the partition. Pass a newer version of the graph that was partitioned, "
            "or partition this one from scratch"
        )
    return into


def _common(before: IdTable, now: IdTable) -> pl.DataFrame:
    """Return the vertices of both graphs that have the same id: the columns ``vertex`` and ``now``."""
    if before.dtype != now.dtype and not (before.dtype.is_integer() and now.dtype.is_integer()):
        raise ParameterError(
            f"graph: the ids of {now.name!r} are {now.dtype}, those of the partition {before.dtype}. Read the ids of "
            "both graphs as one type"
        )
    after = now.scanned().rename({"vertex": "now"})
    known = before.scanned().with_columns(pl.col("id").cast(now.dtype, strict=False))
    with damaged(now.file, "not a Parquet file of ids"):
        rows = known.join(after, on="id", how="inner").select("vertex", "now").collect()
    if rows["now"].n_unique() != len(rows):
        raise GraphFormatError(f"{shown(before.file)}: an id is there twice. Write the directory anew")
    return rows
