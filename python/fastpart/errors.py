"""The exceptions of fastpart.

Errors of the operating system are the matching builtins (``FileNotFoundError``, ``PermissionError``, ``OSError``) with
the path. Wrong types are ``TypeError``. Every other refusal is a :class:`FastpartError`. Its text says what is wrong,
where, and the remedy.
"""

import sys
import warnings

__all__ = [
    "CapacityError",
    "CapacityWarning",
    "ClusterError",
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
    """A file or an array is not a valid graph or partition."""


class _NameFoundError(GraphFormatError):
    """Text has a name among its numbers. It is read again as names where the user named its columns."""


class ParameterError(FastpartError):
    """A parameter has an invalid value."""


class CapacityError(FastpartError):
    """The input is too large for the types, or no assignment can keep the caps."""


class MemoryBudgetError(FastpartError, MemoryError):
    """The work needs more memory than allowed. This is raised before anything is allocated."""


class EdgeFileChangedError(FastpartError, OSError):
    """The edge file changed while it was read. No result was written."""


class TrainingError(FastpartError, RuntimeError):
    """A training process ended before its work was done. The other processes were stopped and their files removed."""


class ClusterError(FastpartError, RuntimeError):
    """A cluster lost too many processes or nodes. The same call goes on from what lies in the shared folder."""


class InternalError(RuntimeError):
    """A defect of fastpart itself."""


class CapacityWarning(UserWarning):
    """The partition is valid, but has empty parts, or caps that had to be raised."""


class GraphWarning(UserWarning):
    """A fact about a graph was assumed because it was not given. The text says how to give it."""


def warn(text: str, category: type[Warning]) -> None:
    """Warn at the user's line that called into the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)
