"""torch and dgl, imported once, without what their imports warn of and print."""

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
    """Return whether DGL can be imported; a note tells of one that is installed and cannot."""
    if not has_dgl():
        return False
    try:
        import_libraries()
    except (FastpartError, ModuleNotFoundError) as error:
        log.warning("%s; torch does its work", error)
        return False
    return True


def import_libraries(dgl: bool = True) -> None:
    """Import torch and, for what needs it, dgl, or say what to install."""
    # Else dgl asks for its backend, and answers itself by writing to the home directory.
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
            f"training needs torch{' and dgl' if dgl else ''}, and an import failed ({type(error).__name__}: {error}); "
            "install them anew: pip install --force-reinstall 'fastpart[train]'"
        ) from error
