"""Text tables of other systems, and names of theirs as those of folders."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from ....core.frames import pl
from ....core.parameters import regular
from ..schema import Csv
from ..tables.formats import Source, header, scan
from ..tables.tablefiles import reading

Triple = tuple[str, str, str]
"""Type of the sources, relation, type of the targets."""


def name_of(name: object) -> str:
    """Return a name of another system as one that a folder may have."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", str(name)).lstrip(".-")[:64]


def names_of(triples: Iterable[Triple]) -> dict[Triple, str]:
    """Return a name for each triple: that of the relation, and of its types if several triples have the relation."""
    triples = list(triples)
    times = Counter(relation for _, relation, _ in triples)
    return {each: name_of(each[1] if times[each[1]] == 1 else "-".join(each)) for each in triples}


def scanned(file: Path, separator: str = ",", names: bool = True) -> pl.LazyFrame:
    """Return a text table, unread. Without names its columns are ``column_1`` and so on."""
    with _reading(file):
        return scan(str(regular(file)), Csv(header=names), separator)


def collected(file: Path, frame: pl.LazyFrame) -> pl.DataFrame:
    """Return what is computed from a text table, whose faults name it."""
    with _reading(file):
        return frame.collect(engine="streaming")


def header_of(file: Path, separator: str = ",") -> list[str]:
    """Return the names in the first line of a text table."""
    with _reading(file):
        return header(str(regular(file)), Csv(), separator)


def _reading(file: Path) -> AbstractContextManager[None]:
    return reading(str(file), Source("a text table in UTF-8", pl.LazyFrame))


def rows_of(file: Path, names: bool) -> pl.DataFrame:
    """Return all rows of a text table."""
    return collected(file, scanned(file, names=names))
