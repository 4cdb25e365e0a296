"""Manifests of every schema. Those of schema 1 are translated to schema 2 when they are read.

Schema 2 renamed the keys of schema 1 and made the caps a list. Schema 3 added ``halo_rows.npy`` to the parts of a
vertex partition. Nothing else changed, so a manifest that was read has the keys of today, and its ``schema`` says which
arrays there are: 2 or 3. A directory of schema 3 says 4 if its features have 8 bits per number or hold codes of
categories, or if the graph has types: so versions which know neither refuse it. Its keys say which of them it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core import parameters
from ..errors import ParameterError
from ..partitions.partition import Partition
from ..partitions.results import Cap, cap_of_parts, plain

SCHEMA, CODED, TYPED = 3, 4, 4
"""What is written, and what is written if features are coded or hold codes of categories, or if the graph has types."""

VERSION = ("schema", max(SCHEMA, CODED, TYPED))
"""The field of the version of a manifest, and the newest one that is read."""

_RENAMED = {"kind": "of", "edges": "directedness", "metrics": "summary"}
_ITEMS = {"vertex": "vertices", "edge": "edges"}
_BOUNDS = {"weights": "weight", "volume": "volume"}
"""Bounds beside that of the items, and the prefix of their attributes in a partition."""

_TYPE = "type"
"""What a bound is of whose weights stand for the vertices of one type."""


def caps_of(partition: Partition) -> list[dict[str, Any]]:
    """Return the bounds of a partition: on its items, on weights, on volume."""
    caps = []
    if partition.cap is not None:
        caps.append({"of": partition.of, "cap": plain(partition.cap), "loads": partition.loads.tolist()})
    weights = partition._weights()
    several = partition.weight_loads is not None and partition.weight_loads.ndim == 2
    types = partition.bounded_types or (None,) * len(weights)
    for index, (name, (_, loads, cap)) in enumerate(zip(types, weights, strict=True)):
        of = {"of": "weights"} if name is None else {"of": _TYPE, "name": name}
        place = {"index": index} if several else {}
        caps.append({**of, **place, "cap": plain(cap), "loads": loads.tolist()})
    if partition.volume_loads is not None:
        volume = 0 if partition.volume_cap is None else plain(partition.volume_cap)
        caps.append({"of": "volume", "cap": volume, "loads": partition.volume_loads.tolist()})
    return caps


def present(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest with the keys of the present schema. Its values are not checked yet."""
    return _second(stored) if stored["schema"] == 1 else dict(stored)


def _second(first: Mapping[str, Any]) -> dict[str, Any]:
    """Translate a manifest of schema 1. The keys keep their order."""
    second: dict[str, Any] = {}
    for name, value in first.items():
        match name:
            case "schema":
                second[name] = 2
            case "kind":
                second["of"] = _items(value)
            case "parameters" | "metrics" if isinstance(value, dict):
                renamed = {"mode": "of"} if name == "parameters" else {"kind": "of"}
                second[_RENAMED.get(name, name)] = {
                    renamed.get(key, key): _items(item) if key in renamed else item
                    for key, item in value.items()
                }
            case "cap":
                second["caps"] = _caps(first)
            case "weight_cap" | "weight_loads" | "volume_cap" | "volume_loads":
                pass  # they are among the caps
            case _:
                second[_RENAMED.get(name, name)] = value
    return second


def _items(value: Any) -> Any:
    return _ITEMS.get(value, value) if isinstance(value, str) else value


def _caps(first: Mapping[str, Any]) -> list[dict[str, Any]]:
    caps = []
    if first["cap"] is not None:
        caps.append({"of": _items(first.get("kind")), "cap": first["cap"]})
    for of, prefix in _BOUNDS.items():
        if f"{prefix}_loads" in first:
            caps.append({"of": of, "cap": first.get(f"{prefix}_cap"), "loads": first[f"{prefix}_loads"]})
    return caps


def restore_caps(partition: Partition, caps: Any) -> None:
    """Set the bounds of a partition from a manifest. Loads of its items follow from the assignment.

    Raises
    ------
    FastpartError, TypeError
        The list is invalid or contradicts the assignment.
    """
    if not isinstance(caps, list) or not all(isinstance(bound, dict) for bound in caps):
        raise TypeError("caps: expected a list of objects")
    weights: list[dict[str, Any]] = []
    for bound in caps:
        of = parameters.choice("caps: of", bound.get("of"), (partition.of, *_BOUNDS, _TYPE))
        cap = _cap(of, bound.get("cap"), partition.k)
        if of in _BOUNDS or of == _TYPE:
            loads = _loads(of, bound.get("loads"), partition.k)
            if of == "volume":
                partition.volume_cap, partition.volume_loads = cap, loads
            else:
                weights.append({**bound, "cap": plain(cap), "loads": loads.tolist()})
            continue
        partition.cap = cap
        if "loads" in bound and bound["loads"] != partition.loads.tolist():
            raise ParameterError(f"caps: the loads of {of} contradict the assignment")
    if weights:
        several = len(weights) > 1 or "index" in weights[0]
        if several and [bound.get("index") for bound in weights] != list(range(len(weights))):
            raise ParameterError("caps: weights: index: expected 0, 1, ... in order")
        loads_of_all = [bound["loads"] for bound in weights]
        partition._balance_on(loads_of_all, [bound["cap"] for bound in weights], several=several)
        partition.bounded_types = _types_of(weights)


def _types_of(weights: list[dict[str, Any]]) -> tuple[str | None, ...] | None:
    """Return the types that bounds name, or None if none does."""
    names = tuple(bound.get("name") if bound["of"] == _TYPE else None for bound in weights)
    if not all(
        isinstance(name, str) for name, bound in zip(names, weights, strict=True) if bound["of"] == _TYPE
    ):
        raise ParameterError("caps: type: name: expected the name of a type")
    return names if any(name is not None for name in names) else None


def _cap(of: str, cap: Any, k: int) -> Cap:
    """Return the cap of all parts, or one of each."""
    name = f"caps: {of}: cap"
    if not isinstance(cap, list):
        return parameters.integer(name, cap, 0, 2**63)
    if len(cap) != k:
        raise ParameterError(f"{name}: expected an integer, or a list of {k}, one per part")
    return cap_of_parts([parameters.integer(name, each, 0, 2**63 - 1) for each in cap])


def _loads(of: str, loads: Any, k: int) -> npt.NDArray[np.int64]:
    if not isinstance(loads, list) or len(loads) != k:
        raise ParameterError(f"caps: {of}: loads: expected a list of {k} integers, one per part")
    checked = [parameters.integer(f"caps: {of}: loads", load, 0, 2**63 - 1) for load in loads]
    array = np.array(checked, dtype=np.int64)
    array.flags.writeable = False
    return array
