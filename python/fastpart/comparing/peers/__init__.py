"""Partitioners of other packages: each run is a process of its own, with limits, since they may crash or hang."""

from .bench import Bench
from .registry import PEERS, Peer

__all__ = ["PEERS", "Bench", "Peer"]
