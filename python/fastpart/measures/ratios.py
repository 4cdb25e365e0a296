"""Ratios, with a value where there is nothing to count."""

from __future__ import annotations


def ratio(count: float, total: int, empty: float) -> float:
    """Return the share of a total. Of nothing it is ``empty``."""
    return count / total if total else empty


def balance(largest: int, parts: int, total: int) -> float:
    """Return the largest count of a part relative to the mean. Of nothing it is 1."""
    return ratio(largest * parts, total, empty=1.0)
