"""Partition directories whose features have 8 bits per number."""

import numpy as np

import fastpart as fp
from attributed import attributed

N, WIDTH = 300, 6


def dense():
    """Rows of different sizes: a scale per row changes them less."""
    random = np.random.default_rng(1)
    return (random.normal(size=(N, WIDTH)) * random.lognormal(2, 1.5, (N, 1))).astype(np.float32)


def columns():
    """A column of 0 and 1 beside columns of other sizes: a scale per column changes them less."""
    random = np.random.default_rng(2)
    rows = random.normal(size=(N, WIDTH)) * [1, 10, 100, 1000, 1e4, 1]
    rows[:, 5] = random.random(N) < 0.5
    return rows.astype(np.float32)


FEATURES = {"row": dense(), "column": columns()}


def saved(folder, features, k=3, **more):
    _, rows = attributed()
    assignment = np.arange(N) * 7 % k
    fp.VertexPartition(assignment, k).save(folder, **rows | {"features": features, **more})
    return fp.open_partition(folder)


def encoded(numbers, columns=None):
    """Return rows as coded rows, by numpy."""
    scales = columns
    if columns is None:
        low, high = numbers.min(axis=1) + np.float32(0), numbers.max(axis=1) + np.float32(0)
        scales = np.stack([low, (high - low) / np.float32(255)])
    low, step = scales if columns is not None else scales[:, :, None]
    levels = np.divide(numbers - low, step, out=np.zeros_like(numbers), where=step > 0)
    codes = np.clip(np.rint(levels), 0, 255).astype(np.uint8)
    if columns is not None:
        return codes
    return np.concatenate([codes, np.ascontiguousarray(scales.T).view(np.uint8)], axis=1)


def with_fields(coded):
    """Return coded rows that have a scale of their own as they lie outside of partition directories."""
    width = coded.shape[1] - 8
    return coded.view([("codes", "u1", (width,)), ("low", "<f4"), ("step", "<f4")])[:, 0]


def numbers_of(stored):
    """Return the decoded features of all vertices."""
    features = np.empty((len(stored), *stored.parts[0].features.shape[1:]), np.float32)
    for part in stored.parts:
        features[part.inner] = part.features
    return features
