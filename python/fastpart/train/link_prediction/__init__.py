"""Link prediction and unsupervised training, with fastpart's own sampler."""

from .launch import links
from .trained import TrainedLinks

__all__ = ["TrainedLinks", "links"]
