"""Files that others wrote: arrays of numpy, JSON, names that become paths, and errors that name the file."""

from __future__ import annotations

import errno
import io
import json
import math
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any, Union

import msgspec
import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import FastpartError, GraphFormatError, MemoryBudgetError
from .frames import pl
from .parameters import regular, shown
from .system import allocate

PATTERN = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}"

Name = Annotated[str, msgspec.Meta(pattern=rf"^{PATTERN}\Z")]
"""The name of a type or a relation."""

PathBelow = Annotated[str, msgspec.Meta(pattern=r"^(?:(?!\.\.(?:/|\Z))[^/\x00\ud800-\udfff]++/?+)++\Z")]
"""A path below the folder of the list that has it."""

RULE = "Use up to 64 letters, digits, '_', '-' and '.', and begin with none of '-' and '.'"


def is_name(text: str) -> bool:
    """Return whether a text may be the name of a type or a relation."""
    return re.fullmatch(PATTERN, text) is not None


_MAGIC = b"\x93NUMPY"

_LONGEST_HEADER = 1 << 16
"""A header of numbers never needs more. Larger claims are refused."""

_DESCR = re.compile(r"(['\"])([^'\",]*)\1")

_FIELD = r"\('(\w+)', '([^',]*)'(?:, \((\d+),\))?\)"
_FIELDS = re.compile(rf"\[((?:{_FIELD}(?:, )?)+)\]")
"""The type of a row whose numbers have several types, as numpy writes it."""

_SHAPE = re.compile(r"\(((?:\s*\d+L?\s*,)*\s*(?:\d+L?)?\s*)\)")  # Python 2 wrote 3L


@contextmanager
def damaged(file: Path, what: str) -> Iterator[None]:
    """Turn any exception of a parser into a :class:`~fastpart.errors.GraphFormatError` that names the file."""
    try:
        yield
    except (FastpartError, MemoryError):
        raise
    except OSError as error:
        if error.errno != errno.EINVAL:  # zipfile seeks where damaged offsets lead
            raise
        raise GraphFormatError(f"{shown(file)}: {what} (an offset in it leads nowhere)") from None
    except (Exception, pl.exceptions.PanicException) as error:
        reason = str(error).strip().split("\n", 1)[0] or type(error).__name__
        raise GraphFormatError(f"{shown(file)}: {what} ({reason})") from None


Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
"""A number of things, in a JSON file of ours."""

_Version = Annotated[int, msgspec.Meta(ge=1)]

Fields = Mapping[str, Any] | type[msgspec.Struct]
"""The fields of an object: types by name, as msgspec takes them, or a structure, whose defaults mark what may lack."""


def json_object(
    file: Path,
    text: str | bytes | None = None,
    fields: Fields | None = None,
    remedy: str = "",
    version: tuple[str, int] | None = None,
) -> dict[str, Any]:
    """Return the JSON object of a file that fastpart wrote. All JSON of ours is read here.

    Parameters
    ----------
    file : pathlib.Path
        The file, which errors name.
    text : str or bytes, optional
        Its content, if it is read already.
    fields : mapping of str to type, or a msgspec.Struct, optional
        The fields that must be there, and the types of their values, at any depth. A tuple of types stands for any of
        them. A bool is no integer, and unknown fields are left alone.
    remedy : str
        Ends each error, except that of a newer version.
    version : tuple of str and int, optional
        The field with the version of the content, and the newest one that this fastpart reads.

    Raises
    ------
    GraphFormatError
        The file holds no JSON object, or a field is missing or of another type, or the version is newer.
    OSError
        The file cannot be read.
    """
    end = f". {remedy}" if remedy else ""
    if text is None:
        text = regular(file).read_bytes()
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GraphFormatError(f"{shown(file)}: not JSON ({error}){end}") from None
    if not isinstance(content, dict):
        raise GraphFormatError(f"{shown(file)}: expected a JSON object{end}")
    return checked_object(file, content, fields, remedy, version)


def checked_object(
    file: Path,
    content: dict[str, Any],
    fields: Fields | None = None,
    remedy: str = "",
    version: tuple[str, int] | None = None,
) -> dict[str, Any]:
    """Return a JSON object that was read from a file of ours, as :func:`json_object` does."""
    try:
        conform(content, {} if version is None else {version[0]: _Version})
        if version is None or content[version[0]] <= version[1]:
            conform(content, fields or {})
            return content
    except ValueError as error:
        raise GraphFormatError(f"{shown(file)}: {error}" + (f". {remedy}" if remedy else "")) from None
    raise GraphFormatError(
        f"{shown(file)}: {version[0]} {content[version[0]]}, but this fastpart ({_core.__version__}) reads up to "
        f"{version[1]}. A newer fastpart wrote it. Upgrade fastpart"
    )


