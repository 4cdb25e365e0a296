"""Model averaging (SDT-GNN): a copy of the model trains on every part with its halo."""

from .launch import sdt

__all__ = ["sdt"]
