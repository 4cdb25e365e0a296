"""Vertex partitions in the formats of training systems.

Each function reads a directory that ``p.save(DIR, graph=...)`` wrote, one part at a time, and writes another directory
atomically. The functions import torch and dgl only when they are called.
"""

from .dgl import dgl
from .pyg import pyg
from .text import text

__all__ = ["dgl", "pyg", "text"]
