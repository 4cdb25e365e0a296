"""The one rule about folders: fastpart replaces and removes the files that it has listed itself, and nothing else.

A folder that fastpart writes has a marker, a JSON file whose ``files`` lists what else was written, by its path below
the folder. Older folders have no list.
"""

from __future__ import annotations

import json
import os
from pathlib import Path


def owned(folder: Path, marker: str) -> list[str]:
    """Return the files of a folder that may be replaced. None of a folder whose marker is not fastpart's."""
    try:
        content = json.loads((folder / marker).read_bytes())
        if not isinstance(content, dict) or "fastpart" not in content:
            return []
    except (OSError, ValueError, RecursionError):
        return []
    if "files" in content:
        return [marker, *content["files"]]
    return [
        os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names
    ]
