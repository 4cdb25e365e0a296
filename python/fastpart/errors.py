"""What fastpart raises.

Errors of the operating system are the matching builtins (``FileNotFoundError``, ``PermissionError``, ``OSError``) with
the path, and wrong types are ``TypeError``. Everything else that is refused is a :class:`FastpartError`, whose text
says what, where, and the remedy.
"""

import sys
import warnings

__all__ = [
    "CapacityError",
    "CapacityWarning",
    "EdgeFileChangedError",
    "FastpartError",
    "GraphFormatError",
    "GraphWarning",
    "InternalError",
    "MemoryBudgetError",
    "ParameterError",
    "TrainingError",
]


class FastpartError(ValueError):
    """The base of all refusals."""


class GraphFormatError(FastpartError):
    """A file or an array does not hold the graph, or the partition, it was taken for."""


class ParameterError(FastpartError):
    """A parameter has a value that it cannot have."""


class CapacityError(FastpartError):
    """The input is too large for the types, or no assignment can meet the caps asked for."""


class MemoryBudgetError(FastpartError, MemoryError):
    """The work needs more memory than allowed; raised before anything is allocated."""


class EdgeFileChangedError(FastpartError, OSError):
    """The edge file changed while it was read; no result was written."""


class TrainingError(FastpartError, RuntimeError):
    """A process of a training ended before its work was done; all others were ended, and nothing of them is left."""


class InternalError(RuntimeError):
    """A defect of fastpart itself."""


class CapacityWarning(UserWarning):
    """The partition is valid, but has empty parts, or caps that had to be raised."""


class GraphWarning(UserWarning):
    """Something about a graph was assumed, because nothing says it; the text says what would."""


def warn(text: str, category: type[Warning]) -> None:
    """Warn at the line of the user that led here, however deep inside the package that is."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)
