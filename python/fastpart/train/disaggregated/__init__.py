"""Mini-batches that other processes make: Armada's batch workers and compute workers."""

from .launch import armada

__all__ = ["armada"]
