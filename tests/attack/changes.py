"""Changes to files that an attack makes: damaged bytes, hostile values, and what is no regular file in their place.

Every function takes the path and the source of chance, changes what is there, and says how. The same seed and the same
files give the same change.
"""

import gzip
import io
import json
import os
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 2, 3, 127, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**30,
    -(2**63), 0.5, 2.0, -0.5, 1e308, float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
"""Numbers that stand in the place of others."""

VALUES: tuple[Any, ...] = (
    *NUMBERS, *NUMBERS, None, True, False, "", "x", "8", "../../etc", "\0", "\ud800", "a" * 5000, [], {}, [[]],
    [None], [-1], [2**40, 2**40], ["x"], {"x": 1}, {"dtype": "float32"}, {"dtype": "O", "shape": [2]},
)  # fmt: skip
"""Values that stand in the place of others in JSON."""

TOKENS = (
    "", "-1", "0", "1", "4294967294", "4294967295", "4294967296", "18446744073709551615", "18446744073709551616",
    "9" * 40, "1.5", "1e3", "nan", "inf", "x", "0x10", "+1", "\0", "\xff", "#", "%", ",", "\t", "\r", "\n", " ",
    "\n\n", '"', '"1"', "1 2 3", "1;2", "\ufeff", "\u0661",
)  # fmt: skip
"""Words that stand in the place of others in text."""

DTYPES = (
    "<u1",
    "<i2",
    "<u2",
    "<i4",
    "<u4",
    "<i8",
    "<u8",
    "<f4",
    "<f8",
    ">i4",
    ">f8",
    "<c8",
    "?",
    "<U3",
    "S2",
    "M8[s]",
)

MOVED = ".moved"
"""Ends the name of what a link leads to that took its place."""


def change(path: Path, chance: Random, others: list[Path]) -> str:
    """Change one file or folder. ``others`` are files whose content may take its place."""
    if path.is_dir():
        return replaced(path, chance, others)
    kind = chance.choices(("format", "bytes", "place"), weights=(5, 4, 1))[0]
    if kind == "place":
        return replaced(path, chance, others)
    by_suffix = _BY_SUFFIX.get(path.suffix)
    if kind == "format" and by_suffix is not None:
        return by_suffix(path, chance)
    return bytes_changed(path, chance)


