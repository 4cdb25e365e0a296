"""The sidecar of a file of raw edges, the files that it lists, and how all of them are written as one output."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from .. import _core
from ..core.notes import log
from ..core.options import RunOptions
from ..core.outputs import Owner, folder_beside
from ..core.parameters import Directedness, IdType, regular, shown
from ..core.parsing import Count, checked_object, conform, json_object
from ..errors import GraphFormatError, ParameterError, arg
from .types import TypedRanges
from .weights import Description, Weights

RECORD_BYTES: dict[IdType, int] = {"u32": 8, "i32": 8, "u64": 16, "i64": 16}

Companions = dict[str, tuple[int, str]]
"""Size and xxh3-128 of files beside the edges, by suffix, as ``labels.npy`` of ``FILE.labels.npy``."""

INTERRUPTED = "replacing"
"""The key of a sidecar while files are being replaced. It holds the companions of the old file and of the new one."""

VERSION = ("fastpart", 1)

_ANEW = "Delete it or write it again"


class Companion(msgspec.Struct):
    """The entry of a companion."""

    size: Count
    xxh3: str


class _Content(msgspec.Struct):
    """The fields of a sidecar. Types and relations are checked by :class:`.TypedRanges`."""

    dtype: IdType
    n: Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
    m: Annotated[int, msgspec.Meta(ge=0, le=2**60)]
    directedness: Directedness
    checksum: str | None = None
    weights: Description | None = None
    companions: dict[str, Companion] = {}
    types: list[dict[str, Any]] = []
    relations: list[dict[str, Any]] = []


@dataclass(frozen=True)
class Sidecar:
    """The content of ``FILE.json``, which describes the raw edge file beside it."""

    dtype: IdType
    n: int
    m: int
    directedness: Directedness
    checksum: str | None = None
    weights: dict[str, Any] | None = None
    """Scale and checksum of the weights of the records."""
    companions: Companions | None = None
    """The files that belong to the edges. None in sidecars of earlier versions."""
    typed: TypedRanges | None = None
    """Types and relations, if there are several of either."""

    @staticmethod
    def beside(file: Path) -> Path:
        """Return the path of the sidecar of ``file``."""
        return Path(f"{file}.json")

    @classmethod
    def read(cls, file: Path) -> Sidecar | None:
        """Return the sidecar of ``file``, or None if it has none."""
        beside = cls.beside(file)
        try:
            text = regular(beside).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        content = json_object(beside, text, None, _ANEW)
        if "fastpart" not in content:
            return None  # a file of another program
        if INTERRUPTED in checked_object(beside, content, None, _ANEW, VERSION):
            raise GraphFormatError(
                f"{shown(file)}: it was being replaced when the process ended, and may not belong to the files beside "
                f"it. Write it again. To open it as it is, delete {shown(beside)}"
            )
        # Earlier versions called the directedness "kind".
        content.setdefault("directedness", content.get("kind"))
        checked_object(beside, content, _Content, _ANEW)
        try:
            return cls._of(content)
        except (ValueError, TypeError, KeyError) as error:
            raise GraphFormatError(f"{shown(beside)}: not a sidecar of fastpart ({error}). {_ANEW}") from None

    @classmethod
    def _of(cls, content: dict[str, Any]) -> Sidecar:
        n, m, directedness = content["n"], content["m"], content["directedness"]
        companions = None if "companions" not in content else companions_of(content["companions"])
        more = content.get("checksum"), content.get("weights"), companions
        sidecar = cls(content["dtype"], n, m, directedness, *more)
        if "types" in content or "relations" in content:
            typed = TypedRanges.of(content["types"], content["relations"], n, m, directedness)
            sidecar = replace(sidecar, typed=typed if typed.several else None)
        return sidecar

    @classmethod
    def of(cls, file: Path) -> Sidecar | None:
        """Return the sidecar of ``file`` if there is one that matches the file's size."""
        sidecar = cls.read(file)
        return sidecar if sidecar is not None and file.exists() and sidecar.fits(file) else None

    def fits(self, file: Path) -> bool:
        """Return whether the size of the file matches the sidecar."""
        return self.m * RECORD_BYTES[self.dtype] == file.stat().st_size

    @property
    def content(self) -> dict[str, Any]:
        """The known entries, by name."""
        known = vars(self) | {"companions": described(self.companions or {}) or None, "typed": None}
        typed = self.typed.content if self.typed is not None and self.typed.several else {}
        return {name: value for name, value in known.items() if value is not None} | typed

    def write(self, file: Path) -> None:
        """Write the sidecar of ``file``."""
        write(file, self.content)


def write(file: Path, content: Mapping[str, Any]) -> None:
    """Write this content as the sidecar of ``file``."""
    text = json.dumps({"fastpart": 1, **content}, indent=1) + "\n"
    _core.write_file(Sidecar.beside(file), text.encode())


def described(companions: Companions) -> dict[str, Any]:
    """Return companions as a sidecar lists them."""
    return {suffix: {"size": size, "xxh3": xxh3} for suffix, (size, xxh3) in companions.items()}


def companions_of(listed: Mapping[str, Any]) -> Companions:
    """Return the companions that a sidecar lists. Refuse suffixes that lead elsewhere."""
    for suffix in listed:
        if not suffix or "/" in suffix or "\0" in suffix or suffix == "json":
            raise ValueError(f"companions: {suffix!r} is no suffix of a companion")
    return {suffix: (each["size"], each["xxh3"]) for suffix, each in listed.items()}


