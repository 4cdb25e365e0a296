"""Tables for the terminal, plots, and the HTML report."""

from .draw import draw
from .pages import write_report
from .text import MOST_ROWS, comparison_text, evaluation_text, table

__all__ = ["MOST_ROWS", "comparison_text", "draw", "evaluation_text", "table", "write_report"]
