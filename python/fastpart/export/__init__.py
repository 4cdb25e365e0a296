"""Vertex partitions in the formats of the systems that train on them.

Each function reads the directory that ``p.save(DIR, graph=...)`` wrote, one part at a time, and writes another one
that appears whole or not at all. torch and dgl are imported by the functions that need them, when they are called.
"""

from .dgl import dgl
from .pyg import pyg
from .text import text

__all__ = ["dgl", "pyg", "text"]
