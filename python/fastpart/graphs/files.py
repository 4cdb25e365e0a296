"""The files that a source of edges names: what they are, and their content unpacked.

:func:`recognised_files` tells what a path, a list of paths or a URL is.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

from .. import _core
from ..core.folders import leads_out
from ..core.frames import before_polars_threads, pl
from ..core.parameters import path, shown
from ..core.parsing import damaged
from ..core.text_files import refuse_expanding
from ..errors import FastpartError, GraphFormatError, ParameterError, code
from .graph_directory import MARKER
from .sidecars import Sidecar
from .sources import Arguments

Kind = Literal["text", "metis", "matrix", "npy", "binedgelist", "parquet", "raw"]

SUFFIXES = (".txt", ".tsv", ".csv", ".parquet", ".edges", ".el")
"""Suffixes of the files that are read in a folder, also with one of :data:`PACKED`."""

PACKED = (".gz", ".bz2", ".xz", ".zst")

_WHOLE = ("metis", "matrix", "binedgelist")
"""Formats of which each file is a whole graph."""

_GLOB = r"[*?\[]"
"""What makes a path a glob."""

_MAGICS = {"bzip2": b"BZh", "xz": b"\xfd7zXZ\0", "zstd": b"\x28\xb5\x2f\xfd"}
_BLOCKS_OF_BZIP2 = (b"1AY&SY", b"\x17rE8P\x90")
"""What follows the head of a bzip2 file: its first block, or the end of a file without content."""

_BLOCK = 1 << 20

_ONE_URL = code(
    "fp.open_graph reads one, or a frame such as polars.scan_parquet([URL, URL])",
    "Commands that read a graph take one URL",
)

_OPENED = code(
    "fp.open_partition opens it",
    "`fastpart evaluate GRAPH DIRECTORY` measures it, and `fastpart verify DIRECTORY` checks it",
)


@dataclass(frozen=True)
class Files:
    """Files whose records come in this order.

    ``path``: the file or folder that the user named, if there is one. ``names``: how messages call copies that the user
    does not know.
    """

    files: tuple[Path, ...]
    path: Path | None = None
    names: Mapping[Path, str] = field(default_factory=dict)

    def name_of(self, file: Path) -> str:
        """Return how messages call a file."""
        return self.names.get(file, shown(file))

    def __str__(self) -> str:
        if self.path is not None:
            return shown(self.path)
        first = self.name_of(self.files[0])
        return first if len(self.files) == 1 else f"{first} and {len(self.files) - 1} more"


def names_files(source: Any) -> bool:
    """Return whether a source is a path or a list of paths."""
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(each, str | bytes | os.PathLike) for each in source)
    return isinstance(source, str | bytes | os.PathLike)


def is_standard_input(source: Any) -> bool:
    """Return whether a source is ``-``."""
    return isinstance(source, str) and source == "-"


def is_url(source: Any) -> bool:
    """Return whether a source is a URL."""
    return isinstance(source, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", source) is not None


def recognised_files(source: Any, given: Arguments) -> Path | Files | str:
    """Return what is named: a file of raw records, a graph directory, files to convert, a URL or ``-``."""
    if is_standard_input(source) or is_url(source):
        return str(source)
    if isinstance(source, list | tuple) and len(source) == 1:
        source = source[0]
    if not isinstance(source, list | tuple):
        file = path("graph", source)
        if (file / MARKER).is_file():
            for name in ("columns", "comments"):
                given.refuse(name, f"{shown(file)} is a graph directory")
            return file
        if given.dtype is not None or _is_raw(file):
            given.refuse("comments", f"{shown(file)} holds raw records. It applies to text")
            for name in ("columns", "relabel"):
                given.refuse(name, f"{shown(file)} holds raw records. `fastpart convert` relabels these")
            if isinstance(given.weights, int) and given.weights is not False:
                raise ParameterError(f"weights: {shown(file)} has no columns. Pass a .npy or an array")
            return file
    if given.dtype is not None:
        raise ParameterError("dtype: applies to a raw file. Leave it out for several files")
    return files_of("graph", source)


def _is_raw(file: Path) -> bool:
    """Return whether a file is read in place, or refused as one that is. A folder or a glob is not."""
    if file.is_dir():
        return False
    if not os.path.lexists(file):
        return not re.search(_GLOB, str(file))
    if not file.is_file():
        return True
    return Sidecar.of(file) is not None or (packing(file) is None and kind_of(file) in ("raw", "npy"))


def files_of(parameter: str, source: Any) -> Files:
    """Return the files that a path, a glob, a folder or a list of these names.

    The files of a glob and of a folder are in the order of the bytes of their paths.
    """
    if isinstance(source, list | tuple):
        found = [file for each in source for file in files_of(parameter, each).files]
        return Files(tuple(found))
    place = path(parameter, source)
    if re.match(r"[a-z][a-z0-9+.-]*://", os.fsdecode(source)):
        raise ParameterError(
            f"{parameter}: {shown(os.fsdecode(source))} is a URL, and stands alone. {_ONE_URL}"
        )
    if place.is_dir():
        return Files(_in_folder(place), place)
    if not os.path.lexists(place) and (pattern := _glob(place)):
        if not (matches := [file for file in pattern if file.is_file()]):
            raise FileNotFoundError(errno.ENOENT, "no file matches", str(place))
        for file in matches:
            _refuse_outside(file, _root_of(place))
        return Files(tuple(sorted(matches, key=os.fsencode)))
    return Files((place,), place)


def _glob(path: Path) -> Iterator[Path] | None:
    """Return the files that match a glob, or None for a path that is none."""
    if not re.search(_GLOB, str(path)):
        return None
    return ((path.anchor and Path(path.anchor)) or Path()).glob(str(path.relative_to(path.anchor)))


def _root_of(pattern: Path) -> Path:
    """Return the folder where a glob begins."""
    return next(each for each in pattern.parents if not re.search(_GLOB, str(each)))


def _refuse_outside(file: Path, folder: Path) -> None:
    """Refuse a file of a folder that lies elsewhere: the edges are what lies in the folder."""
    if leads_out(file, folder):
        raise GraphFormatError(
            f"{shown(file)}: leads out of {shown(folder)} by a link. Put a copy in its place, or name the files in a "
            "list"
        )


def _in_folder(folder: Path) -> tuple[Path, ...]:
    """Return the files of a folder and the folders in it that hold edges by their names."""
    if (folder / "manifest.json").is_file():
        raise GraphFormatError(
            f"{shown(folder)}: not a regular file (a directory), but a partition directory, and no graph. {_OPENED}"
        )
    files = list(_below(folder))
    for file in files:
        if file.is_symlink():
            _refuse_outside(file, folder)
    found = [file for file in files if _holds_edges(file)]
    if not found:
        raise GraphFormatError(
            f"{shown(folder)}: not a regular file (a directory without files of edges: {', '.join(SUFFIXES)}, also "
            "packed). A graph directory has a graph.json"
        )
    if other := next((file for file in files if not _holds_edges(file)), None):
        raise GraphFormatError(
            f"{shown(folder)}: not a regular file (a directory, in which {shown(other)} holds no edges). Name the "
            "files, as by a glob"
        )
    return tuple(sorted(found, key=os.fsencode))


def _below(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, without those that other programs hide or mark, as ``_SUCCESS``."""
    for at, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        yield from (Path(at, name) for name in names if not name.startswith((".", "_")))


