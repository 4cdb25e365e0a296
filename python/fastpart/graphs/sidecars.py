"""The sidecar of a file of raw edges: what the file holds, and which files beside it belong to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec

from .. import _core
from ..core.parameters import Directedness, IdType, regular, shown
from ..core.parsing import Count, checked_object, json_object
from ..errors import GraphFormatError, arg
from .types import TypedRanges
from .weights import Description, Weights

DIRECTEDNESS: tuple[Directedness, ...] = get_args(Directedness)
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


def weights_beside(file: Path) -> tuple[Path | None, dict[str, Any] | None]:
    """Return the weights beside a file, if there are any, and their entry in its sidecar.

    Refuse weights that belong to other records: to those that this sidecar describes.
    """
    weights, sidecar = Weights.beside(file), Sidecar.read(file)
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