def weights_beside(file: Path, sidecar: Sidecar | None) -> tuple[Path | None, dict[str, Any] | None]:
    """Return the weights beside a file, if there are any, and their entry in its sidecar.

    Refuse weights that belong to other records: to those that this sidecar describes.
    """
    weights = Weights.beside(file)
    if sidecar is None or sidecar.fits(file):
        stated = None if sidecar is None else sidecar.weights
        return (weights if stated or weights.exists() else None), stated
    listed = (sidecar.companions or {}).get("weights.npy")
    if listed and weights.exists() and weights.stat().st_size == listed[0]:
        raise GraphFormatError(
            f"{shown(weights)}: belongs to the records that {shown(Sidecar.beside(file))} describes, not to those of "
            f"{shown(file)}. Delete both, or pass {arg('weights', False)}"
        )
    return (weights if weights.exists() else None), None


RAW = ("json", "weights.npy")
"""Suffixes of files that :func:`fastpart.open_graph` looks for beside raw edges."""


@contextmanager
def staged(target: Path, writes: Sequence[str], run: RunOptions) -> Iterator[Path]:
    """Yield the path of the target in a temporary folder. In the end, all files in the folder move beside the target.

    The new sidecar lists the files that come with it. Those that the old sidecar lists are removed, if they are as they
    were written. All else is the user's: a file with a suffix among ``writes`` is refused, before any work.

    A process that is killed in between leaves a sidecar that says so, and the next one goes on from there. So edges are
    never found with the sidecar or the companions of other edges. The folder is always removed.
    """
    if target.exists() and not target.is_file():
        raise ParameterError(
            f"out: {shown(target)} is a directory, device or pipe. Choose the name of a regular file"
        )
    target = Path(os.path.realpath(target))
    with Owner(target), _staged(target, writes, run) as file:
        yield file


@contextmanager
def _staged(target: Path, writes: Sequence[str], run: RunOptions) -> Iterator[Path]:
    listed = _listed(target)
    own = _own(target, listed or [], run)
    _refuse_foreign(target, writes, own if listed is None else ["json", *own])
    with folder_beside(target) as inside:
        yield inside / target.name
        new = _list(inside / target.name, run)
        if Sidecar.beside(inside / target.name).exists():
            replacing = [described(each) for each in [*(listed or []), new]]
            write(target, {INTERRUPTED: replacing})
        for suffix in own:
            beside(target, suffix).unlink(missing_ok=True)
        if listed is not None and not Sidecar.beside(inside / target.name).exists():
            Sidecar.beside(target).unlink(missing_ok=True)
        for name in (target.name, *(f"{target.name}.{suffix}" for suffix in (*new, "json"))):
            if (inside / name).exists():
                os.replace(inside / name, target.with_name(name))


def _listed(target: Path) -> list[Companions] | None:
    """Return the lists of companions in a sidecar of fastpart. None if there is no such sidecar.

    A link is none: what it leads to is that of other edges.
    """
    if Sidecar.beside(target).is_symlink():
        return None
    try:
        content = json_object(Sidecar.beside(target), None, {"fastpart": Literal[1]})
        listed = content.get(INTERRUPTED, [content.get("companions", {})])
        conform({INTERRUPTED: listed}, {INTERRUPTED: list[dict[str, Companion]]})
        return [companions_of(each) for each in listed]
    except (OSError, ValueError):
        return None


def _own(target: Path, listed: list[Companions], run: RunOptions) -> list[str]:
    """Return the suffixes of the listed files that are still as they were written."""
    found = []
    for suffix in dict.fromkeys(suffix for each in listed for suffix in each):
        file, stated = beside(target, suffix), [each[suffix] for each in listed if suffix in each]
        if not file.is_file():
            continue
        if file.stat().st_size in [size for size, _ in stated] and _core.hash_files([file], run)[0] in stated:
            found.append(suffix)
        else:
            log.info("%s is left: it changed after fastpart wrote it", shown(file))
    return found


def _refuse_foreign(target: Path, writes: Sequence[str], own: Sequence[str]) -> None:
    for file in (beside(target, suffix) for suffix in writes if suffix not in own):
        if os.path.lexists(file):
            raise ParameterError(
                f"out: {shown(file)} would be replaced, but {shown(Sidecar.beside(target).name)} does not list it as a "
                "file of fastpart. Move it away, or choose another output"
            )


def _list(file: Path, run: RunOptions) -> Companions:
    """Return the companions of a new file, and list them in its sidecar, if it has one."""
    names = sorted(each.name.removeprefix(f"{file.name}.") for each in file.parent.iterdir() if each != file)
    suffixes = [suffix for suffix in names if suffix != "json"]
    hashes = _core.hash_files([beside(file, suffix) for suffix in suffixes], run)
    companions = dict(zip(suffixes, hashes, strict=True))
    if (sidecar := Sidecar.read(file)) is not None:
        replace(sidecar, companions=companions).write(file)
    return companions


def beside(target: Path, suffix: str) -> Path:
    """Return ``TARGET.suffix``."""
    return target.with_name(f"{target.name}.{suffix}")