def _holds_edges(file: Path) -> bool:
    name = Path(file.stem) if file.suffix in PACKED else file
    return name.suffix in SUFFIXES and file.is_file()


def packing(file: Path) -> str | None:
    """Return how a file is compressed, if the core cannot unpack it. Raw records have a sidecar."""
    if not file.is_file():
        return None  # the core says what it is instead
    with file.open("rb") as opened:
        head = opened.read(10)
    found = next((name for name, magic in _MAGICS.items() if head.startswith(magic)), None)
    if found == "bzip2" and head[4:] not in _BLOCKS_OF_BZIP2:
        return None
    return None if found and Sidecar.of(file) is not None else found


def kind_of(file: Path, format: str | None = None) -> Kind:
    """Return what a file is, by its bytes and its name. One that is compressed by gzip is what it holds."""
    if format is not None:
        return cast(Kind, format)
    if file.suffix == ".parquet":
        return "parquet"
    if file.is_file():
        with file.open("rb") as opened:
            if opened.read(4) == b"PAR1" and Sidecar.of(file) is None:
                return "parquet"
    return cast(Kind, _core.format_of(file))


def one_kind(files: Files, format: str | None = None) -> Kind:
    """Return what all files are. Refuse files of several formats."""
    first = kind_of(files.files[0], format)
    for file in files.files[1:]:
        if first in _WHOLE:
            raise ParameterError(
                f"source: {files.name_of(files.files[0])} is a whole graph ({first}), but there are more files. "
                "Open one"
            )
        if (other := kind_of(file, format)) != first:
            raise ParameterError(
                f"source: {files.name_of(files.files[0])} is {first}, but {files.name_of(file)} is {other}. Give files "
                "of one format"
            )
    return first


