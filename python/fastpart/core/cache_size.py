"""The size of a cache of rows: a share of the rows of a part, or memory. So ``cache`` means the same everywhere."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import ParameterError
from .parameters import memory_size, number


@dataclass(frozen=True)
class CacheSize:
    """The size of the cache of a part. It is false if the cache holds nothing.

    Attributes
    ----------
    given : float or str
        What the user passed: a share of the rows of the part, or memory with its unit.
    bytes : int or None
        The memory. None: it is a share.
    """

    given: float | str
    bytes: int | None = None

    @classmethod
    def of(cls, value: object) -> CacheSize:
        """Check what was passed as ``cache``."""
        if isinstance(value, str):
            if not re.search(r"[A-Za-z]\s*$", value):
                raise ParameterError(
                    f"cache: {value!r} is text without a unit. Pass a share of a part's rows as a number, such as 0.1, "
                    'or a size with its unit, such as "200M"'
                )
            size = memory_size(value, "cache", 0)
            return cls(value.strip(), size) if size else cls(0.0)
        if not 0 <= number("cache", value) <= 1:
            raise ParameterError(
                f"cache: {value} is not a share of a part's rows from 0 to 1, such as 0.1, nor a size with its unit, "
                'such as "200M"'
            )
        return cls(number("cache", value))

    def __bool__(self) -> bool:
        return bool(self.given)

    def __str__(self) -> str:
        return f"{self.given:g}" if isinstance(self.given, float) else self.given

    @property
    def of_core(self) -> float | int:
        """The size as the core takes it: a float is a share, an integer is bytes."""
        return float(self.given) if self.bytes is None else self.bytes

    def held(self, rows: int, row_bytes: npt.NDArray[np.float32] | float) -> int:
        """Return how many rows the cache of a part of so many rows holds.

        ``row_bytes`` are the bytes of any row, or of each in the order in which they are cached.
        """
        if self.bytes is None:
            return int(self.of_core * rows)
        if isinstance(row_bytes, np.ndarray):
            return int(np.searchsorted(np.cumsum(row_bytes, dtype=np.float64), self.bytes, "right"))
        return int(self.bytes // row_bytes)

    def refuse_unsized(self, remedy: str) -> None:
        """Refuse memory where the bytes of a row are unknown."""
        if self.bytes:
            raise ParameterError(f"cache: {self} is a size, but the bytes of a row are unknown. {remedy}")
