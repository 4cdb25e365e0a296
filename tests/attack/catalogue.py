"""All specimens, how often each comes, and what makes them."""

from pathlib import Path

from specimens import (
    WITH_TORCH,
    Build,
    arrays,
    assignments,
    bare,
    checkpoints,
    comparisons,
    edges,
    exports,
    links,
    plain,
    raw,
    relabelled,
    rows,
    schema_of,
    tables,
    text,
    trained,
    typed,
    vertices,
    wide,
)
from specimens_of_work import (
    configured,
    conversions,
    converted_here,
    ingested,
    interrupted,
    interrupted_here,
    planned,
    tasks,
    tasks_here,
)

import fastpart as fp

SPECIMENS: dict[str, Build] = {
    build.__name__: build
    for build in (raw, wide, relabelled, arrays, text, tables, rows, assignments, vertices, typed, plain, edges, links,
                  bare, checkpoints, comparisons, exports, trained, ingested,
                  interrupted, planned, conversions, tasks, configured)
}  # fmt: skip
SPECIMENS |= {
    f"schema{number}_{of}": schema_of(number, of) for number in (1, 2, 3) for of in ("vertices", "edges")
}

WEIGHTS = {
    "vertices": 4,
    "typed": 4,
    "edges": 3,
    "links": 3,
    "plain": 2,
    "raw": 3,
    "assignments": 2,
    "trained": 3,
    "rows": 2,
    "text": 2,
    "ingested": 3,
    "interrupted": 4,
    "planned": 3,
    "conversions": 2,
    "tasks": 2,
}
WEIGHTS |= dict.fromkeys((name for name in SPECIMENS if name.startswith("schema")), 0.5)
"""How often a specimen comes. The others have 1."""

NEEDS_TORCH = {"trained"}
"""Those that are not made without it."""


def build(root: Path, names: list[str]) -> None:
    """Make the specimens of these names that are not there yet."""
    with fp.config(threads=1):
        for name in names:
            if not (root / name).exists() and (WITH_TORCH or name not in NEEDS_TORCH):
                (root / f"{name}.unfinished").mkdir()
                SPECIMENS[name](root / f"{name}.unfinished")
                (root / f"{name}.unfinished").rename(root / name)


HERE = {"conversions": converted_here, "interrupted": interrupted_here, "tasks": tasks_here}
"""What is done to the copy of a specimen before it is changed."""
