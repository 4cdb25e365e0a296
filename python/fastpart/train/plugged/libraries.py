"""Import torch and dgl without their warnings and output."""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import warnings

from ...errors import FastpartError, MemoryBudgetError


def import_torch() -> None:
    """Import torch, or say what to install."""
    _import("torch", "train")


def import_dgl() -> None:
    """Import DGL and the torch that it needs, or say what to install."""
    # Without it, dgl prompts for its backend and writes a default to the home directory.
    os.environ.setdefault("DGLBACKEND", "pytorch")
    _import("torch", "dgl")
    _import("dgl", "dgl")


def import_ray() -> None:
    """Import Ray Train, or say what to install."""
    _import("ray.train.torch", "ray-train")


def _import(name: str, extra: str) -> None:
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"training needs {error.name}, which is not installed: pip install 'fastpart[{extra}]'",
            name=error.name,
        ) from None
    except Exception as error:
        if _is_short_of_memory(error):
            raise MemoryBudgetError(
                f"training needs {name}, for whose libraries there is too little memory ({error}). Raise the limit of "
                "this process (ulimit -v, a batch system or a container), or end other programs"
            ) from error
        raise FastpartError(
            f"training needs {name}, but its import failed ({type(error).__name__}: {error}). Reinstall it: "
            f"pip install --force-reinstall 'fastpart[{extra}]'"
        ) from error


def _is_short_of_memory(error: Exception) -> bool:
    """Return whether an import failed because memory is too small for a library. The loader says so in words only."""
    words = ("failed to map segment", "cannot allocate memory", "out of memory")
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    return any(word in str(error).lower() for word in words) and "static TLS" not in str(error)
