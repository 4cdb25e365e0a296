"""Formats of tables: how the rows of one file are read, and what its messages call them, by row or by line."""

from __future__ import annotations

import csv
import io
import lzma
import os
import shutil
import tempfile
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from lzma import LZMAError
from pathlib import Path
from typing import Any

from ....core import text_files
from ....core.frames import pl
from ....core.parameters import shown
from ....core.row_groups import RowGroups, row_groups
from ....errors import GraphFormatError
from ..schema import Csv, Format
from .listing import URL, Found

PACKED = (".gz", ".zst", ".bz2", ".xz")
"""Suffixes of compressed files. Polars reads the first two itself."""

SEPARATORS = {".tsv": "\t", ".txt": "\t"}
"""Between the columns of a text file of this suffix, where the schema does not say it. A comma in all others."""


def scan(path: str, csv_format: Csv, separator: str) -> pl.LazyFrame:
    """Return a text table, all of whose columns are text.

    Without a header, its columns are ``column_1``, ``column_2``, ... An empty field is null, ``""`` is an empty string.
    """
    names: Any = None if csv_format.header else _numbered
    return pl.scan_csv(
        path,
        has_header=csv_format.header,
        with_column_names=names,
        separator=separator,
        quote_char=csv_format.quote or None,
        null_values=csv_format.nulls or None,
        infer_schema=False,
        glob=False,
    )


def _numbered(names: list[str]) -> list[str]:
    return [f"column_{place}" for place in range(1, len(names) + 1)]


def header(path: str, csv_format: Csv, separator: str) -> list[str]:
    """Return the first record of a file as it is written."""
    with opened(path) as lines:
        return next((list(record) for record in _reader(lines, csv_format, separator) if record), [])


def lines_of(path: str, rows: Sequence[int], csv_format: Csv, separator: str) -> list[int]:
    """Return the lines, from 1, on which some rows begin."""
    found: dict[int, int] = {}
    with opened(path) as lines:
        for number, line, _ in _records(lines, csv_format, separator):
            if number in rows:
                found[number] = line
                if len(found) == len(set(rows)):
                    break
    return [found.get(row, row + 1 + csv_format.header) for row in rows]


def fault(path: str, csv_format: Csv, separator: str) -> str | None:
    """Return what is wrong with a text table, and on which line. None if nothing is found."""
    width, last = 0, 0
    try:
        with opened(path) as lines:
            for _, line, record in _records(lines, csv_format, separator, headers=True):
                last = line
                if any(not field.isascii() and _invalid(field) for field in record):
                    return f"line {line} is not UTF-8"
                width = width or len(record)
                if len(record) > width:
                    return f"line {line} has {len(record)} columns, the first line has {width}"
    except csv.Error:
        return f"after line {last}: a quote that does not close, or that does not enclose its whole field"
    except (OSError, EOFError, lzma.LZMAError, zlib.error):
        return f"after line {last}: it is cut off or damaged"
    return None


def misfit(path: str, csv_format: Csv, separator: str, local: bool) -> str | None:
    """Return where a record is too long for memory, or a quote does not close, which makes it so, if there is one.

    Polars takes all behind such a quote for one field. Quotes come in pairs: at both ends of a field, and doubled in
    its text.
    """
    quote = csv_format.quote
    if local:
        count, long = text_files.examined(path, quote)[1:]
        if long is not None:
            return text_files.too_long(long, quote)
    elif not quote:
        return None
    else:
        lines = pl.scan_lines(path).select(pl.first().str.count_matches(quote, literal=True).sum())
        count = lines.collect(engine="streaming").item() or 0
    if count % 2 == 0:
        return None
    stray = (
        f"a {quote} that does not close. Close it, or double those that belong to the text of a quoted field"
    )
    return (fault(path, csv_format, separator) if local else None) or stray


def _invalid(field: str) -> bool:
    try:
        field.encode()
    except UnicodeEncodeError:
        return True
    return False


