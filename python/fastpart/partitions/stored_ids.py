"""The ids of vertices in a partition directory. They stay when the graph directory is replaced by a newer one."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.folders import inside
from ..core.ids import IdTable
from ..core.parameters import shown
from ..core.parsing import named
from ..errors import GraphFormatError
from .part_files import MANIFEST
from .part_rows import typed_of

IDS = "ids"
"""The entry of a manifest that lists the types whose ids lie in the folder of the same name, in their order."""


def stored_ids(folder: Path, manifest: Mapping[str, Any], n: int) -> tuple[IdTable, ...]:
    """Return the ids of ``n`` vertices in a directory."""
    typed, names, root = typed_of(manifest), manifest.get(IDS, []), folder.resolve()
    known = names if typed is None else [each.name for each in typed.types]
    spans = [(0, n)] if typed is None else [(each.first, each.n) for each in typed.types]
    if names != known or len(names) != len(spans):
        raise GraphFormatError(f"{shown(folder / MANIFEST)}: {IDS}: expected the types of the vertices")
    return tuple(
        IdTable.of(name, *span, inside(root, _file(name))) for name, span in zip(names, spans, strict=True)
    )


def store_ids(folder: Path, tables: Sequence[IdTable]) -> dict[str, list[str]]:
    """Copy ids to a directory that is being written, and return their entry of the manifest."""
    for each in tables:
        target = folder / _file(each.name)
        with named(target):
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(each.file, target)
        each.refuse_changed()
    return {IDS: [each.name for each in tables]} if tables else {}


def _file(name: str) -> str:
    return f"ids/{name}.parquet"
