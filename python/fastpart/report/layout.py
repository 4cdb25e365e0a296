"""Places of the vertices of a small graph in the plane, so that what has many edges between lies together.

Edges pull their ends together like springs, and all vertices push each other away with a force of one over their
distance, in proportion to degree + 1. These are the forces of ForceAtlas2 (M. Jacomy et al., PLoS ONE 2014). A weak
pull to the middle keeps components together. The pushes are computed on a grid, as in particle-mesh codes: the masses
are spread over its points, the field is their convolution by FFT, and each vertex takes it from the four points
around. A round takes time in proportion to n + m, and the layout depends on the graph only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

ROUNDS = 150
GRID = 128
"""Points of the grid along each axis. Vertices that are nearer than two points hardly push each other."""

MIDDLE = 0.05
"""How strong the middle pulls. Less leaves more paper between components."""

_Floats = npt.NDArray[np.float64]


def layout(pairs: npt.NDArray[Any], n: int) -> _Floats:
    """Return the places of n vertices, of shape (n, 2). Edges have shape (m, 2)."""
    u, v = pairs.astype(np.int64).T
    mass = (1 + np.bincount(u, minlength=n) + np.bincount(v, minlength=n)).astype(np.float64)
    places: _Floats = np.random.default_rng(0).standard_normal((n, 2)) * n**0.5
    waves = _waves()
    for round_ in range(ROUNDS):
        spring = places[u] - places[v]
        pulls = [np.bincount(v, along, n) - np.bincount(u, along, n) for along in spring.T]
        move = _pushes(places, mass, waves) - MIDDLE * places + np.stack(pulls, axis=1) / mass[:, None]
        length = np.maximum(np.hypot(*move.T), 1e-12)
        longest = 0.1 * np.ptp(places, axis=0).max() * (1 - round_ / ROUNDS)  # the system cools down
        places += move * (np.minimum(length, longest) / length)[:, None] / 2
    return places


def _waves() -> npt.NDArray[np.complex128]:
    """Return the transform of the field of a mass in the origin. The grid is twice as large, so that nothing wraps."""
    along = np.fft.fftfreq(2 * GRID, 1 / (2 * GRID))
    x, y = np.meshgrid(along, along, indexing="ij")
    squared = x * x + y * y + 0.25
    return np.fft.rfft2(np.stack([x, y]) / squared)


def _pushes(places: _Floats, mass: _Floats, waves: npt.NDArray[np.complex128]) -> _Floats:
    """Return the acceleration of each vertex by all masses."""
    size = max(float(np.ptp(places, axis=0).max()), 1e-12) / (GRID - 1.001)
    where = (places - places.min(axis=0)) / size
    cells = where.astype(np.int64)
    near = where - cells
    corners = [
        (
            cells[:, 0] + right,
            cells[:, 1] + up,
            np.abs(1 - right - near[:, 0]) * np.abs(1 - up - near[:, 1]),
        )
        for right in (0, 1)
        for up in (0, 1)
    ]
    width = 2 * GRID
    spread = sum(np.bincount(x * width + y, share * mass, width * width) for x, y, share in corners)
    field = np.fft.irfft2(waves * np.fft.rfft2(np.reshape(spread, (width, width))), s=(width, width))
    acceleration: _Floats = sum(
        (field[:, x, y] * share for x, y, share in corners), np.zeros((2, len(places)))
    )
    return acceleration.T / size
