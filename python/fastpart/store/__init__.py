"""Partitions on disk: ``.npy``, ``.txt``, ``.parquet``, and the partition directory."""

from .loading import open_partition
from .saving import save
from .schemas import SCHEMA
from .upgrading import upgrade

__all__ = ["SCHEMA", "open_partition", "save", "upgrade"]
