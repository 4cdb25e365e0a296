"""Weights of records: one uint32 each, the scale of weights that are no whole numbers, and factors by relation."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt

from .. import _core
from ..core import parameters
from ..core.options import RunOptions
from ..core.parameters import meant, number, shown
from ..core.parsing import mapped
from ..errors import GraphFormatError, MemoryBudgetError, ParameterError, arg
from .types import Relation

Array = npt.NDArray[Any]

_LARGEST = 2**32 - 1

_BITS = 31
"""Bits of the largest scaled weight."""

_FINEST = 16
"""Factors of relations are made whole by multiplying them with a power of two up to 2**16. The weights stay small."""

_BLOCK = 1 << 18
"""Weights per step."""


@dataclass(frozen=True)
class Weights:
    """The weights of all records: what the core reads, and what is known of it.

    ``source``: an array of uint32, or a ``.npy`` that holds one. ``scale``: by what the given weights were multiplied.
    """

    source: Path | npt.NDArray[np.uint32]
    scale: float = 1.0
    least: int = 0
    most: int = 0
    total: int = 0
    checksum: str = ""

    @staticmethod
    def beside(file: Path) -> Path:
        """Return the path of the weights of the records of ``file``."""
        return Path(f"{file}.weights.npy")

    @classmethod
    def of(cls, given: Any) -> Weights:
        """Return the weights of an array or of a ``.npy``."""
        if isinstance(given, str | bytes | os.PathLike):
            return cls._of_file(Path(os.path.abspath(parameters.path("weights", given))))
        return cls(*scaled(given))

    @classmethod
    def _of_file(cls, file: Path) -> Weights:
        array = _opened(file)
        return cls(file) if array.dtype.newbyteorder("=") == np.uint32 else cls(*scaled(array, shown(file)))

    def measured(self, core: _core.EdgeSource, options: RunOptions) -> Weights:
        """Return the same with range, sum and checksum, from one pass. Refuse weights that are all 0."""
        least, most, total, checksum = core.extent(options) or (0, 0, 0, "")
        return replace(self, least=least, most=most, total=total, checksum=checksum)

    @property
    def array(self) -> npt.NDArray[np.uint32]:
        """The weights as a read-only array. That of a file is mapped."""
        array: npt.NDArray[np.uint32] = (
            _opened(self.source) if isinstance(self.source, Path) else self.source.view()
        )
        array.flags.writeable = False
        return array

    @property
    def facts(self) -> dict[str, float]:
        """Range and sum in the unit of the given weights, and the scale."""
        named = {"min": self.least, "max": self.most, "sum": self.total}
        return {name: self.in_units(value) for name, value in named.items()} | {"scale": self.scale}

    def in_units(self, stored: int) -> float:
        """Return a sum of stored weights in the unit of the given ones."""
        return stored if self.scale == 1 else stored / self.scale

    def __str__(self) -> str:
        return f"weights {self.in_units(self.least):g} to {self.in_units(self.most):g}"

    @property
    def description(self) -> dict[str, Any]:
        """The entry of the weights in a sidecar."""
        return {"scale": self.scale, "checksum": self.checksum}

    def described(self, description: Mapping[str, Any], file: Path) -> Weights:
        """Return the same with the scale of a sidecar. Refuse weights with another checksum."""
        if self.checksum != description["checksum"]:
            raise GraphFormatError(
                f"{shown(Weights.beside(file))}: other weights than the sidecar of {shown(file)} describes. Convert "
                f"again, or pass {arg('weights')} with a path or an array"
            )
        return replace(self, scale=description["scale"])


class Description(msgspec.Struct):
    """The entry of the weights in a sidecar."""

    scale: Annotated[float, msgspec.Meta(gt=0, le=sys.float_info.max)]
    checksum: str


def _opened(file: Path) -> Array:
    return mapped(file, "not a .npy of weights")


def scaled(given: Any, name: str = "weights") -> tuple[npt.NDArray[np.uint32], float]:
    """Return weights as uint32, and the scale: by what they were multiplied before they were rounded.

    Whole numbers keep their values. Others are multiplied by the power of two that gives the largest 31 bits. None
    above 0 becomes 0. The scale depends on the largest weight only.
    """
    array = np.asarray(given.detach().cpu() if hasattr(given, "detach") else given)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise TypeError(
            f"{name}: expected one number per record, got shape {array.shape} of dtype {array.dtype}"
        )
    whole, most = True, 0.0
    for first, block in _blocks(array):
        _refuse_invalid(name, first, block)
        most = max(most, float(block.max()))
        whole = whole and bool((block == np.floor(block)).all())
    if whole and most <= _LARGEST:
        return np.ascontiguousarray(array, dtype=np.uint32), 1.0
    exponent = min(_BITS - math.frexp(most)[1], 1000)
    weights = np.empty(len(array), np.uint32)
    for first, block in _blocks(array):
        weights[first : first + len(block)] = _rounded(block.astype(np.float64), exponent)
    return weights, math.ldexp(1.0, exponent)


def _blocks(array: Array) -> Any:
    return ((first, array[first : first + _BLOCK]) for first in range(0, len(array), _BLOCK))


def _refuse_invalid(name: str, first: int, block: Array) -> None:
    """Refuse weights below 0, and floats that are no finite numbers."""
    valid = (block >= 0) & (np.isfinite(block) if block.dtype.kind == "f" else True)
    if not valid.all():
        bad = int(np.argmin(valid))
        raise ParameterError(
            f"{name}: record {first + bad} has the weight {block[bad]}. Weights are finite numbers of at least 0"
        )


def checked_relation_weights(relations: Sequence[Relation] | None, given: Any) -> dict[str, float] | None:
    """Return the factors of the named relations. None stays None.

    Raises
    ------
    ParameterError, TypeError
        The graph has no relations, or none of that name, or a factor is below 0.
    """
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise TypeError(
            f'relation_weights: expected numbers by relation, as {{"cites": 2.0}}, got {type(given).__name__}'
        )
    if relations is None:
        raise ParameterError(
            f"relation_weights: the graph has no relations. Open it with {arg('weights')}, one number per record"
        )
    known = [each.name for each in relations]
    for name in given:
        if name not in known:
            raise ParameterError(
                f"relation_weights: the graph has no relation {name!r}{meant(str(name), known)}"
            )
    factors = {
        name: float(number(f"relation_weights: {name}", given[name])) for name in known if name in given
    }
    for name, factor in factors.items():
        if not (factor >= 0 and math.isfinite(factor)):
            raise ParameterError(f"relation_weights: {name}: {factor} is no finite number of at least 0")
    return factors


def by_relation(
    relations: Sequence[Relation], factors: Mapping[str, float], own: Weights | None, options: RunOptions
) -> tuple[npt.NDArray[np.uint32], float]:
    """Return the weight of each record multiplied by the factor of its relation, and the scale.

    Records without a weight have weight 1, and relations that are not named the factor 1.
    """
    num_records = sum(each.m for each in relations)
    if options.memory_limit is not None and 4 * num_records > options.memory_limit:
        raise MemoryBudgetError(
            f"relation_weights: the weights of {num_records:,} records need {4 * num_records / 1e6:,.1f} MB of memory, "
            f"but the budget is {options.memory_limit / 1e6:,.1f} MB. Raise memory_limit"
        )
    given, values = None if own is None else own.array, [factors.get(each.name, 1.0) for each in relations]
    most = max(
        (value * (1 if given is None else float(given[each.first : each.range.stop].max()))
         for each, value in zip(relations, values, strict=True) if each.m),
        default=0.0,
    )  # fmt: skip
    exponent = _exponent(values, most)
    products = np.empty(num_records, np.uint32)
    for each, value in zip(relations, values, strict=True):
        for first in range(each.first, each.range.stop, _BLOCK):
            part = slice(first, min(first + _BLOCK, each.range.stop))
            products[part] = _rounded(
                value * (1.0 if given is None else given[part].astype(np.float64)), exponent
            )
    return products, (1.0 if own is None else own.scale) * math.ldexp(1.0, exponent)


def _rounded(exact: Any, exponent: int) -> npt.NDArray[np.float64]:
    """Return weights times a power of two as whole numbers. None above 0 becomes 0."""
    rounded = np.minimum(np.rint(np.ldexp(exact, exponent)), _LARGEST)
    return np.where(exact > 0, np.maximum(rounded, 1), 0)


def _exponent(values: list[float], most: float) -> int:
    """Return the power of two that weights are multiplied with before they are rounded.

    It is the least one that makes all factors whole, if one does. Otherwise the largest weight gets 31 bits.
    """
    array = np.array(values)
    for exponent in range(_FINEST + 1):
        whole = np.ldexp(array, exponent)
        if (whole == np.floor(whole)).all() and math.ldexp(most, exponent) <= _LARGEST:
            return exponent
    return min(_BITS - math.frexp(most)[1], 1000)
