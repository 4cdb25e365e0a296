"""Digests of what fastpart returns and writes."""

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass

import numpy as np


def digest(content):
    """Return the digest of bytes."""
    return hashlib.sha256(content).hexdigest()[:32]


def digest_of(value):
    """Return the digest of arrays and numbers, in any nesting of objects, mappings and sequences.

    It reads names, dtypes, shapes and bytes. Attributes of objects are sorted by name, since their order is nobody's
    business. That of mappings counts: networks add up relations in it.
    """
    hashed = hashlib.sha256()
    _feed(hashed, value)
    return hashed.hexdigest()[:32]


def _feed(hashed, value):
    if is_dataclass(value):
        _feed(hashed, {name: getattr(value, name) for name in sorted(each.name for each in fields(value))})
    elif isinstance(value, Mapping):
        for name, each in value.items():
            hashed.update(f"{name!r}: ".encode())
            _feed(hashed, each)
    elif hasattr(value, "__array__"):  # of numpy or torch
        array = np.ascontiguousarray(value)
        hashed.update(f"{array.dtype.str}{array.shape}".encode())
        hashed.update(array.tobytes())
    elif isinstance(value, list | tuple):
        hashed.update(f"{len(value)} items: ".encode())
        for each in value:
            _feed(hashed, each)
    else:
        hashed.update(f"{value!r};".encode())
