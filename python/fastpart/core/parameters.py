"""Checks of arguments. Each returns the value in its internal form, or raises an error that says what is valid."""

from __future__ import annotations

import errno
import math
import operator
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from .. import _core
from ..errors import GraphFormatError, ParameterError, arg, refusal

if TYPE_CHECKING:  # `--help` needs no numpy, which takes a tenth of a second to import
    import numpy as np
    import numpy.typing as npt

Progress = Callable[[str, int, int], object]
"""Called with the name of the step, the units done, and all units."""

StrPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]

Directedness = Literal["undirected", "symmetric", "directed"]
"""Meanings of a record."""

Of = Literal["vertices", "edges"]
"""The items that a partition assigns to parts."""

CacheCriterion = Literal["access", "degree", "links", "halo"]
"""How the rows of other parts that a part caches are chosen."""

RowsIo = Literal["mmap", "direct"]
"""How files of rows are read."""

FeatureDtype = Literal["float32", "float16", "int8"]
"""How features are stored."""

Layout = Literal["rows", "edge_index"]
"""Which axis of an array counts the records."""

IdType = Literal["u32", "u64", "i32", "i64"]
"""Type of the ids of a raw file."""

Word = TypeVar("Word", bound=str)

TABLES = (".csv", ".md", ".tex", ".parquet")
"""Suffixes of the files that tables are written to."""

PICTURES = (".svg", ".png", ".pdf")
"""Suffixes of plots."""

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def integer(name: str, value: object, low: int, high: int) -> int:
    """Return an integer in ``low..=high``. Refuse bools, floats and strings."""
    if _is_bool(value):
        raise TypeError(f"{name}: expected an integer, got bool")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name}: expected an integer, got {type(value).__name__}") from None
    if not low <= number <= high:
        raise ParameterError(f"{name}: {number} is not between {low} and {high}")
    return number


def _is_bool(value: object) -> bool:
    import numpy as np

    return isinstance(value, bool | np.bool_)


def integers(name: str, value: object) -> list[int]:
    """Return whole numbers of at least 1, as a list."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(f"{name}: expected a list of integers, as [8, 8], got {type(value).__name__}")
    return [integer(name, each, 1, 2**32 - 1) for each in value]


def numbers(name: str, value: object) -> tuple[float, ...]:
    """Return several numbers, as a tuple. The core checks how many, and their range."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(f"{name}: expected a list of numbers, as [0.5, 0.3, 0.2], got {type(value).__name__}")
    return tuple(number(name, each) for each in value)


def fanouts_of(value: object) -> tuple[int, ...]:
    """Return the number of in-edges per vertex in each hop. -1 is all."""
    import numpy as np

    if isinstance(value, str | bytes) or not isinstance(value, Sequence | np.ndarray):
        raise TypeError(f"fanouts: expected a list of integers, as [15, 10], got {type(value).__name__}")
    return tuple(integer("fanouts", each, -1, 2**31 - 1) for each in value)


def parts(k: object) -> int:
    """Return the number of parts."""
    return integer("k", k, 1, _core.MAX_PARTS)


def seed(value: object) -> int:
    """Return the seed. None would mean a random one elsewhere, and results here can be repeated."""
    if value is None:
        raise refusal(TypeError, f"seed: None is not repeatable. Give a number, as in {arg('seed', 0)}")
    return integer("seed", value, 0, 2**64 - 1)


def ratio(name: str, value: object) -> float:
    """Return a ratio >= 1."""
    ratio = number(name, value)
    if not (math.isfinite(ratio) and ratio >= 1):
        raise ParameterError(
            f"{name}: {ratio} is not a ratio of at least 1, such as 1.05 for 5 % above the mean"
        )
    return ratio


def number(name: str, value: object) -> float:
    """Return a number. The core checks its range."""
    if isinstance(value, str | bytes) or _is_bool(value):
        raise TypeError(f"{name}: expected a number, got {type(value).__name__}")
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, OverflowError):
        raise TypeError(f"{name}: expected a number, got {type(value).__name__}") from None


def positive(name: str, value: object) -> float:
    """Return a number above 0."""
    if not number(name, value) > 0:
        raise ParameterError(f"{name}: {value} is not above 0")
    return number(name, value)


