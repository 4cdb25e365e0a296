"""Mini-batches of a vertex partition for any model of torch or PyG.

:meth:`fastpart.VertexPartition.loader` makes a :class:`Loader`. Its batches are a :class:`Batch` each.
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("torch") is None:
    raise ModuleNotFoundError(
        "loading needs torch, which is not installed: pip install 'fastpart[train]'", name="torch"
    )

from .batch import Batch, Block
from .dropout import dropout
from .gradients import sum_gradients
from .loader import Loader, loader

__all__ = ["Batch", "Block", "Loader", "dropout", "loader", "sum_gradients"]
