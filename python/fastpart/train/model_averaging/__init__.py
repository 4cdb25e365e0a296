"""Model averaging over the parts: every part is trained on by itself, with its halo."""

from .launch import sdt

__all__ = ["sdt"]
