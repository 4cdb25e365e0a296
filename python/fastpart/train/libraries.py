"""torch and dgl, imported once, without what their imports warn of and print."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import warnings


def import_libraries(dgl: bool = True) -> None:
    """Import torch, and dgl unless it is not needed, or say what to install."""
    # Else dgl asks for its backend, and answers itself by writing to the home directory.
    os.environ.setdefault("DGLBACKEND", "pytorch")
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            import torch  # noqa: F401

            if dgl:
                importlib.import_module("dgl")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"training needs {error.name}, which is not installed: pip install 'fastpart[train]'",
            name=error.name,
        ) from None