def _records(
    lines: Iterator[str], csv_format: Csv, separator: str, headers: bool = False
) -> Iterator[tuple[int, int, list[str]]]:
    """Yield number, line and fields of the records. The header is record -1, empty lines before it are none."""
    reader = _reader(lines, csv_format, separator)
    number, line = -1 if csv_format.header else 0, 1
    begun = False
    for record in reader:  # empty lines before the first record do not count
        if record or begun:
            begun = True
            if number >= 0 or headers:
                yield number, line, record
            number += 1
        line = reader.line_num + 1


def _reader(lines: Iterator[str], csv_format: Csv, separator: str) -> Any:
    quote = csv_format.quote or None
    if quote is None:
        return csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_NONE)
    return csv.reader(lines, delimiter=separator, quotechar=quote, strict=True)


def opened(path: str) -> Any:
    """Open a local text file, compressed or not. Bytes that are not UTF-8 become surrogates."""
    return io.TextIOWrapper(
        text_files.unpacked(path), encoding="utf-8-sig", errors="surrogateescape", newline=""
    )


_SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "text",
    ".tsv": "text",
    ".txt": "text",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
}

_MAGICS = {b"PAR1": "parquet", b"ARROW1": "ipc"}


@dataclass(frozen=True)
class Source:
    """The rows of one file. Each call of ``scan`` begins a new pass."""

    what: str
    """What the file should be, as "a Parquet file"."""
    scan: Callable[[], pl.LazyFrame]
    fault: Callable[[], str | None] = lambda: None
    """Says what is wrong with a file that could not be read."""
    check: Callable[[], str | None] = lambda: None
    """Says what is wrong with a file that Polars reads without an error, or that would fill memory."""
    lines: Callable[[Sequence[int]], list[int]] | None = None
    """The lines on which rows begin. None: rows are counted from 0."""
    place: Callable[[int], str] | None = None
    """Says where a row of a copy comes from. None: it is no copy."""
    text: bool = False
    """Whether all columns are text, which is converted where it is used."""
    divisible: bool = True
    """Whether a pass may begin at any row without reading those before it."""
    row_groups: RowGroups | None = None
    """The pieces that are decoded as a whole, if there are such."""
    watched: bool = True
    """Whether it is a file that may change. Data frames and versions of a table do not."""
    partitions: Mapping[str, Any] = field(default_factory=dict)
    """Columns that the path tells, as ``day=1``, and their values."""
    keep: Any = None
    """What must live as long as the source: the folder of an unpacked copy."""


class Copy:
    """A folder that is removed with this object."""

    def __init__(self, tmp_dir: Path | None) -> None:
        self.path = tempfile.mkdtemp(prefix="fastpart-", dir=tmp_dir)
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def known(path: str) -> bool:
    """Whether the suffix of a file says its format."""
    return _suffix(path)[0] in _SUFFIXES


def source_of(
    found: Found, format: Format | None, tmp_dir: Path | None, memory_limit: int | None = None
) -> Source:
    """Return how a file is read, by its suffix, by what the schema says, or by its first bytes."""
    kind = _kind(found, format)
    if found.path.lower().endswith(".zst") and not URL.match(found.path):
        text_files.refuse_expanding(found.path, memory_limit)
    path, keep = _unpacked(found.path, tmp_dir)
    if kind == "text":
        return _text(found.path, path, (format and format.csv) or Csv(), keep)
    if _suffix(found.path)[1] and kind != "ndjson":
        raise GraphFormatError(
            f"{shown(found.path)}: only text may be compressed as a whole. Unpack it, since its columns may be "
            "compressed inside"
        )
    return _SOURCES[kind](path, keep)


def _suffix(path: str) -> tuple[str, str]:
    """Return the suffix of a file, and that of its compression, if any."""
    stem, last = os.path.splitext(path.lower())
    if last in PACKED:
        return os.path.splitext(stem)[1], last
    return last, ""


