"""Columns of features that hold codes of categories, for models that learn a row for each category.

The code of a category is its place among the values of its column. Behind these come the code of all values that an
earlier vocabulary lacks, and the code of missing ones. So numbers of vertices and of categories may differ between
graphs: the values tell which category is meant.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from ..core.parameters import shown
from ..core.parsing import Count, checked_object, json_object
from ..core.vertex_tables import InOrder
from ..errors import GraphFormatError
from .graph_directory import ANEW, CATEGORIES, FEATURES, refuse_twice

EMBEDDING = "embedding"
"""The form of such a column in a schema."""

MOST_EMBEDDED = 2**17
"""The most values of a column whose categories have learned rows. Each is in the memory of every worker."""

_LEAST_DIM, _MOST_DIM = 2, 100


def default_dim(values: int) -> int:
    """Return the width of the learned rows of a column: 1.6 times its number of values to the power of 0.56.

    That is the rule of fastai, with the bounds of AutoGluon.
    """
    return max(_LEAST_DIM, min(_MOST_DIM, round(1.6 * math.pow(values, 0.56))))


class EmbeddedColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column of codes.

    Attributes
    ----------
    place : int
        Its place among the columns of the features.
    dim : int
        Width of the learned row of a category.
    values : list
        Text or whole numbers, in the order of their codes.
    counts : list of int
        How many rows of the table have each value.
    unknown, missing : int
        How many have one that an earlier vocabulary lacks, and none.
    """

    place: Count
    dim: Annotated[int, msgspec.Meta(ge=_LEAST_DIM)]
    values: list[str | int]
    counts: list[Count]
    unknown: Count = 0
    missing: Count = 0

    @property
    def unknown_code(self) -> int:
        """The code of values that are not known."""
        return len(self.values)

    @property
    def missing_code(self) -> int:
        """The code of a missing value."""
        return len(self.values) + 1

    @property
    def rows(self) -> int:
        """Number of codes."""
        return len(self.values) + 2


Embedded = Mapping[str, EmbeddedColumn]
"""The columns of codes by name."""


def embedded_beside(rows: Any) -> dict[str, EmbeddedColumn]:
    """Return the columns of codes in a file of features: those that ``categories.json`` beside it names."""
    rows = rows.rows if isinstance(rows, InOrder) else rows
    rows = rows.filename if isinstance(rows, np.memmap) else rows
    if not isinstance(rows, str | bytes | os.PathLike):
        return {}
    source = Path(os.fsdecode(rows))
    file = source.with_name(CATEGORIES)
    if source.name != FEATURES or not file.is_file():
        return {}
    content = json_object(file, None, None, ANEW)
    content = {column: each for column, each in content.items() if _is_embedded(each)}
    checked_object(file, content, dict.fromkeys(content, EmbeddedColumn), ANEW)
    return embedded_in(content, shown(file))


def write_beside(rows: Path, content: Mapping[str, Any]) -> None:
    """Write the file that names the columns of codes in a file of features, given what a manifest describes."""
    described = {column: {**each, "as": EMBEDDING} for column, each in content.items()}
    rows.with_name(CATEGORIES).write_text(json.dumps(described))


def _is_embedded(described: Any) -> bool:
    return isinstance(described, dict) and described.get("as") == EMBEDDING


def embedded_in(content: Mapping[str, Any] | None, where: str) -> dict[str, EmbeddedColumn]:
    """Return the columns of codes that a file or a manifest describes."""
    found = {column: msgspec.convert(each, EmbeddedColumn) for column, each in (content or {}).items()}
    places = [each.place for each in found.values()]
    for column, each in found.items():
        refuse_twice(where, column, each.values)
        if len(each.counts) != len(each.values):
            raise GraphFormatError(f"{where}: {column!r}: there are not as many counts as values")
    if len(set(places)) < len(places):
        raise GraphFormatError(f"{where}: two columns of codes have one place")
    return found