def share(name: str, value: object) -> float:
    """Return a share above 0 and at most 1."""
    if not 0 < number(name, value) <= 1:
        raise ParameterError(f"{name}: {value} is not a share above 0 and at most 1")
    return number(name, value)


def share_or_none(name: str, value: object) -> float:
    """Return a share from 0 to 1."""
    if not 0 <= number(name, value) <= 1:
        raise ParameterError(f"{name}: {value} is not a share from 0 to 1, such as 0.1")
    return number(name, value)


def weights(name: str, value: object) -> npt.NDArray[np.uint32] | None:
    """Return one weight per vertex as uint32, from integers >= 0 or a bool mask. None stays None."""
    import numpy as np

    if value is None:
        return None
    array = np.asarray(value)
    if array.ndim != 1:
        raise TypeError(f"{name}: expected one weight per vertex, got shape {array.shape}")
    if array.dtype.kind not in "biu" and array.size:
        raise TypeError(f"{name}: expected integers >= 0 or a bool mask, got dtype {array.dtype}")
    if array.dtype.kind != "b" and array.size and (array.min() < 0 or array.max() > 2**32 - 1):
        bad = int(np.flatnonzero((array < 0) | (array > 2**32 - 1))[0])
        raise ParameterError(f"{name}: vertex {bad} has weight {array[bad]}, outside 0..{2**32 - 1}")
    return np.ascontiguousarray(array, dtype=np.uint32)


def several_weights(name: str, value: object) -> npt.NDArray[np.uint32] | list[npt.NDArray[np.uint32]] | None:
    """Return weights as :func:`weights` does, or a list of them from a list of arrays."""
    import numpy as np

    if not isinstance(value, list | tuple) or not value or np.ndim(value[0]) == 0:
        return weights(name, value)
    arrays = (weights(f"{name}[{index}]", np.asarray(each)) for index, each in enumerate(value))
    return [array for array in arrays if array is not None]


def degrees(name: str, value: object) -> npt.NDArray[np.uint32] | None:
    """Return one degree per vertex as uint32, from an array of integers. None stays None."""
    import numpy as np

    if value is None:
        return None
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu" or value.ndim != 1:
        raise TypeError(f"{name}: expected a one-dimensional numpy array of integers")
    if value.size and (value.min() < 0 or value.max() > 2**32 - 1):
        raise ParameterError(f"{name}: values must fit in uint32")
    return np.ascontiguousarray(value, dtype=np.uint32)


def chunk(name: str, value: object) -> float | int:
    """Return a share of the records, a float above 0 and at most 1, or their number."""
    import numpy as np

    if not isinstance(value, float | np.floating):
        return integer(name, value, 1, 2**63 - 1)
    if not 0 < value <= 1:
        raise ParameterError(
            f"{name}: {value} is not a share above 0 and at most 1. For a number of records, pass an int"
        )
    return float(value)


def number_or(name: str, value: object, word: str) -> float | str:
    """Return a number, or the one valid word."""
    if not isinstance(value, str):
        return number(name, value)
    if value != word:
        raise ParameterError(f"{name}: expected a number or {word!r}, got {value!r}")
    return value


def flag(name: str, value: object) -> bool:
    """Return a bool. Refuse anything else: the string "false" would be true."""
    if not isinstance(value, bool):
        raise TypeError(f"{name}: expected True or False, got {type(value).__name__}")
    return value


def mark(name: str, value: object) -> None:
    """Check the mark that comments begin with. None is the default, and an empty one is no mark."""
    if value is None:
        return
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected a string, got {type(value).__name__}")
    if value[:1].isalnum() or value[:1].isspace() or value[:1] == '"':
        raise ParameterError(f"{name}: {value!r:.80} begins as records do. Use a mark such as '#'")


