"""Atomic output of files that belong together, such as edges and their sidecar."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import _core, parameters
from .errors import ParameterError
from .graph import Sidecar
from .weights import Weights


@contextmanager
def staged(target: Path) -> Iterator[Path]:
    """Yield the path of the target in a temporary folder. In the end, all files in the folder move beside the target.

    The folder is always removed. The old sidecar and the old weights are removed first. The new weights come behind the
    edges and the new sidecar comes last. So a process that is killed in between never leaves edges with the sidecar or
    the weights of other edges.
    """
    if target.exists() and not target.is_file():
        raise ParameterError(
            f"out: {parameters.shown(target)} is a directory, device or pipe. Choose the name of a regular file"
        )
    target = Path(os.path.realpath(target))
    folder = _core.AtomicDir(beside(target, "staged"))
    try:
        inside = Path(folder.path)
        yield inside / target.name
        last = [Weights.beside(target), Sidecar.beside(target)]
        for file in reversed(last):
            file.unlink(missing_ok=True)
        for file in sorted(
            inside.iterdir(), key=lambda file: [other.name == file.name for other in last[::-1]]
        ):
            os.replace(file, target.with_name(file.name))
    finally:
        folder.discard()


def beside(target: Path, suffix: str) -> Path:
    """Return ``TARGET.suffix``."""
    return target.with_name(f"{target.name}.{suffix}")
