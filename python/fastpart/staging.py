"""Files that belong together, such as edges and their sidecar, appear together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import _core, parameters
from .errors import ParameterError
from .graph import Sidecar


@contextmanager
def staged(target: Path) -> Iterator[Path]:
    """Give the target's name in a folder of its own; in the end, all files in it move to where the target is.

    The folder vanishes on every way out. The old sidecar goes first and the new one comes last, so that a process
    that is killed meanwhile never leaves edges with the sidecar of others.
    """
    if target.exists() and not target.is_file():
        raise ParameterError(
            f"out: {parameters.shown(target)} is a directory, device or pipe; name a regular file"
        )
    target = Path(os.path.realpath(target))
    folder = _core.AtomicDir(beside(target, "staged"), "")
    try:
        inside = Path(folder.path)
        yield inside / target.name
        sidecar = Sidecar.beside(target)
        sidecar.unlink(missing_ok=True)
        for file in sorted(inside.iterdir(), key=lambda file: file.name == sidecar.name):
            os.replace(file, target.with_name(file.name))
    finally:
        folder.discard()


def beside(target: Path, suffix: str) -> Path:
    """Return ``TARGET.suffix``."""
    return target.with_name(f"{target.name}.{suffix}")
