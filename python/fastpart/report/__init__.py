"""Tables for the terminal, plots, and the HTML report. What draws or renders is imported on first use."""

from typing import TYPE_CHECKING, Any

from ..core.calls import no_attribute

if TYPE_CHECKING:
    from .partitions import draw

__all__ = ["draw"]


def __getattr__(name: str) -> Any:
    if name != "draw":
        raise no_attribute(__name__, name, __all__)
    from .partitions import draw

    return draw
