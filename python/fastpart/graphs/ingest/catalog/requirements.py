"""Checks of columns: ids of a type have one kind, and all other columns are there and of a type that is of use."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeVar

import msgspec

from ....core.frames import pl
from ....core.notes import log
from ....core.parameters import meant, shown
from ....errors import GraphFormatError
from ..problems import attempted, refuse
from ..schema import Column, Key, Relation, Table, Vertices
from ..tables import IdKind, TableReader, dtype_of
from ..tables.tablefiles import TableFile

Family = Literal["int", "string", "binary"]


@dataclass(frozen=True)
class Use:
    """A column of ids of a type, in all files of a table."""

    place: str
    files: Sequence[TableFile]
    key: Key
    added: bool = True
    """Whether its ids may be vertices that no other table declares, so that they go back in its type, too."""


@dataclass(frozen=True)
class _Seen:
    use: Use
    file: TableFile
    dtype: Any
    family: Family

    def __str__(self) -> str:
        return f"column {self.use.key.column!r} of {shown(self.file.path)} ({self.use.place}) is {self.dtype}"


def kind_of(name: str, uses: Sequence[Use]) -> tuple[IdKind, Any] | None:
    """Return how the ids of a type are compared, and the Polars type in which they go back.

    A check gets None if there is no one kind.

    Raises
    ------
    GraphFormatError
        Two of its columns have ids that cannot be equal. The text names both, and the remedy.
    """
    seen: list[_Seen] = []
    refused = False
    for use in uses:
        for file in use.files:
            each = attempted(file.path, _seen, name, use, file)
            refused |= each is None and file.dtypes[use.key.column] != pl.Null
            seen += [] if each is None else [each]
    if not seen:
        return None if refused else ("string", pl.String())
    first = seen[0]
    for other in seen[1:]:
        if other.family != first.family:
            error = f"ids of {name!r} differ in type: {first}, but {other}. {_remedy(first, other)}"
            refuse(other.file.path, GraphFormatError(error))
            refused = True
    if refused:
        return None
    if first.family != "int":
        return first.family, dtype_of(first.family)()
    types = [each.dtype for each in seen if each.dtype.is_integer()]
    kind: IdKind = "unsigned" if pl.UInt64() in types else "signed"
    returned = {each.dtype for each in seen if each.use.added} or set(types)
    (single,) = returned if len(returned) == 1 else (None,)
    whole = single is not None and single.is_integer() and single not in (pl.Int128(), pl.UInt128())
    return kind, single if whole else dtype_of(kind)()


def _seen(name: str, use: Use, file: TableFile) -> _Seen | None:
    """Return what a file holds as ids. None for a column of nulls only, which fits all."""
    dtype = file.dtypes[use.key.column]
    if dtype == pl.Null:
        return None
    return _Seen(use, file, dtype, _family(name, use, file, dtype))


def _family(name: str, use: Use, file: TableFile, dtype: Any) -> Family:
    text = dtype in (pl.String, pl.Categorical, pl.Enum)
    never = dtype.is_nested() or dtype.is_float() or dtype in (pl.Object, pl.Unknown)
    if not never:
        if use.key.as_ == "string":
            return "string"
        if dtype.is_integer() or (text and use.key.as_ == "int"):
            return "int"
        if use.key.as_ is None and (text or dtype == pl.Binary):
            return "string" if text else "binary"
    at = f"{use.place}: column {use.key.column!r} of {shown(file.path)} is {dtype}"
    if dtype.is_float():
        raise GraphFormatError(f"{at}. Such numbers are not exact. Store whole numbers or text in the table")
    if never:
        raise GraphFormatError(f"{at}, which is no id. Name a column of whole numbers, text or bytes")
    if use.key.as_ == "int":
        raise GraphFormatError(f"{at}, but the schema says `as: int`, which reads text. Leave it out")
    raise GraphFormatError(
        f"{at}. Ids are whole numbers, text or bytes. Read it by its text: "
        f"`{{{_key(use, name)}: {{column: {use.key.column}, as: string}}}}`"
    )


def _key(use: Use, name: str) -> str:
    return "id" if use.place.endswith(".id") else name


def _remedy(first: _Seen, other: _Seen) -> str:
    families = {first.family, other.family}
    number, text = (first, other) if first.family == "int" else (other, first)
    if families == {"int", "string"}:
        return (
            f"Say `as: string` at {number.use.place}, or, if the text is whole numbers, `as: int` at {text.use.place}: "
            f"`{{column: {text.use.key.column}, as: int}}`"
        )
    return "Say `as: string` at each of them, or store both in one type"


_OF_CATEGORIES = ("code", "embedding", "onehot")
"""Forms of columns of categories."""


def check_vertices(place: str, entry: Vertices, reader: TableReader, id_column: str) -> Vertices | None:
    """Refuse a table of vertices that lacks a column, or has one of no use.

    A check gets the entry without such columns, and None if that of the ids is one.
    """
    usable = _usable(place, entry, reader)
    return usable if _require(f"{place}.id", reader, id_column) else None


def check_relation(
    place: str, entry: Relation, reader: TableReader, ends: tuple[str, str]
) -> Relation | None:
    """Refuse a table of records that lacks a column, or has one of no use.

    A check gets the entry without such columns, and None if one of the ids, or of the relations, is such.
    """
    if ends[0] == ends[1]:
        raise GraphFormatError(f"{place}: source and target are the same column, {ends[0]!r}")
    found = [
        _require(f"{place}.{end}", reader, column)
        for end, column in zip(("source", "target"), ends, strict=True)
    ]
    if entry.relation is not None:
        what = "text or whole numbers"
        found.append(_check(f"{place}.relation", reader, entry.relation, _is_name, what))
    usable = _usable(place, entry, reader)
    return usable if all(found) else None


def features_of(place: str, entry: Table, reader: TableReader, ids: Sequence[str]) -> tuple[Column, ...]:
    """Return the columns of features, in the order of the schema.

    The columns of a glob are in natural order, ``f_2`` before ``f_10``. It leaves out those that have another use, or
    are named by themselves.
    """
    others = {*ids, *(getattr(entry, key, None) for key in ("label", "time", "split", "weight", "relation"))}
    others |= {each.column if isinstance(each, Column) else each for each in entry.features}
    found: dict[str, Column] = {}
    for number, feature in enumerate(entry.features):
        where = f"{place}.features[{number}]"
        for column in attempted(where, _matching, where, feature, reader, others) or ():
            if column.column in found:
                refuse(where, GraphFormatError(f"{where}: the column {column.column!r} is there twice"))
            elif (known := attempted(where, _checked_feature, where, column, entry, reader)) is not None:
                found[column.column] = known
    return tuple(found.values())


def _checked_feature(where: str, column: Column, entry: Table, reader: TableReader) -> Column | None:
    if not _check_feature(where, known := _known(where, column), reader):
        return None
    if known.as_ in _OF_CATEGORIES and known.column == entry.label:
        raise GraphFormatError(
            f"{where}: column {known.column!r} is the label, which a network would read as a feature. Leave it out here"
        )
    return known


def _matching(where: str, feature: str | Column, reader: TableReader, others: set[Any]) -> list[Column]:
    if isinstance(feature, Column):
        return [feature]
    names = list(reader.files[0].dtypes)
    if feature in names or not set(feature) & set("*?["):
        return [Column(column=feature)]
    matching = [name for name in names if fnmatchcase(name, feature) and name not in others]
    if not matching:
        raise GraphFormatError(
            f"{where}: no column of {shown(reader.files[0].path)} matches {feature!r}. Its columns are {_list(names)}"
        )
    return [Column(column=name) for name in sorted(matching, key=_natural)]


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts the numbers in names by their values."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def _known(where: str, column: Column) -> Column:
    """Return a column with the present name of its form, and a note about an earlier name."""
    if column.as_ != "category":
        return column
    log.info(
        "%s: column %r: `as: category` is now called `as: code`. A network takes codes for sizes: `as: onehot` makes a "
        "column of 0 and 1 for each value",
        where,
        column.column,
    )
    return msgspec.structs.replace(column, as_="code")


def _check_feature(where: str, column: Column, reader: TableReader) -> bool:
    name = column.column
    if column.dim and column.as_ != "embedding":
        raise GraphFormatError(f"{where}.dim: it is for `as: embedding`. Leave it out")
    if column.as_ in _OF_CATEGORIES:
        lists = column.as_ == "onehot"
        what = (
            f"categories (text, whole numbers, dates, false and true{', or lists of them' if lists else ''})"
        )
        usable = _check(where, reader, name, _is_onehot if lists else _is_category, what)
        if column.as_ == "embedding" and where.startswith("relations."):
            raise GraphFormatError(
                f"{where}: `as: embedding` is for vertices. Models read the features of edges as numbers. Use `as: "
                "onehot`"
            )
        if column.standardise:
            raise GraphFormatError(f"{where}: categories have no mean. Leave `standardise` out")
        return usable
    if isinstance(column.fill, str):
        raise GraphFormatError(f"{where}.fill: {column.fill!r} is no number")
    if column.as_ == "days":
        what = "dates or time stamps. Numbers are features as they are: leave `as` out"
        return _check(where, reader, name, _is_date, what)
    remedy = (
        f"numbers or lists of numbers. For text, say `{{column: {name}, as: onehot}}`, for dates "
        f"`{{column: {name}, as: days}}`"
    )
    if not _check(where, reader, name, _is_vector, remedy):
        return False
    widths = {_width(file.dtypes[name]) for file in reader.files} - {None}
    if len(widths) > 1:
        raise GraphFormatError(f"{where}: column {name!r} has lists of {sorted(map(str, widths))} numbers")
    return True


_Entry = TypeVar("_Entry", bound=Table)


def _usable(place: str, entry: _Entry, reader: TableReader) -> _Entry:
    """Refuse columns that are missing or of no use. In a check, return the entry without them."""
    uses: dict[str, tuple[Callable[[Any], bool], str]] = {
        "time": (_is_time, "whole numbers, dates or time stamps"),
        "label": (_is_label, "classes (whole numbers, text), numbers, or lists of numbers"),
        "split": (_is_text, "text: train, val or test"),
        "weight": (_is_number, "numbers"),
    }
    for key, (fits, what) in uses.items():
        column = getattr(entry, key, None)
        if isinstance(column, str) and not _check(f"{place}.{key}", reader, column, fits, what):
            entry = msgspec.structs.replace(entry, **{key: None})
    return entry


def _check(place: str, reader: TableReader, column: str, fits: Callable[[Any], bool], what: str) -> bool:
    """Refuse a column that is missing in a file, or of another type. In text tables, values are checked later."""
    if not _require(place, reader, column):
        return False
    usable = True
    for number, file in enumerate(reader.files):
        dtype = file.dtypes[column]
        if dtype != pl.Null and not (fits(dtype) or (dtype == pl.String and reader.is_text(number))):
            error = f"{place}: column {column!r} of {shown(file.path)} is {dtype}. Expected {what}"
            refuse(file.path, GraphFormatError(error))
            usable = False
    return usable


def _require(place: str, reader: TableReader, column: str) -> bool:
    there = True
    for number, file in enumerate(reader.files):
        if column not in file.dtypes:
            has = _columns(file, column, reader.is_text(number))
            error = f"{place}: {shown(file.path)} has no column {column!r}. {has}"
            refuse(file.path, GraphFormatError(error))
            there = False
    return there


def _columns(file: TableFile, column: str, text: bool) -> str:
    names = list(file.dtypes)
    if text and len(names) == 1:
        for sign, written in ((";", ";"), ("\t", "\\t"), (",", ","), ("|", "|"), (" ", " ")):
            if sign in names[0]:
                return (
                    f"Its only column is {names[0]!r}. The separator seems to be {written!r}: say "
                    f'`format: {{csv: {{separator: "{written}"}}}}`'
                )
    return f"Its columns are {_list(names)}{meant(column, names)}"


def _list(names: Sequence[str]) -> str:
    more = f", and {len(names) - 20} more" if len(names) > 20 else ""
    return ", ".join(map(repr, names[:20])) + more if names else "none"


def _width(dtype: Any) -> int | None:
    return dtype.shape[0] if isinstance(dtype, pl.Array) else None


def _is_number(dtype: Any) -> bool:
    return bool(dtype.is_numeric() or dtype == pl.Boolean)


def _is_text(dtype: Any) -> bool:
    return dtype in (pl.String, pl.Categorical, pl.Enum)


def _is_vector(dtype: Any) -> bool:
    if isinstance(dtype, pl.List | pl.Array):
        inner = dtype.inner
        return bool(inner.is_numeric()) and not (isinstance(dtype, pl.Array) and len(dtype.shape) > 1)
    return _is_number(dtype)


def _is_name(dtype: Any) -> bool:
    return _is_text(dtype) or bool(dtype.is_integer() or dtype == pl.Boolean)


def _is_category(dtype: Any) -> bool:
    return _is_name(dtype) or dtype == pl.Date


def _is_onehot(dtype: Any) -> bool:
    inner = dtype.inner if isinstance(dtype, pl.List | pl.Array) else dtype
    return inner == pl.Null or _is_category(inner)


def _is_date(dtype: Any) -> bool:
    return dtype in (pl.Date, pl.Datetime)


def _is_label(dtype: Any) -> bool:
    return _is_text(dtype) or _is_vector(dtype)


def _is_time(dtype: Any) -> bool:
    return bool(dtype.is_integer()) or _is_date(dtype)
