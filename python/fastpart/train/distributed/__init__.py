"""DGL's distributed engine over the parts: sampled mini-batches, one server and some trainers per part."""

from .launch import distdgl

__all__ = ["distdgl"]