@contextmanager
def unpacked(files: Files, folder: Path, memory_limit: int | None) -> Iterator[Files]:
    """Yield the files with those unpacked that the core cannot unpack. The copies lie in ``folder`` until the end.

    Errors name the files that the user gave.
    """
    import tempfile  # here, because its import is slow

    packed = {file: how for file in files.files if (how := packing(file))}
    names, copies = dict(files.names), {}
    for file, how in packed.items():
        if how == "zstd":
            refuse_expanding(os.fspath(file), memory_limit)
    copied = partial(tempfile.TemporaryDirectory, prefix=".unpacked-", dir=folder, ignore_cleanup_errors=True)
    with copied() if packed else nullcontext("") as into:
        for number, (file, how) in enumerate(packed.items()):
            copies[file] = _unpack(file, how, Path(into, str(number)), files.name_of(file))
            names[copies[file]] = files.name_of(file)
        with renamed(names):
            yield replace(files, files=tuple(copies.get(file, file) for file in files.files), names=names)


def _unpack(file: Path, how: str, into: Path, name: str) -> Path:
    """Write the content of a file, and return where. Its suffix is that of the file without the one of the packing."""
    into.mkdir()
    target = into / (file.stem if file.suffix in PACKED else file.name)
    with target.open("xb") as written:
        for block in _blocks(file, how, name):
            written.write(block)
    return target


def _blocks(file: Path, how: str, name: str) -> Iterator[bytes]:
    """Yield the content of a file, unpacked. Errors of the packing name the file."""
    import bz2
    import lzma  # here, because few need them

    try:
        with damaged(file, f"the {how} data are damaged or cut off. Fetch the file again"):
            if how == "zstd":
                before_polars_threads(f"{name}: a zstd file")
                for batch in pl.scan_lines(file).collect_batches(maintain_order=True):
                    yield ("\n".join(batch.to_series().to_list()) + "\n").encode()
                return
            with bz2.open(file) if how == "bzip2" else lzma.open(file) as reader:
                while block := reader.read(_BLOCK):
                    yield block
    except OSError as error:
        if error.errno is not None:
            raise
        raise GraphFormatError(
            f"{name}: the {how} data are damaged ({error}). Fetch the file again"
        ) from None


@contextmanager
def renamed(names: Mapping[Path, str]) -> Iterator[None]:
    """Put the names that the user knows into the errors about copies."""
    try:
        yield
    except FastpartError as error:
        text = str(error)
        for copy, name in names.items():
            text = text.replace(shown(copy), name)
        if text == str(error):
            raise
        raise type(error)(text) from None


def spooled(folder: Path) -> Files:
    """Return the standard input as a file in a folder."""
    import shutil

    if sys.stdin is None or sys.stdin.isatty():
        raise ParameterError("source: - is the standard input, which is a terminal. Pipe the edges into it")
    copy = folder / "stdin"
    with copy.open("xb") as written:
        shutil.copyfileobj(sys.stdin.buffer, written, _BLOCK)
    return Files((copy,), None, {copy: "stdin"})
