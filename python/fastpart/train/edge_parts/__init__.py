"""Full batches over parts of the edges, DistGNN-style: sums travel between the copies of vertices."""

from .launch import distgnn

__all__ = ["distgnn"]
