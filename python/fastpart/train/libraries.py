"""Import torch and dgl without their warnings and output."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import warnings

from ..errors import FastpartError


def import_torch() -> None:
    """Import torch, or say what to install."""
    _import("torch", "train")


def import_dgl() -> None:
    """Import DGL and the torch that it needs, or say what to install."""
    # Without it, dgl prompts for its backend and writes a default to the home directory.
    os.environ.setdefault("DGLBACKEND", "pytorch")
    _import("torch", "dgl")
    _import("dgl", "dgl")


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
        raise FastpartError(
            f"training needs {name}, but its import failed ({type(error).__name__}: {error}). Reinstall it: "
            f"pip install --force-reinstall 'fastpart[{extra}]'"
        ) from error
