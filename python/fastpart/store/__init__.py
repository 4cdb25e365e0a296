"""Partitions on disk: ``.npy``, ``.txt``, ``.parquet``, and the partition directory."""

from .contents import Extras
from .loading import open_partition
from .saving import output, refuse_unwritable, save, write
from .schemas import SCHEMA
from .upgrading import upgrade

__all__ = [
    "SCHEMA",
    "Extras",
    "open_partition",
    "output",
    "refuse_unwritable",
    "save",
    "upgrade",
    "write",
]
