"""Import torch and dgl without their warnings and output."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import os
import warnings

from ..errors import FastpartError
from ..notes import log


def has_dgl() -> bool:
    """Return whether DGL is installed."""
    return importlib.util.find_spec("dgl") is not None


def dgl_works() -> bool:
    """Return whether DGL can be imported. Log a note if it is installed but broken."""
    if not has_dgl():
        return False
    try:
        import_libraries()
    except (FastpartError, ModuleNotFoundError) as error:
        log.warning("%s. Using torch instead", error)
        return False
    return True


def import_libraries(dgl: bool = True) -> None:
    """Import torch, and dgl on request, or say what to install."""
    # Without it, dgl prompts for its backend and writes a default to the home directory.
    os.environ.setdefault("DGLBACKEND", "pytorch")
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            importlib.import_module("torch")
            if dgl:
                importlib.import_module("dgl")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"training needs {error.name}, which is not installed: pip install 'fastpart[train]'",
            name=error.name,
        ) from None
    except Exception as error:
        raise FastpartError(
            f"training needs torch{' and dgl' if dgl else ''}, but an import failed ({type(error).__name__}: {error}). "
            "Reinstall them: pip install --force-reinstall 'fastpart[train]'"
        ) from error
