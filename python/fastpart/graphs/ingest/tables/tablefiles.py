"""The files of tables: what identifies each, what it holds, and errors that name it.

Delta and Iceberg tables are folders whose log says which files belong to a version.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ....core.folders import below
from ....core.frames import pl
from ....core.parameters import one_line, regular, shown
from ....core.system import state_of
from ....core.vertex_tables import table_of
from ....errors import FastpartError, GraphFormatError
from ..schema import Format
from .formats import Source, source_of
from .listing import URL, Found, find_in_store, needed, partitions_of

_SETTINGS = {
    "AWS_ENDPOINT_URL": "s3.endpoint",
    "AWS_REGION": "s3.region",
    "AWS_ACCESS_KEY_ID": "s3.access-key-id",
    "AWS_SECRET_ACCESS_KEY": "s3.secret-access-key",
    "AWS_SESSION_TOKEN": "s3.session-token",
}


def source_of_snapshot(found: Found) -> Source:
    """Return how the newest version of a table is read, and note the version."""
    if not URL.match(found.path):
        for name in below(Path(found.path)):
            regular(Path(found.path, name))
    return _delta(found.path) if found.table == "delta" else _iceberg(found.path)


def mark_of(found: Found) -> tuple[str, int]:
    """Return the newest version of a table, and the bytes of its files."""
    if found.table == "delta":
        table = _delta_table(found.path)
        actions = pl.DataFrame(table.get_add_actions(flatten=True))
        return f"version {table.version()}", int(actions["size_bytes"].sum() or 0)
    table = _iceberg_table(found.path)
    snapshot = table.current_snapshot()
    if snapshot is None:
        return "no snapshot", 0
    size = (snapshot.summary or {}).get("total-files-size") if snapshot.summary else None
    return f"snapshot {snapshot.snapshot_id}", int(size or 0)


def _delta_table(path: str) -> Any:
    module = needed("deltalake", "delta", f"{shown(path)}: a Delta table")
    try:
        return module.DeltaTable(path)
    except MemoryError:
        raise
    except Exception as error:  # of deltalake, which names no base of its own
        raise GraphFormatError(f"{shown(path)}: not a Delta table ({_reason(error)})") from None


def _delta(path: str) -> Source:
    version = _delta_table(path).version()
    return Source(
        "a Delta table", lambda: pl.scan_delta(path, version=version), divisible=False, watched=False
    )


def _iceberg_table(path: str) -> Any:
    module = needed("pyiceberg.table", "iceberg", f"{shown(path)}: an Iceberg table")
    try:
        return module.StaticTable.from_metadata(_metadata(path), _properties())
    except OSError as error:
        raise OSError(f"{shown(path)}: cannot read the Iceberg table ({_reason(error)})") from None
    except (ValueError, KeyError, TypeError) as error:
        raise GraphFormatError(f"{shown(path)}: not an Iceberg table ({_reason(error)})") from None


def _properties() -> dict[str, str]:
    """Return the settings of an object store in the environment by the names of pyiceberg."""
    return {name: os.environ[variable] for variable, name in _SETTINGS.items() if variable in os.environ}


def _metadata(folder: str) -> str:
    """Return the newest description in the folder of a table. Their names begin with a number, as 00003-, or v3."""
    if URL.match(folder):
        files = [each.path for each in find_in_store("metadata", f"{folder}/metadata/*.metadata.json")]
    else:
        files = [str(file) for file in Path(folder, "metadata").glob("*.metadata.json")]
    return max(files, key=lambda file: (_number(os.path.basename(file)), file))


def _number(name: str) -> int:
    digits = re.search(r"\d+", name)
    return int(digits[0]) if digits else 0


def _iceberg(path: str) -> Source:
    table = _iceberg_table(path)
    if find_spec("polars_iceberg") is None:  # without this setting, Polars warns that it is not installed
        os.environ.setdefault("POLARS_ICEBERG_PLANNER", "pyiceberg")
    snapshot = table.current_snapshot()
    number = None if snapshot is None else snapshot.snapshot_id
    return Source(
        "an Iceberg table", lambda: pl.scan_iceberg(table, snapshot_id=number), divisible=False, watched=False
    )


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
        source = source_of_snapshot(found)
        mark, size = mark_of(found)
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


class ComputedTable:
    """A table that is computed from files while these are read, one row of it for a row of the first of them.

    ``first_line``: where row 0 is. ``rows`` is a column with the numbers of the rows there. None: they are the same.
    ``fault`` says why it cannot be read.
    """

    def __init__(
        self,
        frame: pl.LazyFrame,
        files: Sequence[Path],
        *,
        first_line: int,
        rows: str | None = None,
        fault: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.frame, self.files, self.rows, self.first_line, self.fault = frame, files, rows, first_line, fault

    def file(self) -> TableFile:
        """Return the table as a file. Its mark is that of all files, and of how they are read."""

        def lines(rows: Sequence[int]) -> list[int]:
            if self.rows is not None:
                numbers = self.frame.select(self.rows).collect(engine="streaming")[self.rows]
                rows = numbers.gather(list(rows)).to_list()
            return [row + self.first_line for row in rows]

        path = str(self.files[0])
        source = Source(
            "a table that fits the files beside it",
            lambda: self.frame,
            self.fault,
            lines=lines,
            text=True,
            divisible=False,
            watched=False,
        )
        with reading(path, source):
            dtypes = dict(self.frame.collect_schema())
            rows = int(self.frame.select(pl.len()).collect(engine="streaming").item())
        states = [" ".join(map(str, state_of(file, changes=True))) for file in self.files if file.is_file()]
        size = sum(file.stat().st_size for file in self.files if file.is_file())
        return TableFile(
            path, size, _digest("\n".join([*states, self.frame.explain()])), rows, dtypes, source
        )


def frame_file(name: str, frame: Any) -> TableFile:
    """Return a data frame as a file. Its mark is a hash of its rows, or of the query of a lazy frame."""
    path = f"{name} (data frame)"
    if hasattr(frame, "collect_batches"):
        source = Source("a lazy frame that can be collected", lambda: frame, divisible=False, watched=False)
        with reading(path, source):
            dtypes = dict(frame.collect_schema())
            rows = int(frame.select(pl.len()).collect(engine="streaming").item())
        return TableFile(path, 0, _digest(frame.explain()), rows, dtypes, source)
    table = table_of(name, frame)  # which needs no pyarrow for a frame of pandas
    held = pl.DataFrame(frame) if table is None else table.frame
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
