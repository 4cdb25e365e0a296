"""Text tables (CSV, TSV): how Polars reads them, and on which line they are wrong."""

from __future__ import annotations

import csv
import io
import lzma
import zlib
from collections.abc import Iterator
from typing import Any

from ....core import text_files
from ....core.frames import pl
from ..schema import Csv

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


def line_of(path: str, row: int, csv_format: Csv, separator: str) -> int:
    """Return the line, from 1, on which a row begins."""
    with opened(path) as lines:
        for number, line, _ in _records(lines, csv_format, separator):
            if number == row:
                return line
    return row + 1 + csv_format.header


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
