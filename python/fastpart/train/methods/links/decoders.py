"""Decoders of pairs of vertices, with or without a relation, and an encoder with a decoder as one network."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ....errors import ParameterError
from ....partitions.types import ONLY_TYPE
from ...graphs.rows import alone
from ...learning.trainable import Make, refuse_untrainable
from ...method_options import DecoderName, PairDecoderName
from ...models import TypedNetwork, build
from ...models.scores import Task, TypedTask
from ...options import Options
from ...plugged import name_of
from .steps import Step

DECODERS: tuple[DecoderName, ...] = get_args(DecoderName)
OF_PAIRS: tuple[PairDecoderName, ...] = get_args(PairDecoderName)

_COSINE_SCALE = 5.0
"""First scale of cosines."""

_SHORT = 1e-3
"""Rows that are shorter have no direction."""

_NUMBERS = 1 << 22
"""Numbers of a block of pairs with candidates that are not compared by a product of matrices."""


class Dot(nn.Module):
    """The inner product of two vertices."""

    def forward(self, sources: Tensor, targets: Tensor) -> Tensor:
        """Return the logit of each pair of rows."""
        return (sources * targets).sum(-1)

    def against(self, sources: Tensor, targets: Tensor) -> Tensor:
        """Return the logit of each source with each target."""
        return sources @ targets.T


class Cosine(nn.Module):
    """The cosine of the angle between two vertices, times a learned scale, plus a learned offset.

    Inner products of long rows are large, from which a training may not recover. Cosines do not depend on the lengths
    of rows, and so less on the scale of the features. The scale is learned by its logarithm (Radford et al. 2021,
    section 2.3).
    """

    def __init__(self) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(math.log(_COSINE_SCALE)))
        self.offset = nn.Parameter(torch.tensor(0.0))

    def forward(self, sources: Tensor, targets: Tensor) -> Tensor:
        """Return the logit of each pair of rows."""
        return self._logits((_directions(sources) * _directions(targets)).sum(-1))

    def against(self, sources: Tensor, targets: Tensor) -> Tensor:
        """Return the logit of each source with each target."""
        return self._logits(_directions(sources) @ _directions(targets).T)

    def _logits(self, cosines: Tensor) -> Tensor:
        return cosines * self.log_scale.exp() + self.offset


def _directions(rows: Tensor) -> Tensor:
    """Return rows of length 1. Those that are nearly zero stay short, as their gradients would be huge."""
    return F.normalize(rows, dim=-1, eps=_SHORT)


class MLP(nn.Module):
    """A perceptron with one hidden layer over the elementwise product of two vertices."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden, self.out = nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, sources: Tensor, targets: Tensor) -> Tensor:
        """Return the logit of each pair of rows."""
        logits: Tensor = self.out(F.relu(self.hidden(sources * targets))).squeeze(-1)
        return logits

    def against(self, sources: Tensor, targets: Tensor) -> Tensor:
        """Return the logit of each source with each target."""
        return _blockwise(lambda rows: self(rows.unsqueeze(1), targets.unsqueeze(0)), sources, targets)


class DistMult(nn.Module):
    """The inner product of a moved vertex with the other one: a relation scales each number (Yang et al. 2015)."""

    complex = False

    def initial(self, count: int, width: int) -> Tensor:
        """Return the first rows of relations."""
        return torch.rand(count, width) * (2 * math.sqrt(3)) - math.sqrt(3)

    def moved(self, rows: Tensor, relations: Tensor, back: bool) -> Tensor:
        """Return sources moved by their relations, to be compared with targets, or targets moved ``back``."""
        return rows * relations

    def forward(self, moved: Tensor, others: Tensor) -> Tensor:
        """Return the logit of each moved row with another one."""
        return (moved * others).sum(-1)

    def against(self, moved: Tensor, others: Tensor) -> Tensor:
        """Return the logit of each moved row with each other one."""
        return moved @ others.T


class ComplEx(DistMult):
    """The real part of the product of complex numbers (Trouillon et al. 2016). Real parts come first in a row."""

    complex = True

    def moved(self, rows: Tensor, relations: Tensor, back: bool) -> Tensor:
        """Return sources times their relations, or targets times the conjugates."""
        return _product(rows, relations, back)