def choice(name: str, value: object, valid: Mapping[Word, Any] | tuple[Word, ...]) -> Word:
    """Return one of the valid names."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected a string, got {type(value).__name__}")
    if value not in valid:
        known = ", ".join(map(repr, valid))
        raise ParameterError(
            f"{name}: unknown value {value!r}. Valid values are {known}{meant(value, valid)}"
        )
    return value  # type: ignore[return-value]


def rows_io(value: object) -> RowsIo | None:
    """Return how files of rows are read, if it is not left to their size."""
    return None if value is None else choice("io", value, get_args(RowsIo))


def meant(word: str, valid: Iterable[str]) -> str:
    """Return "Did you mean ...?" for the end of an error message, if a valid word is close or has it in its name."""
    plain = {each.strip("-"): each for each in valid}
    small = word.strip("-").lower()
    longer = [each for each in plain if small in re.split("[-_]", each) and small != each]
    close = (
        longer if 0 < len(longer) < 4 else get_close_matches(small, plain, n=1, cutoff=0.65)
    )  # cache is no machines
    return f". Did you mean {' or '.join(repr(plain[each]) for each in close)}?" if close else ""


_ELSEWHERE = {
    "num_parts": "k", "n_parts": "k", "nparts": "k", "parts": "k", "num_partitions": "k", "npart": "k",
    "imbalance": "balance", "epsilon": "balance", "ufactor": "balance", "contiguous": "connected",
    "standardize": "standardise", "normalise": "standardise", "normalize": "standardise",
    "num_neighbors": "fanouts", "fanout": "fanouts", "hidden_channels": "hidden", "hidden_size": "hidden",
    "num_layers": "layers", "num_epochs": "epochs", "learning_rate": "lr", "num_workers": "workers",
    "cache": "memory", "directed": "directedness", "output": "out", "num_threads": "threads", "random_state": "seed",
}  # fmt: skip
"""Parameters as METIS, PyG, DGL and scikit-learn call them, and their names here."""


def meant_parameter(word: str, valid: Mapping[str, str]) -> str:
    """Return "Did you mean ...?" as :func:`meant` does, for a parameter. Other libraries' names are known, too.

    ``valid`` holds the spelling of each parameter: its name in Python, its option in the shell.
    """
    plain = word.strip("-").lower().replace("-", "_")
    named = valid.get(_ELSEWHERE.get(plain, ""))
    return f". Did you mean {named!r}?" if named else meant(word, valid.values())


def no_parameter(function: str, word: str, valid: Iterable[str], why: str = "") -> TypeError:
    """Return the error for a keyword argument that a function does not take."""
    known = list(valid)
    close = meant_parameter(word, {name: name for name in known})
    rest = f": {why}" if why else close or f". Its parameters: {', '.join(known) or 'none'}"
    return TypeError(f"{function}() has no parameter {word!r}{rest}")


def memory_size(value: int | str | None, name: str = "memory_limit", low: int = 1) -> int | None:
    """Return bytes from an integer or from text such as ``"4G"``, ``"512M"`` (powers of 1024)."""
    if value is None:
        return None
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d{1,20}(?:\.\d{1,20})?)\s*([KMGT]?)(?:i?B)?\s*", value, re.IGNORECASE)
        if match is None:
            raise ParameterError(
                f"{name}: {value!r} is not a size. Write bytes, or a size such as 4G or 512M"
            )
        if "." in match[1] and not match[2]:
            raise ParameterError(
                f"{name}: {value!r} has no unit and is no whole number. Write bytes, or a size such as 4G or 512M"
            )
        value = int(float(match[1]) * _UNITS[match[2].upper()])
    return integer(name, value, low, 2**63 - 1)


def size(name: str, value: Any) -> int | None:
    """Return bytes as :func:`memory_size` does. There may be none."""
    return memory_size(value, name, 0)


def seconds(name: str, text: str) -> float:
    """Return seconds from a number of them, or from text such as ``90s``, ``5m``, ``1.5h``."""
    match = re.fullmatch(r"\s*(\d{1,20}(?:\.\d{1,20})?)\s*([smh]?)\s*", text, re.IGNORECASE)
    if match is None:
        raise ParameterError(
            f"{name}: {text!r} is not a time. Write seconds, or a time such as 90s, 5m or 1h"
        )
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2].lower()]


def sized(count: int) -> str:
    """Return a number of bytes as messages show it."""
    value = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.{0 if unit == 'bytes' else 1}f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def from_text(name: str, text: str, annotation: str) -> Any:
    """Convert a word of the command line to the type that the parameter's annotation names."""
    types = set(re.findall(r"\w+", re.sub(r"Literal\[[^]]*\]", "str", annotation)))
    if "None" in types and text.lower() == "none":
        return None
    if "Fanouts" in types:
        return _fanouts(name, text)
    if "Mapping" in types and ("=" in text or not {"int", "Any"} & types):
        value = "int" if "int" in types else "str" if "Any" in types else "float"
        value += " | str" if {"int", "Any"} <= types else ""
        return dict(_pair(name, word.strip(), value) for word in text.split(","))
    if types & {"Sequence", "Iterable", "tuple"}:
        item = next((each for each in ("int", "float") if each in types), "str")
        item = next((pair for pair in ("int | str", "float | str") if f"[{pair}]" in annotation), item)
        return [from_text(name, word.strip(), item) for word in text.split(",")]
    if "bool" in types:
        if text.lower() not in ("true", "false"):
            raise ParameterError(f"{name}: {text!r} is not a truth value. Write true or false")
        return text.lower() == "true"
    with suppress(ValueError):
        if "int" in types:
            return int(text)
    with suppress(ValueError):
        number = float(text)
        if "float" in types:
            return number
        if "int" in types and number.is_integer():  # as 1e9
            return int(number)
    if types & {"int", "float"} and "str" not in types:
        raise ParameterError(f"{name}: {text!r} is not a number")
    return text


