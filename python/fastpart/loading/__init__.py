"""Mini-batches of a vertex partition for any model of torch or PyG.

:meth:`fastpart.VertexPartition.loader` makes a :class:`Loader`. Its batches are a :class:`Batch` each, or a
:class:`TypedBatch` for graphs with types. :meth:`fastpart.VertexPartition.link_loader` makes a :class:`LinkLoader`,
with a :class:`LinkBatch` or a :class:`TypedLinkBatch` each. Without torch, the package can be imported, and its names
say what to install.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..core.calls import no_attribute, refusing
from ..partitions.plan import Plan
from .sample import Sample
from .trace import Trace

__all__ = [
    "Batch",
    "Block",
    "LinkBatch",
    "LinkLoader",
    "Loader",
    "Plan",
    "Sample",
    "Trace",
    "TypedBatch",
    "TypedBlock",
    "TypedLinkBatch",
    "dropout",
    "link_loader",
    "loader",
    "rows",
    "sum_gradients",
]


def __dir__() -> list[str]:
    return __all__


if TYPE_CHECKING or find_spec("torch") is not None:
    from . import rows
    from .batch import Batch, Block, TypedBatch, TypedBlock
    from .dropout import dropout
    from .gradients import sum_gradients
    from .links import LinkBatch, LinkLoader, TypedLinkBatch, link_loader
    from .loader import Loader, loader

    if not TYPE_CHECKING:  # type checkers find unknown names themselves
        __getattr__ = refusing(__name__, __all__)
else:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise no_attribute(__name__, name, __all__)
        raise ModuleNotFoundError(
            "loading needs torch, which is not installed: pip install 'fastpart[train]'", name="torch"
        )
