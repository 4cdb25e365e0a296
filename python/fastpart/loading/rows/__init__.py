"""Where the rows of features of a batch come from. Each is a :class:`RowSource`."""

from .sources import RowSource

__all__ = ["RowSource"]
