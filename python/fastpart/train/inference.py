"""Exact outputs of a network for the vertices of a vertex partition, from whole neighbourhoods.

A :class:`~.models.Network` is computed layer by layer: the outputs of a layer for all vertices go to files, 4 bytes per
vertex and number, and the next layer gathers the rows that it needs. In memory is one block of vertices with its
neighbours, of at most 64 MB unless a single vertex has more. So graphs and features may be larger than memory. A layer
that takes no more than a mean of the neighbours has it added up by the core, straight from the files (:mod:`.means`).
If few outputs are wanted, a layer computes only the vertices that the next one needs: a byte per vertex says which. Any
other network is computed for blocks of wanted vertices with all their hops, which are halved until the memory holds
them.

Several processes share the work: each takes the parts that it owns, and waits for the others after each layer. Rows of
parts on other machines come by messages. Then all processes read as many blocks, of which some are empty.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from .. import _core
from ..errors import MemoryBudgetError
from ..loading.fetching import Fetching
from ..loading.rows.saved import RowFiles, SavedRows
from .blocks import Block, Blocks, VertexMask, Vertices, piece
from .columns import StoredRows
from .data import SPLITS, Dataset
from .graphs.rows import Means, Rows, ScaledMeans
from .learning.metrics import Metrics, Scores
from .means import MeansOfRows
from .models import Network, takes_edge_attr
from .neighbourhood import inverse_roots
from .ranks import barrier, largest, total

Outputs = tuple[int, Vertices, Tensor]
"""A part, some of its vertices with labels by their place, and one row for each."""

Fits = Callable[[Sequence[int], Sequence[int]], bool]
"""Returns whether the memory holds a block with so many nodes and in-edges in each hop."""

HopSizes = Callable[[npt.NDArray[np.uint32]], tuple[Sequence[int], Sequence[int]]]
"""Returns how many nodes and in-edges each hop of some rows has."""

InputRows = _core.Features | SavedRows | None
"""Where the inputs of a layer are. None if no process has any here."""

FEW = 4
"""One in so many vertices is few: their in-edges do not lead to nearly all others. Fewer vertices are computed then."""

EDGES = 1 << 19
"""In-edges of a block, at most about. A vertex with more is a block of its own."""


class ExactOutputs(ABC):
    """The outputs of networks for the vertices with labels, from whole neighbourhoods, and their scores.

    Parameters
    ----------
    dataset : Dataset
        The graph.
    own : Blocks
        The vertices with labels in the parts of this process.
    layers : int
        Number of hops that a network without layers of its own looks at.
    fits : callable, optional
        Whether the memory holds a block of a network without layers. Default: any.
    """

    def __init__(self, dataset: Dataset, own: Blocks, layers: int, fits: Fits | None) -> None:
        self._dataset, self._own, self._layers, self._fits = dataset, own, layers, fits
        self._topology = dataset.topology
        self._known_blocks: dict[int, tuple[Vertices, list[Block]]] = {}

    @abstractmethod
    def outputs(
        self, network: nn.Module, wanted: VertexMask | None = None, layers: int | None = None
    ) -> Iterator[Outputs]:
        """Yield a part of this process, some of its vertices with labels by their place, and their outputs.

        Parameters
        ----------
        network : torch.nn.Module
            The network.
        wanted : callable, optional
            Returns the mask of the vertices of a part whose outputs are wanted. Default: all.
        layers : int, optional
            Number of layers, to get the outputs of a hidden one. Default: all.
        """

    @torch.no_grad()
    def scores(
        self, network: nn.Module, metrics: Metrics | None = None, splits: tuple[str, ...] = SPLITS[1:]
    ) -> dict[str, float]:
        """Return accuracy, micro-F1 and the metrics of the user for each split, the same in all processes."""
        scores = Scores(self._dataset.task, metrics, splits)
        known = {part: self._known(part, splits) for part in self._own.parts}
        for part, vertices, logits in self.outputs(network, lambda part: np.any(known[part][1], axis=0)):
            labels, masks = known[part]
            for split, mask in zip(splits, masks, strict=True):
                those = torch.from_numpy(np.flatnonzero(mask[vertices]))
                scores.add(split, logits[those], labels[torch.from_numpy(vertices)[those]])
        return scores.of_all()

    def _known(self, part: int, splits: tuple[str, ...]) -> tuple[Tensor, npt.NDArray[np.bool_]]:
        """Return the labels of a part, and for each split a mask of those that count."""
        data = self._dataset.partition.parts[part]
        masks = np.zeros((len(splits), self._dataset.labelled(data).num_inner), bool)
        for mask, ids in zip(masks, map(self._dataset.splits(data).get, splits), strict=True):
            mask[ids] = True
        return self._dataset.labels(data), masks

    def _fitting(self, part: int, wanted: VertexMask | None, sizes: HopSizes) -> list[Block]:
        """Return blocks of the wanted vertices of a part that the memory holds with all their hops. They are kept."""
        vertices = self._own.vertices(part, wanted)
        known = self._known_blocks.get(part)
        if known is None or not np.array_equal(known[0], vertices):
            known = self._known_blocks[part] = vertices, list(self._halved(part, vertices, sizes))
        return known[1]

    def _halved(self, part: int, vertices: Vertices, sizes: HopSizes) -> Iterator[Block]:
        if self._fits is None or not len(vertices):
            yield part, vertices
            return
        rows, half = self._own.rows(part, vertices), len(vertices) // 2
        if int(self._own.degrees(part, vertices).sum()) > EDGES and half:
            fits = False  # it is not sampled, which would take memory, too
        else:
            nodes, edges = sizes(rows)
            fits = self._fits(nodes, edges)
        if fits:
            yield part, vertices
        elif not half:
            raise MemoryBudgetError(
                f"model: vertex {self._topology.ids_of(rows)[0]} reaches {sum(nodes):,} vertices over {sum(edges):,} "
                f"edges in {self._layers} hops, which the memory does not hold. Raise memory_limit, or use a network "
                "with layers, as of fastpart.train.models, which is computed layer by layer"
            )
        else:
            yield from self._halved(part, vertices[:half], sizes)
            yield from self._halved(part, vertices[half:], sizes)


class Inference(ExactOutputs):
    """The outputs of networks over a dataset.

    Parameters
    ----------
    dataset : Dataset
        The graph.
    parts : list of int
        The parts of this process. Together the processes have all of them, each once.
    folder : path
        For files of hidden layers. All processes see it.
    layers : int
        Number of hops that the network looks at, if it has no layers of its own.
    fetching : Fetching, optional
        Messages to processes that have other features. Default: all are in files here.
    fits : callable, optional
        Whether the memory holds a block of a network without layers. Default: any.
    free_bytes : int
        Memory for rows that are on the disk: for sums, or for columns of them. The more, the less is read.
    edge_fetching : Fetching, optional
        Messages to processes that have other features of edges.
    """

    def __init__(
        self,
        dataset: Dataset,
        parts: list[int],
        folder: Path,
        layers: int,
        fetching: Fetching | None = None,
        fits: Fits | None = None,
        free_bytes: int = 0,
        edge_fetching: Fetching | None = None,
    ) -> None:
        own = Blocks(dataset.partition.parts, parts, dataset.topology.starts)
        super().__init__(dataset, own, layers, fits)
        self._folder = folder
        self._fetching = fetching if fetching is not None and fetching.by_messages else None
        self._parts = dataset.partition.parts
        self._hop = _core.Sampler(self._topology, [-1], merged=True)
        self._edge_fetching = edge_fetching if self._fetching is not None else None
        self._codes: tuple[_core.Features, StoredRows] | None = None  # the features, if their files are coded
        self._means = MeansOfRows(self._topology, self._parts, self._own, folder, free_bytes)

    @torch.no_grad()
    def outputs(
        self,
        network: nn.Module,
        wanted: VertexMask | None = None,
        layers: int | None = None,
    ) -> Iterator[Outputs]:
        """Yield a part of this process, some of its inner vertices by local id, and their outputs."""
        network.eval()
        if not isinstance(network, Network):
            yield from self._at_once(network, wanted)
            return
        rows: InputRows = self._features()
        files = []
        needed = self._pushed_back(wanted, len(network.layers) if layers is None else layers)
        for index, mask in enumerate(needed[:-1]):
            kept = mask if self._fetching is None else None  # others ask for rows by their number among all
            files += self._save(index, self._layer(network, index, rows, mask), kept)
            barrier()
            self._means.clear()
            rows = self._opened(self._saved(index)) if kept is None else self._some(index, kept)
        yield from self._layer(network, len(needed) - 1, rows, wanted)
        barrier()
        self._means.clear()
        for file in files:
            file.unlink()

    def _pushed_back(self, wanted: VertexMask | None, layers: int) -> list[VertexMask | None]:
        """Return the vertices that each layer has to compute, the first layer first. None: all of them."""
        needed = [wanted]
        while len(needed) < layers:
            needed.insert(0, self._with_sources(needed[0]))
        return needed

    def _with_sources(self, wanted: VertexMask | None) -> VertexMask | None:
        """Return some vertices and the sources of their in-edges, found by all processes. None: nearly all vertices."""
        if wanted is None:
            return None
        n, starts = self._topology.num_vertices, self._topology.starts
        own = sum(int(np.count_nonzero(wanted(part))) for part in self._own.parts)
        if FEW * int(total(torch.tensor(own))) > n:
            return None
        mask = np.zeros(n, np.uint8)
        for number, block in self._blocks(wanted, 0):
            mask[self._hop.sample(self._own.rows(number, block)).rows] = 1
        reached = largest(torch.from_numpy(mask)).numpy().view(np.bool_)
        return lambda part: reached[starts[part] : starts[part + 1]]

    def _saved(self, index: int) -> list[Path | None]:
        """Return the files of the outputs of a layer that processes have written."""
        files = (self._file(index, part) for part in range(len(self._parts)))
        return [file if file is not None and file.exists() else None for file in files]

    def _some(self, index: int, mask: VertexMask) -> SavedRows | None:
        """Return the outputs of a layer for the vertices of a mask, None if there are none."""
        starts, files, ids = self._topology.starts, [], []
        for part in range(len(self._parts)):
            file, rows = self._file(index, part), np.flatnonzero(mask(part))
            if file is not None and len(rows):
                files.append(file)
                ids.append((starts[part] + rows).astype(np.uint32))
        return SavedRows(files, ids) if files else None

    def _features(self) -> _core.Features | None:
        rows = self._opened([part.folder / "features.npy" for part in self._parts])
        coding = self._parts[0].coding("features")
        if rows is None or coding is None:
            return rows
        self._codes = rows, StoredRows(self._topology.num_vertices, coding.width, coding)
        return rows.decoded(coding.core)

    def _opened(
        self, files: list[Path | None], starts: npt.NDArray[np.int64] | None = None
    ) -> _core.Features | None:
        """Map the files that are here. None if there are none."""
        for part in [] if self._fetching is None else self._fetching.away:
            files[part] = None
        return _core.Features(files, self._topology, starts=starts) if any(files) else None

    def _file(self, index: int, part: int) -> Path | None:
        """Return the file of the outputs of a layer for the vertices of a part, None if there are none."""
        return self._folder / f"layer-{index}-{part}.npy" if self._parts[part].num_inner else None

    def _save(self, index: int, outputs: Iterator[Outputs], mask: VertexMask | None = None) -> list[Path]:
        """Write the outputs of a layer, of all vertices or of those of a mask, and return the files."""
        files = RowFiles()
        places: dict[int, Vertices] = {}
        for part, vertices, h in outputs:
            file, count = self._file(index, part), self._parts[part].num_inner
            assert file is not None
            if mask is not None:
                if part not in places:
                    places[part] = np.cumsum(mask(part)) - 1
                vertices, count = places[part][vertices], int(places[part][-1]) + 1
            files.put(file, count, vertices, h.float().numpy())
        return files.paths

    def _layer(
        self, network: Network, index: int, rows: InputRows, wanted: VertexMask | None
    ) -> Iterator[Outputs]:
        """Yield the outputs of one layer, given its inputs for all vertices."""
        where = numbers_of(network)
        width = network.width_of_edges(index) + (rows.row_shape[0] if rows is not None else 0)
        edges = self._edge_features() if takes_edge_attr(network) else None
        hop = self._hop if edges is None else _core.Sampler(self._topology, [-1], merged=True, edge_rows=True)
        if isinstance(rows, _core.Features) and self._by_means(network, index, rows):
            yield from self._from_means(network, index, rows, wanted)
            return
        for number, block, sample, x, of_edges in self._read(hop, rows, self._blocks(wanted, width), edges):
            x = x.to(**where)
            outputs = network.layer(index, self._graph(sample, x.device, of_edges), x).cpu()
            del sample, x, of_edges  # the memory of this block is that of the next one
            yield number, block, outputs

    def _by_means(self, network: Network, index: int, rows: _core.Features) -> bool:
        """Return whether a layer can be computed without copies of the rows of neighbours, to the same precision."""
        known = self._fetching is None and len(rows.row_shape) == 1 and rows.has_means
        takes = network.takes_means(index) or network.takes_propagated(index)
        return known and takes and numbers_of(network)["dtype"] == torch.float32

    def _from_means(
        self, network: Network, index: int, rows: _core.Features, wanted: VertexMask | None
    ) -> Iterator[Outputs]:
        """Yield the outputs of a layer that takes a mean of the neighbours."""
        where, codes = numbers_of(network), None if index else self._codes
        stored = codes or (rows, StoredRows(self._topology.num_vertices, rows.row_shape[0]))
        known, weights = (ScaledMeans, self._roots()) if network.takes_propagated(index) else (Means, None)
        for number, block, own, means in self._means.of(rows, stored, wanted, weights):
            x, mean = torch.from_numpy(own).to(**where), torch.from_numpy(means).to(**where)
            degree = torch.from_numpy(self._topology.degrees_of(self._own.rows(number, block))).to(x.device)
            yield number, block, network.layer(index, known(x, mean, degree), x).cpu()

    def _roots(self) -> npt.NDArray[np.float32]:
        """Return the inverse roots of the degrees of all vertices plus 1, by row."""
        n = self._topology.num_vertices
        roots = np.empty(n, np.float32)
        for first in range(0, n, EDGES):
            rows = np.arange(first, min(first + EDGES, n), dtype=np.uint32)
            degree = torch.from_numpy(self._topology.degrees_of(rows))
            roots[first : first + len(rows)] = inverse_roots(degree, torch.float32)[:, 0].numpy()
        return roots

    def _at_once(self, network: nn.Module, wanted: VertexMask | None) -> Iterator[Outputs]:
        """Yield the outputs of a network without layers of its own."""
        edges = self._edge_features() if takes_edge_attr(network) else None
        hops = _core.Sampler(
            self._topology, [-1] * self._layers, merged=True, edge_rows=takes_edge_attr(network)
        )
        where = numbers_of(network)

        def sizes(rows: npt.NDArray[np.uint32]) -> tuple[list[int], list[int]]:
            sample = hops.sample(rows)
            return sample.num_sampled_nodes, sample.num_sampled_edges

        blocks = [block for number in self._own.parts for block in self._fitting(number, wanted, sizes)]
        exchange = self._edge_fetching if takes_edge_attr(network) else None
        for number, vertices, sample, x, of_edges in self._read(
            hops, self._features(), blocks, edges, exchange
        ):
            x = x.to(**where)
            graph = self._graph(sample, x.device, of_edges)
            yield number, vertices, network(graph.by_layer(sample.num_sampled_nodes), x).cpu()

    def _edge_features(self) -> _core.Features | None:
        """Map the features of edges that are here. None if there are none."""
        if self._parts[0].row_type("edge_features") is None:
            return None
        rows = self._opened(
            [part.folder / "edge_features.npy" for part in self._parts], self._topology.edge_starts
        )
        coding = self._parts[0].coding("edge_features")
        return rows if rows is None or coding is None else rows.decoded(coding.core)

    def _blocks(self, wanted: VertexMask | None, width: int) -> Iterator[Block]:
        """Yield the wanted vertices of this process in blocks. An in-edge takes so many numbers in memory."""
        most = max(1, min(EDGES, piece(4 * width)))
        return self._own.split(wanted, lambda degrees: degrees + 1, most)  # and the row of the vertex

    def _read(
        self,
        sampler: _core.Sampler[_core.SampledBatch],
        rows: InputRows,
        blocks: Iterable[Block],
        edges: _core.Features | None,
        exchange: Fetching | None = None,
    ) -> Iterator[tuple[int, Vertices, _core.SampledBatch, Tensor, Tensor | None]]:
        """Yield the blocks that are not empty, with their in-edges, one row per source, and one per in-edge.

        In-edges of other vertices than those of the block may be in other processes: then ``exchange`` has them.
        """
        if self._fetching is not None:
            blocks = list(blocks)
            most = int(largest(torch.tensor(len(blocks))))
            blocks += [(0, np.empty(0, np.int64))] * (most - len(blocks))
        for number, block in blocks:
            ids = self._own.rows(number, block)
            if isinstance(rows, SavedRows):
                sample = sampler.sample(ids, edge_features=edges)
                x: npt.NDArray[Any] | None = rows.rows(sample.rows)
            else:
                sample = sampler.sample(ids, features=rows, edge_features=edges)
                x = sample.features
                if self._fetching is not None:
                    x = self._fetching.complete(sample.rows, x, rows)
            of_edges = sample.edge_features
            if exchange is not None and sample.edge_rows is not None:
                of_edges = exchange.complete(sample.edge_rows, of_edges, edges)
            if len(block):
                yield number, block, sample, torch.from_numpy(x), _tensor(of_edges)
            del sample, x, of_edges

    def _graph(self, sample: _core.SampledBatch, device: torch.device, of_edges: Tensor | None) -> Rows:
        return Rows(
            sample.indptr,
            sample.indices,
            lambda: torch.from_numpy(self._topology.degrees_of(sample.rows)),
            torch.from_numpy(sample.n_id),
            sources=len(sample.rows),
            device=device,
            edge_attr=of_edges,
        )


def _tensor(rows: npt.NDArray[Any] | None) -> Tensor | None:
    return None if rows is None else torch.from_numpy(rows)


def numbers_of(network: nn.Module) -> dict[str, Any]:
    """Return type and device of the weights."""
    for weight in network.parameters():
        return {"dtype": weight.dtype, "device": weight.device}
    return {"dtype": torch.float32}
