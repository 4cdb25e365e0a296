"""Vertex partitions in the formats of training systems.

Each function reads a directory that ``p.save(DIR, graph=...)`` wrote, one part at a time, and writes another directory
atomically. The functions import torch and dgl only when they are called, and
``text`` and ``wholegraph`` never.
"""

from typing import TYPE_CHECKING

from ..core.calls import refusing
from .dgl import dgl
from .glt import glt
from .pyg import pyg
from .text import text
from .wholegraph import wholegraph

__all__ = ["dgl", "glt", "pyg", "text", "wholegraph"]

if not TYPE_CHECKING:  # type checkers find unknown names themselves
    __getattr__ = refusing(__name__, __all__)