def _kind(found: Found, format: Format | None) -> str:
    suffix, packed = _suffix(found.path)
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    if format is not None and format.csv is not None:
        return "text"
    if not URL.match(found.path) and not packed:
        with open(found.path, "rb") as opened:
            start = opened.read(6)
        for magic, kind in _MAGICS.items():
            if start.startswith(magic):
                return kind
    says = f"the suffix {suffix!r} names no format" if suffix else "it has no suffix that names its format"
    raise GraphFormatError(
        f"{shown(found.path)}: {says}. If it is text, say so in the schema: `format: {{csv: {{}}}}`. If it is no "
        "table, name the tables by a glob, such as *.parquet"
    )


def _unpacked(path: str, tmp_dir: Path | None) -> tuple[str, Any]:
    """Return the path of what Polars can read. For .bz2 and .xz that is a copy, which lives as long as the second."""
    last = os.path.splitext(path.lower())[1]
    if last not in (".bz2", ".xz") or URL.match(path):
        return path, None
    folder = Copy(tmp_dir)
    copy = os.path.join(folder.path, "table")
    try:
        with text_files.unpacked(path) as packed, open(copy, "xb") as file:
            shutil.copyfileobj(packed, file, 1 << 20)
    except (OSError, EOFError, LZMAError) as error:  # what bz2 and lzma raise of damaged files
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise GraphFormatError(
            f"{shown(path)}: not a {last} file, or cut off ({_first_line(error)})"
        ) from None
    return copy, folder


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0]


def _text(shown_path: str, path: str, csv_format: Csv, keep: Any) -> Source:
    separator = csv_format.separator or SEPARATORS.get(_suffix(shown_path)[0], ",")
    local = not URL.match(path) and not path.lower().endswith(".zst")

    def lines(rows: Sequence[int]) -> list[int]:
        with suppress(Exception):
            if local:
                return lines_of(path, rows, csv_format, separator)
        return [row + 1 + csv_format.header for row in rows]

    return Source(
        "a text table in UTF-8",
        lambda: scan(path, csv_format, separator),
        lambda: fault(path, csv_format, separator) if local else None,
        lambda: misfit(path, csv_format, separator, local),
        lines,
        text=True,
        divisible=False,
        keep=keep,
    )


def _parquet(path: str, keep: Any) -> Source:
    return Source(
        "a Parquet file",
        lambda: pl.scan_parquet(path, glob=path.startswith("hf://"), hive_partitioning=False),
        row_groups=None if URL.match(path) else row_groups(path),
        keep=keep,
    )


def _ipc(path: str, keep: Any) -> Source:
    def fault() -> str | None:
        if URL.match(path):
            return None
        with open(path, "rb") as opened:
            if opened.read(4) == b"\xff\xff\xff\xff":
                return "it is the stream format. Write the file format, as by pyarrow.ipc.new_file"
        return None

    return Source(
        "an Arrow IPC file",
        lambda: pl.scan_ipc(path, glob=False, hive_partitioning=False),
        fault,
        keep=keep,
    )


def _ndjson(path: str, keep: Any) -> Source:
    # The types are those of all rows, found once: what the first rows say may be wrong for the others.
    known: list[Any] = []

    def scan() -> pl.LazyFrame:
        escaped = path if URL.match(path) else _literally(path)
        if not known:
            known.append(pl.scan_ndjson(escaped, infer_schema_length=None).collect_schema())
        return pl.scan_ndjson(escaped, schema=known[0])

    def check() -> str | None:
        if URL.match(path) or path.lower().endswith(".zst"):
            return None
        line = text_files.examined(path, None).long
        return None if line is None else text_files.too_long(line)

    return Source("NDJSON", scan, check=check, divisible=False, keep=keep)


def _literally(path: str) -> str:
    """Return a glob that only this path matches."""
    import glob

    return glob.escape(path)


_SOURCES: dict[str, Callable[[str, Any], Source]] = {"parquet": _parquet, "ipc": _ipc, "ndjson": _ndjson}
