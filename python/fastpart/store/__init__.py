"""Partitions on disk: ``.npy``, ``.txt``, ``.parquet``, and the partition directory."""

from typing import TYPE_CHECKING

from ..core.calls import refusing
from .loading import open_partition
from .restoring import restore
from .saving import save
from .schemas import SCHEMA
from .upgrading import upgrade
from .verifying import Verification, verify

__all__ = ["SCHEMA", "Verification", "open_partition", "restore", "save", "upgrade", "verify"]

if not TYPE_CHECKING:  # type checkers find unknown names themselves
    __getattr__ = refusing(__name__, __all__)
