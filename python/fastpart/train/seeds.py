"""Seeds for independent streams of random numbers."""

from __future__ import annotations

import hashlib


def mixed(*numbers: int) -> int:
    """Return a seed of 63 bits, a hash of all numbers."""
    digest = hashlib.blake2b(repr(numbers).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
