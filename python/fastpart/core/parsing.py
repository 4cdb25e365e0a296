"""Files that others wrote: arrays of numpy, JSON, and errors that name the file."""

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
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import FastpartError, GraphFormatError, MemoryBudgetError
from .frames import pl
from .parameters import regular, shown

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
    """Turn any exception of a parser into a :class:`GraphFormatError` that names the file."""
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


def json_object(
    file: Path,
    text: str | bytes | None = None,
    fields: Mapping[str, type | tuple[type, ...]] | None = None,
    remedy: str = "",
) -> dict[str, Any]:
    """Return the JSON object of a file that fastpart wrote.

    Parameters
    ----------
    file : pathlib.Path
        The file, which errors name.
    text : str or bytes, optional
        Its content, if it is read already.
    fields : mapping of str to type, optional
        The fields that must be there, and the Python types that their values may have. A bool is no integer.
    remedy : str
        Ends each error.

    Raises
    ------
    GraphFormatError
        The file holds no JSON object, or a field is missing or of another type.
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
    for name, types in (fields or {}).items():
        if name not in content:
            raise GraphFormatError(f"{shown(file)}: the field {name!r} is missing{end}")
        value, known = content[name], types if isinstance(types, tuple) else (types,)
        if not isinstance(value, known) or (isinstance(value, bool) and bool not in known):
            expected = " or ".join(_JSON[each] for each in known)
            raise GraphFormatError(
                f"{shown(file)}: the field {name!r} holds {_JSON.get(type(value), value)}, not {expected}{end}"
            )
    return content


_JSON: dict[type, str] = {
    bool: "a truth value",
    dict: "an object",
    float: "a number",
    int: "an integer",
    list: "a list",
    str: "text",
    type(None): "null",
}
"""What JSON calls the types of Python."""


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
