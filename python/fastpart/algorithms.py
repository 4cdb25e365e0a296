"""All partitioners, each under its name.

Partitioners that most users need are also at the top: ``fastpart.multilevel`` is ``fastpart.algorithms.multilevel``.
"""

from typing import TYPE_CHECKING

from .core.calls import refusing
from .measures.expected import expected_cut
from .partitions.partitioners import builtin
from .partitions.partitioners.builtin import *  # noqa: F403
from .partitions.partitioners.choosing import partition
from .partitions.partitioners.custom import custom

__all__ = ["custom", "expected_cut", "partition"]
__all__ += builtin.__all__

if not TYPE_CHECKING:  # type checkers find unknown names themselves
    __getattr__ = refusing(__name__, __all__)
