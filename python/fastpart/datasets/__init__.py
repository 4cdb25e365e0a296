"""Real graphs that come with the package, for first tries without a network. ``LICENCE.md`` has their licences."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..core.calls import called_well, refusing
from ..core.rows import rows_of
from ..graphs.graph import Graph
from ..graphs.opening import open_graph

__all__ = ["LabelledGraph", "amazon_computers", "cora"]

if not TYPE_CHECKING:  # type checkers find unknown names themselves
    __getattr__ = refusing(__name__, __all__)

_FOLDER = Path(__file__).parent
_ENDS = (0.7, 0.85)
"""Where the training and the validation vertices end in a random order, where a graph has no public split."""


@dataclass(frozen=True, eq=False)
class LabelledGraph:
    """A graph with what training needs.

    Attributes
    ----------
    graph : Graph
        The edges, undirected, each once.
    features : numpy.ndarray
        float32, shape (n, width): 1 where a word occurs, else 0.
    labels : numpy.ndarray
        int64, shape (n,): class of each vertex.
    splits : dict of str to numpy.ndarray
        int64: vertices of ``train``, ``val`` and ``test``.
    """

    graph: Graph
    features: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]
    splits: dict[str, npt.NDArray[np.int64]]

    def __repr__(self) -> str:
        width, classes = self.features.shape[1], int(self.labels.max()) + 1
        return f"<LabelledGraph: {self.graph!r}, {width} features, {classes} classes>"


@called_well
def cora() -> LabelledGraph:
    """Return Cora: 2,708 papers in 7 classes, and their 5,278 citations.

    Returns
    -------
    LabelledGraph
        With 1,433 words as features, and the public split: 140, 500 and 1,000 vertices.

    References
    ----------
    P. Sen et al., "Collective Classification in Network Data", AI Magazine 2008. The split: Z. Yang et al., "Revisiting
    Semi-Supervised Learning with Graph Embeddings", ICML 2016.

    Examples
    --------
    >>> import fastpart as fp
    >>> data = fp.datasets.cora()
    >>> fp.partition(data.graph, k=4)
    <VertexPartition: multilevel, k=4, 2708 vertices, loads 641..698, volume balance 1.10>
    """
    return _opened("cora")


@called_well
def amazon_computers() -> LabelledGraph:
    """Return Amazon Computers: 13,752 goods in 10 classes, and 245,861 pairs that are often bought together.

    Returns
    -------
    LabelledGraph
        With 767 words of reviews as features. There is no public split. A random one has 70 % of the vertices to train
        on, 15 % to validate and 15 % to test. It is the same in every call.

    References
    ----------
    O. Shchur et al., "Pitfalls of Graph Neural Network Evaluation", 2018, arXiv:1811.05868.

    Examples
    --------
    >>> import fastpart as fp
    >>> data = fp.datasets.amazon_computers()
    >>> len(data.splits["train"])
    9626
    """
    return _opened("amazon-computers")


def _opened(name: str) -> LabelledGraph:
    features = rows_of("features", _FOLDER / f"{name}.features.npz")
    labels = np.load(_FOLDER / f"{name}.labels.npy")
    known = _FOLDER / f"{name}.split.npz"
    if known.exists():
        with np.load(known) as file:
            splits = dict(file)
    else:
        order = np.random.default_rng(0).permutation(len(labels))
        pieces = np.split(order, [int(end * len(order)) for end in _ENDS])
        splits = dict(zip(("train", "val", "test"), pieces, strict=True))
    graph = open_graph(_FOLDER / f"{name}.txt.gz")
    return LabelledGraph(graph, np.concatenate(list(features.chunks())), labels, splits)
