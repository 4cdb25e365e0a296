"""Mini-batches over all parts, with fastpart's own sampler."""

from .launch import sampled
from .scheduled import bytegnn

__all__ = ["bytegnn", "sampled"]
