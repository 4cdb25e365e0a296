"""Data frames of Polars, pandas and Arrow as a table of one file."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from ....core.frames import pl
from .formats import Source
from .tablefiles import TableFile, reading


def frame_file(name: str, frame: Any) -> TableFile:
    """Return a data frame as a file. Its mark is a hash of what it holds, of a lazy frame that of its query."""
    path = f"{name} (data frame)"
    if hasattr(frame, "collect_batches"):
        source = Source("a lazy frame that can be collected", lambda: frame, divisible=False, watched=False)
        with reading(path, source):
            dtypes = dict(frame.collect_schema())
            rows = int(frame.select(pl.len()).collect(engine="streaming").item())
        return TableFile(path, 0, _digest(frame.explain()), rows, dtypes, source)
    held = frame if isinstance(frame, pl.DataFrame) else pl.DataFrame(frame)
    source = Source("a data frame", held.lazy, watched=False)
    size = int(held.estimated_size())
    return TableFile(path, size, _content(held), len(held), dict(held.schema), source)


def _content(frame: pl.DataFrame) -> str:
    """Return a hash of the columns and rows of a frame, in their order."""
    digest = [str(frame.schema)]
    for start in range(0, len(frame), 1 << 20):
        hashes = frame.slice(start, 1 << 20).hash_rows(seed=0)
        digest.append(blake2b(hashes.to_numpy().tobytes(), digest_size=16).hexdigest())
    return _digest("\n".join(digest))


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()