def conform(content: Mapping[str, Any], fields: Fields) -> None:
    """Raise a ValueError that names the field unless a JSON object has these fields."""
    if isinstance(fields, type):
        _check(content, fields, "")
        return
    for name, expected in fields.items():
        if name not in content:
            raise ValueError(f"the field {name!r} is missing")
        _check(content[name], Union[expected] if isinstance(expected, tuple) else expected, name)  # noqa: UP007


def _check(value: Any, expected: Any, name: str) -> None:
    try:
        msgspec.convert(value, expected)
    except (msgspec.ValidationError, RecursionError) as error:
        what, _, place = str(error).partition(" - at ")
        place = place.removeprefix("`key` in ").strip("`").removeprefix("$")
        raise ValueError(_told(what, (name + place).removeprefix("."))) from None


def _told(what: str, name: str) -> str:
    """Return what msgspec says of a field, in the words of our errors."""
    if missing := _MISSING.fullmatch(what):
        return f"the field {f'{name}.{missing[1]}'.removeprefix('.')!r} is missing"
    if other := _OTHER.fullmatch(what):
        expected = " or ".join(_JSON.get(each, each) for each in other[1].split(" | "))
        return f"the field {name!r} holds {_JSON.get(other[2], other[2])}, not {expected}"
    if what.startswith(_UNKNOWN):
        return f"the field {name!r} holds the unknown value {shown(what.removeprefix(_UNKNOWN))}"
    if "matching regex" in what:
        return f"the field {name!r} holds a name that fastpart does not write"
    what = what[:1].lower() + _QUOTED.sub(lambda word: _JSON.get(word[1], word[1]), what[1:])
    return f"the field {name!r}: {what}"


_MISSING = re.compile("Object missing required field `(.*)`")
_OTHER = re.compile("Expected `(.*)`, got `(.*)`")
_UNKNOWN = "Invalid enum value "
_QUOTED = re.compile("`([^`]*)`")

_JSON = {
    "array": "a list",
    "bool": "a truth value",
    "float": "a number",
    "int": "an integer",
    "null": "null",
    "object": "an object",
    "str": "text",
}
"""What errors call the types that msgspec names."""


