"""The built-in models of typed graphs."""

from __future__ import annotations

from .heterosage import HeteroSAGE
from .hgt import HGT
from .network import TypedNetwork
from .rgat import RGAT
from .rgcn import RGCN

__all__ = ["TYPED_MODELS", "TypedNetwork"]

TYPED_MODELS: dict[str, type[TypedNetwork]] = {
    "rgcn": RGCN,
    "rgat": RGAT,
    "hgt": HGT,
    "heterosage": HeteroSAGE,
}
"""The built-in models of typed graphs by the value of ``model=``."""
