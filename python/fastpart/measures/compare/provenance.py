"""What a comparison was measured with: what a paper has to state beside the numbers."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

from ... import _core
from ...core.parameters import one_line
from ...core.system import memory_bytes, processor
from .entries import Entry

MOST_LETTERS = 80
"""Most letters of a parameter that is no number and no short text."""


def provenance_of(entries: Iterable[Entry], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return date, versions, machine, the settings of all runs, and the parameters of each algorithm.

    It names neither the host nor the user.
    """
    versions = {"fastpart": _core.__version__, "python": platform.python_version(), "numpy": np.__version__}
    parameters = {}
    for entry in entries:
        used = entry.parameters(settings["balance"])
        parameters[entry.label] = {name: _plain(value) for name, value in used.items()}
        versions |= {name: version for name, version in entry.versions.items() if version is not None}
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **{name: _plain(value) for name, value in settings.items()},
        "versions": versions,
        "machine": {
            "processor": one_line(processor(), MOST_LETTERS),
            "cores": os.cpu_count() or 1,
            "memory": memory_bytes(),
        },
        "parameters": parameters,
    }


def _plain(value: Any) -> Any:
    """Return a parameter as JSON can hold it. Arrays and other objects are named by their type."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, os.PathLike):
        return one_line(os.fspath(value), MOST_LETTERS)
    return f"{type(value).__name__} of {len(value)}" if hasattr(value, "__len__") else type(value).__name__