class RotatE(DistMult):
    """Minus the distance of a rotated vertex from the other one (Sun et al. 2019). Relations are angles.

    The distance is the sum of the moduli.
    """

    complex = True

    def initial(self, count: int, width: int) -> Tensor:
        """Return the first angles of relations."""
        return (torch.rand(count, width // 2) * 2 - 1) * math.pi

    def moved(self, rows: Tensor, relations: Tensor, back: bool) -> Tensor:
        """Return sources rotated by the angles of their relations, or targets rotated back."""
        return _product(rows, torch.cat([relations.cos(), relations.sin()], -1), back)

    def forward(self, moved: Tensor, others: Tensor) -> Tensor:
        """Return the logit of each rotated row with another one."""
        real, imaginary = (moved - others).chunk(2, -1)
        return -(real.square() + imaginary.square() + 1e-12).sqrt().sum(-1)

    def against(self, moved: Tensor, others: Tensor) -> Tensor:
        """Return the logit of each rotated row with each other one."""
        return _blockwise(lambda rows: self(rows.unsqueeze(1), others.unsqueeze(0)), moved, others)


def _product(rows: Tensor, factors: Tensor, conjugate: bool) -> Tensor:
    """Return the products of complex numbers with factors or with their conjugates."""
    (a, b), (c, d) = rows.chunk(2, -1), factors.chunk(2, -1)
    d = -d if conjugate else d
    return torch.cat([a * c - b * d, a * d + b * c], -1)


def _blockwise(logits: Callable[[Tensor], Tensor], rows: Tensor, others: Tensor) -> Tensor:
    """Return logits of some rows at a time. Gradients compute them again, so that only one block is in memory."""
    step = max(1, _NUMBERS // max(others.numel(), 1))
    if not torch.is_grad_enabled():
        return torch.cat([logits(some) for some in rows.split(step)])
    return torch.cat([checkpoint(logits, some, use_reentrant=False) for some in rows.split(step)])


_SCORES: dict[str, Callable[[], Dot | DistMult]] = {
    "dot": Dot,
    "distmult": DistMult,
    "complex": ComplEx,
    "rotate": RotatE,
}


class Decoder(nn.Module):
    """A decoder of pairs of a relation, as sources with candidates for their target, or the other way round.

    Parameters
    ----------
    name : str
        One of :data:`DECODERS`.
    width : int
        Numbers in a row of a vertex.
    relations : int
        Number of relations.
    reciprocal : bool
        Whether relations have other rows where sources are predicted than where targets are (Lacroix et al. 2018).

    Attributes
    ----------
    relations : torch.nn.Parameter or None
        A row for each relation. ``dot`` has none.
    offset : torch.nn.Parameter
        What losses of single pairs add to logits, as the fixed margin of Sun et al. 2019. It changes no rank.
    """

    def __init__(self, name: DecoderName, width: int, relations: int, reciprocal: bool) -> None:
        super().__init__()
        self._count, self._reciprocal, rows = relations, reciprocal, (1 + reciprocal) * relations
        self.offset = nn.Parameter(torch.tensor(6.0 if name == "rotate" else 0.0))
        self.score = MLP(width) if name == "mlp" else _SCORES[name]()
        if isinstance(self.score, DistMult):
            if self.score.complex and width % 2:
                raise ParameterError(
                    f"width: {width} is odd, but {name!r} needs pairs of real and imaginary parts"
                )
            self.relations = nn.Parameter(self.score.initial(rows, width))
        else:
            self.relations = None if name == "dot" else nn.Parameter(torch.ones(rows, width))

    def moved(self, rows: Tensor, relations: Tensor, back: bool, factors: Tensor | None = None) -> Tensor:
        """Return what is compared with rows of candidates.

        Parameters
        ----------
        rows : torch.Tensor
            Of the sources, or of the targets if sources are wanted.
        relations : torch.Tensor
            int64: number of the relation of each.
        back : bool
            Whether sources are wanted.
        factors : torch.Tensor, optional
            Rows of all relations. Default: the weights.
        """
        known = self.relations if factors is None else factors
        if known is None:
            return rows
        turned = back and self._reciprocal
        of_each = known[relations + self._count if turned else relations]
        if isinstance(self.score, DistMult):
            return self.score.moved(rows, of_each, back and not turned)
        return rows * of_each

    def forward(self, moved: Tensor, others: Tensor) -> Tensor:
        """Return the logit of each of :meth:`moved` with another row."""
        logits: Tensor = self.score(moved, others)
        return logits

    def against(self, moved: Tensor, others: Tensor) -> Tensor:
        """Return the logit of each of :meth:`moved` with each other row."""
        return self.score.against(moved, others)


PairDecoder = Cosine | Dot | MLP


class PairNetwork(nn.Module):
    """A network that has outputs of pairs of vertices.

    Attributes
    ----------
    encoder : torch.nn.Module
        Returns one row for each vertex, as the models of fastpart return logits. In a graph with types, by type.
    """

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def encode(self, graphs: Sequence[Any], x: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the rows of the targets of the last graph, by type."""
        if isinstance(self.encoder, TypedNetwork):
            return self.encoder.encode(graphs, x)
        return {ONLY_TYPE: self.encoder(graphs, alone(x))}

    def ends_of(self, step: Step, dtype: torch.dtype) -> list[Tensor]:
        """Return the rows of the sources and of the targets of a step."""
        h = self.encode(step.graphs, {name: rows.to(dtype) for name, rows in step.x.items()})
        return [h[name][rows] for name, rows in zip(step.types, step.ends, strict=True)]


class LinkNetwork(PairNetwork):
    """A network that says whether two vertices are linked.

    Attributes
    ----------
    decoder : torch.nn.Module
        Returns a logit for each pair of rows. In a graph with types it is a list of decoders, one for each relation.
    """

    def __init__(self, encoder: nn.Module, decoder: PairDecoder | nn.ModuleList) -> None:
        super().__init__(encoder)
        self.decoder = decoder

    def decoder_of(self, relation: int) -> PairDecoder:
        """Return the decoder of one of the relations that are predicted."""
        found: Any = self.decoder[relation] if isinstance(self.decoder, nn.ModuleList) else self.decoder
        decoder: PairDecoder = found
        return decoder


def network_with(decoder: PairDecoderName, relations: int = 1) -> Callable[[Task, Options], LinkNetwork]:
    """Return a function that makes the network of a task, whose ``classes`` are the width of the encoder's rows.

    A typed task needs a decoder for each of ``relations``.
    """

    def make(task: Task, options: Options) -> LinkNetwork:
        encoder = build(task, options)
        if decoder != "mlp":
            refuse_untrainable(encoder, options.model)  # scale and offset alone change no rank
        if not isinstance(task, TypedTask):
            return LinkNetwork(encoder, _of_pairs(decoder, task.classes))
        refuse_one_type(encoder, options, "model")
        return LinkNetwork(encoder, nn.ModuleList(_of_pairs(decoder, task.classes) for _ in range(relations)))

    return make


def _of_pairs(decoder: PairDecoderName, width: int) -> PairDecoder:
    if decoder == "mlp":
        return MLP(width)
    return Cosine() if decoder == "cosine" else Dot()


def refuse_one_type(encoder: nn.Module | None, options: Options, parameter: str) -> None:
    """Raise an error if an encoder does not return rows of several types."""
    if not isinstance(encoder, TypedNetwork | None):
        raise ParameterError(
            f"{parameter}: {name_of(options.model)} returns rows of one type. Make it a TypedNetwork of "
            "fastpart.train.models, which returns those of several"
        )


class RelationNetwork(nn.Module):
    """A network that tells edges of relations from others.

    Attributes
    ----------
    encoder : torch.nn.Module or None
        Returns rows of vertices by type. None: they are learned.
    decoder : Decoder
        Returns logits of pairs of rows with a relation.
    """

    def __init__(self, encoder: nn.Module | None, decoder: Decoder) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder


def relation_network(
    decoder: DecoderName, relations: int, reciprocal: bool
) -> Callable[[Task, Options], RelationNetwork]:
    """Return a function that makes the network of a task.

    That of a typed task has an encoder, and ``classes`` of it are the width of rows. Else ``features`` are.
    """

    def make(task: Task, options: Options) -> RelationNetwork:
        encoder = build(task, options) if isinstance(task, TypedTask) else None
        refuse_one_type(encoder, options, "encoder")
        width = task.features if encoder is None else task.classes
        return RelationNetwork(encoder, Decoder(decoder, width, relations, reciprocal))

    return make


def noted_network(noted: Mapping[str, Any]) -> Make:
    """Return what makes the networks of ``links``, by what the folder of a training notes."""
    return network_with(noted["decoder"], len(noted.get("relations", [None])))


def noted_relation_network(noted: Mapping[str, Any]) -> Make:
    """Return what makes the networks of ``embeddings``, by what the folder of a training notes."""
    return relation_network(noted["decoder"], noted["relations"], noted["reciprocal"])
