"""The files of tables: what identifies each, what it holds, and errors that name it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ....core.frames import pl
from ....core.parameters import one_line, shown
from ....errors import FastpartError, GraphFormatError
from ..schema import Format
from . import snapshots
from .formats import Source, source_of
from .paths import Found, partitions_of

LARGEST_GROUP = 1 << 22
"""Mean rows of a row group beyond which a file is read as a whole: each slice of a group would decode it anew."""


@dataclass(frozen=True)
class TableFile:
    """One file of a table: what identifies it, and what it holds."""

    path: str
    """A local path or a URL, as messages show it."""
    bytes: int
    mark: str
    """The time of its last change, its ETag, or the version of a snapshot."""
    rows: int
    dtypes: dict[str, Any]
    """The Polars type of each column."""
    source: Source | None = field(default=None, repr=False, compare=False)
    """How its rows are read. None: it is a local file, whose suffix says it."""


def open_file(
    found: Found, format: Format | None, tmp_dir: Path | None, memory_limit: int | None
) -> TableFile:
    """Read what a file says of its columns and rows. Text is checked by a pass over it, and counted by another."""
    if found.table is None:
        source = source_of(found, format, tmp_dir, memory_limit)
    else:
        source = snapshots.source_of(found)
        mark, size = snapshots.mark_of(found)
        found = replace(found, mark=mark, bytes=size)
    with reading(found.path, source):
        if wrong := source.check():
            raise GraphFormatError(f"{shown(found.path)}: not {source.what}: {wrong}")
        frame = source.scan()
        dtypes = dict(frame.collect_schema())
        rows = int(frame.select(pl.len()).collect().item())
    if source.row_groups is not None and rows > LARGEST_GROUP * (source.row_groups.groups or rows):
        source = replace(source, divisible=False)
    if source.text:
        _require_names(found.path, list(dtypes))
    told = {name: value for name, value in partitions_of(found.path).items() if name not in dtypes}
    if told:
        values = {name: _partition_value(value) for name, value in told.items()}
        source = replace(source, partitions=values)
        dtypes |= {name: _partition_type(value) for name, value in values.items()}
    return TableFile(found.path, found.bytes, found.mark, rows, dtypes, source)


def _require_names(path: str, names: list[str]) -> None:
    """Refuse a header with a name that occurs twice, of which Polars renames the second."""
    for name in names:
        twice = re.match(r"(.*)_duplicated_\d+$", name)
        if twice and twice[1] in names:
            raise GraphFormatError(f"{shown(path)}: two columns are called {twice[1]!r}. Rename one")


def with_partitions(source: Source) -> pl.LazyFrame:
    """Return the rows of a file with the columns that its path tells."""
    frame = source.scan()
    if not source.partitions:
        return frame
    return frame.with_columns(
        pl.lit(value, dtype=_partition_type(value)).alias(column)
        for column, value in source.partitions.items()
    )


def _partition_value(text: str | None) -> int | str | None:
    whole = text is not None and text.lstrip("-").isdecimal() and text.isascii() and len(text) < 19
    return int(text) if whole and text is not None else text


def _partition_type(value: int | str | None) -> Any:
    return pl.Int64() if isinstance(value, int) else pl.String()


@contextmanager
def reading(path: str, source: Source) -> Iterator[None]:
    """Turn what Polars raises into errors that name the file and say what is wrong with it."""
    try:
        yield
    except (FastpartError, MemoryError, GeneratorExit):
        raise
    except FileNotFoundError:
        raise FileNotFoundError(2, "no such file", path) from None
    except OSError as error:
        if error.errno is not None:
            raise OSError(error.errno, error.strerror, path) from None
        if "object-store" in str(error):
            raise type(error)(f"{shown(path)}: {_reason(error)}") from None
        raise _damaged(path, source, error) from None
    except (Exception, pl.exceptions.PanicException) as error:
        raise _damaged(path, source, error) from None


def _damaged(path: str, source: Source, error: BaseException) -> Exception:
    return GraphFormatError(f"{shown(path)}: not {source.what}: {source.fault() or _reason(error)}")


def _reason(error: BaseException) -> str:
    return one_line(str(error).strip().split("\n", 1)[0], 200) or "it is damaged"


def frame_file(name: str, frame: Any) -> TableFile:
    """Return a data frame as a file. Its mark is a hash of its rows, or of the query of a lazy frame."""
    path = f"{name} (data frame)"
    if hasattr(frame, "collect_batches"):
        source = Source("a lazy frame that can be collected", lambda: frame, divisible=False, watched=False)
        with reading(path, source):
            dtypes = dict(frame.collect_schema())
            rows = int(frame.select(pl.len()).collect(engine="streaming").item())
        return TableFile(path, 0, _digest(frame.explain()), rows, dtypes, source)
    held = frame if isinstance(frame, pl.DataFrame) else pl.DataFrame(frame)
    source = Source("a data frame", held.lazy, watched=False)
    size = int(held.estimated_size())
    return TableFile(path, size, _content(held), len(held), dict(held.schema), source)


def _content(frame: pl.DataFrame) -> str:
    """Return a hash of the columns and rows of a frame, in their order."""
    digest = [str(frame.schema)]
    for start in range(0, len(frame), 1 << 20):
        hashes = frame.slice(start, 1 << 20).hash_rows(seed=0)
        digest.append(blake2b(hashes.to_numpy().tobytes(), digest_size=16).hexdigest())
    return _digest("\n".join(digest))


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()
