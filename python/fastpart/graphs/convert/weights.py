"""Weights of the records of a conversion, from the source to the output."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ... import _core
from ...core import parameters
from ...core.options import RunOptions
from ...core.parameters import IdType, shown
from ...errors import GraphFormatError, ParameterError, arg
from ..sidecars import weights_beside
from ..staging import beside
from ..weights import Weights, scaled

Given = int | str | Literal[False] | None
"""The number of a column of text, the name of a column, False for none, or None for what the source has."""

_BLOCK = 1 << 18
"""Weights per step."""


@dataclass(frozen=True)
class WeightSource:
    """The place where a conversion finds weights, and the scale of weights beside raw records."""

    given: Given
    found: Literal["file", "source"] | None = "source"
    scale: float = 1.0

    @property
    def column(self) -> int | str | None:
        """The column of text, by number from 1 or by name."""
        return None if self.given is False else self.given

    @property
    def name(self) -> str | None:
        """The column of a table."""
        return self.given if isinstance(self.given, str) else None


def weight_source(given: Given, reordered: bool, first: int = 3) -> WeightSource:
    """Check the given parameter. Columns of weights have a number of at least ``first``.

    Records that are dropped or put in another order lose their weights.
    """
    if given is False or (given is None and reordered):
        return WeightSource(given, None)
    if given is not None and not isinstance(given, str):
        given = parameters.integer("weights", given, first, 2**31 - 1)
    return WeightSource(given)


def bring(
    weights_from: WeightSource,
    origin: Path,
    raw: Path,
    dtype: IdType | None,
    layout: str | None,
    reordered: bool,
) -> WeightSource:
    """Write the weights beside a file of records where the core finds them, if there are any."""
    file, described = (
        weights_beside(origin) if weights_from.given is None and origin.exists() else (None, None)
    )
    if file is None:
        return weights_from
    if reordered:
        raise ParameterError(
            f"weights: dedup and shuffle do not keep the weights in {shown(file)}. Leave these out, or pass "
            f"{arg('weights', False)}"
        )
    found = Weights.of(file)
    core = _weighted(
        origin, found.source, RunOptions(), dtype, layout
    )  # compares their number with the records
    if described:
        found = found.measured(core, RunOptions()).described(described, origin)
    with beside(raw, "weights.in").open("xb") as written:
        array = found.array
        for first in range(0, len(array), _BLOCK):
            array[first : first + _BLOCK].astype("<f8").tofile(written)
    return replace(weights_from, found="file", scale=found.scale)


def take(weights_from: WeightSource, raw: Path, m: int, name: str) -> Weights | None:
    """Return the scaled weights of the source called ``name`` that the core wrote, and remove its files."""
    file = beside(raw, "weights.f64")
    beside(raw, "weights.in").unlink(missing_ok=True)
    if not file.exists():
        return None
    given = np.memmap(file, "<f8", "r") if file.stat().st_size else np.empty(0)
    file.unlink()
    if len(given) != m or not m:
        if weights_from.given is not None and m:
            raise ParameterError(f"weights: the source has no column {weights_from.given!r} of weights")
        return None
    values, scale = scaled(given)
    if not values.any():
        raise GraphFormatError(
            f"{name}: all weights are 0, so no record would count. Leave them out: {arg('weights', False)}"
        )
    return Weights(values, scale * weights_from.scale)


def write(weights: Weights, file: Path, options: RunOptions) -> dict[str, Any]:
    """Write the weights beside a raw file, and return their entry for its sidecar."""
    target = Weights.beside(file)
    with target.open("xb") as written:
        np.save(written, weights.array)
        written.flush()
        os.fsync(written.fileno())
    return replace(weights, source=target).measured(_weighted(file, target, options), options).description


def _weighted(
    file: Path, weights: Any, run: RunOptions, dtype: IdType | None = "u32", layout: str | None = None
) -> _core.EdgeSource:
    """Open records with weights, of any number of vertices."""
    most: dict[str, Any] = {"num_vertices": 2**32 - 1, "max_vertices": None}
    return _core.EdgeSource.open(
        file, dtype=dtype, layout=layout, io="mmap", **most, weights=weights, options=run
    )


def in_units(weights: Weights, first: int, count: int) -> npt.NDArray[Any]:
    """Return some weights in the unit of the given ones."""
    block = weights.array[first : first + count]
    return block if weights.scale == 1 else block / weights.scale
