"""Comparison of partitioners: run, measure, tabulate, plot."""

from .comparison import Comparison
from .running import compare
from .saved import open_comparison

__all__ = ["Comparison", "compare", "open_comparison"]
