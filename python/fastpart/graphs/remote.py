"""Tables in an object store, named by a URL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.parameters import shown
from ..errors import FastpartError, GraphFormatError
from .convert.inputs import Files
from .ends import Pair, ends_of
from .tables import kinds_of


def is_url(source: Any) -> bool:
    """Return whether a source is a URL."""
    return isinstance(source, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", source) is not None


@dataclass(frozen=True)
class Remote:
    """The tables that a URL names."""

    url: str
    reader: Any
    path: Path | None = None

    @classmethod
    def of(cls, url: str) -> Remote:
        """Find the tables and read their footers."""
        from .ingest.tables import open_table

        try:
            return cls(url, open_table("graph", url))
        except (OSError, FastpartError) as error:  # they begin with an entry of a schema
            if isinstance(error, OSError) and error.errno is not None:
                text = str(error.strerror).replace("graph.files: ", "", 1)
                raise type(error)(error.errno, text, *([error.filename] if error.filename else [])) from None
            raise type(error)(str(error).replace("graph.files: ", "", 1)) from None

    @property
    def key(self) -> list[list[Any]]:
        """Path, size and version of each file."""
        return [[file.path, file.bytes, file.mark] for file in self.reader.files]

    def __str__(self) -> str:
        return self.url

    def table_of_strings(self, columns: Pair | None, relabel: bool) -> dict[str, Any] | None:
        """Return the relation of a schema, if the ids are strings or are to be relabelled. Else None."""
        ends, strings = self._ends(columns, None)
        if not (strings or relabel):
            return None
        return {"files": self.url} | {
            side: {"vertex": end} for side, end in zip(("source", "target"), ends, strict=True)
        }

    def copied(self, into: Path, columns: Pair | None, weights: str | None) -> Files:
        """Write the columns of the ids, and that of the weights, to local files."""
        ends, _ = self._ends(columns, weights)
        wanted = [*ends, *([] if weights is None else [weights])]
        copies: dict[Path, str] = {}
        for number, file in enumerate(self.reader.files):
            if lacking := [name for name in wanted if name not in file.dtypes]:
                raise GraphFormatError(
                    f"{shown(file.path)}: it has no column {lacking[0]!r}, only {', '.join(file.dtypes)}"
                )
            for batch in self.reader.batches(number, wanted):
                copy = into / f"{len(copies):06}.parquet"
                batch.write_parquet(copy)
                copies[copy] = file.path
        return Files(tuple(copies), None, copies)

    def _ends(self, columns: Pair | None, weights: str | None) -> tuple[tuple[str, str], bool]:
        if not self.reader.files:
            raise GraphFormatError(f"{self.url}: no table")
        kinds = kinds_of(self.reader.files[0].dtypes)
        u, v = (kinds[end] for end in ends_of(self.url, kinds, columns, weights, GraphFormatError))
        return (u[0], v[0]), "string" in (u[1], v[1])
