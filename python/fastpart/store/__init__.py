"""Partitions on disk: ``.npy``, ``.txt``, ``.parquet``, and the partition directory."""

from .contents import Extras
from .loading import load
from .saving import output, refuse_unwritable, save, write

__all__ = ["Extras", "load", "output", "refuse_unwritable", "save", "write"]
