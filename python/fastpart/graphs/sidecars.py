"""The sidecar of a file of raw edges: what the file holds, and which files beside it belong to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from .. import _core
from ..core.parameters import Directedness, IdType, choice, integer, regular, shown
from ..errors import GraphFormatError
from .types import TypedRanges
from .weights import Weights, check_description

DIRECTEDNESS: tuple[Directedness, ...] = get_args(Directedness)
RECORD_BYTES: dict[IdType, int] = {"u32": 8, "i32": 8, "u64": 16, "i64": 16}

Companions = dict[str, tuple[int, str]]
"""Size and xxh3-128 of files beside the edges, by suffix, as ``labels.npy`` of ``FILE.labels.npy``."""

INTERRUPTED = "replacing"
"""The key of a sidecar while files are being replaced. It holds the companions of the old file and of the new one."""


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
        try:
            content = json.loads(text)
            if content.get("fastpart") != 1:
                return None  # a file of another program
            if INTERRUPTED not in content:
                return cls._of(content)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise GraphFormatError(
                f"{shown(beside)}: not a sidecar of fastpart ({error}). Delete it or write it again"
            ) from None
        raise GraphFormatError(
            f"{shown(file)}: it was being replaced when the process ended, and may not belong to the files beside it. "
            f"Write it again. To open it as it is, delete {shown(beside)}"
        )

    @classmethod
    def _of(cls, content: dict[str, Any]) -> Sidecar:
        # Earlier versions called the directedness "kind".
        directedness = choice("directedness", content.get("directedness", content.get("kind")), DIRECTEDNESS)
        weights = check_description(content.get("weights"))
        companions = None if "companions" not in content else companions_of(content["companions"])
        sizes = content["n"], content["m"]
        sidecar = cls(content["dtype"], *sizes, directedness, content.get("checksum"), weights, companions)
        choice("dtype", sidecar.dtype, RECORD_BYTES)
        integer("n", sidecar.n, 0, 2**32 - 1)
        integer("m", sidecar.m, 0, 2**60)
        if "types" in content or "relations" in content:
            typed = TypedRanges.of(content["types"], content["relations"], *sizes, directedness)
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
    return {
        suffix: (integer("size", each["size"], 0, 2**63 - 1), str(each["xxh3"]))
        for suffix, each in listed.items()
    }


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
            f"{shown(file)}. Delete both, or pass weights=False"
        )
    return (weights if weights.exists() else None), None
