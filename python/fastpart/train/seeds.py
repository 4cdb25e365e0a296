"""Seeds of streams of random numbers that do not repeat each other."""

from __future__ import annotations

import hashlib


def mixed(*numbers: int) -> int:
    """Return a seed of 63 bits that depends on all the numbers."""
    digest = hashlib.blake2b(repr(numbers).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
