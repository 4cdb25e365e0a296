"""Delta and Iceberg tables: folders whose log says which files belong to a version."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ....core.folders import below
from ....core.frames import pl
from ....core.parameters import regular, shown
from ....errors import GraphFormatError
from .cloud import find, needed
from .formats import Source
from .paths import URL, Found

_SETTINGS = {
    "AWS_ENDPOINT_URL": "s3.endpoint",
    "AWS_REGION": "s3.region",
    "AWS_ACCESS_KEY_ID": "s3.access-key-id",
    "AWS_SECRET_ACCESS_KEY": "s3.secret-access-key",
    "AWS_SESSION_TOKEN": "s3.session-token",
}


def source_of(found: Found) -> Source:
    """Return how the newest version of a table is read, and note the version."""
    if not URL.match(found.path):
        for name in below(Path(found.path)):
            regular(Path(found.path, name))
    return _delta(found.path) if found.table == "delta" else _iceberg(found.path)


def mark_of(found: Found) -> tuple[str, int]:
    """Return the newest version of a table, and the bytes of its files."""
    if found.table == "delta":
        table = _delta_table(found.path)
        actions = pl.DataFrame(table.get_add_actions(flatten=True))
        return f"version {table.version()}", int(actions["size_bytes"].sum() or 0)
    table = _iceberg_table(found.path)
    snapshot = table.current_snapshot()
    if snapshot is None:
        return "no snapshot", 0
    size = (snapshot.summary or {}).get("total-files-size") if snapshot.summary else None
    return f"snapshot {snapshot.snapshot_id}", int(size or 0)


def _delta_table(path: str) -> Any:
    module = needed("deltalake", "delta", f"{shown(path)}: a Delta table")
    try:
        return module.DeltaTable(path)
    except MemoryError:
        raise
    except Exception as error:  # of deltalake, which names no base of its own
        raise GraphFormatError(f"{shown(path)}: not a Delta table ({_reason(error)})") from None


def _delta(path: str) -> Source:
    version = _delta_table(path).version()
    return Source(
        "a Delta table", lambda: pl.scan_delta(path, version=version), divisible=False, watched=False
    )


def _iceberg_table(path: str) -> Any:
    module = needed("pyiceberg.table", "iceberg", f"{shown(path)}: an Iceberg table")
    try:
        return module.StaticTable.from_metadata(_metadata(path), _properties())
    except OSError as error:
        raise OSError(f"{shown(path)}: cannot read the Iceberg table ({_reason(error)})") from None
    except (ValueError, KeyError, TypeError) as error:
        raise GraphFormatError(f"{shown(path)}: not an Iceberg table ({_reason(error)})") from None


def _properties() -> dict[str, str]:
    """Return the settings of an object store in the environment by the names of pyiceberg."""
    return {name: os.environ[variable] for variable, name in _SETTINGS.items() if variable in os.environ}


def _metadata(folder: str) -> str:
    """Return the newest description in the folder of a table. Their names begin with a number, as 00003-, or v3."""
    if URL.match(folder):
        files = [each.path for each in find("metadata", f"{folder}/metadata/*.metadata.json")]
    else:
        files = [str(file) for file in Path(folder, "metadata").glob("*.metadata.json")]
    return max(files, key=lambda file: (_number(os.path.basename(file)), file))


def _number(name: str) -> int:
    digits = re.search(r"\d+", name)
    return int(digits[0]) if digits else 0


def _iceberg(path: str) -> Source:
    table = _iceberg_table(path)
    if find_spec("polars_iceberg") is None:  # without this setting, Polars warns that it is not installed
        os.environ.setdefault("POLARS_ICEBERG_PLANNER", "pyiceberg")
    snapshot = table.current_snapshot()
    number = None if snapshot is None else snapshot.snapshot_id
    return Source(
        "an Iceberg table", lambda: pl.scan_iceberg(table, snapshot_id=number), divisible=False, watched=False
    )


def _reason(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0] or "damaged"
