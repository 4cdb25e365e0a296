"""Files of weights: tensors, numbers and text, of which nothing is executed."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ...core import parameters
from ...core.parameters import StrPath, shown
from ...errors import GraphFormatError, ParameterError

Weights = dict[str, Tensor]


def load_weights(file: StrPath) -> dict[str, Any]:
    """Load a ``.pt`` of tensors, numbers and text. Nothing in it is executed."""
    path = parameters.regular(parameters.path("file", file))
    return weights_in(path.read_bytes(), path)


def weights_in(content: bytes, file: Path) -> dict[str, Any]:
    """Return what the content of a ``.pt`` holds. Errors name the file."""
    try:
        loaded = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as error:  # torch may raise anything on damaged bytes
        raise GraphFormatError(f"{shown(file)}: holds no weights ({error})") from None
    if not isinstance(loaded, dict):
        raise GraphFormatError(f"{shown(file)}: holds no weights")
    return loaded


def content_of(saved: Mapping[str, Any]) -> bytes:
    """Return the content of a ``.pt``."""
    buffer = io.BytesIO()
    torch.save(saved, buffer)
    return buffer.getvalue()


def refuse_other_shapes(network: nn.Module, weights: Mapping[str, Tensor], run: Path) -> None:
    """Refuse a model that cannot take the weights of a training, and name the tensor."""
    there = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    kept = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    for name in {**there, **kept}:
        if there.get(name) != kept.get(name):
            mine, theirs = (
                "is missing" if shape is None else f"has the shape {shape}"
                for shape in (there.get(name), kept.get(name))
            )
            raise ParameterError(
                f"model: it is not the one that was trained. Its tensor {name!r} {mine}, but in {shown(run)} it "
                f"{theirs}"
            )
