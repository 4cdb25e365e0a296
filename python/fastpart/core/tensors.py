"""Files of ``torch.save`` as arrays. Only tensors, arrays and plain containers are read, so a pickle runs nothing."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np

from ..errors import GraphFormatError
from .parameters import regular, shown


def arrays_in(file: Path) -> Mapping[str, Any]:
    """Return the mapping that ``torch.save`` wrote, with an array in the place of each tensor.

    Raises
    ------
    ModuleNotFoundError
        There is no torch.
    GraphFormatError
        The file holds something else, such as an object that only its own code could make.
    """
    regular(file)
    try:
        import torch
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{shown(file)}: reading it needs torch, which is not installed: pip install 'fastpart[train]'",
            name=error.name,
        ) from None
    try:
        with _arrays_allowed(torch):
            content = torch.load(file, map_location="cpu", weights_only=True)
    except (RuntimeError, UnpicklingError, EOFError, ValueError, TypeError, AttributeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "it ends early"
        raise GraphFormatError(
            f"{shown(file)}: not a file of torch with tensors and arrays only: {reason}"
        ) from None
    if not isinstance(content, dict):
        raise GraphFormatError(f"{shown(file)}: expected a dict of tensors, got {type(content).__name__}")
    return {
        str(name): each.numpy() if isinstance(each, torch.Tensor) else each for name, each in content.items()
    }


def _arrays_allowed(torch: Any) -> AbstractContextManager[None]:
    """Return a context in which torch reads arrays of numbers as it reads tensors. OGB's files hold such arrays."""
    if not hasattr(torch.serialization, "safe_globals"):  # before 2.5
        return nullcontext()
    rebuild = np.empty(0).__reduce__()[0]
    dtypes = {type(np.dtype(code)) for code in "?bBhHiIlLqQefd"}
    modules = (f"numpy.{core}.multiarray._reconstruct" for core in ("core", "_core"))
    safe = [*((rebuild, name) for name in modules), np.ndarray, np.dtype, *dtypes, codecs.encode]
    found: AbstractContextManager[None] = torch.serialization.safe_globals(safe)
    return found
