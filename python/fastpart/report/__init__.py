"""Tables for the terminal, pictures, and the HTML report."""

from .draw import draw
from .text import MOST_ROWS, evaluation_text, table

__all__ = ["MOST_ROWS", "draw", "evaluation_text", "table"]
