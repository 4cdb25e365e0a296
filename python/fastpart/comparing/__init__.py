"""Partitioners beside one another: run, measured, tabulated, drawn."""

from .comparison import Comparison
from .running import compare

__all__ = ["Comparison", "compare"]
