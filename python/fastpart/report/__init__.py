"""Tables for the terminal, plots, and the HTML report. What draws or renders is imported on first use."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .partitions import draw

__all__ = ["draw"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name != "draw":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .partitions import draw

    return draw