@contextmanager
def named(file: str | Path) -> Iterator[None]:
    """Name the file or folder in errors of the system. A failed write does not."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from None


def npy_header(opened: IO[bytes], fields: bool = False) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, column-major order and dtype of a .npy, and leave the stream at its data.

    A dtype with ``fields``, which are numbers, is read only if asked for.

    numpy parses the header as Python code. With several threads, that may fail in CPython 3.11 where the file is
    intact. This one reads the three values only.
    """
    prefix = opened.read(8)
    if prefix[:6] != _MAGIC:
        raise ValueError("no .npy magic at its start")
    if len(prefix) < 8 or prefix[6] not in (1, 2, 3):
        raise ValueError("unknown .npy version. Save it again with numpy.save")
    length = int.from_bytes(opened.read(2 if prefix[6] == 1 else 4), "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"its header claims {length:,} bytes")
    text = opened.read(length)
    if len(text) < length:
        raise ValueError("its header is cut off")
    header = text.decode("utf-8" if prefix[6] == 3 else "latin-1")
    shape = _value(header, "shape", _SHAPE)[1].replace("L", "").split(",")
    dtype = (fields and _fields(header)) or _plain(header)
    fortran = _value(header, "fortran_order", re.compile("True|False"))[0] == "True"
    return tuple(int(length) for length in shape if length.strip()), fortran, dtype


def _plain(header: str) -> np.dtype[Any]:
    descr = _value(header, "descr", _DESCR)[2]
    dtype = np.dtype(descr)
    if dtype.kind not in "biufcSUmM":
        what = "Python objects, which are never loaded" if "O" in descr else f"{descr!r}"
        raise ValueError(f"it holds {what}. Expected numbers")
    return dtype


def _fields(header: str) -> np.dtype[Any] | None:
    """Return a dtype whose fields are numbers. None if the header states another one."""
    found = _behind(header, "descr", _FIELDS)
    if not found:
        return None
    fields = re.findall(_FIELD, found[1])
    if any(np.dtype(of).kind not in "biufc" for _, of, _ in fields):
        return None
    return np.dtype([(name, of, (int(length),) if length else ()) for name, of, length in fields])


def _value(header: str, key: str, pattern: re.Pattern[str]) -> re.Match[str]:
    """Return what stands behind a key of a header."""
    value = _behind(header, key, pattern)
    if not value:
        raise ValueError(f"its header has no valid {key}")
    return value


def _behind(header: str, key: str, pattern: re.Pattern[str]) -> re.Match[str] | None:
    found = re.search(rf"['\"]{key}['\"]\s*:\s*", header)
    return found and pattern.match(header, found.end())


def npy_array(opened: IO[bytes], size: int) -> npt.NDArray[Any]:
    """Read a .npy of numbers from a stream of ``size`` bytes. Refuse one that claims more before it is allocated."""
    shape, fortran, dtype = npy_header(opened)
    data = bytearray(_bytes(shape, dtype, size - opened.tell()))
    if opened.readinto(data) < len(data):  # type: ignore[attr-defined]
        raise ValueError("it is cut off")
    return np.ndarray(shape, dtype, data, order="F" if fortran else "C")


class Archive(Mapping[str, npt.NDArray[Any]]):
    """The arrays of a .npz. Each is read where it is asked for, and its header is checked before it is unpacked."""

    def __init__(self, file: Path, what: str = "not a .npz of plain arrays") -> None:
        self._file, self._what = file, what
        with self._opened() as archive:
            self._members = {each.filename.removesuffix(".npy"): each for each in archive.infolist()}
        self.bytes = sum(each.file_size for each in self._members.values())

    @contextmanager
    def _opened(self) -> Iterator[zipfile.ZipFile]:
        with (
            damaged(regular(self._file), self._what),
            self._file.open("rb") as opened,
            zipfile.ZipFile(opened) as archive,
        ):
            yield archive

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array without reading it."""
        member = self._members[name]
        with self._opened() as archive, archive.open(member) as stream:
            shape, _, dtype = npy_header(stream)
            _bytes(shape, dtype, member.file_size - stream.tell())
            return shape

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        size, most = self._members[name].file_size, _core.memory_budget()
        if size > most:
            raise MemoryBudgetError(
                f"{shown(self._file)}: {name} unpacks to {size / 1e6:,.1f} MB, but the budget is {most / 1e6:,.1f} MB. "
                "Save it as .npy, which is mapped"
            )
        with self._opened() as archive, archive.open(self._members[name]) as stream:
            return npy_array(stream, size)

    def __contains__(self, name: object) -> bool:
        return name in self._members  # that of a mapping would unpack the array

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)


def mapped(file: Path, what: str = "not a .npy array", fields: bool = False) -> npt.NDArray[Any]:
    """Map a .npy of numbers, read-only. Refuse any other file, and one whose header claims more than it holds.

    A dtype with ``fields`` is refused, too, unless asked for.

    The file is closed at once. A map of numpy's keeps a descriptor, of which a process has about a thousand.
    """
    with damaged(regular(file), what):
        content = memoryview(_core.MappedFile(file))
        opened = io.BytesIO(content[: _LONGEST_HEADER + 12])
        shape, fortran, dtype = npy_header(opened, fields)
        _bytes(shape, dtype, len(content) - opened.tell())
        return np.ndarray(shape, dtype, content, opened.tell(), order="F" if fortran else "C")


def _bytes(shape: tuple[int, ...], dtype: np.dtype[Any], available: int) -> int:
    """Return the bytes of the items. Refuse a header that claims more than there are."""
    claimed = math.prod(shape) * dtype.itemsize
    if claimed > available:
        raise ValueError(f"it claims {claimed:,} bytes, but holds {available:,}")
    return claimed


_CHECKSUM = "xxh3"

_END = b"\n}\n"


def with_checksum(text: bytes, key: str = _CHECKSUM) -> bytes:
    """Return the text of an object, one entry a line, with its checksum."""
    return _ended(text.removesuffix(_END), key)


def is_intact(text: bytes, key: str = _CHECKSUM) -> bool:
    """Return whether a text is as :func:`with_checksum` returned it."""
    begin = re.sub(rb',\n "%s": "[0-9a-f]{32}"\n\}\n\Z' % key.encode(), b"", text)
    return text == _ended(begin, key)


def _ended(begin: bytes, key: str) -> bytes:
    def end(digits: str) -> bytes:
        return f',\n "{key}": "{digits}"'.encode() + _END

    return begin + end(_core.hash_bytes(begin + end("0" * 32)))


def created(file: Path, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> np.memmap[Any, np.dtype[Any]]:
    """Map a new .npy of zeros, and take the disk that it needs.

    Without this, a write to the map kills the process where the disk is full.
    """
    with named(file):
        array: np.memmap[Any, np.dtype[Any]] = np.lib.format.open_memmap(file, "w+", np.dtype(dtype), shape)
        with file.open("r+b") as opened:
            allocate(opened.fileno(), array.offset + array.nbytes)
    return array
