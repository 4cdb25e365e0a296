"""Full batches over blocks of rows, SANCUS-style: rows of parts are broadcast, unless old copies are good enough."""

from .launch import sancus

__all__ = ["sancus"]
