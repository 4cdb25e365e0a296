"""Partitions on disk: ``.npy``, ``.txt``, ``.parquet``, and the partition directory."""

from .contents import Extras
from .loading import open_partition
from .saving import output, refuse_unwritable, save, write

__all__ = ["Extras", "open_partition", "output", "refuse_unwritable", "save", "write"]
