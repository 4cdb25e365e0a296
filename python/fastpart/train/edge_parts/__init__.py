"""Full batches over parts of the edges (DistGNN). Copies of vertices exchange partial sums."""

from .launch import distgnn

__all__ = ["distgnn"]
