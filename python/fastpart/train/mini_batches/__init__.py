"""Mini-batches over all parts, with fastpart's own sampler."""

from .launch import sampled

__all__ = ["sampled"]
