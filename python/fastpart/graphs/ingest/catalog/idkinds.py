"""The one kind that all columns of ids of a type have, or which two of them differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ....core.frames import pl
from ....core.parameters import shown
from ....errors import GraphFormatError
from ..schema import Key
from ..tables.idcasts import IdKind, dtype_of
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


def kind_of(name: str, uses: Sequence[Use]) -> tuple[IdKind, Any]:
    """Return how the ids of a type are compared, and the Polars type in which they go back.

    Raises
    ------
    GraphFormatError
        Two of its columns have ids that cannot be equal. The text names both, and the remedy.
    """
    seen = [each for use in uses for file in use.files if (each := _seen(name, use, file)) is not None]
    if not seen:
        return "string", pl.String()
    first = seen[0]
    for other in seen[1:]:
        if other.family != first.family:
            raise GraphFormatError(
                f"ids of {name!r} differ in type: {first}, but {other}. {_remedy(first, other)}"
            )
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
