"""Where the rows of features of a batch come from. Each is a :class:`RowSource`."""

from . import embeddings
from .source import RowSource

__all__ = ["RowSource", "embeddings"]


def __dir__() -> list[str]:
    return __all__
