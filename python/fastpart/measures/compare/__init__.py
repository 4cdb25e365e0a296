"""Comparison of partitioners: run, measure, tabulate, plot."""

from .comparison import Comparison
from .opening import open_comparison
from .running import compare

__all__ = ["Comparison", "compare", "open_comparison"]
