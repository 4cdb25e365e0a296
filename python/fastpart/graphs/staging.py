"""Atomic output of files that belong together: edges, their sidecar, and its companions, such as labels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

from .. import _core
from ..core.notes import log
from ..core.options import RunOptions
from ..core.outputs import Owner, new_folder
from ..core.parameters import shown
from ..core.parsing import conform, json_object
from ..errors import ParameterError
from . import sidecars
from .sidecars import INTERRUPTED, Companion, Companions, Sidecar

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
    with new_folder(beside(target, "staged"), keep=False) as inside:
        yield inside / target.name
        new = _list(inside / target.name, run)
        if Sidecar.beside(inside / target.name).exists():
            replacing = [sidecars.described(each) for each in [*(listed or []), new]]
            sidecars.write(target, {INTERRUPTED: replacing})
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
        return [sidecars.companions_of(each) for each in listed]
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
