"""Tables for the terminal, plots, and the HTML report. What draws or renders is imported on first use."""

from .text import MOST_ROWS, comparison_text, evaluation_text, table

__all__ = ["MOST_ROWS", "comparison_text", "evaluation_text", "table"]
