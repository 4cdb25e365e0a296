"""Partitioners of other packages. Each run is a process with limits, because they may crash or hang."""

from .bench import Bench
from .registry import PEERS, Peer

__all__ = ["PEERS", "Bench", "Peer"]