def _fanouts(name: str, text: str) -> Any:
    """Return fanouts of all relations, as in ``15,10``, or those of each, as in ``cites=15:10,writes=5:5``."""
    if "=" not in text:
        return from_text(name, text, "Sequence[int]")
    pairs = (word.strip().partition("=") for word in text.split(","))
    return {
        key: from_text(f"{name}: {key}", hops.replace(":", ","), "Sequence[int]") for key, _, hops in pairs
    }


def _pair(name: str, word: str, of: str) -> tuple[str, Any]:
    """Return the name and the number of ``NAME=NUMBER``."""
    key, _, value = word.partition("=")
    if not (key and value):
        raise ParameterError(
            f"{name}: {word!r} is not a name and a number. Write them as in cites=2,writes=0.5"
        )
    return key, from_text(f"{name}: {key}", value, of)


def shown(path: str | Path) -> str:
    """Return a path as one line. Invalid UTF-8 is replaced, and control characters are escaped."""
    text = re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", os.fspath(path))
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", lambda match: match[0].encode("unicode_escape").decode(), text)


def one_line(text: object, most: int | None = None) -> str:
    """Return text as one line of valid UTF-8, of at most so many letters. What is not printable is escaped."""
    words = " ".join(str(text).encode(errors="replace").decode().split())
    line = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in words)
    return line if most is None or len(line) <= most else f"{line[: most - 1]}\N{HORIZONTAL ELLIPSIS}"


def output(out: object, suffixes: Sequence[str]) -> Path:
    """Return the target. Refuse an unknown suffix."""
    target = path("out", out)
    if target.suffix not in suffixes:
        valid = " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))
        raise ParameterError(f"out: unknown suffix {target.suffix!r} of {shown(target)}. Use {valid}")
    return target


def in_folder(target: Path) -> Path:
    """Return an output. Refuse it if its folder does not exist."""
    if not target.parent.is_dir():
        text = "the folder of the output does not exist. Create it first"
        raise FileNotFoundError(errno.ENOENT, text, str(target.parent))
    return target


def regular(file: Path) -> Path:
    """Return a file. Refuse a FIFO, a device or the like, where reading may block. The file need not exist."""
    try:
        mode = file.stat().st_mode
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise GraphFormatError(
                f"{shown(file)}: not a regular file, but a link that leads back to itself"
            ) from None
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return file
        raise
    if not stat.S_ISREG(mode):
        raise GraphFormatError(f"{shown(file)}: not a regular file")
    return file


def path(name: str, value: object) -> Path:
    """Return a path from str, bytes or PathLike."""
    if not isinstance(value, str | bytes | os.PathLike):
        raise TypeError(f"{name}: expected a path, got {type(value).__name__}")
    text = os.fsdecode(value)
    if not text or "\0" in text:
        raise ParameterError(f"{name}: {text!r} is not a path")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        encoding = sys.getfilesystemencoding()
        raise ParameterError(
            f"{name}: {text!a} is not a path in the encoding of the locale, {encoding}"
        ) from None
    return Path(text)