def bytes_changed(path: Path, chance: Random) -> str:
    """Damage the bytes of a file in one to three ways."""
    content = bytearray(path.read_bytes())
    told = [_damage(content, chance) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
    path.write_bytes(bytes(content))
    return ", ".join(told)


def _damage(content: bytearray, chance: Random) -> str:
    at = chance.randrange(len(content) + 1)
    length = chance.choice((1, 1, 2, 4, 8, 64, 4096))
    match chance.choice(
        ("flip", "flip", "flip", "set", "word", "cut", "grow", "drop", "insert", "swap", "repeat")
    ):
        case "flip" if at < len(content):
            bit = chance.randrange(8)
            content[at] ^= 1 << bit
            return f"bit {bit} of byte {at} flipped"
        case "set":
            value = chance.choice(b'\0\xff\x7f\x80019-(,\n "{')
            content[at : at + length] = bytes([value]) * len(content[at : at + length])
            return f"bytes {at}..{at + length} set to {value}"
        case "word":
            width = chance.choice((4, 8))
            at -= at % width
            value = chance.choice([number for number in NUMBERS if isinstance(number, int)]) % (
                1 << 8 * width
            )
            content[at : at + width] = value.to_bytes(width, "little")
            return f"the {width}-byte word at {at} set to {value}"
        case "cut":
            del content[at:]
            return f"cut to {at} bytes"
        case "grow":
            content += chance.randbytes(length) if chance.random() < 0.5 else bytes(length)
            return f"{length} bytes longer"
        case "drop":
            del content[at : at + length]
            return f"bytes {at}..{at + length} dropped"
        case "insert":
            content[at:at] = chance.randbytes(length)
            return f"{length} bytes put in at {at}"
        case "swap":
            other = chance.randrange(len(content) + 1)
            first, second = min(at, other), max(at, other)
            size = min(length, second - first)
            one, two = content[first : first + size], content[second : second + size]
            if len(one) == len(two):
                content[first : first + size], content[second : second + size] = two, one
            return f"{size} bytes at {first} and {second} swapped"
        case _:
            content[at:at] = content[max(at - length, 0) : at]
            return f"{length} bytes before {at} repeated"


def replaced(path: Path, chance: Random, others: list[Path]) -> str:
    """Put something else in the place of a file or folder."""
    what = chance.choice(
        ("gone", "gone", "empty", "folder", "pipe", "loop", "zeros", "null", "dangling", "link", "other")
    )
    apart = path.with_name(f"{path.name}{MOVED}")
    if what == "link":
        path.rename(apart)
        path.symlink_to(apart.name)
        return "a symbolic link to what it was"
    other = chance.choice(others) if others else None
    content = other.read_bytes() if other is not None and other.is_file() else b"?"
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
    match what:
        case "empty":
            path.touch()
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "loop":
            path.symlink_to(path.name)
        case "zeros":
            path.symlink_to("/dev/zero")
        case "null":
            path.symlink_to("/dev/null")
        case "dangling":
            path.symlink_to("nowhere")
        case "other":
            path.write_bytes(content)
            return f"the content of {other.name if other else '?'}"
    return what


def json_changed(path: Path, chance: Random) -> str:
    """Change a value, a key or the form of a JSON file."""
    try:
        content = json.loads(path.read_bytes())
    except ValueError:
        return bytes_changed(path, chance)
    content, told = _value_changed(content, chance)
    path.write_text(json.dumps(content, indent=1))
    return told


def _value_changed(content: Any, chance: Random) -> tuple[Any, str]:
    """Change JSON, or nested values of any other kind."""
    places = list(_places(content, ()))
    if not places:
        value = chance.choice(VALUES)
        return value, f"all is {value!r:.60}"
    at = chance.choice(places)
    holder = content
    for step in at[:-1]:
        holder = holder[step]
    name = ".".join(map(str, at))
    match chance.choice(("value", "value", "value", "value", "gone", "nested", "deep", "near")):
        case "gone":
            del holder[at[-1]]
            return content, f"{name} gone"
        case "nested":
            holder[at[-1]] = [holder[at[-1]]]
            return content, f"{name} in a list"
        case "deep":
            for _ in range(500):
                holder[at[-1]] = [holder[at[-1]]]
            return content, f"{name} in 500 lists"
        case "near" if isinstance(holder[at[-1]], int):
            holder[at[-1]] = holder[at[-1]] + chance.choice((-1, 1))
            return content, f"{name} is {holder[at[-1]]}"
    value = chance.choice(VALUES)
    holder[at[-1]] = value
    return content, f"{name} is {value!r:.60}"


def _places(content: Any, at: tuple[Any, ...]) -> Any:
    """Yield the paths of all values below."""
    inner = (
        content.items()
        if isinstance(content, dict)
        else enumerate(content)
        if isinstance(content, list)
        else ()
    )
    for key, value in inner:
        yield (*at, key)
        yield from _places(value, (*at, key))


def npy_changed(path: Path, chance: Random) -> str:
    """Change the header, the dtype, the shape or values of an array."""
    content, told = _npy_changed(path.read_bytes(), chance)
    path.write_bytes(content)
    return told


def _npy_changed(content: bytes, chance: Random) -> tuple[bytes, str]:
    how = chance.choice(
        ("header", "header", "dtype", "shape", "values", "values", "values", "values", "objects")
    )
    if how == "header":
        return _header_changed(content, chance)
    array = np.load(io.BytesIO(content), allow_pickle=False)
    told = how
    match how:
        case "dtype":
            dtype = np.dtype(chance.choice(DTYPES))
            told = f"dtype {dtype}"
            with np.errstate(all="ignore"):
                try:
                    array = array.astype(dtype)
                except (TypeError, ValueError):
                    array = np.zeros(array.shape, dtype)
        case "shape":
            array, told = _shape_changed(array, chance)
        case "values":
            array, told = _values_changed(array, chance)
        case _:
            array = np.array([None] * len(np.atleast_1d(array)), dtype=object)
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue(), told


def _header_changed(content: bytes, chance: Random) -> tuple[bytes, str]:
    """Put another number, dtype or word into the header, which keeps its length where it can."""
    size = int.from_bytes(content[8:10], "little")
    header = content[10 : 10 + size].rstrip()
    spots = list(re.finditer(rb"\d+|'[<>|][a-z]\d+'|True|False|\(|\)|'shape'", header))
    spot = chance.choice(spots)
    if spot[0].isdigit():
        new = str(chance.choice([number for number in NUMBERS if isinstance(number, int)])).encode()
    elif spot[0].startswith(b"'<") or spot[0].startswith(b"'|") or spot[0].startswith(b"'>"):
        new = f"'{chance.choice((*DTYPES, '|O', '<f2', '|V7', '<i9999999999'))}'".encode()
    else:
        new = chance.choice((b"True", b"False", b"((", b"", b"-", b"None", b"lambda: 0", b"(" * 200))
    header = header[: spot.start()] + new + header[spot.end() :]
    length = -(-(len(header) + 1 + 10) // 64) * 64 - 10
    header = header.ljust(length - 1) + b"\n"
    return content[:8] + len(header).to_bytes(2, "little") + header + content[
        10 + size :
    ], f"header: {spot[0]!r} is {new[:40]!r}"


def _shape_changed(array: np.ndarray, chance: Random) -> tuple[np.ndarray, str]:
    array = np.atleast_1d(array)
    changed = chance.choice(
        (array[1:], array[:-1], array[:0], np.concatenate([array, array]), array[None], array.reshape(-1), array.T,
         np.zeros((*array.shape, 0), array.dtype), array[..., None], np.asfortranarray(array), np.array(3))
    )  # fmt: skip
    return changed, f"shape {changed.shape}"


def _values_changed(array: np.ndarray, chance: Random) -> tuple[np.ndarray, str]:
    """Set one value or all to a hostile one that the dtype holds."""
    array = np.array(array)
    if not array.size:
        return array, "nothing"
    flat = array.reshape(-1)
    at = chance.randrange(flat.size)
    match array.dtype.kind:
        case "i" | "u":
            least, most = np.iinfo(array.dtype).min, np.iinfo(array.dtype).max
            near = int(flat.max()) + chance.choice((0, 1, 2, 10))
            value = chance.choice(
                (least, most, most - 1, -1, 0, near, near, len(array), 10**9, int(flat[at]) + 1)
            )
            value = min(max(value, least), most)
        case "f":
            value = chance.choice((np.nan, np.inf, -np.inf, -1.0, 0.5, 3e38, 0.0))
        case "b":
            value = not flat[at]
        case _:
            return array, "nothing"
    where: Any = chance.choice((at, at, at, slice(None), slice(at, None)))
    flat[where] = value
    return array, f"values at {where} are {value}"


def npz_changed(path: Path, chance: Random) -> str:
    """Change one array of an archive, its name, or what is there."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = chance.choice(sorted(members))
    match chance.choice(("array", "array", "array", "array", "gone", "name", "bomb", "more")):
        case "gone":
            del members[name]
            told = f"{name} gone"
        case "name":
            members[chance.choice(("x.npy", "../x.npy", "train", "train_masks.npy", " "))] = members.pop(name)
            told = f"{name} renamed"
        case "bomb":
            header = io.BytesIO()
            np.lib.format.write_array_header_1_0(
                header, {"descr": "<i8", "fortran_order": False, "shape": (1 << 23,)}
            )
            members[name] = header.getvalue() + bytes(8 << 23)
            told = f"{name} unpacks to {8 << 23} bytes"
        case "more":
            members["extra.npy"] = members[name]
            told = f"{name} twice"
        case _:
            members[name], told = _npy_changed(members[name], chance)
            told = f"{name}: {told}"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return told


def text_changed(path: Path, chance: Random) -> str:
    """Put another word in the place of one, or another line."""
    content, told = _text_changed(path.read_text(encoding="latin-1"), chance)
    path.write_text(content, encoding="utf-8" if chance.random() < 0.5 else "latin-1", errors="replace")
    return told


def _text_changed(text: str, chance: Random) -> tuple[str, str]:
    words = list(re.finditer(r"\S+", text))
    if not words:
        return "x", "x"
    spot = words[0] if chance.random() < 0.2 else chance.choice(words)
    word = chance.choice(TOKENS)
    return text[: spot.start()] + word + text[
        spot.end() :
    ], f"{spot[0]!r:.30} at {spot.start()} is {word!r:.30}"


def gzip_changed(path: Path, chance: Random) -> str:
    """Change the text inside."""
    content, told = _text_changed(gzip.decompress(path.read_bytes()).decode("latin-1"), chance)
    path.write_bytes(gzip.compress(content.encode("utf-8", "replace"), mtime=0))
    return told


def parquet_changed(path: Path, chance: Random) -> str:
    """Change a column, its name, its dtype, or the metadata."""
    import polars as pl

    frame = pl.read_parquet(path)
    metadata = {name: value for name, value in pl.read_parquet_metadata(path).items() if name == "fastpart"}
    name = chance.choice(frame.columns)
    told = name
    match chance.choice(("value", "value", "dtype", "gone", "name", "rows", "metadata", "metadata")):
        case "metadata" if metadata:
            content, told = _value_changed(json.loads(metadata["fastpart"]), chance)
            metadata["fastpart"] = json.dumps(content)
        case "dtype":
            dtype = chance.choice(
                (
                    pl.String,
                    pl.Float64,
                    pl.Int8,
                    pl.Boolean,
                    pl.Null,
                    pl.List(pl.Int64),
                    pl.Datetime,
                    pl.UInt64,
                )
            )
            # Polars casts no numbers to lists, and no text to times.
            bare = isinstance(dtype, pl.List) or (dtype == pl.Datetime and frame.schema[name] == pl.String)
            values = (
                pl.lit(None, dtype)
                if bare or chance.random() < 0.3
                else pl.col(name).cast(dtype, strict=False)
            )
            frame = frame.with_columns(values.alias(name))
            told = f"{name} is {dtype}"
        case "gone":
            frame = frame.drop(name)
            told = f"{name} gone"
        case "name":
            frame = frame.rename({name: chance.choice(("x", "", "part ", "Part"))})
            told = f"{name} renamed"
        case "rows":
            frame = chance.choice((frame[:0], frame[1:], pl.concat([frame, frame])))
            told = f"{len(frame)} rows"
        case _:
            column, at = frame[name].cast(pl.Int64, strict=False), chance.randrange(max(len(frame), 1))
            value = chance.choice((None, -1, 2**31, 2**32 - 1, 2**62, 0))
            frame = frame.with_columns(
                pl.Series(name, [value if i == at else v for i, v in enumerate(column)], pl.Int64)
            )
            told = f"{name}[{at}] is {value}"
    frame.write_parquet(path, metadata=metadata)
    return told


def torch_changed(path: Path, chance: Random) -> str:
    """Change a value, a tensor or a key of what torch saved."""
    import torch

    content = torch.load(path, weights_only=True)
    places = list(_places(content, ()))
    at = chance.choice(places)
    holder = content
    for step in at[:-1]:
        holder = holder[step]
    old, name = holder[at[-1]], ".".join(map(str, at))
    if isinstance(old, torch.Tensor) and chance.random() < 0.8:
        new: Any = chance.choice(
            (old[None], old.reshape(-1)[:1], old.double(), old.long(), torch.full_like(old, -1),
             old * float("nan") if old.is_floating_point() else old + 1, torch.zeros(0),
             old.to_sparse() if old.ndim else old)
        )  # fmt: skip
    elif isinstance(old, str) and old.startswith(("{", "[")) and chance.random() < 0.8:
        value, told = _value_changed(json.loads(old), chance)
        new, name = json.dumps(value), f"{name}: {told}"
    elif chance.random() < 0.2:
        del holder[at[-1]]
        torch.save(content, path)
        return f"{name} gone"
    else:
        new = chance.choice([value for value in VALUES if value != "\ud800"])
    holder[at[-1]] = new
    torch.save(content, path)
    return f"{name} is {new!r:.60}"


_BY_SUFFIX: dict[str, Callable[[Path, Random], str]] = {
    ".json": json_changed,
    ".npy": npy_changed,
    ".npz": npz_changed,
    ".parquet": parquet_changed,
    ".txt": text_changed,
    ".tsv": text_changed,
    ".csv": text_changed,
    ".graph": text_changed,
    ".gz": gzip_changed,
    ".pt": torch_changed,
}
